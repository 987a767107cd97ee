# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Reading experiments and contenders, and what is said about wrong ones."""
import unittest

from strata_bench import contenders, environment, experiments
from strata_bench.declarations import DeclarationError, parse_size
from strata_bench.experiments import ExperimentError
from tests import support


class SizeTest(unittest.TestCase):
    def test_sizes(self) -> None:
        self.assertEqual(parse_size('64MiB'), 64 << 20)
        self.assertEqual(parse_size('1.5 GiB'), 3 << 29)
        self.assertEqual(parse_size(4096), 4096)
        for wrong in ('64MB', 'MiB', 1.5, True, None, '-1KiB'):
            self.assertIsNone(parse_size(wrong), wrong)


class ExperimentTest(support.FolderTest):
    def refused(self, text: str, *words: str) -> None:
        with self.assertRaises(DeclarationError) as caught:
            self.experiment(text)
        for word in ('reads.toml',) + words:
            self.assertIn(word, str(caught.exception))

    def changed(self, old: str, new: str) -> str:
        self.assertIn(old, support.MINIMAL)
        return support.MINIMAL.replace(old, new)

    def test_full(self) -> None:
        experiment = self.experiment()
        self.assertEqual([point.label for point in experiment.points], ['0.8', '1.2'])
        phase = experiment.phases[0]
        self.assertEqual((phase.database, phase.workload, phase.ops), ('loaded', 'ycsbc', 4000))
        self.assertEqual(experiment.comparisons[0].paper_number('fast', '0.8'), 1.5)
        self.assertIsNone(experiment.comparisons[0].paper_number('fast', '1.2'))
        self.assertEqual(experiment.comparisons[0].paper_number('future', '1.2'), 3)

    def test_minimal_is_correct(self) -> None:
        experiment = self.experiment(support.MINIMAL)
        self.assertEqual(experiment.pairs, 3)
        self.assertEqual(experiment.comparisons[0].phases, ['read'])

    def test_no_toml(self) -> None:
        self.refused('title = ', 'Invalid value')

    def test_missing_key(self) -> None:
        self.refused(self.changed('summary = "S"\n', ''), 'summary', 'missing')

    def test_unknown_key(self) -> None:
        self.refused(self.changed('ops = 10', 'ops = 10\nopps = 10'), 'phase[0].opps', 'unknown')

    def test_wrong_type(self) -> None:
        self.refused(self.changed('records = 16000', 'records = "many"'), 'dataset.records',
                     'integer')

    def test_boolean_is_no_integer(self) -> None:
        self.refused(self.changed('records = 16000', 'records = true'), 'dataset.records')

    def test_unknown_benchmark(self) -> None:
        self.refused(self.changed('"ycsbc"', '"ycsbz"'), 'phase[0].benchmarks', 'ycsbz')

    def test_two_workloads(self) -> None:
        self.refused(self.changed('"ycsbc"', '"ycsbc,ycsba"'), 'more than one workload')

    def test_ops_and_seconds(self) -> None:
        self.refused(self.changed('ops = 10', 'ops = 10\nseconds = 1'), 'phase[0].ops')
        self.refused(self.changed('ops = 10', ''), 'phase[0].ops')

    def test_unknown_metric(self) -> None:
        self.refused(self.changed('"ops_per_sec"', '"speed"'), 'compare[0].metric', 'speed')

    def test_unknown_phase(self) -> None:
        self.refused(support.MINIMAL + 'phase = "write"\n', 'compare[0].phase', 'write')

    def test_within_needs_against(self) -> None:
        self.refused(support.MINIMAL + 'within = 0.03\n', 'compare[0].within', 'against')

    def test_first_phase_cannot_continue(self) -> None:
        self.refused(self.changed('ops = 10', 'ops = 10\ndatabase = "continue"'),
                     'phase[0].database')

    def test_load_needs_empty(self) -> None:
        self.refused(self.changed('"ycsbc"\nops = 10', '"ycsbload"\ndatabase = "loaded"'),
                     'phase[0].database', 'empty')

    def test_same_label_twice(self) -> None:
        self.refused(support.EXPERIMENT.replace('[0.8, 1.2]', '[0.8, 0.8]'), 'sweep.values')

    def test_flag_with_dashes(self) -> None:
        self.refused(self.changed('ops = 10', 'ops = 10\nflags = { "--x" = 1 }'),
                     'phase[0].flags.--x')

    def test_unknown_contender(self) -> None:
        experiment = self.experiment(self.changed('["base"]', '["nobody"]'))
        with self.assertRaises(ExperimentError) as caught:
            experiment.resolve(self.contenders())
        self.assertIn('nobody', str(caught.exception))
        self.assertIn('reads.toml', str(caught.exception))

    def test_cache_rule(self) -> None:
        experiment = self.experiment(self.changed('records = 16000', 'records = 15000'))
        with self.assertRaises(ExperimentError) as caught:
            experiment.check_cache(1.0)
        self.assertIn('15 times', str(caught.exception))
        self.assertIn('cache_size', str(caught.exception))
        self.experiment(support.MINIMAL).check_cache(1.0)

    def test_cache_scales_with_the_data(self) -> None:
        experiment = self.experiment(support.MINIMAL)
        for scale in (0.01, 1.0, 7.0):
            experiment.check_cache(scale)
        self.assertEqual(experiment.dataset_at(experiment.points[0], 0.5).records, 8000)
        self.assertEqual(experiment.dataset_at(experiment.points[0], 0.5).cache_size, 1 << 19)

    def test_point_changes_dataset(self) -> None:
        experiment = self.experiment(support.MINIMAL + '''
[sweep]
parameter = "size"
[[sweep.point]]
label = "8000"
dataset = { records = 2500, field_count = 80 }
''')
        dataset = experiment.dataset_at(experiment.points[0], 1.0)
        self.assertEqual((dataset.records, dataset.value_size), (2500, 8000))
        self.assertEqual(experiment.dataset.value_size, 1000)

    def test_variants(self) -> None:
        experiment = self.experiment(support.MINIMAL + '''
[contender.base]
flags = { marker = "other" }
[contender.twin]
extends = "base"
title = "Twin"
phase_flags = { disable_wal = true }
[contender.cousin]
extends = "base"
flags = { marker = "cousin" }
''')
        resolved = experiment.resolve(self.contenders())
        self.assertEqual(resolved['twin'].flags['marker'], 'other')
        self.assertEqual(resolved['twin'].title, 'Twin')
        self.assertEqual(resolved['cousin'].flags['marker'], 'cousin')
        # Only what loads the same shares a loaded database.
        self.assertEqual(experiment.template_owner('twin'), 'base')
        self.assertEqual(experiment.template_owner('cousin'), 'cousin')
        self.assertEqual(experiment.template_owner('base'), 'base')


