# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""docs/benchmarks.md: one page that answers a user's questions, from the summaries of results."""
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, List, Optional, Tuple

from strata_bench import chart, questions, results, runner, stats, summary, tables
from strata_bench.contenders import Contender
from strata_bench.experiments import MIN_DATASET_PER_CACHE, PAPERS, Experiment
from strata_bench.plots import file_name
from strata_bench.questions import Answer, Group
from strata_bench.summary import Summary
from strata_bench.tables import number, row

SHORT_PAPERS = {'wayfinder': 'Wayfinder', 'tandem': 'KV-Tandem', 'kdsep': 'KDSep',
                'tiered': 'Tiered separation', 'none': ''}
BUSY_MARK = ' †'

_INTRODUCTION = '''# Benchmarks

Each row answers one question with the result of one experiment that ran RocksDB, RocksDB's BlobDB
and Strata side by side on the same machine. The experiments repeat those of the papers that
Strata's designs come from, at a fraction of their size.

`bench/run --report` writes this page from the `summary.json` files in `bench/results/`; do not edit
it. [bench/README.md](../bench/README.md) says how experiments are measured and repeated.
'''

_READING = f'''## How to read the table

* A value is the median of all runs. A ratio is the median of the ratios within each pair of runs,
  with the smallest and the largest in brackets. ↑ marks rows where more is better, ↓ rows where
  less is better. A ratio is **bold** if Strata is better in every pair, *italic* if it is worse in
  every pair, and plain if the pairs disagree.
* Strata has several contenders, which turn on different features. A row shows the best one of the
  experiment, unless `bench/questions.toml` names one; its name stands behind the value. Rows with
  different names need different options. The experiment's table has all contenders.
* "Paper" is the ratio that the paper reports for its own system, to RocksDB, or to BlobDB where
  RocksDB is not in the row. It was measured on another machine, with more data and often against an
  older RocksDB: compare its direction, not its digits.
* {BUSY_MARK.strip()} marks experiments that ran with `--force`: the machine may have been busy.
* All experiments use direct I/O, no compression, and a dataset of at least
  {MIN_DATASET_PER_CACHE} times all caches, so that they measure storage and not memory. The WAL is
  on unless a contender's name says otherwise.
'''


@dataclass
class Measured:
    """An experiment with results."""
    experiment: Experiment
    summary: Summary
    products: List[str]   # that its declaration names
    is_current: bool      # measured with today's declaration

    @property
    def lacks(self) -> List[str]:
        return [name for name in self.products if name not in self.summary['contenders']]

    @property
    def is_published(self) -> bool:
        """Whether something of ours was measured, if the experiment is about that."""
        return not self.products or len(self.lacks) < len(self.products)

    @property
    def may_be_disturbed(self) -> bool:
        return bool(self.summary.get('disturbed_runs_allowed'))

    @property
    def source(self) -> str:
        """The paper and its figure, or the experiment's name."""
        paper = SHORT_PAPERS[self.experiment.paper]
        return f'{paper}, {self.experiment.figure}' if paper else self.experiment.name


def write_experiment(experiment: Experiment, found: Summary, folder: Path,
                     declaration: Optional[str] = None, plots: Optional[List[str]] = None) -> Path:
    """Writes the summary, the table and, if results.json is there, the commands.

    `plots`: None for those that are there.
    """
    if plots is None:
        plots = [file_name(plot) for plot in experiment.plots
                 if (folder / file_name(plot)).exists()]
    summary.save(found, folder)
    document = results.load(folder / 'results.json')
    if document is not None and document['started'] == found['started']:
        results.write_atomically(folder / 'commands.txt', tables.commands_page(document))
    path = folder / 'table.md'
    results.write_atomically(path, tables.page(experiment, found, plots, declaration))
    return path


def _ratio(found: Optional[stats.Summary], higher_is_better: bool) -> str:
    if found is None:
        return ''

    def digits(value: float) -> str:
        return f'{value:.2f}' if value >= 0.095 else f'{value:.2g}'

    text = f'{digits(found.median)}×'
    ends = (found.low, found.high) if higher_is_better else (1 / found.high, 1 / found.low)
    if ends[0] > 1:
        text = f'**{text}**'
    elif ends[1] < 1:
        text = f'*{text}*'
    if found.count > 1:
        text += f' ({digits(found.low)} … {digits(found.high)})'
    return text


