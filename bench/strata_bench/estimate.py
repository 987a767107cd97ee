# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""How long an experiment takes: from its earlier results, or by arithmetic from its declaration.

The constants are those of a virtual machine with 4 CPUs and a disk of 25,000 random reads of 4 KiB
per second. They are meant to be rather too long than too short.
"""
from typing import Any, Dict, List, Optional

from strata_bench import commands, fio
from strata_bench.contenders import Contender
from strata_bench.experiments import Experiment, Phase, Point

READ_ALONE = 150e-6       # a random read of 4 KiB with one in flight
READ_MANY = 45e-6         # the same, per read, with as many in flight as the disk takes
PUT = 6e-6                # per put, at least
LOAD_RATE = 70e6          # bytes per second into an empty database
OVERWRITE_RATE = 38e6     # bytes per second of updates, all levels full
MERGE, MERGE_BLOB = 17e-6, 25e-6   # with BlobDB, compaction reads the values
READS_PER_GET, READS_PER_GET_BLOB = 1.1, 2.0
READS_FOR_DELTAS = 0.5    # more of them for each get where there are merges
SCAN, SCANNED_KEY = 150e-6, 11e-6  # with values beside their keys
ROW_CACHE_MISSES = 0.4    # of reads by Zipf 1.2 with a row cache of 3% of the data
WAIT = 5.5                # flush, waitforcompaction: db_bench sleeps for 5 s
DEBT = 0.3                # of the time of a writing workload, for what compaction still has to do
COMMAND = 1.5             # idle check, page cache, opening, closing
COPY = 0.5                # of a loaded database by links, and its removal
PAIR = 1.5                # disk probe
REOPEN = 1.0
MIXES = {
    'ycsba': 'read:50,getput:50', 'ycsbb': 'read:95,getput:5', 'ycsbc': 'read:100',
    'ycsbd': 'read:95,insert:5', 'ycsbe': 'scan:95,insert:5', 'ycsbf': 'read:50,getput:50',
    'ycsbam': 'read:50,merge:50', 'ycsbbm': 'read:95,merge:5', 'ycsbfm': 'read:50,merge:50',
    'up2x': 'read:7.46,merge:92.54', 'randomscan': 'scan:100',
}


def _mix(workload: str, flags: Dict[str, str]) -> Dict[str, float]:
    """{operation: share}."""
    text = MIXES.get(workload, 'put:100')
    if workload == 'ycsbmix':
        text = flags.get('ycsb_mix', 'read:50,getput:50')
    elif workload == 'rmw':
        reads = float(flags.get('rmw_read_ratio', '10'))
        write = 'getput' if flags.get('rmw_mode') == 'getput' else 'merge'
        text = f'read:{reads},{write}:{100 - reads}'
    return {name: float(percent) / 100
            for name, percent in (part.split(':') for part in text.split(','))}


def operation_seconds(workload: str, flags: Dict[str, str], record_bytes: float) -> float:
    """Of one operation, with all threads at work: the reciprocal of the throughput."""
    blob = flags.get('enable_blob_files') == 'true'
    threads = int(flags.get('threads', '1'))
    device = max(READ_MANY, READ_ALONE / threads)
    mix = _mix(workload, flags)
    reads = READS_PER_GET_BLOB if blob else READS_PER_GET
    if mix.get('merge'):
        reads += READS_FOR_DELTAS
    if flags.get('row_cache_size', '0') != '0':
        reads *= ROW_CACHE_MISSES
    get = reads * device
    put = max(PUT, record_bytes / OVERWRITE_RATE)
    keys = int(flags.get('scan_length', '100'))
    if workload == 'ycsbe':
        keys = int(flags.get('ycsb_scan_length', '100')) // 2
    scan = keys * device if blob else (SCAN + keys * SCANNED_KEY) * max(1.0, 4 / threads)
    costs = {'read': get, 'put': put, 'insert': put, 'update': put, 'getput': get + put,
             'rmw': get + put, 'scan': scan, 'merge': MERGE_BLOB if blob else MERGE,
             'readmissing': get}  # less, as filters answer
    return sum(share * costs[name] for name, share in mix.items())


def phase_seconds(experiment: Experiment, contender: Contender, point: Point, phase: Phase,
                  scale: float, of_load: bool = False, sharing: int = 1) -> float:
    """`sharing`: so many contenders take turns, and wait and prepare at the same time."""
    flags = commands.phase_flags(experiment, contender, point, phase, scale, 1, of_load)
    dataset = experiment.dataset_at(point, scale)
    names = flags['benchmarks'].split(',')
    workload = next((name for name in names if name not in ('flush', 'waitforcompaction')), '')
    seconds = 0.0
    if phase.database == 'empty':
        seconds = _loading(dataset.bytes, dataset.records)
    elif 'duration' in flags:
        seconds = float(flags['duration'])
    elif workload:
        operations = int(flags.get('num', flags.get('reads', '0'))) * int(flags['threads'])
        seconds = operations * operation_seconds(workload, flags, dataset.bytes / dataset.records)
    if 'waitforcompaction' in names:
        seconds += WAIT / sharing + DEBT * seconds
    return seconds + COMMAND / sharing + (COPY if phase.database == 'loaded' else 0.0)


def _loading(data: int, records: int) -> float:
    return max(data / LOAD_RATE, records * PUT)


def load_seconds(experiment: Experiment, contender: Contender, point: Point, scale: float) -> float:
    dataset = experiment.dataset_at(point, scale)
    seconds = (1 + DEBT) * _loading(dataset.bytes, dataset.records) + WAIT + COMMAND
    if experiment.load.churn is not None:
        seconds += phase_seconds(experiment, contender, point, experiment.load.churn, scale, True)
    return seconds


def run_seconds(experiment: Experiment, contender: Contender, point: Point, scale: float,
                sharing: int = 1) -> float:
    if contender.kind == 'fio':
        return sum((phase.seconds or fio.READ_SECONDS) + COMMAND
                   for phase in experiment.phases if phase.fio)
    if experiment.recovery is not None:
        return (experiment.recovery.min_seconds + experiment.recovery.max_seconds) / 2 + REOPEN \
            + 2 * COMMAND + COPY
    return sum(phase_seconds(experiment, contender, point, phase, scale, sharing=sharing)
               for phase in experiment.phases)


def _recovery_extras(experiment: Experiment, contender: Contender, point: Point, pairs: int,
                     scale: float) -> float:
    """Baselines, and reading all records twice."""
    assert experiment.recovery is not None
    dataset = experiment.dataset_at(point, scale)
    baselines = 3 * experiment.load.count(pairs) * (REOPEN + COMMAND)
    blob = contender.flags.get('enable_blob_files') == 'true'
    gets = READS_PER_GET_BLOB if blob else READS_PER_GET
    verify = 2 * dataset.records * gets * READ_MANY + COMMAND
    return baselines + min(pairs, experiment.recovery.verify_rounds) * verify


def seconds(experiment: Experiment, contenders: List[Contender], pairs: int, scale: float,
            earlier: Optional[Dict[str, Any]] = None) -> float:
    """Of all runs, with the loads. `earlier`: a summary of results of the same declaration.

    What a run took then is taken for granted, at another scale in proportion.
    """
    known = {(name, point): taken * scale / earlier['scale']
             for point, by_name in earlier['seconds'].items()
             for name, taken in by_name.items()} if earlier else {}
    total = pairs * PAIR
    sharing = max(1, sum(contender.kind != 'fio' for contender in contenders))
    loaded = set()
    for contender in contenders:
        for point in experiment.points:
            taken = known.get((contender.name, point.label))
            total += pairs * (run_seconds(experiment, contender, point, scale, sharing)
                              if taken is None else taken)
            if contender.kind == 'fio':
                continue
            if experiment.recovery is not None and taken is None:
                total += _recovery_extras(experiment, contender, point, pairs, scale)
            if experiment.needs_template:
                flags = commands.load_flags(experiment, contender, point, scale)
                churn = commands.churn_flags(experiment, contender, point, scale)
                made = (experiment.template_owner(contender.name), repr((flags, churn)))
                if made not in loaded:
                    loaded.add(made)
                    total += experiment.load.count(pairs) * \
                        load_seconds(experiment, contender, point, scale)
    return total
