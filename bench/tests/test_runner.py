# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Whole experiments with a program that only looks like db_bench."""
import contextlib
import io
import json
import os
import signal
import struct
import time
import unittest
from pathlib import Path
from typing import Any, Dict, Iterator, List
from unittest import mock

from strata_bench import cli, commands, contenders, estimate, machine, plots, probe, process
from strata_bench import recovery, report, results, stats, summary, turns
from strata_bench import runner as runner_module
from strata_bench.contenders import Programs
from strata_bench.experiments import ExperimentError
from strata_bench.process import CommandFailed, Interrupted
from strata_bench.progress import Progress
from strata_bench.runner import Outcome, Runner, Settings
from tests import support

RECOVERY = support.MINIMAL.replace('ops = 10', 'seconds = 600').replace(
    '"ops_per_sec"', '"recovery_seconds"') + '''
[recovery]
min_seconds = 0.05
max_seconds = 0.1
verify_rounds = 1
'''


class RunnerTest(support.FolderTest):
    def setUp(self) -> None:
        super().setUp()
        self.output = io.StringIO()
        self.fake = support.FakeProc(self.folder / 'proc')
        for module, name, value in ((machine, 'drop_caches', 'all'),
                                    (machine, 'file_system', 'ext4'),
                                    (probe, 'measure', {'tool': 'fake', 'reads_per_sec': 9.0})):
            patch = mock.patch.object(module, name, return_value=value)
            patch.start()
            self.addCleanup(patch.stop)

    def settings(self, **changes: Any) -> Settings:
        return Settings(**dict({'root': support.FAKE.parents[2], 'data': self.folder / 'data',
                                'out': self.folder / 'results'}, **changes))

    def proc(self) -> machine.Proc:
        def sleep(_seconds: float) -> None:
            self.fake.idle_ticks += 800
            self.fake.write_cpu()
        return machine.Proc(str(self.fake.root), sleep)

    def runner(self, text: str = support.EXPERIMENT, **changes: Any) -> Runner:
        return Runner(self.experiment(text), self.contenders(), self.settings(**changes),
                      Programs(), self.proc(), Progress(self.output))

    @contextlib.contextmanager
    def compiler_after(self, benchmarks: str) -> Iterator[None]:
        """A compiler runs from the end of a run of these benchmarks on; nobody waits for it."""
        real = process.Child.ended

        def disturbed(child: process.Child, seconds: float) -> bool:
            ended = real(child, seconds)
            if ended and benchmarks in child.command:
                self.fake.process(50, 'cc1plus')
            return ended

        with mock.patch.object(process.Child, 'ended', disturbed), \
                mock.patch.object(runner_module, 'PATIENCE', 0.0):
            yield

    @contextlib.contextmanager
    def commands(self) -> Iterator[List[List[str]]]:
        """All that are started."""
        real, started = process.Child.__init__, []

        def record(child: process.Child, command: List[str], log: Path) -> None:
            started.append(command)
            real(child, command, log)

        with mock.patch.object(process.Child, '__init__', record):
            yield started

    @contextlib.contextmanager
    def interrupted_at(self, number: int) -> Iterator[None]:
        """Ctrl-C when this command, counted from 1, is started."""
        real, started = process.Child.__init__, []

        def interrupt(child: process.Child, command: List[str], log: Path) -> None:
            started.append(command)
            if len(started) == number:
                raise Interrupted('SIGINT')
            real(child, command, log)

        with mock.patch.object(process.Child, '__init__', interrupt):
            yield

    def run_it(self, text: str = support.EXPERIMENT, **changes: Any) -> Outcome:
        return self.runner(text, **changes).run()

    def saved(self, name: str = 'results.json') -> Dict[str, Any]:
        return json.loads((self.folder / 'results' / 'reads' / name).read_text())

    @staticmethod
    def keys(document: Dict[str, Any]) -> List[Any]:
        return [(run['pair'], run['point'], run['contender']) for run in document['runs']]

    def test_complete(self) -> None:
        outcome = self.run_it(pairs=2, contenders=['base', 'fast', 'future'])
        document = self.saved()
        self.assertEqual(outcome.failures, 0)
        self.assertEqual(document['state'], 'complete')
        self.assertIn('--enable_everything', document['skipped']['future'])
        self.assertIn('future: not available yet', self.output.getvalue())
        self.assertEqual(self.keys(document), [
            (0, '0.8', 'base'), (0, '0.8', 'fast'), (0, '1.2', 'base'), (0, '1.2', 'fast'),
            (1, '0.8', 'fast'), (1, '0.8', 'base'), (1, '1.2', 'fast'), (1, '1.2', 'base')])
        run = document['runs'][1]
        self.assertEqual([item['benchmark'] for item in run['phases']['read']],
                         ['ycsbc', 'waitforcompaction'])
        self.assertEqual(run['phases']['read'][0]['ops'], 4000)
        self.assertEqual(run['phases']['read'][0]['timeseries']['db_bytes'][0], 1000)
        command = run['commands']['read']
        for flag in ('--num=2000', '--threads=2', '--ycsb_zipfian_const=0.8', '--marker=fast',
                     '--cache_size=1048576', '--use_direct_reads=true',
                     f'--seed={commands.seed(0, "0.8", "read")}', '--use_existing_db=true',
                     '--ycsb_records=32000', '--wal_bytes_per_sync=524288',
                     '--ops_between_duration_checks=1'):
            self.assertIn(flag, command.split(' '))
        self.assertTrue(command.startswith('bench/tests/fake_db_bench.py '), command)
        for n, (pair, point) in ((0, (0, '0.8')), (2, (0, '1.2')), (4, (1, '0.8'))):
            self.assertIn(f'--seed={commands.seed(pair, point, "read")} ',
                          document['runs'][n]['commands']['read'])
        self.assertEqual([item['pair'] for item in document['probes']], [0, 1])
        # Each run started from the loaded state, and nothing is left of them.
        self.assertEqual(list((self.folder / 'data' / 'work').iterdir()), [])
        self.assertEqual(len(list((self.folder / 'data' / 'templates').iterdir())), 4)
        self.assertFalse((self.folder / 'results' / 'reads' / 'partial.json').exists())
        experiment = self.experiment()
        numbers = summary.Numbers(experiment.comparisons[0], summary.make(experiment, document))
        ratio = numbers.ratio('0.8', 'fast')
        assert ratio is not None
        self.assertEqual((ratio.median, ratio.count), (2.0, 2))

    def test_templates_are_kept(self) -> None:
        self.run_it(pairs=1)
        loaded = {path: path.stat().st_mtime_ns
                  for path in (self.folder / 'data' / 'templates').rglob('*.sst')}
        self.run_it(pairs=1)
        self.assertEqual(loaded, {path: path.stat().st_mtime_ns for path in
                                  (self.folder / 'data' / 'templates').rglob('*.sst')})

    def test_scale(self) -> None:
        document = self.run_it(pairs=1, scale=0.5).document
        self.assertEqual(document['dataset']['0.8']['records'], 16000)
        self.assertIn('--num=1000', document['runs'][0]['commands']['read'])
        self.assertIn('--cache_size=524288', document['runs'][0]['commands']['read'])

    def test_a_failed_run_does_not_lose_the_others(self) -> None:
        with mock.patch.dict(os.environ, {'FAKE_FAIL': 'ycsbc:fast'}):
            outcome = self.run_it(pairs=1)
        self.assertEqual(outcome.failures, 2)
        document = self.saved()
        errors = {run['contender']: run['error'] for run in document['runs']}
        self.assertIsNone(errors['base'])
        self.assertIn('exit code 1', errors['fast'])
        self.assertIn('the disk is on fire', errors['fast'])
        self.assertIn('the disk is on fire', self.output.getvalue())

    def test_a_failed_load(self) -> None:
        with mock.patch.dict(os.environ, {'FAKE_FAIL': 'ycsbload:fast'}):
            outcome = self.run_it(pairs=2)
        self.assertEqual(outcome.failures, 4)
        self.assertEqual(outcome.document['state'], 'complete')
        self.assertIn('the load failed before', outcome.document['runs'][-1]['error']
                      if outcome.document['runs'][-1]['contender'] == 'fast'
                      else outcome.document['runs'][-2]['error'])

    def test_nothing_but_failures_is_no_result(self) -> None:
        with mock.patch.dict(os.environ, {'FAKE_FAIL': 'ycsbc:base'}):
            outcome = self.run_it(support.MINIMAL, pairs=1)
        self.assertEqual(outcome.stopped, 'every run failed')
        self.assertFalse((self.folder / 'results' / 'reads' / 'results.json').exists())
        self.assertTrue((self.folder / 'results' / 'reads' / 'partial.json').exists())

    def test_interrupt_and_resume(self) -> None:
        self.run_it(pairs=1)
        before = self.saved()
        # Two templates for the second pair, then the third round's first command.
        with self.interrupted_at(7):
            outcome = self.run_it(pairs=2)
        self.assertEqual(outcome.interrupted, 'SIGINT')
        partial = self.saved('partial.json')
        self.assertEqual((partial['state'], partial['stopped_by']), ('partial', 'SIGINT'))
        self.assertEqual(len(partial['runs']), 4)
        self.assertEqual(self.saved(), before, 'the last complete result stays')
        self.assertEqual(list((self.folder / 'data' / 'work').iterdir()), [])

        with self.commands() as again:
            outcome = self.run_it(pairs=2, resume=True)
        self.assertEqual(len(again), 4)
        self.assertEqual([item['pair'] for item in self.saved()['probes']], [0, 1])
        self.assertEqual(len(set(self.keys(self.saved()))), 8)
        self.assertFalse((self.folder / 'results' / 'reads' / 'partial.json').exists())

    def test_resume_of_something_else(self) -> None:
        with self.assertRaisesRegex(ExperimentError, 'no partial result'):
            self.run_it(resume=True)
        with self.interrupted_at(1):
            self.run_it(pairs=1)
        with self.assertRaisesRegex(ExperimentError, 'changed since'):
            self.run_it(resume=True, scale=0.5)

    def test_busy_at_the_start(self) -> None:
        self.fake.process(50, 'ninja')
        with self.assertRaisesRegex(machine.Busy, 'ninja'):
            self.run_it()
        self.assertFalse((self.folder / 'results').exists())
        outcome = self.run_it(pairs=1, force=True)
        self.assertTrue(outcome.document['disturbed_runs_allowed'])

    def test_busy_between_runs(self) -> None:
        with self.compiler_after('--benchmarks=ycsbc,waitforcompaction'):
            outcome = self.run_it()
        self.assertIn('cc1plus', outcome.stopped or '')
        self.assertEqual(len(self.saved('partial.json')['runs']), 2)

    def test_disk_full(self) -> None:
        with mock.patch.object(machine, 'free_bytes', return_value=1000):
            with self.assertRaisesRegex(ExperimentError, 'GB of disk are needed'):
                self.run_it()

    def test_unknown_contender(self) -> None:
        with self.assertRaisesRegex(ExperimentError, 'nobody'):
            self.run_it(contenders=['base', 'nobody'])
        with self.assertRaisesRegex(ExperimentError, 'no contender is left'):
            self.run_it(contenders=['future'])

    def test_one_after_another(self) -> None:
        text = support.EXPERIMENT.replace(
            '[dataset]', 'side_by_side = false\nspace_factor = 100\n[dataset]')
        two_phases = text.replace('[[compare]]', """[[phase]]
name = "again"
benchmarks = "ycsba,waitforcompaction"
database = "continue"
ops = 4000
threads = 2

[[compare]]""", 1)
        with self.commands() as started:
            document = self.run_it(two_phases, pairs=1).document
        self.assertEqual([run['error'] for run in document['runs']], [None] * 4)

        def flag(command: List[str], name: str) -> str:
            return next(arg for arg in command if arg.startswith(f'--{name}=')).split('=')[1]

        ran = [(flag(command, 'benchmarks').split(',')[0], flag(command, 'marker'))
               for command in started]
        ran = [item for item in ran if item[0] != 'ycsbload']
        for first in range(0, len(ran), 2):  # both phases of one before any of the next
            self.assertEqual([name for name, _ in ran[first:first + 2]], ['ycsbc', 'ycsba'])
            self.assertEqual(ran[first][1], ran[first + 1][1])
        # So a database of one needs room, not one of each.
        runner = self.runner(two_phases)
        beside = self.runner(two_phases.replace('= false', '= true'))
        chosen, _ = runner.available()
        alone, both = runner.space_needed(chosen), beside.space_needed(chosen)
        self.assertEqual(both - alone, 100 * runner._experiment.dataset_at(
            runner._experiment.points[0], 1.0).bytes)

    def test_recovery(self) -> None:
        document = self.run_it(RECOVERY, pairs=2).document
        self.assertEqual([run['error'] for run in document['runs']], [None, None])
        first, second = (run['phases']['recovery'][0] for run in document['runs'])
        self.assertGreater(first['reopen_seconds'], 0)
        for result in (first, second):
            self.assertAlmostEqual(result['recovery_seconds'],
                                   result['reopen_seconds'] - result['baseline_seconds'])
        self.assertGreaterEqual(first['killed_after_seconds'], 0.05)
        # The template's WALs, and the record of the workload that was killed.
        self.assertEqual(first['wal_bytes'], len('000009.log loaded') + 4 * len('record'))
        self.assertEqual(first['open_seconds'], 0.25)
        self.assertEqual(first['clean_open_seconds'], 0.25)
        self.assertAlmostEqual(first['first_get_seconds'], 0.25 + 100e-6)
        self.assertTrue(first['verified'])
        self.assertNotIn('verified', second)
        self.assertIn('--num=1 ', document['runs'][0]['commands']['reopen'])

    def test_recovery_can_be_faster_than_the_baseline(self) -> None:
        real, calls = recovery.reopen, []

        def reopen(*args: Any) -> Dict[str, Any]:
            calls.append(1)
            return dict(real(*args), reopen_seconds=2.0 if len(calls) <= 3 else 1.5)

        with mock.patch.object(recovery, 'reopen', reopen):
            document = self.run_it(RECOVERY, pairs=1).document
        self.assertEqual(document['runs'][0]['phases']['recovery'][0]['recovery_seconds'], -0.5)

    def test_churn(self) -> None:
        text = RECOVERY.replace('seconds = 600', 'seconds = 600\nflags = { speed = 2 }') + '''
[load.churn]
benchmarks = "ycsba,flush,waitforcompaction"
ops = 8000
threads = 4
[sweep]
parameter = "mix"
[[sweep.point]]
label = "m"
flags = { ycsb_mix = "merge:100" }
[[sweep.point]]
label = "p"
flags = { ycsb_mix = "put:100" }
'''
        document = self.run_it(text, pairs=1).document
        self.assertEqual([run['error'] for run in document['runs']], [None, None])
        for run, mix in zip(document['runs'], ('merge', 'put')):
            self.assertIn('--use_existing_db=false', run['commands']['(load)'])
            self.assertIn(' --db={dir}/db ', run['commands']['(load)'])
            churn = run['commands']['(churn)'].split(' ')
            for flag in ('--benchmarks=ycsba,flush,waitforcompaction', '--num=2000',
                         '--threads=4', f'--ycsb_mix={mix}:100', '--use_existing_db=true'):
                self.assertIn(flag, churn)
            self.assertFalse([word for word in churn if word.startswith('--speed')])
        self.assertEqual(len(list((self.folder / 'data' / 'templates').iterdir())), 2)
        self.assertTrue(all('(churn)' in run['commands'] for run in document['runs']))

    def test_a_template_for_each_pair(self) -> None:
        text = support.MINIMAL + '[load]\nper_pair = true\n'
        document = self.run_it(text, pairs=4).document
        loads = {run['commands']['(load)'] for run in document['runs']}
        self.assertEqual(len(loads), 4)
        self.assertEqual(document['templates'], 4)
        document = self.run_it(text.replace('per_pair = true', 'templates = 2'), pairs=4).document
        loads = [run['commands']['(load)'] for run in document['runs']]
        self.assertEqual(loads, loads[:2] * 2)
        self.assertNotEqual(loads[0], loads[1])

    def test_one_loads_for_all(self) -> None:
        text = support.MINIMAL.replace('["base"]', '["base", "twin"]') + '''
[contender.twin]
extends = "base"
[load]
contender = "twin"
'''
        with self.commands() as started:
            document = self.run_it(text, pairs=2).document
        loads = [command for command in started if 'ycsbload' in command[1]]
        self.assertEqual(len(loads), 2)
        self.assertEqual(len({run['commands']['(load)'] for run in document['runs']}), 2)
        self.assertEqual([run['error'] for run in document['runs']], [None] * 4)
        self.assertEqual(document['loaded_by'], 'twin')

    def test_templates_are_loaded_before_the_first_pair(self) -> None:
        with self.commands() as started:
            self.run_it(pairs=2)
        self.assertEqual([command[1] for command in started],
                         ['--benchmarks=ycsbload,flush,waitforcompaction'] * 4
                         + ['--benchmarks=ycsbc,waitforcompaction'] * 8)

    def test_idle_before_each_phase(self) -> None:
        text = support.MINIMAL.replace('ops = 10\n', 'ops = 10\n[[phase]]\nname = "again"\n'
                                       'benchmarks = "ycsbc"\nops = 10\n') + 'phase = "read"\n'
        with self.compiler_after('--benchmarks=ycsbc'):
            outcome = self.run_it(text)
        self.assertIn('cc1plus', outcome.stopped or '')
        self.assertEqual(outcome.document['runs'], [], 'the second phase was not measured')
        self.assertEqual(list((self.folder / 'data' / 'work').iterdir()), [])

    def disturb(self, *shares: float) -> Any:
        """What others take of the CPUs during the first runs, one after another."""
        left = list(shares)

        class Watch(machine.CpuWatch):
            def __enter__(self) -> 'machine.CpuWatch':
                self._all = 1.0
                self._foreign = left.pop(0) if left else 0.0
                return self

            def __exit__(self, *_: Any) -> None:
                pass

        return mock.patch.object(machine, 'CpuWatch', Watch)

    def test_a_disturbed_run_is_repeated_once(self) -> None:
        with self.disturb(0.3, 0.02):
            document = self.run_it(support.MINIMAL, pairs=1).document
        run, = document['runs']
        self.assertEqual((run['foreign_cpu'], run['disturbed'], run['repeated_for_foreign_cpu']),
                         (0.02, False, 0.3))
        self.assertIn('others took 30% of the CPUs', self.output.getvalue())
        with self.disturb(0.3, 0.5):
            document = self.run_it(support.MINIMAL, pairs=1).document
        run, = document['runs']
        self.assertEqual((run['foreign_cpu'], run['disturbed'], run['repeated_for_foreign_cpu']),
                         (0.3, True, 0.5))
        with self.disturb(0.05):
            document = self.run_it(support.MINIMAL, pairs=1).document
        self.assertNotIn('repeated_for_foreign_cpu', document['runs'][0])
        with self.disturb(0.3, 0.02):
            document = self.run_it(support.MINIMAL, pairs=1, force=True).document
        self.assertTrue(document['runs'][0]['disturbed'])

    def test_memory_is_no_storage(self) -> None:
        with mock.patch.object(machine, 'file_system', return_value='tmpfs'):
            with self.assertRaisesRegex(ExperimentError, 'lies in memory'):
                self.run_it(support.MINIMAL)
        with mock.patch.object(machine, 'file_system',
                               side_effect=lambda path: 'tmpfs' if path.name == 'slow' else 'xfs'):
            with self.assertRaisesRegex(ExperimentError, 'slow lies in memory'):
                self.run_it(support.MINIMAL, slow=self.folder / 'slow')

    def test_sizes_after_the_workload(self) -> None:
        text = support.MINIMAL.replace('"ycsbc"', '"ycsba,flush,waitforcompaction"').replace(
            'metric = "ops_per_sec"', 'metric = "space_amplification"\n'
            'benchmark = "waitforcompaction"')
        document = self.run_it(text, pairs=1).document

        def found(text: str) -> stats.Summary:
            experiment = self.experiment(text)
            number = summary.Numbers(experiment.comparisons[0], summary.make(
                experiment, document)).summary('', 'base')
            assert number is not None
            return number

        self.assertEqual(found(text).median, 5.0)
        # 10 operations of 1,024 bytes; 2,048 bytes written for each, 8,000 by each of two waits.
        self.assertAlmostEqual(found(text.replace(
            'space_amplification', 'total_write_amplification')).median, (20480 + 2 * 8000) / 10240)

    def test_a_bound_without_numbers_is_a_failure(self) -> None:
        text = support.EXPERIMENT.replace('"ops_per_sec"', '"latency_us.merge.mean"', 1).replace(
            'against = "base"', 'against = "base"\nwithin = 0.03', 1)
        proc = self.proc()
        with mock.patch('sys.stdout', new=io.StringIO()), \
                mock.patch('sys.stderr', new=self.output), \
                mock.patch.object(machine, 'Proc', return_value=proc), \
                mock.patch.object(plots, '_pyplot', return_value=None):
            code = cli.run_one(self.experiment(text), self.contenders(), self.settings(pairs=1),
                               Programs())
        self.assertEqual(code, cli.EXIT_FAILED)
        self.assertIn('cannot be compared: a number is missing', self.output.getvalue())

    def fingerprint(self, contenders_text: str = support.CONTENDERS,
                    text: str = support.EXPERIMENT, **changes: Any) -> str:
        experiment = self.experiment(text)
        resolved = experiment.resolve(self.contenders(contenders_text))
        return runner_module.fingerprint(experiment, [resolved['base'], resolved['fast']],
                                         self.settings(**changes), 2, {'base': 'x'})

    def test_fingerprint(self) -> None:
        same = self.fingerprint()
        self.assertEqual(same, self.fingerprint())
        self.assertEqual(same, self.fingerprint(
            text=support.EXPERIMENT.replace('summary = "Reads records."', 'summary = "Reads."')))
        others = [self.fingerprint(support.CONTENDERS.replace('speed = 2', 'speed = 3')),
                  self.fingerprint(text=support.EXPERIMENT.replace('ops = 4000', 'ops = 4002')),
                  self.fingerprint(text=support.EXPERIMENT + '[load]\ntemplates = 1\n'),
                  self.fingerprint(scale=2.0), self.fingerprint(slow=self.folder)]
        with mock.patch.dict(commands.BASE_FLAGS, {'disable_wal': 'true'}):
            others.append(self.fingerprint())
        self.assertEqual(len(set(others + [same])), len(others) + 1)

    def test_forced_runs_stay_marked(self) -> None:
        with self.interrupted_at(5):
            self.run_it(pairs=1, force=True)
        self.assertEqual(len(self.saved('partial.json')['runs']), 2)
        document = self.run_it(pairs=1, resume=True).document
        self.assertTrue(document['disturbed_runs_allowed'])
        self.assertEqual([run.get('forced') for run in document['runs']],
                         [True, True, None, None])

    def test_time_needed(self) -> None:
        experiment = self.experiment()
        all_contenders = self.contenders()
        resolved = experiment.resolve(all_contenders)
        names = [resolved['base'], resolved['fast']]
        model = estimate.seconds(experiment, names, 2, 1.0)
        self.assertGreater(model, 20)
        document = self.run_it(pairs=2).document
        for run in document['runs']:
            run['seconds'] = 10.0
        results.Store(self.folder / 'results' / 'reads').save(document)
        loads = 2 * sum(estimate.load_seconds(experiment, item, experiment.points[0], 1.0)
                        for item in names)
        self.assertAlmostEqual(estimate.seconds(experiment, names, 2, 1.0,
                                                summary.make(experiment, document)),
                               8 * 10 + 2 * estimate.PAIR + loads)
        text = cli.time_needed(experiment, all_contenders, self.settings(pairs=2), Programs())
        self.assertIn('from its results', text)
        # Another declaration is another experiment.
        self.experiment(support.EXPERIMENT.replace('ops = 4000', 'ops = 4002'))
        text = cli.time_needed(experiment, all_contenders, self.settings(pairs=2), Programs())
        self.assertNotIn('from its results', text)

    def test_recovery_of_a_workload_that_ends_too_early(self) -> None:
        log = self.folder / 'log'
        settings = self.experiment(RECOVERY).recovery
        assert settings is not None
        with self.assertRaisesRegex(CommandFailed, 'ended before it was killed'):
            recovery.crash(['/bin/true'], log, settings, runner_module.random.Random(1),
                           self.folder, lambda: None)

    def test_report(self) -> None:
        folder = self.folder / 'results' / 'reads'
        self.run_it(pairs=1)
        target = self.folder / 'docs' / 'benchmarks.md'
        experiments = {'reads': self.experiment(),
                       'other': self.experiment(support.MINIMAL, 'other')}

        def report_of(all_contenders: Dict[str, contenders.Contender]) -> List[str]:
            return report.write(experiments, self.folder / 'results', target, all_contenders, [])

        self.assertEqual(report_of(self.contenders()), ['other'])
        table = (folder / 'table.md').read_text()
        self.assertIn('| 0.8 | Fast |', table)
        self.assertNotIn(str(self.folder), table)
        self.assertNotIn('older declaration', table)
        self.assertIn('--marker=fast', (folder / 'commands.txt').read_text())
        text = target.read_text()
        self.assertIn('`bench/run aa`', text)
        self.assertIn('* `other`: T.', text)
        # Without the full results, all is written again from the summary.
        (folder / 'results.json').unlink()
        report_of(self.contenders())
        self.assertEqual((target.read_text(), (folder / 'table.md').read_text()), (text, table))
        report_of(self.contenders(support.CONTENDERS.replace('speed = 2', 'speed = 3')))
        self.assertIn('**Measured with an older declaration**', (folder / 'table.md').read_text())
        self.assertIn('older declaration: to be measured again', target.read_text())

    def test_plots(self) -> None:
        document = self.run_it(pairs=1).document
        names = plots.draw(self.experiment(), document, self.folder)
        if names is None:
            self.skipTest('matplotlib is not installed')
        self.assertEqual(names, ['throughput-by-skew.png'])
        self.assertTrue((self.folder / names[0]).read_bytes().startswith(b'\x89PNG'))

    def test_no_matplotlib_costs_only_the_plots(self) -> None:
        experiment = self.experiment()
        outcome = self.run_it(pairs=1)
        with mock.patch.object(plots, '_pyplot', return_value=None), \
                mock.patch('sys.stdout', new=io.StringIO()) as printed:
            cli._finish(experiment, outcome, self.settings(), Progress(self.output))
        self.assertIn('matplotlib is missing', self.output.getvalue())
        self.assertIn('Throughput', printed.getvalue())
        self.assertIn('| 0.8 | Fast |',
                      (self.folder / 'results' / 'reads' / 'table.md').read_text())


