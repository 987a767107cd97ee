# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Medians, ratios, the order of runs, numbers out of reports, tables."""
import unittest
from typing import Any, Dict, Optional

from strata_bench import experiments, metrics, plots, progress, stats, summary, tables
from tests import support

BOUNDED = support.EXPERIMENT.replace('against = "base"', 'against = "base"\nwithin = 0.03', 1)


class StatsTest(unittest.TestCase):
    def test_summary(self) -> None:
        summary = stats.summarise([3.0, None, 1.0, 10.0])
        assert summary is not None
        self.assertEqual((summary.median, summary.low, summary.high, summary.count),
                         (3.0, 1.0, 10.0, 3))
        even = stats.summarise([1.0, 2.0])
        assert even is not None
        self.assertEqual(even.median, 1.5)
        self.assertIsNone(stats.summarise([None, None]))

    def test_ratios_are_taken_within_pairs(self) -> None:
        # The machine got slower by ten from pair to pair; the ratio does not see it.
        ratio = stats.pair_ratios({0: 200.0, 1: 20.0, 2: 3.0}, {0: 100.0, 1: 10.0, 2: 1.0})
        assert ratio is not None
        self.assertEqual((ratio.median, ratio.low, ratio.high, ratio.count), (2.0, 2.0, 3.0, 3))

    def test_ratios_without_a_partner(self) -> None:
        ratio = stats.pair_ratios({0: 4.0, 1: None, 2: 8.0, 3: 9.0}, {0: 2.0, 1: 2.0, 2: None})
        assert ratio is not None
        self.assertEqual((ratio.median, ratio.count), (2.0, 1))
        self.assertIsNone(stats.pair_ratios({}, {}))

    def test_a_base_of_nothing_leaves_no_pair_out(self) -> None:
        for base in (0.0, -0.5):
            self.assertIsNone(stats.pair_ratios({0: 1.0, 1: 4.0}, {0: base, 1: 2.0}))
        ratio = stats.pair_ratios({0: None, 1: 4.0}, {0: 0.0, 1: 2.0})  # a pair that is none
        assert ratio is not None
        self.assertEqual((ratio.median, ratio.count), (2.0, 1))

    def test_order_alternates(self) -> None:
        self.assertEqual(stats.schedule([''], ['a', 'b'], 3), [
            (0, '', 'a'), (0, '', 'b'), (1, '', 'b'), (1, '', 'a'), (2, '', 'a'), (2, '', 'b')])

    def test_order_with_points(self) -> None:
        self.assertEqual(stats.schedule(['x', 'y'], ['a', 'b', 'c'], 2), [
            (0, 'x', 'a'), (0, 'x', 'b'), (0, 'x', 'c'),
            (0, 'y', 'a'), (0, 'y', 'b'), (0, 'y', 'c'),
            (1, 'x', 'c'), (1, 'x', 'b'), (1, 'x', 'a'),
            (1, 'y', 'c'), (1, 'y', 'b'), (1, 'y', 'a')])

    def test_time_left(self) -> None:
        self.assertIsNone(progress.estimate({}, [(0, 'x', 'a')]))
        done = {(0, 'x', 'a'): 10.0, (0, 'x', 'b'): 30.0, (0, 'y', 'a'): 50.0}
        self.assertEqual(progress.estimate(done, [(1, 'x', 'a')]), 10.0)
        self.assertEqual(progress.estimate(done, [(1, 'y', 'b')]), 50.0)
        self.assertEqual(progress.estimate(done, [(1, 'z', 'a')]), 30.0)
        self.assertEqual(progress.estimate(done, [(1, 'z', 'c'), (1, 'x', 'a')]), 40.0)
        self.assertEqual(progress.duration(3725), '1:02:05')
        self.assertEqual(progress.duration(65), '1:05')


