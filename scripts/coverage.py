#!/usr/bin/env python3
# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Says which code of Strata's part of the library the tests run (docs/coverage.md).

Usage: coverage.py run [--jobs N] [TEST...]
                                  removes the counts of earlier runs, builds and runs our C++ tests
                                  (or just TESTs) in build/coverage, and writes the report
       coverage.py report [--jobs N]
                                  writes the report from the counts that are there
       coverage.py table [FILE]   writes the table of the last report into FILE (docs/proof.md),
                                  between its two markers

build/coverage is configured by "scripts/configure.sh coverage". The report is
build/coverage/report.txt, and report.tsv has its numbers. GCOV names another gcov than that of the
compiler c++. The exit code is that of the tests, or 1 if there are no counts.
"""
import argparse
import os
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.insert(0, HERE)
import overlay_sources  # noqa: E402
import run_tests  # noqa: E402
from common import marked_text  # noqa: E402
from gcov import counts, report  # noqa: E402

# Kind of source -> the folder of its objects. These are the sources that cmake/strata.cmake and
# cmake/strata_end.cmake compile for coverage.
OBJECTS = {'LIB': 'strata_counted.dir', 'SHARED': 'strata_shared.dir'}


def notes_of(build, sources):
    """The .gcno files of our sources. sources: {kind: [path]}."""
    paths = [os.path.join(build, 'CMakeFiles', folder, path + '.gcno')
             for kind, folder in OBJECTS.items() for path in sources[kind]]
    missing = [path for path in paths if not os.path.exists(path)]
    if missing:
        raise counts.Problem(f'{len(missing)} objects are not built for coverage, the first: '
                             f'{missing[0]}')
    return paths


def count_files(build):
    """All files with counts (.gcda), also those of sources that were removed."""
    return [os.path.join(folder, name) for folder, _, names in os.walk(build)
            for name in names if name.endswith('.gcda')]


def default_gcov():
    """gcov-12 for GCC 12, if it is there: gcov does not read the files of another version."""
    try:
        version = subprocess.run([os.environ.get('CXX') or 'c++', '-dumpversion'],
                                 capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return 'gcov'
    name = f'gcov-{version.split(".")[0]}'
    folders = os.environ.get('PATH', '').split(os.pathsep)
    return name if any(os.access(os.path.join(f, name), os.X_OK) for f in folders) else 'gcov'


def keep(path, text):
    with open(path + '.tmp', 'w', encoding='utf-8') as f:
        f.write(text)
    os.replace(path + '.tmp', path)


def write_report(root, build, jobs):
    """Writes report.txt and report.tsv into the build folder. Returns the first part of the report,
    which has the numbers of all and of each folder."""
    if not count_files(build):
        raise counts.Problem(f'{build} has no counts: no program of it has run')
    notes = notes_of(build, overlay_sources.find(root))
    found, complaints = counts.read(os.environ.get('GCOV') or default_gcov(), notes, root, jobs)
    for complaint in complaints:
        print(f'coverage: counts are lost: {complaint}', file=sys.stderr)
    results = []
    for path in sorted(found):
        # The tests' own code is not what is measured.
        if not re.search(r'_test(?:_util)?\.(?:cc|h)$', path):
            with open(os.path.join(root, path), encoding='utf-8') as f:
                results.append(report.evaluate(path, f.read(), found[path]))
    heading = f'Coverage of Strata\'s part of the library, {time.strftime("%Y-%m-%d %H:%M")}'
    text = report.render(results, found, heading)
    keep(os.path.join(build, 'report.txt'), text)
    keep(os.path.join(build, 'report.tsv'), report.render_tsv(results))
    return text.split('\nFiles,')[0]


def main(argv):
    if not argv or argv[0] in ('-h', '--help', 'help'):
        print(__doc__)
        return 2
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument('command', choices=['run', 'report', 'table'])
    parser.add_argument('names', nargs='*')
    parser.add_argument('--jobs', type=int, default=len(os.sched_getaffinity(0)))
    args = parser.parse_intermixed_args(argv)
    build = os.path.join(ROOT, 'build', 'coverage')
    if args.command == 'table':
        try:
            with open(os.path.join(build, 'report.tsv'), encoding='utf-8') as f:
                rows = report.read_tsv(f.read())
        except FileNotFoundError:
            print('coverage: there is no report yet; run "make coverage"', file=sys.stderr)
            return 1
        page = args.names[0] if args.names else os.path.join(ROOT, 'docs', 'proof.md')
        marked_text.replace(page, report.BEGIN, report.END, report.render_table(rows))
        return 0
    code = 0
    if args.command == 'run':
        for path in count_files(build):
            os.unlink(path)
        code = run_tests.main(['check', *args.names, '--build', 'coverage',
                               '--jobs', str(args.jobs)])
    try:
        print('\n' + write_report(ROOT, build, args.jobs))
    except counts.Problem as e:
        print(f'coverage: {e}', file=sys.stderr)
        return code or 1
    print(f'the whole report: {os.path.relpath(os.path.join(build, "report.txt"), ROOT)}')
    return code


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
