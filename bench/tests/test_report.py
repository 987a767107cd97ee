# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Summaries of results, questions, and the page that answers them."""
import json
import unittest
import xml.etree.ElementTree
from pathlib import Path
from typing import Any, Dict, List, Optional

from strata_bench import chart, contenders, environment, experiments, plots, questions, report
from strata_bench import results, runner, stats, summary, tables
from strata_bench.declarations import DeclarationError
from tests import support

CONTENDERS = '''
[stock]
title = "RocksDB"
program = "fake_db_bench.py"
[stock-blobdb]
title = "BlobDB"
extends = "stock"
[strata]
title = "Strata, features off"
program = "fake_db_bench.py"
[strata-map]
title = "Strata, address map"
extends = "strata"
[strata-bypass]
title = "Strata, map and bypass"
extends = "strata-map"
'''

EXPERIMENT = support.EXPERIMENT.replace(
    '["base", "fast"]', '["stock", "stock-blobdb", "strata-map", "strata-bypass"]').replace(
    '"base"', '"stock"').replace('{ fast = { "0.8" = 1.5 }, future = 3 }',
                                 '{ strata-map = { "0.8" = 1.5 } }')

QUESTIONS = '''
[[group]]
title = "Reading"
[[group.question]]
text = "How fast are reads?"
label = "Reads"
experiment = "reads"
compare = "Throughput"
point = "0.8"
better = "higher"
[[group.question]]
text = "How fast are skewed reads?"
label = "Skewed reads"
experiment = "reads"
compare = "Throughput"
point = "1.2"
strata = ["strata-map"]
better = "higher"
'''

SPEEDS = {'stock': [100, 110, 120], 'stock-blobdb': [50, 60, 70], 'strata-map': [90, 100, 100],
          'strata-bypass': [200, 210, 250]}


class SummaryTest(support.FolderTest):
    def test_numbers(self) -> None:
        experiment, document = self.experiment(), support.document()
        document['runs'][4]['error'] = 'the disk is on fire'  # pair 1, 0.8, base
        document['runs'][5].update(foreign_cpu=0.12345, disturbed=True, seconds=2.0)
        found = summary.make(experiment, document)
        table = found['numbers']['ops_per_sec of read']
        self.assertEqual(table['0.8'], {'base': [100, None, 102], 'fast': [200, 201, 202]})
        self.assertEqual(found['failures'], [{'pair': 1, 'point': '0.8', 'contender': 'base',
                                              'error': 'the disk is on fire'}])
        self.assertEqual(found['runs'], {'count': 12, 'repeated': 0, 'disturbed': 1,
                                         'largest_foreign_cpu': 0.123})
        self.assertEqual(found['seconds'], {'0.8': {'fast': 2}})
        self.assertNotIn('commands', summary.dump(found))
        numbers = summary.Numbers(experiment.comparisons[0], found)
        self.assertEqual(numbers.summary('0.8', 'base'), stats.Summary(101, 100, 102, 2))
        ratio = numbers.ratio('0.8', 'fast')
        assert ratio is not None
        self.assertEqual((ratio.count, ratio.high), (2, 2.0))
        self.assertIsNone(numbers.ratio('0.8', 'base'))
        back = numbers.ratio_to('0.8', 'base', 'fast')
        assert back is not None
        self.assertEqual(back.low, 0.5)

    def test_all_digits_that_mean_something_are_kept(self) -> None:
        document = support.document()
        document['runs'][0]['phases']['read'][0]['ops_per_sec'] = 123456.789012345
        found = summary.make(self.experiment(), document)
        self.assertEqual(found['numbers']['ops_per_sec of read']['0.8']['base'][0], 123456.789)

    def test_plots_have_numbers(self) -> None:
        text = support.EXPERIMENT.replace('kind = "lines"\nmetric = "ops_per_sec"',
                                          'kind = "lines"\nmetric = "bytes"')
        found = summary.make(self.experiment(text), support.document())
        self.assertIn('bytes of read', found['numbers'])

    def test_dump(self) -> None:
        found = summary.make(self.experiment(), support.document())
        text = summary.dump(found)
        self.assertEqual(json.loads(text), found)
        self.assertIn('   "0.8": {"base": [100, 101, 102], "fast": [200, 201, 202]},\n', text)
        found['numbers'] = {}
        self.assertEqual(json.loads(summary.dump(found)), found)

    def test_full_results_are_preferred_unless_they_are_older(self) -> None:
        experiment, document = self.experiment(), support.document()
        self.assertIsNone(summary.load(experiment, self.folder))
        document['started'] = '2026-01-02'
        summary.save(summary.make(experiment, document), self.folder)
        for started, pairs in (('2026-01-01', 3), ('2026-01-02', 4), ('2026-01-03', 4)):
            again = dict(document, started=started, pairs=4)
            (self.folder / 'results.json').write_text(results.dump(again))
            found = summary.load(experiment, self.folder)
            assert found is not None
            self.assertEqual(found['pairs'], pairs, started)

    def test_a_comparison_that_is_newer_than_the_results(self) -> None:
        found = summary.make(self.experiment(), support.document())
        newer = self.experiment(support.EXPERIMENT.replace('"ops_per_sec"', '"bytes"', 1))
        text = tables.comparison(newer, newer.comparisons[0], found)
        self.assertIn('Not measured yet: this comparison is newer than the results.', text)


