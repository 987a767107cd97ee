#!/usr/bin/env python3
# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Builds and runs test binaries through ctest.

Usage: run_tests.py check [--build debug|asan|tsan|coverage] [NAME...]
                                            our tests and the listed upstream binaries
                                            (or just NAMEs). With asan, tsan or coverage: our
                                            test binaries (or just NAMEs), built with what
                                            scripts/configure.sh says
       run_tests.py upstream [--side SIDE] [--shard I/N] [--fresh] [NAME...]
                                            all of upstream's binaries; results in
                                            build/upstream-tests-<side>.tsv; resumes where it
                                            stopped. Sides: strata (the default), stock, and
                                            Strata with a feature in each column family that
                                            can have it: map, blob, merged, deltas, all (map,
                                            merged and deltas), and layouts, where STRATA_CONFIG
                                            gives each database a second path
       run_tests.py list                    what "check" would run

Common options: --jobs N (default: the number of processors), --retries N (upstream's binaries
only, default 1).

ctest gets one entry per binary (upstream registers every test case by itself, thousands of them),
or one per shard of a long binary. Each entry runs with a TEST_TMPDIR and a working directory of
its own below the build folder, on disk because some tests need O_DIRECT, and removed afterwards.
Some of upstream's tests depend on timing, so a binary of upstream's that fails is run once more
alone; if it passes then, that is said, and it counts as passed. What a script of ours skips, in
lines that begin with "skipped: ", is repeated at the end. The last line printed is
"N passed, N failed", in test cases.
"""
import argparse
import contextlib
import hashlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
LIST = os.path.join(HERE, 'check-upstream-tests.txt')
DEFAULT_TIMEOUT = 900
LOW_DISK = 30 << 30     # with less free than this, "upstream" deletes binaries once they have run
MAX_STOPS = 3           # parts of an entry that are stopped at the timeout before it is given up
CHUNK = 40              # binaries that "upstream" builds before it runs them
# Build folder -> what its sanitizers are told, and by what their tests take longer. A sanitizer
# reads the last of several values, so what the user's environment says comes last.
SANITIZERS = {
    # UBSan only prints what it finds, if it is not told to stop there.
    'asan': ({'ASAN_OPTIONS': 'detect_stack_use_after_return=1',
              'UBSAN_OPTIONS': 'halt_on_error=1:print_stacktrace=1'}, 4),
    # TSan reports all that it finds, and makes the program exit with 66. db_wal_buffer_test forks
    # while other threads run.
    'tsan': ({'TSAN_OPTIONS': 'second_deadlock_stack=1:die_after_fork=0'}, 10),
}
# Counting takes time, too, most of all for the processes that write their counts when they end.
COVERAGE_FACTOR = 3
# Build folders in which only our tests in C++ run, if nothing else is asked for.
INSTRUMENTED = (*SANITIZERS, 'coverage')
# Side of "upstream" -> the variables with which a debug build gives a feature to each column family
# that can have it. Their values are options, 0 for the default: see docs/upstream-tests.md.
FORCED = {'map': ('STRATA_FORCE_ADDRESS_MAP',), 'blob': ('STRATA_FORCE_BLOB_FILES',),
          'merged': ('STRATA_FORCE_MERGED_VALUES',), 'deltas': ('STRATA_FORCE_DELTA_SEPARATION',)}
FORCED['all'] = FORCED['map'] + FORCED['merged'] + FORCED['deltas']
# Side -> the file that STRATA_CONFIG names. PATHS stands for a folder of the entry's own.
PATHS = '@PATHS@'
CONFIGS = {'layouts': f"""[CFOptions "*" "*"]
  cf_paths = {{dir}}, {PATHS}/{{db}}
  level_sst_path_ids = 0:1
  level_blob_path_ids = 1
