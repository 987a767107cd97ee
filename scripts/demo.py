#!/usr/bin/env python3
# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Shows where Strata puts keys and values when it has two devices.

Usage: demo.py DB_BENCH [--dir DIR] [--num KEYS] [--keep]

For each of two layouts, db_bench loads KEYS keys with values of 1,000 bytes in random order,
overwrites half as many at random, and waits until compaction is done. Then it fills level 0 with as
many files as can stay there without a compaction, as level 0 is never empty in a database in use.
It opens the database again and reads: every key must be found. At the end the bytes of each path
are counted from the files that are there.

  vertical    SST files (keys) on path 0, blob files (values) on path 1:
              at least 95% of the bytes on path 1
  horizontal  level 0, keys and values, on path 0; the rest on path 1:
              at least 90% of the bytes on path 1

Exits with 1 if a share is below that, or a read does not find its key.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import time

VALUE_SIZE = 1000
L0_TRIGGER = 4      # a compaction of level 0 starts at so many files
LAYOUTS = [
    # name, SST path of each level, blob path of each level, least share of path 1, what it means
    ('vertical', '0', '1', 95.0, 'keys on path 0, values on path 1'),
    ('horizontal', '0,1', '0,1', 90.0, 'level 0 on path 0, deeper levels on path 1'),
]
KINDS = ('SST', 'blob', 'other')


def kind_of(name):
    if name.endswith(('.sst', '.ldb')):
        return 'SST'
    return 'blob' if name.endswith('.blob') else 'other'


def measure(path):
    """{kind: [files, bytes]} of the files in a directory."""
    sums = {kind: [0, 0] for kind in KINDS}
    for entry in os.scandir(path):
        if entry.is_file(follow_symlinks=False):
            total = sums[kind_of(entry.name)]
            total[0] += 1
            total[1] += entry.stat().st_size
    return sums


def size(n):
    return f'{n / 1e6:,.1f} MB'


