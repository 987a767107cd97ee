# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Summaries of results: what tables and docs/benchmarks.md are made of.

results.json has all reports and time series of all runs: megabytes, which no repository needs. A
summary, bench/results/EXPERIMENT/summary.json, has one number for each run and each metric that
the experiment compares or plots. Medians, ranges and ratios within pairs follow from these
numbers, so they are not stored beside them.
"""
import json
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from strata_bench import metrics, results, stats
from strata_bench.experiments import Comparison, Experiment, Plot
from strata_bench.results import Document

# {point: {contender: a number for each pair, None where the run gave none}}
Table = Dict[str, Dict[str, List[Optional[float]]]]
Summary = Dict[str, Any]

DIGITS = 9
# What a summary takes over from the results as it is.
COPIED = ['experiment', 'state', 'stopped_by', 'started', 'finished', 'declaration', 'scale',
          'pairs', 'templates', 'loaded_by', 'slow', 'points', 'contenders', 'titles', 'kinds',
          'skipped', 'dataset', 'factors', 'machine', 'disturbed_runs_allowed', 'max_foreign_cpu']
# These are written with a line for each of their entries.
WITH_LINES = {'titles', 'skipped', 'dataset', 'factors', 'machine', 'programs', 'failures',
              'checks', 'seconds'}


def _round(value: Any) -> Any:
    """Numbers with the digits that mean something; whole numbers without a point."""
    if isinstance(value, dict):
        return {key: _round(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_round(item) for item in value]
    if not isinstance(value, float):
        return value
    value = float(f'{value:.{DIGITS}g}')
    return int(value) if value.is_integer() else value


def key(metric: str, phases: Sequence[str], benchmark: Optional[str]) -> str:
    """Under which a summary has the numbers of a metric."""
    return f'{metric} of {", ".join(phases)}' + (f' ({benchmark})' if benchmark else '')


def _keys(experiment: Experiment) -> Dict[str, Tuple[str, List[str], Optional[str]]]:
    """The metrics of all comparisons, and of the plots that show one number for each run."""
    found = {}
    plots = [plot for plot in experiment.plots if plot.kind != 'timeline']
    items: List[Union[Comparison, Plot]] = [*experiment.comparisons, *plots]
    for item in items:
        found[key(item.metric, item.phases, item.benchmark)] = (item.metric, item.phases,
                                                                item.benchmark)
    return found


def _numbers(document: Document, metric: str, phases: List[str], benchmark: Optional[str]
             ) -> Table:
    table: Table = {}
    for run in document['runs']:
        number = metrics.value(run, metric, phases, benchmark)
        if number is not None:
            values = table.setdefault(run['point'], {}).setdefault(
                run['contender'], [None] * document['pairs'])
            values[run['pair']] = _round(float(number))
    return table


def _seconds(document: Document) -> Dict[str, Dict[str, float]]:
    """{point: {contender: mean seconds of a run}}, from which later runs are estimated."""
    taken: Dict[str, Dict[str, List[float]]] = {}
    for run in document['runs']:
        if not run['error'] and 'seconds' in run:
            taken.setdefault(run['point'], {}).setdefault(run['contender'], []).append(
                run['seconds'])
    return {point: {name: round(sum(values) / len(values), 2) for name, values in by_name.items()}
            for point, by_name in taken.items()}


def make(experiment: Experiment, document: Document) -> Summary:
    """The summary of results, complete or partial."""
    runs = document['runs']
    summary = {name: document[name] for name in COPIED if name in document}
    summary['programs'] = {name: {'built_for': program['built_for']}
                           for name, program in document.get('programs', {}).items()
                           if program.get('built_for')}
    rates = [item['reads_per_sec'] for item in document.get('probes', [])
             if 'reads_per_sec' in item]
    if rates:
        summary['disk_reads_per_sec'] = {'min': min(rates), 'max': max(rates)}
    foreign = [run['foreign_cpu'] for run in runs if run.get('foreign_cpu') is not None]
    summary['runs'] = {
        'count': len(runs),
        'repeated': sum('repeated_for_foreign_cpu' in run for run in runs),
        'disturbed': sum(bool(run.get('disturbed')) for run in runs),
        'largest_foreign_cpu': round(max(foreign), 3) if foreign else None}
    summary['failures'] = [{name: run[name] for name in ('pair', 'point', 'contender', 'error')}
                           for run in runs if run['error']]
    summary['seconds'] = _seconds(document)
    summary['numbers'] = {name: _numbers(document, *what)
                          for name, what in _keys(experiment).items()}
    summary['checks'] = run_checks(experiment, summary)
    return _round(summary)


class Numbers:
    """The numbers of a comparison, or of a plot, by point and contender."""

    def __init__(self, item: Union[Comparison, Plot], summary: Summary) -> None:
        name = key(item.metric, item.phases, item.benchmark)
        # A comparison that was declared after the measurement has no numbers.
        self.measured = name in summary['numbers']
        self._table: Table = summary['numbers'].get(name, {})
        self._against = item.against if isinstance(item, Comparison) else None

    def _values(self, point: str, contender: str) -> Dict[int, Optional[float]]:
        return dict(enumerate(self._table.get(point, {}).get(contender, [])))

    def summary(self, point: str, contender: str) -> Optional[stats.Summary]:
        return stats.summarise(list(self._values(point, contender).values()))

    def ratio(self, point: str, contender: str) -> Optional[stats.Summary]:
        if self._against is None or contender == self._against:
            return None
        return self.ratio_to(point, contender, self._against)

    def ratio_to(self, point: str, contender: str, base: str) -> Optional[stats.Summary]:
        return stats.pair_ratios(self._values(point, contender), self._values(point, base))


def run_checks(experiment: Experiment, summary: Summary) -> List[Dict[str, Any]]:
    """The comparisons that must stay within a bound: how far the medians are apart.

    A bound is not held by what has no number: "apart" is None then.
    """
    checks = []
    for comparison in experiment.comparisons:
        if comparison.within is None:
            continue
        numbers = Numbers(comparison, summary)
        others = [name for name in summary['contenders'] if name != comparison.against]
        for point in summary['points']:
            base = numbers.summary(point, comparison.against or '')
            for contender in others or ['']:
                other = numbers.summary(point, contender)
                apart = None
                if base is not None and other is not None and base.median > 0:
                    apart = abs(other.median / base.median - 1)
                checks.append({'title': comparison.title, 'point': point, 'contender': contender,
                               'apart': apart, 'within': comparison.within,
                               'ok': apart is not None and apart <= comparison.within})
    return checks


def distance(check: Dict[str, Any]) -> str:
    """What a check found, for readers."""
    if check['apart'] is None:
        return 'cannot be compared: a number is missing'
    return f'are {check["apart"]:.1%} apart'


def dump(summary: Summary) -> str:
    """JSON with a line for each metric at each point, so that changes are readable."""
    def line(value: Any) -> str:
        return json.dumps(value, sort_keys=True, ensure_ascii=False)

    def lines(value: Any, depth: int) -> str:
        """An entry each of a list or an object."""
        if depth == 0 or not value or not isinstance(value, (dict, list)):
            return line(value)
        if isinstance(value, list):
            return '[\n  ' + ',\n  '.join(line(item) for item in value) + '\n ]'
        indent = '  ' if depth == 1 else ' '
        inner = f',\n{indent}'.join(f'{line(name)}: {lines(value[name], depth - 1)}'
                                    for name in value)
        return f'{{\n{indent}{inner}\n{indent[1:]}}}'

    parts = []
    for name, value in summary.items():
        if name == 'numbers':
            inner = ',\n'.join(
                f'  {line(metric)}: {{\n' + ',\n'.join(
                    f'   {line(point)}: {line(values)}' for point, values in table.items())
                + '\n  }' for metric, table in value.items())
            text = f'{{\n{inner}\n }}'
        else:
            text = lines(value, 1 if name in WITH_LINES else 0)
        parts.append(f' {line(name)}: {text}')
    return '{\n' + ',\n'.join(parts) + '\n}\n'


def path(folder: Path) -> Path:
    return folder / 'summary.json'


def load(experiment: Experiment, folder: Path) -> Optional[Summary]:
    """The summary of an experiment's folder, made from its results.json if that is not older."""
    summary: Optional[Summary] = results.load(path(folder))
    document = results.load(folder / 'results.json')
    if document is not None and (summary is None or document['started'] >= summary['started']):
        return make(experiment, document)
    return summary


def save(summary: Summary, folder: Path) -> None:
    results.write_atomically(path(folder), dump(summary))