"""}

sys.path.insert(0, HERE)
import overlay_sources  # noqa: E402


# --- one entry, started by ctest ------------------------------------------------------------------

def summarise(xml, log, code):
    """(cases passed, [failing cases], note) from GoogleTest's XML, or from the log without it."""
    with open(log, encoding='utf-8', errors='replace') as f:
        text = f.read()
    if os.path.exists(xml):
        try:
            passed, failed = 0, []
            for case in ET.parse(xml).getroot().iter('testcase'):
                if case.get('status') != 'run':
                    continue
                if case.find('failure') is not None:
                    failed.append(f"{case.get('classname')}.{case.get('name')}")
                else:
                    passed += 1
            if code and not failed:
                return passed, ['(exit)'], f'all cases passed, but it exited with {code}'
            return passed, failed, ''
        except ET.ParseError:
            pass
    ran = re.findall(r'^Ran (\d+) tests? in ', text, re.M)  # Python's unittest
    if ran:
        failed = re.findall(r'^(?:FAIL|ERROR): (\S+)', text, re.M)
        if code and not failed:
            failed = ['(exit)']
        return max(int(ran[-1]) - len(failed), 0), failed, ''
    started = re.findall(r'^\[ RUN      \] (\S+)', text, re.M)
    if started:  # GoogleTest died before it wrote its XML
        ok = len(re.findall(r'^\[       OK \] ', text, re.M))
        failed = re.findall(r'^\[  FAILED  \] ([^\s,]+)', text, re.M)
        if started[-1] not in failed:
            failed.append(started[-1])
        return ok, failed, 'it did not reach its end'
    return (0, ['(exit)'], '') if code else (1, [], '')


def skipped_checks(log):
    """What the log of a script of ours says that it left out."""
    with open(log, encoding='utf-8', errors='replace') as f:
        return re.findall(r'^skipped: (.+)$', f.read(), re.M)


def sanitizer_reports(lines):
    """The reports of sanitizers among the lines of a log: a list of lists of lines."""
    reports, ubsan, inside = [], False, False
    for line in lines:
        begins = re.search(r'(ERROR|WARNING): \w+Sanitizer: |: runtime error: ', line)
        # A report of UBSan is a line and a stack. The others end with a summary.
        if begins and (not inside or ubsan):
            reports.append([line])
            ubsan, inside = ': runtime error: ' in line, True
        elif inside and ubsan and not line.startswith('    #'):
            inside = False
        elif inside:
            reports[-1].append(line)
            inside = ubsan or not line.startswith('SUMMARY: ')
    return reports


def excerpt(log, failed):
    """What the log says about the failing cases, the first reports of sanitizers, and its end."""
    with open(log, encoding='utf-8', errors='replace') as f:
        lines = f.read().split('\n')
    out, keep = [], False
    for line in lines:
        if line.startswith('[ RUN      ] '):
            keep = line[len('[ RUN      ] '):].strip() in failed
        if keep:
            out.append(line)
        if line.startswith(('[       OK ] ', '[  FAILED  ] ')):
            keep = False
    tail = lines[-60:]
    if len(out) > 600:
        out = out[:300] + ['...'] + out[-300:]
    reports = sanitizer_reports(lines)
    for report in reports[:5]:
        out += ['--- a report of a sanitizer ---'] + report[:80]
    if len(reports) > 5:
        out.append(f'--- {len(reports) - 5} more reports are in the log ---')
    return '\n'.join(out + ['--- the last lines ---'] + tail if out else lines[-200:])


def started_cases(log):
    """The cases that the log of a GoogleTest binary says have begun."""
    with open(log, encoding='utf-8', errors='replace') as f:
        return re.findall(r'^\[ RUN      \] (\S+)', f.read(), re.M)


def cases_of(spec):
    """The cases that a GoogleTest binary runs as this entry, in their order."""
    env = {k: v for k, v in os.environ.items() if not k.startswith('GTEST_')}
    env.update({k: v for k, v in spec['env'].items() if k == 'GTEST_FILTER'})
    listed = subprocess.run([*spec['command'], '--gtest_list_tests'], env=env, check=False,
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                            timeout=spec['timeout'])
    cases, suite = [], ''
    for line in listed.stdout.split('\n'):
        words = line.split('#')[0].split()
        if words and not line.startswith(' '):
            suite = words[0]
        elif words:
            cases.append(suite + words[0])
    # GoogleTest deals the cases out that it runs, in turn.
    cases = [c for c in cases if not re.search(r'(^|[./])DISABLED_', c)]
    env = spec['env']
    return cases[int(env.get('GTEST_SHARD_INDEX', 0))::int(env.get('GTEST_TOTAL_SHARDS', 1))]


