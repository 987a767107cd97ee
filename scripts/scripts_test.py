#!/usr/bin/env python3
# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Tests of the scripts beside this file."""
import argparse
import contextlib
import glob
import hashlib
import io
import itertools
import os
import random
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path[:0] = [HERE, os.path.join(HERE, 'on_disk')]
import check_style  # noqa: E402
import crash_test  # noqa: E402
import demo  # noqa: E402
import fuzz  # noqa: E402
import overlay_sources  # noqa: E402
import run_tests  # noqa: E402
import steps  # noqa: E402
import upgrade  # noqa: E402
from crash import covering, output, plan, round_log, stacks  # noqa: E402
import sweep  # noqa: E402
from temporary_folder import Temporary  # noqa: E402


class ProductionCode(unittest.TestCase):
    def test_uses_no_rtti(self):
        """Release builds have type information for applications. The library works without it, as
        builds with USE_RTTI=OFF need: so neither our files nor our patches use it."""
        root = os.path.dirname(HERE)
        rtti = re.compile(r'\b(dynamic_cast|dynamic_pointer_cast)\b|\btypeid\b')
        found = []
        sources = overlay_sources.find(root)
        for path in sources['LIB'] + sources['SHARED']:
            for name in (path, path[:-3] + '.h'):
                if os.path.exists(os.path.join(root, name)):
                    with open(os.path.join(root, name), encoding='utf-8') as f:
                        found += [f'{name}: {line.strip()}' for line in f if rtti.search(line)]
        for folder, _, names in os.walk(os.path.join(root, 'patches')):
            for name in names:
                if name.endswith(('.h.patch', '.cc.patch')) and not name.endswith('_test.cc.patch'):
                    with open(os.path.join(folder, name), encoding='utf-8') as f:
                        found += [f'{name}: {line.strip()}' for line in f
                                  if line[0] == '+' and rtti.search(line)]
        self.assertEqual(found, [])


class StockBench(unittest.TestCase):
    def test_its_sources_exist(self):
        """No other build reads this file, so a source that has moved would go unnoticed."""
        root = os.path.dirname(HERE)
        with open(os.path.join(root, 'cmake', 'stock_bench.cmake'), encoding='utf-8') as f:
            names = re.findall(r'\$\{STRATA_ROOT\}/([^"*]+\.cc)"', f.read())
        ours = [name for name in names if not name.startswith('build/src/')]
        self.assertGreater(len(ours), 1)
        self.assertEqual([name for name in ours if not os.path.exists(os.path.join(root, name))],
                         [])


class CrashTests(unittest.TestCase):
    def options(self):
        """The names in the table of our options."""
        path = os.path.join(ROOT, 'options', 'strata', 'strata_option_table.h')
        with open(path, encoding='utf-8') as f:
            text = re.sub(r'^//.*$', '', f.read(), flags=re.M)
        kinds = 'bool|int32|uint32|uint64|size|double|path_ids|prices'
        names = re.findall(rf'ROW\((?:{kinds}), (\w+),', text)
        # A row of an unknown kind has a comma after its first word, too.
        self.assertEqual(len(names), len(re.findall(r'ROW\(\w+,', text)))
        return names

    def chosen(self, crashtest, options):
        """Option -> the values that it got in many crash tests, None for the default."""
        values = {name: set() for name in options}
        args = argparse.Namespace(test_best_efforts_recovery=False, test_tiered_storage=False)
        # What may be on is chosen once for a DB, and some of it when the module is loaded.
        forced = {'address_map': 1, 'merged_value_cache': 1, 'delta_separation': 1,
                  'per_level_paths': 2}
        for seed in range(300):
            random.seed(seed)
            params = {'db': '/no/directory', **crashtest.DEFAULT_PARAMS, **forced}
            crashtest.choose(params, {}, args)
            params['use_merge'] = 1
            params = {k: v() if callable(v) else v for k, v in params.items()}
            crashtest.finalize(params, False)
            for name in options:
                values[name].add(params.get(name))
        return values

    def crashtest(self):
        """The module of db_crashtest.py."""
        sys.path.insert(0, os.path.join(ROOT, 'tools'))
        self.addCleanup(sys.path.pop, 0)
        self.addCleanup(random.setstate, random.getstate())
        from strata import crashtest
        return crashtest

    def test_copies_get_layouts_if_the_database_has_paths(self):
        crashtest = self.crashtest()
        # Number of directories beside the database's -> the values of the flag.
        found = {0: set(), 2: set()}
        for seed in range(100):
            for extra, values in found.items():
                random.seed(seed)
                params = {**crashtest.DEFAULT_PARAMS, 'db': '/no/directory',
                          'per_level_paths': extra}
                params = {k: v() if callable(v) else v for k, v in params.items()}
                crashtest.finalize(params, False)
                values.add(params.get('copy_layout_one_in'))
        self.assertEqual(found, {0: {None}, 2: {0, 1, 2, 4}})

    def test_flags_of_the_command_line_stay_with_a_map(self):
        crashtest = self.crashtest()
        given = {'blob_gc_stress': 1, 'write_fault_one_in': 16, 'unordered_write': 1,
                 'enable_blob_garbage_collection': 1}
        args = argparse.Namespace(test_best_efforts_recovery=False, test_tiered_storage=False,
                                  **given)
        values = {name: set() for name in (*given, 'read_fault_one_in', 'enable_lsm_bypass')}
        for seed in range(50):
            random.seed(seed)
            params = {**crashtest.DEFAULT_PARAMS, 'db': '/no/directory', 'per_level_paths': 0,
                      'read_fault_one_in': 32, **given}
            crashtest.choose(params, {}, args)
            params = {k: v() if callable(v) else v for k, v in params.items()}
            crashtest.finalize(params, False)
            self.assertEqual([name for name in params if name.startswith('address_map')], [])
            for name, found in values.items():
                found.add(params.get(name))
        self.assertEqual(values, {
            # For crashtest_map.py alone.
            'blob_gc_stress': {None},
            'write_fault_one_in': {16}, 'unordered_write': {1},
            'enable_blob_garbage_collection': {1},
            # What was not given changes from run to run.
            'read_fault_one_in': {0, 32},
            # Unordered writes need a map without direct values.
            'enable_lsm_bypass': {None, 0}})

    def test_directories_of_paths_and_copies_are_removed(self):
        crashtest = self.crashtest()
        with tempfile.TemporaryDirectory() as folder:
            db = os.path.join(folder, 'db')
            for name in ('db', 'db_path1', 'db_path3', 'db_copies/checkpoint0/main', 'db_other'):
                os.makedirs(os.path.join(folder, name))
            crashtest.remove_extra_paths(db)
            self.assertEqual(sorted(os.listdir(folder)), ['db', 'db_other'])

    def test_each_option_is_chosen(self):
        """A new option would otherwise keep its default in all crash tests."""
        crashtest = self.crashtest()
        values = self.chosen(crashtest, self.options())
        always_the_same = {name for name, found in values.items() if len(found) < 2}
        self.assertEqual(always_the_same, set(crashtest.NOT_CHOSEN))
        self.assertTrue(all(crashtest.NOT_CHOSEN.values()), 'an option without a reason')


class CrashTestOrder(unittest.TestCase):
    FACTORS = {'a': [0, 1, 2], 'b': [0, 1, 2], 'c': [0, 1], 'd': [0, 1]}

    def covering(self, excluded=(), seed=1):
        return covering.Covering(self.FACTORS, excluded, random.Random(seed))

    def test_all_pairs_come_up(self):
        c = self.covering()
        rows = list(c.covering_rows())
        self.assertEqual(len(c.pairs()), 9 + 6 * 4 + 4)
        self.assertEqual(set().union(*(c.pairs_of(row) for row in rows)), set(c.pairs()))
        # 9 are needed for a and b alone, all combinations are 36.
        self.assertLess(len(rows), 15)

    def test_excluded_pairs(self):
        excluded = [(('a', 1), ('b', 1)), (('a', 2), ('b', 0)), (('a', 2), ('b', 1)),
                    (('b', 2), ('c', 1))]
        c = self.covering(excluded)
        pairs = c.pairs()
        self.assertNotIn((('a', 1), ('b', 1)), pairs)
        # a=2 leaves b=2 alone, and that excludes c=1.
        self.assertNotIn((('a', 2), ('c', 1)), pairs)
        self.assertIn((('a', 2), ('c', 0)), pairs)
        rows = [*c.covering_rows(), *(c.random_row() for _ in range(100))]
        self.assertTrue(all(c.is_allowed(row) and set(row) == set(self.FACTORS) for row in rows))
        self.assertEqual(set().union(*(c.pairs_of(row) for row in rows)), set(pairs))
        self.assertFalse(c.is_allowed({'b': 2, 'c': 1}))
        self.assertIsNone(c.complete({'a': 2, 'c': 1}))

    def test_the_seed_determines_the_order(self):
        rows = [list(self.covering(seed=seed).covering_rows()) for seed in (1, 1, 2)]
        self.assertEqual(rows[0], rows[1])
        self.assertNotEqual(rows[0], rows[2])

    def test_the_plan(self):
        c = plan.make_covering(3)
        number = len(list(c.covering_rows()))
        rounds = plan.rounds(3)
        rows = [next(rounds) for _ in range(number)]
        self.assertEqual(set().union(*(c.pairs_of(row) for row in rows)), set(c.pairs()))
        landmarks = [next(rounds) for _ in range(3 * len(plan.MODES))]
        for mode in plan.MODES:
            self.assertIn(c.complete({'mode': mode}), landmarks)
            self.assertIn(plan.everything_on(c, mode), landmarks)
        for row in [*rows, *landmarks]:
            self.assertTrue(c.is_allowed(row))
            self.assertEqual(
                plan.parse_row(f'{plan.mode_text(row)} {plan.features_text(row)}'), row)

    def test_rounds_as_text(self):
        row = plan.parse_row('blackbox/plain values=bypass deltas faults=read')
        self.assertEqual((row['kills'], row['values'], row['deltas'], row['paths'], row['faults']),
                         ('blackbox', 'bypass', 'yes', 'no', 'read'))
        self.assertEqual(plan.features_text(plan.parse_row('whitebox/txn off')), 'off')
        for wrong in ('plain', 'blackbox/plane', 'blackbox/plain delta', 'blackbox/plain values=x',
                      'blackbox/timestamps values=map', 'none/plain'):
            with self.assertRaises(ValueError, msg=wrong):
                plan.parse_row(wrong)


