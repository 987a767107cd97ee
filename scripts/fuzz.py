#!/usr/bin/env python3
# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Builds the fuzzers of fuzz/strata with clang and runs each for a while.

Usage: fuzz.py [--seconds N] [--jobs N] [--merge] [NAME...]
                                      all fuzzers, or NAMEs (delta_edit_fuzzer, or delta_edit)
       fuzz.py --find-clang           only says whether there is a clang for it

The build is in build/fuzz. A fuzzer starts from its corpus, the inputs in
fuzz/strata/corpus/<target>/ (the target of delta_edit_fuzzer is delta_edit), and from those that
its earlier runs left in build/fuzz-corpus/<fuzzer>/. An input that it fails on becomes a file in
build/fuzz-findings/<fuzzer>/, with the log beside the folder. "make check" runs the same code over
the corpora, and with random input, without clang (fuzz/strata/fuzz_corpus_test.cc).

--merge puts the best of what was found into the corpora. Inputs that have been chosen this way
before are chosen again or go; their names are those that libFuzzer gives, 40 hexadecimal digits.
Inputs with other names stay: they were made by hand, or belong to a fix.

The last line has the totals: executions, covered edges, inputs in build/fuzz-corpus/.

Environment: CLANGXX names the compiler, if it is not clang++ or clang++-<number> on PATH.
"""
import argparse
import collections
import glob
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
INSTALL = 'apt-get install -y clang libclang-rt-14-dev   (by the names of Debian 12)'
# Longer for one input is a failure; so are more MB.
INPUT_SECONDS, INPUT_MB = 60, 2048
# Limits of a corpus in the repository, which fuzz_corpus_test.cc checks: inputs, bytes of each.
CORPUS_INPUTS, CORPUS_BYTES = 30, 4095
OWN_NAME = re.compile(r'[0-9a-f]{40}')

# What one fuzzer did. findings: the files of inputs that it failed on in this run.
Run = collections.namedtuple('Run', 'good executions edges inputs findings')


def compilers():
    """The C++ compilers to try, the best first."""
    if os.environ.get('CLANGXX'):
        return [os.environ['CLANGXX']]
    numbered = {}
    for folder in os.environ.get('PATH', '').split(os.pathsep):
        for path in glob.glob(os.path.join(glob.escape(folder), 'clang++-*')):
            number = path.rsplit('-', 1)[1]
            if number.isdigit():
                numbered.setdefault(int(number), path)
    return ['clang++'] + [numbered[n] for n in sorted(numbered, reverse=True)]


def find_clang():
    """(path of clang, path of clang++), of one that has libFuzzer; None if there is none."""
    for name in compilers():
        cxx = shutil.which(name)
        c = shutil.which(cxx.replace('clang++', 'clang')) if cxx else None
        if not c:
            continue
        with tempfile.TemporaryDirectory(prefix='fuzz-') as d:
            source = os.path.join(d, 'x.cc')
            with open(source, 'w', encoding='utf-8') as f:
                f.write('#include <cstddef>\n#include <cstdint>\nextern "C" int '
                        'LLVMFuzzerTestOneInput(const uint8_t*, size_t) { return 0; }\n')
            run = subprocess.run([cxx, '-fsanitize=address,fuzzer', source,
                                  '-o', os.path.join(d, 'x')], capture_output=True)
        if run.returncode == 0:
            return c, cxx
    return None


def fuzzers(root, names):
    """The names of the fuzzers, or of those among them that `names` has."""
    paths = glob.glob(os.path.join(root, 'fuzz', 'strata', '*_fuzzer.cc'))
    found = sorted(os.path.basename(p)[:-len('.cc')] for p in paths)
    wanted = [n if n.endswith('_fuzzer') else n + '_fuzzer' for n in names]
    wrong = [n for n in wanted if n not in found]
    if wrong:
        raise SystemExit(f'no such fuzzer: {" ".join(wrong)} (there are: {" ".join(found)})')
    return wanted or found


def target_of(fuzzer):
    return fuzzer[:-len('_fuzzer')]


def corpus_of(root, fuzzer):
    """The corpus of a fuzzer in the repository."""
    return os.path.join(root, 'fuzz', 'strata', 'corpus', target_of(fuzzer))


def found_by(root, fuzzer):
    """The folder with the inputs that the runs of a fuzzer left."""
    return os.path.join(root, 'build', 'fuzz-corpus', fuzzer)


def files_in(folder):
    """The paths of the files in a folder, sorted; none if there is no such folder."""
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    return [p for p in (os.path.join(folder, name) for name in names) if os.path.isfile(p)]


def number_in(pattern, text):
    """The number that the last match of the pattern has; 0 if there is none."""
    numbers = re.findall(pattern, text, re.M)
    return int(numbers[-1]) if numbers else 0


def run_fuzzer(root, binary, seconds):
    """Runs one fuzzer. Prints one line about it, or the end of its log and how to repeat the
    failure. Returns the Run."""
    name = os.path.basename(binary)
    corpus = found_by(root, name)
    kept = corpus_of(root, name)
    findings = os.path.join(root, 'build', 'fuzz-findings', name)
    log = findings + '.log'
    os.makedirs(corpus, exist_ok=True)
    os.makedirs(findings, exist_ok=True)
    # libFuzzer adds what it learns to the first folder.
    command = [binary, f'-max_total_time={seconds}', f'-timeout={INPUT_SECONDS}',
               f'-rss_limit_mb={INPUT_MB}', f'-artifact_prefix={findings}{os.sep}',
               '-print_final_stats=1', corpus, *([kept] if os.path.isdir(kept) else [])]
    print(f'{name}: {seconds} s', flush=True)
    with open(log, 'wb') as f:
        code = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=f,
                              stderr=subprocess.STDOUT, cwd=findings).returncode
    with open(log, encoding='utf-8', errors='replace') as f:
        text = f.read()
    run = Run(good=not code,
              executions=number_in(r'^stat::number_of_executed_units: *(\d+)', text),
              edges=number_in(r'^#\d+\t.*\bcov: (\d+)', text),
              inputs=len(files_in(corpus)),
              findings=re.findall(r'Test unit written to (\S+)', text))
    numbers = (f'{run.executions} runs, {run.edges} edges covered, {run.inputs} inputs in '
               f'build/fuzz-corpus/{name}')
    if run.good:
        print(f'{name}: nothing found in {numbers}')
        return run
    print('\n'.join(text.split('\n')[-60:]))
    print(f'{name}: FAILED (exit code {code}) in {numbers}; the whole output is {log}.')
    for path in run.findings:
        print(f'The input is {path}. To run it again: {binary} {path}')
    if not run.findings:
        print(f'There is no input of this failure in {findings}.')
    print(f'A fix comes with the input, as a file in fuzz/strata/corpus/{target_of(name)}/.')
    return run


def read_control(text):
    """{path: set of features} that a control file of libFuzzer's -merge has."""
    lines = text.split('\n')
    paths = lines[2:2 + int(lines[0])]
    features = {}
    for line in lines[2 + len(paths):]:
        words = line.split()
        if words and words[0] == 'FT':
            features[paths[int(words[1])]] = set(map(int, words[2:]))
    return features