def run_one(spec_path):
    """Runs the entry that the JSON file describes; writes its result beside it. An entry that goes
    on runs the cases behind one that ends the process, or does not end, in another process."""
    with open(spec_path, encoding='utf-8') as f:
        spec = json.load(f)
    base = spec_path[:-len('.json')]
    log, result_path, part = base + '.log', base + '.result', spec
    if os.path.exists(result_path):
        os.unlink(result_path)
    result, begun = None, []
    with contextlib.ExitStack() as stack:
        whole = None
        while True:
            one = run_part(part, base)
            if result is None:
                result = one
            else:
                for number in ('seconds', 'passed'):
                    result[number] = round(result[number] + one[number], 1)
                result['failed'] += one['failed']
                result['code'] = result['code'] or one['code']
                result['timeout'] = result['timeout'] or one['timeout']
                result['note'] = '; '.join(filter(None, (result['note'], one['note'])))
            died = one['timeout'] or (one['code'] and not os.path.exists(base + '.xml'))
            begun += started_cases(log)
            if not spec.get('goes_on') or not died or not begun or \
                    result['note'].count('stopped after') >= MAX_STOPS:
                break
            left = [c for c in cases_of(spec) if c not in set(begun)]
            if not left:
                break
            if whole is None:
                whole = stack.enter_context(open(base + '.whole', 'wb'))
            with open(log, 'rb') as f:
                whole.write(f.read())
            # The list may be too long for a command line.
            with open(base + '.flags', 'w', encoding='utf-8') as f:
                f.write('--gtest_filter=' + ':'.join(left) + '\n')
            part = {**spec, 'env': {k: v for k, v in spec['env'].items()
                                    if not k.startswith('GTEST_')},
                    'command': [*spec['command'], f'--gtest_flagfile={base}.flags']}
        if whole is not None:
            with open(log, 'rb') as f:
                whole.write(f.read())
    if whole is not None:
        os.replace(base + '.whole', log)
    failed, note = result['failed'], result['note']
    with open(result_path, 'w', encoding='utf-8') as f:
        json.dump(result, f)
    if failed:
        print(excerpt(log, failed))
        print(f'{spec["entry"]}: failed: {" ".join(failed)}' + (f' ({note})' if note else ''))
        print(f'{spec["entry"]}: the whole output is in {log}')
    else:
        print(f'{spec["entry"]}: {result["passed"]} cases in {result["seconds"]} s')
    return 1 if failed else 0


def run_part(spec, base):
    """Runs the command of an entry once, with its output in <base>.log; returns the result."""
    log, xml, tmp = base + '.log', base + '.xml', spec['tmp']
    if os.path.exists(xml):
        os.unlink(xml)
    paths = tmp + '.paths'  # of the databases, for a side whose configuration names it
    for folder in (tmp, paths):
        shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(tmp)
    env = {k: v for k, v in os.environ.items() if not k.startswith(('GTEST_', 'GIT_'))}
    env.update(spec['env'])
    env.update(TEST_TMPDIR=tmp, TMPDIR=tmp, GTEST_OUTPUT='xml:' + xml,
               STRATA_TESTDATA=os.path.join(ROOT, 'testdata'))
    if spec['config']:
        os.makedirs(paths)
        with open(base + '.config', 'w', encoding='utf-8') as f:
            f.write(spec['config'].replace(PATHS, paths))
        env['STRATA_CONFIG'] = base + '.config'
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 65536)), hard))
    start, timed_out = time.time(), False
    with open(log, 'wb') as out:
        try:
            child = subprocess.Popen(spec['command'], stdin=subprocess.DEVNULL, stdout=out,
                                     stderr=subprocess.STDOUT, cwd=tmp, env=env,
                                     start_new_session=True)
        except OSError as e:
            out.write(f'cannot start {spec["command"][0]}: {e}\n'.encode())
            child = None

        def stop(signum, frame):
            os.killpg(child.pid, signal.SIGKILL)
            for folder in (tmp, paths):
                shutil.rmtree(folder, ignore_errors=True)
            sys.exit(1)
        if child:
            signal.signal(signal.SIGTERM, stop)
            signal.signal(signal.SIGINT, stop)
            try:
                code = child.wait(spec['timeout'])
            except subprocess.TimeoutExpired:
                code, timed_out = -signal.SIGKILL, True
            try:
                os.killpg(child.pid, signal.SIGKILL)  # also whatever a test left behind
            except ProcessLookupError:
                pass
            child.wait()
        else:
            code = 127
    for folder in (tmp, paths):
        shutil.rmtree(folder, ignore_errors=True)
    passed, failed, note = summarise(xml, log, code)
    if timed_out:
        note = f'stopped after {spec["timeout"]:.0f} s'
    elif code < 0:
        note = f'killed by {signal.Signals(-code).name}'
    if code and not failed:
        failed = ['(exit)']
    if failed == ['(exit)']:
        with open(log, encoding='utf-8', errors='replace') as f:
            reports = sanitizer_reports(f.read().split('\n'))
        if reports:
            note = f'{len(reports)} reports of a sanitizer, the first: {reports[0][-1].strip()}'
    if not passed and not failed and 'GTEST_FILTER' in spec['env']:
        failed, note = ['(no case)'], f'no case matches {spec["env"]["GTEST_FILTER"]}'
    return {'entry': spec['entry'], 'binary': spec['binary'], 'code': code,
            'timeout': timed_out, 'seconds': round(time.time() - start, 1),
            'passed': passed, 'failed': failed, 'note': note,
            'skipped': [] if os.path.exists(xml) else skipped_checks(log)}


