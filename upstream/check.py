# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Reports on a tree without changing it: `status` for a person, `check` for a commit.

This module relies on `survey` for the comparison, on `source_tree` for a fresh tree in
a temporary folder, and on `originality`.
"""
import tempfile

from fetch import fetch_upstream
from originality import find_copies
from problem import Problem, listed
from source_tree import SourceTree
from survey import survey


def status(tree):
    """Prints the changes that a sync would make; True if there are none."""
    pin = tree.pin
    print(f'upstream: {pin.package} {pin.version}, {len(pin.files)} files')
    if not (tree.src / '.git').exists():
        print('build/src: not there yet')
        return False
    with tree.locked():
        if tree.rebase_path.exists():
            print('a rebase is in progress')
        seen = survey(tree)
    names = sorted(seen.base.keys() | seen.work.keys() | seen.wanted.keys())
    overlay = seen.overlay
    groups = {
        'edited in build/src': [
            path for path in names if seen.work.get(path) != seen.base.get(path)],
        'changed in patches/': [
            path for path in names if seen.wanted.get(path) != seen.base.get(path)],
        'in conflict': seen.conflicts,
        'stray in build/src': overlay.stray,
        'overlay file edited through build/src': [
            path for path, entry in overlay.result.items()
            if entry != overlay.project[path]],
        'overlay entry to refresh': [
            *overlay.copies, *(path for path, _ in overlay.links)],
    }
    print(f'patches: {len(seen.patches)}; overlay files: {len(overlay.project)}')
    for title, paths in groups.items():
        if paths:
            print(f'{title}:{listed(paths)}')
    return not any(groups.values()) and not tree.rebase_path.exists()


def check(tree):
    """The findings that make patches/ and the overlay unfit to commit."""
    found = []
    if (tree.src / '.git').exists():
        with tree.locked():
            tree.refuse_during_rebase()
            found += unsynced(tree)
    source = fetch_upstream(tree.pin)
    with tempfile.TemporaryDirectory() as folder:
        fresh = SourceTree(tree.root, folder)
        fresh.open()
        pristine = fresh.import_pristine(source, tree.pin.files)
        found += fresh.patches.findings(pristine)
    found += [f'{path} shadows an upstream file'
              for path in tree.overlay.shadows(tree.pin.files)]
    found += find_copies(tree, source)
    return found


def unsynced(tree):
    """Edits in build/src that patches/ and the overlay do not have."""
    try:
        seen = survey(tree)
    except Problem as problem:
        return [str(problem)]
    overlay = seen.overlay
    found = [f'build/src/{path} has edits that patches/ lacks; run `tree.py source`'
             for path in sorted(seen.work.keys() | seen.wanted.keys())
             if seen.work.get(path) not in (seen.base.get(path),
                                            seen.wanted.get(path))]
    found += [f'build/src/{path} is in neither upstream nor the overlay'
              for path in overlay.stray]
    found += [f'build/src/{path} and {path} differ; run `tree.py source`'
              for path, entry in overlay.result.items()
              if entry != overlay.project[path]]
    return found + [f'build/src/{path} and {path} are in conflict'
                    for path in seen.conflicts if path in overlay.project]
