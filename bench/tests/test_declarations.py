# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Reading experiments and contenders, and what is said about wrong ones."""
import unittest

from strata_bench import commands, contenders, environment, estimate, experiments, scaling
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
            self.check_caches(experiment)
        self.assertIn('15 times', str(caught.exception))
        self.assertIn('cache_size', str(caught.exception))
        self.check_caches(self.experiment(support.MINIMAL))

    def check_caches(self, experiment: experiments.Experiment, scale: float = 1.0) -> None:
        commands.check_caches(experiment, experiment.resolve(self.contenders()), scale)

    def test_every_cache_counts(self) -> None:
        # 16,384,000 bytes of data, 1 MiB of block cache: 43,690 bytes are left for others.
        for where, what in (('[options]', ''), ('[contender.base.flags]', ''),
                            ('[contender.base.phase_flags]', ''),
                            ('[sweep]\nparameter = "x"\n[[sweep.point]]\nlabel = "p"\n', 'flags.')):
            for cache in commands.OTHER_CACHES:
                small = f'{support.MINIMAL}\n{where}\n{what}{cache} = 43_000\n'
                self.check_caches(self.experiment(small))
                large = f'{support.MINIMAL}\n{where}\n{what}{cache} = 44_000\n'
                with self.assertRaisesRegex(ExperimentError, rf'cache_size \+ {cache} of base'):
                    self.check_caches(self.experiment(large))

    def test_shares_of_the_data(self) -> None:
        experiment = self.experiment(support.MINIMAL + '''
[options]
row_cache_size = "{data/50}"
[contender.base.flags]
delta_max_buckets = "{data/64KiB}"
''')
        base = experiment.resolve(self.contenders())['base']
        for scale in (1.0, 0.5):
            for flags in (commands.load_flags(experiment, base, experiment.points[0], scale),
                          commands.phase_flags(experiment, base, experiment.points[0],
                                               experiment.phases[0], scale, 1)):
                self.assertEqual(flags['row_cache_size'], str(round(16_384_000 * scale / 50)))
                self.assertEqual(flags['delta_max_buckets'], str(round(250 * scale)))
        self.refused(support.MINIMAL + '[options]\nrow_cache_size = "{database/50}"\n',
                     'options.row_cache_size', '{data/15}')

    def test_sizes_scale(self) -> None:
        experiment = self.experiment(support.MINIMAL + '''
[scaled_options]
write_buffer_size = "1MiB"
''')
        base = experiment.resolve(self.contenders())['base']

        def size(scale: float) -> int:
            return int(commands.load_flags(experiment, base, experiment.points[0], scale)
                       ['write_buffer_size'])

        self.assertEqual((size(1.0), size(0.5)), (1 << 20, 1 << 19))
        self.assertEqual(size(0.001), experiments.MIN_SCALED_SIZE)

    def test_debts_of_a_phase_are_its_own(self) -> None:
        writes = self.changed('"ycsbc"', '"ycsba"')
        self.experiment(writes)  # nothing looks at what it leaves behind
        more = '''
[[phase]]
name = "after"
benchmarks = "ycsbc"
ops = 10
[[compare]]
title = "Again"
metric = "ops_per_sec"
phase = "read"
'''
        writes_and_more = writes.replace('metric = "ops_per_sec"',
                                         'metric = "ops_per_sec"\nphase = "read"') + more
        self.refused(writes_and_more, 'phase[0].benchmarks', 'flush,waitforcompaction',
                     'goes on from it')
        self.experiment(writes_and_more.replace('"ycsba"', '"ycsba,flush,waitforcompaction"'))
        self.experiment(writes_and_more.replace('"ycsba"', '"ycsbmix"').replace(
            'ops = 10\n', 'ops = 10\nflags = { ycsb_mix = "read:90,scan:10" }\n', 1))
        self.experiment(writes_and_more.replace('"ycsbc"', '"ycsbc"\ndatabase = "loaded"'))

    def test_bytes_are_compared_when_all_is_written(self) -> None:
        writes = self.changed('"ycsbc"', '"ycsba"')
        settled = self.changed('"ycsbc"', '"ycsba,flush,waitforcompaction"')
        for metric in ('total_write_amplification', 'total_io_bytes', 'paths.slow_bytes'):
            self.refused(writes.replace('ops_per_sec', metric), 'counts what it wrote')
            self.experiment(settled.replace('ops_per_sec', metric))
        for metric in ('write_amplification', 'io_bytes'):
            self.refused(settled.replace('ops_per_sec', metric), metric, 'total_')
        for metric in ('db.total_bytes', 'space_amplification'):
            text = settled.replace('ops_per_sec', metric)
            self.refused(text, metric, 'benchmark = "waitforcompaction"')
            self.experiment(text + 'benchmark = "waitforcompaction"\n')
        self.experiment(support.MINIMAL.replace('ops_per_sec', 'db.total_bytes'))  # reads only

    def test_points_settle_too(self) -> None:
        text = self.changed('"ycsbc"', '"ycsba,flush,waitforcompaction"').replace(
            'ops_per_sec', 'total_io_bytes') + '''
[sweep]
parameter = "workload"
[[sweep.point]]
label = "B"
benchmarks = "ycsbb"
'''
        self.refused(text, 'flush,waitforcompaction')
        self.experiment(text.replace('"ycsbb"', '"ycsbb,flush,waitforcompaction"'))

    def test_load(self) -> None:
        self.assertEqual(self.experiment(support.MINIMAL).load.count(5), 3)
        self.assertEqual(self.experiment(support.MINIMAL).load.count(2), 2)
        text = support.MINIMAL + '[load]\n'
        self.assertEqual(self.experiment(text + 'templates = 1\n').load.count(5), 1)
        self.assertEqual(self.experiment(text + 'per_pair = true\n').load.count(5), 5)
        self.assertIsNone(self.experiment(text).load.contender)
        self.refused(text + 'benchmarks = "ycsbload"\n', 'load.benchmarks', 'waitforcompaction')
        self.refused(text + 'churn = { benchmarks = "rmw", ops = 5 }\n', 'load.churn.benchmarks')

    def test_factors(self) -> None:
        experiment = self.experiment(support.EXPERIMENT + '''
[paper_sizes]
records = 3_200_000
data = "3200MiB"
operations = { read = 800_000 }
[paper_sizes.flags]
cache_size = "64MiB"
''')
        found = scaling.factors(experiment, experiment.resolve(self.contenders()), 0.5)
        self.assertEqual(scaling.text(found), 'records 1/200, data 1/205, operations 1/400, '
                         'operations per record 0.125 (paper: 0.25), cache_size 1/128')
        self.refused(support.MINIMAL + '[paper_sizes]\noperations = { write = 1 }\n',
                     'paper_sizes.operations.write')

    def test_cache_scales_with_the_data(self) -> None:
        experiment = self.experiment(support.MINIMAL)
        for scale in (0.01, 1.0, 7.0):
            self.check_caches(experiment, scale)
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

    def test_sweep_for_some(self) -> None:
        text = support.MINIMAL + '''
[contender.twin]
extends = "fast"
[sweep]
parameter = "x"
flag = "x"
values = [7]
only = ["fast"]
'''
        experiment = self.experiment(text)
        resolved = experiment.resolve(self.contenders())
        for name, value in (('base', None), ('fast', '7'), ('twin', '7')):
            flags = commands.phase_flags(experiment, resolved[name], experiment.points[0],
                                         experiment.phases[0], 1.0, 0)
            self.assertEqual(flags.get('x'), value, name)
        wrong = self.experiment(text.replace('only = ["fast"]', 'only = ["fats"]'))
        with self.assertRaisesRegex(ExperimentError, "sweep.only: no contender 'fats'"):
            wrong.resolve(self.contenders())

    def test_one_loads_for_all(self) -> None:
        text = support.MINIMAL + '''
[contender.twin]
extends = "base"
[load]
contender = "base"
'''
        experiment = self.experiment(text.replace('["base"]', '["base", "twin"]'))
        experiment.resolve(self.contenders())
        self.assertEqual(experiment.template_owner('twin'), 'base')
        for names, loader, words in (('["base", "fast"]', 'base', 'fast has other flags'),
                                     ('["base"]', 'nobody', "no contender 'nobody'")):
            wrong = self.experiment(text.replace('["base"]', names)
                                    .replace('contender = "base"', f'contender = "{loader}"'))
            with self.assertRaisesRegex(ExperimentError, words):
                wrong.resolve(self.contenders())


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

    def test_built_for(self) -> None:
        program = self.folder / 'db_bench'
        self.assertEqual(contenders.built_for(program), '')
        cache = self.folder / 'CMakeCache.txt'
        cache.write_text('//PORTABLE:x\nPORTABLE:STRING=haswell\nPORTABLE_ELSE:STRING=1\n')
        self.assertEqual(contenders.built_for(program), 'haswell')
        cache.write_text('NOTHING:STRING=1\n')
        self.assertEqual(contenders.built_for(program), '')

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
                resolved = experiment.resolve(parsed)
                commands.check_caches(experiment, resolved, 1.0)
                commands.check_caches(experiment, resolved, 0.01)
                self.assertGreater(len(experiment.contenders), 1)

    def setUp(self) -> None:
        self.contenders = contenders.parse(environment.BENCH / 'contenders.toml', environment.ROOT)
        self.loaded = experiments.load_all(environment.BENCH / 'experiments')

    def test_sizes_are_scaled(self) -> None:
        for experiment in self.loaded.values():
            with self.subTest(experiment.name):
                for name in ('write_buffer_size', 'target_file_size_base',
                             'max_bytes_for_level_base', 'blob_file_size',
                             'soft_pending_compaction_bytes_limit',
                             'hard_pending_compaction_bytes_limit'):
                    self.assertIn(name, experiment.scaled_options)
                    # A contender's flag would win.
                    for contender in experiment.resolve(self.contenders).values():
                        self.assertNotIn(name, contender.flags)
                if experiment.paper != 'none':
                    self.assertTrue(scaling.factors(experiment, experiment.resolve(self.contenders),
                                                    1.0))

    def test_as_many_deltas_to_a_value_as_in_the_paper(self) -> None:
        for name in ('kdsep-fig2', 'kdsep-fig9', 'kdsep-fig10-up2x', 'kdsep-fig12-read-ratio',
                     'kdsep-fig13-skew', 'kdsep-fig16-split', 'kdsep-fig17-logging'):
            experiment = self.loaded[name]
            paper = experiment.paper_sizes
            assert paper.records is not None
            phase = experiment.phases[0]
            assert phase.ops is not None
            with self.subTest(name):
                here = phase.ops / experiment.dataset.records
                there = paper.operations[phase.name] / paper.records
                self.assertAlmostEqual(here / there, 1, delta=0.1)
                self.assertAlmostEqual(paper.records / experiment.dataset.records
                                       / (paper.operations[phase.name] / phase.ops), 1, delta=0.1)

    def test_buckets_go_with_the_data(self) -> None:
        for experiment in self.loaded.values():
            resolved = experiment.resolve(self.contenders)
            for name in experiment.contenders:
                if resolved[name].flags.get('enable_delta_separation') != 'true':
                    continue
                for point in experiment.points:
                    flags = commands.load_flags(experiment, resolved[name], point, 1.0)
                    data = experiment.dataset_at(point, 1.0).bytes
                    share = int(flags['delta_max_buckets']) * (256 << 10) / data
                    self.assertAlmostEqual(share, 0.08 if 'up2x' not in experiment.name else 0.15,
                                           delta=0.01)

    def test_ten_minutes_for_the_contenders_of_today(self) -> None:
        for experiment in self.loaded.values():
            resolved = experiment.resolve(self.contenders)
            stock = self.contenders['stock'].binary
            today = [resolved[name] for name in experiment.contenders
                     if resolved[name].binary == stock or resolved[name].kind == 'fio'
                     or name == 'strata']
            if not any(item.kind != 'fio' for item in today):
                today = [resolved[name] for name in experiment.contenders]
            spent = estimate.seconds(experiment, today, experiment.pairs, 1.0)
            limit = 3600 if experiment.name.endswith('-large') else 600
            with self.subTest(experiment.name):
                self.assertLess(spent, limit)
                self.assertGreater(spent, 120)

    def test_seeds_are_never_shared(self) -> None:
        for experiment in self.loaded.values():
            base = self.contenders['stock']
            bases = [commands.load_flags(experiment, base, experiment.points[0], 1.0, generation)
                     ['seed'] for generation in range(experiment.load.count(10))]
            for pair in range(10):
                for point in experiment.points:
                    if pair < experiment.load.count(10) and experiment.load.churn is not None:
                        bases.append(str(commands.seed(pair, point.label, commands.CHURN_SEED)))
                    bases += [str(commands.seed(pair, point.label, phase.name))
                              for phase in experiment.phases]
            threads = [int(text) + n + 1 for text in bases for n in range(64)]
            self.assertEqual(len(threads), len(set(threads)), experiment.name)

    def test_seed(self) -> None:
        self.assertEqual(commands.seed(1, 'a', 'read'), commands.seed(1, 'a', 'read'))
        self.assertLess(commands.seed(1, 'a', 'read'), 1 << 40)
        self.assertEqual(len({commands.seed(0, 'a', 'read'), commands.seed(1, 'a', 'read'),
                              commands.seed(0, 'b', 'read'), commands.seed(0, 'a', 'write')}), 4)

    def test_what_all_databases_get(self) -> None:
        flags = commands.BASE_FLAGS
        self.assertEqual(flags['ops_between_duration_checks'], '1')
        self.assertEqual(flags['wal_bytes_per_sync'], str(512 * 1024))

    def test_the_device_and_memory_stand_beside(self) -> None:
        for name in ('wayfinder-fig3', 'tandem-fig4-uniform', 'tandem-fig4-zipf'):
            self.assertIn('fio', self.loaded[name].contenders)
            self.assertTrue(any(phase.fio for phase in self.loaded[name].phases))
        for name in ('wayfinder-fig3', 'tandem-fig2', 'tandem-fig3', 'tandem-fig4-uniform',
                     'tandem-fig4-zipf', 'tandem-fig5'):
            self.assertIn('process.peak_rss_bytes',
                          [item.metric for item in self.loaded[name].comparisons])

    def test_a_database_for_each_pair(self) -> None:
        for name in ('aa', 'features-off'):
            self.assertEqual(self.loaded[name].load.count(7), 7)

    def test_scans_beside_one_writer(self) -> None:
        experiment = self.loaded['tandem-fig6-scan-write']
        self.assertEqual(experiment.phases[0].workload, 'scanwhilewriting')
        self.assertEqual([(point.label, point.flags['threads']) for point in experiment.points],
                         [('1', '2'), ('16', '17')])
        self.assertEqual(experiment.comparisons[0].metric, 'scans_per_sec')

    def test_figures(self) -> None:
        loaded = self.loaded
        text = ' '.join(f'{item.paper} {item.figure}' for item in loaded.values())
        for figure in ('wayfinder Fig. 3', 'tandem Fig. 2', 'tandem Fig. 3', 'tandem Fig. 4a',
                       'tandem Fig. 4b', 'tandem Fig. 5', 'tandem Fig. 6', 'kdsep Fig. 2',
                       'kdsep Fig. 9', 'kdsep Fig. 10', 'kdsep Fig. 11', 'kdsep Fig. 12',
                       'kdsep Fig. 13', 'kdsep Fig. 14a', 'kdsep Fig. 14b', 'kdsep Fig. 16',
                       'kdsep Fig. 17', 'kdsep Fig. 18', 'tiered Fig. 10', 'tiered Fig. 13'):
            self.assertIn(figure, text)


if __name__ == '__main__':
    unittest.main()
