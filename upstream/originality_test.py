# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Tests of the search for upstream's text in the project."""
from tree_fixture import TreeTest, write


class OriginalityTest(TreeTest):
    LINES = [f'    line_{n}();' for n in range(10, 18)]

    def test_finding(self):
        text = '\n\n  // between\n'.join(self.LINES).replace('    ', '\t')
        write(self.root / 'db/copied.cc', f'int own;\n{text}\n}}\n')
        self.bad('check', says='db/copied.cc:2 repeats upstream db/numbered.cc:10')
        (self.root / 'db/copied.cc').unlink()
        for path in ('Makefile', 'bench/tool.py', 'CMakeLists.txt', '.ci/run'):
            write(self.root / path, text)
            self.bad('check', says=f'{path}:1 repeats upstream')
            (self.root / path).unlink()

    def test_no_finding(self):
        near = self.LINES[:7] + ['x();'] + self.LINES[:7]
        write(self.root / 'db/near.cc', '\n'.join(near))
        write(self.root / 'docs/text.md', '\n'.join(self.LINES))
        self.good('check')

    def test_patches_may_quote(self):
        self.edit('db/numbered.cc', '\n'.join(map(str.strip, self.LINES)), '')
        self.good()
        self.good('check')