class CrashTestCommand(Temporary):
    SCRIPT = os.path.join(ROOT, 'build', 'src', 'tools', 'db_crashtest.py')

    def flags(self, text, seed=5):
        """The flags of the first db_stress that db_crashtest.py would start for a round."""
        command = plan.crashtest_command(plan.parse_row(text), seed, 10, 5, sys.executable,
                                         self.SCRIPT, '/no/db_stress')
        code = ('import os, sys\n'
                f'sys.argv, sys.dont_write_bytecode = {command[2:]!r}, True\n'
                f'sys.path.insert(0, {os.path.dirname(self.SCRIPT)!r})\n'
                'import db_crashtest\n'
                'def execute(command, *args):\n'
                '    sys.stderr.write(chr(0).join(command[1:]))\n'
                '    sys.stderr.flush()\n'
                '    os._exit(0)\n'
                'db_crashtest.execute_cmd = execute\n'
                'db_crashtest.main()\n')
        run = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True,
                             env={**os.environ, 'TEST_TMPDIR': self.dir})
        self.assertEqual(run.returncode, 0, run.stderr)
        return dict(arg[2:].split('=', 1) for arg in run.stderr.split('\0'))

    @unittest.skipUnless(os.path.exists(SCRIPT), 'needs build/src')
    def test_features_reach_db_stress(self):
        flags = self.flags('blackbox/plain values=blob merged_values paths wal_buffer write_groups '
                           'faults=all')
        self.assertEqual(flags['enable_blob_files'], '1')
        self.assertEqual(len(flags['cf_paths'].split(',')), 1 + int(plan.crashtest_flags(
            plan.parse_row('blackbox/plain values=blob merged_values paths wal_buffer write_groups '
                           'faults=all'), 5)['per_level_paths']))
        for name in ('wal_mmap_buffer_size', 'read_fault_one_in', 'write_fault_one_in',
                     'metadata_read_fault_one_in'):
            self.assertNotEqual(flags[name], '0', name)
        self.assertNotEqual(flags['max_write_groups_per_leader'], '1')
        self.assertNotIn('enable_blob_address_map', flags)
        # Whether a run has what its database may have is left to chance.
        runs = [self.flags('blackbox/txn values=bypass deltas', seed) for seed in range(1, 7)]
        for name in ('enable_blob_address_map', 'enable_lsm_bypass', 'enable_delta_separation'):
            self.assertIn('1', [flags.get(name) for flags in runs], name)

    @unittest.skipUnless(os.path.exists(SCRIPT), 'needs build/src')
    def test_off_is_off(self):
        for seed in range(1, 4):
            flags = self.flags('whitebox/simple off', seed)
            self.assertEqual(flags['ops_per_thread'], str(100 * plan.WHITEBOX_OPS_PER_THREAD))
            self.assertEqual((flags['enable_blob_files'], flags['wal_mmap_buffer_size'],
                              flags['max_write_groups_per_leader'], flags['checkpoint_one_in'],
                              flags['backup_one_in'], flags['write_fault_one_in']),
                             ('0', '0', '1', '0', '0', '0'))
            for name in ('enable_blob_address_map', 'enable_delta_separation', 'cf_paths',
                         'enable_merged_value_cache'):
                self.assertNotIn(name, flags)

    @unittest.skipUnless(os.path.exists(SCRIPT), 'needs build/src')
    def test_transactions_keep_their_policy(self):
        for text in ('blackbox/txn_prepared values=map', 'whitebox/txn_unprepared values=map'):
            flags = [self.flags(text, seed) for seed in range(1, 6)]
            self.assertNotIn('0', {f['txn_write_policy'] for f in flags})
            self.assertIn('1', [f.get('enable_blob_address_map') for f in flags])
            self.assertNotIn('1', [f.get('enable_lsm_bypass') for f in flags])

    @unittest.skipUnless(os.path.exists(SCRIPT), 'needs build/src')
    def test_no_wide_columns_with_timestamps(self):
        # With this seed, db_crashtest.py chooses a preset of blobs with wide columns.
        flags = self.flags('blackbox/timestamps values=blob', 3073136775)
        self.assertEqual(flags['use_multi_get_entity'], '1')
        self.assertEqual(flags['use_put_entity_one_in'], '0')

    def test_copies_of_databases_with_paths_have_layouts(self):
        """A round with paths makes copies into one directory and into several, others into one."""
        for text, values in (('paths checkpoints', {2, 4}), ('paths backups', {2, 4}),
                             ('paths', {None}), ('checkpoints backups', {None})):
            row = plan.parse_row('blackbox/plain ' + text)
            found = {plan.crashtest_flags(row, seed).get('copy_layout_one_in')
                     for seed in range(30)}
            self.assertEqual(found, values, text)

    @unittest.skipUnless(os.path.exists(SCRIPT), 'needs build/src')
    def test_layouts_of_copies_reach_db_stress(self):
        text = 'blackbox/plain values=map deltas paths checkpoints backups'
        flags = self.flags(text)
        self.assertEqual(
            flags['copy_layout_one_in'],
            str(plan.crashtest_flags(plan.parse_row(text), 5)['copy_layout_one_in']))
        self.assertIn('delta_sorted_path_id', flags)
        self.assertNotIn('copy_layout_one_in', self.flags('blackbox/plain checkpoints backups'))

    def test_only_whitebox_limits_operations(self):
        blackbox = plan.crashtest_command(plan.parse_row('blackbox/plain off'), 5, 10, 5, 'py',
                                          'script', 'stress')
        self.assertNotIn('ops_per_thread', ' '.join(blackbox))
        self.assertIn('--initial_random_seed_override=5', blackbox)

    def test_overlap(self):
        command = plan.overlap_command(plan.parse_row('none/overlap values=map deltas'), 5, 10, 3,
                                       'program', '/db')
        self.assertEqual(command, ['program', '--seconds=10', '--slice=3', '--seed=5', '--db=/db',
                                   '--map=1', '--bypass=0', '--delta=1', '--merged_values=0'])


class CrashTestOutput(unittest.TestCase):
    RUN = 'Running db_stress with pid=7: ./db_stress --threads=2\n\n\n'
    TOTAL = ('Stress Test : 2.0 micros/op 9 ops/sec\n'
             '            : Wrote 1.0 MB (2.0 MB/sec) (35% of 640 ops)\n')

    def progress(self, *counts):
        return ''.join(f'... finished {count} ops                    \r' for count in counts)

    def test_blackbox(self):
        # The first thread came to 1500 operations, the second one to 200.
        steps = [*range(100, 1001, 100), 1500]
        text = (f'{self.RUN}TERMINATED 7\n\nstdout:\n {self.progress(*steps, 100, 200)}\n'
                f'{self.RUN}KILLED 7 (SIGTERM did not work)\n\nstdout:\n {self.progress(100)}\n'
                'Running final time for verification\n'
                f'{self.RUN}WARNING: db_stress ended before kill: exitcode=0\n\nstdout:\n\n')
        self.assertEqual(output.of_crashtest(text, 0), output.Outcome(2, 1500 + 200 + 100))

    def test_steps_are_those_of_db_stress(self):
        steps, count = [], 0
        while count < 700000:
            count += output._step_before(count + 1)
            steps.append(count)
        self.assertEqual(steps[:12], [*range(100, 1001, 100), 1500, 2000])
        self.assertEqual(output.operations_of_run(self.progress(*steps)), steps[-1])

    def test_whitebox(self):
        text = (f'{self.RUN}WARNING: db_stress ended before kill: exitcode=-15\n\n'
                'check_mode=0, kill option=88889, exitcode=-15\n\nstdout:\n Crashing at a.cc:1\n'
                f'{self.RUN}WARNING: db_stress ended before kill: exitcode=0\n\nstdout:\n '
                f'{self.progress(100)}{self.TOTAL}')
        self.assertEqual(output.of_crashtest(text, 0), output.Outcome(1, 640))

    def test_problems(self):
        failed = (f'{self.RUN}TERMINATED 7\n\nstdout:\n \nstderr:\n note\n'
                  'Verification failed for column family 0 key 1\n')
        for text, code, problem in (
                (failed, 2, 'Verification failed for column family 0 key 1'),
                (f'{self.RUN}stdout:\n \nstderr:\n db_stress: a.cc:3: f: Assertion `x\' failed.\n',
                 2, "db_stress: a.cc:3: f: Assertion `x' failed."),
                ('TEST FAILED. See kill option and exit code above!!!\n', 1, 'TEST FAILED'),
                ('', 3, 'exit code 3'), ('', 0, 'no run of db_stress'),
                (f'{self.RUN}TERMINATED 7\n', None, 'did not end'),
                (f'{self.RUN}TERMINATED 7\nKilling the run for running too long\n', 0,
                 'did not end'),
                (f'Running final time for verification\n{self.RUN}TERMINATED 7\n', 0,
                 'verification did not end')):
            outcome = output.of_crashtest(text, code)
            self.assertIn(problem, outcome.problem)
            self.assertFalse(outcome.no_space)
        full = output.of_crashtest(f'{self.RUN}=== Out-of-space diagnostics ===\n', 2)
        self.assertTrue(full.no_space)

    def test_overlap(self):
        good = '--map=1: 10 writes, 20 point reads, 3 views, 2 jobs, 0 pauses: 0 findings\n'
        self.assertEqual(output.of_overlap(good * 2, 0), output.Outcome(0, 66))
        bad = good.replace('0 findings', '2 findings, the first after 1.0 s')
        self.assertEqual(output.of_overlap(good + bad, 1).problem, bad.strip())
        self.assertEqual(output.of_overlap(good + 'Received signal 11 (x)\n', -11).problem,
                         'Received signal 11 (x)')
        self.assertIn('did nothing', output.of_overlap('', 0).problem)
        self.assertIn('did not end', output.of_overlap(good, None).problem)


