# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Runs git's plumbing commands, with the same result on every machine.

This module relies on `problem` and on a `git` on PATH. It knows nothing of patches or
of syncs.
"""
import os
import subprocess

from problem import Problem


class Git:
    """One repository. Neither the environment nor any configuration of the user, of the
    system or of the repository changes what its commands do.

    Writes are not flushed to the disk (core.fsync=none). After a power failure that
    damaged it, .git can be removed from build/src: the edits are in the worktree and in
    patches/."""

    OPTIONS = [word for setting in (
        'core.attributesFile=/dev/null', 'core.autocrlf=false', 'core.bare=false',
        'core.compression=1', 'core.excludesFile=/dev/null', 'core.fileMode=true',
        'core.fsmonitor=false', 'core.fsync=none', 'core.hooksPath=/dev/null',
        'core.ignoreCase=false', 'core.quotePath=true', 'core.safecrlf=false',
        'core.sparseCheckout=false', 'core.splitIndex=false', 'core.symlinks=true',
        'core.untrackedCache=false', 'gc.auto=0', 'safe.directory=*',
        'init.defaultBranch=main', 'init.templateDir=') for word in ('-c', setting)]
    DIFF = ['-r', '-U1', '--full-index', '--binary', '--no-renames', '--no-ext-diff',
            '--no-textconv', '--no-color', '--inter-hunk-context=0', '--no-relative',
            '--diff-algorithm=myers', '--indent-heuristic',
            '--src-prefix=a/', '--dst-prefix=b/']

    def __init__(self, git_dir, work_tree):
        self.git_dir, self.work_tree = git_dir, work_tree
        self.scratch_index = git_dir / 'strata-scratch-index'
        self.known_trees = {None: {}}
        env = {key: value for key, value in os.environ.items()
               if not key.startswith('GIT_')}
        env.update(GIT_CONFIG_GLOBAL=os.devnull, GIT_CONFIG_NOSYSTEM='1',
                   GIT_ATTR_NOSYSTEM='1', GIT_TERMINAL_PROMPT='0', LC_ALL='C')
        for who in ('AUTHOR', 'COMMITTER'):
            env.update({f'GIT_{who}_NAME': 'Strata',
                        f'GIT_{who}_EMAIL': 'strata@localhost',
                        f'GIT_{who}_DATE': '2000-01-01T00:00:00Z'})
        self.env = env

    def try_run(self, *args, data=None, index=None, work_tree=None):
        """Runs a git command; returns the completed process, failed or not."""
        top = work_tree or self.work_tree
        env = {**self.env, 'GIT_INDEX_FILE': str(index)} if index else self.env
        return subprocess.run(
            ['git', *self.OPTIONS, f'--git-dir={self.git_dir}', f'--work-tree={top}',
             *args], cwd=top, env=env, input=data or b'', capture_output=True)

    def run(self, *args, **options):
        """The output of a git command; Problem if the command fails."""
        done = self.try_run(*args, **options)
        if done.returncode:
            raise Problem(f'git {args[0]} failed in {self.work_tree}: '
                          f'{os.fsdecode(done.stderr).strip()}')
        return done.stdout

    def line(self, *args, **options):
        """The output of a git command, as one line of text."""
        return os.fsdecode(self.run(*args, **options)).strip()

    def paths(self, *args, **options):
        """The output of a git command that ends each item with a zero byte."""
        return os.fsdecode(self.run(*args, **options)).split('\0')[:-1]

    def entries(self, tree):
        """{path: entry} of a tree; None is the empty tree."""
        if tree not in self.known_trees:
            found = self.known_trees[tree] = {}
            for record in self.paths('ls-tree', '-r', '-z', tree):
                meta, path = record.split('\t', 1)
                mode, _, oid = meta.split(' ')
                found[path] = mode, oid
        return dict(self.known_trees[tree])

    def write_tree(self, entries):
        """The inverse of entries(): stores a tree and returns its id."""
        self.fresh_index(self.scratch_index)
        lines = ''.join(f'{mode} {oid}\t{path}\0'
                        for path, (mode, oid) in entries.items())
        self.run('update-index', '-z', '--index-info', index=self.scratch_index,
                 data=os.fsencode(lines))
        return self.line('write-tree', index=self.scratch_index)

    def fresh_index(self, index):
        """Removes an index and its lock, which a killed git may have left."""
        index.unlink(missing_ok=True)
        self.unlock_index(index)

    def unlock_index(self, index):
        """Removes the lock of an index, which a killed git may have left."""
        index.with_name(f'{index.name}.lock').unlink(missing_ok=True)

    def store(self, data):
        """Stores a blob and returns its id."""
        return self.line('hash-object', '-w', '--stdin', data=data)

    def blobs(self, oids):
        """{id: content} of blobs."""
        oids = sorted(set(oids))
        if not oids:
            return {}
        out = self.run('cat-file', '--batch', data='\n'.join(oids).encode() + b'\n')
        found, at = {}, 0
        for oid in oids:
            end = out.index(b'\n', at)
            header = out[at:end].split(b' ')
            if header[1] != b'blob':
                raise Problem(f'{self.git_dir} lacks object {oid}')
            size = int(header[2])
            found[oid] = out[end + 1:end + 1 + size]
            at = end + size + 2
        return found

    def commit(self, tree, subject, parent=None):
        """Stores a commit and returns its id. The same arguments give the same id."""
        return self.line('commit-tree', tree, '-m', subject,
                         *(('-p', parent) if parent else ()))

    def set_ref(self, ref, value):
        self.run('update-ref', ref, value)