# --- what there is to run -------------------------------------------------------------------------

def read_list():
    """(names for "check" in order, {name: {shards, timeout, weight, alone, differs}})."""
    names, numbers, section = [], {}, None
    with open(LIST, encoding='utf-8') as f:
        for line in f:
            words = line.split('#')[0].split()
            if not words:
                continue
            if words[0].startswith('['):
                section = words[0].strip('[]')
                continue
            if section == 'check':
                names.append(words[0])
            pairs = (word.split('=') for word in words[1:])
            numbers[words[0]] = {k: v if k in ('alone', 'differs', 'endless') else float(v)
                                 for k, v in pairs}
    return names, numbers


def upstream_tests():
    """The names of all test binaries that upstream's CMakeLists.txt defines."""
    for tree in ('pristine', 'src'):
        path = os.path.join(ROOT, 'build', tree, 'CMakeLists.txt')
        if os.path.exists(path):
            break
    with open(path, encoding='utf-8') as f:
        text = f.read()
    names = ['c_test']
    for block in re.findall(r'(?:set\(TESTS|list\(APPEND TESTS)\s([^)]*)\)', text):
        names += [os.path.basename(p)[:-len('.cc')] for p in block.split()
                  if p.endswith('_test.cc')]
    if len(names) < 100:
        raise SystemExit(f'{path}: only {len(names)} tests found; has its layout changed?')
    return sorted(set(names))


def own_tests():
    """The test binaries of ours."""
    return [os.path.basename(p)[:-len('.cc')] for p in overlay_sources.find(ROOT)['TEST_MAIN']]


def own_scripts(build):
    """Test scripts of ours: [(name, command)]."""
    scripts = [('overlay_sources_check', [sys.executable, os.path.join(HERE, 'overlay_sources.py'),
                                          '--check']),
               ('check_style', [sys.executable, os.path.join(HERE, 'check_style.py')]),
               ('scripts_test', [sys.executable, os.path.join(HERE, 'scripts_test.py')]),
               ('planted_bugs_test', [sys.executable, os.path.join(HERE, 'planted_bugs_test.py')]),
               ('metrics_test', [sys.executable, os.path.join(HERE, 'metrics_test.py')]),
               ('contrib_test', [sys.executable, os.path.join(HERE, 'contrib_test.py')]),
               ('coverage_test', [sys.executable, os.path.join(HERE, 'coverage_test.py')]),
               ('dist_test', [sys.executable, os.path.join(HERE, 'dist_test.py')]),
               ('db_bench_test', [sys.executable, os.path.join(HERE, 'db_bench_test.py'),
                                  os.path.join(build, 'db_bench')]),
               ('bench_test', [sys.executable, '-m', 'unittest', 'discover',
                               '-s', os.path.join(ROOT, 'bench', 'tests'),
                               '-t', os.path.join(ROOT, 'bench')]),
               ('install_test', [sys.executable, os.path.join(HERE, 'install_test.py'), build])]
    tree = os.path.join(ROOT, 'upstream', 'tree_test.py')
    if os.path.exists(tree):
        scripts.insert(0, ('tree_test', [sys.executable, tree]))
    return scripts


