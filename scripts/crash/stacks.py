# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Writes the stacks of running processes to a file, with gdb."""
import shutil
import subprocess

# gdb reads the symbols of a debug library of a gigabyte, on a busy machine.
LIMIT_SECONDS = 300


def write(pids, path, gdb='gdb'):
    """Writes the stacks of all threads of the processes, or why there are none, to the file. A
    process stands still meanwhile."""
    with open(path, 'w', encoding='utf-8') as out:
        if not shutil.which(gdb):
            out.write(f'{gdb} is not installed\n')
            return
        for pid in pids:
            out.write(f'process {pid}\n')
            out.flush()
            command = [gdb, '-p', str(pid), '-batch', '-nx', '-ex', 'set pagination off',
                       '-ex', 'thread apply all bt 40']
            try:
                subprocess.run(command, stdin=subprocess.DEVNULL, stdout=out,
                               stderr=subprocess.STDOUT, timeout=LIMIT_SECONDS, check=False)
            except subprocess.TimeoutExpired:
                out.write(f'{gdb} took more than {LIMIT_SECONDS} s\n')
