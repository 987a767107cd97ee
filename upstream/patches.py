# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""The folder patches/: reads, applies, emits and writes one patch per upstream file.

A patch has one line of context a side, and its "index" line has the full blob ids of
the file before and after. One line of context can fit at a wrong place; the ids prove
that it did not.

This module relies on `git`, `files` and `problem`. A tree is the id of a git tree or
of a commit; patches are a dictionary {upstream path: content of the patch}.
"""
import os
import re

from files import FILE, JUNK, blob_id, entry_of, put, walk
from problem import Problem, listed

HUNK = re.compile(rb'(?m)^(@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@).*$')


def patch_header(patch):
    return re.split(rb'(?m)^(?:@@ |GIT binary patch)', patch, maxsplit=1)[0]


def patch_ids(patch):
    """The blob ids (before, after) that a patch names; None if it only sets a mode."""
    header = patch_header(patch)
    found = re.search(rb'(?m)^index ([0-9a-f]{40})\.\.([0-9a-f]{40})\b', header)
    if found:
        return found[1].decode(), found[2].decode()
    if patch != header or b'\nnew mode ' not in header:
        raise Problem('it has no "index" line with two full ids')
    return None


def context_too_wide(patch):
    """The first hunk with more than one context line a side, or None."""
    for number, hunk in enumerate(HUNK.split(patch)[2::2], 1):
        kinds = ''.join(chr(line[0]) for line in hunk.split(b'\n') if line)
        if re.search(r'^  |   |  $', kinds.replace('\\', '')):
            return number
    return None


def blame(patch, stderr):
    """Names the hunk at fault; `stderr` is the verbose output of git for the patch."""
    said = os.fsdecode(stderr)
    hunks = [hunk.decode() for hunk in HUNK.findall(patch)]
    moved = re.findall(r'Hunk #(\d+) succeeded at (\d+) \(offset', said)
    if moved:
        return '; '.join(f'hunk {n} ({hunks[int(n) - 1]}) landed at line {line}'
                         for n, line in moved)
    failed = re.search(r'patch failed: .*:(\d+)$', said, re.M)
    if failed:
        at = [n for n, hunk in enumerate(hunks, 1)
              if re.match(rf'@@ -{failed[1]}\b', hunk)]
        if at:
            return f'hunk {at[0]} ({hunks[at[0] - 1]}) does not fit'
    if hunks and 'error' not in said:
        return 'the text of a hunk was changed: ' + ', '.join(
            f'hunk {n} ({hunk})' for n, hunk in enumerate(hunks, 1))
    return said.strip().replace('\n', '; ')


class Patches:
    """The folder patches/, with the repository in which patches are applied."""

    def __init__(self, git, folder):
        self.git, self.folder = git, folder

    def read(self):
        found = {}
        for path in walk(self.folder):
            if path.endswith('.patch'):
                found[path[:-len('.patch')]] = (self.folder / path).read_bytes()
        return found

    def write(self, have, want):
        """Rewrites the patches that differ; returns their number.

        Raises Problem if a patch on disk is no longer the one in `have`."""
        changed = [path for path in sorted(have.keys() | want.keys())
                   if have.get(path) != want.get(path)]
        for path in changed:
            place = self.folder / f'{path}.patch'
            there = entry_of(place)
            if (there and there[1]) != (path in have and blob_id(have[path]) or None):
                raise Problem(f'{place} changed during the sync; run it again')
            put(place, there, (FILE, '') if path in want else None, want.get(path),
                self.folder)
        return len(changed)

    def remove_partial(self):
        """Removes the temporary files that a killed sync left."""
        for path in walk(self.folder):
            if path.endswith('.part~'):
                (self.folder / path).unlink()

    # --- From patches to a tree ---

    def apply(self, pristine, patches):
        """The tree of upstream with patches applied; a Problem names the bad hunks."""
        entries = self.git.entries(pristine)
        bad, ids, tree = {}, {}, None
        one_by_one = self.touched(b''.join(patches.values())) != list(patches)
        for path, patch in patches.items():
            try:
                ids[path] = patch_ids(patch)
                self.check_header(path, patch, ids[path], entries, one_by_one)
            except Problem as problem:
                bad[path] = str(problem)
        if not bad:
            tree, bad = self.apply_all(pristine, patches, ids)
        if bad:
            raise Problem('patches that do not apply:' + listed(
                f'patches/{path}.patch: {why}' for path, why in bad.items()))
        return tree

    def touched(self, patch):
        """The files that a patch changes. For a text that is no patch, a Problem is
        returned, not raised."""
        if not patch:
            return []
        done = self.git.try_run('apply', '--numstat', '-z', data=patch)
        if done.returncode:
            return Problem(os.fsdecode(done.stderr).strip().replace('\n', '; '))
        return [record.split('\t')[2]
                for record in os.fsdecode(done.stdout).split('\0')[:-1]]

    def check_header(self, path, patch, ids, entries, parse):
        """Raises Problem if a patch is for another file or version than its name says.

        `entries` are those of the pinned upstream."""
        if path not in entries:
            raise Problem('upstream has no such file; new files belong in the overlay')
        if parse:
            touched = self.touched(patch)
            if isinstance(touched, Problem):
                raise touched
            if touched != [path]:
                raise Problem(f'it changes {", ".join(touched) or "nothing"} instead')
        if ids and ids[0] != entries[path][1]:
            raise Problem(f'made for another version of the file: it starts from '
                          f'{ids[0]}, the pin has {entries[path][1]}; re-emit it from '
                          'a tree of the pin (a new version takes `tree.py rebase`)')

    def apply_all(self, pristine, patches, ids):
        """(tree, {path: error}); the tree is None if a hunk does not fit."""
        index = self.git.scratch_index
        text = b''.join(patch if patch.endswith(b'\n') else patch + b'\n'
                        for patch in patches.values())
        self.git.fresh_index(index)
        self.git.run('read-tree', pristine, index=index)
        flags = ('apply', '--cached', '--whitespace=nowarn')
        explain = (*flags, '--check', '--verbose')
        bad = {}
        if text and self.git.try_run(*flags, index=index, data=text).returncode:
            for path, patch in patches.items():
                done = self.git.try_run(*explain, index=index, data=patch)
                if done.returncode:
                    bad[path] = blame(patch, done.stderr)
            return None, bad
        tree = self.git.line('write-tree', index=index)
        entries = self.git.entries(tree)
        for path, want in ids.items():
            have = entries.get(path, (None, '0' * 40))[1]
            # Zeros in the patch of a file that stays: the patch was edited by hand, so
            # the id of the result is not known.
            if want and want[1] not in (have, '0' * 40):
                self.git.run('read-tree', pristine, index=index)
                done = self.git.try_run(*explain, index=index, data=patches[path])
                bad[path] = (
                    f'gives blob {have}, its index line says {want[1]}: '
                    f'{blame(patches[path], done.stderr)}. If you edited it by '
                    'hand, put 40 zeros for that id; a sync writes the right one')
        return tree, bad

    # --- From a tree to patches ---

    def emit(self, pristine, tree):
        """The patches from one tree to the other."""
        raw = self.git.paths('diff-tree', '-r', '-z', '--no-renames', pristine, tree)
        text = self.git.run('diff-tree', '-p', *self.git.DIFF, pristine, tree)
        chunks = re.split(rb'(?m)^(?=diff --git )', text)[1:]
        paths = raw[1::2]
        assert len(chunks) == len(paths)
        # After the second @@, git puts upstream text that changes with upstream.
        return {path: HUNK.sub(rb'\1', chunk) for path, chunk in zip(paths, chunks)}

    def findings(self, pristine):
        """The reasons why patches/ is not fit to commit."""
        patches = self.read()
        found = [f'patches/{path} is not a patch (FILE.patch for an upstream FILE)'
                 for path in walk(self.folder)
                 if not path.endswith('.patch') and not JUNK.search(path)]
        for path, patch in patches.items():
            number = context_too_wide(patch)
            if number:
                found.append(f'patches/{path}.patch: hunk {number} has more than one '
                             'context line a side')
        try:
            emitted = self.emit(pristine, self.apply(pristine, patches))
        except Problem as problem:
            return found + [str(problem)]
        return found + [f'patches/{path}.patch is not what the tree emits; run '
                        '`tree.py patches`' for path in patches
                        if emitted.get(path) != patches[path]]