def _value(found: Optional[questions.Number], unit: str, usual: str) -> str:
    if found is None:
        return ''
    text = number(found.found.median, unit)
    return text if found.contender == usual else f'{text} `{found.contender}`'


def _answer_row(answer: Answer, measured: Measured, prefix: str) -> str:
    question = answer.question
    higher = question.higher_is_better
    paper = answer.paper
    source = f'[{measured.source}]({prefix}/table.md)'
    return row([
        f'{question.text} {"↑" if higher else "↓"}',
        source + (BUSY_MARK if measured.may_be_disturbed else ''),
        _value(answer.rocksdb, answer.unit, 'stock'),
        _value(answer.blobdb, answer.unit, 'stock-blobdb'),
        _value(answer.strata, answer.unit, ''),
        _ratio(answer.to_rocksdb, higher), _ratio(answer.to_blobdb, higher),
        '' if paper is None else paper if isinstance(paper, str) else f'{paper:.2f}×'])


def _noise(measured: Dict[str, Measured]) -> str:
    """What the bench says about a program and itself."""
    checks = measured['aa'].summary.get('checks', []) if 'aa' in measured else []
    apart = [check['apart'] for check in checks if check['apart'] is not None]
    if not apart:
        return ('* The A/A experiment, in which RocksDB runs against itself, has not been run yet: '
                '`bench/run aa`.')
    broken = [check['title'] for check in checks if not check['ok']]
    text = ('* In the [A/A experiment](../bench/results/aa/table.md), in which RocksDB runs '
            'against itself,\n'
            f'  medians differed by {min(apart):.1%} to {max(apart):.1%}. A smaller difference '
            'says nothing.')
    if broken:
        text += f' Its bound was **not held** by: {", ".join(broken)}.'
    return text


def _busy(found: Summary) -> str:
    """Whether the machine may have been busy, and what is known of it."""
    runs = found['runs']
    parts = ['maybe (`--force`)' if found.get('disturbed_runs_allowed') else 'no']
    if runs['disturbed']:
        parts.append(f'{runs["disturbed"]} of {runs["count"]} runs disturbed')
    return ', '.join(parts)


def _foreign_cpu(found: Summary) -> str:
    share = found['runs']['largest_foreign_cpu']
    return '' if share is None else f'{share:.0%}' if share >= 0.005 or not share else 'below 1%'


def _experiments_table(published: Dict[str, Measured], machines: List[str],
                       prefixes: Dict[str, str]) -> List[str]:
    lines = ['## Experiments', '',
             'The tables have all contenders, all numbers and more plots. "Busy" says whether the '
             'bench was\ntold to measure although the machine was busy; "others" is the largest '
             'share of the CPUs that\nother programs and virtual machines took during a run.', '',
             row(['experiment', 'measured', 'pairs', 'machine', 'busy', 'others', 'remarks']),
             row(['---'] * 7)]
    for paper in PAPERS:
        for name, item in published.items():
            if item.experiment.paper != paper:
                continue
            remarks = [] if item.is_current else ['older declaration: to be measured again']
            if item.summary['scale'] != 1:
                remarks.append(f'scale {item.summary["scale"]:g}')
            if item.lacks:
                remarks.append('without ' + ', '.join(f'`{one}`' for one in item.lacks))
            if item.summary['failures']:
                remarks.append(f'{len(item.summary["failures"])} runs failed')
            figure = f' ({item.source})' if paper != 'none' else ''
            lines.append(row([
                f'[{item.experiment.title}]({prefixes[name]}/table.md){figure}',
                item.summary['started'][:10], str(item.summary['pairs']),
                str(machines.index(tables.environment_line(item.summary)) + 1),
                _busy(item.summary), _foreign_cpu(item.summary), '; '.join(remarks)]))
    return lines + ['']


