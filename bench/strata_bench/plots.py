# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Results as PNG plots. Without matplotlib there are none, and that is all."""
import os
import re
from pathlib import Path
from typing import Any, List, Optional, Tuple

from strata_bench import metrics, stats, summary
from strata_bench.experiments import Experiment, Plot
from strata_bench.results import Document
from strata_bench.summary import Numbers

# Columns of the time series that mean nothing while flush and waitforcompaction run.
WORKLOAD_COLUMNS = {'ops', 'ops_per_sec', 'p50_us', 'p99_us', 'max_us'}
# Told apart also by those who do not see all colours (Okabe and Ito).
COLOURS = ['#0072B2', '#E69F00', '#009E73', '#CC79A7', '#56B4E9', '#D55E00', '#000000', '#F0E442']


def _pyplot() -> Any:
    """None if it is not there."""
    os.environ.setdefault('MPLBACKEND', 'Agg')
    try:
        from matplotlib import pyplot
    except ImportError:
        return None
    return pyplot


def _colour(document: Document, contender: str) -> str:
    return COLOURS[document['contenders'].index(contender) % len(COLOURS)]


def _error(found: stats.Summary) -> Tuple[float, float]:
    return found.median - found.low, found.high - found.median


def _label(metric: str) -> str:
    unit = metrics.unit(metric)
    name = metric.replace('_', ' ')
    return f'{name}, {unit}' if unit and unit not in name else name


def _bars(axes: Any, plot: Plot, document: Document) -> None:
    numbers = Numbers(plot, document)
    contenders, points = document['contenders'], document['points']
    width = 0.8 / len(contenders)
    for n, contender in enumerate(contenders):
        places, heights, low, high = [], [], [], []
        for place, point in enumerate(points):
            found = numbers.summary(point, contender)
            if found is None:
                continue
            below, above = _error(found)
            places.append(place - 0.4 + width * (n + 0.5))
            heights.append(found.median)
            low.append(below)
            high.append(above)
        if places:
            axes.bar(places, heights, width * 0.9, yerr=[low, high], capsize=3,
                     color=_colour(document, contender), label=document['titles'][contender])
    axes.set_xticks(range(len(points)), points)
    axes.set_ylabel(_label(plot.metric))
    axes.grid(axis='y', alpha=0.3)


def _lines(axes: Any, plot: Plot, document: Document) -> None:
    numbers = Numbers(plot, document)
    points = document['points']
    try:
        places: List[float] = [float(point) for point in points]
    except ValueError:
        places = list(range(len(points)))
        axes.set_xticks(places, points)
    for contender in document['contenders']:
        known = [(place, found) for place, found in
                 ((place, numbers.summary(point, contender))
                  for place, point in zip(places, points)) if found is not None]
        if known:
            errors = [_error(found) for _, found in known]
            axes.errorbar([place for place, _ in known], [item.median for _, item in known],
                          yerr=[[low for low, _ in errors], [high for _, high in errors]],
                          marker='o', capsize=3, color=_colour(document, contender),
                          label=document['titles'][contender])
    axes.set_ylim(bottom=0)
    axes.set_ylabel(_label(plot.metric))
    axes.grid(alpha=0.3)


def timeline(run: Any, plot: Plot) -> Tuple[List[float], List[float]]:
    """(seconds, values) of a run, its phases one after another."""
    seconds: List[float] = []
    values: List[float] = []
    offset = 0.0
    for phase in plot.phases:
        for report in run['phases'].get(phase, []):
            if plot.metric in WORKLOAD_COLUMNS and not report.get('workload'):
                continue  # waiting for compaction is no throughput of 0
            series = report.get('timeseries', {})
            for at, value in zip(series.get('seconds', []), series.get(plot.metric, [])):
                if at is not None and value is not None:
                    seconds.append(offset + at)
                    values.append(value)
            offset += report.get('seconds') or 0.0
    return seconds, values


def _timeline(axes: Any, plot: Plot, document: Document) -> None:
    shown = set()
    for run in document['runs']:
        if run['error'] or run['point'] != document['points'][0]:
            continue
        seconds, values = timeline(run, plot)
        if not seconds:
            continue
        scale = 1e9 if plot.metric.endswith('bytes') else 1.0
        contender = run['contender']
        axes.plot(seconds, [value / scale for value in values], linewidth=1, alpha=0.8,
                  color=_colour(document, contender),
                  label=None if contender in shown else document['titles'][contender])
        shown.add(contender)
    axes.set_ylim(bottom=0)
    axes.set_xlabel('seconds')
    axes.set_ylabel(plot.metric.replace('_', ' ').replace('bytes', 'size, GB'))
    axes.grid(alpha=0.3)


def file_name(plot: Plot) -> str:
    return re.sub(r'[^a-z0-9]+', '-', plot.title.lower()).strip('-') + '.png'


def draw(experiment: Experiment, document: Document, folder: Path) -> Optional[List[str]]:
    """The names of the plots drawn; None without matplotlib."""
    pyplot = _pyplot()
    if pyplot is None:
        return None
    short = summary.make(experiment, document)
    names = []
    for plot in experiment.plots:
        figure, axes = pyplot.subplots(figsize=(7.5, 4))
        if plot.kind == 'timeline':
            _timeline(axes, plot, document)
        else:
            {'bars': _bars, 'lines': _lines}[plot.kind](axes, plot, short)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(fontsize='small')
        if plot.kind != 'timeline' and experiment.sweep is not None:
            axes.set_xlabel(experiment.sweep.parameter)
        axes.set_title(plot.title)
        figure.tight_layout()
        # Without dates and versions the same numbers give the same bytes.
        figure.savefig(folder / file_name(plot), dpi=110, metadata={'Software': None})
        pyplot.close(figure)
        names.append(file_name(plot))
    return names
