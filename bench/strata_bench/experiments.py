# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Experiments: what bench/experiments/*.toml say, checked. bench/README.md has the format."""
import copy
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, List, Optional, Union

from strata_bench import metrics
from strata_bench.contenders import Contender
from strata_bench.declarations import Table, load_file, positive

# A cache must not hide the storage: the dataset is at least this many times as large.
MIN_DATASET_PER_CACHE = 15

# Ours draw from --ycsb_records and do --num operations per thread.
WORKLOADS = {'ycsbload', 'ycsba', 'ycsbb', 'ycsbc', 'ycsbd', 'ycsbe', 'ycsbf', 'ycsbam', 'ycsbbm',
             'ycsbfm', 'ycsbmix', 'rmw', 'up2xload', 'up2x', 'randomscan', 'deleterandomrange',
             'scanwhilewriting'}
# Upstream's draw from --num keys and do --reads or --writes operations per thread.
UPSTREAM_WORKLOADS = {'fillseq', 'fillrandom', 'filluniquerandom', 'overwrite', 'readrandom',
                      'readseq', 'readwhilewriting', 'readrandomwriterandom', 'seekrandom',
                      'seekrandomwhilewriting', 'multireadrandom', 'mergerandom', 'updaterandom',
                      'deleterandom'}
# These leave no work behind for compaction.
READ_ONLY = {'ycsbc', 'randomscan', 'readrandom', 'readseq', 'seekrandom', 'multireadrandom'}
# What ends a phase that writes, so that its debts are its own.
SETTLE = ['flush', 'waitforcompaction']
# These stand around a workload.
HOUSEKEEPING = {'flush', 'compact', 'compactall', 'waitforcompaction', 'stats', 'levelstats',
                'resetstats', 'verify'}
# Below this a memtable or a file says more about fixed costs than about the design.
MIN_SCALED_SIZE = 64 << 10
LOADS = {'ycsb': 'ycsbload', 'up2x': 'up2xload', 'upstream': 'filluniquerandom'}

PAPERS = {
    'wayfinder': 'Wayfinder (SiMoD 2024)',
    'tandem': 'KV-Tandem (Bortnikov et al.)',
    'kdsep': 'KDSep (ICDE 2024)',
    'tiered': 'Jaranilla et al., tiered key-value separation (Electronics 2025)',
    'none': '',
}


class ExperimentError(Exception):
    """An experiment cannot run as asked; the text says why."""


@dataclass
class Dataset:
    records: int
    family: str = 'ycsb'
    key_size: float = 24
    field_count: int = 10
    field_length: int = 100
    value_size: float = 1000
    cache_size: int = 0

    @property
    def bytes(self) -> int:
        return int(self.records * (self.key_size + self.value_size))

    def scaled(self, scale: float) -> 'Dataset':
        result = copy.copy(self)
        result.records = max(1, round(self.records * scale))
        result.cache_size = int(self.cache_size * scale)
        return result


@dataclass
class Phase:
    name: str
    benchmarks: List[str]
    ops: Optional[int]
    seconds: Optional[int]
    threads: int
    database: str  # "loaded", "continue", "empty"
    swept: bool
    fio: bool
    flags: Dict[str, str]

    @property
    def workload(self) -> str:
        """The benchmark whose numbers are the phase's."""
        for name in self.benchmarks:
            if name not in HOUSEKEEPING:
                return name
        return self.benchmarks[0]


@dataclass
class Point:
    """One value of the parameter that an experiment varies."""
    label: str
    flags: Dict[str, str] = field(default_factory=dict)
    options: Dict[str, str] = field(default_factory=dict)
    dataset: Dict[str, Any] = field(default_factory=dict)
    benchmarks: Optional[List[str]] = None
    ops: Optional[int] = None
    paper_ops: Optional[int] = None


@dataclass
class Load:
    """How the databases are made that phases start from."""
    benchmarks: List[str]
    flags: Dict[str, str] = field(default_factory=dict)
    templates: int = 3      # pairs take turns with so many, each loaded with other random numbers
    per_pair: bool = False  # as many as there are pairs
    contender: Optional[str] = None  # who loads those of all; each its own by default
    churn: Optional[Phase] = None  # done after loading, with the point's flags

    def count(self, pairs: int) -> int:
        return pairs if self.per_pair else min(self.templates, pairs)


@dataclass
class PaperSizes:
    """What the paper measured with, as far as it says."""
    records: Optional[int] = None
    data: Optional[int] = None
    operations: Dict[str, int] = field(default_factory=dict)   # by phase
    flags: Dict[str, float] = field(default_factory=dict)


