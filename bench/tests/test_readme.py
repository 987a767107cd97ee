# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""The numbers of README.md are those of the tables that it links to."""
import re
import unittest
from pathlib import Path
from typing import List

ROOT = Path(__file__).resolve().parents[2]
TABLE = r'bench/results/[\w-]+/table\.md'
PAGE = r'docs/benchmarks\.md'
RATIO = re.compile(r'\d+\.\d\d×')
# Numbers that a table must have as they are: with a thousands separator, or with a unit.
QUANTITY = re.compile(r'\d+,\d{3}(?! values| keys)|\d+\.\d+(?= MB| s\b)')


def text_of(tables: List[str]) -> str:
    """The tables, and the rows of the page of all results that link to them, which also compare
    with BlobDB."""
    text = '\n'.join((ROOT / path).read_text(encoding='utf-8') for path in tables)
    page = (ROOT / 'docs/benchmarks.md').read_text(encoding='utf-8')
    rows = [row for row in page.splitlines() if any(f'(../{path})' in row for path in tables)]
    return '\n'.join([text] + rows)


def missing(text: str, tables: str) -> List[str]:
    """The numbers of the text that are not in the text of the tables."""
    numbers = QUANTITY.findall(text) + RATIO.findall(text)
    return [number for number in numbers
            if not re.search(rf'(?<![\d.,]){re.escape(number)}(?![\d,])', tables)]


class ReadmeTest(unittest.TestCase):
    def setUp(self) -> None:
        self.text = (ROOT / 'README.md').read_text(encoding='utf-8')

    def test_numbers_of_the_table_of_workloads(self) -> None:
        links = dict(re.findall(rf'^\[(\d+)\]: ({TABLE}|{PAGE})$', self.text, re.MULTILINE))
        num_ratios = 0
        for row in re.findall(r'^\|.*\|$', self.text, re.MULTILINE):
            for cell in row.strip('|').split('|'):
                for part in cell.split(';'):
                    # The nearest tag: that of the part, of the cell, or of the row.
                    tags = next(filter(None, (re.findall(r'\[(\d+)\]', text)
                                              for text in (part, cell, row))), [])
                    ratios = RATIO.findall(part)
                    if ratios:
                        self.assertTrue(tags, row)
                        tables = text_of([links[tag] for tag in tags])
                        self.assertEqual(missing(part, tables), [], row)
                        num_ratios += len(ratios)
        self.assertGreater(num_ratios, 20)

    def test_numbers_of_limits_and_losses(self) -> None:
        section = self.text.split('\n## Limits and losses')[1].split('\n## ')[0]
        num_checked = 0
        for item in section.split('\n* ')[1:]:
            paths = re.findall(rf'\(({TABLE})\)', item)
            if paths:
                self.assertEqual(missing(item, text_of(paths)), [], item)
                num_checked += 1
        self.assertGreater(num_checked, 5)


class MissingTest(unittest.TestCase):
    def test_wrong_numbers_are_found(self) -> None:
        tables = ('| BlobDB | 20,000 op/s | **3.82×** (3.70 … 3.90) |\n'
                  '| Strata | 15,000 op/s | **2.86×** |\n| BlobDB | 22.16 MB |\n')
        self.assertEqual(missing('2.86× and 3.82×, 15,000 and 22.16 MB', tables), [])
        self.assertEqual(missing('2.87×, 0.82×, 3.70×, 15,001, 5,000, 2.16 MB', tables),
                         ['15,001', '5,000', '2.16', '2.87×', '0.82×', '3.70×'])


if __name__ == '__main__':
    unittest.main()