class ContenderTest(support.FolderTest):
    def test_extends(self) -> None:
        parsed = self.contenders()
        self.assertEqual(parsed['fast'].binary, support.FAKE)
        self.assertEqual(parsed['fast'].flags, {'marker': 'fast', 'speed': '2'})
        self.assertEqual(parsed['base'].flags, {'marker': 'base'})

    def test_extends_what_stands_below(self) -> None:
        with self.assertRaisesRegex(DeclarationError, r'contenders.toml: a.extends: .b.'):
            self.contenders('[a]\ntitle = "A"\nextends = "b"\n[b]\ntitle = "B"\nprogram = "x"\n')

    def test_help(self) -> None:
        text = 'x:\n  -cache_size (Number of\n     -1 for none) type: int64\n    -db (Use it) type'
        self.assertEqual(contenders.known_flags(text), {'cache_size', 'db'})

    def test_availability(self) -> None:
        programs = contenders.Programs()
        parsed = self.contenders()
        programs.check(parsed['fast'], parsed['fast'].flags)
        with self.assertRaisesRegex(contenders.NotAvailable, '--enable_everything'):
            programs.check(parsed['future'], parsed['future'].flags)
        parsed['base'].binary = self.folder / 'nothing'
        with self.assertRaisesRegex(contenders.NotAvailable, 'is not built'):
            programs.check(parsed['base'], [])

    def test_replace_program(self) -> None:
        parsed = self.contenders()
        contenders.replace_program(parsed, 'base', self.folder / 'other')
        self.assertEqual(parsed['fast'].binary, self.folder / 'other')


class ShippedTest(unittest.TestCase):
    """The declarations of the project itself."""

    def test_all_are_well_declared(self) -> None:
        parsed = contenders.parse(environment.BENCH / 'contenders.toml', environment.ROOT)
        loaded = experiments.load_all(environment.BENCH / 'experiments')
        for experiment in loaded.values():
            with self.subTest(experiment.name):
                experiment.resolve(parsed)
                experiment.check_cache(1.0)
                experiment.check_cache(0.01)
                self.assertGreater(len(experiment.contenders), 1)

    def test_figures(self) -> None:
        loaded = experiments.load_all(environment.BENCH / 'experiments')
        text = ' '.join(f'{item.paper} {item.figure}' for item in loaded.values())
        for figure in ('wayfinder Fig. 3', 'tandem Fig. 2', 'tandem Fig. 3', 'tandem Fig. 4a',
                       'tandem Fig. 4b', 'tandem Fig. 5', 'tandem Fig. 6', 'kdsep Fig. 2',
                       'kdsep Fig. 9', 'kdsep Fig. 10', 'kdsep Fig. 11', 'kdsep Fig. 12',
                       'kdsep Fig. 13', 'kdsep Fig. 14a', 'kdsep Fig. 14b', 'kdsep Fig. 16',
                       'kdsep Fig. 17', 'kdsep Fig. 18', 'tiered Fig. 10', 'tiered Fig. 13'):
            self.assertIn(figure, text)


if __name__ == '__main__':
    unittest.main()
