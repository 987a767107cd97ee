# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Reads and replaces single files.

A file is described by its entry (mode, blob id), as in a git tree; None stands for an
absent file. Each function that writes replaces the file in one step, so that a reader
or a killed process never leaves half a file under the file's name.

This module relies on `problem` alone. It computes blob ids itself and runs no git.
"""
import contextlib
import hashlib
import os
import re

from problem import Problem

FILE, EXECUTABLE, LINK = '100644', '100755', '120000'
# Leftovers of editors, of Python and of write_file(). None of them is an edit, so a
# sync may ignore them.
JUNK = re.compile(
    r'(^|/)(__pycache__|\.cache)/|\.py[co]$|~$|(^|/)\.[^/]*\.sw[a-z]$|(^|/)\.#'
    r'|(^|/)#[^/]*#$|(^|/)(compile_commands\.json|tags|TAGS|4913|\.DS_Store)$')


def blob_id(data):
    """The id that git gives to a blob with this content."""
    return hashlib.sha1(b'blob %d\0' % len(data) + data).hexdigest()


def entry_of(path):
    """The entry of a file or of a symbolic link, None if there is neither."""
    try:
        mode = path.lstat().st_mode
        if path.is_symlink():
            return LINK, blob_id(os.fsencode(os.readlink(path)))
        return EXECUTABLE if mode & 0o100 else FILE, blob_id(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None


def write_file(path, data, mode=FILE):
    """Replaces a file in one step. A killed process leaves at most a JUNK file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f'.{path.name}.part~')
    part.write_bytes(data)
    part.chmod(0o755 if mode == EXECUTABLE else 0o644)
    os.replace(part, path)


def remove_file(path, top):
    """Removes a file and the directories below `top` that this leaves empty."""
    path.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        for parent in path.parents:
            if parent == top:
                break
            parent.rmdir()


def make_link(path, target):
    """Makes `path` a symbolic link to `target`, replacing a file in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f'.{path.name}.part~')
    part.unlink(missing_ok=True)
    part.symlink_to(target)
    os.replace(part, path)


def require(path, expected):
    """Raises Problem if the entry of `path` is no longer the expected one."""
    if entry_of(path) != expected:
        raise Problem(f'{path} changed during the sync; nothing is lost, run it again')


def put(path, expected, entry, data, top):
    """Gives `path` the entry and its data, or removes it if the entry is None.

    Raises Problem if the entry of `path` is no longer the expected one."""
    require(path, expected)
    if entry is None:
        remove_file(path, top)
    else:
        write_file(path, data, entry[0])


def walk(top):
    """Relative paths of the regular files below `top`, sorted, links left out."""
    found = []
    for folder, folders, names in os.walk(top):
        folders[:] = [name for name in folders if name not in ('.git', '__pycache__')]
        for name in names:
            path = os.path.join(folder, name)
            if not os.path.islink(path):
                found.append(os.path.relpath(path, top))
    return sorted(found)
