# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Moves the tree, patches/ and the pin to another version of upstream.

A rebase computes the new tree, saves its state in build/src/.git/strata-rebase.json and
goes on from there, so that --continue resumes it after a kill as well as after a person
resolved conflicts. While that file exists, no sync runs.

This module relies on `source_tree`, `sync`, `merge`, `pin`, `files` and `problem`.
"""
import json
import os
import re

from files import write_file
from merge import Merger
from pin import describe_dir, format_files
from problem import Problem, listed, note
from sync import sync


def rebase(tree, new_dir, version):
    """Starts a rebase onto the upstream in `new_dir`; completes it unless there are
    conflicts."""
    if not re.fullmatch(r'[0-9A-Za-z.+-]+', version):
        raise Problem(f'{version!r} is not a package version')
    files = describe_dir(new_dir)
    if not files:
        raise Problem(f'no files in {new_dir}')
    with tree.locked():
        seen, _ = sync(tree)
        shadows = tree.overlay.shadows(files)
        if shadows:
            raise Problem(f'{version} has files of these names; rename ours first:'
                          f'{listed(shadows)}')
        pristine = tree.import_pristine(new_dir, files)
        result, conflicts = carry_over(tree, seen, pristine)
        save(tree, {
            'pristine': pristine, 'version': version, 'conflicts': conflicts,
            'result': tree.git.write_tree(result), 'written': False,
            'files': os.fsdecode(format_files(files))})
        advance(tree)


def continue_rebase(tree):
    with tree.locked():
        advance(tree)


def abort_rebase(tree):
    """Gives the files that the rebase wrote their former content."""
    with tree.locked():
        _, base, _, work, _ = load(tree)
        tree.write(work, base)
        tree.rebase_path.unlink()
        sync(tree)


def carry_over(tree, seen, pristine):
    """*patched* cherry-picked onto another *pristine*, following renames.

    Returns {path: entry} of the result and {path: reason} of the conflicts."""
    git = tree.git
    old, new = seen.pristine_entries, git.entries(pristine)
    fields = git.paths('diff-tree', '-r', '-z', '-M', '--diff-filter=R',
                       '--name-status', seen.pristine, pristine)
    renamed = dict(zip(fields[1::3], fields[2::3]))
    merger = Merger(git, [])
    result, conflicts = dict(new), {}
    for path, was in old.items():
        ours = seen.result.get(path)
        if ours == was:
            continue
        to = renamed.get(path, path)
        entry, clean = merger.merge(to, was, new.get(to), ours,
                                    ('new upstream', 'old upstream', 'patches'))
        result.pop(to, None)
        if entry:
            result[to] = entry
        if not clean:
            conflicts[to] = ('gone upstream' if to not in new else
                             'deleted by us' if ours is None else 'conflict')
    return result, conflicts


def save(tree, state):
    write_file(tree.rebase_path, json.dumps(state).encode())


def load(tree):
    """(state, base, result, work, git tree of work) of the rebase in progress."""
    tree.open()
    if not tree.rebase_path.exists():
        raise Problem('no rebase is in progress')
    state = json.loads(tree.rebase_path.read_bytes())
    base = tree.git.entries(tree.commits()[2])
    result = tree.git.entries(state['result'])
    work_tree = tree.snapshot(state['result'], sorted(base.keys() | result.keys()))
    return state, base, result, tree.git.entries(work_tree), work_tree


def advance(tree):
    """Goes on from the saved state, after a kill or after a person's resolution."""
    state, base, result, work, work_tree = load(tree)
    if not state['written']:
        write_result(tree, state, base, result, work)
        return advance(tree)
    refuse_unresolved(tree, state, work)
    tree.patches.write(tree.patches.read(),
                       tree.patches.emit(state['pristine'], work_tree))
    tree.pin.move(state['version'], os.fsencode(state['files']))
    tree.commit_patched(state['pristine'], work_tree)
    tree.rebase_path.unlink()
    sync(tree)
    note(f'build/src and patches/ are at {state["version"]}; build and test, then '
         'commit patches/ and upstream/')


def write_result(tree, state, base, result, work):
    """Writes the new tree to build/src; raises Problem if it has conflicts."""
    # A file that differs from the base was written before a kill and is left alone.
    todo = {path: result.get(path) if work.get(path) == base.get(path)
            else work.get(path) for path in base.keys() | result.keys()}
    tree.write(work, {k: v for k, v in todo.items() if v})
    state['written'] = True
    save(tree, state)
    if state['conflicts']:
        raise Problem(
            'conflicts, marked in build/src:' + listed(
                f'{path}: {why}' for path, why in state['conflicts'].items())
            + '\nResolve them there (remove a file that is gone upstream, once '
            'its seam has another place), then `tree.py rebase --continue`')


def refuse_unresolved(tree, state, work):
    marked = [path for path in state['conflicts'] if path in work and re.search(
        rb'(?m)^(<{7}|>{7}|\|{7}) ', (tree.src / path).read_bytes())]
    if marked:
        raise Problem(f'conflict markers are left in build/src:{listed(marked)}')
    new = tree.git.entries(state['pristine'])
    gone = [path for path in work if path not in new]
    if gone:
        raise Problem('gone upstream, still in build/src; find the seam another '
                      f'place, then remove:{listed(gone)}')
