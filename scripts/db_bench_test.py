#!/usr/bin/env python3
# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Runs every workload of tools/workloads/ in db_bench at a tiny scale, with "verify" after it.

Usage: db_bench_test.py DB_BENCH [unittest arguments]
"""
import csv
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

DB_BENCH = ''
RECORDS = 2000
OPS = 3000
THREADS = 2
# Small memtables and files, so that even this much data is flushed and compacted.
SMALL = ['--write_buffer_size=262144', '--target_file_size_base=262144',
         '--max_bytes_for_level_base=1048576', '--compression_type=none', '--bloom_bits=10',
         '--seed=7']
BLOBS = ['--enable_blob_files=true', '--min_blob_size=100', '--blob_file_size=262144',
         '--enable_blob_garbage_collection=true']


class DbBenchTest(unittest.TestCase):

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix='db_bench_test')
        self.json = os.path.join(self.dir, 'report.json')
        self.csv = os.path.join(self.dir, 'series.csv')
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def run_bench(self, benchmarks, *flags, fails=False):
        """Runs db_bench; returns (the report's new objects by position, its output)."""
        before = len(self.report())
        command = [DB_BENCH, f'--db={self.dir}/db', f'--benchmarks={benchmarks}', f'--num={OPS}',
                   f'--ycsb_records={RECORDS}', f'--threads={THREADS}',
                   f'--report_json={self.json}', *SMALL, *flags]
        p = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                           check=False)
        self.assertEqual(p.returncode != 0, fails, p.stdout)
        return self.report()[before:], p.stdout

    def report(self):
        if not os.path.exists(self.json):
            return []
        with open(self.json, encoding='utf-8') as f:
            return [json.loads(line) for line in f]

    def rows(self, benchmark):
        """Whole rows of the time series."""
        if not os.path.exists(self.csv):
            return []
        with open(self.csv, encoding='utf-8') as f:
            lines = [line for line in f if line.endswith('\n')]
        return [row for row in csv.DictReader(lines) if row['benchmark'] == benchmark]

    def check_workload(self, name, kinds, *flags):
        reports, _ = self.run_bench(f'ycsbload,{name},verify', *flags)
        self.assertEqual([r['benchmark'] for r in reports], ['ycsbload', name, 'verify'])
        loaded, ran, verified = reports
        self.assertEqual(loaded['ops'], RECORDS)
        self.assertEqual(set(loaded['latency_us']), {'insert'})
        self.assertEqual(ran['ops'], OPS * THREADS)
        self.assertEqual(set(ran['latency_us']), set(kinds))
        self.assertEqual(sum(v['count'] for v in ran['latency_us'].values()), ran['ops'])
        for v in ran['latency_us'].values():
            self.assertLessEqual(0, v['min'])
            order = [v[k] for k in ('min', 'p50', 'p90', 'p99', 'p99.9', 'p99.99', 'max')]
            self.assertEqual(order, sorted(order))
        self.assertGreater(verified['ops'], 0)
        self.assertIn('checked', verified['message'])
        return reports

    def test_write_groups(self):
        """db_bench's default of --enable_pipelined_write gives way; the flag itself does not."""
        self.run_bench('fillrandom,readrandom', '--max_write_groups_per_leader=8',
                       '--wal_mmap_buffer_size=65536')
        _, output = self.run_bench('fillrandom', '--max_write_groups_per_leader=8',
                                   '--enable_pipelined_write=true', fails=True)
        self.assertIn('max_write_groups_per_leader above 1 is incompatible', output)
        self.assertIn('set both to false', output)

    def options_file(self):
        """The path of the newest OPTIONS file of the database, and its text."""
        folder = os.path.join(self.dir, 'db')
        names = [name for name in os.listdir(folder) if re.fullmatch(r'OPTIONS-\d+', name)]
        path = os.path.join(folder, max(names))
        with open(path, encoding='utf-8') as f:
            return path, f.read()

    def test_options_file(self):
        """The features of an OPTIONS file stay, unless a flag says otherwise."""
        features = ['enable_blob_address_map=true', 'blob_gc_space_amp_limit=1.5',
                    'blob_scan_sort_budget=2', 'max_write_groups_per_leader=8',
                    'wal_mmap_buffer_size=65536']
        self.run_bench('fillrandom', *BLOBS, *(f'--{feature}' for feature in features))
        path, text = self.options_file()
        for feature in features:
            self.assertIn(feature, text)
        copy = os.path.join(self.dir, 'OPTIONS')  # the database deletes its own later
        shutil.copy(path, copy)
        again = ['--use_existing_db=true', f'--options_file={copy}']
        self.run_bench('overwrite,readrandom', *again)
        new_path, text = self.options_file()
        self.assertNotEqual(new_path, path)
        for feature in features:
            self.assertIn(feature, text)
        # A flag that is given wins, also with its default value.
        self.run_bench('overwrite,readrandom', *again, '--enable_blob_address_map=false',
                       '--max_write_groups_per_leader=1', '--wal_mmap_buffer_size=131072')
        _, text = self.options_file()
        self.assertNotIn('enable_blob_address_map=true', text)
        self.assertNotIn('max_write_groups_per_leader=8', text)
        self.assertIn('wal_mmap_buffer_size=131072', text)
        self.assertIn('blob_gc_space_amp_limit=1.5', text)

    def test_ycsb_core(self):
        for name, kinds in (('ycsba', 'read update'), ('ycsbb', 'read update'), ('ycsbc', 'read'),
                            ('ycsbd', 'read insert'), ('ycsbe', 'scan insert'),
                            ('ycsbf', 'read rmw')):
            for flags in ([], BLOBS):
                with self.subTest(name=name, flags=flags):
                    self.check_workload(name, kinds.split(), '--ycsb_verify_reads=true', *flags)

    def test_ycsb_merge(self):
        for name, kinds in (('ycsbam', 'read merge'), ('ycsbbm', 'read merge'),
                            ('ycsbfm', 'read rmw')):
            for flags in ([], BLOBS):
                with self.subTest(name=name, flags=flags):
                    self.check_workload(name, kinds.split(), '--ycsb_verify_reads=true', *flags)

    def test_rmw(self):
        reports = self.check_workload('rmw', ['read', 'rmw'], '--rmw_mode=getput',
                                      '--ycsb_verify_reads=true')
        reads = reports[1]['latency_us']['read']['count']
        self.assertTrue(0.05 < reads / reports[1]['ops'] < 0.15, reads)
        reports = self.check_workload('rmw', ['read', 'rmw'], '--rmw_mode=merge',
                                      '--rmw_read_ratio=80')
        reads = reports[1]['latency_us']['read']['count']
        self.assertTrue(0.75 < reads / reports[1]['ops'] < 0.85, reads)

    def test_up2x(self):
        reports, _ = self.run_bench('up2xload,up2x,verify', '--num=20000',
                                    '--ycsb_verify_reads=true')
        merges = reports[1]['latency_us']['merge']['count'] / reports[1]['ops']
        self.assertTrue(0.91 < merges < 0.94, merges)
        mean = reports[0]['bytes'] / reports[0]['ops']
        self.assertTrue(55 < mean < 61, mean)  # 10.45 + 46.8, and a byte for the length

    def test_scans(self):
        for flags in ([], ['--scan_reverse=true'], ['--scan_keys_only=true'],
                      ['--scan_bounded=true'], ['--scan_bounded=true', '--scan_reverse=true'],
                      ['--scan_stay=50', '--scan_parts=20'],
                      ['--scan_pin_data=true', *BLOBS], ['--scan_fill_cache=false', *BLOBS]):
            with self.subTest(flags=flags):
                reports, _ = self.run_bench('ycsbload,randomscan,verify', '--scan_length=20',
                                            '--num=200', '--ycsb_verify_reads=true', *flags)
                self.assertEqual(reports[1]['ops'], 200 * THREADS)
                entry = 24 if '--scan_keys_only=true' in flags else 1034
                per_scan = reports[1]['bytes'] / reports[1]['ops'] / entry
                self.assertTrue(15 < per_scan < 24, per_scan)

    def test_hold_snapshot(self):
        for flags in ([], BLOBS):
            with self.subTest(flags=flags):
                reports, out = self.run_bench('ycsbload,ycsba[X2],verify', '--hold_snapshot=true',
                                              *flags)
                self.assertEqual([r['ops'] for r in reports[1:3]], [OPS * THREADS] * 2)
                self.assertIn('(beside a snapshot)', out)

    def test_scan_while_writing(self):
        reports, out = self.run_bench('ycsbload,scanwhilewriting,verify', '--threads=3',
                                      '--num=100', '--scan_length=20')
        self.assertEqual(reports[1]['latency_us']['scan']['count'], 200)
        # The scans wait for the first update; how many follow is the scheduler's.
        self.assertGreater(reports[1]['latency_us']['update']['count'], 0)
        # Those at the end of the database find fewer keys than 20.
        self.assertTrue(3600 < int(out.split(' keys scanned)')[0].split('(')[-1]) <= 4000, out)
        _, out = self.run_bench('ycsbload,scanwhilewriting', '--threads=1', fails=True)
        self.assertIn('--threads', out)

    def test_duration_holds_for_slow_operations(self):
        reports, _ = self.run_bench('ycsbload,randomscan', '--duration=1', '--scan_length=2000',
                                    '--num=1000000')
        self.assertTrue(1 <= reports[1]['seconds'] < 3, reports[1]['seconds'])

    def test_verify_knows_inserted_records(self):
        # Many more insertions than loaded records: the first keys are those of inserted ones.
        self.run_bench('ycsbload,ycsbmix', '--ycsb_mix=insert:100', '--num=20000')
        self.run_bench('verify', '--use_existing_db=true')
        for size in (8, 12, 30):
            reports, _ = self.run_bench('ycsbload,verify', f'--key_size={size}')
            self.assertIn(f'{RECORDS} records', reports[1]['message'])

    def test_mix(self):
        kinds = ['read', 'update', 'insert', 'scan', 'rmw', 'merge']
        mix = 'read:20,readmissing:10,update:10,insert:10,scan:10,rmw:10,merge:20,put:10'
        self.check_workload('ycsbmix', kinds, f'--ycsb_mix={mix}', '--ycsb_verify_reads=true')
        for distribution in ('uniform', 'zipfian', 'latest'):
            self.check_workload('ycsbmix', ['read', 'update'],
                                f'--ycsb_distribution={distribution}',
                                '--ycsb_write_all_fields=true')

    def test_delete_range(self):
        reports, out = self.run_bench('ycsbload,deleterandomrange,verify', '--num=20',
                                      '--delete_range_width=10', '--ycsb_allow_missing=true')
        self.assertEqual(reports[1]['latency_us']['deleterange']['count'], 20 * THREADS)
        missing = int(out.split(' missing)')[0].split()[-1])
        self.assertTrue(150 < missing < 600, missing)  # 40 ranges of 10 records each, some overlap
        _, out = self.run_bench('verify', '--use_existing_db=true', fails=True)
        self.assertIn('is missing', out)

    def test_inserts_go_on_where_the_last_run_stopped(self):
        self.run_bench('ycsbload,ycsbd')
        first, _ = self.run_bench('verify', '--use_existing_db=true')
        self.run_bench('ycsbd', '--use_existing_db=true')
        second, _ = self.run_bench('verify', '--use_existing_db=true')
        self.assertGreater(second[0]['logical_bytes'], first[0]['logical_bytes'])

    def test_verify_finds_what_is_wrong(self):
        # Written with other contents for the same keys: fields of other lengths and counts.
        self.run_bench('ycsbload')
        _, out = self.run_bench('verify', '--use_existing_db=true', '--ycsb_field_count=9',
                                fails=True)
        self.assertIn('verification failed', out)
        _, out = self.run_bench('verify', '--use_existing_db=true',
                                f'--ycsb_records={RECORDS + 1}', fails=True)
        self.assertIn('is missing', out)
        # A foreign key.
        self.run_bench('fillseq', '--num=1')
        _, out = self.run_bench('verify', '--use_existing_db=true', fails=True)

    def test_errors(self):
        for benchmark, flag, text in (
                ('ycsba', '--key_size=7', '--key_size'),
                ('ycsba', '--ycsb_field_length=7', '--ycsb_field_length'),
                ('ycsba', '--ycsb_field_count=0', '--ycsb_field_count'),
                ('ycsba', '--ycsb_zipfian_const=-1', '--ycsb_zipfian_const'),
                ('ycsba', '--ycsb_distribution=normal', '--ycsb_distribution'),
                ('ycsbmix', '--ycsb_mix=read:50', '--ycsb_mix'),
                ('ycsbmix', '--ycsb_mix=reads:100', '--ycsb_mix'),
                ('rmw', '--rmw_mode=x', 'rmw_mode'),
                ('rmw', '--rmw_read_ratio=101', '--rmw_read_ratio'),
                ('ycsba', '--num_multi_db=2', '--num_multi_db'),
                ('ycsba', '--num_column_families=2', '--num_column_families'),
                ('deleterandomrange', '--delete_range_width=0', '--delete_range_width'),
                ('ycsbax', None, 'unknown benchmark'),
                ('ycsba', None, 'is missing')):
            flags = [f'--benchmarks={benchmark}', *([flag] if flag else [])]
            with self.subTest(flags=flags):
                _, out = self.run_bench('ycsba', *flags, fails=True)
                self.assertIn(text, out)

    def test_reports_of_upstream_benchmarks(self):
        names = ['fillrandom', 'flush', 'waitforcompaction', 'readrandom', 'seekrandom', 'stats']
        reports, _ = self.run_bench(','.join(names), f'--timeseries_csv={self.csv}',
                                    '--timeseries_interval_ms=50')
        self.assertEqual([r['benchmark'] for r in reports], names)
        fill, _, _, read, seek, _ = reports
        self.assertEqual(fill['ops'], OPS * THREADS)
        self.assertEqual(fill['latency_us']['write']['count'], OPS * THREADS)
        self.assertGreater(fill['write_amplification'], 0.3)  # the memtable is not written yet
        self.assertGreater(fill['user_bytes_written'], OPS * THREADS * 100)
        self.assertEqual(read['latency_us']['read']['count'], OPS * THREADS)
        self.assertEqual(seek['latency_us']['seek']['count'], OPS * THREADS)
        self.assertGreater(read['db']['sst_bytes'], 0)
        self.assertGreater(fill['open_seconds'], 0)
        with open(self.csv, encoding='utf-8') as f:
            rows = list(csv.DictReader(f))
        self.assertEqual({r['benchmark'] for r in rows} - {'flush', 'waitforcompaction', 'stats'},
                         {'fillrandom', 'readrandom', 'seekrandom'})

    def test_path_devices(self):
        """Keys and values on two simulated devices; the first one takes no time."""
        devices = f'{self.dir}/db:0:0:0:4:0,{self.dir}/slow:20/10:2000:0:8:100'
        reports, output = self.run_bench(
            'ycsbload,flush,ycsbc,verify', *BLOBS, f'--cf_paths={self.dir}/db,{self.dir}/slow',
            '--level_sst_path_ids=0', '--level_blob_path_ids=1', f'--path_devices={devices}')
        load, _, read, verify = (r['devices'] for r in reports)
        slow = f'{self.dir}/slow'
        self.assertEqual(list(load), [f'{self.dir}/db', slow])
        self.assertEqual(load[slow]['profile'], '20/10:2000:0:8:100')
        self.assertGreater(load[slow]['write_bytes'], 0)
        self.assertGreater(load[slow]['syncs'], 0)
        self.assertGreater(read[slow]['reads'], 0)
        self.assertGreater(verify[slow]['read_bytes'], 0)
        # Each request takes its latency at least, and no caller is back before.
        self.assertGreaterEqual(read[slow]['served_seconds'], read[slow]['reads'] * 19.9e-6)
        self.assertEqual(read[f'{self.dir}/db']['busy_seconds'], 0)
        self.assertEqual(output.count('Simulated device '), 2)
        self.assertIn(f'Simulated device {slow} (20/10:2000:0:8:100): ', output)
        _, output = self.run_bench('ycsbc', '--path_devices=/a:tape', fails=True)
        self.assertIn("--path_devices: Invalid argument: '/a:tape': after the path there must be "
                      'the name of a device (nvme, sata, hdd, network)', output)
        reports, output = self.run_bench('ycsbload')
        self.assertNotIn('devices', reports[0])
        self.assertNotIn('Simulated device', output)

    def test_stops(self):
        stopped = os.path.join(self.dir, 'stopped')
        with open(stopped, 'wb') as f:
            f.write(struct.pack('=Q', 0))
        command = [DB_BENCH, f'--db={self.dir}/db', '--benchmarks=ycsbload,ycsbc',
                   f'--ycsb_records={RECORDS}', '--duration=3', f'--report_json={self.json}',
                   f'--timeseries_csv={self.csv}', '--timeseries_interval_ms=500',
                   '--ops_between_duration_checks=1', f'--stopped_nanos_file={stopped}', *SMALL]
        started = time.monotonic()
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as p:
            self.addCleanup(p.kill)
            # Well into the reads: between the benchmarks, a stop belongs to neither.
            while not self.rows('ycsbc') and p.poll() is None:
                time.sleep(0.05)
            self.assertEqual(len(self.report()), 1)
            p.send_signal(signal.SIGSTOP)
            # Its threads run on until the last of them has got it.
            os.waitid(os.P_PID, p.pid, os.WSTOPPED | os.WNOWAIT)
            nanos = time.monotonic_ns()
            time.sleep(3)
            nanos = time.monotonic_ns() - nanos
            with open(stopped, 'r+b') as f:
                f.write(struct.pack('=Q', nanos))
            p.send_signal(signal.SIGCONT)
            self.assertEqual(p.wait(), 0)
            passed = time.monotonic() - started
        load, read = self.report()
        # It ran for its three seconds, and the stop is in none of the times.
        self.assertGreaterEqual(read['seconds'], 2.9)
        self.assertGreaterEqual(passed, load['seconds'] + read['seconds'] + nanos * 1e-9 - 0.1)
        self.assertLess(read['latency_us']['read']['max'], read['seconds'] * 1e6)
        self.assertIsNotNone(load['stall_micros'])
        self.assertIsNone(read['stall_micros'])
        self.assertLessEqual(float(self.rows('ycsbc')[-1]['seconds']), passed - nanos * 1e-9 + 0.1)
        _, output = self.run_bench('ycsbc', f'--stopped_nanos_file={self.dir}/no_file', fails=True)
        self.assertIn('--stopped_nanos_file: IO error', output)

    def test_amplification(self):
        reports, _ = self.run_bench('ycsbload,flush,compact,waitforcompaction,ycsbc')
        self.assertTrue(0.95 < reports[-1]['space_amplification'] < 1.3, reports[-1])
        self.assertAlmostEqual(reports[-1]['logical_bytes'], RECORDS * 1034, delta=RECORDS)


if __name__ == '__main__':
    DB_BENCH = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
