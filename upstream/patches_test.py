# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Tests of patches that do not apply or are not fit to commit."""
from patches import patch_ids
from tree_fixture import TreeTest, write


class PatchTest(TreeTest):
    def test_hunk_landing_elsewhere(self):
        """One line of context also fits elsewhere; the blob id tells."""
        path = 'db/repeated.cc'
        self.edit(path, 'head_4();\n{\n  same', 'head_4();\n{\n  other')
        self.good()
        before = self.text(path)
        self.edit(self.patch(path), '@@ -18,3 +18,3 @@', '@@ -26,3 +26,3 @@')
        self.bad(says=[f'{path}.patch', 'gives blob', 'hunk 1'])
        self.assertEqual(self.text(path), before)
        self.bad('check', says=f'{path}.patch')
        self.edit(self.patch(path), '@@ -26,3 +26,3 @@', '@@ -25,3 +25,3 @@')
        self.bad(says=[f'{path}.patch', 'gives blob', 'hunk 1', 'landed at line'])

    def test_hunk_that_does_not_fit(self):
        self.edit('db/numbered.cc', 'line_7()', 'line_7(1)')
        self.edit('db/numbered.cc', 'line_30()', 'line_30(1)')
        self.good()
        self.edit(self.patch(), '-line_30();', '-line_x();')
        self.bad(says=['patches/db/numbered.cc.patch', 'hunk 2 (@@ -29,3 +29,3 @@)'])

    def test_malformed_patches(self):
        self.edit('db/numbered.cc', 'line_7()', 'line_7(1)')
        self.good()
        good = self.patch().read_bytes()
        for change, says in (
                ((b'@@ -6,3', b'@@ -6,9'), 'corrupt'),
                ((b'index ', b'index 12'), 'index'),
                ((b'numbered', b'repeated'), 'db/repeated.cc instead'),
                ((patch_ids(good)[0].encode(), b'1' * 40), 'another version')):
            write(self.patch(), good.replace(*change))
            self.bad(says=['patches/db/numbered.cc.patch', says])
        write(self.patch(), good)
        write(self.patches / 'db/unknown.cc.patch', good)
        self.bad(says=['patches/db/unknown.cc.patch', 'no such file'])

    def test_check_bytes_and_context(self):
        self.edit('db/numbered.cc', 'line_7()', 'line_7(1)')
        self.good()
        self.edit(self.patch(), '@@ -6,3 +6,3 @@\n line_6();',
                  '@@ -5,4 +5,4 @@ class\n line_5();\n line_6();')
        self.bad('check', says=['hunk 1 has more than one context line',
                                'is not what the tree emits'])
        self.good('patches')
        self.assert_in_step()

    def test_check_patch_names(self):
        write(self.patches / 'db/notes.txt', 'x')
        self.bad('check', says='patches/db/notes.txt is not a patch')
