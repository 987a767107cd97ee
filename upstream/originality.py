# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Finds text of upstream in the project's own files.

Each run of RUN consecutive lines of code, without regard to white space, is a copy if
upstream has it too. Comments, includes and lines without a word do not count.

This module relies on `source_tree` for the list of the project's files, and on `files`.
"""
import array
import hashlib
import os
import re
import sys

from files import write_file

RUN = 8
CODE_SUFFIXES = (
    '.cc', '.h', '.c', '.cpp', '.hpp', '.cxx', '.inc', '.in', '.py', '.mk', '.cmake',
    '.sh', '.bash', '.txt', '.pl', '.proto', '.S', '.java', '.bat', '.ps1', '.yml')
NOT_CODE = re.compile(
    r'#|//|/\*|\*|namespace |using |[\W_]*$')  # '#': includes and scripts' comments


def is_code(path):
    name = os.path.basename(path)
    return name.endswith(CODE_SUFFIXES) or '.' not in name


def shingles(path):
    """(line number, 64-bit hash) of each run of RUN code lines in a file."""
    numbers, digests = [], []
    with open(path, encoding='utf-8', errors='replace') as file:
        for number, line in enumerate(file, 1):
            text = ' '.join(line.split())
            if text and not NOT_CODE.match(text):
                numbers.append(number)
                digests.append(hashlib.blake2b(text.encode(), digest_size=8).digest())
    for i in range(len(digests) - RUN + 1):
        run = hashlib.blake2b(b''.join(digests[i:i + RUN]), digest_size=8).digest()
        yield numbers[i], int.from_bytes(run, sys.byteorder)


def upstream_shingles(tree, source):
    """The set of upstream's hashes, kept in build/ for the next time."""
    store = tree.build / f'upstream-shingles-{tree.pin.digest[:12]}'
    if not store.exists():
        hashes = {value for path in tree.pin.files if is_code(path)
                  for _, value in shingles(os.path.join(source, path))}
        write_file(store, array.array('Q', sorted(hashes)).tobytes())
    known = array.array('Q')
    known.frombytes(store.read_bytes())
    return set(known)


def find_copies(tree, source):
    """The places where the project's files repeat the upstream in `source`."""
    known, hits = upstream_shingles(tree, source), []
    for path in tree.overlay.project_files():
        if is_code(path) and not path.startswith('patches/'):
            end = 0
            for number, value in shingles(tree.root / path):
                if value in known and number > end:
                    hits.append((path, number, value))
                    end = number + RUN
    where, wanted = {}, {value for _, _, value in hits}
    for path in tree.pin.files if hits else ():
        if is_code(path):
            for number, value in shingles(os.path.join(source, path)):
                if value in wanted:
                    where.setdefault(value, f'{path}:{number}')
    return [f'{path}:{number} repeats upstream {where[value]} ({RUN} lines or more); '
            'write it in your own way, or make it a seam in the upstream file'
            for path, number, value in hits]
