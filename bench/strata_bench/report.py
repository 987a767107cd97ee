# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""docs/benchmarks.md: all results in one document."""
import os
from pathlib import Path
from typing import Dict, List

from strata_bench import results, runner, tables
from strata_bench.contenders import Contender
from strata_bench.experiments import PAPERS, Experiment, MIN_DATASET_PER_CACHE
from strata_bench.plots import file_name
from strata_bench.results import Document

_INTRODUCTION = f'''# Benchmarks

This file is written by `bench/run --report` from the results in `bench/results/`; edit those who
write it, not it. [bench/README.md](../bench/README.md) says how to repeat each experiment.

## How it is measured

* Each experiment follows one of the papers that Strata's designs come from, at a fraction of its
  size. The paper's own number stands beside ours. It was measured on another machine, with other
  data sizes, and often against an older RocksDB: its direction and its rough size can be compared,
  its digits cannot.
* The contenders of a pair are measured at the same time, but only one of them runs: the others are
  stopped, and they change over four times a second. So a disk or a host that has good and bad
  minutes has them for all alike. The time in which a contender is stopped counts for nothing. In the
  next pair the order is the other way round. A ratio is taken within each pair; its median is shown,
  with the smallest and the largest. A number alone is the median of all runs, with the same.
* Both sides are built alike: optimised, and for the CPU that is named beside the machine, or for any
  (`PORTABLE=1`, this repository's default) where none is. RocksDB's own default is the machine's.
* Reads, flushes and compactions use direct I/O. Values are random bytes and compression is off. The
  WAL is on and written out as it grows. The dataset is at least {MIN_DATASET_PER_CACHE} times all
  caches.
* Databases that an experiment starts from are loaded before its first pair and copied for each run.
  The page cache is emptied before each phase. Nothing is measured while something is built; a run
  during which others took a large part of the CPUs is repeated once.
* Both sides of a pair draw from the same random numbers. Where a phase has a number of operations,
  they do the same work; where it has a number of seconds, the faster one does more.
* Throughput and latency are those of the workload. Bytes written, write amplification and final
  sizes include what flushes and compactions still had to do when it ended.
'''


def _noise(documents: Dict[str, Document]) -> List[str]:
    """What the harness says about a program and itself."""
    lines = ['## Noise', '']
    checks = documents.get('aa', {}).get('checks', [])
    if not checks:
        return lines + ['The A/A experiment, in which a program runs against itself, has not '
                        'been run yet: `bench/run aa`.', '']
    lines += ['The same program on both sides, from the same database in each pair. A difference '
              'between contenders that is smaller than these says nothing. Where contenders load '
              'databases of their own, the shapes of their LSM-trees add to it.', '',
              '| workload | medians apart | bound | |', '| --- | --- | --- | --- |']
    for check in checks:
        apart = 'no number' if check['apart'] is None else f'{check["apart"]:.1%}'
        lines.append(f'| {check["title"]}{", " + check["point"] if check["point"] else ""} | '
                     f'{apart} | {check["within"]:.0%} | '
                     f'{"held" if check["ok"] else "**not held**"} |')
    return lines + ['']


def _machines(documents: Dict[str, Document]) -> List[str]:
    by_machine: Dict[str, List[str]] = {}
    for name, document in documents.items():
        by_machine.setdefault(tables.environment_line(document), []).append(name)
    lines = ['## Machine', '']
    for line, names in by_machine.items():
        lines.append(f'* {line}' + (f' ({", ".join(names)})' if len(by_machine) > 1 else ''))
    return lines + ['']


def write(experiments: Dict[str, Experiment], folder: Path, target: Path,
          contenders: Dict[str, Contender]) -> List[str]:
    """Writes the document and returns the experiments that have no complete results."""
    documents: Dict[str, Document] = {}
    missing = []
    for name in experiments:
        document = results.load(folder / name / 'results.json')
        if document is None:
            missing.append(name)
        else:
            documents[name] = document
    parts = [_INTRODUCTION] + _machines(documents) + _noise(documents)
    for paper, title in PAPERS.items():
        names = [name for name in documents if experiments[name].paper == paper]
        if not names:
            continue
        parts += [f'# {title}' if title else '# The bench itself', '']
        for name in names:
            prefix = os.path.relpath(folder / name, target.parent) + '/'
            plots = [file_name(plot) for plot in experiments[name].plots
                     if (folder / name / file_name(plot)).exists()]
            stamp = runner.declaration_stamp(experiments[name], contenders)
            parts += [tables.experiment(experiments[name], documents[name], plots, prefix, stamp),
                      '',
                      f'`bench/run {name}`, {documents[name]["started"]}.', '']
    results.write_atomically(target, '\n'.join(parts).rstrip() + '\n')
    return missing