class CrashTestRounds(Temporary):
    def setUp(self):
        super().setUp()
        self.log = round_log.RoundLog(os.path.join(self.dir, 'log.tsv'))

    def add(self, number, mode, features, **values):
        entry = {'seed': 4, 'round': number, 'commit': 'abc', 'mode': mode, 'features': features,
                 'seconds': 1800, 'kills': 3, 'operations': 1000, 'result': 'ok', 'problem': ''}
        self.log.add(**{**entry, **values})

    def test_report(self):
        self.add(0, 'blackbox/plain', 'off')
        self.add(1, 'blackbox/plain', 'values=map deltas', result='finding', problem='a|b\nc')
        self.add(2, 'none/overlap', 'deltas', kills=0)
        self.add(3, 'blackbox/renamed', 'off', seed=5)
        entries = self.log.entries()
        text = round_log.report(entries)
        for line in ('| blackbox/plain | 2 | 1.0 | 6 | 2,000 | 1 |',
                     '| all | 4 | 2.0 | 9 | 4,000 | 1 |',
                     '| deltas | 2 | 1.0 | 3 | 2,000 | 1 |',
                     '| values=map | 1 | 0.5 | 3 | 1,000 | 1 |',
                     '| off | 2 | 1.0 | 6 | 2,000 | 0 |',
                     '| 4-1 | blackbox/plain | values=map deltas | a\\|b c |'):
            self.assertIn(line, text.splitlines())
        self.assertIn('Seeds: 4, 5. Commits: abc.', text)
        covered, pairs = round_log.covered_pairs(entries)
        self.assertEqual(pairs, len(plan.make_covering(0).pairs()))
        row_pairs = len(plan.FACTORS) * (len(plan.FACTORS) - 1) // 2
        self.assertGreater(covered, row_pairs)
        self.assertLess(covered, 3 * row_pairs)
        self.assertEqual([self.log.next_round(seed) for seed in (4, 5, 6)], [3, 4, 0])

    def run_rounds(self, stress, number):
        """Runs rounds with a shell script in place of db_stress. Returns (exit code, output)."""
        self.write('bin/db_stress_tool/db_stress', '#!/bin/sh\n' + stress, 0o755)
        self.write('bin/overlap_stress_test', '#!/bin/sh\nexit 1\n', 0o755)
        with contextlib.redirect_stdout(io.StringIO()) as out, \
                mock.patch.object(run_tests, 'stop_on_sigterm'):
            code = crash_test.main(['--rounds', str(number), '--seconds', '1', '--interval', '1',
                                    '--build', os.path.join(self.dir, 'bin'), '--dir', self.dir])
        return code, out.getvalue()

    @unittest.skipUnless(os.path.exists(CrashTestCommand.SCRIPT), 'needs build/src')
    def test_a_finding_is_kept_and_the_run_goes_on(self):
        """db_stress is a script that fails, so each round ends at once."""
        rows = list(itertools.islice(plan.rounds(1), 3))
        self.assertNotIn('overlap', [row['mode'] for row in rows])
        code, out = self.run_rounds('echo "Verification failed for key 1" >&2; exit 1', len(rows))
        self.assertEqual(code, 1, out)
        entries = self.log.entries()
        self.assertEqual([(e['round'], e['mode'], e['features']) for e in entries],
                         [(i, plan.mode_text(r), plan.features_text(r))
                          for i, r in enumerate(rows)])
        for entry in entries:
            self.assertEqual((entry['result'], entry['problem']),
                             ('finding', 'Verification failed for key 1'))
            folder = os.path.join(self.dir, 'rounds', f"{entry['seed']}-{entry['round']}")
            with open(os.path.join(folder, 'repeat'), encoding='utf-8') as f:
                line = f.read()
            self.assertEqual(line.count('\n'), 1)
            self.assertIn(f"--repeat '{entry['mode']} {entry['features']}'", line)
            self.assertIn(line.strip(), out)
        # The line repeats the round: the same flags, and the same finding.
        folder = os.path.join(self.dir, 'rounds', '1-0')
        with open(os.path.join(folder, 'repeat'), encoding='utf-8') as f:
            run = subprocess.run(f.read(), shell=True, capture_output=True, text=True)
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertIn('Verification failed for key 1', run.stdout)
        again = [d for d in os.listdir(os.path.join(self.dir, 'rounds')) if d.startswith('repeat-')]
        self.assertEqual(len(again), 1)

        def command(name):
            path = os.path.join(self.dir, 'rounds', name, 'output')
            with open(path, encoding='utf-8') as f:
                line = re.search(r'^Running db_stress with pid=\d+: (.*)$', f.read(), re.M).group(1)
            return line.replace(name, 'NAME')
        self.assertEqual(command('1-0'), command(again[0]))

    def test_what_a_command_started_is_ended(self):
        for name, command, expected in (('ends', 'sleep 1000 & echo $! > pid', 0),
                                        ('stays', 'exec sleep 1000', None)):
            folder = os.path.join(self.dir, name)
            os.makedirs(folder)
            limit = 0.01 if expected is None else 600
            self.assertEqual(crash_test.run(['sh', '-c', command], folder, limit, 600)[0],
                             expected)
            self.assertFalse(os.path.exists(f'{folder}.stacks'))
        with open(os.path.join(self.dir, 'ends', 'test', 'pid'), encoding='utf-8') as f:
            pid = f.read().strip()

        def state():
            with contextlib.suppress(OSError), open(f'/proc/{pid}/stat', encoding='utf-8') as f:
                return f.read().rpartition(') ')[2][:1]
            return ''
        while state() not in ('', 'Z'):  # gone, or not waited for by init yet
            time.sleep(0.01)

    def test_stacks_of_a_run_that_takes_long(self):
        folder = os.path.join(self.dir, 'long')
        os.makedirs(folder)
        script = ('#!/bin/sh\nmkdir db\necho x > db/LOG\necho y > db/LOG.old.1\n'
                  'echo z > db/MANIFEST\nsleep 1000\nexit\n')
        stress = self.write('bin/db_stress', script, 0o755)
        code, _ = crash_test.run([stress, f'--db={folder}/test/db'], folder, 1, 0.5)
        self.assertIsNone(code)
        with open(f'{folder}.stacks', encoding='utf-8') as f:
            self.assertRegex(f.read(), r'^(process \d+\n|gdb is not installed\n)')
        self.assertEqual(sorted(os.listdir(f'{folder}.logs')),
                         ['test_db_LOG', 'test_db_LOG.old.1'])

    def test_stacks(self):
        gdb = self.write('bin/a_gdb', '#!/bin/sh\necho stacks of $2; exit 1\n', 0o755)
        path = os.path.join(self.dir, 'stacks')
        for program, expected in ((gdb, 'process 1\nstacks of 1\nprocess 23\nstacks of 23\n'),
                                  (gdb + '2', f'{gdb}2 is not installed\n')):
            stacks.write([1, 23], path, program)
            with open(path, encoding='utf-8') as f:
                self.assertEqual(f.read(), expected)

    def test_one_at_a_time(self):
        lock = crash_test.Lock(self.dir)
        with self.assertRaises(SystemExit):
            crash_test.Lock(self.dir)
        lock.file.close()
        crash_test.Lock(self.dir).file.close()
        # A shell that starts another program is two processes with the same arguments for a moment.
        stress = self.write('bin/db_stress', '#!/bin/sh\necho\nread line\n', 0o755)
        with subprocess.Popen([stress, f'--db={self.dir}/rounds/1-0/db'], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, start_new_session=True) as child:
            self.addCleanup(child.stdout.close)
            child.stdout.read(1)  # it runs
            try:
                self.assertEqual(crash_test.other_stress(self.dir), [child.pid])
                self.assertEqual(crash_test.other_stress(self.dir + '/rounds/1-1'), [])
                with self.assertRaises(SystemExit):
                    crash_test.Lock(self.dir)
            finally:
                os.killpg(child.pid, signal.SIGKILL)


