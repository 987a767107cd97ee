# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""The command line of bench/run."""
import argparse
import contextlib
import fcntl
import sys
from pathlib import Path
from typing import Dict, Iterator, List, Optional

from strata_bench import commands, contenders, environment, estimate, experiments, machine, plots
from strata_bench import process, questions, report, results, runner, summary, tables
from strata_bench.contenders import Contender, NotAvailable, Programs
from strata_bench.declarations import DeclarationError
from strata_bench.experiments import PAPERS, Experiment, ExperimentError
from strata_bench.progress import Progress, duration
from strata_bench.runner import Outcome, Runner, Settings

EXIT_FAILED = 1        # a run failed, or a bound was not held
EXIT_USAGE = 2         # a declaration or an argument is wrong
EXIT_BUSY = 3          # not a machine to measure on
EXIT_INTERRUPTED = 130

ROOT = environment.ROOT


def _positive(text: str) -> float:
    value = float(text)
    if not value > 0:
        raise argparse.ArgumentTypeError('must be above 0')
    return value


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError('must be at least 1')
    return value


def _binary(text: str) -> List[str]:
    name, equals, path = text.partition('=')
    if not equals or not path:
        raise argparse.ArgumentTypeError('CONTENDER=PATH is needed')
    return [name, path]


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog='bench/run', description='Measures Strata and RocksDB side by side. '
        'bench/README.md describes experiments, contenders and results.')
    parser.add_argument('experiment', nargs='*', metavar='EXPERIMENT',
                        help='what to run (see --list), or "all"')
    parser.add_argument('--list', action='store_true', help='list experiments and contenders')
    parser.add_argument('--check', action='store_true',
                        help='check all declarations, and print what each contender lacks')
    parser.add_argument('--report', action='store_true',
                        help='write docs/benchmarks.md and all tables from the results')
    parser.add_argument('--scale', type=_positive, default=1.0, metavar='S',
                        help='multiplies records, operations, caches and sizes (default: 1)')
    parser.add_argument('--pairs', type=_count, metavar='N',
                        help='runs of each contender (default: as the experiment says)')
    parser.add_argument('--contenders', metavar='A,B',
                        help='other contenders than the experiment names')
    parser.add_argument('--out', type=Path, default=ROOT / 'bench' / 'results', metavar='DIR',
                        help='where results go (default: bench/results)')
    parser.add_argument('--data', type=Path, default=ROOT / 'build' / 'bench', metavar='DIR',
                        help='where databases are made (default: build/bench)')
    parser.add_argument('--slow', type=Path, metavar='DIR',
                        help='a folder on another device, for the slower tier')
    parser.add_argument('--binary', type=_binary, action='append', default=[],
                        metavar='CONTENDER=PATH',
                        help='another program for a contender and all that share its own')
    parser.add_argument('--resume', action='store_true',
                        help='go on with an experiment that was broken off')
    parser.add_argument('--force', action='store_true',
                        help='measure even if the machine is busy; the results say so')
    return parser


def time_needed(experiment: Experiment, all_contenders: Dict[str, Contender], settings: Settings,
                programs: Programs) -> str:
    """For the contenders that can run, and for all."""
    resolved = experiment.resolve(all_contenders)
    names = settings.contenders or experiment.contenders
    everyone = [resolved[name] for name in names if name in resolved]
    now = Runner(experiment, all_contenders, settings, programs, machine.Proc(),
                 Progress()).available()[0]
    earlier = summary.load(experiment, settings.out / experiment.name)
    if earlier is not None and \
            earlier.get('declaration') != runner.declaration_stamp(experiment, all_contenders):
        earlier = None
    pairs = settings.pairs or experiment.pairs

    def spent(who: List[Contender]) -> str:
        return duration(estimate.seconds(experiment, who, pairs, settings.scale, earlier))

    text = f'{spent(everyone)} for all'
    if 0 < len(now) < len(everyone):
        text = f'{spent(now)} for {", ".join(item.name for item in now)}; {text}'
    return text + (', from its results' if earlier else '')


def print_list(all_experiments: Dict[str, Experiment], all_contenders: Dict[str, Contender],
               settings: Settings) -> None:
    programs = Programs()
    print(f'Times, as minutes:seconds, are estimates at --scale {settings.scale:g}.\n')
    for paper, title in PAPERS.items():
        names = [name for name, item in all_experiments.items() if item.paper == paper]
        if names:
            print(f'{title or "The bench itself"}:')
        for name in names:
            item = all_experiments[name]
            found = summary.load(item, settings.out / name)
            when = f' [{found["started"][:10]}]' if found else ''
            print(f'  {name:<24} {item.title}' + (f' ({item.figure})' if item.figure else '')
                  + when)
            print(f'  {"":<24}   {time_needed(item, all_contenders, settings, programs)}')
        print()
    print('Contenders:')
    for name, contender in all_contenders.items():
        print(f'  {name:<24} {contender.title}')


def check(all_experiments: Dict[str, Experiment], all_contenders: Dict[str, Contender],
          settings: Settings) -> int:
    """What each experiment cannot run. Being not built is no error of a declaration."""
    programs = Programs()
    for experiment in all_experiments.values():
        commands.check_caches(experiment, experiment.resolve(all_contenders), 1.0)
        checked = Runner(experiment, all_contenders, settings, programs, machine.Proc(),
                        Progress())
        for name, reason in checked.available()[1].items():
            print(f'{experiment.name}: {name}: not available yet: {reason}')
    print(f'{len(all_experiments)} experiments and {len(all_contenders)} contenders are well '
          'declared.')
    return 0


