# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Loaded databases that are kept and copied."""
import os
import unittest
from pathlib import Path
from typing import Any

from strata_bench import templates
from tests import support


class TemplatesTest(support.FolderTest):
    def setUp(self) -> None:
        super().setUp()
        self.loads = 0
        self.templates = templates.Templates(self.folder / 'templates')

    def load(self, folder: Path) -> Any:
        self.loads += 1
        (folder / 'db' / '1.sst').write_text('table')
        (folder / 'db' / '2.blob').write_text('blob')
        (folder / 'db' / 'MANIFEST-3').write_text('manifest')
        (folder / 'db' / '4.log').write_text('wal')
        (folder / 'db' / 'LOCK').write_text('')
        (folder / 'slow').mkdir(exist_ok=True)
        (folder / 'slow' / '5.blob').write_text('slow')
        return {'ops': 7}

    def test_copy(self) -> None:
        template = self.templates.get('stock', 'abc', self.load)
        copy = self.folder / 'work'
        self.templates.copy(template, copy)
        for name in ('db/1.sst', 'db/2.blob', 'slow/5.blob'):
            self.assertTrue(os.path.samefile(template / name, copy / name), name)
        for name in ('db/MANIFEST-3', 'db/4.log'):
            self.assertFalse(os.path.samefile(template / name, copy / name), name)
            self.assertEqual((template / name).read_text(), (copy / name).read_text())
        self.assertFalse((copy / 'template.json').exists())
        self.assertFalse((copy / 'db' / 'LOCK').exists())
        # What a run does to its copy stays there.
        (copy / 'db' / 'MANIFEST-3').write_text('changed')
        (copy / 'db' / '1.sst').unlink()
        self.assertTrue(self.templates.is_current('stock', 'abc'))
        self.templates.copy(template, copy)
        self.assertEqual((copy / 'db' / 'MANIFEST-3').read_text(), 'manifest')
        self.assertEqual((copy / 'db' / '1.sst').read_text(), 'table')

    def test_loaded_once(self) -> None:
        for _ in range(2):
            self.templates.get('stock', 'abc', self.load)
        self.assertEqual(self.loads, 1)
        self.assertEqual(self.templates.load_report('stock', 'abc'), {'ops': 7})

    def test_loaded_anew(self) -> None:
        self.templates.get('stock', 'abc', self.load)
        self.templates.get('stock', 'def', self.load)
        self.templates.get('other', 'abc', self.load)
        self.assertEqual(self.loads, 3)

    def test_changed_file_is_found_out(self) -> None:
        template = self.templates.get('stock', 'abc', self.load)
        copy = self.folder / 'work'
        self.templates.copy(template, copy)
        with open(copy / 'db' / '1.sst', 'a') as file:  # the same file as the template's
            file.write('!')
        self.assertFalse(self.templates.is_current('stock', 'abc'))
        self.templates.get('stock', 'abc', self.load)
        self.assertEqual(self.loads, 2)
        self.assertEqual((template / 'db' / '1.sst').read_text(), 'table')

    def test_failed_load_leaves_nothing(self) -> None:
        def load(folder: Path) -> Any:
            self.load(folder)
            raise KeyboardInterrupt
        with self.assertRaises(KeyboardInterrupt):
            self.templates.get('stock', 'abc', load)
        self.assertEqual(list((self.folder / 'templates').iterdir()), [])

    def test_stamp(self) -> None:
        first = templates.stamp(flags={'a': '1', 'b': '2'}, program='x')
        self.assertEqual(first, templates.stamp(program='x', flags={'b': '2', 'a': '1'}))
        self.assertNotEqual(first, templates.stamp(flags={'a': '1', 'b': '3'}, program='x'))
        self.assertNotEqual(first, templates.stamp(flags={'a': '1', 'b': '2'}, program='y'))

    def test_slow_device(self) -> None:
        slow = self.folder / 'device'
        slow.mkdir()
        kept = templates.Templates(self.folder / 'templates', slow)
        template = kept.get('stock', 'abc', self.load)
        self.assertEqual((slow / template.name / '5.blob').read_text(), 'slow')
        copy = self.folder / 'work'
        kept.copy(template, copy)
        self.assertEqual((slow / 'work' / '5.blob').read_text(), 'slow')
        self.assertEqual(templates.tiers(copy)['slow_bytes'], 4)
        templates.remove(copy)
        self.assertFalse((slow / 'work').exists())
        self.assertTrue((slow / template.name).exists())
        self.assertTrue(kept.is_current('stock', 'abc'))

    def test_tiers(self) -> None:
        template = self.templates.get('stock', 'abc', self.load)
        (template / 'fast').mkdir()
        (template / 'fast' / '9.sst').write_text('12345')
        tiers = templates.tiers(template)
        self.assertEqual(tiers['fast_bytes'], len('tableblobmanifestwal12345'))
        self.assertAlmostEqual(tiers['slow_percent'], 100 * 4 / (4 + tiers['fast_bytes']))

    def test_prune(self) -> None:
        for n, what in enumerate(('old', 'kept', 'new')):
            folder = self.templates.get('t', what, self.load)
            os.utime(folder / 'template.json', (n, n))
        each = templates.size_of(folder)
        self.templates.prune(2 * each + 10)
        self.assertEqual(sorted(path.name for path in (self.folder / 'templates').iterdir()),
                         ['t-kept', 't-new'])
        self.templates.prune(0, {'t-kept'})
        self.assertEqual([path.name for path in (self.folder / 'templates').iterdir()], ['t-kept'])


if __name__ == '__main__':
    unittest.main()
