#!/usr/bin/env python3
# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Shows which test catches each of the wrong edits in testdata/planted_bugs.

Usage: planted_bugs.py check                    each patch is well-formed and fits its file
       planted_bugs.py run [NAME...] [--sample N] [--jobs N] [--build build/debug]
                       [--seconds-per-test N] [--fresh] [--quick]
                                                compiles the library with each edit and runs tests
                                                until one fails. Results are written to
                                                testdata/planted_bugs/results.tsv; what it has is
                                                not run again until the patch or its source
                                                changes, or with --fresh. --quick runs only the
                                                programs that a patch names: a bug that they do not
                                                catch is printed and gets no result
       planted_bugs.py add NAME [--what S] [--effect S] [--tests S]
                                                makes a patch of the one edit in the working tree
                                                that is not staged, and takes the edit back. A patch
                                                that is there keeps its head, as far as it is not
                                                given
       planted_bugs.py programs [NAME...] [--sample N]
                                                the test programs that "run" wants to be built
       planted_bugs.py table                    writes the table in docs/planted-bugs.md

NAME may have * in it. --sample N takes N bugs of each area, spread over the area. A program that
takes longer than --seconds-per-test without the bug (300 if not given) is left out. "run" tries the
programs that the patch names, then the others of the source's folder, then history_script_test, and
metamorphic_test for the given seconds, if it is there. The exit code is 1 if a bug was not caught.
"""
import argparse
import concurrent.futures
import fnmatch
import os
import re
import resource
import shutil
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.insert(0, HERE)
import overlay_sources  # noqa: E402
import run_tests  # noqa: E402
from planted import library, patch, programs, results  # noqa: E402

HISTORY_SCRIPTS = 'history_script_test'


# --- check ----------------------------------------------------------------------------------------

def cases_of(path):
    """The names of the cases in a test's source, as GoogleTest has them without parameters."""
    with open(path, encoding='utf-8') as f:
        return ['.'.join(pair) for pair in
                re.findall(r'^TEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\)', f.read(), re.M)]


def unmatched(pattern, cases, scripts):
    """The parts of a GoogleTest filter that no case can match. Parameters of cases are names of
    history scripts or unknown."""
    wrong = []
    for part in pattern.split('-')[0].split(':'):
        suite, _, case = part.partition('.')
        plain = f'{suite.split("/")[-1]}.{case.split("/")[0]}' if case else part
        if not any(fnmatch.fnmatch(name, plain) for name in cases) and \
                not any(fnmatch.fnmatch('x/' + name, part) for name in scripts):
            wrong.append(part)
    return wrong


def problems_of_programs(bug, sources, listed, scripts):
    """What is wrong with the programs that a patch names."""
    found = []
    for program in bug.tests:
        source = sources.get(program.name)
        if not source and program.name not in listed:
            found.append(f'{bug.name}: "make check" runs no program {program.name}')
        elif source and program.filter:
            found += [f'{bug.name}: {program.name} has no case {part}'
                      for part in unmatched(program.filter, cases_of(os.path.join(ROOT, source)),
                                            scripts)]
    return found


def problems(root):
    """(number of planted bugs, what is wrong with them)."""
    try:
        bugs = patch.load(root)
    except patch.PatchError as e:
        return 0, [str(e)]
    kinds = overlay_sources.find(root)
    sources = {os.path.basename(p)[:-len('.cc')]: p for p in kinds['TEST_MAIN']}
    listed, _ = run_tests.read_list()
    folder = os.path.join(root, 'testdata', 'history')
    scripts = [f[:-len('.txt')] for f in os.listdir(folder)]
    found = []
    for bug in bugs:
        if bug.path not in kinds['LIB'] + kinds['SHARED']:
            found.append(f'{bug.name}: {bug.path} is no source of ours in the library')
            continue
        found += problems_of_programs(bug, sources, listed, scripts)
        try:
            bug.applied(root)
        except patch.PatchError as e:
            found.append(str(e))
    return len(bugs), found


def check():
    number, found = problems(ROOT)
    print('\n'.join([*found, f'{number} planted bugs, {len(found)} complaints']))
    return 1 if found else 0


# --- add ------------------------------------------------------------------------------------------

def git(*words):
    return subprocess.run(['git', '-C', ROOT, *words], capture_output=True, text=True,
                          check=True).stdout