class CommandTest(support.FolderTest):
    def flags(self, text: str, contender: str = 'base', point: int = 0, scale: float = 1.0
              ) -> Dict[str, str]:
        experiment = self.experiment(text)
        return commands.phase_flags(
            experiment, experiment.resolve(self.contenders())[contender],
            experiment.points[point], experiment.phases[0], scale, 5)

    def test_upstream_benchmarks_have_their_own_flags(self) -> None:
        flags = self.flags(support.MINIMAL.replace('ycsbc', 'readrandom').replace(
            'records = 16000', 'family = "upstream"\nvalue_size = 1000\nrecords = 16000'))
        self.assertEqual((flags['num'], flags['reads'], flags['writes']), ('16000', '10', '10'))
        self.assertNotIn('ycsb_records', flags)

    def test_seconds(self) -> None:
        flags = self.flags(support.MINIMAL.replace('ops = 10', 'seconds = 10'))
        self.assertEqual(flags['duration'], '10')
        self.assertNotIn('num', flags)
        flags = self.flags(support.MINIMAL.replace('ops = 10', 'seconds = 10'), scale=0.01)
        self.assertEqual(flags['duration'], '1')

    def test_threads_of_a_sweep_share_the_operations(self) -> None:
        text = support.MINIMAL.replace('ops = 10', 'ops = 1000') + '''
[sweep]
parameter = "threads"
flag = "threads"
values = [1, 4]
only = ["fast"]
'''
        self.assertEqual(self.flags(text, 'fast', point=1)['num'], '250')
        self.assertEqual(self.flags(text, point=1)['num'], '1000')

    def test_who_wins(self) -> None:
        text = support.MINIMAL + '''
[options]
marker = "options"
disable_wal = true
[contender.base]
phase_flags = { speed = 9 }
'''
        flags = self.flags(text)
        self.assertEqual((flags['marker'], flags['disable_wal'], flags['speed']),
                         ('base', 'true', '9'))

    def test_folders(self) -> None:
        line = commands.command_line(Path('db_bench'), {
            'benchmarks': 'x', 'cf_paths': '{dir}/fast,{dir}/slow'}, Path('/w'))
        self.assertEqual(line, ['db_bench', '--benchmarks=x', '--db=/w/db',
                                '--cf_paths=/w/fast,/w/slow'])
        line = commands.command_line(Path('db_bench'), {'benchmarks': 'x', 'db': '{dir}/slow'},
                                     Path('/w'))
        self.assertEqual(line[2:], ['--db=/w/slow'])

    def test_reports(self) -> None:
        path = self.folder / 'report.json'
        path.write_text('{"benchmark": "ycsba"}\n{"benchmark": "flush"}\n')
        found = commands.read_reports(path, None, 'ycsba')
        self.assertEqual([item.get('workload') for item in found], [True, None])
        with self.assertRaisesRegex(CommandFailed, "no benchmark 'ycsbb'"):
            commands.read_reports(path, None, 'ycsbb')
        path.write_text('{"benchmark": ')
        with self.assertRaisesRegex(CommandFailed, 'no report'):
            commands.read_reports(path, None, 'ycsba')

    def test_timeseries_cut_by_a_kill(self) -> None:
        path = self.folder / 'series.csv'
        path.write_text('benchmark,seconds,ops\na,1,10\na,2,20\nb,1,\na,3')
        self.assertEqual(commands.read_timeseries(path), {
            'a': {'seconds': [1, 2, 3], 'ops': [10, 20, None]},
            'b': {'seconds': [1], 'ops': [None]}})


