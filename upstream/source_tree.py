# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""build/src as a git repository: its lock, notes, commits and files.

HEAD of build/src is the commit *patched*, child of *pristine* (or *pristine* alone,
before the first sync). *pristine* is the pinned upstream; *patched* is upstream as the
tree and patches/ agreed on at the last sync.

This module relies on `pin`, `fetch`, `git`, `patches`, `overlay`, `files` and
`problem`. It reads and writes; `survey`, `sync`, `check` and `rebase` decide.
"""
import contextlib
import fcntl
import hashlib
import json
import os
import pathlib
import shutil

from fetch import fetch_upstream
from files import EXECUTABLE, FILE, blob_id, entry_of, put, write_file
from git import Git
from overlay import Overlay
from patches import Patches
from pin import Pin, differing
from problem import Problem, listed, note


class SourceTree:
    """The tree build/src of the project `root`; `build` replaces the folder build/.

    notes  results that are slow to compute again, and a sync's record of merges;
           open() reads them, keep() changes them
    """

    def __init__(self, root, build=None):
        self.root = pathlib.Path(root).resolve()
        self.build = pathlib.Path(build) if build else self.root / 'build'
        self.src = self.build / 'src'
        self.pin = Pin(self.root / 'upstream')
        self.git = Git(self.src / '.git', self.src)
        self.patches = Patches(self.git, self.root / 'patches')
        self.overlay = Overlay(self.root, self.src, self.git)
        self.index = self.src / '.git' / 'strata-index'
        self.notes = {}
        self.notes_path = self.src / '.git' / 'strata.json'
        self.rebase_path = self.src / '.git' / 'strata-rebase.json'

    @contextlib.contextmanager
    def locked(self):
        """Keeps other processes from a sync of this tree; waits for one that runs."""
        self.build.mkdir(parents=True, exist_ok=True)
        with open(self.build / '.tree.lock', 'w') as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                note('waiting for another sync')
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def open(self):
        """Makes build/src a repository, with attributes that leave bytes alone."""
        path = self.src / '.git' / 'info' / 'attributes'
        text = b'* -text -ident !eol !filter !working-tree-encoding !diff !merge\n'
        if entry_of(path) != (FILE, blob_id(text)):
            self.src.mkdir(parents=True, exist_ok=True)
            self.git.run('init', '-q')  # also completes an init that was killed
            write_file(path, text)
        try:
            self.notes = json.loads(self.notes_path.read_bytes())
        except (FileNotFoundError, ValueError):
            self.notes = {}

    def keep(self, **notes):
        """Saves notes. Between two syncs, a loss of all notes costs time alone."""
        if any(self.notes.get(key) != value for key, value in notes.items()):
            self.notes.update(notes)
            write_file(self.notes_path, json.dumps(self.notes).encode())

    def refuse_during_rebase(self):
        if self.rebase_path.exists():
            raise Problem('a rebase is in progress: resolve what it listed, then '
                          '`tree.py rebase --continue`, or `tree.py rebase --abort`')

    # --- Commits ---

    def commits(self):
        """(pristine, patched, tree of patched), all None in a new repository.

        A person may have made commits on top. Their changes are in the worktree, where
        a sync takes them for edits, so the search skips these commits."""
        log = self.git.try_run('log', '--first-parent', '--format=%s|%H|%T|%P', 'HEAD')
        for line in os.fsdecode(log.stdout).splitlines():
            subject, commit, tree, parent = line.rsplit('|', 3)
            if subject == 'patched':
                return parent, commit, tree
            if subject == 'pristine':
                return commit, commit, tree
        return None, None, None

    def commit_patched(self, pristine, tree):
        """Makes `tree` the base of the next sync."""
        self.git.set_ref('HEAD', self.git.commit(tree, 'patched', pristine))

    def is_pristine(self, commit):
        """Whether a commit has exactly the pinned files."""
        entries = self.git.entries(commit)
        if ({path: 'x' if mode == EXECUTABLE else '-' if mode == FILE else '?'
             for path, (mode, _) in entries.items()}
                != {path: x for path, (_, x) in self.pin.files.items()}):
            return False
        blobs = self.git.blobs(oid for _, oid in entries.values())
        return all(hashlib.sha256(blobs[oid]).hexdigest() == self.pin.files[path][0]
                   for path, (_, oid) in entries.items())

    def import_pristine(self, source, files):
        """Stores the `files` of the directory `source`; returns the commit."""
        index = self.git.scratch_index
        self.git.fresh_index(index)
        # The names come from `files`, so a .gitignore in `source` hides none.
        self.git.run('update-index', '--add', '-z', '--stdin', index=index,
                     work_tree=source, data=os.fsencode('\0'.join(files)))
        return self.git.commit(self.git.line('write-tree', index=index), 'pristine')

    def pristine(self, current):
        """The commit of the pinned upstream: `current`, unless the pin moved."""
        known = self.notes.get('pristine')
        if known and known == [self.pin.digest, current]:
            return current
        if not current or not self.is_pristine(current):
            current = self.import_pristine(fetch_upstream(self.pin), self.pin.files)
        self.keep(pristine=[self.pin.digest, current])
        return current

    def wanted(self, pristine, patches):
        """The tree of upstream with patches applied; the notes have the last one."""
        digest = hashlib.sha256()
        for path, patch in sorted(patches.items()):
            digest.update(os.fsencode(f'{path}\0{len(patch)}\0') + patch)
        key = [pristine, digest.hexdigest()]
        if self.notes.get('patches', [])[:2] != key:
            self.keep(patches=key + [self.patches.apply(pristine, patches)])
        return self.notes['patches'][2]

    # --- Files ---

    def snapshot(self, base, paths):
        """The tree that build/src has now, of upstream's files (`paths`) alone.

        The index is kept between syncs for its stat data, so that only touched files
        are read. It is not the repository's own index, because a person's git may have
        filled that one under any configuration."""
        self.git.unlock_index(self.index)
        reset = ('read-tree', *(('--reset', '-i', base) if base else ('--empty',)))
        if self.git.try_run(*reset, index=self.index).returncode:
            self.git.fresh_index(self.index)
            self.git.run(*reset, index=self.index)
        self.git.run('update-index', '--add', '--remove', '-z', '--stdin',
                     index=self.index, data=os.fsencode('\0'.join(paths)))
        tree = self.git.line('write-tree', index=self.index)
        odd = [path for path, (mode, _) in self.git.entries(tree).items()
               if mode not in (FILE, EXECUTABLE)]
        if odd:
            raise Problem('not regular files in build/src; an upstream file cannot '
                          f'become a link:{listed(odd)}')
        return tree

    def write(self, have, want):
        """Rewrites the files of build/src that differ; returns their number.

        Other files keep their times, by which ninja decides what to build. Raises
        Problem if a file on disk is no longer the one in `have`."""
        changed = [path for path in sorted(have.keys() | want.keys())
                   if have.get(path) != want.get(path)]
        blobs = self.git.blobs(want[path][1] for path in changed if path in want)
        for path in changed:
            entry = want.get(path)
            put(self.src / path, have.get(path), entry, entry and blobs[entry[1]],
                self.src)
        return len(changed)

    def refresh_index(self, tree, written):
        """Makes the repository's own index that of `tree`, with fresh stat data."""
        if written:
            self.git.run('read-tree', '--reset', '-i', tree, index=self.index)
            self.git.try_run('update-index', '-q', '--refresh', index=self.index)
        # copy2 keeps the file's time, by which git knows which entries not to trust.
        shutil.copy2(self.index, self.src / '.git' / 'index.part')
        os.replace(self.src / '.git' / 'index.part', self.src / '.git' / 'index')

    def export_pristine(self):
        """Makes build/pristine the pinned upstream, rewriting files that differ."""
        with self.locked():
            top = self.build / 'pristine'
            wrong = differing(top, self.pin.files)
            if wrong:
                source = pathlib.Path(fetch_upstream(self.pin))
                for path in wrong:
                    write_file(top / path, (source / path).read_bytes(),
                               EXECUTABLE if self.pin.files[path][1] == 'x' else FILE)
                note(f'{len(wrong)} files of {top} written')
