# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""The questions of docs/benchmarks.md, and the numbers that answer them.

bench/questions.toml has the questions; bench/README.md describes its format.
"""
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, List, Optional, Sequence

from strata_bench import metrics, stats
from strata_bench.contenders import Contender
from strata_bench.declarations import DeclarationError, Table, load_file
from strata_bench.experiments import Comparison, Experiment, Paper
from strata_bench.summary import Numbers, Summary

# All contenders that are Strata's extend this one.
PRODUCT = 'strata'


@dataclass
class Question:
    text: str
    label: str              # in the plot
    experiment: Experiment
    comparison: Comparison
    point: str
    higher_is_better: bool
    rocksdb: List[str]      # of these the best is shown
    blobdb: List[str]
    strata: Optional[List[str]]  # None: all that the experiment has


@dataclass
class Group:
    title: str
    questions: List[Question]


@dataclass
class Number:
    """What a contender reached."""
    contender: str
    found: stats.Summary


@dataclass
class Answer:
    question: Question
    unit: str
    rocksdb: Optional[Number]
    blobdb: Optional[Number]
    strata: Number
    to_rocksdb: Optional[stats.Summary]
    to_blobdb: Optional[stats.Summary]
    blobdb_to_rocksdb: Optional[stats.Summary]
    paper: Optional[Paper]


def products(experiment: Experiment, contenders: Dict[str, Contender]) -> List[str]:
    """The contenders of an experiment that are Strata's."""
    resolved = experiment.resolve(contenders)
    return [name for name in experiment.contenders if resolved[name].is_one_of([PRODUCT])]


def _question(table: Table, experiments: Dict[str, Experiment]) -> Question:
    experiment = experiments[table.choice('experiment', list(experiments))]
    title = table.get('compare', 'text')
    comparison = next((item for item in experiment.comparisons if item.title == title), None)
    if comparison is None:
        raise table.fail('compare', f'{experiment.name} has no comparison {title!r}')
    point = table.choice('point', [point.label for point in experiment.points],
                         *([] if experiment.sweep else ['']))
    names: Dict[str, Optional[List[str]]] = {'rocksdb': ['stock'], 'blobdb': ['stock-blobdb'],
                                             'strata': None}
    for key in names:
        if key not in table:
            continue
        names[key] = chosen = table.texts(key)
        unknown = [name for name in chosen if name not in experiment.contenders]
        if unknown or not chosen:
            raise table.fail(key, f'{experiment.name} does not measure {", ".join(unknown)!r}')
    result = Question(
        text=table.get('text', 'text'), label=table.get('label', 'text'), experiment=experiment,
        comparison=comparison, point=point,
        higher_is_better=table.choice('better', ['higher', 'lower']) == 'higher',
        rocksdb=names['rocksdb'] or [], blobdb=names['blobdb'] or [], strata=names['strata'])
    table.close()
    return result


def parse(path: Path, experiments: Dict[str, Experiment]) -> List[Group]:
    """Throws DeclarationError."""
    table = Table(load_file(path), str(path))
    groups = []
    for item in table.tables('group'):
        groups.append(Group(item.get('title', 'text'),
                            [_question(question, experiments)
                             for question in item.tables('question')]))
        item.close()
    table.close()
    labels = [question.label for group in groups for question in group.questions]
    for label in labels:
        if labels.count(label) > 1:
            raise DeclarationError(f'{path}: label: {label!r} is used twice')
    return groups


def _best(question: Question, numbers: Numbers, names: Sequence[str]) -> Optional[Number]:
    found = [Number(name, item) for name, item in
             ((name, numbers.summary(question.point, name)) for name in names)
             if item is not None]
    if not found:
        return None
    choose = max if question.higher_is_better else min
    return choose(found, key=lambda number: number.found.median)


def answer(question: Question, summary: Summary, contenders: Dict[str, Contender]
           ) -> Optional[Answer]:
    """None if Strata, or everything that it could be compared with, has no number."""
    numbers = Numbers(question.comparison, summary)
    strata = _best(question, numbers,
                   question.strata or products(question.experiment, contenders))
    rocksdb = _best(question, numbers, question.rocksdb)
    blobdb = _best(question, numbers, question.blobdb)
    if strata is None or (rocksdb is None and blobdb is None):
        return None

    def ratio(mine: Optional[Number], base: Optional[Number]) -> Optional[stats.Summary]:
        if mine is None or base is None:
            return None
        return numbers.ratio_to(question.point, mine.contender, base.contender)

    return Answer(question, metrics.unit(question.comparison.metric), rocksdb, blobdb, strata,
                  ratio(strata, rocksdb), ratio(strata, blobdb), ratio(blobdb, rocksdb),
                  _paper(question, strata.contender, contenders))


def _paper(question: Question, contender: str, contenders: Dict[str, Contender]
           ) -> Optional[Paper]:
    """The paper's number for the contender that is shown, else for another one of Strata's."""
    for name in [contender, *products(question.experiment, contenders)]:
        paper = question.comparison.paper_number(name, question.point)
        if paper is not None:
            return paper
    return None
