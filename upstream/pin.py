# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""The pinned upstream: the package (upstream/PIN) and its files (upstream/FILES).

PIN holds one `key=value` per line: the cargo package, its version, and the folder of
the package that is the RocksDB tree. FILES holds one line per file of that tree: the
SHA-256 of the content, `x` or `-` for the executable bit, and the path.

This module relies on `files` and `problem`. It reads trees that are already on disk;
`fetch` is the module that gets one.
"""
import hashlib
import os

from files import JUNK, walk, write_file
from problem import Problem


class Pin:
    """The contents of PIN and FILES in a folder.

    fields  {key: value} of PIN
    files   {path: (sha256, 'x' or '-')}
    digest  the SHA-256 of upstream/FILES
    """

    def __init__(self, folder):
        self.pin_path = folder / 'PIN'
        self.files_path = folder / 'FILES'
        self.load()

    def load(self):
        self.fields = read_pin(self.pin_path)
        self.package = self.fields['package']
        self.version = self.fields['version']
        self.folder = self.fields['folder']
        data = self.files_path.read_bytes()
        self.files = parse_files(data)
        self.digest = hashlib.sha256(data).hexdigest()

    def move(self, version, files):
        """Pins another version of the package; `files` is the text of its FILES."""
        write_file(self.files_path, files)
        fields = {**self.fields, 'version': version}
        text = ''.join(f'{key}={value}\n' for key, value in fields.items())
        write_file(self.pin_path, text.encode())
        self.load()


def read_pin(path):
    pin = {}
    for line in path.read_text().splitlines():
        key, _, value = line.partition('=')
        pin[key.strip()] = value.strip()
    missing = {'package', 'version', 'folder'} - pin.keys()
    if missing:
        raise Problem(f'{path} lacks {", ".join(sorted(missing))}')
    return pin


def describe_file(path):
    """(sha256, 'x' or '-') of a file."""
    x = 'x' if os.stat(path).st_mode & 0o100 else '-'
    with open(path, 'rb') as file:
        return hashlib.file_digest(file, 'sha256').hexdigest(), x


def describe_dir(top):
    """{path: (sha256, 'x' or '-')} of the files below `top`."""
    return {path: describe_file(os.path.join(top, path)) for path in walk(top)
            if not JUNK.search(path)}


def format_files(files):
    """The text of upstream/FILES for the result of describe_dir()."""
    return b''.join(os.fsencode(f'{sha} {x} {path}\n')
                    for path, (sha, x) in sorted(files.items()))


def parse_files(data):
    """The inverse of format_files()."""
    files = {}
    for line in os.fsdecode(data).split('\n')[:-1]:
        sha, x, path = line.split(' ', 2)
        files[path] = sha, x
    return files


def differing(top, files):
    """{path: difference} of the files that `top` lacks or has in another form."""
    found = {}
    for path, want in files.items():
        full = os.path.join(top, path)
        if os.path.islink(full) or not os.path.isfile(full):
            found[path] = 'missing'
        elif (have := describe_file(full)) != want:
            found[path] = ('other content' if have[0] != want[0] else
                           'should be executable' if want[1] == 'x' else
                           'should not be executable')
    return found