def choose(features, always, limit):
    """At most `limit` of the paths that add the most features to those of `always`."""
    covered = set().union(*(features.get(path, ()) for path in always))
    left = {path: has for path, has in features.items() if path not in always}
    chosen = []
    while left and len(chosen) < limit:
        # The shortest of the files that add as much; then the first name, so that one is chosen.
        best = min(left, key=lambda p: (-len(left[p] - covered), os.path.getsize(p), p))
        if not left[best] - covered:
            break
        chosen.append(best)
        covered |= left.pop(best)
    return chosen


def merge(root, binary):
    """Chooses the corpus of a fuzzer among it and what its runs found. Returns whether that
    succeeded."""
    name = os.path.basename(binary)
    kept = corpus_of(root, name)
    os.makedirs(kept, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix='fuzz-') as scratch:
        control, merged = os.path.join(scratch, 'control'), os.path.join(scratch, 'merged')
        os.makedirs(merged)
        run = subprocess.run(
            [binary, '-merge=1', f'-merge_control_file={control}', f'-max_len={CORPUS_BYTES}',
             f'-timeout={INPUT_SECONDS}', f'-rss_limit_mb={INPUT_MB}', merged, kept,
             found_by(root, name)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=scratch)
        if run.returncode or not os.path.exists(control):
            print(run.stdout.decode(errors='replace')[-4000:])
            print(f'{name}: the merge FAILED (exit code {run.returncode})')
            return False
        with open(control, encoding='utf-8', errors='surrogateescape') as f:
            features = read_control(f.read())
    features = {path: has for path, has in features.items()
                if os.path.getsize(path) <= CORPUS_BYTES}
    old = files_in(kept)
    always = [path for path in old if not OWN_NAME.fullmatch(os.path.basename(path))]
    contents = {}
    for path in choose(features, always, max(CORPUS_INPUTS - len(always), 0)):
        with open(path, 'rb') as f:
            data = f.read()
        contents[hashlib.sha1(data).hexdigest()] = data
    for path in old:
        if path not in always and os.path.basename(path) not in contents:
            os.unlink(path)
    for digest, data in contents.items():
        with open(os.path.join(kept, digest), 'wb') as f:
            f.write(data)
    print(f'{name}: {len(always)} inputs kept and {len(contents)} chosen in '
          f'fuzz/strata/corpus/{target_of(name)}')
    return True


def main(argv):
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument('names', nargs='*')
    parser.add_argument('--seconds', type=int, default=60)
    parser.add_argument('--jobs', type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument('--merge', action='store_true')
    parser.add_argument('--find-clang', action='store_true')
    args = parser.parse_intermixed_args(argv)
    if args.seconds < 1:  # libFuzzer would take 0 for no limit
        raise SystemExit('FUZZ_SECONDS must be at least 1')
    clang = find_clang()
    if not clang:
        print(f'make fuzz needs clang with libFuzzer: {INSTALL}', file=sys.stderr)
        return 1
    if args.find_clang:
        return 0
    names = fuzzers(ROOT, args.names)
    build = os.path.join(ROOT, 'build', 'fuzz')
    for step in ([os.path.join(HERE, 'configure.sh'), 'fuzz', f'-DCMAKE_C_COMPILER={clang[0]}',
                  f'-DCMAKE_CXX_COMPILER={clang[1]}'],
                 ['ninja', '-C', build, '-j', str(args.jobs), *names]):
        if subprocess.run(step).returncode:
            print('the build failed', file=sys.stderr)
            return 1
    runs = [run_fuzzer(ROOT, os.path.join(build, n), args.seconds) for n in names]
    merged = [merge(ROOT, os.path.join(build, n)) for n in names] if args.merge else []
    good = [run.good for run in runs]
    print(f'{good.count(True)} fuzzers found nothing, {good.count(False)} failed; '
          f'{sum(run.executions for run in runs)} runs, {sum(run.edges for run in runs)} edges '
          f'covered, {sum(run.inputs for run in runs)} inputs')
    return 0 if all(good) and all(merged) else 1


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
