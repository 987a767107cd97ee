# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""db_bench's command lines, and what its reports say."""
import csv
import hashlib
import json
from pathlib import Path
from typing import Any, Dict, List, Optional

from strata_bench.contenders import Contender
from strata_bench.declarations import DATA_SHARE, share_of_data
from strata_bench.experiments import (HOUSEKEEPING, MIN_DATASET_PER_CACHE, UPSTREAM_WORKLOADS,
                                      WORKLOADS, Dataset, Experiment, ExperimentError, Phase,
                                      Point)
from strata_bench.process import CommandFailed

# All databases are measured with these, unless an experiment says otherwise: the page cache plays
# no part, what is written to the WAL is, and no time goes into compressing random bytes. The WAL
# is written out as it grows: a file that is deleted while it is dirty has cost no device a write.
# Benchmarks that end after a time look at the clock at each operation.
BASE_FLAGS = {
    'use_direct_reads': 'true',
    'use_direct_io_for_flush_and_compaction': 'true',
    'compression_type': 'none',
    'compression_ratio': '1.0',
    'disable_wal': 'false',
    'wal_bytes_per_sync': str(512 << 10),
    'ops_between_duration_checks': '1',
}
TIMESERIES_INTERVAL_MS = 500
# Loads and churns are no phases; these names cannot be a phase's.
LOAD_SEED, CHURN_SEED = '(load)', '(churn)'
# Flags that give a cache beside the block cache its size.
OTHER_CACHES = ('row_cache_size', 'blob_cache_size', 'compressed_secondary_cache_size')


def seed(pair: int, point: str, phase: str) -> int:
    """The base of a phase's random numbers: the same for all contenders, for each phase another.

    Thread i of db_bench adds i + 1, so bases that lie close together would share streams.
    """
    digest = hashlib.sha256(f'{pair}/{point}/{phase}'.encode()).hexdigest()
    return int(digest[:10], 16) or 1  # 0 is the time of day


def dataset_flags(dataset: Dataset, benchmarks: List[str]) -> Dict[str, str]:
    flags = {'cache_size': str(dataset.cache_size)}
    if dataset.family == 'upstream' or any(name in UPSTREAM_WORKLOADS for name in benchmarks):
        flags['num'] = str(dataset.records)
        flags['key_size'] = str(round(dataset.key_size))
        flags['value_size'] = str(round(dataset.value_size))
    if dataset.family != 'upstream':
        flags['ycsb_records'] = str(dataset.records)
    if dataset.family == 'ycsb':
        flags['key_size'] = str(round(dataset.key_size))
        flags['ycsb_field_count'] = str(dataset.field_count)
        flags['ycsb_field_length'] = str(dataset.field_length)
    return flags


def _load_flags(experiment: Experiment, contender: Contender, point: Point, scale: float
                ) -> Dict[str, str]:
    flags = dict(BASE_FLAGS)
    flags.update(dataset_flags(experiment.dataset_at(point, scale), experiment.load.benchmarks))
    flags.update(experiment.options_at(scale))
    flags.update(contender.flags)
    flags.update(point.options)
    return flags


def _fill_in_data(flags: Dict[str, str], data: int) -> Dict[str, str]:
    """{data/15} becomes a fifteenth of the dataset's bytes, {data/1MiB} its mebibytes."""
    return {name: DATA_SHARE.sub(lambda match: str(share_of_data(match.group(1), data)), value)
            for name, value in flags.items()}


def load_flags(experiment: Experiment, contender: Contender, point: Point, scale: float,
               generation: int = 0) -> Dict[str, str]:
    """The flags that make a loaded database. With churn_flags nothing else decides what is in it.

    Pairs of another generation start from a database that was loaded with another seed.
    """
    flags = _load_flags(experiment, contender, point, scale)
    flags.update(experiment.load.flags)
    flags['benchmarks'] = ','.join(experiment.load.benchmarks)
    flags['use_existing_db'] = 'false'
    flags['seed'] = str(seed(generation, '', LOAD_SEED))
    return _fill_in_data(flags, experiment.dataset_at(point, scale).bytes)


def churn_flags(experiment: Experiment, contender: Contender, point: Point, scale: float,
                generation: int = 0) -> Optional[Dict[str, str]]:
    """Of what is done to a loaded database before phases start from it."""
    churn = experiment.load.churn
    if churn is None:
        return None
    return phase_flags(experiment, contender, point, churn, scale,
                       seed(generation, point.label, CHURN_SEED), of_load=True)


