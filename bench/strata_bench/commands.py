# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""db_bench's command lines, and what its reports say."""
import csv
import json
from pathlib import Path
from typing import Any, Dict, List, Optional

from strata_bench.contenders import Contender
from strata_bench.experiments import (HOUSEKEEPING, UPSTREAM_WORKLOADS, WORKLOADS, Dataset,
                                      Experiment, Phase, Point)
from strata_bench.process import CommandFailed

# All databases are measured with these, unless an experiment says otherwise: the page cache plays
# no part, what is written to the WAL is, and no time goes into compressing random bytes.
BASE_FLAGS = {
    'use_direct_reads': 'true',
    'use_direct_io_for_flush_and_compaction': 'true',
    'compression_type': 'none',
    'compression_ratio': '1.0',
    'disable_wal': 'false',
}
TIMESERIES_INTERVAL_MS = 500


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
    flags.update(dataset_flags(experiment.dataset_at(point, scale), experiment.load_benchmarks))
    flags.update(experiment.options_at(scale))
    flags.update(contender.flags)
    flags.update(point.options)
    return flags


def load_flags(experiment: Experiment, contender: Contender, point: Point, scale: float
               ) -> Dict[str, str]:
    """The flags that make a loaded database. Nothing else decides what is in it."""
    flags = _load_flags(experiment, contender, point, scale)
    flags.update(experiment.load_flags)
    flags['benchmarks'] = ','.join(experiment.load_benchmarks)
    flags['use_existing_db'] = 'false'
    flags['seed'] = '1'
    return flags


def phase_flags(experiment: Experiment, contender: Contender, point: Point, phase: Phase,
                scale: float, seed: int) -> Dict[str, str]:
    benchmarks = phase.benchmarks
    if phase.swept and point.benchmarks is not None:
        benchmarks = point.benchmarks
    flags = _load_flags(experiment, contender, point, scale)
    flags.update(dataset_flags(experiment.dataset_at(point, scale), benchmarks))
    flags['threads'] = str(phase.threads)
    flags.update(phase.flags)
    sweep = experiment.sweep
    if phase.swept and (sweep is None or sweep.only is None or contender.name in sweep.only):
        flags.update(point.flags)
    variant = experiment.variants.get(contender.name)
    if variant is not None:
        flags.update(variant.phase_flags)
    flags['benchmarks'] = ','.join(benchmarks)
    flags['use_existing_db'] = 'false' if phase.database == 'empty' else 'true'
    flags['seed'] = str(seed)
    if phase.seconds is not None:
        shorter = 1.0 if experiment.recovery else min(1.0, scale)
        flags['duration'] = str(max(1, round(phase.seconds * shorter)))
    ops = point.ops if phase.swept and point.ops is not None else phase.ops
    if ops is not None:
        each = str(max(1, round(ops * scale / int(flags['threads']))))
        if any(name in WORKLOADS for name in benchmarks):
            flags['num'] = each
        else:
            flags['reads'] = flags['writes'] = each
    return flags


def report_flags(report: Path, timeseries: Path) -> Dict[str, str]:
    return {
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


def main_workload(phase: Phase, point: Point) -> str:
    names = point.benchmarks if phase.swept and point.benchmarks is not None else phase.benchmarks
    for name in names:
        if name not in HOUSEKEEPING:
            return name
    return names[0]