class MetricsTest(unittest.TestCase):
    def value(self, metric: str, *reports: Dict[str, Any], benchmark: Optional[str] = None
              ) -> Optional[float]:
        self.assertIsNone(metrics.problem(metric))
        run = {'error': None, 'phases': {'p': list(reports)}}
        return metrics.value(run, metric, ['p'], benchmark)

    def test_fields(self) -> None:
        report = support.report(latency_us={'read': {'p99': 7, 'p99.9': 8, 'p99.99': 9}},
                                db={'wal': 'x'})
        self.assertEqual(self.value('latency_us.read.p99', report), 7)
        self.assertEqual(self.value('latency_us.read.p99.9', report), 8)
        self.assertEqual(self.value('latency_us.read.p99.99', report), 9)
        self.assertIsNone(self.value('latency_us.merge.p99', report))
        self.assertIsNone(self.value('latency_us.read', report))
        self.assertIsNone(self.value('db.wal', report))

    def test_of_the_workload_or_of_another(self) -> None:
        reports = (support.report(ops_per_sec=5.0), {'benchmark': 'flush', 'ops_per_sec': 9.0})
        self.assertEqual(self.value('ops_per_sec', *reports), 5.0)
        self.assertEqual(self.value('ops_per_sec', *reports, benchmark='flush'), 9.0)
        self.assertIsNone(self.value('ops_per_sec', *reports, benchmark='compact'))

    def test_failed_run_has_no_numbers(self) -> None:
        run = {'error': 'boom', 'phases': {'p': [support.report(ops_per_sec=5.0)]}}
        self.assertIsNone(metrics.value(run, 'ops_per_sec', ['p']))

    def test_derived(self) -> None:
        report = support.report(ops=10, seconds=2.0, logical_bytes=100,
                         process={'read_bytes': 100, 'write_bytes': 50, 'cpu_user_seconds': 3.0,
                                  'cpu_system_seconds': 1.0},
                         timeseries={'ops_per_sec': [999, 1, 2, 3, 999],
                                     'db_bytes': [10, 250, None, 40]})
        self.assertEqual(self.value('io_bytes', report), 150)
        self.assertEqual(self.value('read_bytes_per_op', report), 10)
        self.assertEqual(self.value('cpu_cores', report), 2.0)
        self.assertEqual(self.value('cpu_us_per_op', report), 400000)
        self.assertEqual(self.value('peak_space_amplification', report), 2.5)
        variation = self.value('throughput_variation', report)
        assert variation is not None
        self.assertAlmostEqual(variation, (2 / 3) ** 0.5 / 2)

    def test_what_was_cancelled_was_not_written(self) -> None:
        report = support.report(ops=10, user_bytes_written=100, process={
            'read_bytes': 30, 'write_bytes': 500, 'cancelled_write_bytes': 300})
        after = {'benchmark': 'waitforcompaction', 'ops': 0, 'user_bytes_written': 0,
                 'process': {'read_bytes': 5, 'write_bytes': 100, 'cancelled_write_bytes': 0}}
        self.assertEqual(self.value('io_bytes', report), 230)
        self.assertEqual(self.value('write_bytes_per_op', report), 20)
        self.assertEqual(self.value('total_write_bytes', report, after), 300)
        self.assertEqual(self.value('total_io_bytes', report, after), 335)
        self.assertEqual(self.value('total_write_amplification', report, after), 3.0)

    def test_scans_beside_writes(self) -> None:
        report = support.report(ops=1000, seconds=2.0, latency_us={'scan': {'count': 30},
                                                            'update': {'count': 970}})
        self.assertEqual(self.value('scans_per_sec', report), 15.0)
        self.assertEqual(metrics.unit('scans_per_sec'), 'scans/s')
        self.assertEqual(metrics.unit('latency_us.update.count'), '')
        self.assertEqual(metrics.unit('latency_us.update.p99'), 'µs')

    def test_totals(self) -> None:
        reports = (support.report(ops=10, seconds=1.0, user_bytes_written=100,
                           process={'write_bytes': 150}),
                   support.report(ops=20, seconds=2.0, user_bytes_written=100,
                           process={'write_bytes': 150}),
                   {'benchmark': 'flush', 'ops': 1, 'seconds': 9.0, 'user_bytes_written': 0,
                    'process': {'write_bytes': 100}})
        self.assertEqual(self.value('total_throughput', *reports), 10.0)
        self.assertEqual(self.value('total_write_amplification', *reports), 2.0)
        self.assertEqual(self.value('total_seconds', *reports), 12.0)

    def test_space_of_blob_files(self) -> None:
        def waited(size: int, *sizes: Optional[int]) -> Dict[str, Any]:
            return {'benchmark': 'waitforcompaction', 'db': {'blob_bytes': size},
                    'timeseries': {'blob_bytes': list(sizes)}}

        load = support.report(timeseries={'blob_bytes': [50, 900]})
        update = support.report(timeseries={'blob_bytes': [110, None, 130, 120]})
        metric = 'peak_blob_space_amplification'
        # What the load had before it was done does not count, what waiting had does.
        self.assertEqual(self.value(metric, load, waited(100, 300), update), 1.3)
        self.assertEqual(
            self.value(metric, load, waited(100), update, waited(90, 140, 90)), 1.4)
        self.assertIsNone(self.value(metric, load, waited(100, 300)))
        self.assertIsNone(self.value(metric, load, waited(0), update))
        self.assertIsNone(self.value(metric, load, update))
        self.assertEqual(metrics.unit(metric), '')