class OnDisk(Temporary):
    # Stands in for upgrade.cc with either library: what a database holds is in a file, and so is
    # whether RocksDB would refuse it.
    FAKE = '''
import os, sys
flags = dict(a[2:].split('=', 1) for a in sys.argv[2:])
db, on = flags['db'], 'features' in flags
mark = os.path.join(db, 'mark')
def write(path, text):
    with open(path, 'w') as f:
        f.write(text)
if sys.argv[1] == 'create':
    os.makedirs(db)
if sys.argv[1] in ('create', 'work'):
    write(os.path.join(db, 'contents'), sys.argv[1])
    write(flags['model'], sys.argv[1])
if sys.argv[1] == 'work' and on:
    write(mark, '')
if sys.argv[1] == 'off' and os.environ.get('OFF') != 'nothing':
    os.unlink(mark)
if 'stock' in sys.argv[0] and os.path.exists(mark) and os.environ.get('REFUSE') != 'no':
    sys.exit(os.environ.get('MESSAGE', 'open: Corruption: VersionEdit: unknown tag'))
if sys.argv[1] == 'dump':
    with open(os.path.join(db, 'contents')) as f:
        text = f.read()
    write(flags['out'], text + os.environ.get('LOST', ''))
'''

    # Stands in for ldb: the second `disable_features` of a database has nothing to do.
    LDB = '''#!/bin/sh
mark="${1#--db=}/mark"
if [ "$3" = disable_features ]; then
  if [ -e "$mark" ]; then echo "To do: a lot"; else echo "Nothing to do"; fi
  if [ "$OFF" != nothing ]; then rm -f "$mark"; fi
  echo "OK: RocksDB opens it"
else
  echo OK
fi
'''

    def run_case(self, features, **env):
        """Runs a case with scripts in place of all programs. Returns what is wrong, or None."""
        work = tempfile.mkdtemp(dir=self.dir)
        for side in ('stock', 'strata'):
            self.write(os.path.join(work, f'{side}_upgrade'), f'#!{sys.executable}\n{self.FAKE}',
                       0o755)
            self.write(os.path.join(work, side, 'tools', 'ldb'), self.LDB, 0o755)
        builds = [os.path.join(work, side) for side in ('stock', 'strata')]
        case = upgrade.Case(*builds, work, 'plain', upgrade.FEATURES[features])
        with mock.patch.dict(os.environ, env):
            try:
                return case.run()
            except steps.Problem as problem:
                return str(problem)

    def test_a_case(self):
        self.assertIsNone(self.run_case('deltas'))
        self.assertIsNone(self.run_case('deltas_by_ldb'))

    def test_problems(self):
        self.assertRegex(self.run_case('deltas_by_ldb', OFF='nothing') or '',
                         'does not say "Nothing to do"')
        for env, problem in (
                ({'REFUSE': 'no'}, 'before the way back: stock opens the database'),
                ({'MESSAGE': 'Segmentation fault'}, 'refuses the database with another message'),
                ({'LOST': '?'}, 'created: stock finds other contents'),
                ({'OFF': 'nothing'}, 'the way back: stock dump .* unknown tag')):
            self.assertRegex(self.run_case('deltas', **env) or '', problem, env)
        # The stand-in leaves a mark that these features must not leave.
        self.assertRegex(self.run_case('merged_values') or '', 'without a way back: stock dump')

    def test_traces(self):
        self.write('clean/OPTIONS-000007', '# strata: cf_paths=/a')
        self.write('clean/OPTIONS-000012', '[DBOptions]')
        self.write('clean/000013.blob')
        steps.require_no_trace(f'{self.dir}/clean')
        self.write('options/OPTIONS-000012', '# strata: cf_paths=/a')
        for name in ('000014.delta', '000015.dbtmp', 'WALBUFFER'):
            self.write(f'{name}.files/{name}')
        for folder in os.listdir(self.dir):
            if folder != 'clean':
                with self.assertRaises(steps.Problem, msg=folder):
                    steps.require_no_trace(f'{self.dir}/clean', f'{self.dir}/{folder}')

    def test_refusals_are_documented(self):
        refusals = [r for features in upgrade.FEATURES.values() for r in features.refusals]
        for refusal in {upgrade.MISSING_PATH, *refusals}:
            upgrade.require_documented(refusal)
        with self.assertRaises(steps.Problem):
            upgrade.require_documented(('no page says this', 'formats.md'))

    def test_report(self):
        def fail():
            raise steps.Problem('a reason')
        with contextlib.redirect_stdout(io.StringIO()) as out:
            self.assertEqual(steps.report({'a': (fail, 'x'), 'b': (lambda: None, 'fine')}), 1)
            self.assertEqual(steps.report({'b': (lambda: None, 'fine')}), 0)
        self.assertEqual(out.getvalue().splitlines(), [
            'a: a reason', 'b: fine', '1 passed, 1 failed', 'b: fine', '1 passed, 0 failed'])


class OverlaySources(Temporary):
    def test_kinds(self):
        for path, kind in {
            'db/address_map/address_map.cc': 'LIB',
            'db/address_map/address_map_test.cc': 'TEST_MAIN',
            'db_stress_tool/layout_test.cc': 'TEST_MAIN',
            'test_util/history.cc': 'TEST_LIB',
            'db/history_test_util.cc': 'TEST_LIB',
            'test_util/interposed_clock_test_util.cc': 'SEEDED',
            'test_util/seeded_run_test_util.cc': 'SEEDED',
            'db/seeded_test.cc': 'TEST_MAIN',
            'test_util/seeded.cc': 'TEST_LIB',
            'util/headers_shared.cc': 'SHARED',
            'tools/db_bench_paths.cc': 'BENCH',
            'tools/workloads/host.cc': 'BENCH_LIB',
            'tools/ldb_paths.cc': 'LIB',
            'tools/sst_dump_delta.cc': 'LIB',
            'db_stress_tool/layout.cc': 'STRESS',
            'fuzz/strata/layout_fuzzer.cc': 'FUZZER',
            'fuzz/strata/fuzz_corpus_test.cc': 'TEST_MAIN',
        }.items():
            self.assertEqual(overlay_sources.kind_of(path), kind, path)

    def test_no_rule_is_an_error(self):
        for path in ('tools/thing.cc', 'include/rocksdb/x.cc', 'util/x_bench.cc', 'db/x_fuzzer.cc',
                     'fuzz/strata/x.cc'):
            with self.assertRaises(overlay_sources.Misplaced, msg=path):
                overlay_sources.kind_of(path)

    def test_find(self):
        for path in ('db/b.cc', 'db/a.cc', 'db/a_test.cc', 'db/a.h', 'db/.hidden.cc',
                     'fuzz/a_fuzzer.cc', 'build/src/db/c.cc', 'docs/d.cc'):
            self.write(path)
        found = overlay_sources.find(self.dir)
        self.assertEqual(found['LIB'], ['db/a.cc', 'db/b.cc'])
        self.assertEqual(found['TEST_MAIN'], ['db/a_test.cc'])
        self.assertEqual(found['FUZZER'], ['fuzz/a_fuzzer.cc'])
        self.assertEqual(overlay_sources.parse(overlay_sources.render(found)), found)
        self.write('util/a_test.cc')
        with self.assertRaises(overlay_sources.Misplaced):  # two binaries of one name
            overlay_sources.find(self.dir)

    def test_a_forgotten_file_is_an_error(self):
        self.write('db/a.cc')
        os.makedirs(os.path.join(self.dir, 'cmake'))

        def run(mode):
            shutil.copytree(HERE, os.path.join(self.dir, 'scripts'), dirs_exist_ok=True)
            script = os.path.join(self.dir, 'scripts', 'overlay_sources.py')
            return subprocess.run([sys.executable, script, mode], capture_output=True, text=True)
        self.assertEqual(run('--write').returncode, 0)
        self.assertEqual(run('--check').returncode, 0)
        self.write('db/b.cc')
        check = run('--check')
        self.assertEqual(check.returncode, 1)
        self.assertIn('+ db/b.cc', check.stdout)
        os.unlink(os.path.join(self.dir, 'db/a.cc'))
        self.assertIn('- db/a.cc', run('--check').stdout)
        self.assertEqual(run('--write').returncode, 0)
        self.assertEqual(run('--check').returncode, 0)

    @unittest.skipUnless(shutil.which('make'), 'needs make')
    def test_make_reads_the_list(self):
        found = {kind: [] for kind in overlay_sources.KINDS}
        found['LIB'] = ['db/a.cc', 'db/b.cc']
        self.write('list.mk', overlay_sources.render(found))
        self.write('Makefile', 'LIB_SOURCES = x.cc \\\n\ninclude list.mk\nall:\n'
                   '\t@echo "[$(strip $(LIB_SOURCES))]"\n')
        out = subprocess.run(['make', '-s', '-C', self.dir], capture_output=True, text=True,
                             env={k: v for k, v in os.environ.items()
                                  if k not in ('MAKEFLAGS', 'MAKELEVEL')})
        self.assertIn('[x.cc db/a.cc db/b.cc]', out.stdout)


