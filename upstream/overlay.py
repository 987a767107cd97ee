# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""The overlay: the project's own files in upstream's directories.

build/src has a copy of each overlay file under include/, and a symbolic link to each
other one. An editor may replace a link by a regular file, and a person may edit a copy;
a sync merges such a file with the project's. The base of that merge is the overlay as
the last sync left it, kept as the tree refs/strata/overlay.

This module relies on `git`, `files` and `problem`; a caller passes the Merger in.
"""
import dataclasses
import os
import re

from files import JUNK, entry_of, make_link, put, require, walk, write_file
from git import Git
from problem import Problem, listed

BASE_REF = 'refs/strata/overlay'


@dataclasses.dataclass
class Plan:
    """A sync's decisions on the overlay and on other files that are not upstream's.

    base      {path: entry} as the last sync left it
    project   {path: entry} of the project's files
    result    {path: entry} that the project's files get
    links     [(path, entry in build/src)] of the links to make
    copies    {path: (entry in build/src, entry that it gets)}
    stray     files in build/src that belong neither to upstream nor to the overlay
    """
    base: dict
    project: dict
    result: dict = dataclasses.field(default_factory=dict)
    links: list = dataclasses.field(default_factory=list)
    copies: dict = dataclasses.field(default_factory=dict)
    stray: list = dataclasses.field(default_factory=list)


class Overlay:
    """The overlay of the project `root` in the tree `src` with the repository `git`."""

    def __init__(self, root, src, git):
        self.root, self.src, self.git = root, src, git

    def project_files(self):
        """The project's own regular files that its git does not ignore, relative."""
        if (self.root / '.git').exists():
            git = Git(self.root / '.git', self.root)
            names = set(git.paths('ls-files', '-co', '--exclude-standard', '-z'))
        else:
            names = walk(self.root)
        return sorted(
            path for path in names
            if not path.startswith('build/') and not JUNK.search(path)
            and not (self.root / path).is_symlink() and (self.root / path).is_file())

    def paths(self, files):
        """The project's files in top directories of `files` that are not hidden."""
        tops = {path.split('/')[0] for path in files if '/' in path}
        return [path for path in self.project_files()
                if '/' in path and path.split('/')[0] in tops and path[0] != '.']

    def shadows(self, files):
        """The overlay files that have the path of one of upstream's `files`."""
        return [path for path in self.paths(files) if path in files]

    def link_target(self, path):
        here = os.path.realpath((self.src / path).parent)
        return os.path.relpath(self.root / path, here)

    # --- Deciding ---

    def plan(self, files, index, merger, conflicts):
        """The Plan of a sync. Writes nothing but git objects.

        files      upstream's files
        index      an index of the upstream files in build/src
        conflicts  gets the entry, with markers, of each file that does not merge
        """
        paths = self.paths(files)
        shadows = [path for path in paths if path in files]
        if shadows:
            raise Problem('the overlay may not replace upstream files (edit them in '
                          f'build/src, the edit becomes a patch):{listed(shadows)}')
        plan = Plan(*self.read(paths))
        for path, entry in plan.project.items():
            self.plan_file(plan, path, entry, merger, conflicts)
        self.plan_rest(plan, index, conflicts)
        return plan

    def read(self, paths):
        """{path: entry} of the overlay as the last sync left it, and as it is now."""
        index = self.git.git_dir / 'strata-overlay-index'
        self.git.unlock_index(index)
        ref = self.git.try_run('rev-parse', '-q', '--verify', BASE_REF)
        base = self.git.entries(os.fsdecode(ref.stdout).strip() or None)
        self.git.run('update-index', '--add', '--remove', '--replace', '-z', '--stdin',
                     index=index, work_tree=self.root,
                     data=os.fsencode('\0'.join(sorted(set(paths) | base.keys()))))
        known = self.git.entries(self.git.line('write-tree', index=index))
        return base, {path: known[path] for path in paths if path in known}

    def plan_file(self, plan, path, entry, merger, conflicts):
        """Decides on one overlay file; `entry` is the project's."""
        plan.result[path] = entry
        place = self.src / path
        copied = path.startswith('include/')
        if place.is_symlink():
            if not copied and os.readlink(place) == self.link_target(path):
                return
            there = None
        elif place.is_dir():
            plan.stray.append(f'{path} is a directory, but a file in the overlay')
            return
        else:
            there = entry_of(place)
        if there and there != entry:
            self.git.store(place.read_bytes())
            require(place, there)
            result, clean = merger.merge(path, plan.base.get(path), entry, there,
                                         (path, 'last sync', f'build/src/{path}'))
            if not clean:
                conflicts[path] = result
                return
            plan.result[path] = result
        if copied:
            if there != plan.result[path]:
                plan.copies[path] = entry_of(place), plan.result[path]
        else:
            plan.links.append((path, entry_of(place)))

    def plan_rest(self, plan, index, conflicts):
        """Decides on the files in build/src that are in neither index nor overlay."""
        for path in self.git.paths('ls-files', '-o', '-z', index=index):
            place = self.src / path
            if path in plan.result or path in conflicts or JUNK.search(path):
                continue
            ours = (os.readlink(place) == self.link_target(path) if place.is_symlink()
                    else entry_of(place) == plan.base.get(path))
            if ours:  # a link or an unedited copy of a file that left the overlay
                plan.copies[path] = entry_of(place), None
            else:
                plan.stray.append(path)

    # --- Writing ---

    def write(self, plan):
        """Carries a Plan out, in the project and in build/src."""
        blobs = self.git.blobs(
            [entry[1] for path, entry in plan.result.items()
             if entry != plan.project[path]]
            + [entry[1] for _, entry in plan.copies.values() if entry])
        for path, entry in plan.result.items():
            if entry != plan.project[path]:
                put(self.root / path, plan.project[path], entry, blobs[entry[1]],
                    self.root)
        for path, (have, entry) in plan.copies.items():
            put(self.src / path, have, entry, entry and blobs[entry[1]], self.src)
        for path, have in plan.links:
            require(self.src / path, have)
            make_link(self.src / path, self.link_target(path))
        if plan.result != plan.base:
            self.git.set_ref(BASE_REF, self.git.write_tree(plan.result))
            # With this list, `git status` in build/src shows edits of upstream's files
            # and no overlay file.
            text = ''.join('/' + re.sub(r'([\\*?\[ ])', r'\\\1', path) + '\n'
                           for path in plan.result)
            write_file(self.src / '.git' / 'info' / 'exclude', os.fsencode(text))
