# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Runs an experiment: pair after pair, at every point all contenders in turns."""
import datetime
import hashlib
import itertools
import os
import random
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Tuple

from strata_bench import commands, fio, machine, probe, process, recovery, scaling, stats
from strata_bench import summary, templates, turns
from strata_bench.contenders import Contender, NotAvailable, Programs, built_for
from strata_bench.experiments import (Experiment, ExperimentError, Phase, Point)
from strata_bench.process import CommandFailed, Interrupted
from strata_bench.progress import Key, Progress
from strata_bench.results import Document, Store

RUN_TIMEOUT = 3600.0  # seconds at scale 1
# How long a disturbance between two phases may last before the experiment is broken off.
PATIENCE = 120.0
TEMPLATE_LIMIT = 40 << 30
# File systems in memory: what is measured there is no storage.
MEMORY_FILE_SYSTEMS = {'tmpfs', 'ramfs', 'devtmpfs'}


@dataclass
class Settings:
    root: Path              # of the project; its path does not get into results
    data: Path              # where databases are made: build/bench
    out: Path               # bench/results
    scale: float = 1.0
    pairs: Optional[int] = None
    contenders: Optional[List[str]] = None
    slow: Optional[Path] = None
    force: bool = False
    resume: bool = False
    check_load: bool = True


@dataclass
class Outcome:
    document: Document
    interrupted: Optional[str] = None
    stopped: Optional[str] = None
    failures: int = 0
    messages: List[str] = field(default_factory=list)


def all_flags(experiment: Experiment, contenders: List[Contender], scale: float, pairs: int
              ) -> Iterator[Tuple[Any, ...]]:
    """Whatever goes on command lines, of loads, churns and phases."""
    for contender in contenders:
        if contender.kind == 'fio':
            yield contender.name, contender.block_size
            continue
        for point in experiment.points:
            for generation in range(experiment.load.count(pairs)):
                yield (contender.name, point.label, generation,
                       commands.load_flags(experiment, contender, point, scale, generation),
                       commands.churn_flags(experiment, contender, point, scale, generation))
            for pair in range(pairs):
                for phase in experiment.phases:
                    yield (contender.name, point.label, pair, phase.name, phase.database,
                           commands.phase_flags(
                               experiment, contender, point, phase, scale,
                               commands.seed(pair, point.label, phase.name)))


def fingerprint(experiment: Experiment, contenders: List[Contender], settings: 'Settings',
                pairs: int, stamps: Dict[str, str]) -> str:
    """Of all that decides what is measured. Runs with another one are no part of the same set."""
    what = (list(all_flags(experiment, contenders, settings.scale, pairs)),
            repr(experiment.recovery), str(settings.slow or ''), sorted(stamps.items()))
    return hashlib.sha256(repr(what).encode()).hexdigest()[:20]


def declaration_stamp(experiment: Experiment, contenders: Dict[str, Contender]) -> str:
    """Changes with the experiment's file and with the flags of its contenders."""
    resolved = experiment.resolve(contenders)
    flags = [(name, sorted(resolved[name].flags.items())) for name in sorted(resolved)
             if name in experiment.contenders or name in experiment.variants]
    text = Path(experiment.file).read_text()
    return hashlib.sha256(repr((text, flags)).encode()).hexdigest()[:20]