def flags(num, layout, dirs, jobs):
    """db_bench's flags. Sizes follow the amount of data, so that a small run has the levels of a
    large one."""
    data = num * VALUE_SIZE
    keys = num * 32                         # about the size of all SST files together
    buffer = max(data // 64, 256 << 10)     # L0 holds a few: it must be small beside the data
    base = max(keys // 16, 128 << 10)       # so that there are three levels below L0
    return {
        'db': dirs['db'],
        'cf_paths': f"{dirs[0]},{dirs[1]}",
        'level_sst_path_ids': layout[1],
        'level_blob_path_ids': layout[2],
        'num': num,
        'key_size': 16,
        'value_size': VALUE_SIZE,
        'enable_blob_files': 1,
        'enable_blob_garbage_collection': 1,
        'blob_file_size': max(data // 32, 1 << 20),
        'write_buffer_size': buffer,
        'max_bytes_for_level_base': base,
        'target_file_size_base': max(base // 4, 64 << 10),
        'max_bytes_for_level_multiplier': 4,
        'level0_file_num_compaction_trigger': L0_TRIGGER,
        'max_background_jobs': max(jobs, 2),
        'seed': 42,
    }


def db_bench(binary, options, benchmarks, log, **more):
    command = [binary, f'--benchmarks={benchmarks}']
    command += [f'--{name}={value}' for name, value in {**options, **more}.items()]
    with open(log, 'a', encoding='utf-8') as out:
        out.write(' '.join(command) + '\n')
        out.flush()
        run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             errors='replace')
        out.write(run.stdout)
    if run.returncode:
        print('\n'.join(run.stdout.split('\n')[-30:]))
        raise SystemExit(f'demo: db_bench failed with {run.returncode}; see {log}')
    return run.stdout


def found(text):
    """(found, asked) of the reads in db_bench's output, or None."""
    m = re.search(r'^readrandom .*\((\d+) of (\d+) found\)', text, re.M)
    return (int(m[1]), int(m[2])) if m else None


def run(binary, base, num, layout, jobs):
    """Loads, reads back, measures and reports one layout. Returns a list of complaints."""
    name, _, _, least, meaning = layout
    top = os.path.join(base, name)
    shutil.rmtree(top, ignore_errors=True)
    dirs = {'db': os.path.join(top, 'db'), 0: os.path.join(top, 'path0'),
            1: os.path.join(top, 'path1')}
    for d in dirs.values():
        os.makedirs(d)
    log = os.path.join(base, f'{name}.log')
    if os.path.exists(log):
        os.unlink(log)
    options = flags(num, layout, dirs, jobs)
    print(f'\n{name}: {meaning}', flush=True)
    print(f'  --level_sst_path_ids={layout[1]} --level_blob_path_ids={layout[2]} --num={num}',
          flush=True)
    start = time.time()
    db_bench(binary, options, 'filluniquerandom,flush,waitforcompaction', log)
    db_bench(binary, options, 'overwrite,flush,compact0,waitforcompaction', log, use_existing_db=1,
             writes=num // 2)
    db_bench(binary, options, ','.join(['overwrite,flush'] * (L0_TRIGGER - 1)), log,
             use_existing_db=1, writes=options['write_buffer_size'] * 3 // 4 // VALUE_SIZE)
    loaded = time.time() - start
    # Opening once more also deletes what the runs before left behind as obsolete.
    text = db_bench(binary, options, 'waitforcompaction,verifychecksum,readrandom', log,
                    use_existing_db=1, reads=min(num, 200000), threads=2)
    sums = {d: measure(path) for d, path in dirs.items()}
    print(f'  {"":14}' + ''.join(f'{k + " files":>12}{"bytes":>14}' for k in KINDS)
          + f'{"total":>14}')
    totals = {}
    for d in (0, 1, 'db'):
        label = 'database dir' if d == 'db' else f'path {d}'
        totals[d] = sum(b for _, b in sums[d].values())
        columns = ''.join(f'{sums[d][k][0]:>12}{size(sums[d][k][1]):>14}' for k in KINDS)
        print(f'  {label:14}' + columns + f'{size(totals[d]):>14}')
    share = 100.0 * totals[1] / max(totals[0] + totals[1], 1)
    print(f'  on path 1: {share:.1f}% of the bytes on both paths '
          f'(at least {least:.0f}% is asked for)')
    complaints = []
    if not totals[0]:
        complaints.append(f'{name}: nothing on path 0, so the share of path 1 says nothing')
    if share < least:
        complaints.append(f'{name}: {share:.1f}% on path 1, asked for {least:.0f}%')
    stray = sums['db']['SST'][0] + sums['db']['blob'][0]
    if stray:
        complaints.append(f'{name}: {stray} SST or blob files in the database directory, '
                          'on no path')
    if totals[0] + totals[1] < num * VALUE_SIZE:  # blob files are not compressed here
        complaints.append(f'{name}: {size(totals[0] + totals[1])} cannot be all the data')
    answer = found(text)
    if not answer:
        complaints.append(f'{name}: db_bench said nothing about its reads; see {log}')
    else:
        print(f'  read back after reopening: {answer[0]:,} of {answer[1]:,} found; '
              f'loaded in {loaded:.0f} s')
        if answer[0] != answer[1] or not answer[1]:
            complaints.append(f'{name}: {answer[0]} of {answer[1]} keys found')
    return complaints


def main():
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument('db_bench')
    parser.add_argument('--dir', default=os.path.join(root, 'build', 'demo'))
    parser.add_argument('--num', type=int, default=500000)
    parser.add_argument('--keep', action='store_true')
    args = parser.parse_args()
    os.makedirs(args.dir, exist_ok=True)
    need = args.num * VALUE_SIZE * 4
    free = shutil.disk_usage(args.dir).free
    if free < need:
        raise SystemExit(f'demo: {args.dir} has {size(free)} free and may need {size(need)}; '
                         f'"make demo DEMO_NUM=50000" needs a tenth of the default')
    print(f'{args.num:,} keys with values of {VALUE_SIZE:,} bytes: '
          f'{size(args.num * VALUE_SIZE)} per layout, below {args.dir}')
    complaints = []
    for layout in LAYOUTS:
        complaints += run(os.path.abspath(args.db_bench), args.dir, args.num, layout,
                          len(os.sched_getaffinity(0)))
        if not args.keep:
            shutil.rmtree(os.path.join(args.dir, layout[0]), ignore_errors=True)
    print()
    for c in complaints:
        print(f'demo: {c}')
    print('demo: failed' if complaints else 'demo: both layouts are as asked for')
    return 1 if complaints else 0


if __name__ == '__main__':
    sys.exit(main())
