#!/usr/bin/env python3
# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Stands in for db_bench: makes files like a database's and reports like db_bench's.

Like the real one it gives null to what a benchmark does not know, and no latency to operations
that it does not do. FAKE_FAIL=name:contents fails when that benchmark runs on a database whose
--marker is `contents`.
"""
import json
import os
import sys
import time

KNOWN = '''benchmarks db use_existing_db seed threads num reads writes duration cache_size key_size
value_size report_json timeseries_csv timeseries_interval_ms use_direct_reads disable_wal
use_direct_io_for_flush_and_compaction compression_type compression_ratio ycsb_records
ycsb_field_count ycsb_field_length ycsb_zipfian_const rmw_read_ratio marker speed ycsb_mix
wal_bytes_per_sync stopped_nanos_file ops_between_duration_checks row_cache_size
delta_max_buckets'''.split()
UNTIMED = {'flush', 'compact', 'waitforcompaction', 'stats', 'verify'}


def report(name, flags, logical_bytes):
    if name in UNTIMED:  # operations, throughput and writes of users are the workloads'
        return {
            'benchmark': name, 'threads': 1, 'ops': 0, 'seconds': 5.0, 'ops_per_sec': 0.0,
            'user_bytes_written': 0, 'logical_bytes': logical_bytes,
            'space_amplification': logical_bytes and 5000 / logical_bytes,
            'write_amplification': None, 'open_seconds': 0.25, 'latency_us': {},
            'process': {'cpu_user_seconds': 0.1, 'cpu_system_seconds': 0.1, 'read_bytes': 1000,
                        'write_bytes': 9000, 'cancelled_write_bytes': 1000},
            'db': {'total_bytes': 5000},
        }
    reads_only = name in ('ycsbc', 'randomscan', 'readrandom')
    threads, seconds = int(flags.get('threads', 1)), 2.0
    ops = int(flags['ycsb_records']) if name == 'ycsbload' else int(flags.get('num', 0)) * threads
    speed = float(flags.get('speed', 1))
    return {
        'benchmark': name, 'threads': threads, 'ops': ops, 'seconds': seconds / speed,
        'ops_per_sec': ops * speed / seconds, 'user_bytes_written': 0 if reads_only else ops * 1024,
        'logical_bytes': logical_bytes, 'space_amplification': 5000 / logical_bytes,
        'write_amplification': None if reads_only else 2.0, 'open_seconds': 0.25,
        'latency_us': {} if name == 'ycsbload' else {
            'read': {'count': ops, 'mean': 100 / speed, 'p99': 300.0, 'p99.9': 500.0}},
        'process': {'cpu_user_seconds': 1.0, 'cpu_system_seconds': 0.5, 'read_bytes': 4096 * ops,
                    'write_bytes': 0 if reads_only else 2048 * ops, 'cancelled_write_bytes': 0},
        'db': {'total_bytes': 5000},
    }


def main():
    if '--help' in sys.argv:
        print('fake: \n  Flags from fake.py:')
        for name in KNOWN:
            print(f'    -{name} (what it does) type: string\n      default: ""')
        return 1
    flags = dict(arg[2:].split('=', 1) for arg in sys.argv[1:])
    unknown = set(flags) - set(KNOWN)
    if unknown:
        print(f'ERROR: unknown command line flag {unknown}', file=sys.stderr)
        return 1
    db = flags['db']
    if flags['use_existing_db'] == 'false':
        os.makedirs(db, exist_ok=True)
        for name in os.listdir(db):
            os.unlink(os.path.join(db, name))
        for name in ('000007.sst', '000008.blob', '000009.log', 'CURRENT', 'MANIFEST-000005'):
            with open(os.path.join(db, name), 'w') as file:
                file.write(f'{name} loaded')
    elif not os.path.exists(os.path.join(db, 'CURRENT')):
        print('no database', file=sys.stderr)
        return 1
    with open(os.path.join(db, 'MANIFEST-000005'), 'a') as file:
        file.write(' opened')
    wals = [int(name[:6]) for name in os.listdir(db) if name.endswith('.log')]
    wal = os.path.join(db, f'{max(wals) + 1:06}.log')  # each opening has its own
    logical_bytes = None  # known from the first workload of the process on
    for name in flags['benchmarks'].split(','):
        if name not in UNTIMED:
            logical_bytes = 1000
        if os.environ.get('FAKE_FAIL') == f'{name}:{flags.get("marker", "")}':
            print('first line\nput error: IO error: the disk is on fire', file=sys.stderr)
            return 1
        with open(wal, 'a') as file:
            file.write('record')
        if 'timeseries_csv' in flags:
            with open(flags['timeseries_csv'], 'a') as file:
                file.write('benchmark,seconds,ops,ops_per_sec,db_bytes\n')
                for n, rate in enumerate((1, 10, 20, 30, 1)):
                    file.write(f'{name},{n},{n * 10},{rate},{1000 + n}\n')
        if int(flags.get('duration', 0)) > 100:
            time.sleep(int(flags['duration']))
        if 'report_json' in flags:
            with open(flags['report_json'], 'a') as file:
                file.write(json.dumps(report(name, flags, logical_bytes)) + '\n')
    return 0


if __name__ == '__main__':
    sys.exit(main())