class Runner:
    def __init__(self, experiment: Experiment, contenders: Dict[str, Contender],
                 settings: Settings, programs: Programs, proc: machine.Proc, progress: Progress
                 ) -> None:
        self._experiment = experiment
        self._settings = settings
        self._programs = programs
        self._proc = proc
        self._progress = progress
        self._declaration = declaration_stamp(experiment, contenders)
        self._all = experiment.resolve(contenders)
        self._pairs = settings.pairs or experiment.pairs
        self._templates = templates.Templates(settings.data / 'templates', settings.slow)
        self._work = settings.data / 'work' / experiment.name
        self._points = {point.label: point for point in experiment.points}
        self._baselines: Dict[Tuple[str, str, int], Dict[str, Any]] = {}
        self._failed_loads: Dict[Tuple[str, str], str] = {}
        self._watch = machine.CpuWatch(proc)
        self._cpus = os.cpu_count() or 1

    # --- before the first run ---------------------------------------------------------------

    def available(self) -> Tuple[List[Contender], Dict[str, str]]:
        """(contenders that can run, {name: why not} of the others)."""
        names = self._settings.contenders or self._experiment.contenders
        for name in names:
            if name not in self._all:
                raise ExperimentError(f'no contender {name!r}; there are: {", ".join(self._all)}')
        chosen, skipped = [], {}
        for name in names:
            contender = self._all[name]
            if contender.kind == 'fio' and not any(item.fio for item in self._experiment.phases):
                skipped[name] = 'no phase of this experiment is for fio'
                continue
            try:
                self._programs.check(contender, self._flags_needed(contender))
                if self._experiment.needs_template:
                    loader = self._loader(contender)
                    self._programs.check(loader, self._flags_needed(loader))
            except NotAvailable as error:
                skipped[name] = str(error)
                continue
            chosen.append(contender)
        return chosen, skipped

    def _flags_needed(self, contender: Contender) -> List[str]:
        scale = self._settings.scale
        needed = set(commands.report_flags(Path(), Path(), Path()))
        for point in self._experiment.points:
            if self._experiment.needs_template:
                needed.update(commands.load_flags(self._experiment, contender, point, scale))
                needed.update(commands.churn_flags(self._experiment, contender, point, scale)
                              or {})
            for phase in self._experiment.phases:
                needed.update(commands.phase_flags(self._experiment, contender, point, phase,
                                                   scale, 0))
        return sorted(needed)

    def space_needed(self, chosen: List[Contender]) -> int:
        """An estimate: templates that are still to be loaded, and a working copy for each."""
        wanted: Dict[Tuple[str, str], int] = {}
        largest = 0
        copies = 1 if self._experiment.recovery or not self._experiment.side_by_side else \
            sum(contender.kind != 'fio' for contender in chosen)
        for point in self._points.values():
            size = self._experiment.dataset_at(point, self._settings.scale).bytes
            largest = max(largest, size)
            for contender in chosen:
                if contender.kind == 'fio':
                    wanted[('fio', str(size))] = size
                elif self._experiment.needs_template:
                    for generation in self._generations():
                        owner, stamp = self._template_of(contender, point, generation)
                        if not self._templates.is_current(owner, stamp):
                            wanted[(owner, stamp)] = int(1.5 * size)
        return sum(wanted.values()) + int(copies * self._experiment.space_factor * largest)

    def _check_space(self, chosen: List[Contender]) -> None:
        needed = self.space_needed(chosen)
        free = machine.free_bytes(self._settings.data)
        if needed > free:
            keep = set()
            if self._experiment.needs_template:
                keep = {'-'.join(self._template_of(contender, point, generation))
                        for contender in chosen if contender.kind != 'fio'
                        for point in self._points.values() for generation in self._generations()}
            self._templates.prune(max(0, self._templates.bytes() - (needed - free)), keep)
            free = machine.free_bytes(self._settings.data)
        if needed > free:
            raise ExperimentError(
                f'about {needed / 1e9:.1f} GB of disk are needed in {self._settings.data}, '
                f'{free / 1e9:.1f} GB are free; a smaller --scale needs less')

    def _check_storage(self) -> None:
        for folder in (self._settings.data, self._settings.slow):
            if folder is None:
                continue
            kind = machine.file_system(folder)
            if kind in MEMORY_FILE_SYSTEMS:
                raise ExperimentError(f'{folder} lies in memory ({kind}), which is no storage to '
                                      'measure; --data and --slow choose other folders')

    # --- databases --------------------------------------------------------------------------

    def _generations(self) -> range:
        return range(self._experiment.load.count(self._pairs))

    def _generation_of(self, pair: int) -> int:
        return pair % self._experiment.load.count(self._pairs)

    def _loader(self, contender: Contender) -> Contender:
        """With whose program and flags the template of a contender is loaded: its owner."""
        return self._all[self._experiment.template_owner(contender.name)]

    def _flags_of_template(self, contender: Contender, point: Point, generation: int
                           ) -> List[Dict[str, str]]:
        """Of the commands that make it, one after another."""
        scale = self._settings.scale
        found = [commands.load_flags(self._experiment, contender, point, scale, generation)]
        churn = commands.churn_flags(self._experiment, contender, point, scale, generation)
        return found + ([churn] if churn is not None else [])

    def _template_of(self, contender: Contender, point: Point, generation: int
                     ) -> Tuple[str, str]:
        """(owner, stamp)."""
        loader = self._loader(contender)
        return loader.name, templates.stamp(
            flags=self._flags_of_template(loader, point, generation),
            program=self._programs.stamp(loader.binary), slow=str(self._settings.slow or ''))

    def _load_templates(self, chosen: List[Contender]) -> None:
        """All of them before the first pair: loading between runs would tire the disk for some."""
        if not self._experiment.needs_template:
            return
        for generation in self._generations():
            for point in self._points.values():
                for contender in chosen:
                    if contender.kind == 'fio':
                        continue
                    try:
                        self._template(contender, point, generation)
                    except CommandFailed:  # remembered, and told by each run that needs it
                        pass

    def _template(self, contender: Contender, point: Point, generation: int) -> Path:
        owner, stamp = self._template_of(contender, point, generation)
        if (owner, stamp) in self._failed_loads:
            raise CommandFailed('the load failed before: ' + self._failed_loads[owner, stamp])

        def load(folder: Path) -> Any:
            self._progress.phase('loading')
            loader = self._loader(contender)
            report = folder / 'report.json'
            lines = []
            for flags in self._flags_of_template(loader, point, generation):
                command = commands.command_line(
                    loader.binary, dict(flags, report_json=str(report)), folder)
                process.run(command, folder / 'output.log', self._timeout(), self._progress.tick)
                # The folder's name differs between pairs and contenders and says nothing.
                lines.append(self._plain(command).replace(self._plain([str(folder)]), '{dir}'))
            reports = commands.read_reports(report, None, self._experiment.load.benchmarks[0])
            return {'commands': lines, 'reports': reports}

        try:
            return self._templates.get(owner, stamp, load)
        except CommandFailed as error:
            self._failed_loads[owner, stamp] = str(error)
            raise

    def _timeout(self) -> float:
        return RUN_TIMEOUT * max(1.0, self._settings.scale)

    def _plain(self, command: List[str]) -> str:
        """A command for readers: paths from the project's root."""
        return ' '.join(command).replace(f'{self._settings.root}/', '')

    # --- one round: the runs of all contenders at a point -------------------------------------

    def _folder(self, contender: Contender) -> Path:
        # Not nested: a slower tier has a folder of the same name.
        return self._work.with_name(f'{self._work.name}-{contender.name}')

    def _remove_folders(self) -> None:
        for folder in self._work.parent.glob(f'{self._work.name}-*'):
            templates.remove(folder)

    def _copy_template(self, contender: Contender, point: Point, pair: int, run: Dict[str, Any]
                       ) -> None:
        generation = self._generation_of(pair)
        template = self._template(contender, point, generation)
        self._templates.copy(template, self._folder(contender))
        made = self._templates.load_report(*self._template_of(contender, point, generation))
        for name, line in zip(('(load)', '(churn)'), (made or {}).get('commands', [])):
            run['commands'][name] = line

    def _quiet(self) -> None:
        """Throws Busy."""
        if not self._settings.force:
            machine.wait_until_idle(self._proc, self._cpus, PATIENCE,
                                    sample=machine.SHORT_SAMPLE_SECONDS)

    def _begin_phase(self, contender: Contender, point: Point, phase: Phase, pair: int,
                     run: Dict[str, Any]) -> turns.Turn:
        """Throws CommandFailed."""
        folder = self._folder(contender)
        if phase.database == 'loaded':
            self._copy_template(contender, point, pair, run)
        elif phase.database == 'empty':
            templates.prepare(folder, self._settings.slow)
        report, timeseries = folder / 'report.json', folder / 'timeseries.csv'
        stopped = folder / 'stopped'
        for path in (report, timeseries, stopped):
            path.unlink(missing_ok=True)
        # All contenders get the same numbers, each pair and phase others.
        flags = commands.phase_flags(self._experiment, contender, point, phase,
                                     self._settings.scale,
                                     commands.seed(pair, point.label, phase.name))
        flags.update(commands.report_flags(report, timeseries, stopped))
        command = commands.command_line(contender.binary, flags, folder)
        run['commands'][phase.name] = self._plain(command)
        return turns.Turn(command, folder / 'output.log', stopped)

    def _end_phase(self, contender: Contender, point: Point, phase: Phase, run: Dict[str, Any]
                   ) -> None:
        """Throws CommandFailed."""
        folder = self._folder(contender)
        run['phases'][phase.name] = commands.read_reports(
            folder / 'report.json', folder / 'timeseries.csv',
            commands.main_workload(self._experiment, phase, point))
        for item in run['phases'][phase.name]:
            if item.get('workload'):
                item['paths'] = templates.tiers(folder)

    def _run_phase(self, chosen: List[Contender], point: Point, phase: Phase, pair: int,
                   runs: Dict[str, Dict[str, Any]]) -> None:
        """A contender that fails has its error in its run, and is left out from then on."""
        def fail(contender: Contender, error: CommandFailed) -> None:
            runs[contender.name]['error'] = f'{phase.name}: {error}'

        in_turns: Dict[str, turns.Turn] = {}
        for contender in chosen:
            run = runs[contender.name]
            if contender.kind == 'fio' or run['error']:
                continue
            try:
                in_turns[contender.name] = self._begin_phase(contender, point, phase, pair, run)
            except CommandFailed as error:
                fail(contender, error)
        dropped = machine.drop_caches(self._work.parent)
        for name in in_turns:
            runs[name]['caches_dropped'] = dropped
        self._progress.phase(phase.name)
        self._quiet()
        with self._watch:
            failed = turns.run(in_turns, len(in_turns) * self._timeout(), self._progress.tick)
        for contender in chosen:
            if contender.name in in_turns:
                try:
                    if contender.name in failed:
                        raise failed[contender.name]
                    self._end_phase(contender, point, phase, runs[contender.name])
                except CommandFailed as error:
                    fail(contender, error)
            elif contender.kind == 'fio' and phase.fio:
                try:
                    self._run_fio(contender, point, phase, runs[contender.name])
                except CommandFailed as error:
                    fail(contender, error)

    def _run_fio(self, contender: Contender, point: Point, phase: Phase, run: Dict[str, Any]
                 ) -> None:
        size = self._experiment.dataset_at(point, self._settings.scale).bytes
        size -= size % contender.block_size
        folder = self._folder(contender)
        folder.mkdir(parents=True, exist_ok=True)
        threads = int(point.flags.get('threads', phase.threads))
        file = self._fio_file(size)
        fio.lay_out(str(contender.binary), file, size, folder / 'output.log',
                    self._progress.tick)
        self._quiet()
        with self._watch:
            report = fio.measure(
                str(contender.binary), file, size, contender.block_size, threads,
                phase.seconds or fio.READ_SECONDS, folder / 'output.log', self._progress.tick)
        run['commands'][phase.name] = self._plain(report.pop('command'))
        run['phases'][phase.name] = [report]

    def _fio_file(self, size: int) -> Path:
        return self._settings.data / 'templates' / 'fio' / f'{size}.dat'

    def _run_recovery(self, contender: Contender, point: Point, pair: int, run: Dict[str, Any]
                      ) -> None:
        settings = self._experiment.recovery
        assert settings is not None
        phase = self._experiment.phases[0]
        folder = self._folder(contender)
        report, log = folder / 'report.json', folder / 'output.log'
        base = commands.phase_flags(self._experiment, contender, point, phase,
                                    self._settings.scale,
                                    commands.seed(pair, point.label, phase.name))

        def command(**changes: str) -> List[str]:
            return commands.command_line(contender.binary, dict(base, **changes), folder)

        once = command(benchmarks=settings.reopen, num='1', reads='1', threads='1', duration='0',
                       report_json=str(report))
        key = (contender.name, point.label, self._generation_of(pair))
        if key not in self._baselines:
            self._progress.phase('baseline: opening after a clean close')
            reports = []
            for _ in range(3):
                self._copy_template(contender, point, pair, run)
                machine.drop_caches(folder)
                self._quiet()
                reports.append(recovery.reopen(once, log, report, settings.reopen, self._timeout(),
                                               self._progress.tick))
            self._baselines[key] = sorted(reports, key=lambda item: item['reopen_seconds'])[1]
        self._copy_template(contender, point, pair, run)
        machine.drop_caches(folder)
        self._progress.phase('workload, to be killed')
        workload = command()
        self._quiet()
        with self._watch:
            after = recovery.crash(workload, log, settings, random.Random(f'{pair} {point.label}'),
                                   folder, self._progress.tick)
        result: Dict[str, Any] = {'benchmark': 'recovery', 'workload': True,
                                  'killed_after_seconds': after,
                                  'wal_bytes': recovery.wal_bytes(folder)}
        run['caches_dropped'] = machine.drop_caches(folder)
        self._progress.phase('reopening')
        with self._watch:
            opened = recovery.reopen(once, log, report, settings.reopen, self._timeout(),
                                     self._progress.tick)
        result.update({name: opened[name] for name in
                       ('open_seconds', 'first_get_seconds', 'reopen_seconds', 'process', 'db')
                       if name in opened})
        result['baseline_seconds'] = self._baselines[key]['reopen_seconds']
        result['clean_open_seconds'] = self._baselines[key].get('open_seconds')
        # Below 0 when recovery takes less than openings differ; a bound at 0 would shift the mean.
        result['recovery_seconds'] = result['reopen_seconds'] - result['baseline_seconds']
        if pair < settings.verify_rounds:
            self._progress.phase('verifying')
            process.run(command(benchmarks='verify', duration='0'), log, self._timeout(),
                        self._progress.tick)
            result['verified'] = True
        run['commands'].update(workload=self._plain(workload), reopen=self._plain(once))
        run['phases']['recovery'] = [result]

    def _round(self, keys: List[Key], contenders: Dict[str, Contender]) -> List[Dict[str, Any]]:
        """The runs of these keys, which have one pair and one point."""
        pair, label, _ = keys[0]
        point = self._points[label]
        chosen = [contenders[name] for _, _, name in keys]
        runs = {contender.name: {'pair': pair, 'point': label, 'contender': contender.name,
                                 'phases': {}, 'commands': {}, 'error': None, 'started': _now()}
                for contender in chosen}
        started = time.monotonic()
        self._watch = machine.CpuWatch(self._proc)
        try:
            if self._experiment.recovery is not None:
                for contender in chosen:
                    try:
                        self._run_recovery(contender, point, pair, runs[contender.name])
                    except CommandFailed as error:
                        runs[contender.name]['error'] = str(error)
            else:
                groups = [chosen] if self._experiment.side_by_side else [[one] for one in chosen]
                for group in groups:
                    for phase in self._experiment.phases:
                        self._run_phase(group, point, phase, pair, runs)
                    if len(groups) > 1:
                        self._remove_folders()
        finally:
            self._remove_folders()
        for run in runs.values():
            if run['error']:
                run['error'] = run['error'].replace(f'{self._settings.root}/', '')
            # Its part of the round, which has no other length.
            run['seconds'] = (time.monotonic() - started) / len(runs)
            run['foreign_cpu'] = self._watch.share
            run['disturbed'] = (self._watch.share or 0.0) > machine.MAX_FOREIGN_CPU
        return list(runs.values())

    def _round_twice_if_disturbed(self, keys: List[Key], contenders: Dict[str, Contender]
                                  ) -> List[Dict[str, Any]]:
        runs = self._round(keys, contenders)
        first = runs[0]['foreign_cpu'] or 0.0
        if not runs[0]['disturbed'] or any(run['error'] for run in runs) or self._settings.force:
            return runs
        self._progress.message(f'pair {keys[0][0] + 1}: others took {first:.0%} of the CPUs '
                               'meanwhile; once more')
        again = self._round(keys, contenders)
        second = again[0]['foreign_cpu'] or 0.0
        if any(run['error'] for run in again) or second > first:
            again, first = runs, second
        for run in again:
            run['repeated_for_foreign_cpu'] = first
        return again

    def _probe(self, pair: int, document: Document) -> None:
        """Once for each pair."""
        if any(item['pair'] == pair for item in document['probes']):
            return
        self._progress.phase('probing the disk')
        found = probe.measure(self._settings.data)
        document['probes'].append(dict(found, pair=pair))

    # --- all runs ---------------------------------------------------------------------------

    def run(self) -> Outcome:
        """Throws ExperimentError and Busy before the first run, and nothing later."""
        experiment, settings = self._experiment, self._settings
        commands.check_caches(experiment, self._all, settings.scale)
        self._check_storage()
        chosen, skipped = self.available()
        for name, reason in skipped.items():
            self._progress.message(f'{name}: not available yet: {reason}')
        if not any(contender.kind != 'fio' for contender in chosen):
            raise ExperimentError('no contender is left to be measured')
        if not settings.force:
            if settings.check_load:
                self._proc.check(self._cpus, with_load=True)
            else:
                machine.wait_until_idle(self._proc, self._cpus, PATIENCE)
        self._check_space(chosen)

        store = Store(settings.out / experiment.name)
        stamps = {contender.name: 'fio' if contender.kind == 'fio' else
                  self._programs.stamp(contender.binary) for contender in chosen}
        document: Document = {
            'experiment': experiment.name, 'title': experiment.title, 'state': 'running',
            'fingerprint': fingerprint(experiment, chosen, settings, self._pairs, stamps),
            'declaration': self._declaration,
            'scale': settings.scale, 'pairs': self._pairs,
            'factors': scaling.factors(experiment, self._all, settings.scale),
            'templates': len(self._generations()) if experiment.needs_template else 0,
            'loaded_by': experiment.load.contender,
            'slow': settings.slow is not None,
            'kinds': {contender.name: contender.kind for contender in chosen},
            'points': list(self._points),
            'contenders': [contender.name for contender in chosen],
            'titles': {contender.name: contender.title for contender in chosen},
            'programs': {contender.name: {'path': self._plain([str(contender.binary)]),
                                          'stamp': stamps[contender.name][:16],
                                          'built_for': built_for(contender.binary)}
                         for contender in chosen},
            'skipped': {name: reason.replace(f'{settings.root}/', '')
                        for name, reason in skipped.items()},
            'dataset': {label: _dataset(experiment, point, settings.scale)
                        for label, point in self._points.items()},
            'machine': machine.describe(settings.data),
            'disturbed_runs_allowed': settings.force, 'max_foreign_cpu': machine.MAX_FOREIGN_CPU,
            'started': _now(), 'probes': [], 'runs': [],
        }
        order = stats.schedule(list(self._points), document['contenders'], document['pairs'])
        done: Dict[Key, float] = {}
        if settings.resume:
            partial, reason = store.resumable(document['fingerprint'])
            if reason:
                raise ExperimentError(f'--resume: {reason}')
            document['runs'] = [run for run in partial['runs']
                                if (run['pair'], run['point'], run['contender']) in set(order)]
            document['probes'] = partial.get('probes', [])
            document['disturbed_runs_allowed'] = settings.force or any(
                run.get('forced') for run in document['runs'])
            done = {(run['pair'], run['point'], run['contender']): run['seconds']
                    for run in document['runs']}
            order = list(done) + [key for key in order if key not in done]
        outcome = Outcome(document)
        self._progress.begin(order, done)
        contenders = {contender.name: contender for contender in chosen}
        self._remove_folders()
        try:
            self._load_templates(chosen)
            for (pair, label), group in itertools.groupby(order[len(done):], lambda key: key[:2]):
                keys = list(group)
                self._quiet()
                self._probe(pair, document)
                self._progress.start(keys)
                for run in self._round_twice_if_disturbed(keys, contenders):
                    if settings.force:
                        run['forced'] = True
                    document['runs'].append(run)
                    self._progress.end((pair, label, run['contender']),
                                       None if run['error'] else run['seconds'])
                    if run['error']:
                        outcome.failures += 1
                        self._progress.message(f'pair {pair + 1}, {run["contender"]}'
                                               + (f', {label}' if label else '')
                                               + f' failed: {run["error"]}')
                store.save(document)
        except Interrupted as signal:
            outcome.interrupted = str(signal)
        except machine.Busy as error:
            outcome.stopped = str(error)
        except OSError as error:  # the disk is full, a folder is gone
            outcome.stopped = str(error)
        finally:
            self._remove_folders()
        document['finished'] = _now()
        document['checks'] = summary.make(experiment, document)['checks']
        stopped = outcome.interrupted or outcome.stopped
        document['state'] = 'partial' if stopped else 'complete'
        if stopped:
            document['stopped_by'] = stopped
        elif all(run['error'] for run in document['runs']):
            document['state'] = 'partial'
            outcome.stopped = 'every run failed'
        try:
            store.save(document)
        except OSError as error:
            outcome.stopped = f'the results could not be written: {error}'
        self._templates.prune(TEMPLATE_LIMIT)
        return outcome


def _now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).strftime('%Y-%m-%d %H:%M:%S UTC')


def _dataset(experiment: Experiment, point: Point, scale: float) -> Dict[str, Any]:
    dataset = experiment.dataset_at(point, scale)
    return {'records': dataset.records, 'key_size': dataset.key_size,
            'value_size': dataset.value_size, 'bytes': dataset.bytes,
            'cache_size': dataset.cache_size}
