# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Merges three versions of a file.

This module relies on `git` for blobs and for `git merge-file`.
"""
import os
import pathlib
import tempfile


class Merger:
    """Merges entries, with a record of the merges that have text of both sides.

    Once one side was replaced by the result of a merge of text, the same merge cannot
    be computed again. A sync therefore saves the record before it writes any file, and
    the sync that runs after a kill gets it as `remembered` and finds the same results.

    remembered  [path, base, ours, theirs, result] of earlier merges, as JSON has them
    made        the same for the merges of this object
    """

    def __init__(self, git, remembered):
        self.git, self.remembered, self.made = git, remembered, []

    def merge(self, path, base, ours, theirs, labels):
        """(entry, clean) of three entries; the entry of a conflict has markers."""
        entry, clean = self.decide(path, base, ours, theirs, labels)
        if clean and entry not in (ours, theirs):
            self.made.append([path, base, ours, theirs, entry])
        return entry, clean

    def decide(self, path, base, ours, theirs, labels):
        if ours == theirs or theirs == base:
            return ours, True
        if ours == base:
            return theirs, True
        for old in self.remembered:
            name, *sides, result = (
                tuple(side) if isinstance(side, list) else side for side in old)
            if (name == path and base == sides[0] and ours in (sides[1], result)
                    and theirs in (sides[2], result)):
                return result, True
        if None in (base, ours, theirs):
            return ours or theirs, False
        mode = theirs[0] if ours[0] == base[0] else ours[0]
        if theirs[1] in (base[1], ours[1]):
            return (mode, ours[1]), True
        if ours[1] == base[1]:
            return (mode, theirs[1]), True
        blobs = self.git.blobs((base[1], ours[1], theirs[1]))
        data, clean = merge_text(self.git, blobs[base[1]], blobs[ours[1]],
                                 blobs[theirs[1]], labels)
        if data is None:
            return ours, False
        return (mode, self.git.store(data)), clean


def merge_text(git, base, ours, theirs, labels):
    """(content, clean); the content is None if the files are not text."""
    with tempfile.TemporaryDirectory() as folder:
        names = []
        for name, data in (('ours', ours), ('base', base), ('theirs', theirs)):
            names.append(os.path.join(folder, name))
            pathlib.Path(names[-1]).write_bytes(data)
        flags = [word for label in labels for word in ('-L', label)]
        done = git.try_run('merge-file', '-p', '--diff3', *flags, *names)
    if done.returncode > 127:
        return None, False
    return done.stdout, done.returncode == 0
