#!/usr/bin/env python3
# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Runs crash tests for some hours, in short rounds over the modes and features.

Usage: crash_test.py [--hours N] [--seed N]     for N hours (1), in the order of the seed (1)
       crash_test.py --report                   the totals of all rounds in the log, in Markdown
       crash_test.py --plan N [--seed N]        what the first N rounds are
       crash_test.py --repeat 'ROUND' --round-seed N
                                                one round again, as the line of a finding says

A round is RocksDB's tools/db_crashtest.py with one mode and one combination of features, or
overlap_stress_test, on a new database. The first rounds of a seed cover each pair of a mode and a
feature, and each pair of features; scripts/crash/plan.py has the modes, the features and which of
them exclude each other. A later run with the same seed goes on where the one before ended.

build/crash-test/log.tsv gets a line for each round. Operations are counted as far as db_stress had
reported them when it was killed. A round that finds something keeps its databases and its output in
build/crash-test/rounds/<seed>-<round>/, with a file "repeat" that has the command to run it again.
The run goes on with the next round, and its exit code is 1 in the end. If a round takes seven
minutes longer than --seconds, gdb writes the stacks of its stress programs to
build/crash-test/rounds/<seed>-<round>.stacks, and their LOG files are copied to
<seed>-<round>.logs.

--rounds N ends the run after N rounds, if the hours are not over before.