class Suite:
    """A set of ctest entries in <build>/strata-ctest."""

    def __init__(self, build, config='', goes_on=False):
        self.dir = os.path.join(build, 'strata-ctest')
        self.goes_on = goes_on  # behind a case that ends the process
        self.config = config  # what STRATA_CONFIG is to name, with PATHS in it
        self.entries = {}   # entry -> (binary, retry, weight)
        self.lines = []
        os.makedirs(self.dir, exist_ok=True)

    def add(self, binary, command, numbers, retry):
        shards = int(numbers.get('shards', 1))
        factor = float(os.environ.get('STRATA_TIMEOUT_FACTOR', '1'))
        timeout = numbers.get('timeout', DEFAULT_TIMEOUT) * factor
        weight = numbers.get('weight', 1) / shards
        parts = {}  # entry -> environment
        for i in range(shards):
            env = {} if shards == 1 else {'GTEST_TOTAL_SHARDS': str(shards),
                                          'GTEST_SHARD_INDEX': str(i)}
            parts[binary if shards == 1 else f'{binary}.{i + 1}of{shards}'] = env
        alone = numbers.get('alone')
        left_out = ':'.join(filter(None, (alone, numbers.get('differs'),
                                          self.goes_on and numbers.get('endless'))))
        if left_out:
            for env in parts.values():
                env['GTEST_FILTER'] = '-' + left_out
        if alone:
            parts[f'{binary}.alone'] = {'GTEST_FILTER': alone}
        for entry, env in parts.items():
            spec = os.path.join(self.dir, entry + '.json')
            with open(spec, 'w', encoding='utf-8') as f:
                json.dump({'entry': entry, 'binary': binary, 'command': command, 'env': env,
                           'config': self.config, 'goes_on': self.goes_on, 'timeout': timeout,
                           'tmp': os.path.join(self.dir, 'tmp', entry)}, f)
            result = spec[:-len('.json')] + '.result'
            if os.path.exists(result):
                os.unlink(result)
            self.entries[entry] = (binary, retry, weight)
            runner = os.path.join(HERE, 'run_tests.py')
            words = ' '.join(f'"{w}"' for w in (sys.executable, runner, 'one', spec))
            # The runner stops the test at its timeout; ctest's own is the net below it.
            self.lines.append(f'add_test("{entry}" {words})\n'
                              f'set_tests_properties("{entry}" PROPERTIES '
                              f'TIMEOUT {timeout + 60:.0f} COST {weight:.0f})\n')

    def ctest(self, entries, jobs):
        with open(os.path.join(self.dir, 'CTestTestfile.cmake'), 'w', encoding='utf-8') as f:
            f.writelines(line for entry, line in zip(self.entries, self.lines) if entry in entries)
        # ctest remembers durations across runs; it must not mix them up with other sets of entries.
        shutil.rmtree(os.path.join(self.dir, 'Testing'), ignore_errors=True)
        # A group of its own: ctest alone would die and leave the tests running.
        child = subprocess.Popen(['ctest', '--test-dir', self.dir, '-j', str(jobs),
                                  '--output-on-failure', '--test-output-size-failed', '200000'],
                                 start_new_session=True)
        try:
            return child.wait()
        except BaseException:
            os.killpg(child.pid, signal.SIGTERM)
            child.wait()
            raise

    def results(self):
        out = {}
        for entry, (binary, _, _) in self.entries.items():
            path = os.path.join(self.dir, entry + '.result')
            if os.path.exists(path):
                with open(path, encoding='utf-8') as f:
                    out[entry] = json.load(f)
            else:
                out[entry] = {'entry': entry, 'binary': binary, 'code': 1, 'timeout': False,
                              'seconds': 0, 'passed': 0, 'failed': ['(no result)'],
                              'note': 'it wrote no result'}
        return out

    def run(self, jobs, retries):
        """Runs all entries; returns {entry: result}. If an entry took a second run, `flaky` in its
        result has the failures of the first."""
        self.ctest(set(self.entries), jobs)
        results, first = self.results(), {}
        for _ in range(retries):
            again = {e for e, r in results.items() if r['failed'] and self.entries[e][1]}
            if not again:
                break
            if len(again) > 10:
                print(f'{len(again)} entries failed: too many to be a matter of timing; '
                      'not run again')
                break
            print(f'\nrunning again, alone: {" ".join(sorted(again))}', flush=True)
            for e in again:
                first.setdefault(e, results[e]['failed'])
            self.ctest(again, 1)
            results = self.results()
        for e, failed in first.items():
            results[e]['flaky'] = failed
        shutil.rmtree(os.path.join(self.dir, 'tmp'), ignore_errors=True)
        return results


