# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""What several tests need: a small experiment, its contenders, a machine that is idle."""
import tempfile
import unittest
from pathlib import Path
from typing import Any, Dict, Optional

from strata_bench import contenders, experiments

FAKE = Path(__file__).resolve().with_name('fake_db_bench.py')

CONTENDERS = '''
[base]
title = "Base"
program = "fake_db_bench.py"
[base.flags]
marker = "base"

[fast]
title = "Fast"
extends = "base"
[fast.flags]
marker = "fast"
speed = 2

[future]
title = "Future"
extends = "base"
[future.flags]
enable_everything = true
'''

EXPERIMENT = '''
title = "Reads"
paper = "kdsep"
figure = "Fig. 0"
summary = "Reads records."
contenders = ["base", "fast"]

[dataset]
records = 32_000
cache_size = "1MiB"

[sweep]
parameter = "skew"
flag = "ycsb_zipfian_const"
values = [0.8, 1.2]

[[phase]]
name = "read"
benchmarks = "ycsbc,waitforcompaction"
ops = 4000
threads = 2

[[compare]]
title = "Throughput"
metric = "ops_per_sec"
phase = "read"
against = "base"
paper = { fast = { "0.8" = 1.5 }, future = 3 }

[[plot]]
kind = "lines"
metric = "ops_per_sec"
phase = "read"
title = "Throughput by skew"
'''

MINIMAL = '''
title = "T"
paper = "none"
summary = "S"
contenders = ["base"]
[dataset]
records = 16000
cache_size = "1MiB"
[[phase]]
name = "read"
benchmarks = "ycsbc"
ops = 10
[[compare]]
title = "C"
metric = "ops_per_sec"
'''


def report(**fields: Any) -> Dict[str, Any]:
    return dict({'benchmark': 'ycsbc', 'workload': True}, **fields)


def document() -> Dict[str, Any]:
    """Results of EXPERIMENT: three pairs at two points, in which "fast" is twice as fast."""
    runs = []
    for pair in range(3):
        for point, base in (('0.8', 100.0), ('1.2', 1000.0)):
            for contender, factor in (('base', 1), ('fast', 2)):
                run: Dict[str, Any] = {
                    'pair': pair, 'point': point, 'contender': contender, 'error': None,
                    'commands': {'read': f'db_bench {contender}'},
                    'phases': {'read': [report(ops_per_sec=base * factor + pair)]}}
                runs.append(run)
    return {'state': 'complete', 'points': ['0.8', '1.2'], 'contenders': ['base', 'fast'],
            'titles': {'base': 'Base', 'fast': 'Fast'}, 'runs': runs, 'pairs': 3, 'scale': 1.0,
            'skipped': {'future': 'not built'}, 'started': 'today', 'machine': {'cpu': 'C'},
            'dataset': {'0.8': {'records': 10, 'key_size': 24, 'value_size': 1000,
                                'bytes': 10240, 'cache_size': 0}}}


class FolderTest(unittest.TestCase):
    """With a temporary folder."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name).resolve()

    def experiment(self, text: str = EXPERIMENT, name: str = 'reads') -> experiments.Experiment:
        path = self.folder / f'{name}.toml'
        path.write_text(text)
        return experiments.parse(path)

    def contenders(self, text: Optional[str] = None) -> Dict[str, contenders.Contender]:
        path = self.folder / 'contenders.toml'
        path.write_text(CONTENDERS if text is None else text)
        return contenders.parse(path, FAKE.parent)


class FakeProc:
    """A /proc in a folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.idle_ticks, self.busy_ticks = 1000, 1000
        root.mkdir()
        (root / 'loadavg').write_text('0.10 0.20 0.30 1/100 4242\n')
        self.write_cpu()

    def write_cpu(self) -> None:
        (self.root / 'stat').write_text(
            f'cpu  {self.busy_ticks} 0 0 {self.idle_ticks} 0 0 0 0 0 0\ncpu0 1 2 3 4\n')

    def process(self, pid: int, name: str, ticks: int = 0, state: str = 'S', parent: int = 1
                ) -> None:
        folder = self.root / str(pid)
        folder.mkdir(exist_ok=True)
        (folder / 'comm').write_text(name + '\n')
        (folder / 'stat').write_text(
            f'{pid} ({name}) {state} {parent} 1 1 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 1 0 0\n')