@dataclass
class Sweep:
    parameter: str
    points: List[Point]
    only: Optional[List[str]] = None  # contenders that get the points' flags


@dataclass
class Variant:
    """What an experiment adds to a contender, or a contender of its own."""
    name: str
    extends: Optional[str]
    title: Optional[str]
    flags: Dict[str, str]
    phase_flags: Dict[str, str]


Paper = Union[int, float, str]


@dataclass
class Comparison:
    title: str
    metric: str
    phases: List[str]
    benchmark: Optional[str]
    against: Optional[str]
    within: Optional[float]
    paper: Dict[str, Union[Paper, Dict[str, Paper]]]
    note: str

    def paper_number(self, contender: str, point: str) -> Optional[Paper]:
        number = self.paper.get(contender)
        return number.get(point) if isinstance(number, dict) else number


@dataclass
class Plot:
    kind: str  # "bars", "lines", "timeline"
    metric: str
    phases: List[str]
    title: str
    benchmark: Optional[str] = None


@dataclass
class Recovery:
    min_seconds: float
    max_seconds: float
    reopen: str
    verify_rounds: int


@dataclass
class Experiment:
    name: str
    file: str
    title: str
    paper: str
    figure: str
    summary: str
    setup: str
    dataset: Dataset
    options: Dict[str, str]
    scaled_options: Dict[str, int]
    load: Load
    paper_sizes: PaperSizes
    contenders: List[str]
    variants: Dict[str, Variant]
    phases: List[Phase]
    sweep: Optional[Sweep]
    comparisons: List[Comparison]
    plots: List[Plot]
    recovery: Optional[Recovery]
    pairs: int
    space_factor: float
    side_by_side: bool

    @property
    def points(self) -> List[Point]:
        return self.sweep.points if self.sweep else [Point('')]

    @property
    def needs_template(self) -> bool:
        return any(phase.database == 'loaded' for phase in self.phases)

    def dataset_at(self, point: Point, scale: float) -> Dataset:
        dataset = copy.copy(self.dataset)
        for key, value in point.dataset.items():
            setattr(dataset, key, value)
        if dataset.family == 'ycsb':
            dataset.value_size = dataset.field_count * dataset.field_length
        return dataset.scaled(scale)

    def options_at(self, scale: float) -> Dict[str, str]:
        options = dict(self.options)
        options.update({name: str(max(MIN_SCALED_SIZE, int(size * scale)))
                        for name, size in self.scaled_options.items()})
        return options

    def resolve(self, contenders: Dict[str, Contender]) -> Dict[str, Contender]:
        """The contenders as this experiment sees them, its own among them."""
        result = {name: copy.deepcopy(item) for name, item in contenders.items()}
        for variant in self.variants.values():
            if variant.extends is not None:
                if variant.extends not in result:
                    raise ExperimentError(f'{self.file}: contender.{variant.name}.extends: '
                                          f'no contender {variant.extends!r}')
                item = copy.deepcopy(result[variant.extends])
                item.name = variant.name
                item.extends = (*item.extends, variant.extends)
                result[variant.name] = item
            elif variant.name not in result:
                raise ExperimentError(f'{self.file}: contender.{variant.name}: no such contender, '
                                      'and no "extends"')
            item = result[variant.name]
            item.title = variant.title or item.title
            item.flags.update(variant.flags)
        for name in self.contenders:
            if name not in result:
                raise ExperimentError(f'{self.file}: contenders: no contender {name!r}')
        for name in (self.sweep.only if self.sweep else None) or []:
            if name not in result:
                raise ExperimentError(f'{self.file}: sweep.only: no contender {name!r}')
        self._check_loader(result)
        for comparison in self.comparisons:
            named = list(comparison.paper)
            if comparison.against is not None:
                named.append(comparison.against)
            for name in named:
                if name not in result:
                    raise ExperimentError(f'{self.file}: compare "{comparison.title}": '
                                          f'no contender {name!r}')
        return result

    def _check_loader(self, contenders: Dict[str, Contender]) -> None:
        loader = self.load.contender
        if loader is None:
            return
        if loader not in contenders or contenders[loader].kind == 'fio':
            raise ExperimentError(f'{self.file}: load.contender: no contender {loader!r} that '
                                  'loads databases')
        for name in self.contenders:
            item = contenders[name]
            if item.kind != 'fio' and item.flags != contenders[loader].flags:
                raise ExperimentError(f'{self.file}: load.contender: {name} has other flags than '
                                      f'{loader}, so its databases would differ')

    def benchmarks_of(self, phase: Phase, point: Point) -> List[str]:
        return point.benchmarks if phase.swept and point.benchmarks is not None \
            else phase.benchmarks

    def writes(self, phase: Phase, point: Point) -> bool:
        """Whether a phase leaves work for flushes and compactions."""
        workload = next((name for name in self.benchmarks_of(phase, point)
                         if name not in HOUSEKEEPING), None)
        if workload is None or workload in READ_ONLY:
            return False
        if workload == 'ycsbmix':
            flags = dict(phase.flags, **(point.flags if phase.swept else {}))
            kinds = {part.partition(':')[0] for part in flags.get('ycsb_mix', 'update').split(',')}
            return not kinds <= {'read', 'readmissing', 'scan'}
        return True

    def template_owner(self, contender: str) -> str:
        """Whose loaded database a contender starts from: its own, if loading differs."""
        if self.load.contender is not None:
            return self.load.contender
        variant = self.variants.get(contender)
        if variant is not None and variant.extends is not None and not variant.flags:
            return self.template_owner(variant.extends)
        return contender