def head_of(name, args):
    """The head of a new patch, from the arguments and the patch that it replaces."""
    values = {}
    path = os.path.join(ROOT, patch.FOLDER, name + '.patch')
    if os.path.exists(path):
        with open(path, encoding='utf-8') as f:
            values, _ = patch.parse_head(name, f.read().split('\n'))
    given = {'What': args.what, 'Effect': args.effect, 'Tests': args.tests}
    values.update((key, text) for key, text in given.items() if text)
    missing = [key for key in patch.HEAD if key not in values]
    if missing:
        raise patch.PatchError(f'{name}: give --{missing[0].lower()}')
    return ''.join(f'# {key}: {values[key]}\n' for key in patch.HEAD)


def add(args):
    if len(args.names) != 1:
        raise patch.PatchError('give one name, AREA-WORDS')
    name = args.names[0]
    edited = git('diff', '--name-only').split()
    if len(edited) != 1:
        raise patch.PatchError(f'{len(edited)} files have edits that are not staged, instead of 1')
    with open(os.path.join(ROOT, edited[0]), encoding='utf-8') as f:
        new = f.read()
    text = patch.make(name, head_of(name, args), edited[0], git('show', f':{edited[0]}'), new)
    os.makedirs(os.path.join(ROOT, patch.FOLDER), exist_ok=True)
    with open(os.path.join(ROOT, patch.FOLDER, name + '.patch'), 'w', encoding='utf-8') as f:
        f.write(text)
    git('checkout', '--', edited[0])
    return check()


# --- run ------------------------------------------------------------------------------------------

def programs_to_try(bug, sources, quick=False):
    """The programs for a bug in the order in which they are tried. A program of which only some
    cases were tried is run as a whole later, unless `quick`."""
    if quick:
        return list(bug.tests)
    rest = [*programs.programs_of_folder(sources, bug.path), patch.Program(HISTORY_SCRIPTS),
            *(patch.Program(name) for name in programs.SEARCHES)]
    return list(dict.fromkeys([*bug.tests, *rest]))


class Run:
    """One invocation of "run"."""

    def __init__(self, args):
        self.work = os.path.join(ROOT, 'build', 'planted')
        self.seconds, self.quick = args.seconds_per_test, args.quick
        self.build = library.Build(ROOT, os.path.join(ROOT, args.build))
        self.build.require_up_to_date()
        self.results = os.path.join(ROOT, results.FILE)
        self.sources = overlay_sources.find(ROOT)['TEST_MAIN']
        shutil.rmtree(os.path.join(self.work, 'tmp'), ignore_errors=True)
        os.makedirs(os.path.join(self.work, 'logs'), exist_ok=True)
        self.runner = programs.Runner(ROOT, self.build.folder, self.work, args.jobs)
        self.baselines = programs.Baselines(self.runner, self.build.library,
                                            os.path.join(self.work, 'baselines.jsonl'))
        self.lock = threading.Lock()

    def one(self, bug):
        """Runs one bug and returns its Result."""
        edited = bug.applied(ROOT)
        result = results.Result(bug.name, results.digest_of(bug, edited), 'error')
        out = os.path.join(self.work, bug.name)
        shutil.rmtree(out, ignore_errors=True)
        os.makedirs(out)
        try:
            began = time.monotonic()
            self.build.link(*self.build.compile(bug.path, edited, out), out)
            result.compile_seconds = f'{time.monotonic() - began:.1f}'
            self.try_programs(bug, out, result)
        except library.CompileError as e:
            result.note = 'the edit does not compile'
            print(f'{bug.name}: the edit does not compile:\n{e}', flush=True)
        finally:
            shutil.rmtree(out, ignore_errors=True)
        return result

    def try_programs(self, bug, out, result):
        """Runs programs until one fails, and fills in the result."""
        proved, notes = [], []
        log = os.path.join(self.work, 'logs', bug.name + '.log')
        for program in programs_to_try(bug, self.sources, self.quick):
            try:
                outcome, why = self.try_program(program, out, log)
            except library.BuildError as e:
                outcome, why = None, str(e)
            if outcome is None:
                if program.name not in programs.SEARCHES:
                    notes.append(why)
                continue
            proved.append(program)
            if outcome.how != 'passed':
                result.result, result.program, result.case = 'caught', program.name, outcome.case
                result.how, result.seconds = outcome.how, f'{outcome.seconds:.1f}'
                return
        result.result = 'missed' if proved else 'error'
        result.note = '; '.join(notes)

    def try_program(self, program, out, log):
        env = {}
        if self.runner.exists(program.name):
            env = self.build.library_environment(self.runner.path(program.name), out)
        return programs.try_program(self.runner, self.baselines, program, self.seconds, env, log)

    def report(self, bug, result):
        with self.lock:
            if result.result == 'caught' or not self.quick:
                results.keep(self.results, result)
            else:
                results.forget_earlier(self.results, result)
            text = {'caught': f'{result.program} {result.case} {result.how} after '
                              f'{result.seconds} s', 'missed': f'{bug.what} {bug.effect}'}
            note = f' ({result.note})' if result.note else ''
            print(f'{result.result:7} {bug.name}: {text.get(result.result, "")}{note}', flush=True)

    def all(self, bugs, jobs):
        """Runs bugs, `jobs` at a time."""
        def work(bug):
            if not self.runner.stopping.is_set():
                self.report(bug, self.one(bug))
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            futures = [pool.submit(work, bug) for bug in bugs]
            try:
                for future in futures:
                    future.result()
            except BaseException:
                self.runner.stopping.set()
                raise