def ninja(build, targets, jobs, keep_going=False):
    env = dict(os.environ)
    env.setdefault('CCACHE_BASEDIR', ROOT)
    env.setdefault('CCACHE_NOHASHDIR', '1')
    command = ['ninja', '-C', build, '-j', str(jobs), *(['-k', '0'] if keep_going else []),
               *targets]
    return subprocess.run(command, env=env).returncode


def build_or_remove(build, names, jobs):
    """Builds binaries. Afterwards each is there and up to date, or not there: one that does not
    build must not be an old one."""
    if not ninja(build, names, jobs, keep_going=True):
        return
    for name in names:
        if ninja(build, [name], jobs) and os.path.exists(os.path.join(build, name)):
            os.unlink(os.path.join(build, name))


def finish(results):
    """Prints what failed and the summary line; returns the exit code."""
    passed = sum(r['passed'] for r in results)
    failed = sum(len(r['failed']) for r in results)
    print()
    for r in results:
        if r['failed']:
            note = f" ({r['note']})" if r['note'] else ''
            print(f"FAILED  {r['entry']}: {' '.join(r['failed'])}{note}")
        elif r.get('flaky'):
            print(f"FLAKY   {r['entry']}: failed at first, passed alone: {' '.join(r['flaky'])}")
        for what in r.get('skipped', []):
            print(f"SKIPPED {r['entry']}: {what}")
    bad = sum(1 for r in results if r['failed'])
    print(f'{len(results)} test programs and shards, {bad} of them failed')
    print(f'{passed} passed, {failed} failed')
    return 1 if failed or not results else 0


# --- check ----------------------------------------------------------------------------------------

def set_sanitizers_up(build):
    """Sets the environment for the tests of a build folder with sanitizers. Returns the words that
    each test is started with."""
    options, factor = SANITIZERS[os.path.basename(build)]
    for variable, value in options.items():
        tool = variable.split('_')[0].lower()
        # RocksDB has suppressions for liburing. Ours would be in scripts/suppressions/<tool>.txt.
        texts = []
        for path in (os.path.join(ROOT, 'build', 'src', 'tools', f'{tool}_suppressions.txt'),
                     os.path.join(HERE, 'suppressions', f'{tool}.txt')):
            if os.path.exists(path):
                with open(path, encoding='utf-8') as f:
                    texts.append(f.read())
        if texts:
            path = os.path.join(build, f'{tool}-suppressions.txt')
            with open(path, 'w', encoding='utf-8') as f:
                f.write('\n'.join(texts))
            value += f':suppressions="{path}"'
        os.environ[variable] = ':'.join(v for v in (value, os.environ.get(variable)) if v)
    os.environ.setdefault('STRATA_TIMEOUT_FACTOR', str(factor))
    # GCC 12's TSan does not start where the kernel randomises more than 28 bits of addresses.
    words = ['setarch', '-R']
    if 'TSAN_OPTIONS' in options and shutil.which('setarch') and \
            subprocess.run([*words, 'true'], stderr=subprocess.DEVNULL).returncode == 0:
        return words
    return []