class RunTests(Temporary):
    def test_binary_that_does_not_build_is_removed(self):
        """An old binary would pass for the new one."""
        self.write('bin/ninja', '#!/bin/sh\ncase "$*" in *bad*) exit 1;; esac\n', 0o755)
        for name in ('good', 'bad'):
            self.write('build/' + name)
        path = os.path.join(self.dir, 'bin') + os.pathsep + os.environ['PATH']
        with mock.patch.dict(os.environ, {'PATH': path}):
            run_tests.build_or_remove(os.path.join(self.dir, 'build'), ['good', 'bad', 'new'], 1)
        self.assertEqual(os.listdir(os.path.join(self.dir, 'build')), ['good'])

    def binary(self, name, body):
        return [self.write(f'bin/{name}', '#!/bin/sh\n' + body, 0o755)]

    def suite(self, tests, retries=0, config='', goes_on=False):
        """Runs {name: (shell text, numbers, retry)} as a suite; returns ({entry: result}, what was
        printed)."""
        suite = run_tests.Suite(self.dir, config, goes_on)
        for name, (body, numbers, retry) in tests.items():
            suite.add(name, self.binary(name, body), numbers, retry)
        # ctest writes to the real stdout.
        results, out = {}, io.StringIO()
        with contextlib.redirect_stdout(out), open(os.path.join(self.dir, 'out'), 'wb') as f:
            keep = os.dup(1)
            os.dup2(f.fileno(), 1)
            try:
                results = suite.run(4, retries)
            finally:
                os.dup2(keep, 1)
                os.close(keep)
        with open(os.path.join(self.dir, 'out'), encoding='utf-8') as f:
            return results, out.getvalue() + f.read()

    XML = '''cat > "${GTEST_OUTPUT#xml:}" <<END
<?xml version="1.0" encoding="UTF-8"?>
<testsuites><testsuite name="S">
<testcase name="A" status="run" time="0" classname="S" />
<testcase name="B" status="run" time="0" classname="S">%s</testcase>
<testcase name="DISABLED_C" status="notrun" time="0" classname="S" />
</testsuite></testsuites>
END
'''

    # A binary with 9 cases, of which two end the process, one fails, and one does not end.
    DYING = '''
if [ "$1" = --gtest_list_tests ]; then
  echo "P/S.  # TypeParam = int"
  for i in 0 1 2 3 DISABLED_4 5 6 7 8 9; do echo "  C/$i  # GetParam() = $i"; done
  exit 0
fi
case "$1" in
  --gtest_flagfile=*) cases=$(sed 's/--gtest_filter=//; s/:/ /g' "${1#*=}");;
  *) cases=
     n=0
     for i in 0 1 2 3 5 6 7 8 9; do
       [ $((n % ${GTEST_TOTAL_SHARDS:-1})) = ${GTEST_SHARD_INDEX:-0} ] && cases="$cases P/S.C/$i"
       n=$((n + 1))
     done;;
esac
text=
for c in $cases; do
  echo "[ RUN      ] $c"
  case $c in
    */1|*/6) kill -ABRT $$;;
    */3) echo "reason of $c"; echo "[  FAILED  ] $c (0 ms)"; failure='<failure message="x"/>';;
    */8) sleep 60;;
    *) echo "[       OK ] $c (0 ms)"; failure=;;
  esac
  text="$text<testcase name=\\"${c#*.}\\" status=\\"run\\" classname=\\"${c%%.*}\\">"
  text="$text$failure</testcase>"
done
echo "<testsuites><testsuite>$text</testsuite></testsuites>" > "${GTEST_OUTPUT#xml:}"
'''

    def test_cases_behind_one_that_ends_the_process(self):
        for shards in (1, 2):
            with self.subTest(shards=shards):
                results, out = self.suite(
                    {'dying': (self.DYING, {'timeout': 2, 'shards': shards}, False)}, goes_on=True)
                self.assertEqual(sum(r['passed'] for r in results.values()), 5)
                self.assertEqual(sorted(c for r in results.values() for c in r['failed']),
                                 [f'P/S.C/{i}' for i in (1, 3, 6, 8)])
                self.assertTrue(any(r['timeout'] for r in results.values()))
                notes = ' '.join(r['note'] for r in results.values())
                self.assertEqual(notes.count('SIGABRT'), 2)
                self.assertIn('reason of P/S.C/3', out)
        results, _ = self.suite({'dying': ('echo "Ran 1 test in $GTEST_FILTER"',
                                           {'endless': 'S.A', 'differs': 'S.B'}, False)},
                                goes_on=True)
        with open(os.path.join(self.dir, 'strata-ctest', 'dying.log'), encoding='utf-8') as f:
            self.assertEqual(f.read(), 'Ran 1 test in -S.B:S.A\n')
        results, _ = self.suite({'dying': (self.DYING, {'timeout': 2}, False)})
        self.assertEqual((results['dying']['passed'], results['dying']['failed']), (1, ['P/S.C/1']))

    def test_results(self):
        results, out = self.suite({
            'good': (self.XML % '', {}, False),
            'bad': (self.XML % '<failure message="x"/>' +
                    'echo "[ RUN      ] S.B"; echo the reason; echo "[  FAILED  ] S.B (0 ms)"; '
                    'exit 1', {}, False),
            'crash': ('echo "[ RUN      ] S.A"; echo "[       OK ] S.A (0 ms)"; '
                      'echo "[ RUN      ] S.B"; kill -SEGV $$', {}, False),
            'slow': ('echo "[ RUN      ] S.Slow"; sleep 60', {'timeout': 1}, False),
            'plain': ('true', {}, False),
            'plainbad': ('exit 3', {}, False),
            'leaky': (self.XML % '' + 'exit 1', {}, False),
            'python': ('echo "Ran 7 tests in 0.1s"', {}, False),
        })
        self.assertEqual({e: (r['passed'], r['failed']) for e, r in results.items()}, {
            'good': (2, []), 'bad': (1, ['S.B']), 'crash': (1, ['S.B']), 'slow': (0, ['S.Slow']),
            'plain': (1, []), 'plainbad': (0, ['(exit)']), 'leaky': (2, ['(exit)']),
            'python': (7, [])})
        self.assertTrue(results['slow']['timeout'])
        self.assertIn('SIGSEGV', results['crash']['note'])
        self.assertIn('the reason', out)
        self.assertFalse(os.path.exists(os.path.join(self.dir, 'strata-ctest', 'tmp')))
        with contextlib.redirect_stdout(io.StringIO()) as text:
            self.assertEqual(run_tests.finish(list(results.values())), 1)
        self.assertEqual(text.getvalue().strip().split('\n')[-1], '14 passed, 5 failed')

    def test_configuration(self):
        config = run_tests.CONFIGS['layouts']
        self.assertEqual(config.count(run_tests.PATHS), 1)
        paths = os.path.join(self.dir, 'strata-ctest', 'tmp', 'entry.paths')
        results, _ = self.suite({'entry': (
            f'grep -q "cf_paths = {{dir}}, {paths}/{{db}}" "$STRATA_CONFIG" && '
            f'cd {paths} && touch left', {}, False)}, config=config)
        self.assertEqual(results['entry']['failed'], [])
        self.assertFalse(os.path.exists(paths))
        # Entries of a suite without one keep what the user has set.
        with mock.patch.dict(os.environ, STRATA_CONFIG='users'):
            results, _ = self.suite({'entry': ('test "$STRATA_CONFIG" = users', {}, False)})
        self.assertEqual(results['entry']['failed'], [])

    def test_sides(self):
        self.assertEqual(sorted(run_tests.FORCED['all']),
                         ['STRATA_FORCE_ADDRESS_MAP', 'STRATA_FORCE_DELTA_SEPARATION',
                          'STRATA_FORCE_MERGED_VALUES'])
        for variables in run_tests.FORCED.values():
            for variable in variables:
                read_by = []
                for source in glob.glob(os.path.join(ROOT, 'options', 'strata', '*_options.cc')):
                    with open(source, encoding='utf-8') as f:
                        if f'getenv("{variable}")' in f.read():
                            read_by.append(source)
                self.assertEqual(len(read_by), 1, variable)

    TSAN_REPORT = """WARNING: ThreadSanitizer: data race (pid=1)
  Write of size 4 at 0x1 by thread T1:
    #0 Set() a.cc:3

SUMMARY: ThreadSanitizer: data race a.cc:3 in Set()"""

    def test_reports_of_sanitizers(self):
        ubsan = 'a.cc:5:1: runtime error: signed integer overflow'
        stack = '    #0 0x1 in main a.cc:5'
        text = f'before\n{self.TSAN_REPORT}\nbetween\n{ubsan}\n{stack}\nafter\n{ubsan}\n{ubsan}'
        self.assertEqual(run_tests.sanitizer_reports(text.split('\n')),
                         [self.TSAN_REPORT.split('\n'), [ubsan, stack], [ubsan], [ubsan]])
        # ThreadSanitizer reports, lets the cases pass, and makes the exit code bad.
        body = self.XML % '' + f"cat <<'END'\n{self.TSAN_REPORT}\nEND\nseq 1000; exit 66"
        results, out = self.suite({'race': (body, {}, False)})
        self.assertEqual(results['race']['failed'], ['(exit)'])
        self.assertIn('1 reports of a sanitizer, the first: SUMMARY: ThreadSanitizer: data race',
                      results['race']['note'])
        self.assertIn('#0 Set() a.cc:3', out)

    def test_environment_of_sanitizers(self):
        build = os.path.join(self.dir, 'tsan')
        self.write('tsan/x')
        self.write('build/src/tools/tsan_suppressions.txt', 'race:theirs')
        self.write('scripts/suppressions/tsan.txt', 'race:ours')
        with mock.patch.dict(os.environ, {'TSAN_OPTIONS': 'verbosity=1'}), \
                mock.patch.object(run_tests, 'ROOT', self.dir), \
                mock.patch.object(run_tests, 'HERE', os.path.join(self.dir, 'scripts')):
            os.environ.pop('STRATA_TIMEOUT_FACTOR', None)
            words = run_tests.set_sanitizers_up(build)
            self.assertIn(words, ([], ['setarch', '-R']))
            options = os.environ['TSAN_OPTIONS']
            self.assertEqual(os.environ['STRATA_TIMEOUT_FACTOR'], '10')
        path = os.path.join(build, 'tsan-suppressions.txt')
        self.assertTrue(options.endswith(f':suppressions="{path}":verbosity=1'), options)
        with open(path, encoding='utf-8') as f:
            self.assertEqual(f.read(), 'race:theirs\nrace:ours')

    def test_what_is_skipped_is_repeated(self):
        results, _ = self.suite({'t': ('echo "skipped: ruff: not installed"', {}, False)})
        self.assertEqual(results['t']['failed'], [])
        with contextlib.redirect_stdout(io.StringIO()) as text:
            self.assertEqual(run_tests.finish(list(results.values())), 0)
        self.assertIn('SKIPPED t: ruff: not installed\n', text.getvalue())

    def test_rows_of_binaries(self):
        def result(binary, **changes):
            return {'binary': binary, 'timeout': False, 'seconds': 2, 'passed': 3, 'failed': [],
                    **changes}
        rows = run_tests.binary_rows({
            'a.1of2': result('a'), 'a.2of2': result('a'),
            'b.1of2': result('b'), 'b.2of2': result('b', failed=['(no result)'], passed=0),
            'c': result('c', flaky=['S.A']), 'd': result('d', timeout=True, failed=['S.B'])})
        self.assertEqual({n: (r['result'], r['seconds'], r['passed']) for n, r in rows.items()},
                         {'a': ('passed', 4, 6), 'b': ('failed', 4, 3), 'c': ('flaky', 2, 3),
                          'd': ('timeout', 2, 3)})
        # An entry that was not reached, because the run was stopped.
        suite = run_tests.Suite(self.dir)
        suite.add('e', self.binary('e', 'true'), {}, False)
        self.assertEqual(run_tests.binary_rows(suite.results())['e']['result'], 'failed')

    def test_private_directories_and_shards(self):
        body = ('test "$TEST_TMPDIR" = "$PWD" && test -z "$(ls)" && touch x && '
                'test "$GTEST_TOTAL_SHARDS" = 3 && test -n "$GTEST_SHARD_INDEX"')
        results, _ = self.suite({'t': (body, {'shards': 3}, False)})
        self.assertEqual(sorted(results), ['t.1of3', 't.2of3', 't.3of3'])
        self.assertEqual([r['failed'] for r in results.values()], [[]] * 3)

    def test_left_over_processes_are_killed(self):
        marker = os.path.join(self.dir, 'alive')
        results, _ = self.suite({'t': (f'(sleep 3; touch {marker}) & exit 0', {}, False)})
        self.assertEqual(results['t']['failed'], [])
        time.sleep(4)
        self.assertFalse(os.path.exists(marker))

    def test_a_stopped_run_stops_its_tests(self):
        marker, began = os.path.join(self.dir, 'alive'), os.path.join(self.dir, 'began')
        command = self.binary('t', f'touch {began}; sleep 4; touch {marker}')
        code = (f'import sys; sys.path.insert(0, {HERE!r}); import run_tests; '
                'run_tests.stop_on_sigterm(); '
                f'suite = run_tests.Suite({self.dir!r}); '
                f'suite.add("t", {command!r}, {{}}, False); suite.run(1, 0)')
        child = subprocess.Popen([sys.executable, '-c', code], stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)
        while not os.path.exists(began):
            self.assertIsNone(child.poll())
            time.sleep(0.05)
        child.terminate()
        self.assertEqual(child.wait(30), 128 + signal.SIGTERM)
        time.sleep(5)
        self.assertFalse(os.path.exists(marker))

    def test_stopping_is_not_broken_off(self):
        began, saved = os.path.join(self.dir, 'began'), os.path.join(self.dir, 'saved')
        code = (f'import sys, time; sys.path.insert(0, {HERE!r}); import run_tests\n'
                f'run_tests.stop_on_sigterm()\n'
                f'try:\n    open({began!r}, "w"); time.sleep(30)\n'
                f'finally:\n    open({began + "2"!r}, "w"); time.sleep(1); open({saved!r}, "w")\n')
        child = subprocess.Popen([sys.executable, '-c', code])
        for step in (began, began + '2'):
            while not os.path.exists(step):
                self.assertIsNone(child.poll())
                time.sleep(0.02)
            child.terminate()
        self.assertEqual(child.wait(30), 128 + signal.SIGTERM)
        self.assertTrue(os.path.exists(saved))

    def test_alone(self):
        seen = os.path.join(self.dir, 'seen')
        body = f'echo "$GTEST_FILTER $GTEST_SHARD_INDEX $GTEST_TOTAL_SHARDS" >> {seen}.$$'
        results, _ = self.suite({'t': (body, {'shards': 2, 'alone': '*.A/*'}, False)})
        self.assertEqual(set(results), {'t.1of2', 't.2of2', 't.alone'})
        lines = []
        for name in os.listdir(self.dir):
            if name.startswith('seen.'):
                with open(os.path.join(self.dir, name), encoding='utf-8') as f:
                    lines += f.read().splitlines()
        self.assertEqual(sorted(lines), ['*.A/*  ', '-*.A/* 0 2', '-*.A/* 1 2'])

        results, _ = self.suite({'u': (body.replace('seen.', 'seen.u'), {
            'alone': '*.A/*', 'differs': 'B.C'}, False)})
        self.assertEqual(set(results), {'u', 'u.alone'})
        lines = []
        for name in os.listdir(self.dir):
            if name.startswith('seen.u'):
                with open(os.path.join(self.dir, name), encoding='utf-8') as f:
                    lines += f.read().splitlines()
        self.assertEqual(sorted(lines), ['*.A/*  ', '-*.A/*:B.C  '])

        none = self.XML.replace('status="run"', 'status="notrun"') % ''
        results, out = self.suite({'t': (none, {'alone': '*.Renamed/*'}, False)})
        self.assertEqual(results['t.alone']['failed'], ['(no case)'])
        self.assertIn('no case matches *.Renamed/*', out)

    def test_retry(self):
        flag = os.path.join(self.dir, 'flag')
        once = (f'if [ -e {flag}.$0 ]; then exit 0; fi; mkdir -p $(dirname {flag}.$0); '
                f'touch {flag}.$0; exit 1')
        results, out = self.suite({'flaky': (once, {}, True), 'ours': (once, {}, False),
                                   'bad': ('exit 1', {}, True)}, retries=1)
        self.assertEqual({e: bool(r['failed']) for e, r in results.items()},
                         {'flaky': False, 'ours': True, 'bad': True})
        self.assertEqual(results['flaky']['flaky'], ['(exit)'])
        self.assertIn('running again', out)
        with contextlib.redirect_stdout(io.StringIO()) as text:
            self.assertEqual(run_tests.finish([results['flaky']]), 0)
        self.assertIn('FLAKY', text.getvalue())

    def test_nothing_run_is_a_failure(self):
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(run_tests.finish([]), 1)

    def test_results_hold_until_the_code_changes(self):
        with self.assertRaises(SystemExit):
            run_tests.fingerprint(os.path.join(self.dir, 'objects'))
        self.write('objects/db/a.cc.o', 'a')
        self.write('objects/build_version.cc.o', 'one commit')
        objects = os.path.join(self.dir, 'objects')
        first = run_tests.fingerprint(objects)
        self.write('objects/build_version.cc.o', 'another')
        self.assertEqual(run_tests.fingerprint(objects), first)
        self.write('objects/db/b.cc.o', '')
        self.assertNotEqual(run_tests.fingerprint(objects), first)
        os.unlink(os.path.join(objects, 'db/b.cc.o'))
        self.write('objects/db/a.cc.o', 'b')
        self.assertNotEqual(run_tests.fingerprint(objects), first)

    def test_list(self):
        listed, numbers = run_tests.read_list()
        upstream = run_tests.upstream_tests()
        self.assertEqual(len(listed), len(set(listed)))
        self.assertLessEqual(set(numbers), set(upstream) | set(run_tests.own_tests()))
        self.assertIn('c_test', upstream)
        self.assertGreater(len(upstream), 200)
        for values in numbers.values():
            self.assertLessEqual(set(values), {'shards', 'timeout', 'weight', 'alone', 'differs',
                                               'endless'})