def _benchmarks(table: Table, default: Any = None) -> List[str]:
    text = table.get('benchmarks', 'text', default)
    if text is None:
        raise table.fail('benchmarks', 'missing (a text is needed)')
    names = [name.strip() for name in text.split(',') if name.strip()]
    if not names:
        raise table.fail('benchmarks', 'names no benchmark')
    for name in names:
        if name not in WORKLOADS | UPSTREAM_WORKLOADS | HOUSEKEEPING:
            raise table.fail('benchmarks', f'{name!r} is not a benchmark this bench knows')
    if len([name for name in names if name not in HOUSEKEEPING]) > 1:
        raise table.fail('benchmarks', 'more than one workload; make each a phase')
    return names


def _dataset(table: Table) -> Dataset:
    result = Dataset(records=table.get('records', 'integer', check=positive))
    result.family = table.choice('family', list(LOADS), 'ycsb')
    result.key_size = table.get('key_size', 'number', 24, positive)
    if result.family == 'ycsb':
        result.field_count = table.get('field_count', 'integer', 10, positive)
        result.field_length = table.get('field_length', 'integer', 100, positive)
        result.value_size = result.field_count * result.field_length
    else:
        result.value_size = table.get('value_size', 'number', check=positive)
    result.cache_size = table.get('cache_size', 'size')
    table.close()
    return result


def _phase(table: Table, first: bool, name: Optional[str] = None) -> Phase:
    if name is None:
        name = table.get('name', 'text', check=lambda value: None if re.fullmatch(
            r'[a-z][a-z0-9-]*', value) else 'small letters, digits and dashes only')
    benchmarks = _benchmarks(table)
    ops = table.get('ops', 'integer', None, positive)
    seconds = table.get('seconds', 'integer', None, positive)
    loads = benchmarks[0] in LOADS.values()
    if loads:
        if ops is not None or seconds is not None:
            raise table.fail('ops', 'a load writes every record once: neither "ops" nor "seconds"')
    elif all(name in HOUSEKEEPING for name in benchmarks):
        if ops is not None or seconds is not None:
            raise table.fail('ops', 'there is no workload that it could belong to')
    elif (ops is None) == (seconds is None):
        raise table.fail('ops', 'exactly one of "ops" and "seconds" is needed')
    database = table.choice('database', ['loaded', 'continue', 'empty'],
                            'empty' if loads else 'loaded' if first else 'continue')
    if first and database == 'continue':
        raise table.fail('database', 'the first phase has nothing to continue')
    if loads != (database == 'empty'):
        raise table.fail('database', '"empty" goes with a load, and a load with "empty"')
    phase = Phase(name, benchmarks, ops, seconds, table.get('threads', 'integer', 1, positive),
                  database, table.get('swept', 'boolean', True),
                  table.get('fio', 'boolean', False), table.flags('flags'))
    table.close()
    return phase


def _sweep(table: Table) -> Sweep:
    parameter = table.get('parameter', 'text')
    only = table.texts('only', None)
    points = []
    if 'values' in table:
        flag = table.get('flag', 'text')
        for value in table.get('values', 'list'):
            if isinstance(value, bool) or not isinstance(value, (int, float, str)):
                raise table.fail('values', f'{value!r} is neither number nor text')
            points.append(Point(str(value), {flag: str(value)}))
    for item in table.tables('point'):
        point = Point(item.get('label', 'text'), item.flags('flags'), item.flags('options'))
        if 'benchmarks' in item:
            point.benchmarks = _benchmarks(item)
        point.ops = item.get('ops', 'integer', None, positive)
        point.paper_ops = item.get('paper_ops', 'integer', None, positive)
        if 'dataset' in item:
            changes = item.table('dataset')
            for key in ('records', 'field_count', 'field_length'):
                value = changes.get(key, 'integer', None, positive)
                if value is not None:
                    point.dataset[key] = value
            cache_size = changes.get('cache_size', 'size', None)
            if cache_size is not None:
                point.dataset['cache_size'] = cache_size
            changes.close()
        item.close()
        points.append(point)
    if not points:
        raise table.fail('values', 'neither "values" nor a [[sweep.point]]')
    if len({point.label for point in points}) != len(points):
        raise table.fail('values', 'two points have the same label')
    table.close()
    return Sweep(parameter, points, only)