def check(args):
    build = os.path.join(ROOT, 'build', args.build)
    listed, numbers = read_list()
    unknown = sorted(set(listed) - set(upstream_tests()))
    if unknown:
        raise SystemExit(f'{LIST}: upstream has no {" ".join(unknown)}')
    ours = own_tests()
    scripts = own_scripts(build)
    if args.names:
        known = set(listed) | set(ours) | {n for n, _ in scripts} | set(upstream_tests())
        wrong = [n for n in args.names if n not in known]
        if wrong:
            raise SystemExit(f'no such test: {" ".join(wrong)}')
        listed = [n for n in upstream_tests() if n in args.names]
        ours = [n for n in ours if n in args.names]
        scripts = [(n, c) for n, c in scripts if n in args.names]
    if args.build in INSTRUMENTED:
        # The scripts test builds of their own, or code that is not C++.
        scripts = []
        if not args.names:
            listed = []
    if args.build == 'tsan':
        # Their own pthread_mutex_lock() and others take the place of those of ThreadSanitizer, and
        # only one of their threads runs at a time.
        for name in [n for n in ours if n.startswith('seeded_')]:
            print(f'left out: {name} does not run with ThreadSanitizer')
            ours.remove(name)
    if args.command == 'list':
        print('\n'.join([n for n, _ in scripts] + ours + listed))
        return 0
    targets = ours + listed
    for name, needs in (('install_test', ['rocksdb-shared', 'ldb', 'sst_dump']),
                        ('db_bench_test', ['db_bench'])):
        if any(n == name for n, _ in scripts):
            targets += needs
    if targets and ninja(build, targets, args.jobs):
        print('the build failed', file=sys.stderr)
        return 1
    if args.build == 'coverage':
        os.environ.setdefault('STRATA_TIMEOUT_FACTOR', str(COVERAGE_FACTOR))
    launcher = set_sanitizers_up(build) if args.build in SANITIZERS else []
    suite = Suite(build)
    for name, command in scripts:
        suite.add(name, command, {'weight': 60, 'timeout': 1800}, False)
    for name in ours:
        suite.add(name, [*launcher, os.path.join(build, name)],
                  {'weight': 30, 'timeout': 1800, **numbers.get(name, {})}, False)
    for name in listed:
        suite.add(name, [*launcher, os.path.join(build, name)], numbers.get(name, {}), True)
    return finish(list(suite.run(args.jobs, args.retries).values()))


# --- upstream -------------------------------------------------------------------------------------

def fingerprint(objects):
    """Of the library's object files in the directory `objects`, but for the one that names the
    commit: a result holds until the code changes."""
    digest, found = hashlib.sha256(), False
    for folder, folders, names in os.walk(objects):
        folders.sort()
        for name in sorted(names):
            if name.endswith('.o') and name != 'build_version.cc.o':
                path = os.path.join(folder, name)
                digest.update(os.path.relpath(path, objects).encode())
                with open(path, 'rb') as f:
                    digest.update(f.read())
                found = True
    if not found:  # of nothing, it would never change
        raise SystemExit(f'{objects}: no object files')
    return digest.hexdigest()[:16]


def binary_rows(results):
    """{binary: what all its shards did together}, from {entry: result}."""
    rows = {}
    for name in {r['binary'] for r in results.values()}:
        mine = [r for r in results.values() if r['binary'] == name]
        failed = [c for r in mine for c in r['failed']]
        flaky = [c for r in mine for c in r.get('flaky', [])]
        kind = 'timeout' if any(r['timeout'] for r in mine) else 'failed' if failed else \
            'flaky' if flaky else 'passed'
        rows[name] = {'result': kind, 'seconds': sum(r['seconds'] for r in mine),
                      'passed': sum(r['passed'] for r in mine), 'failed': failed, 'flaky': flaky}
    return rows


def write_tsv(path, rows, total):
    with open(path + '.tmp', 'w', encoding='utf-8') as f:
        f.write(f'# {len(rows)} of {total} binaries\n')
        f.write('binary\tresult\tseconds\tpassed\tfailed\tfailing cases\n')
        for name in sorted(rows):
            r = rows[name]
            f.write(f'{name}\t{r["result"]}\t{r["seconds"]:.0f}\t{r["passed"]}\t'
                    f'{len(r["failed"])}\t{" ".join(r["failed"] or r["flaky"])}\n')
    os.replace(path + '.tmp', path)


