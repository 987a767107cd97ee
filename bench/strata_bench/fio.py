# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""The device itself as a contender for point reads: what no database above it can exceed."""
import json
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional

from strata_bench import process
from strata_bench.process import CommandFailed

_COMMON = ['--output-format=json', '--direct=1', '--invalidate=1', '--group_reporting',
           '--randrepeat=1', '--norandommap', '--refill_buffers']
READ_SECONDS = 10


def layout_command(program: str, file: Path, size: int) -> List[str]:
    """Writes a file of random bytes: a device may answer reads of holes from nowhere."""
    return [program, '--name=layout', f'--filename={file}', f'--size={size}', '--rw=write',
            '--bs=1M', '--ioengine=libaio', '--iodepth=8', '--end_fsync=1'] + _COMMON


def read_command(program: str, file: Path, size: int, block_size: int, depth: int, seconds: int,
                 engine: str) -> List[str]:
    return [program, '--name=read', f'--filename={file}', f'--size={size}', '--rw=randread',
            f'--bs={block_size}', f'--ioengine={engine}', f'--iodepth={depth}', '--time_based',
            f'--runtime={seconds}'] + _COMMON


def parse(text: str) -> Dict[str, Any]:
    """fio's JSON as a report of the same form as db_bench's."""
    try:
        job = json.loads(text[text.index('{'):])['jobs'][0]
        read = job['read']
        latency = read['clat_ns']
    except (ValueError, KeyError, IndexError) as error:
        raise CommandFailed(f'fio: no JSON result: {error}') from error
    names = {'50.000000': 'p50', '90.000000': 'p90', '99.000000': 'p99', '99.900000': 'p99.9',
             '99.990000': 'p99.99'}
    microseconds = {'count': read['total_ios'], 'mean': latency['mean'] / 1e3,
                    'min': latency['min'] / 1e3, 'max': latency['max'] / 1e3}
    for percentile, number in latency.get('percentile', {}).items():
        if percentile in names:
            microseconds[names[percentile]] = number / 1e3
    return {'benchmark': 'fio', 'workload': True, 'ops': read['total_ios'],
            'seconds': read['runtime'] / 1e3, 'ops_per_sec': read['iops'],
            'bytes': read['io_bytes'], 'latency_us': {'read': microseconds},
            'process': {'read_bytes': read['io_bytes'], 'write_bytes': 0}}


def lay_out(program: str, file: Path, size: int, log: Path,
            tick: Optional[Callable[[], None]] = None) -> None:
    if not file.exists() or file.stat().st_size != size:
        file.parent.mkdir(parents=True, exist_ok=True)
        process.run(layout_command(program, file, size), log, 1800, tick)


def measure(program: str, file: Path, size: int, block_size: int, depth: int, seconds: int,
            log: Path, tick: Optional[Callable[[], None]] = None) -> Dict[str, Any]:
    """Random reads of a file that is there, with io_uring, or libaio where that is not allowed."""
    failed: Optional[CommandFailed] = None
    for engine in ('io_uring', 'libaio'):
        command = read_command(program, file, size, block_size, depth, seconds, engine)
        try:
            process.run(command, log, seconds + 120, tick)
        except CommandFailed as error:
            failed = error
            continue
        report = parse(log.read_text(errors='replace'))
        report['engine'] = engine
        report['command'] = command
        return report
    assert failed is not None
    raise failed
