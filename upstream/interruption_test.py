# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Tests of syncs and rebases that are killed at any of their writes."""
import os
import pathlib
import shutil
import sys
from unittest import mock

import git
import source_tree
from files import walk
from tree_fixture import NUMBERED, UPSTREAM, TreeTest, make_upstream, write


class InterruptionTest(TreeTest):
    def run_killed_at(self, step, *args):
        """Runs a command in a child that dies before its step-th write; True if so."""
        sys.stdout.flush()
        child = os.fork()
        if child:
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
        left = [step]

        def dying(function):
            def wrapper(*args, **options):
                left[0] -= 1
                if not left[0]:
                    os._exit(9)
                return function(*args, **options)
            return wrapper

        os.replace = dying(os.replace)
        pathlib.Path.unlink = dying(pathlib.Path.unlink)
        git.Git.set_ref = dying(git.Git.set_ref)
        try:
            self.command(self.root, *args)
        finally:
            os._exit(0)

    def at_every_step(self, prepare, verify, args=('source',), resume=('source',),
                      stride=1):
        start = self.root
        for step in range(1, 200, stride):
            self.use(self.folder / f'step-{step}')
            shutil.copytree(start, self.root, symlinks=True)
            prepare()
            killed = self.run_killed_at(step, *args)
            if killed and step % 3 == 1:  # a second kill, at another place
                self.run_killed_at(step // 2 + 1, *resume)
            if resume[0] == 'source' or (self.src / '.git/strata-rebase.json').exists():
                self.command(self.root, *resume)
            elif killed:
                self.command(self.root, *args)
            with self.subTest(step=step):
                verify()
                self.good('status')
            shutil.rmtree(self.root)
            if not killed:
                self.assertGreater(step, 4)
                return
        self.fail('never done')

    def test_both_sides(self):
        """Each kind of change at once, so that every order of writes occurs."""
        self.edit('db/crlf.cc', 'two', 'zwei')
        self.good()
        self.patch_made_elsewhere('db/numbered.cc', 'line_7()', 'line_7(1)')
        # A merge next to the other side's lines: it conflicts if it is repeated.
        self.edit('db/numbered.cc', 'line_9()', 'line_9(1);\nmore()')
        self.edit('db/repeated.cc', 'head_2', 'seam_2')
        self.edit('db/crlf.cc', 'zwei', 'two')
        self.edit('include/tiny/ours.h', 'a()', 'a(1)')
        self.edit('include/tiny/ours.h', 'f()', 'f(1)', self.root)
        (self.src / 'db/ours.cc').unlink()
        write(self.src / 'db/ours.cc', 'int by_rename;\n')
        write(self.root / 'db/added.cc', 'int added;\n')

        def verify():
            merged = NUMBERED.replace('line_7()', 'line_7(1)').replace(
                'line_9()', 'line_9(1);\nmore()')
            self.assertEqual(self.text('db/numbered.cc'), merged)
            self.assertIn('+seam_2', self.patch('db/repeated.cc').read_text())
            self.assertIn('+more()', self.patch().read_text())
            self.assertIn('+line_7(1)', self.patch().read_text())
            self.assertFalse(self.patch('db/crlf.cc').exists())
            for top in (self.root, self.src):
                self.assertEqual(self.text('include/tiny/ours.h', top),
                                 'a(1);\nb();\nc();\nd();\ne();\nf(1);\n')
                self.assertEqual(self.text('db/ours.cc', top), 'int by_rename;\n')
            self.assertFalse([p for p in walk(self.patches) if p.endswith('~')])

        self.at_every_step(lambda: None, verify)

    def test_first_sync(self):
        self.edit('db/numbered.cc', 'line_7()', 'line_7(1)')
        self.good()
        (self.root / 'db/ours.cc').rename(self.root / 'db/renamed.cc')

        def prepare():
            shutil.rmtree(self.src)

        def verify():
            self.assertIn('line_7(1)', self.text('db/numbered.cc'))
            self.assertEqual(walk(self.patches), ['db/numbered.cc.patch'])
            self.assertEqual(set(UPSTREAM) - set(walk(self.src)), set())

        # Most writes of a first sync are alike.
        self.at_every_step(prepare, verify, stride=7)

    def test_edit_between_kill_and_resumption(self):
        self.patch_made_elsewhere('db/numbered.cc', 'line_7()', 'line_7(1)')
        self.edit('db/numbered.cc', 'line_20()', 'line_20(1)')
        start = self.root
        for step in (3, 5, 7):
            self.use(self.folder / f'step-{step}')
            shutil.copytree(start, self.root, symlinks=True)
            self.run_killed_at(step, 'source')
            self.edit('db/numbered.cc', 'line_35()', 'line_35(1)')
            self.good()
            for part in ('line_7(1)', 'line_20(1)', 'line_35(1)'):
                self.assertIn(part, self.text('db/numbered.cc'))
                self.assertIn(part, self.patch().read_text())

    def test_rebase(self):
        self.edit('db/numbered.cc', 'line_7()', 'line_7(1)')
        self.edit('db/crlf.cc', 'two', 'zwei')
        self.good()
        newer = self.folder / 'newer'
        make_upstream(newer, **{'db/numbered.cc': 'first();\n' + NUMBERED,
                                'db/brand_new.cc': 'int x;\n', 'db/empty.cc': None})

        def verify():
            self.assertEqual(self.text('db/numbered.cc'),
                             'first();\n' + NUMBERED.replace('line_7()', 'line_7(1)'))
            self.assertIn('2.0.0', self.text('upstream/PIN', self.root))
            self.assertFalse((self.src / 'db/empty.cc').exists())
            self.assertIn('zwei', self.text('db/crlf.cc'))

        # The directory of the version at which the project is when it is killed.
        with mock.patch.object(source_tree, 'fetch_upstream', lambda pin: str(
                newer if 'db/brand_new.cc' in pin.files else self.kit / 'upstream')):
            self.at_every_step(lambda: None, verify,
                               args=('rebase', newer, '2.0.0+8.0.0'),
                               resume=('rebase', '--continue'), stride=2)