def _phase_names(table: Table, known: List[str]) -> List[str]:
    names = table.texts('phases', None)
    if names is None:
        name = table.get('phase', 'text', known[0] if len(known) == 1 else None)
        if name is None:
            raise table.fail('phase', f'missing; one of {", ".join(known)}')
        names = [name]
    for name in names:
        if name not in known:
            raise table.fail('phase', f'{name!r} is none of {", ".join(known)}')
    return names


def _metric(table: Table) -> str:
    return table.get('metric', 'text', check=metrics.problem)


def _comparison(table: Table, phases: List[str]) -> Comparison:
    paper = table.get('paper', 'table', {})
    for name, number in paper.items():
        for item in number.values() if isinstance(number, dict) else [number]:
            if isinstance(item, bool) or not isinstance(item, (int, float, str)):
                raise table.fail(f'paper.{name}', f'{item!r} is neither number nor text')
    result = Comparison(
        table.get('title', 'text'), _metric(table), _phase_names(table, phases),
        table.get('benchmark', 'text', None), table.get('against', 'text', None),
        table.get('within', 'number', None, positive), paper, table.get('note', 'text', ''))
    if result.within is not None and result.against is None:
        raise table.fail('within', 'needs "against"')
    table.close()
    return result


def _plot(table: Table, phases: List[str]) -> Plot:
    result = Plot(table.choice('kind', ['bars', 'lines', 'timeline']), '', [],
                  table.get('title', 'text'))
    if result.kind == 'timeline':
        result.metric = table.choice('metric', metrics.TIMELINE_COLUMNS)
    else:
        result.metric = _metric(table)
        result.benchmark = table.get('benchmark', 'text', None)
    result.phases = _phase_names(table, phases)
    table.close()
    return result


def parse(path: Path) -> Experiment:
    table = Table(load_file(path), str(path))
    dataset = _dataset(table.table('dataset'))

    load = Load([LOADS[dataset.family]] + SETTLE)
    if 'load' in table:
        item = table.table('load')
        load.benchmarks = _benchmarks(item, ','.join(load.benchmarks))
        load.flags = item.flags('flags')
        load.templates = item.get('templates', 'integer', load.templates, positive)
        load.per_pair = item.get('per_pair', 'boolean', False)
        load.contender = item.get('contender', 'text', None)
        if 'churn' in item:
            load.churn = _phase(item.table('churn'), False, 'churn')
        item.close()

    items = table.tables('phase')
    if not items:
        raise table.fail('phase', 'at least one [[phase]] is needed')
    phases = [_phase(item, n == 0) for n, item in enumerate(items)]
    names = [phase.name for phase in phases]
    if len(set(names)) != len(names):
        raise table.fail('phase', 'two phases have the same name')

    recovery = None
    if 'recovery' in table:
        item = table.table('recovery')
        recovery = Recovery(item.get('min_seconds', 'number', 1, positive),
                            item.get('max_seconds', 'number', 5, positive),
                            item.get('reopen', 'text', 'ycsbc'),
                            item.get('verify_rounds', 'integer', 1))
        if recovery.min_seconds > recovery.max_seconds:
            raise item.fail('max_seconds', 'is below min_seconds')
        if len(phases) != 1 or phases[0].database != 'loaded':
            raise item.fail('reopen', 'a recovery experiment has one phase, the one to be killed, '
                            'on a loaded database')
        item.close()
        names = ['recovery']

    variants = {}
    for name, data in table.get('contender', 'table', {}).items():
        if not isinstance(data, dict):
            raise table.fail(f'contender.{name}', 'not a table')
        item = Table(data, str(path), f'contender.{name}.')
        variants[name] = Variant(name, item.get('extends', 'text', None),
                                 item.get('title', 'text', None), item.flags('flags'),
                                 item.flags('phase_flags'))
        item.close()

    scaled = table.get('scaled_options', 'table', {})
    scaled_table = Table(scaled, str(path), 'scaled_options.')
    experiment = Experiment(
        name=path.stem, file=str(path), title=table.get('title', 'text'),
        paper=table.choice('paper', list(PAPERS)), figure=table.get('figure', 'text', ''),
        summary=table.get('summary', 'text').strip(), setup=table.get('setup', 'text', '').strip(),
        dataset=dataset, options=table.flags('options'),
        scaled_options={key: scaled_table.get(key, 'size') for key in scaled},
        load=load, paper_sizes=_paper_sizes(table, [phase.name for phase in phases]),
        contenders=table.texts('contenders'), variants=variants, phases=phases,
        sweep=_sweep(table.table('sweep')) if 'sweep' in table else None,
        comparisons=[_comparison(item, names) for item in table.tables('compare')],
        plots=[_plot(item, names) for item in table.tables('plot')],
        recovery=recovery,
        pairs=table.get('pairs', 'integer', 10 if recovery else 3, positive),
        space_factor=table.get('space_factor', 'number', 3.0, positive),
        side_by_side=table.get('side_by_side', 'boolean', True))
    if not experiment.contenders:
        raise table.fail('contenders', 'names no contender')
    if not experiment.comparisons:
        raise table.fail('compare', 'at least one [[compare]] is needed')
    table.close()
    _check_debts(experiment, table)
    return experiment


