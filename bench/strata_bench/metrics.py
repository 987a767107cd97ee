# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Numbers out of the reports of a run: fields of db_bench's report, and what follows from them."""
import statistics
from typing import Any, Callable, Dict, List, Optional

Report = Dict[str, Any]
Run = Dict[str, Any]

TIMELINE_COLUMNS = ['ops', 'ops_per_sec', 'p50_us', 'p99_us', 'max_us', 'db_bytes', 'sst_bytes',
                    'blob_bytes', 'wal_bytes', 'read_bytes', 'write_bytes', 'cpu_seconds',
                    'rss_bytes']


def _field(report: Report, path: str) -> Optional[float]:
    value: Any = report
    # Names such as "p99.9" have a dot, so the longest name that is there wins.
    parts = path.split('.')
    while parts:
        if not isinstance(value, dict):
            return None
        for length in range(len(parts), 0, -1):
            key = '.'.join(parts[:length])
            if key in value:
                value, parts = value[key], parts[length:]
                break
        else:
            return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value)


def _ratio(above: Optional[float], below: Optional[float]) -> Optional[float]:
    return None if above is None or not below else above / below


def _sum(values: List[Optional[float]]) -> Optional[float]:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _written(report: Report) -> Optional[float]:
    """Bytes that reached the device: what was dirty when its file was deleted did not."""
    written = _field(report, 'process.write_bytes')
    if written is None:
        return None
    return written - (_field(report, 'process.cancelled_write_bytes') or 0.0)


def _io_bytes(report: Report) -> Optional[float]:
    read = _field(report, 'process.read_bytes')
    written = _written(report)
    return None if read is None or written is None else read + written


def _cpu_seconds(report: Report) -> Optional[float]:
    return _sum([_field(report, 'process.cpu_user_seconds'),
                 _field(report, 'process.cpu_system_seconds')])


def _cpu_micros_per_op(report: Report) -> Optional[float]:
    seconds = _ratio(_cpu_seconds(report), _field(report, 'ops'))
    return None if seconds is None else seconds * 1e6


def _rates(report: Report) -> List[float]:
    """Throughput of each interval, without the first and the last, which are not whole ones."""
    rates = report.get('timeseries', {}).get('ops_per_sec', [])
    return [rate for rate in rates if rate is not None][1:-1]


def _variation(report: Report) -> Optional[float]:
    rates = _rates(report)
    if len(rates) < 3 or not any(rates):
        return None
    return statistics.pstdev(rates) / statistics.fmean(rates)


def _peak_bytes(report: Report) -> Optional[float]:
    sizes = [size for size in report.get('timeseries', {}).get('db_bytes', []) if size is not None]
    return max(sizes) if sizes else None


def _peak_blob_space(reports: List[Report]) -> Optional[float]:
    """Blob files at their largest over what they were when all values had been written once."""
    for position, report in enumerate(reports):
        if report.get('benchmark') == 'waitforcompaction':
            later = [size for after in reports[position + 1:]
                     for size in after.get('timeseries', {}).get('blob_bytes', [])
                     if size is not None]
            return _ratio(max(later), _field(report, 'db.blob_bytes')) if later else None
    return None


# Of one report.
DERIVED: Dict[str, Callable[[Report], Optional[float]]] = {
    'io_bytes': _io_bytes,
    'io_bytes_per_op': lambda report: _ratio(_io_bytes(report), _field(report, 'ops')),
    'read_bytes_per_op': lambda report: _ratio(_field(report, 'process.read_bytes'),
                                               _field(report, 'ops')),
    'reads_per_op': lambda report: _ratio(_field(report, 'process.syscr'), _field(report, 'ops')),
    'write_bytes_per_op': lambda report: _ratio(_written(report), _field(report, 'ops')),
    'scans_per_sec': lambda report: _ratio(_field(report, 'latency_us.scan.count'),
                                           _field(report, 'seconds')),
    'cpu_us_per_op': _cpu_micros_per_op,
    'cpu_cores': lambda report: _ratio(_cpu_seconds(report), _field(report, 'seconds')),
    'throughput_variation': _variation,
    'peak_bytes': _peak_bytes,
    'peak_space_amplification': lambda report: _ratio(_peak_bytes(report),
                                                      _field(report, 'logical_bytes')),
}

