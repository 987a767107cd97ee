# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Results on disk: bench/results/EXPERIMENT/.

While an experiment runs, partial.json grows run by run. Only a complete set replaces results.json,
so an experiment that was broken off does not cost the last good numbers. Git ignores both;
strata_bench.summary makes of them what it keeps.
"""
import json
from pathlib import Path
from typing import Any, Dict, Optional, Tuple

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