def phase_flags(experiment: Experiment, contender: Contender, point: Point, phase: Phase,
                scale: float, base_seed: int, of_load: bool = False) -> Dict[str, str]:
    benchmarks = phase.benchmarks if of_load else experiment.benchmarks_of(phase, point)
    flags = _load_flags(experiment, contender, point, scale)
    flags.update(dataset_flags(experiment.dataset_at(point, scale), benchmarks))
    flags['threads'] = str(phase.threads)
    flags.update(phase.flags)
    sweep = experiment.sweep
    if phase.swept and (sweep is None or sweep.only is None
                        or contender.is_one_of(sweep.only)):
        flags.update(point.flags)
    variant = experiment.variants.get(contender.name)
    if variant is not None and not of_load:  # what is loaded is shared with others
        flags.update(variant.phase_flags)
    flags['benchmarks'] = ','.join(benchmarks)
    flags['use_existing_db'] = 'false' if phase.database == 'empty' else 'true'
    flags['seed'] = str(base_seed)
    if phase.seconds is not None:
        shorter = 1.0 if experiment.recovery else min(1.0, scale)
        flags['duration'] = str(max(1, round(phase.seconds * shorter)))
    ops = phase_ops(phase, point, of_load)
    if ops is not None:
        each = str(max(1, round(ops * scale / int(flags['threads']))))
        if any(name in WORKLOADS for name in benchmarks):
            flags['num'] = each
        else:
            flags['reads'] = flags['writes'] = each
    return _fill_in_data(flags, experiment.dataset_at(point, scale).bytes)


def phase_ops(phase: Phase, point: Point, of_load: bool = False) -> Optional[int]:
    """Operations of all threads, before scaling."""
    return point.ops if phase.swept and point.ops is not None and not of_load else phase.ops


def check_caches(experiment: Experiment, contenders: Dict[str, Contender], scale: float) -> None:
    """All caches of a contender together must not hide the storage. Throws ExperimentError."""
    names = dict.fromkeys(experiment.contenders)
    names.update(dict.fromkeys(experiment.variants))
    for point in experiment.points:
        data = experiment.dataset_at(point, scale).bytes
        for name in names:
            if contenders[name].kind == 'fio':
                continue
            for phase in experiment.phases:
                flags = phase_flags(experiment, contenders[name], point, phase, scale, 1)
                caches = {'cache_size': int(flags['cache_size'])}
                caches.update({flag: int(flags[flag]) for flag in OTHER_CACHES if flag in flags})
                if data < MIN_DATASET_PER_CACHE * sum(caches.values()):
                    where = f' at {point.label}' if point.label else ''
                    raise ExperimentError(
                        f'{experiment.file}: {" + ".join(caches)} of {name}: the dataset{where} '
                        f'({data:,} bytes) must be at least {MIN_DATASET_PER_CACHE} times the '
                        f'caches ({sum(caches.values()):,} bytes), or they are measured')


def report_flags(report: Path, timeseries: Path, stopped: Path) -> Dict[str, str]:
    """`stopped` is for strata_bench.turns."""
    return {
        'stopped_nanos_file': str(stopped),
        'report_json': str(report),
        'timeseries_csv': str(timeseries),
        'timeseries_interval_ms': str(TIMESERIES_INTERVAL_MS),
    }


def fill_in(flags: Dict[str, str], folder: Path) -> Dict[str, str]:
    """Flags may name folders beside the database as {dir}/name."""
    return {name: value.replace('{dir}', str(folder)) for name, value in flags.items()}


def command_line(binary: Path, flags: Dict[str, str], folder: Path) -> List[str]:
    flags = dict(flags)
    first = fill_in({'benchmarks': flags.pop('benchmarks'),
                     'db': flags.pop('db', '{dir}/db')}, folder)
    return [str(binary)] + [f'--{name}={value}' for name, value in
                            list(first.items()) + sorted(fill_in(flags, folder).items())]


def read_reports(report: Path, timeseries: Optional[Path], workload: str) -> List[Dict[str, Any]]:
    """The reports of a command, in order, each with its part of the time series.

    The workload's has "workload": true. Throws CommandFailed if it is missing.
    """
    reports = []
    try:
        for line in report.read_text().splitlines():
            if line.strip():
                reports.append(json.loads(line))
    except (OSError, ValueError) as error:
        raise CommandFailed(f'no report: {error}') from error
    found = False
    for item in reports:
        if item.get('benchmark') == workload:
            item['workload'] = found = True
    if not found:
        raise CommandFailed(f'the report has no benchmark {workload!r}')
    if timeseries is not None and timeseries.exists():
        columns = read_timeseries(timeseries)
        for item in reports:
            item['timeseries'] = columns.get(item.get('benchmark', ''), {})
    return reports


def read_timeseries(path: Path) -> Dict[str, Dict[str, List[Optional[float]]]]:
    """{benchmark: {column: values}}."""
    result: Dict[str, Dict[str, List[Optional[float]]]] = {}
    with open(path, newline='') as file:
        for row in csv.DictReader(file):
            columns = result.setdefault(row.pop('benchmark', ''), {})
            for name, text in row.items():
                try:
                    number: Optional[float] = float(text)
                except (TypeError, ValueError):  # an empty cell, or a line cut by a kill
                    number = None
                columns.setdefault(name, []).append(number)
    return result


def main_workload(experiment: Experiment, phase: Phase, point: Point) -> str:
    names = experiment.benchmarks_of(phase, point)
    for name in names:
        if name not in HOUSEKEEPING:
            return name
    return names[0]