class CheckStyle(Temporary):
    def tool(self, name, version, body='exit 0'):
        """A stand-in for clang-format or ruff in build/style-venv."""
        return self.write(f'build/style-venv/bin/{name}', '#!/bin/sh\n'
                          f'if [ "$1" = --version ]; then echo "{name} version {version} (x)"; '
                          f'exit 0; fi\n{body}\n', 0o755)

    def check(self):
        """Returns (exit code, what was printed). Only the stand-ins are on PATH."""
        self.write('build/src/.clang-format')
        git = shutil.which('git')
        os.makedirs(os.path.join(self.dir, 'path'), exist_ok=True)
        if git and not os.path.lexists(os.path.join(self.dir, 'path', 'git')):
            os.symlink(git, os.path.join(self.dir, 'path', 'git'))
        with contextlib.redirect_stdout(io.StringIO()) as out, \
                mock.patch.dict(os.environ, {'PATH': os.path.join(self.dir, 'path')}), \
                mock.patch.object(sys, 'executable', os.path.join(self.dir, 'no-python')):
            code = check_style.main([], self.dir)
        return code, out.getvalue()

    def test_missing_tools_are_skipped(self):
        self.write('db/a.cc', '// A\n')
        code, out = self.check()
        self.assertEqual(code, 0, out)
        skipped = re.findall('^skipped: (.*?): not installed, .*"make style-tools"', out, re.M)
        self.assertEqual(skipped, ['clang-format', 'ruff'])

    def test_other_versions_are_skipped(self):
        self.tool('clang-format', '3.9.1', 'exit 1')
        self.tool('ruff', '0.0.9', 'exit 1')
        code, out = self.check()
        self.assertEqual(code, 0, out)
        self.assertIn('skipped: clang-format: version 3.9.1 is installed, '
                      f'{check_style.wanted_version("clang-format")} is needed', out)
        self.assertIn('skipped: ruff: version 0.0.9 is installed', out)

    def test_complaints_are_failures(self):
        self.write('db/a.cc', 'int  a;\n')
        self.write('scripts/a.py', 'import os\n')
        self.tool('clang-format', check_style.wanted_version('clang-format') + '.9.9',
                  'echo "$@" >&2; echo "db/a.cc:1:4: error: code should be clang-formatted" >&2; '
                  'exit 1')
        self.tool('ruff', check_style.wanted_version('ruff') + '.99', 'echo "$@: F401"; exit 1')
        code, out = self.check()
        self.assertEqual(code, 1, out)
        self.assertIn('db/a.cc:1: not formatted; "make format" does it\n', out)
        self.assertRegex(out, r'(?m)^check .* scripts/a\.py: F401$')
        self.assertNotIn('skipped', out)

    def test_a_tool_that_fails_without_a_reason_is_a_failure(self):
        self.write('db/a.cc', 'int a;\n')
        self.tool('clang-format', check_style.wanted_version('clang-format') + '.0.0',
                  'echo "no such style" >&2; exit 2')
        code, out = self.check()
        self.assertEqual(code, 1, out)
        self.assertIn('no such style', out)

    def test_columns(self):
        self.write('db/a.cc', '/' * 80 + '\n' + '/' * 81 + '\n#include "' + 'a' * 80 + '"\n'
                   '// https://' + 'a' * 80 + '\n')
        self.write('scripts/a.py', '#' * 100 + '\n' + '#' * 101 + '\n')
        self.write('build/b.cc', '/' * 90)
        code, out = self.check()
        self.assertEqual(code, 1, out)
        self.assertEqual(re.findall(r'^(\S+): \d+ columns', out, re.M),
                         ['db/a.cc:2', 'scripts/a.py:2'])

    def test_our_files(self):
        root = os.path.dirname(HERE)
        files = check_style.our_files(root)
        for path in ('scripts/check_style.py', 'bench/run', 'cmake/strata.mk'):
            self.assertIn(path, files)
        self.assertFalse([f for f in files if f.startswith('build/')])


