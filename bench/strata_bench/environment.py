# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Where the project lies, and the Python packages that the bench can use."""
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import List

ROOT = Path(__file__).resolve().parents[2]
BENCH = ROOT / 'bench'
VENV = ROOT / 'build' / 'bench-venv'
REQUIREMENTS = BENCH / 'requirements.txt'
# Keeps the interpreter of the virtual environment from starting itself again.
_GUARD = 'STRATA_BENCH_IN_VENV'

HOW_TO_INSTALL = (f'python3 -m venv {VENV.relative_to(ROOT)} && '
                  f'{VENV.relative_to(ROOT)}/bin/pip install -r bench/requirements.txt')


def has(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def missing() -> List[str]:
    """The packages that this interpreter lacks."""
    wanted = ['matplotlib']
    if sys.version_info < (3, 11):
        wanted.append('tomli')
    return [name for name in wanted if not has(name)]


def _install() -> bool:
    print(f'bench: installing {", ".join(missing())} into {VENV.relative_to(ROOT)} ...',
          file=sys.stderr)
    python = VENV / 'bin' / 'python'
    commands = [
        [sys.executable, '-m', 'venv', str(VENV)],
        [str(python), '-m', 'pip', 'install', '--quiet', '--disable-pip-version-check',
         '--timeout', '15', '--retries', '1', '-r', str(REQUIREMENTS)],
    ]
    for command in commands:
        try:
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True, check=False)
        except OSError as error:
            print(f'bench: {command[0]}: {error}', file=sys.stderr)
            return False
        if done.returncode != 0:
            lines = done.stdout.strip().splitlines()
            print(f'bench: not installed: {lines[-1] if lines else "no message"}', file=sys.stderr)
            return False
    return True


def ensure(argv: List[str]) -> None:
    """Goes on in build/bench-venv if this interpreter lacks a package.

    The packages are installed there at the first use. Without them all is measured as well, so a
    failure is a message and no more. STRATA_BENCH_VENV=0 leaves it out.
    """
    if os.environ.get('STRATA_BENCH_VENV') == '0' or os.environ.get(_GUARD) or not missing():
        return
    if any(arg in ('--list', '--check', '--help', '-h') for arg in argv[1:]) and has('tomllib'):
        return
    python = VENV / 'bin' / 'python'
    stamp = VENV / 'requirements.installed'
    wanted = REQUIREMENTS.read_text()
    if not (python.exists() and stamp.exists() and stamp.read_text() == wanted):
        if not _install():
            print(f'bench: going on without plots; to install by hand: {HOW_TO_INSTALL}',
                  file=sys.stderr)
            return
        stamp.write_text(wanted)
    os.environ[_GUARD] = '1'
    os.execv(str(python), [str(python)] + argv)
