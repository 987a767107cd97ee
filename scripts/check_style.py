#!/usr/bin/env python3
# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Checks the style of Strata's own C++ and Python files.

Usage: check_style.py

  clang-format   all C++ files are formatted as "make format ALL=1" would do it
  ruff           the Python files have nothing that the rules in ruff.toml report
  columns        lines of C++ have at most 80 columns, lines of Python at most 100; only includes
                 and lines with a URL may be longer, because they cannot be broken

Our files are those that git tracks or would track. clang-format and ruff are used in the versions
of scripts/requirements-style.txt, because others format and complain differently. They are
searched in build/style-venv, where "make style-tools" installs them, and on PATH. A check whose
tool is not there is skipped: a line that begins with "skipped: " says so, and it is not a failure.
"""
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
REQUIREMENTS = os.path.join(HERE, 'requirements-style.txt')
CPP, PYTHON = ('.cc', '.h'), ('.py', 'bench/run')
COLUMNS = {CPP: 80, PYTHON: 100}
# Tool -> how many of its version's numbers count.
PRECISION = {'clang-format': 1, 'ruff': 2}
BATCH = 100     # files that clang-format gets at a time


class Missing(Exception):
    """A check cannot be made; the message says why, and what helps."""


def our_files(root):
    """All files of ours below `root`, as sorted relative paths."""
    command = ['git', '-C', root, 'ls-files', '-co', '--exclude-standard', '-z']
    paths = set()
    # An unpacked archive has no .git; a repository that it lies in does not know its files.
    if os.path.exists(os.path.join(root, '.git')):
        try:
            listed = subprocess.run(command, capture_output=True, check=True).stdout.decode()
            paths = set(listed.split('\0')) - {''}
        except (OSError, subprocess.CalledProcessError):
            pass
    if not paths:
        for folder, folders, names in os.walk(root):
            skip = {'build', 'out'} if folder == root else set()
            folders[:] = [f for f in folders if not f.startswith('.') and f not in skip]
            paths |= {os.path.relpath(os.path.join(folder, name), root) for name in names}
    return sorted(p for p in paths if os.path.isfile(os.path.join(root, p)))


def wanted_version(tool):
    """The version of `tool` in the requirements, with as many numbers as count."""
    with open(REQUIREMENTS, encoding='utf-8') as f:
        version = re.search(rf'^{tool}==(\S+)$', f.read(), re.M).group(1)
    return '.'.join(version.split('.')[:PRECISION[tool]])


def find_tool(tool, root):
    """The words that start `tool` in the wanted version. Raises Missing."""
    wanted = wanted_version(tool)
    candidates = [[os.path.join(root, 'build', 'style-venv', 'bin', tool)]]
    if tool == 'clang-format':
        candidates += [[f'{tool}-{wanted}'], [tool]]
    else:
        candidates += [[tool], [sys.executable, '-m', tool]]
    others = []
    for words in candidates:
        try:
            run = subprocess.run([*words, '--version'], capture_output=True, text=True)
        except OSError:
            continue
        found = re.search(r'\b(\d+(?:\.\d+)+)', run.stdout)
        if run.returncode or not found:
            continue
        if f'{found.group(1)}.'.startswith(wanted + '.'):
            return words
        others.append(found.group(1))
    why = f'version {", ".join(dict.fromkeys(others))} is installed' if others else 'not installed'
    raise Missing(f'{why}, {wanted} is needed; "make style-tools" installs it in build/')


def check_clang_format(root, files):
    """(what was checked, complaints) for the C++ files."""
    words = find_tool('clang-format', root)
    style = os.path.join(root, 'build', 'src', '.clang-format')
    if not os.path.exists(style):
        raise Missing('"make source" makes build/src/.clang-format, which has the style')
    files = [f for f in files if f.endswith(CPP)]
    complaints = {}
    for at in range(0, len(files), BATCH):
        run = subprocess.run([*words, '--dry-run', '-Werror', f'-style=file:{style}',
                              *files[at:at + BATCH]], capture_output=True, text=True, cwd=root)
        for file, line in re.findall(r'^(\S[^\n:]*):(\d+):\d+: error: ', run.stderr, re.M):
            complaints.setdefault(file, f'{file}:{line}: not formatted; "make format" does it')
        if run.returncode and not complaints:
            complaints[''] = run.stderr.strip() or f'it exited with {run.returncode}'
    return f'{len(files)} C++ files', list(complaints.values())


def check_ruff(root, files):
    """(what was checked, complaints) for the Python files."""
    words = find_tool('ruff', root)
    files = [f for f in files if f.endswith(PYTHON)]
    if not files:
        return '0 Python files', []
    # Long lines are left to check_columns(), which does not need ruff.
    run = subprocess.run([*words, 'check', '--quiet', '--no-cache', '--output-format', 'concise',
                          '--config', os.path.join(ROOT, 'ruff.toml'), '--extend-ignore', 'E501',
                          *files], capture_output=True, text=True, cwd=root)
    complaints = (run.stdout + run.stderr).strip().split('\n') if run.returncode else []
    return f'{len(files)} Python files', complaints


def check_columns(root, files):
    """(what was checked, complaints) for the C++ and the Python files."""
    complaints, checked = [], 0
    for kind, limit in COLUMNS.items():
        for file in files:
            if not file.endswith(kind):
                continue
            checked += 1
            with open(os.path.join(root, file), encoding='utf-8') as f:
                for number, line in enumerate(f, 1):
                    line = line.rstrip('\n')
                    if len(line) > limit and '://' not in line and \
                            not line.startswith('#include '):
                        complaints.append(f'{file}:{number}: {len(line)} columns, '
                                          f'{limit} are allowed')
    return f'{checked} C++ and Python files', complaints


CHECKS = {'clang-format': check_clang_format, 'ruff': check_ruff, 'columns': check_columns}


def main(argv, root=ROOT):
    if argv:
        print(__doc__)
        return 2
    files = our_files(root)
    failed = False
    for name, check in CHECKS.items():
        try:
            what, complaints = check(root, files)
        except Missing as e:
            print(f'skipped: {name}: {e}')
            continue
        for complaint in complaints:
            print(complaint)
        verdict = f'{len(complaints)} complaints' if complaints else 'all right'
        print(f'{name}: {what}, {verdict}')
        failed = failed or bool(complaints)
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
