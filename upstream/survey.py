# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Compares all sides of a sync and decides on each file, before anything is written.

For each of upstream's files there are three sides:

    base    the file in *patched*, the agreement of the last sync
    work    the file in build/src
    wanted  the file that upstream + patches/ give

A file that one side changed gets that side's content; a file that both changed is
merged. `overlay` does the same for the overlay's files.

This module relies on `source_tree` for the sides and on `merge` for the decisions.
"""
import dataclasses

from merge import Merger
from overlay import Plan
from problem import Problem, listed

# More upstream files than this missing at once is an accident, not a change.
MAX_DELETIONS = 20


@dataclasses.dataclass
class Survey:
    """The sides of a sync, {path: entry} each, and the decisions on them."""
    head: str               # the commit *patched*; None if its pristine is another one
    pristine: str           # the commit of the pinned upstream
    pristine_entries: dict
    patches: dict           # {upstream path: content of the patch}
    new_patches: bool       # these patches are not those of the last survey
    base: dict
    work: dict
    work_tree: str          # the id of the tree `work`
    wanted: dict
    result: dict = dataclasses.field(default_factory=dict)
    conflicts: dict = dataclasses.field(default_factory=dict)  # the overlay's, too
    overlay: Plan = None
    merges: list = None     # see Merger.remembered


def survey(tree):
    """The Survey of a SourceTree. Writes nothing but git objects and notes."""
    tree.open()
    seen = read_sides(tree)
    refuse_mass_deletion(tree, seen)
    merger = Merger(tree.git, tree.notes.get('merges', []))
    decide(seen, merger)
    seen.overlay = tree.overlay.plan(tree.pin.files, tree.index, merger, seen.conflicts)
    # The merges of a sync that was killed stay, as this one may be killed, too.
    seen.merges = merger.remembered + merger.made
    return seen


def read_sides(tree):
    git = tree.git
    current, patched, base_tree = tree.commits()
    pristine = tree.pristine(current)
    pristine_entries = git.entries(pristine)
    patches = tree.patches.read()
    before = tree.notes.get('patches')
    wanted_tree = tree.wanted(pristine, patches)
    new_patches = tree.notes['patches'] != before
    base, wanted = git.entries(base_tree), git.entries(wanted_tree)
    work_tree = tree.snapshot(base_tree, sorted(base.keys() | wanted.keys()))
    work = git.entries(work_tree)
    if not patched:
        # The tree is being made, or has lost its .git. A file that is there may have
        # edits; a file that is missing was not written yet.
        base = {path: pristine_entries[path] for path in work}
    return Survey(head=patched if current == pristine else None,
                  pristine=pristine, pristine_entries=pristine_entries,
                  patches=patches, new_patches=new_patches,
                  base=base, work=work, work_tree=work_tree, wanted=wanted)


def refuse_mass_deletion(tree, seen):
    gone = [path for path in seen.base if path in seen.wanted and path not in seen.work]
    if len(gone) > MAX_DELETIONS:
        raise Problem(
            f'{len(gone)} upstream files are missing from build/src. If they were '
            'removed by accident, get them back with\n'
            f'  git -C {tree.src} restore .\n'
            f'To delete upstream files for good, remove at most {MAX_DELETIONS} '
            f'between two syncs. Missing:{listed(gone)}')


def decide(seen, merger):
    """Fills in the result and the conflicts of upstream's files."""
    labels = 'build/src', 'last sync', 'patches'
    for path in sorted(seen.base.keys() | seen.work.keys() | seen.wanted.keys()):
        sides = [side.get(path) for side in (seen.base, seen.work, seen.wanted)]
        entry, clean = merger.merge(path, *sides, labels)
        if not clean:
            seen.conflicts[path] = entry
        elif entry is not None:
            seen.result[path] = entry
