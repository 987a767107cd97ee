# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Tests of the overlay in a sync."""
import os

from tree_fixture import NUMBERED, TreeTest, write


class OverlayTest(TreeTest):
    def test_added_and_removed(self):
        write(self.root / 'util/deep/new.cc', 'x')  # not a folder of this upstream
        write(self.root / 'db/deep/new.cc', 'x')
        write(self.root / 'db/ignored.o', 'x')
        self.good()
        self.assertFalse((self.src / 'util').exists())
        self.assertFalse((self.src / 'db/ignored.o').exists())
        self.assertEqual(os.readlink(self.src / 'db/deep/new.cc'),
                         '../../../../db/deep/new.cc')
        self.assert_in_step()
        for path in ('db/deep/new.cc', 'include/tiny/ours.h'):
            (self.root / path).unlink()
        self.good()
        self.assertFalse((self.src / 'db/deep').exists())
        self.assertFalse((self.src / 'include/tiny/ours.h').exists())
        self.assert_in_step()

    def test_edit_through_the_link(self):
        write(self.src / 'db/ours.cc', 'int better;\n')
        self.good()
        self.assertEqual(self.text('db/ours.cc', self.root), 'int better;\n')

    def test_replaced_link(self):
        (self.src / 'db/ours.cc').unlink()
        write(self.src / 'db/ours.cc', 'int by_rename;\n')
        self.bad('check', says='db/ours.cc')
        self.good()
        self.assertEqual(self.text('db/ours.cc', self.root), 'int by_rename;\n')
        self.assertTrue((self.src / 'db/ours.cc').is_symlink())
        self.assert_in_step()

    def test_replaced_link_and_changed_file(self):
        (self.src / 'db/ours.cc').unlink()
        write(self.src / 'db/ours.cc', 'int by_rename;\n')
        write(self.root / 'db/ours.cc', 'int here;\n')
        self.bad(says=['db/ours.cc', 'make both equal'])
        self.assertEqual(self.text('db/ours.cc'), 'int by_rename;\n')
        self.assertEqual(self.text('db/ours.cc', self.root), 'int here;\n')
        write(self.root / 'db/ours.cc', 'int by_rename;\n')
        self.good()
        self.assert_in_step()

    def test_include_copies(self):
        path = 'include/tiny/ours.h'
        self.edit(path, 'a()', 'a(1)', self.root)
        self.good()
        self.assertIn('a(1)', self.text(path))
        self.edit(path, 'a(1)', 'a(2)')
        self.bad('check', says=path)
        self.good()
        self.assertIn('a(2)', self.text(path, self.root))
        self.edit(path, 'a(2)', 'a(3)')
        self.edit(path, 'f()', 'f(3)', self.root)
        self.good()
        for top in (self.root, self.src):
            self.assertEqual(self.text(path, top),
                             'a(3);\nb();\nc();\nd();\ne();\nf(3);\n')
        self.assert_in_step()
        self.edit(path, 'a(3)', 'a(4)')
        self.edit(path, 'a(3)', 'a(5)', self.root)
        self.bad(says=path)
        self.assertIn('a(4)', self.text(path))
        self.assertIn('a(5)', self.text(path, self.root))

    def test_edited_copy_of_a_removed_file(self):
        self.edit('include/tiny/ours.h', 'a()', 'a(1)')
        (self.root / 'include/tiny/ours.h').unlink()
        self.bad(says='include/tiny/ours.h')
        self.assertIn('a(1)', self.text('include/tiny/ours.h'))

    def test_stray_file(self):
        write(self.src / 'db/stray_test', 'int stray;\n')  # upstream would ignore it
        write(self.src / 'tools/__pycache__/x.pyc', 'x')
        write(self.src / 'db/.ours.cc.swp', 'x')
        self.edit('db/numbered.cc', 'line_7()', 'line_7(1)')
        text = self.bad(says=['db/stray_test', 'mv build/src/db/stray_test'])
        self.assertNotIn('pycache', text)
        self.assertNotIn('swp', text)
        self.bad('check', says='db/stray_test')
        self.assertTrue((self.src / 'db/stray_test').exists())
        (self.src / 'db/stray_test').unlink()
        self.good()
        self.assertTrue((self.src / 'db/.ours.cc.swp').exists())

    def test_shadowing(self):
        write(self.root / 'db/numbered.cc', 'int shadow;\n')
        self.bad(says=['db/numbered.cc', 'may not replace'])
        self.bad('check', says='db/numbered.cc')
        self.assertEqual(self.text('db/numbered.cc'), NUMBERED)