# Over all benchmarks of several phases.
TOTALS: Dict[str, Callable[[List[Report]], Optional[float]]] = {
    'total_seconds': lambda reports: _sum([_field(item, 'seconds') for item in reports]),
    'total_throughput': lambda reports: _ratio(
        _sum([_field(item, 'ops') for item in reports if item.get('workload')]),
        _sum([_field(item, 'seconds') for item in reports if item.get('workload')])),
    'total_write_bytes': lambda reports: _sum([_written(item) for item in reports]),
    'total_sst_bytes_written': lambda reports: _sum(
        [_field(item, 'sst_bytes_written') for item in reports]),
    'total_io_bytes': lambda reports: _sum([_io_bytes(item) for item in reports]),
    'total_write_amplification': lambda reports: _ratio(
        _sum([_written(item) for item in reports]),
        _sum([_field(item, 'user_bytes_written') for item in reports])),
    'peak_blob_space_amplification': _peak_blob_space,
}

FIELDS = ['ops', 'seconds', 'ops_per_sec', 'bytes', 'user_bytes_written', 'wal_bytes_written',
          'sst_bytes_written', 'logical_bytes', 'write_amplification', 'space_amplification',
          'open_seconds', 'first_get_seconds', 'reopen_seconds', 'baseline_seconds',
          'clean_open_seconds', 'recovery_seconds', 'wal_bytes']
GROUPS = ['latency_us', 'process', 'db', 'paths']


def debt(metric: str) -> Optional[str]:
    """How a metric depends on what a workload leaves to flushes and compactions, or None.

    "traffic": bytes that they still would read and write; "size": what lies there before they did;
    "total" and "after" are right if the phase waits for them.
    """
    if metric in ('total_write_bytes', 'total_io_bytes', 'total_write_amplification',
                  'total_sst_bytes_written'):
        return 'total'
    if metric.startswith('paths.'):
        return 'after'  # looked at after the command's end
    if metric == 'space_amplification' or metric.startswith('db.'):
        return 'size'
    if metric in ('write_amplification', 'io_bytes', 'io_bytes_per_op', 'write_bytes_per_op',
                  'sst_bytes_written',
                  'process.write_bytes'):
        return 'traffic'
    return None


def problem(metric: str) -> Optional[str]:
    """What is wrong with the name of a metric, or None."""
    if metric in DERIVED or metric in TOTALS or metric in FIELDS:
        return None
    if metric.split('.')[0] in GROUPS and '.' in metric:
        return None
    return (f'{metric!r} is not a metric; they are: '
            + ', '.join(sorted(FIELDS + list(DERIVED) + list(TOTALS)))
            + ' and ' + ', '.join(f'{group}.*' for group in GROUPS))


def unit(metric: str) -> str:
    if metric.startswith('latency_us.'):
        return '' if metric.endswith('.count') else 'µs'
    if metric.endswith('amplification') or metric == 'throughput_variation':
        return ''
    if metric.endswith('percent'):
        return '%'
    if metric.endswith('cost_usd'):
        return 'USD'
    if metric.endswith('us_per_op'):
        return 'µs/op'
    if metric.endswith('bytes_per_op'):
        return 'B/op'
    if metric == 'reads_per_op':
        return 'read()/op'
    if metric in ('ops_per_sec', 'total_throughput'):
        return 'op/s'
    if metric == 'scans_per_sec':
        return 'scans/s'
    if metric.endswith('seconds'):
        return 's'
    if 'bytes' in metric:
        return 'B'
    return ''


def value(run: Run, metric: str, phases: List[str], benchmark: Optional[str] = None
          ) -> Optional[float]:
    """A run's number, or None if it has none: it failed, or its report lacks the field."""
    if run.get('error'):
        return None
    reports = [report for phase in phases for report in run.get('phases', {}).get(phase, [])]
    if metric in TOTALS:
        return TOTALS[metric](reports)
    chosen = [report for report in reports if
              (report.get('benchmark') == benchmark if benchmark else report.get('workload'))]
    if not chosen:
        return None
    report = chosen[-1]
    return DERIVED[metric](report) if metric in DERIVED else _field(report, metric)