class ReportTest(support.FolderTest):
    def setUp(self) -> None:
        super().setUp()
        self.reads = self.experiment(EXPERIMENT)
        self.experiments = {'reads': self.reads}
        self.all = self.contenders(CONTENDERS)
        self.results = self.folder / 'bench' / 'results'
        self.target = self.folder / 'docs' / 'benchmarks.md'

    def document(self, names: Optional[List[str]] = None, **changes: Any) -> Dict[str, Any]:
        names = names or list(SPEEDS)
        runs = [{'pair': pair, 'point': point, 'contender': name, 'error': None, 'commands': {},
                 'phases': {'read': [support.report(ops_per_sec=SPEEDS[name][pair])]}}
                for pair in range(3) for point in ('0.8', '1.2') for name in names]
        return dict(support.document(), experiment='reads', runs=runs, contenders=names,
                    titles={name: self.all[name].title for name in names},
                    started='2026-01-02 03:04:05 UTC', skipped={},
                    declaration=runner.declaration_stamp(self.reads, self.all), **changes)

    def groups(self, text: str = QUESTIONS) -> List[questions.Group]:
        path = self.folder / 'questions.toml'
        path.write_text(text)
        return questions.parse(path, self.experiments)

    def write(self, document: Dict[str, Any]) -> str:
        summary.save(summary.make(self.reads, document), self.results / 'reads')
        report.write(self.experiments, self.results, self.target, self.all, self.groups())
        return self.target.read_text()

    def test_rows(self) -> None:
        text = self.write(self.document())
        source = '[KDSep, Fig. 0](../bench/results/reads/table.md)'
        # The best of Strata's, and the paper's number for another one.
        self.assertIn(f'| How fast are reads? ↑ | {source} | 110 op/s | 60.0 op/s | '
                      '210 op/s `strata-bypass` | **2.00×** (1.91 … 2.08) | '
                      '**3.57×** (3.50 … 4.00) | 1.50× |', text)
        # The one that the question is about.
        self.assertIn('100 op/s `strata-map` | *0.90×* (0.83 … 0.91) | **1.67×** (1.43 … 1.80) '
                      '|  |', text)
        self.assertIn('* `strata-bypass`: Strata, map and bypass\n', text)
        self.assertIn('| [Reads](../bench/results/reads/table.md) (KDSep, Fig. 0) | 2026-01-02 | '
                      '3 | 1 | no |  |  |', text)
        self.assertNotIn('Not measured yet', text)
        self.assertTrue((self.results / 'reads' / 'table.md').exists())

    def test_less_may_be_better(self) -> None:
        path = self.folder / 'questions.toml'
        path.write_text(QUESTIONS.replace('"higher"', '"lower"'))
        question = questions.parse(path, self.experiments)[0].questions[0]
        answer = questions.answer(question, summary.make(self.reads, self.document()), self.all)
        assert answer is not None
        self.assertEqual(answer.strata.contender, 'strata-map')

    def test_busy_machines_are_told(self) -> None:
        document = self.document(disturbed_runs_allowed=True)
        document['runs'][0].update(foreign_cpu=0.3, disturbed=True)
        text = self.write(document)
        self.assertIn('reads/table.md) † |', text)
        self.assertIn('| maybe (`--force`), 1 of 24 runs disturbed | 30% |', text)

    def test_without_strata_nothing_is_published(self) -> None:
        text = self.write(self.document(['stock', 'stock-blobdb']))
        self.assertNotIn('reads/table.md', text)
        self.assertIn('* `reads`: Reads (KDSep, Fig. 0). Lacks `strata-map`, `strata-bypass`. '
                      'How fast are reads? How fast are skewed reads?', text)
        text = self.write(self.document(['stock', 'strata-bypass']))
        self.assertIn('| without `strata-map` |', text)
        self.assertIn('* `reads`: Reads (KDSep, Fig. 0). How fast are skewed reads?', text)

    def test_noise(self) -> None:
        self.experiments['aa'] = self.experiment(
            support.MINIMAL.replace('"base"', '"stock"'), 'aa')
        found = summary.make(self.experiments['aa'], support.document())
        found['checks'] = [{'title': 'Writes', 'apart': 0.01, 'ok': True},
                           {'title': 'Reads', 'apart': 0.05, 'ok': False}]
        summary.save(found, self.results / 'aa')
        text = self.write(self.document())
        self.assertIn('medians differed by 1.0% to 5.0%.', text)
        self.assertIn('Its bound was **not held** by: Reads.', text)

    def test_plot(self) -> None:
        self.write(self.document())
        root = xml.etree.ElementTree.parse(self.target.with_suffix('.svg')).getroot()
        texts = [item.text for item in root if item.tag.endswith('text')]
        for text in ('Reading', 'Reads', '2.00×', 'Skewed reads', '0.90×'):
            self.assertIn(text, texts)
        self.assertEqual(sum(item.tag.endswith('circle') for item in root), 2)
        self.assertIn('</svg>', chart.draw([]))

    def test_wrong_questions(self) -> None:
        for old, new, message in (
                ('"Throughput"', '"Speed"', "compare: reads has no comparison 'Speed'"),
                ('"reads"', '"writes"', 'experiment'),
                ('point = "0.8"\n', '', 'point: missing'),
                ('["strata-map"]', '["strata-maps"]', "does not measure 'strata-maps'"),
                ('"Skewed reads"', '"Reads"', "'Reads' is used twice"),
                ('better = "higher"', 'better = "faster"', 'better')):
            with self.assertRaisesRegex(DeclarationError, message):
                self.groups(QUESTIONS.replace(old, new))

    def test_what_is_in_the_repository(self) -> None:
        """The questions are well declared, and each summary gives a table."""
        bench = environment.BENCH
        everything = contenders.parse(bench / 'contenders.toml', environment.ROOT)
        declared = experiments.load_all(bench / 'experiments')
        questions.parse(bench / 'questions.toml', declared)
        for name, experiment in declared.items():
            folder: Path = bench / 'results' / name
            found: Any = results.load(summary.path(folder))
            if found is None:
                continue
            names = [plots.file_name(plot) for plot in experiment.plots
                     if (folder / plots.file_name(plot)).exists()]
            text = tables.page(experiment, found, names,
                               runner.declaration_stamp(experiment, everything))
            self.assertEqual(text.splitlines()[0], f'# {experiment.title}')
            self.assertTrue((folder / 'commands.txt').exists(), name)


if __name__ == '__main__':
    unittest.main()
