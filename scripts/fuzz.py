#!/usr/bin/env python3
# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Builds the fuzzers of fuzz/strata with clang and runs each for a while.

Usage: fuzz.py [--seconds N] [--jobs N] [NAME...]     all fuzzers, or NAMEs (delta_edit_fuzzer, or
                                                      delta_edit)
       fuzz.py --find-clang                           only says whether there is a clang for it

The build is in build/fuzz. A fuzzer starts from the inputs in testdata/fuzz/<fuzzer>/, if that
folder exists, and from those that its earlier runs left in build/fuzz-corpus/<fuzzer>/. An input
that it fails on goes to build/fuzz-findings/<fuzzer>/, and the log is beside it. The tests of
"make check" run the same code with random input and without clang (for example
db/delta/delta_edit_fuzz_test.cc).

Environment: CLANGXX names the compiler, if it is not clang++ or clang++-<number> on PATH.
"""
import argparse
import glob
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


def run_fuzzer(root, binary, seconds):
    """Runs one fuzzer. Prints one line about it, or the end of its log if it failed; returns
    whether it found nothing."""
    name = os.path.basename(binary)
    corpus = os.path.join(root, 'build', 'fuzz-corpus', name)
    findings = os.path.join(root, 'build', 'fuzz-findings', name)
    kept = os.path.join(root, 'testdata', 'fuzz', name)
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
    if code:
        print('\n'.join(text.split('\n')[-60:]))
        units = re.findall(r'Test unit written to (\S+)', text)
        where = units[-1] if units else findings
        print(f'{name}: FAILED (exit code {code}); the input is {where}, the whole output {log}.\n'
              f'To run it again: {binary} {where}\n'
              f'A fix comes with the input, as a file in testdata/fuzz/{name}/.')
        return False
    executed = re.search(r'^stat::number_of_executed_units: *(\d+)', text, re.M)
    print(f'{name}: nothing found in {executed.group(1) if executed else "?"} runs, '
          f'{len(os.listdir(corpus))} inputs in build/fuzz-corpus/{name}')
    return True


def main(argv):
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument('names', nargs='*')
    parser.add_argument('--seconds', type=int, default=60)
    parser.add_argument('--jobs', type=int, default=len(os.sched_getaffinity(0)))
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
    good = [run_fuzzer(ROOT, os.path.join(build, n), args.seconds) for n in names]
    print(f'{good.count(True)} fuzzers found nothing, {good.count(False)} failed')
    return 0 if all(good) else 1


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
