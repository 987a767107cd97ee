# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Recovery: kill -9 in the midst of a workload, then how long it takes to be back.

The reopening command does one operation. Its report says how long opening took ("open_seconds");
with the latency of the one read that is the time to the first answer ("first_get_seconds"). The
time of the whole process less that of the same command on the same database after a clean close,
"recovery_seconds", needs no help from the program; where recovery is short it is noise around 0.
"""
import random
import time
from pathlib import Path
from typing import Any, Callable, Dict, List

from strata_bench import process, templates
from strata_bench.commands import read_reports
from strata_bench.experiments import Recovery
from strata_bench.process import Child, CommandFailed

Tick = Callable[[], None]

# Opening a database may take long, but a workload that does not write is a mistake.
START_TIMEOUT = 300.0


def crash(command: List[str], log: Path, settings: Recovery, rng: random.Random, folder: Path,
          tick: Tick, sleep: Callable[[float], None] = time.sleep) -> float:
    """Runs a workload and kills it after a random time; returns that time.

    The time counts from when there is a WAL with something in it that was not there before: the
    database in `folder` is open and operations are under way. Throws CommandFailed if the workload
    ends before it is killed.
    """
    before = set(_wals(folder))
    child = Child(command, log)
    try:
        while child.running() and not any(
                path not in before and size > 0 for path, size in _wals(folder).items()):
            if time.monotonic() - child.started > START_TIMEOUT:
                raise CommandFailed(f'no write to a WAL within {START_TIMEOUT:.0f} s\n'
                                    + process.tail(log))
            sleep(0.02)
            tick()
        wait = rng.uniform(settings.min_seconds, settings.max_seconds)
        end = time.monotonic() + wait
        while child.running() and time.monotonic() < end:
            sleep(0.02)
            tick()
        if not child.running():
            raise CommandFailed('the workload ended before it was killed; give it more "ops"\n'
                                + process.tail(log))
        return wait
    finally:
        child.kill()


def _wals(folder: Path) -> Dict[Path, int]:
    sizes = {}
    for path in templates.walk(folder):
        if path.suffix == '.log' and path.stem.isdigit():
            try:
                sizes[path] = path.stat().st_size
            except OSError:  # deleted meanwhile
                pass
    return sizes


def wal_bytes(folder: Path) -> int:
    return sum(_wals(folder).values())


def reopen(command: List[str], log: Path, report: Path, workload: str, timeout: float, tick: Tick
           ) -> Dict[str, Any]:
    """The report of the reopening command, with the seconds of its whole process."""
    report.unlink(missing_ok=True)
    seconds = process.run(command, log, timeout, tick)
    result = read_reports(report, None, workload)[-1]
    result['reopen_seconds'] = seconds
    read = result.get('latency_us', {}).get('read', {}).get('mean')
    opened = result.get('open_seconds')
    if 'first_get_seconds' not in result and read is not None and opened is not None:
        result['first_get_seconds'] = opened + read / 1e6
    return result