def _not_measured(experiments: Dict[str, Experiment], published: Dict[str, Measured],
                  unanswered: Dict[str, List[str]], everything: Dict[str, Measured]) -> List[str]:
    absent = [name for name in experiments if name not in published]
    if not absent and not unanswered:
        return []
    lines = ['## Not measured yet', '',
             'Experiments without results of Strata, and questions without an answer.', '']
    for name in dict.fromkeys([*absent, *unanswered]):
        item = experiments[name]
        paper = SHORT_PAPERS[item.paper]
        text = f'* `{name}`: {item.title}' + (f' ({paper}, {item.figure})' if paper else '') + '.'
        if name in absent and name in everything:
            lacks = ', '.join(f'`{one}`' for one in everything[name].lacks)
            text += f' Lacks {lacks}.'
        if name in unanswered:
            text += ' ' + ' '.join(unanswered[name])
        lines.append(text)
    return lines + ['']


def page(experiments: Dict[str, Experiment], everything: Dict[str, Measured],
         groups: List[Group], contenders: Dict[str, Contender], prefixes: Dict[str, str],
         chart_name: str) -> Tuple[str, str]:
    """(the page, its plot)."""
    published = {name: item for name, item in everything.items() if item.is_published}
    parts = [_INTRODUCTION, f'![By what factor Strata is better or worse]({chart_name})', '',
             '## Answers', '']
    head = ['question', 'experiment', 'RocksDB', 'BlobDB', 'Strata', 'to RocksDB', 'to BlobDB',
            'paper']
    drawn: chart.Groups = []
    unanswered: Dict[str, List[str]] = {}
    shown: List[str] = []
    for group in groups:
        answers = []
        for question in group.questions:
            name = question.experiment.name
            answer = questions.answer(question, published[name].summary, contenders) \
                if name in published else None
            if answer is None:
                unanswered.setdefault(name, []).append(question.text)
            else:
                answers.append(answer)
                shown += [item.contender for item in (answer.rocksdb, answer.blobdb, answer.strata)
                          if item is not None]
        if answers:
            drawn.append((group.title, answers))
            parts += [f'### {group.title}', '', row(head), row(['---'] * len(head))]
            parts += [_answer_row(answer, published[answer.question.experiment.name],
                                  prefixes[answer.question.experiment.name])
                      for answer in answers]
            parts.append('')
    machines = list(dict.fromkeys(tables.environment_line(item.summary)
                                  for item in published.values()))
    parts += [_READING.rstrip(), _noise(published), '', '## Contenders', '']
    titles: Dict[str, str] = {}
    for item in published.values():
        for name, title in item.summary['titles'].items():
            titles.setdefault(name, title)
    parts += [f'* `{name}`: {titles[name]}' for name in sorted(set(shown))]
    parts += ['', '[contenders.toml](../bench/contenders.toml) and the experiments have their '
              'options.', '']
    parts += _experiments_table(published, machines, prefixes)
    parts += ['## Machines', '']
    parts += [f'{n}. {line}' for n, line in enumerate(machines, 1)] + ['']
    parts += _not_measured(experiments, published, unanswered, everything)
    return '\n'.join(parts).rstrip() + '\n', chart.draw(drawn)


def write(experiments: Dict[str, Experiment], folder: Path, target: Path,
          contenders: Dict[str, Contender], groups: List[Group]) -> List[str]:
    """Writes the page, its plot and the tables of all experiments.

    Returns the experiments that have no complete results.
    """
    everything: Dict[str, Measured] = {}
    prefixes: Dict[str, str] = {}
    for name, experiment in experiments.items():
        found = summary.load(experiment, folder / name)
        if found is None:
            continue
        stamp = runner.declaration_stamp(experiment, contenders)
        write_experiment(experiment, found, folder / name, stamp)
        everything[name] = Measured(experiment, found,
                                    questions.products(experiment, contenders),
                                    found.get('declaration') == stamp)
        prefixes[name] = os.path.relpath(folder / name, target.parent)
    plot = target.with_suffix('.svg')
    text, drawing = page(experiments, everything, groups, contenders, prefixes, plot.name)
    results.write_atomically(plot, drawing)
    results.write_atomically(target, text)
    return [name for name in experiments if name not in everything]