class Fuzz(Temporary):
    def test_without_clang(self):
        clang = self.write('path/clang++', '#!/bin/sh\nexit 1\n', 0o755)  # it has no libFuzzer
        self.write('path/clang', '#!/bin/sh\n', 0o755)
        for path in (os.path.dirname(clang), self.dir):
            with mock.patch.dict(os.environ, {'PATH': path}), \
                    contextlib.redirect_stderr(io.StringIO()) as err:
                os.environ.pop('CLANGXX', None)
                self.assertEqual(fuzz.main([]), 1)
            self.assertRegex(err.getvalue(), r'\Amake fuzz needs clang .*apt-get install .*\n\Z')

    def test_with_clang(self):
        clang = self.write('path/clang++-16', '#!/bin/sh\nexit 0\n', 0o755)
        self.write('path/clang-16', '#!/bin/sh\n', 0o755)
        with mock.patch.dict(os.environ, {'PATH': os.path.dirname(clang)}):
            os.environ.pop('CLANGXX', None)
            self.assertEqual(fuzz.find_clang(), (clang.replace('++', ''), clang))

    def test_names(self):
        root = os.path.dirname(HERE)
        everything = fuzz.fuzzers(root, [])
        self.assertIn('delta_edit_fuzzer', everything)
        self.assertEqual(fuzz.fuzzers(root, ['delta_edit']), ['delta_edit_fuzzer'])
        with self.assertRaises(SystemExit):
            fuzz.fuzzers(root, ['delta_edits'])

    def run_fuzzer(self, body):
        binary = self.write('build/fuzz/a_fuzzer', '#!/bin/sh\n' + body, 0o755)
        with contextlib.redirect_stdout(io.StringIO()) as out:
            run = fuzz.run_fuzzer(self.dir, binary, 7)
        return run, out.getvalue()

    def test_nothing_found(self):
        body = ('for a; do last=$a; done; touch "$last/input"; echo "$@" > args; '
                'printf "#8\\tNEW    cov: 40 ft: 50\\n#9\\tDONE   cov: 45 ft: 51 corp: 2/3b\\n"; '
                'echo "stat::number_of_executed_units: 123"')
        run, out = self.run_fuzzer(body)
        self.assertEqual(run, fuzz.Run(True, 123, 45, 1, []))
        self.assertIn('nothing found in 123 runs, 45 edges covered, 1 inputs in '
                      'build/fuzz-corpus/a_fuzzer', out)
        self.write('fuzz/strata/corpus/a/x')
        self.run_fuzzer(body)
        os.unlink(os.path.join(self.dir, 'fuzz/strata/corpus/a/input'))
        with open(os.path.join(self.dir, 'build/fuzz-findings/a_fuzzer/args'),
                  encoding='utf-8') as f:
            args = f.read().split()
        self.assertIn('-max_total_time=7', args)
        # libFuzzer adds what it learns to the first folder, which is not the one of the repository.
        self.assertEqual(args[-2:], [os.path.join(self.dir, 'build/fuzz-corpus/a_fuzzer'),
                                     os.path.join(self.dir, 'fuzz/strata/corpus/a')])

    def test_a_finding(self):
        run, out = self.run_fuzzer('echo the reason; echo "Test unit written to $PWD/crash-1"; '
                                   'exit 77')
        crash = os.path.join(self.dir, 'build/fuzz-findings/a_fuzzer/crash-1')
        self.assertFalse(run.good)
        self.assertEqual(run.findings, [crash])
        self.assertIn('the reason', out)
        self.assertIn(f'To run it again: {self.dir}/build/fuzz/a_fuzzer {crash}', out)
        self.assertIn('as a file in fuzz/strata/corpus/a/', out)
        run, out = self.run_fuzzer('exit 1')
        self.assertEqual(run.findings, [])
        self.assertIn('There is no input of this failure', out)

    def test_choose(self):
        paths = [self.write(name, text) for name, text in
                 (('hand', 'h'), ('long', 'xyz'), ('short', 'x'), ('more', 'xy'), ('none', ''))]
        hand, long, short, more, none = paths
        features = {hand: {1, 2}, long: {2, 3}, short: {2, 3}, more: {3, 4, 5}, none: {1}}
        self.assertEqual(fuzz.choose(features, [], 9), [more, hand])
        self.assertEqual(fuzz.choose(features, [more], 9), [hand])
        self.assertEqual(fuzz.choose(features, [more], 0), [])
        del features[more]
        self.assertEqual(fuzz.choose(features, [hand], 9), [short])
        # An input that was not run has no features.
        self.assertEqual(fuzz.choose(features, [more], 1), [hand])

    def test_merge(self):
        kept = [self.write('fuzz/strata/corpus/a/' + name, text)
                for name, text in (('by-hand', 'h'), ('0' * 40, 'old'))]
        found = [self.write('build/fuzz-corpus/a_fuzzer/' + name, text)
                 for name, text in (('one', 'new'), ('two', 'x' * (fuzz.CORPUS_BYTES + 1)))]
        files = kept + found
        control = '\n'.join([str(len(files)), '0', *files, 'STARTED 0 1', 'FT 0 7', 'COV 0 1',
                             'STARTED 1 3', 'FT 1 7 8', 'COV 1', 'STARTED 2 3', 'FT 2 8 9',
                             'COV 2', 'STARTED 3 4096', 'FT 3 10 11', 'COV 3'])
        binary = self.write('build/fuzz/a_fuzzer', '#!/bin/sh\nfor a; do case $a in '
                            f'-merge_control_file=*) cp {self.write("control", control)} '
                            '"${a#*=}";; esac; done\n', 0o755)
        with contextlib.redirect_stdout(io.StringIO()) as out:
            self.assertTrue(fuzz.merge(self.dir, binary))
        self.assertIn('1 inputs kept and 1 chosen', out.getvalue())
        self.assertEqual(sorted(os.listdir(os.path.dirname(kept[0]))),
                         sorted(['by-hand', hashlib.sha1(b'new').hexdigest()]))
        self.write('build/fuzz/a_fuzzer', '#!/bin/sh\necho the reason; exit 3\n', 0o755)
        with contextlib.redirect_stdout(io.StringIO()) as out:
            self.assertFalse(fuzz.merge(self.dir, binary))
        self.assertIn('the reason', out.getvalue())