def _finish(experiment: Experiment, outcome: Outcome, settings: Settings, say: Progress) -> None:
    """Tables and plots of what there is."""
    folder = settings.out / experiment.name
    document = outcome.document
    complete = document['state'] == 'complete'
    if not document['runs']:
        return
    names: Optional[List[str]] = []
    if complete:
        names = plots.draw(experiment, document, folder)
        if names is None:
            say.message(f'No plots: matplotlib is missing. To install it: '
                        f'{environment.HOW_TO_INSTALL}')
    found = summary.make(experiment, document)
    if complete:
        path = report.write_experiment(experiment, found, folder, plots=names or [])
    else:
        path = folder / 'partial.md'
        results.write_atomically(path, tables.page(experiment, found, []))
    for item in experiment.comparisons:
        print(tables.comparison(experiment, item, found).replace('**', '') + '\n')
    print(f'Written: {path}')


def run_one(experiment: Experiment, all_contenders: Dict[str, Contender], settings: Settings,
            programs: Programs) -> int:
    say = Progress()
    say.message(f'{experiment.name}: {experiment.title}')
    runner = Runner(experiment, all_contenders, settings, programs, machine.Proc(), say)
    with machine.HaltPolling():
        outcome = runner.run()
    _finish(experiment, outcome, settings, say)
    kept = settings.out / experiment.name / 'partial.json'
    if outcome.interrupted:
        say.message(f'Interrupted ({outcome.interrupted}). {len(outcome.document["runs"])} runs '
                    f'are kept in {kept}; --resume goes on from there.')
        return EXIT_INTERRUPTED
    if outcome.stopped:
        say.message(f'Broken off: {outcome.stopped}. {len(outcome.document["runs"])} runs are kept '
                    f'in {kept}.')
        return EXIT_BUSY
    missed = [item for item in outcome.document['checks'] if not item['ok']]
    for item in missed:
        where = f', {item["point"]}' if item['point'] else ''
        say.message(f'{item["title"]}{where}: medians {summary.distance(item)}; the bound is '
                    f'{item["within"]:.0%}')
    return EXIT_FAILED if outcome.failures or missed else 0


@contextlib.contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """Two measurements at once would both be wrong."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / 'lock', 'w') as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise machine.Busy('another bench/run is measuring') from None
        yield


def _run_all(names: List[str], all_experiments: Dict[str, Experiment],
             all_contenders: Dict[str, Contender], settings: Settings) -> List[int]:
    codes = []
    programs = Programs()
    for name in names:
        try:
            codes.append(run_one(all_experiments[name], all_contenders, settings, programs))
        except (DeclarationError, ExperimentError, NotAvailable) as error:
            print(f'bench: {name}: {error}', file=sys.stderr)
            codes.append(EXIT_USAGE)
        settings.check_load = False  # from now on the load is our own
        if codes[-1] in (EXIT_BUSY, EXIT_INTERRUPTED):
            break
    return codes


def main(argv: List[str]) -> int:
    options = arguments().parse_args(argv)
    settings = Settings(root=ROOT, data=options.data.resolve(), out=options.out.resolve(),
                        scale=options.scale, pairs=options.pairs,
                        contenders=options.contenders.split(',') if options.contenders else None,
                        slow=options.slow.resolve() if options.slow else None,
                        force=options.force, resume=options.resume)
    try:
        all_contenders = contenders.parse(environment.BENCH / 'contenders.toml', ROOT)
        all_experiments = experiments.load_all(environment.BENCH / 'experiments')
        for name, path in options.binary:
            contenders.replace_program(all_contenders, name, Path(path).resolve())
        # A wrong declaration is found before hours are spent on the ones before it.
        for experiment in all_experiments.values():
            experiment.resolve(all_contenders)
        groups = questions.parse(environment.BENCH / 'questions.toml', all_experiments)
        if options.list:
            print_list(all_experiments, all_contenders, settings)
            return 0
        if options.check:
            return check(all_experiments, all_contenders, settings)
        chosen = list(all_experiments) if options.experiment == ['all'] else options.experiment
        unknown = [name for name in chosen if name not in all_experiments]
        if unknown:
            raise DeclarationError(f'no experiment {", ".join(unknown)}; see bench/run --list')
        if not chosen and not options.report:
            arguments().print_usage(sys.stderr)
            return EXIT_USAGE
    except (DeclarationError, ExperimentError, NotAvailable) as error:
        print(f'bench: {error}', file=sys.stderr)
        return EXIT_USAGE

    codes: List[int] = []
    try:
        if chosen:
            process.raise_on_signals()
            with _lock(settings.data):
                codes = _run_all(chosen, all_experiments, all_contenders, settings)
    except machine.Busy as error:
        print(f'bench: {error}. --force measures all the same.', file=sys.stderr)
        return EXIT_BUSY
    except process.Interrupted:
        return EXIT_INTERRUPTED
    if options.report and not any(code in (EXIT_BUSY, EXIT_INTERRUPTED) for code in codes):
        target = ROOT / 'docs' / 'benchmarks.md'
        missing = report.write(all_experiments, settings.out, target, all_contenders, groups)
        print(f'Written: {target}')
        if missing:
            print(f'Without results: {", ".join(missing)}')
    return max(codes, default=0)
