# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""By what each dimension of an experiment is smaller than in its paper.

One factor for all would keep the proportions. Not every size can shrink by as much as the data: a
memtable of some kilobytes would measure the cost of files. So the factors are shown.
"""
from typing import Any, Dict, List, Optional, Tuple

from strata_bench import commands
from strata_bench.contenders import Contender
from strata_bench.experiments import Experiment, Phase, Point

Factor = Dict[str, Any]


def _factor(name: str, paper: float, ours: List[float]) -> Optional[Factor]:
    known = [value for value in ours if value > 0]
    if not known:
        return None
    return {'name': name, 'paper': paper, 'low': paper / max(known), 'high': paper / min(known)}


def _operations(experiment: Experiment, phase: Phase, point: Point, scale: float
                ) -> Optional[Tuple[int, float]]:
    """(in the paper, here)."""
    ops = commands.phase_ops(phase, point)
    paper = experiment.paper_sizes.operations.get(phase.name)
    if phase.swept and point.paper_ops is not None:
        paper = point.paper_ops
    return None if ops is None or paper is None else (paper, ops * scale)


def factors(experiment: Experiment, contenders: Dict[str, Contender], scale: float
            ) -> List[Factor]:
    """"low" and "high" are the same unless the points differ."""
    sizes = experiment.paper_sizes
    result: List[Optional[Factor]] = []
    datasets = [experiment.dataset_at(point, scale) for point in experiment.points]
    if sizes.records is not None:
        result.append(_factor('records', sizes.records, [item.records for item in datasets]))
    if sizes.data is not None:
        result.append(_factor('data', sizes.data, [item.bytes for item in datasets]))
    counts: Dict[Tuple[float, ...], List[str]] = {}  # phases that shrink alike are told together
    for phase in experiment.phases:
        pairs = [pair for pair in (_operations(experiment, phase, point, scale)
                                   for point in experiment.points) if pair is not None]
        if not pairs:
            continue
        quotients = [paper / ours for paper, ours in pairs]
        per_record = [ours / dataset.records for dataset, point in zip(datasets, experiment.points)
                      for paper, ours in [_operations(experiment, phase, point, scale) or (0, 0.0)]
                      if paper]
        counts.setdefault((pairs[0][0], min(quotients), max(quotients), min(per_record),
                           max(per_record)), []).append(phase.name)
    for (paper_ops, low, high, here_low, here_high), names in counts.items():
        name = 'operations'
        if len(experiment.phases) > 1:
            name += f' of {", ".join(names)}'
        result.append({'name': name, 'paper': paper_ops, 'low': low, 'high': high})
        if sizes.records is not None:
            result.append({'name': f'{name} per record', 'paper': paper_ops / sizes.records,
                           'here_low': here_low, 'here_high': here_high})
    for flag, paper in sizes.flags.items():
        ours = []
        for point in experiment.points:
            for name in experiment.contenders:
                if contenders[name].kind == 'fio':
                    continue
                flags = commands.phase_flags(experiment, contenders[name], point,
                                             experiment.phases[-1], scale, 1)
                if flag in flags:
                    ours.append(float(flags[flag]))
        result.append(_factor(flag, paper, ours))
    return [item for item in result if item is not None]


def _number(value: float) -> str:
    return f'{value:.0f}' if value >= 10 else f'{value:.3g}'


def text(items: List[Factor]) -> str:
    parts = []
    for item in items:
        if 'here_low' in item:
            low, high = _number(item['here_low']), _number(item['here_high'])
            here = low if low == high else f'{low} to {high}'
            parts.append(f'{item["name"]} {here} (paper: {_number(item["paper"])})')
            continue
        low, high = _number(item['low']), _number(item['high'])
        parts.append(f'{item["name"]} 1/{low}' + ('' if low == high else f' to 1/{high}'))
    return ', '.join(parts)
