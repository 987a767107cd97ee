# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Results on disk: bench/results/EXPERIMENT/.

While an experiment runs, partial.json grows run by run. Only a complete set replaces results.json,
so an experiment that was broken off does not cost the last good numbers.
"""
import json
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

from strata_bench import metrics, stats
from strata_bench.experiments import Comparison, Experiment

Document = Dict[str, Any]


def write_atomically(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + '.tmp')
    temporary.write_text(text)
    temporary.replace(path)


def dump(document: Document) -> str:
    """JSON with a line for each run, so that a changed result is a readable change of the file."""
    head = {key: value for key, value in document.items() if key != 'runs'}
    text = json.dumps(head, indent=1, sort_keys=True, ensure_ascii=False)
    runs = ',\n'.join('  ' + json.dumps(run, sort_keys=True, ensure_ascii=False)
                      for run in document['runs'])
    return f'{text[:-2]},\n "runs": [\n{runs}\n ]\n}}\n'


def load(path: Path) -> Optional[Document]:
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None


class Store:
    """The files of one experiment's results."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.partial = folder / 'partial.json'
        self.complete = folder / 'results.json'

    def save(self, document: Document) -> Path:
        path = self.complete if document['state'] == 'complete' else self.partial
        write_atomically(path, dump(document))
        if path == self.complete:
            for name in ('partial.json', 'partial.md'):
                (self.folder / name).unlink(missing_ok=True)
        return path

    def resumable(self, fingerprint: str) -> Tuple[Document, str]:
        """(the partial result with its good runs, why there is none)."""
        document = load(self.partial)
        if document is None:
            return {}, 'there is no partial result'
        if document.get('fingerprint') != fingerprint:
            return {}, ('the commands, the scale, the contenders, their programs or the devices '
                        'have changed since the partial result')
        document['runs'] = [run for run in document['runs'] if not run.get('error')]
        return document, ''


class Numbers:
    """A comparison's numbers, by point and contender."""

    def __init__(self, comparison: Comparison, document: Document) -> None:
        self._values: Dict[Tuple[str, str], Dict[int, Optional[float]]] = {}
        for run in document['runs']:
            number = metrics.value(run, comparison.metric, comparison.phases,
                                   comparison.benchmark)
            self._values.setdefault((run['point'], run['contender']), {})[run['pair']] = number
        self._against = comparison.against

    def summary(self, point: str, contender: str) -> Optional[stats.Summary]:
        return stats.summarise(list(self._values.get((point, contender), {}).values()))

    def ratio(self, point: str, contender: str) -> Optional[stats.Summary]:
        if self._against is None or contender == self._against:
            return None
        return stats.pair_ratios(self._values.get((point, contender), {}),
                                 self._values.get((point, self._against), {}))


def run_checks(experiment: Experiment, document: Document) -> List[Dict[str, Any]]:
    """The comparisons that must stay within a bound: how far the medians are apart.

    A bound is not held by what has no number: "apart" is None then.
    """
    checks = []
    for comparison in experiment.comparisons:
        if comparison.within is None:
            continue
        numbers = Numbers(comparison, document)
        others = [name for name in document['contenders'] if name != comparison.against]
        for point in document['points']:
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