class TurnsTest(support.FolderTest):
    # Counts as long as it runs; the last number it writes is how far it came.
    COUNT = """
import sys, time
end = time.monotonic() + float(sys.argv[2])
n = 0
while time.monotonic() < end:
    time.sleep(0.01)
    n += 1
    open(sys.argv[1], 'w').write(str(n))
"""

    def turn(self, name: str, *command: str) -> turns.Turn:
        return turns.Turn(list(command), self.folder / f'{name}.log', self.folder / f'{name}.stop')

    def count(self, name: str, seconds: float) -> turns.Turn:
        return self.turn(name, 'python3', '-c', self.COUNT, str(self.folder / name), str(seconds))

    def stopped(self, name: str) -> float:
        return struct.unpack('=Q', (self.folder / f'{name}.stop').read_bytes())[0] / 1e9

    def test_one_runs_the_others_are_stopped(self) -> None:
        names = ('a', 'b', 'c')
        started = time.monotonic()
        failed = turns.run({name: self.count(name, 1.5) for name in names}, 60,
                           slice_seconds=0.05)
        passed = time.monotonic() - started
        self.assertEqual(failed, {})
        for name in names:
            # Each had its turn and was stopped in those of the two others; the last rounds are
            # of those that are left.
            self.assertGreater(int((self.folder / name).read_text()), 5)
            self.assertGreater(self.stopped(name), 0.3 * passed)
            self.assertLess(self.stopped(name), 0.9 * passed)

    def test_the_file_is_right(self) -> None:
        turn = self.turn('a', 'sleep', '60')
        turn.go_on()
        self.assertEqual(self.stopped('a'), 0)
        turn.stop()
        time.sleep(0.2)
        turn.go_on()
        first = self.stopped('a')
        self.assertGreaterEqual(first, 0.2)
        turn.stop()
        time.sleep(0.1)
        turn.go_on()
        self.assertGreaterEqual(self.stopped('a'), first + 0.1)
        turn.stop()
        turn.kill()

    def test_a_stop_begins_when_all_threads_have_stopped(self) -> None:
        # Else one of them has read a later time than the one it goes on with.
        real = process.Child.wait_until_stopped

        def late(child: process.Child) -> None:
            time.sleep(0.5)
            real(child)

        turn = self.turn('a', 'sleep', '60')
        turn.go_on()
        with mock.patch.object(process.Child, 'wait_until_stopped', late):
            turn.stop()
        turn.go_on()
        self.assertLess(self.stopped('a'), 0.5)
        turn.kill()

    def test_one_alone_is_not_stopped(self) -> None:
        self.assertEqual(turns.run({'a': self.count('a', 0.5)}, 60, slice_seconds=0.05), {})
        self.assertEqual(self.stopped('a'), 0)
        self.assertEqual(turns.run({}, 60), {})

    def test_errors(self) -> None:
        failed = turns.run({'a': self.turn('a', 'false'), 'b': self.count('b', 0.2),
                            'c': self.turn('c', str(self.folder / 'nothing'))}, 60,
                           slice_seconds=0.05)
        self.assertEqual(sorted(failed), ['a', 'c'])
        self.assertIn('exit code 1', str(failed['a']))
        self.assertGreater(int((self.folder / 'b').read_text()), 5)

    def test_timeout(self) -> None:
        failed = turns.run({'a': self.turn('a', 'sleep', '60'), 'b': self.turn('b', 'sleep', '60')},
                           0.3, slice_seconds=0.05)
        self.assertEqual(sorted(failed), ['a', 'b'])
        self.assertIn('no end after', str(failed['b']))

    def test_interrupt_ends_all(self) -> None:
        def tick() -> None:
            raise Interrupted('SIGINT')

        both = {'a': self.turn('a', 'sleep', '60'), 'b': self.turn('b', 'sleep', '60')}
        both['b'].go_on()
        both['b'].stop()
        with self.assertRaises(Interrupted):
            turns.run(both, 60, tick, slice_seconds=0.05)
        for turn in both.values():
            assert turn._child is not None
            self.assertFalse(turn._child.running())