Common options: --seconds N (180) for a round without its last verification, --interval N (45)
until a process is killed, --build FOLDER (build/debug) with the programs, --dir FOLDER
(build/crash-test), which must be on a disk.
"""
import argparse
import contextlib
import fcntl
import itertools
import os
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.insert(0, HERE)
from crash import output, plan, round_log, stacks  # noqa: E402
import run_tests  # noqa: E402

STRESS_PROGRAMS = ('db_stress', 'overlap_stress_test')
# What db_crashtest.py may take beyond --seconds: it lets a run at the end of a whitebox test go on
# for 15 minutes, then there is the last verification. Both have some seconds of their own.
CRASHTEST_EXTRA_SECONDS = 900 + plan.VERIFY_SECONDS + 120
OVERLAP_EXTRA_SECONDS = 300
# Most rounds need less than this beyond --seconds. The stacks of one that needs more may show what
# it waits for.
STACKS_EXTRA_SECONDS = 420
# Less than this is not enough for a round and its copies.
FREE_BYTES = 4 << 30


def other_stress(directory, proc='/proc'):
    """The ids of the stress programs that use something below the directory."""
    found = []
    for pid in filter(str.isdigit, os.listdir(proc)):
        try:
            with open(os.path.join(proc, pid, 'cmdline'), 'rb') as f:
                args = os.fsdecode(f.read()).split('\0')
        except OSError:
            continue  # it has ended
        # The second one if the program is a script.
        if any(os.path.basename(arg) in STRESS_PROGRAMS for arg in args[:2]):
            paths = [arg.partition('=')[2] for arg in args[1:]]
            if any(path == directory or path.startswith(directory + os.sep) for path in paths):
                found.append(int(pid))
    return sorted(found)


class Lock:
    """Makes sure that the directory is used by one crash test at a time, and by no stress program
    that an earlier one has left behind."""

    def __init__(self, directory):
        os.makedirs(directory, exist_ok=True)
        self.file = open(os.path.join(directory, 'lock'), 'w', encoding='utf-8')
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.file.close()
            raise SystemExit(f'another crash test uses {directory}') from None
        running = other_stress(directory)
        if running:
            self.file.close()
            raise SystemExit(f'stress programs are running in {directory}: process '
                             f'{", ".join(map(str, running))}')


def copy_logs(folder, target):
    """Copies the LOG files below the folder: db_crashtest.py deletes the DB of a run that it has to
    kill because it takes too long."""
    def name_of(path):
        return os.path.relpath(path, folder).replace(os.sep, '_')

    os.makedirs(target, exist_ok=True)
    for parent, _, names in os.walk(folder):
        for name in names:
            if name == 'LOG' or name.startswith('LOG.old.'):
                path = os.path.join(parent, name)
                with contextlib.suppress(OSError):  # the DB may delete it
                    shutil.copy(path, os.path.join(target, name_of(path)))


def wait(child, folder, limit, stacks_after):
    """Waits for the child. Returns its exit code, or None if it has not ended after the limit, in
    seconds. Writes the stacks of the stress programs in the folder to a file beside it, and copies
    their LOG files, after stacks_after seconds."""
    if stacks_after < limit:
        try:
            return child.wait(stacks_after)
        except subprocess.TimeoutExpired:
            stacks.write(other_stress(folder), f'{folder}.stacks')
            copy_logs(folder, f'{folder}.logs')
            limit -= stacks_after
    try:
        return child.wait(limit)
    except subprocess.TimeoutExpired:
        return None


def run(command, folder, limit, stacks_after):
    """Runs a command in a folder, with a new TEST_TMPDIR in it and its output in the file "output".
    Returns (exit code, seconds); the code is None if it was killed after the limit, in seconds.
    Writes FOLDER.stacks and FOLDER.logs after stacks_after seconds. Nothing that the command
    started is left when this returns."""
    tests = os.path.join(folder, 'test')
    os.makedirs(tests)
    env = {**os.environ, 'TEST_TMPDIR': tests, 'PYTHONDONTWRITEBYTECODE': '1'}
    # db_crashtest.py reads these; they would move files elsewhere, or say that this is a release.
    env.pop('TEST_TMPDIR_EXPECTED', None)
    env.pop('DEBUG_LEVEL', None)
    began = time.monotonic()
    with open(os.path.join(folder, 'output'), 'wb') as out:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out,
                                 stderr=subprocess.STDOUT, cwd=tests, env=env,
                                 start_new_session=True)
        try:
            code = wait(child, folder, limit, stacks_after)
        finally:
            try:
                os.killpg(child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # the usual case: all have ended
            child.wait()
    return code, time.monotonic() - began


class Runner:
    """Runs rounds below a directory. REQUIRES: the caller has its Lock."""

    def __init__(self, args):
        self.args = args
        self.db_stress = os.path.join(args.build, 'db_stress_tool', 'db_stress')
        self.overlap = os.path.join(args.build, 'overlap_stress_test')
        self.crashtest = os.path.join(ROOT, 'build', 'src', 'tools', 'db_crashtest.py')
        for program in (self.db_stress, self.overlap, self.crashtest):
            if not os.path.exists(program):
                raise SystemExit(f'{program} is missing; "make crash-test" builds it')

    def repeat_line(self, row, seed):
        """The command that runs a round again."""
        args = self.args
        return (f"{sys.executable} {os.path.join(HERE, 'crash_test.py')} --repeat "
                f"'{plan.mode_text(row)} {plan.features_text(row)}' --round-seed {seed} "
                f'--seconds {args.seconds} --interval {args.interval} --build {args.build} '
                f'--dir {args.dir}')

    def run_round(self, row, seed, name):
        """Runs one round in a folder of that name. Returns (its Outcome, seconds). The folder stays
        if there is a problem."""
        folder = os.path.join(self.args.dir, 'rounds', name)
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        if shutil.disk_usage(folder).free < FREE_BYTES:
            raise SystemExit(f'less than {FREE_BYTES >> 30} GiB are free in {folder}; '
                             'delete findings that are settled')
        seconds, interval = self.args.seconds, self.args.interval
        if row['mode'] == 'overlap':
            command = plan.overlap_command(row, seed, seconds, interval, self.overlap,
                                           os.path.join(folder, 'test', 'db'))
            extra, outcome_of = OVERLAP_EXTRA_SECONDS, output.of_overlap
        else:
            command = plan.crashtest_command(row, seed, seconds, interval, sys.executable,
                                             self.crashtest, self.db_stress)
            extra, outcome_of = CRASHTEST_EXTRA_SECONDS, output.of_crashtest
        keep = False
        try:
            code, took = run(command, folder, seconds + extra, seconds + STACKS_EXTRA_SECONDS)
            path = os.path.join(folder, 'output')
            with open(path, encoding='utf-8', errors='replace', newline='') as f:
                outcome = outcome_of(f.read(), code)
            keep = bool(outcome.problem) and not outcome.no_space
            if keep:
                with open(os.path.join(folder, 'repeat'), 'w', encoding='utf-8') as f:
                    f.write(self.repeat_line(row, seed) + '\n')
        finally:
            if not keep:
                shutil.rmtree(folder, ignore_errors=True)
        if outcome.no_space:
            raise SystemExit(f'the device of {self.args.dir} was full during round {name}')
        return outcome, took


def commit():
    """The commit of the sources, '-dirty' if they differ from it."""
    git = subprocess.run(['git', '-C', ROOT, 'describe', '--always', '--dirty', '--abbrev=10'],
                         capture_output=True, text=True)
    return git.stdout.strip() or 'unknown'


def run_rounds(args, log):
    """Runs rounds until the time is over. Returns whether none found anything."""
    runner = Runner(args)
    first = log.next_round(args.seed)
    end = time.monotonic() + args.hours * 3600
    version = commit()
    good = True
    print(f'seed {args.seed}, from round {first} on, {args.hours:g} hours, log {log.path}')
    for number, row in enumerate(plan.rounds(args.seed)):
        if number < first:
            continue
        if time.monotonic() >= end or number - first == args.rounds:
            return good
        mode, features = plan.mode_text(row), plan.features_text(row)
        print(f'{number}: {mode} {features}: ', end='', flush=True)
        name = f'{args.seed}-{number}'
        outcome, took = runner.run_round(row, plan.round_seed(args.seed, number), name)
        log.add(seed=args.seed, round=number, commit=version, mode=mode, features=features,
                seconds=f'{took:.0f}', kills=outcome.kills, operations=outcome.operations,
                result='finding' if outcome.problem else 'ok', problem=outcome.problem)
        print(f'{took:.0f} s, {outcome.kills} kills, {outcome.operations} operations: '
              f'{outcome.problem or "ok"}', flush=True)
        if outcome.problem:
            good = False
            print(f'  kept in {os.path.join(args.dir, "rounds", name)}; to run it again:\n  '
                  f'{runner.repeat_line(row, plan.round_seed(args.seed, number))}', flush=True)


def repeat(args):
    """Runs one round again. Returns whether it found nothing."""
    try:
        row = plan.parse_row(args.repeat)
    except ValueError as e:
        raise SystemExit(f'--repeat: {e}') from None
    outcome, took = Runner(args).run_round(row, args.round_seed, f'repeat-{args.round_seed}')
    print(f'{took:.0f} s, {outcome.kills} kills, {outcome.operations} operations: '
          f'{outcome.problem or "ok"}')
    return not outcome.problem


def parse_args(argv):
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument('--hours', type=float, default=1)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--rounds', type=int)
    parser.add_argument('--seconds', type=int, default=180)
    parser.add_argument('--interval', type=int, default=45)
    parser.add_argument('--build', type=os.path.abspath, default=os.path.join(ROOT, 'build/debug'))
    parser.add_argument('--dir', type=os.path.abspath,
                        default=os.path.join(ROOT, 'build/crash-test'))
    parser.add_argument('--report', action='store_true')
    parser.add_argument('--plan', type=int)
    parser.add_argument('--repeat')
    parser.add_argument('--round-seed', type=int)
    args = parser.parse_args(argv)
    if args.repeat and args.round_seed is None:
        parser.error('--repeat needs --round-seed')
    if min(args.hours, args.seconds, args.interval) <= 0:
        parser.error('--hours, --seconds and --interval must be more than 0')
    return args


def main(argv):
    args = parse_args(argv)
    log = round_log.RoundLog(os.path.join(args.dir, 'log.tsv'))
    if args.report:
        print(round_log.report(log.entries()))
        return 0
    if args.plan:
        for number, row in enumerate(itertools.islice(plan.rounds(args.seed), args.plan)):
            print(f'{number}: {plan.mode_text(row)} {plan.features_text(row)}')
        return 0
    run_tests.stop_on_sigterm()
    # Held until the process ends.
    lock = Lock(args.dir)
    if args.repeat:
        return 0 if repeat(args) else 1
    try:
        good = run_rounds(args, log)
    except KeyboardInterrupt:
        print('\nstopped; the round does not count')
        good = False
    finally:
        print('\n' + round_log.report(log.entries()))
        lock.file.close()
    return 0 if good else 1


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