def _paper_sizes(table: Table, phases: List[str]) -> PaperSizes:
    result = PaperSizes()
    if 'paper_sizes' not in table:
        return result
    item = table.table('paper_sizes')
    result.records = item.get('records', 'integer', None, positive)
    result.data = item.get('data', 'size', None, positive)
    operations = item.get('operations', 'table', {})
    for name, number in operations.items():
        if name not in phases:
            raise item.fail(f'operations.{name}', f'none of {", ".join(phases)}')
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise item.fail(f'operations.{name}', f'{number!r} is not a number of operations')
    result.operations = operations
    flags = item.flags('flags')
    for name, text in flags.items():
        try:
            result.flags[name] = float(text)
        except ValueError:
            raise item.fail(f'flags.{name}', f'{text!r} is neither number nor size') from None
    item.close()
    return result


def _check_debts(experiment: Experiment, table: Table) -> None:
    """What a phase leaves to flushes and compactions must not be dropped, nor be paid by another.

    So where a phase goes on with a database, or bytes are compared, all before it have settled.
    """
    killed = experiment.phases[-1] if experiment.recovery else None
    for n, phase in enumerate(experiment.phases):
        if phase is killed or not any(experiment.writes(phase, point)
                                      for point in experiment.points):
            continue
        here = f'phase[{n}].benchmarks'
        needed = n + 1 < len(experiment.phases) and \
            experiment.phases[n + 1].database == 'continue' and 'the next phase goes on from it'
        asked = [(item.title, item.metric, item.benchmark) for item in experiment.comparisons
                 if phase.name in item.phases]
        asked += [(item.title, item.metric, item.benchmark) for item in experiment.plots
                  if phase.name in item.phases and item.kind != 'timeline']
        for title, metric, benchmark in asked:
            kind = metrics.debt(metric)
            if kind is None:
                continue
            needed = needed or f'"{title}" counts what it wrote'
            if kind == 'traffic' or (kind == 'size' and benchmark != SETTLE[-1]):
                remedy = 'take one of the total_ metrics' if kind == 'traffic' else \
                    f'take benchmark = "{SETTLE[-1]}"'
                raise table.fail(f'compare or plot "{title}"', f'{metric} of the workload alone '
                                 f'leaves out what it owes to compaction; {remedy}')
        if not needed:
            continue
        for point in experiment.points:
            names = experiment.benchmarks_of(phase, point)
            if experiment.writes(phase, point) and names[-2:] != SETTLE:
                raise table.fail(here, f'must end with {",".join(SETTLE)}: {needed}')
    churn = experiment.load.churn
    if churn is not None and churn.benchmarks[-2:] != SETTLE:
        raise table.fail('load.churn.benchmarks', f'must end with {",".join(SETTLE)}')
    if experiment.load.benchmarks[-2:] != SETTLE:
        raise table.fail('load.benchmarks', f'must end with {",".join(SETTLE)}')


def load_all(folder: Path) -> Dict[str, Experiment]:
    def natural(path: Path) -> List[Any]:  # fig2 before fig10
        return [int(part) if part.isdigit() else part for part in re.split('([0-9]+)', path.stem)]

    return {path.stem: parse(path) for path in sorted(folder.glob('*.toml'), key=natural)}