class ProcessTest(support.FolderTest):
    def test_timeout(self) -> None:
        with self.assertRaisesRegex(CommandFailed, 'no end after'):
            process.run(['sleep', '60'], self.folder / 'log', 0.2)

    def test_signal(self) -> None:
        with self.assertRaisesRegex(CommandFailed, 'SIGSEGV'):
            process.run(['sh', '-c', 'kill -SEGV $$'], self.folder / 'log', 10)

    def test_not_there(self) -> None:
        with self.assertRaises(CommandFailed):
            process.run([str(self.folder / 'nothing')], self.folder / 'log', 10)

    def test_interrupt_ends_the_child(self) -> None:
        child = process.Child(['sleep', '60'], self.folder / 'log')

        def tick() -> None:
            raise Interrupted('SIGINT')

        with self.assertRaises(Interrupted):
            child.wait(60, tick)
        self.assertFalse(child.running())

    def test_signals_become_interrupts(self) -> None:
        before = {number: signal.getsignal(number)
                  for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
        try:
            process.raise_on_signals()
            with self.assertRaisesRegex(Interrupted, 'SIGTERM'):
                os.kill(os.getpid(), signal.SIGTERM)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


class ResultsTest(support.FolderTest):
    def test_a_line_for_each_run(self) -> None:
        document = {'state': 'complete', 'a': [1], 'runs': [{'pair': 0}, {'pair': 1}]}
        text = results.dump(document)
        self.assertEqual(json.loads(text), document)
        self.assertIn('\n  {"pair": 0},\n', text)
        document['runs'] = []
        self.assertEqual(json.loads(results.dump(document)), document)


class CommandLineTest(support.FolderTest):
    def test_wrong_name(self) -> None:
        with mock.patch('sys.stderr', new=io.StringIO()) as printed:
            self.assertEqual(cli.main(['no-such-experiment']), cli.EXIT_USAGE)
        self.assertIn('no-such-experiment', printed.getvalue())

    def test_list(self) -> None:
        with mock.patch('sys.stdout', new=io.StringIO()) as printed:
            self.assertEqual(cli.main(['--list', '--out', str(self.folder)]), 0)
        for name in ('aa', 'wayfinder-fig3', 'kdsep-fig18-recovery', 'stock-blobdb', 'fio'):
            self.assertIn(f'  {name} ', printed.getvalue())
        self.assertRegex(printed.getvalue(), r'  aa  .*\n +[0-9]+:[0-9]{2} for ')

    def test_wrong_scale(self) -> None:
        with mock.patch('sys.stderr', new=io.StringIO()):
            for wrong in (['--scale', '0'], ['--pairs', '0'], ['--binary', 'stock']):
                with self.assertRaises(SystemExit):
                    cli.main(['aa'] + wrong)

    def test_two_at_once(self) -> None:
        with cli._lock(self.folder):
            with self.assertRaisesRegex(machine.Busy, 'another bench/run'):
                with cli._lock(self.folder):
                    self.fail('locked twice')
        with cli._lock(self.folder):
            pass


if __name__ == '__main__':
    unittest.main()