def chosen(args):
    """The bugs that the arguments name."""
    bugs = patch.load(ROOT, args.names)
    if not args.sample:
        return bugs
    areas = {}
    for bug in bugs:
        areas.setdefault(bug.area, []).append(bug)
    return [bug for some in areas.values() for bug in some[::-(-len(some) // args.sample)]]


def run(args):
    bugs = chosen(args)
    this = Run(args)
    before = results.read(this.results)
    todo = [bug for bug in bugs
            if args.fresh or bug.name not in before or before[bug.name].result == 'error' or
            before[bug.name].digest != results.digest_of(bug, bug.applied(ROOT))]
    if len(todo) < len(bugs):
        print(f'{len(bugs) - len(todo)} of {len(bugs)} bugs have a result already')
    # As run_tests.py does for the same programs.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 65536)), hard))
    this.all(todo, args.jobs)
    after = results.read(this.results)
    have = [after[bug.name].result for bug in bugs if bug.name in after]
    count = {kind: have.count(kind) for kind in ('caught', 'missed', 'error')}
    print(f'{len(bugs)} planted bugs: {count["caught"]} caught, {count["missed"]} not caught, '
          f'{count["error"]} with errors, {len(bugs) - len(have)} without a result')
    return 0 if count['caught'] == len(bugs) else 1


def wanted_programs(bugs):
    """The names of the programs that "run" wants, without those that are optional."""
    sources = overlay_sources.find(ROOT)['TEST_MAIN']
    own = {os.path.basename(p)[:-len('.cc')] for p in sources}
    found = {program.name for bug in bugs
             for program in programs_to_try(bug, sources)}
    return sorted(name for name in found if name in own or name not in programs.SEARCHES)


def main(argv):
    if not argv or argv[0] in ('-h', '--help', 'help'):
        print(__doc__)
        return 2
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument('command', choices=['check', 'run', 'add', 'programs', 'table'])
    parser.add_argument('names', nargs='*')
    parser.add_argument('--sample', type=int)
    parser.add_argument('--jobs', type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument('--build', default=os.path.join('build', 'debug'))
    parser.add_argument('--seconds-per-test', type=int, default=300)
    parser.add_argument('--fresh', action='store_true')
    parser.add_argument('--quick', action='store_true')
    for key in patch.HEAD:
        parser.add_argument(f'--{key.lower()}')
    args = parser.parse_intermixed_args(argv)
    run_tests.stop_on_sigterm()
    try:
        if args.command == 'check':
            return check()
        if args.command == 'run':
            return run(args)
        if args.command == 'add':
            return add(args)
        if args.command == 'programs':
            print('\n'.join(wanted_programs(chosen(args))))
            return 0
        results.write_table(os.path.join(ROOT, 'docs', 'planted-bugs.md'), patch.load(ROOT),
                            results.read(os.path.join(ROOT, results.FILE)))
        return 0
    except (patch.PatchError, library.BuildError) as e:
        print(e, file=sys.stderr)
        return 1


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
