# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Brings build/src, patches/ and the overlay into agreement.

A sync computes one result per file (see `survey`), then writes build/src, then
patches/, then the overlay, then moves HEAD, all under a lock. If a sync is killed, the
next one completes it: a file that only one side changed gives the same result again,
whatever was already written, and the merges of files that both sides changed were saved
before the first write (see `merge`). Nothing is written unless all of it can be, and no
file is replaced that changed since the survey.

This module relies on `source_tree`, `survey`, `files` and `problem`.
"""
import shutil

from files import write_file
from problem import Problem, listed, note
from survey import survey


def sync(tree):
    """Syncs a SourceTree, whose lock is held; returns its Survey and its git tree."""
    tree.refuse_during_rebase()
    tree.patches.remove_partial()
    seen = survey(tree)
    refuse(tree, seen)
    agreed, patches = seen.work_tree, seen.patches
    if seen.result != seen.work:
        agreed = tree.git.write_tree(seen.result)
    if seen.result != seen.wanted or seen.new_patches:
        patches = tree.patches.emit(seen.pristine, agreed)
        if tree.wanted(seen.pristine, patches) != agreed:
            raise Problem('the patches of build/src do not give build/src; this is '
                          'a fault of tree.py, nothing was written')
    tree.keep(merges=seen.merges)
    written = tree.write(seen.work, seen.result)
    emitted = tree.patches.write(seen.patches, patches)
    tree.overlay.write(seen.overlay)
    if not seen.head or seen.result != seen.base or seen.head == seen.pristine:
        tree.commit_patched(seen.pristine, agreed)
    tree.refresh_index(agreed, written)
    tree.keep(merges=[])
    shutil.rmtree(tree.build / 'conflicts', ignore_errors=True)
    if written or emitted:
        note(f'{written} files of build/src and {emitted} patches written')
    return seen, agreed


def refuse(tree, seen):
    """Raises Problem if a file is stray or in conflict; writes merges with markers."""
    stray = seen.overlay.stray
    if stray:
        raise Problem(
            'files in build/src that are neither upstream\'s nor the overlay\'s; a '
            f'new file belongs in the project, move it there:{listed(stray)}\n'
            f'  for example: mv build/src/{stray[0]} {stray[0]}')
    if not seen.conflicts:
        return
    blobs = tree.git.blobs(oid for _, oid in seen.conflicts.values())
    folder = tree.build / 'conflicts'
    patched, overlay = [], []
    for path, (mode, oid) in sorted(seen.conflicts.items()):
        write_file(folder / path, blobs[oid], mode)
        (overlay if path in seen.overlay.project else patched).append(path)
    text = 'changed on both sides in ways that exclude each other; nothing written.'
    if patched:
        text += (f'\nIn build/src and in patches/:{listed(patched)}\n'
                 '  keep the tree\'s:    tree.py resolve tree FILE...\n'
                 '  keep the patch\'s:   tree.py resolve patches FILE...\n'
                 '  or put a merge into build/src/FILE, then `resolve tree FILE`')
    if overlay:
        text += (f'\nIn the project and in build/src:{listed(overlay)}\n'
                 '  make both equal, copying over the one you do not want')
    raise Problem(f'{text}\nMerges with conflict markers are in {folder}')


# --- Commands ---


def source(tree):
    """Makes or syncs build/src."""
    with tree.locked():
        sync(tree)


def emit_patches(tree):
    """A sync after which patches/ has the bytes that the tree gives."""
    with tree.locked():
        seen, agreed = sync(tree)
        tree.patches.write(tree.patches.read(),
                           tree.patches.emit(seen.pristine, agreed))


def resolve(tree, side, paths):
    """Decides conflicts in favour of a side, 'tree' or 'patches', then syncs."""
    with tree.locked():
        tree.refuse_during_rebase()
        seen = survey(tree)
        base, kept = dict(seen.base), []
        for path in paths:
            path = path.removeprefix('build/src/').removeprefix('patches/')
            path = path.removesuffix('.patch')
            if path not in seen.conflicts or path in seen.overlay.project:
                raise Problem(f'{path} is not in conflict between build/src and '
                              'patches/')
            # With the losing side as the base, only the winner has a change.
            winner, loser = ((seen.work, seen.wanted) if side == 'tree'
                             else (seen.wanted, seen.work))
            base.pop(path, None)
            if path in loser:
                base[path] = loser[path]
                kept.append(f'git -C {tree.src} show {loser[path][1]}  # {path}')
        tree.commit_patched(seen.pristine, tree.git.write_tree(base))
        note(f'what was given up can still be seen:{listed(kept)}')
        sync(tree)