class Sweep(Temporary):
    LINE = ('sweep: 1 scripts, 9 points: 2 went on with right answers, 1 with errors, 3 resumed, '
            '1 reopened, 0 refused by name, 2 not reached; 1 findings; seed 1\n')
    POINT = 'STRATA_SWEEP_SCRIPT=a STRATA_SWEEP_POINT=write:7 x'
    # The first process crashes in write:7, the second one goes on behind it.
    BINARY = f"""#!/bin/sh
echo "[ RUN ] $STRATA_SWEEP $STRATA_SWEEP_SCRIPT $STRATA_SWEEP_VARIANT"
if [ -z "$STRATA_SWEEP_AFTER" ]; then
  printf '\\nThe process crashed in this point:\\n{POINT}\\n'
  exit 134
fi
[ "$STRATA_SWEEP_AFTER" = write:7 ] || exit 3
printf 'a.cc:1: Failure\\nrepeat with: this\\nat: that\\nwrong\\n\\n{LINE.strip()}\\n'
exit 1
"""

    def test_totals_are_read(self):
        totals = sweep.read_totals(f'x\n{self.LINE}y\n')
        self.assertEqual(totals['points'], 9)
        self.assertEqual(totals['with errors'], 1)
        self.assertEqual(totals['findings'], 1)
        self.assertEqual(sweep.read_totals('nothing'), {})

    def test_crash_is_read(self):
        text = f'x\nThe process crashed in this point:\n{self.POINT}\nstack\n'
        self.assertEqual(sweep.read_crash(text), (self.POINT, 'write:7'))
        self.assertEqual(sweep.read_crash('x'), (None, None))

    def test_sweep_goes_on_behind_a_crash(self):
        binary = self.write('history_sweep_test', self.BINARY, 0o755)
        args = argparse.Namespace(points='all', seed=1, kind='')
        totals, findings = sweep.sweep(binary, 'a', 'own', args, self.dir)
        self.assertEqual(len(findings), 2)
        self.assertIn(self.POINT, findings[0])
        self.assertIn('wrong', findings[1])
        self.assertEqual(totals['points'], 9)
        self.assertEqual(totals['crashes'], 1)

    def test_sweep_that_ends_early_is_a_finding(self):
        binary = self.write('history_sweep_test', '#!/bin/sh\necho no totals\nexit 1\n', 0o755)
        args = argparse.Namespace(points='all', seed=1, kind='')
        totals, findings = sweep.sweep(binary, 'a', 'own', args, self.dir)
        self.assertEqual(len(findings), 1)
        self.assertIn('no totals', findings[0])

    def test_unknown_script_is_refused(self):
        self.write('testdata/history/a.txt')
        self.assertEqual(sweep.scripts(self.dir, []), ['a'])
        with self.assertRaises(SystemExit):
            sweep.scripts(self.dir, ['b'])


class Demo(Temporary):
    # Stands in for db_bench: writes files of the sizes the layout asks for.
    FAKE = '''
import os, sys
flags = dict(a[2:].split('=', 1) for a in sys.argv[1:])
paths = flags['cf_paths'].split(',')
vertical = flags['level_sst_path_ids'] == '0'
sst, blob = (0, 1) if vertical else (1, 1)
def put(i, name, n):
    with open(os.path.join(paths[i], name), 'wb') as f:
        f.truncate(n)
data = int(flags['num']) * 1000
put(sst, '1.sst', data // 40)
if not vertical:
    put(0, '3.blob', int(os.environ.get('LEVEL0', data // 50)))
put(int(os.environ.get('BLOB_PATH', blob)), '2.blob', data)
if 'readrandom' in flags['benchmarks']:
    found = os.environ.get('FOUND', '100')
    print('readrandom   :  1.0 micros/op 1 ops/sec; (%s of 100 found)' % found)
'''

    def run_demo(self, **env):
        fake = self.write('db_bench', f'#!{sys.executable}\n{self.FAKE}', 0o755)
        run = subprocess.run([sys.executable, os.path.join(HERE, 'demo.py'), fake, '--num', '1000',
                              '--dir', os.path.join(self.dir, 'demo')],
                             capture_output=True, text=True, env={**os.environ, **env})
        return run.returncode, run.stdout + run.stderr

    def test_pass(self):
        code, out = self.run_demo()
        self.assertEqual(code, 0, out)
        self.assertIn('on path 1: 97.6%', out)
        self.assertIn('on path 1: 98.1%', out)

    def test_an_empty_level_0_proves_nothing(self):
        code, out = self.run_demo(LEVEL0='0')
        self.assertEqual(code, 1, out)
        self.assertIn('horizontal: nothing on path 0', out)

    def test_values_on_the_wrong_path(self):
        code, out = self.run_demo(BLOB_PATH='0')
        self.assertEqual(code, 1, out)
        self.assertIn('vertical: 0.0% on path 1', out)

    def test_lost_keys(self):
        code, out = self.run_demo(FOUND='99')
        self.assertEqual(code, 1, out)
        self.assertIn('99 of 100 keys found', out)

    def test_db_bench_fails(self):
        fake = self.write('db_bench', '#!/bin/sh\necho no such flag; exit 1\n', 0o755)
        run = subprocess.run([sys.executable, os.path.join(HERE, 'demo.py'), fake, '--num', '1000',
                              '--dir', os.path.join(self.dir, 'demo')],
                             capture_output=True, text=True)
        self.assertEqual(run.returncode, 1)
        self.assertIn('no such flag', run.stdout)

    def test_sizes_keep_their_proportions(self):
        for num in (60000, 500000):
            f = demo.flags(num, demo.LAYOUTS[1], {'db': 'd', 0: 'a', 1: 'b'}, 2)
            self.assertLess(f['write_buffer_size'] * f['level0_file_num_compaction_trigger'],
                            num * 1000 * 0.07)
            self.assertLessEqual(f['target_file_size_base'], f['max_bytes_for_level_base'])


class Shell(Temporary):
    def test_scripts_are_executable(self):
        for name in os.listdir(HERE):
            if name.endswith(('.sh', '.py')):
                self.assertTrue(os.stat(os.path.join(HERE, name)).st_mode & stat.S_IXUSR, name)

    def deps(self, tools, **env):
        """install-deps.sh with only `tools` (name -> script) beside a few of the system's on
        PATH."""
        d = os.path.join(self.dir, 'path')
        shutil.rmtree(d, ignore_errors=True)
        for name in ('sh', 'sed', 'echo', 'printf', 'id', 'env', 'cat'):
            path = shutil.which(name)
            if path:
                os.makedirs(d, exist_ok=True)
                os.symlink(path, os.path.join(d, name))
        for name, body in tools.items():
            if os.path.lexists(os.path.join(d, name)):
                os.unlink(os.path.join(d, name))
            self.write(os.path.join('path', name), '#!/bin/sh\n' + body, 0o755)
        run = subprocess.run([os.path.join(HERE, 'install-deps.sh')], capture_output=True,
                             text=True, env={'PATH': d, 'HOME': self.dir, **env})
        return run.returncode, run.stdout + run.stderr

    def test_as_root(self):
        log = os.path.join(self.dir, 'log')
        code, out = self.deps({'id': 'echo 0', 'apt-get': f'echo "$@" >> {log}'})
        self.assertEqual(code, 0, out)
        with open(log, encoding='utf-8') as f:
            text = f.read()
        self.assertIn('update', text)
        for package in ('g++', 'cmake', 'ninja-build', 'ccache', 'mold'):
            self.assertIn(package, text.split())

    def test_as_nobody(self):
        code, out = self.deps({'id': 'echo 1000', 'apt-get': 'exit 9'})
        self.assertEqual(code, 1)
        self.assertIn('apt-get install -y --no-install-recommends ', out)
        self.assertIn('as root', out)

    def test_through_sudo(self):
        log = os.path.join(self.dir, 'log')
        code, out = self.deps({'id': 'echo 1000', 'apt-get': f'echo "$@" >> {log}',
                               'sudo': 'test "$1" = -n && shift && "$@"'})
        self.assertEqual(code, 0, out)
        self.assertTrue(os.path.exists(log))

    def test_cargo(self):
        ok = {'id': 'echo 1000', 'apt-get': 'exit 9'}
        _, out = self.deps({**ok, 'cargo': 'echo "cargo 1.82.0 (x)"'})
        self.assertNotIn('cargo', out)
        if not os.path.exists('/usr/bin/cargo'):  # which would do in its place
            for old in ('echo "cargo 1.81.0 (x)"', 'exit 1'):
                _, out = self.deps({**ok, 'cargo': old})
                self.assertIn(' cargo-web', out)
            _, out = self.deps(ok)
            self.assertIn(' cargo-web', out)
        _, out = self.deps(ok, STRATA_UPSTREAM='/somewhere')
        self.assertNotIn('cargo', out)

    def test_switched_off(self):
        self.assertEqual(self.deps({}, STRATA_DEPS='0'), (0, ''))

    def test_format_refuses_another_clang_format(self):
        self.write('scripts/requirements-style.txt', 'clang-format==14.0.6\n')
        shutil.copy2(os.path.join(HERE, 'format.sh'), os.path.join(self.dir, 'scripts'))
        for name in ('sh', 'sed', 'grep', 'dirname', 'echo'):
            path = shutil.which(name)
            os.makedirs(os.path.join(self.dir, 'path'), exist_ok=True)
            os.symlink(path, os.path.join(self.dir, 'path', name))
        self.write('path/clang-format', '#!/bin/sh\necho "clang-format version 19.1.4"\n', 0o755)
        run = subprocess.run([os.path.join(self.dir, 'scripts', 'format.sh')], text=True,
                             capture_output=True, env={'PATH': os.path.join(self.dir, 'path')})
        self.assertEqual(run.returncode, 1, run.stdout)
        self.assertIn('clang-format 14 is not installed', run.stderr)


if __name__ == '__main__':
    unittest.main()
