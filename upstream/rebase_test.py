# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Tests of a move to another version of upstream."""
import os

from files import walk
from pin import describe_dir, parse_files
from tree_fixture import NUMBERED, PIN, TreeTest, make_upstream, write


class RebaseTest(TreeTest):
    def setUp(self):
        super().setUp()
        self.edit('db/numbered.cc', 'line_7()', 'line_7(1)')
        self.good()
        self.newer = self.folder / 'newer'

    def rebase(self, works, changes, says=()):
        make_upstream(self.newer, **changes)
        os.environ['STRATA_UPSTREAM'] = str(self.newer)
        self.addCleanup(os.environ.update, STRATA_UPSTREAM=str(self.kit / 'upstream'))
        args = 'rebase', self.newer, '2.0.0+8.0.0'
        return self.good(*args) if works else self.bad(*args, says=says)

    def test_clean(self):
        self.rebase(True, {
            'db/numbered.cc': NUMBERED.replace('line_2()', 'two()').replace(
                'line_12()', 'twelve();\nthirteen()'),
            'table/fresh.cc': 'int fresh;\n', 'db/crlf.cc': None})
        self.assertIn('line_7(1)', self.text('db/numbered.cc'))
        self.assertIn('thirteen', self.text('db/numbered.cc'))
        self.assertTrue((self.src / 'table/fresh.cc').exists())
        self.assertFalse((self.src / 'db/crlf.cc').exists())
        self.assertEqual(self.text('upstream/PIN', self.root),
                         PIN.replace('1.0.0+7.0.0', '2.0.0+8.0.0'))
        files = parse_files((self.root / 'upstream/FILES').read_bytes())
        self.assertEqual(files, describe_dir(self.newer))
        self.assert_in_step()

    def test_renamed_upstream(self):
        self.rebase(True, {'db/numbered.cc': None, 'db/moved.cc': 'x();\n' + NUMBERED})
        self.assertEqual(walk(self.patches), ['db/moved.cc.patch'])
        self.assert_in_step()

    def test_conflict(self):
        self.rebase(False, {'db/numbered.cc': NUMBERED.replace('line_7()', 'seven()')},
                    says=['db/numbered.cc', '--continue'])
        self.assertIn('<<<<<<< new upstream', self.text('db/numbered.cc'))
        self.bad('source', says='a rebase is in progress')
        self.bad('rebase', '--continue', says=['markers', 'db/numbered.cc'])
        write(self.src / 'db/numbered.cc', NUMBERED.replace('line_7()', 'seven(1)'))
        self.good('rebase', '--continue')
        self.assertIn('-seven();\n+seven(1);', self.patch().read_text())
        self.assert_in_step()
        self.bad('rebase', '--continue', says='no rebase')

    def test_gone_upstream(self):
        self.rebase(False, {'db/numbered.cc': None}, says='gone upstream')
        self.bad('rebase', '--continue', says='db/numbered.cc')
        (self.src / 'db/numbered.cc').unlink()
        self.good('rebase', '--continue')
        self.assertEqual(walk(self.patches), [])
        self.assert_in_step()

    def test_abort(self):
        self.rebase(False, {'db/numbered.cc': NUMBERED.replace('line_7()', 'seven()'),
                            'db/other.cc': 'x'})
        os.environ['STRATA_UPSTREAM'] = str(self.kit / 'upstream')
        self.good('rebase', '--abort')
        self.assertFalse((self.src / 'db/other.cc').exists())
        self.assertIn('line_7(1)', self.text('db/numbered.cc'))
        self.assert_in_step()

    def test_new_file_of_an_overlay_name(self):
        self.rebase(False, {'db/ours.cc': 'x'}, says=['db/ours.cc', 'rename ours'])
