# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""What the disk gives at the moment: random reads of 4 KiB for a second, before each pair.

A pair that was measured on a slower disk than the others can be told by it.
"""
import mmap
import os
import random
import shutil
import threading
import time
from pathlib import Path
from typing import Any, Dict, List

from strata_bench import fio
from strata_bench.process import CommandFailed

FILE_BYTES = 256 << 20
BLOCK = 4096
THREADS = 4
SECONDS = 1


def _lay_out(file: Path, size: int) -> None:
    if file.exists() and file.stat().st_size == size:
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    with open(file, 'wb') as output:
        left = size
        while left > 0:
            left -= output.write(os.urandom(min(left, 1 << 20)))
        output.flush()
        os.fsync(output.fileno())


def _read(file: Path, size: int, seconds: float, number: int, counts: List[int],
          errors: List[str]) -> None:
    """One thread; reading leaves the interpreter's lock to the others."""
    rng = random.Random(number)
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_DIRECT)
    except OSError as error:
        errors.append(str(error))
        return
    try:
        with mmap.mmap(-1, BLOCK) as buffer:  # direct I/O wants aligned memory
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                os.preadv(descriptor, [buffer], rng.randrange(size // BLOCK) * BLOCK)
                counts[number] += 1
    except OSError as error:
        errors.append(str(error))
    finally:
        os.close(descriptor)


def by_hand(file: Path, size: int = FILE_BYTES, seconds: float = SECONDS) -> Dict[str, Any]:
    """Without fio."""
    _lay_out(file, size)
    counts, errors = [0] * THREADS, []
    threads = [threading.Thread(target=_read, args=(file, size, seconds, n, counts, errors))
               for n in range(THREADS)]
    started = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        return {'tool': 'pread', 'error': errors[0]}
    return {'tool': 'pread', 'reads_per_sec': sum(counts) / (time.monotonic() - started)}


def measure(folder: Path) -> Dict[str, Any]:
    """Never throws for what the disk or fio does."""
    file = folder / 'probe.dat'
    try:
        program = shutil.which('fio')
        if program is not None:
            _lay_out(file, FILE_BYTES)
            report = fio.measure(program, file, FILE_BYTES, BLOCK, THREADS, SECONDS,
                                 folder / 'probe.log')
            return {'tool': 'fio', 'reads_per_sec': report['ops_per_sec']}
        return by_hand(file)
    except (CommandFailed, OSError) as error:
        return {'tool': '', 'error': str(error)}