def upstream(args):
    build = os.path.join(ROOT, 'build', 'stock-debug' if args.side == 'stock' else 'debug')
    tsv = os.path.join(ROOT, 'build', f'upstream-tests-{args.side}.tsv')
    state_path = os.path.join(build, 'upstream-tests.json' if args.side in ('strata', 'stock')
                              else f'upstream-tests-{args.side}.json')
    is_forced = args.side in FORCED or args.side in CONFIGS
    for variable in FORCED.get(args.side, ()):
        os.environ.setdefault(variable, '0')
    _, numbers = read_list()
    names = upstream_tests()
    total = len(names)
    if args.names:
        names = [n for n in names if n in args.names]
    elif args.shard:
        i, n = (int(x) for x in args.shard.split('/'))
        if not 1 <= i <= n:
            raise SystemExit('--shard I/N wants 1 <= I <= N')
        # Long binaries are spread first, so that shards take about as long as each other.
        order = sorted(names, key=lambda x: (-numbers.get(x, {}).get('weight', 1), x))
        names = sorted(order[i - 1::n])
    if ninja(build, ['rocksdb-shared', 'testutillib', 'testharness', 'gtest'], args.jobs):
        return 1
    lib = fingerprint(os.path.join(build, 'CMakeFiles', 'rocksdb-shared.dir'))
    state = {}
    if os.path.exists(state_path) and not args.fresh:
        with open(state_path, encoding='utf-8') as f:
            state = json.load(f)
    if state.get('lib') != lib:
        if state:
            print('the library changed since the last run: starting over')
        state = {'lib': lib, 'rows': {}}
    rows = state['rows']

    def save():
        with open(state_path + '.tmp', 'w', encoding='utf-8') as f:
            json.dump(state, f)
        os.replace(state_path + '.tmp', state_path)
        write_tsv(tsv, rows, total)

    todo = [n for n in names if n not in rows or args.names]
    todo.sort(key=lambda x: -numbers.get(x, {}).get('weight', 1))
    if len(todo) < len(names):
        print(f'{len(names) - len(todo)} of {len(names)} binaries are done already')
    tidy = shutil.disk_usage(ROOT).free < LOW_DISK
    results = []
    for at in range(0, len(todo), CHUNK):
        chunk = todo[at:at + CHUNK]
        print(f'\n== binaries {at + 1} to {at + len(chunk)} of {len(todo)} ==', flush=True)
        build_or_remove(build, chunk, args.jobs)
        suite = Suite(build, CONFIGS.get(args.side, ''), goes_on=is_forced)
        for name in chunk:
            if os.path.exists(os.path.join(build, name)):
                suite.add(name, [os.path.join(build, name)], numbers.get(name, {}), True)
            else:
                rows[name] = {'result': 'not built', 'seconds': 0, 'passed': 0,
                              'failed': ['(build)'], 'flaky': []}
        if suite.entries:
            try:
                done = suite.run(args.jobs, args.retries)
            except BaseException:
                # Binaries that passed until then need not run again. With a feature forced on,
                # cases fail for reasons that docs/upstream-tests.md has.
                rows.update((n, r) for n, r in binary_rows(suite.results()).items()
                            if r['result'] == 'passed' or
                            (is_forced and '(no result)' not in r['failed']))
                save()
                raise
            results += list(done.values())
            rows.update(binary_rows(done))
        save()
        if tidy:
            for name in chunk:
                if os.path.exists(os.path.join(build, name)):
                    os.unlink(os.path.join(build, name))
    write_tsv(tsv, rows, total)
    print(f'\nresults: {os.path.relpath(tsv, ROOT)}')
    return finish([{'entry': n, 'note': rows[n]['result'], **rows[n]} for n in names if n in rows])


def stop_on_sigterm():
    """Turns SIGTERM into an exception, so that what was started is stopped. Only the first one:
    make passes its own on, and another would break off what stopping has to save."""
    def stop(signum, frame):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        sys.exit(128 + signum)
    signal.signal(signal.SIGTERM, stop)


def main(argv):
    if argv[:1] == ['one']:
        return run_one(argv[1])
    if not argv or argv[0] in ('-h', '--help', 'help'):
        print(__doc__)
        return 2
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument('command', choices=['check', 'upstream', 'list'])
    parser.add_argument('names', nargs='*')
    parser.add_argument('--build', choices=['debug', *INSTRUMENTED], default='debug')
    parser.add_argument('--side', choices=['strata', 'stock', *FORCED, *CONFIGS],
                        default='strata')
    parser.add_argument('--shard')
    parser.add_argument('--fresh', action='store_true')
    parser.add_argument('--jobs', type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument('--retries', type=int, default=1)
    args = parser.parse_intermixed_args(argv)
    sys.stdout.reconfigure(line_buffering=True)
    stop_on_sigterm()
    return upstream(args) if args.command == 'upstream' else check(args)


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
