#!/usr/bin/env python3
# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Runs all points of the fault sweeps of history scripts (docs/fault-sweeps.md).

Usage: sweep.py BINARY [--jobs N] [--points N] [--seed N] [--kind KIND] [--variant NAME]
                [SCRIPT...]

With --points, so many points of each script and variant run, chosen by the seed.

Each script and variant has a process of its own, so that a crash or a hang of one point ends
only that process. It is a finding, and a new process goes on behind the point. Prints each
finding with the command that repeats it, and at last the totals. Exits with 1 if there is a
finding.
"""
import argparse
import collections
import concurrent.futures
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
VARIANTS = ('own', 'map', 'deltas', 'map-deltas', 'map-tiers')
CRASHED = re.compile(r'^The process crashed in this point:\n(.*)$', re.M)
POINT = re.compile(r'STRATA_SWEEP_POINT=(\S+)')
TOTALS = re.compile(r'^sweep: (\d+ scripts.*); seed \d+$', re.M)
COUNT = re.compile(r'(\d+) ([a-z][a-z ]*)')
FINDING = re.compile(r'^repeat with: .*\n(?:(?!\n).*\n)*', re.M)


def read_totals(output):
    """{what: count} of the totals line; empty if the process has not come to it."""
    line = TOTALS.search(output)
    return collections.Counter(
        {what.strip(): int(n) for n, what in COUNT.findall(line.group(1))} if line else {})


def read_crash(output):
    """(the command of the point in which the process crashed, the point); (None, None) if it did
    not crash in one, and (command, None) if it crashed without a fault."""
    crash = CRASHED.search(output)
    if not crash:
        return None, None
    point = POINT.search(crash.group(1))
    return crash.group(1), point.group(1) if point else None


def run_once(binary, env, tmp):
    environment = {**os.environ, **env, 'TEST_TMPDIR': tmp,
                   'STRATA_TESTDATA': os.path.join(ROOT, 'testdata')}
    run = subprocess.run([binary, '--gtest_filter=Scripts*'], env=environment, text=True,
                         errors='replace', stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return run.returncode, run.stdout


def sweep(binary, script, variant, args, tmp):
    """Runs all points of a script and variant: (totals, findings). Points ahead of a crash are in
    the findings alone, since the process has not printed their totals."""
    env = {'STRATA_SWEEP': args.points, 'STRATA_SWEEP_SEED': str(args.seed),
           'STRATA_SWEEP_SCRIPT': script, 'STRATA_SWEEP_VARIANT': variant,
           'STRATA_SWEEP_KIND': args.kind, 'STRATA_SWEEP_POINT': '', 'STRATA_SWEEP_AFTER': ''}
    totals, findings = collections.Counter(), []
    while True:
        code, output = run_once(binary, env, tmp)
        counts = read_totals(output)
        totals += counts
        findings += FINDING.findall(output)
        command, point = read_crash(output)
        if command:
            findings.append(f'the process crashed: {command}\n{output[-3000:]}')
            totals['crashes'] += 1
        elif not counts:
            findings.append(f'{script}, {variant}: ended early, exit code {code}\n'
                            f'{output[-3000:]}')
            totals['crashes'] += 1
        if not point or point == env['STRATA_SWEEP_AFTER']:
            return totals, findings
        env['STRATA_SWEEP_AFTER'] = point


def scripts(root, names):
    """The names of the history scripts, or `names`, which must be some of them."""
    paths = glob.glob(os.path.join(root, 'testdata', 'history', '*.txt'))
    found = sorted(os.path.basename(p)[:-len('.txt')] for p in paths)
    wrong = [n for n in names if n not in found]
    if wrong:
        raise SystemExit(f'no such history script: {" ".join(wrong)}')
    return names or found


def main(argv):
    parser = argparse.ArgumentParser()
    parser.add_argument('binary')
    parser.add_argument('names', nargs='*')
    parser.add_argument('--jobs', type=int, default=os.cpu_count())
    parser.add_argument('--points', default='all')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--kind', default='')
    parser.add_argument('--variant', default='')
    args = parser.parse_args(argv)
    names = scripts(ROOT, args.names)
    variants = [args.variant] if args.variant else VARIANTS
    totals, num_findings = collections.Counter(), 0
    tmp = tempfile.mkdtemp(prefix='sweep-', dir=os.path.dirname(os.path.abspath(args.binary)))
    try:
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            runs = {pool.submit(sweep, os.path.abspath(args.binary), name, variant, args, tmp):
                    (name, variant) for name in names for variant in variants}
            for run in concurrent.futures.as_completed(runs):
                name, variant = runs[run]
                some, findings = run.result()
                totals += some
                num_findings += len(findings)
                print(f'{name}, {variant}: {some["points"]} points, {len(findings)} findings',
                      flush=True)
                for finding in findings:
                    print(finding, flush=True)
    finally:
        shutil.rmtree(tmp, ignore_errors=True)
    # A script counts once for each variant.
    totals['scripts'] = len(names)
    print('sweep: ' + ', '.join(f'{n} {what}' for what, n in totals.items()))
    return 1 if num_findings else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