class TableTest(support.FolderTest):
    def test_waiting_is_no_throughput(self) -> None:
        run = {'phases': {'p': [
            support.report(seconds=2.0, timeseries={'seconds': [1, 2], 'ops_per_sec': [5, 6],
                                             'db_bytes': [10, 20]}),
            {'benchmark': 'waitforcompaction', 'seconds': 5.0,
             'timeseries': {'seconds': [1], 'ops_per_sec': [0], 'db_bytes': [15]}}]}}
        plot = experiments.Plot('timeline', 'ops_per_sec', ['p'], 'T')
        self.assertEqual(plots.timeline(run, plot), ([1.0, 2.0], [5, 6]))
        plot.metric = 'db_bytes'
        self.assertEqual(plots.timeline(run, plot), ([1.0, 2.0, 3.0], [10, 20, 15]))

    def compared(self, document: Dict[str, Any], text: str = support.EXPERIMENT) -> str:
        """The table of the experiment's first comparison."""
        experiment = self.experiment(text)
        return tables.comparison(experiment, experiment.comparisons[0],
                                 summary.make(experiment, document))

    def page(self, document: Dict[str, Any], *more: Any) -> str:
        experiment = self.experiment()
        return tables.page(experiment, summary.make(experiment, document), *more)

    def test_rows(self) -> None:
        text = self.compared(support.document())
        self.assertIn('| skew | contender | median | min … max | runs | to Base | paper |', text)
        self.assertIn('| 0.8 | Base | 101 op/s | 100 op/s … 102 op/s | 3 |  |  |', text)
        self.assertIn('| 0.8 | Fast | 201 op/s | 200 op/s … 202 op/s | 3 | '
                      '**1.99×** (1.98 … 2.00) | 1.50× |', text)
        self.assertIn('| 1.2 | Fast | 2,001 op/s |', text)
        self.assertIn('Paper, for future (not measured here yet): 3.00×.', text)

    def test_environment(self) -> None:
        document = support.document()
        self.assertEqual(tables.environment_line(document), 'C, None CPUs, on')
        document['programs'] = {'base': {'built_for': 'x'}, 'fast': {'built_for': 'x'}, 'fio': {}}
        self.assertEqual(tables.environment_line(document), 'C, None CPUs, on, PORTABLE=x')
        document['programs']['fast']['built_for'] = 'y'
        self.assertEqual(tables.environment_line(document),
                         'C, None CPUs, on, PORTABLE=x (base), PORTABLE=y (fast)')

    def test_failed_runs(self) -> None:
        document = support.document()
        for run in document['runs']:
            if run['contender'] == 'fast' and run['point'] == '1.2':
                run['error'] = 'read: db_bench: exit code 1\nput error'
        text = self.page(document, ['plot.png'])
        self.assertIn('| 1.2 | Fast | failed |', text)
        self.assertIn('* pair 1, fast, 1.2:', text)
        self.assertIn('put error', text)
        self.assertIn('Not available yet: `future` (not built).', text)
        self.assertIn('![Reads](plot.png)', text)
        self.assertIn('(commands.txt)', text)
        self.assertNotIn('db_bench base', text)

    def test_no_number_is_shown(self) -> None:
        document = support.document()
        for run in document['runs']:
            if run['contender'] == 'fast':
                run['phases']['read'][0]['ops_per_sec'] = None
        text = self.compared(document)
        self.assertIn('| 0.8 | Fast | no number |  | 0 |  | 1.50× |', text)
        self.assertIn('| 0.8 | Base | 101 op/s |', text)
        document['kinds'] = {'base': 'db_bench', 'fast': 'fio'}  # does not write, for example
        self.assertNotIn('Fast', self.compared(document))

    def test_no_ratio_is_shown(self) -> None:
        document = support.document()
        for run in document['runs']:
            if run['contender'] == 'base':
                run['phases']['read'][0]['ops_per_sec'] = 0.0
        self.assertIn('| no ratio: 201 op/s to 0.00 op/s |', self.compared(document))

    def test_a_bound_is_not_held_by_absence(self) -> None:
        experiment = self.experiment(BOUNDED)
        for lacking in ('base', 'fast'):
            document = support.document()
            for run in document['runs']:
                if run['contender'] == lacking and run['point'] == '0.8':
                    run['phases']['read'][0]['ops_per_sec'] = None
            checks = summary.make(experiment, document)['checks']
            self.assertEqual((checks[0]['ok'], checks[0]['apart']), (False, None))
            text = self.compared(document, BOUNDED)
            self.assertIn('Medians at 0.8 cannot be compared: a number is missing; the bound is '
                          '3%: **not held**.', text)
        for names in (['base'], ['fast']):
            document = support.document()
            document['contenders'] = names
            document['runs'] = [run for run in document['runs'] if run['contender'] in names]
            checks = summary.make(experiment, document)['checks']
            self.assertEqual([check['ok'] for check in checks], [False, False])

    def test_all_commands(self) -> None:
        document = support.document()
        for run in document['runs']:
            run['commands'] = {'read': f'db_bench --seed={run["pair"]} --a=1 --x={run["point"]} '
                                       f'--marker={run["contender"]}'}
        document['experiment'] = 'reads'
        text = tables.commands_page(document)
        self.assertEqual(text, '''# reads, today. Each pair, point and phase had another --seed.
# base, read
db_bench --a=1 --marker=base
    0.8: --x=0.8
    1.2: --x=1.2
# fast, read
db_bench --a=1 --marker=fast
    0.8: --x=0.8
    1.2: --x=1.2
''')

    def test_what_disturbed(self) -> None:
        document = support.document()
        self.assertNotIn('Disturbed', self.page(document, []))
        document['runs'][0].update(repeated_for_foreign_cpu=0.4, disturbed=False)
        document['runs'][1].update(repeated_for_foreign_cpu=0.4, disturbed=True)
        document['probes'] = [{'pair': 0, 'reads_per_sec': 20000.0},
                              {'pair': 1, 'reads_per_sec': 25000.0}, {'pair': 2, 'error': 'x'}]
        text = self.page(document, [])
        self.assertIn('while 2 of 12 runs were measured', text)
        self.assertIn('2 were repeated, 1 disturbed ones are among the numbers', text)
        self.assertIn('20,000 … 25,000 random reads', text)

    def test_older_declaration(self) -> None:
        document = support.document()
        document['declaration'] = 'abc'
        self.assertNotIn('older declaration', self.page(document, [], 'abc'))
        self.assertIn('**Measured with an older declaration**', self.page(document, [], 'def'))

    def test_incomplete(self) -> None:
        document = support.document()
        document['state'], document['runs'] = 'partial', document['runs'][:5]
        document['stopped_by'] = 'SIGINT'
        text = self.page(document, [])
        self.assertIn('**Incomplete:** 5 of 12 runs, ended by: SIGINT.', text)

    def test_numbers(self) -> None:
        self.assertEqual(tables.number(1234567, 'op/s'), '1,234,567 op/s')
        self.assertEqual(tables.number(12.345, 'µs'), '12.3 µs')
        self.assertEqual(tables.number(1.234, ''), '1.23')
        self.assertEqual(tables.number(0.01234, ''), '0.0123')
        self.assertEqual(tables.number(0, 's'), '0.00 s')
        self.assertEqual(tables.number(1.5e9, 'B'), '1.50 GB')
        self.assertEqual(tables.number(900, 'B'), '900 B')

    def test_checks(self) -> None:
        experiment, document = self.experiment(BOUNDED), support.document()
        checks = summary.make(experiment, document)['checks']
        self.assertEqual([check['ok'] for check in checks], [False, False])
        for run in document['runs']:
            run['phases']['read'][0]['ops_per_sec'] = 102.0 if run['contender'] == 'fast' else 100.0
        checks = summary.make(experiment, document)['checks']
        self.assertEqual([check['ok'] for check in checks], [True, True])
        self.assertAlmostEqual(checks[0]['apart'], 0.02)
        self.assertIn('Medians at 0.8 are 2.0% apart; the bound is 3%: held.',
                      self.compared(document, BOUNDED))


if __name__ == '__main__':
    unittest.main()
