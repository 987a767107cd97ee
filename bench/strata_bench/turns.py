# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Commands that take turns on the machine: one runs for a slice of time, the others are stopped.

What a machine gives, and more so a disk that is shared with others, differs more between one minute
and the next than contenders do. From one slice to the next it is the same, so all of them get the
same good and bad times. The commands are told how long they were stopped (ActiveClock in
tools/workloads/) and leave it out of what they measure.

What a command has under way when it is stopped, a request to the disk for each of its threads and
what the kernel writes out, ends in the time of the next.
"""
import os
import signal
import struct
import time
from pathlib import Path
from typing import Callable, Dict, List, Optional

from strata_bench.process import Child, CommandFailed

SLICE_SECONDS = 0.25


class Turn:
    """A command that is let run and stopped again, and the file that tells it for how long."""

    def __init__(self, command: List[str], log: Path, stopped_file: Path) -> None:
        self._command = command
        self._log = log
        self._file = stopped_file
        self._child: Optional[Child] = None
        self._stopped_nanos = 0
        self._since = 0

    def go_on(self) -> None:
        """Starts the command, or lets it go on."""
        if self._child is None:
            self._tell()
            self._child = Child(self._command, self._log)
            return
        self._stopped_nanos += time.monotonic_ns() - self._since
        self._tell()
        self._child.signal(signal.SIGCONT)

    def stop(self) -> None:
        """Returns when it does nothing any more; it may have ended by itself."""
        assert self._child is not None
        self._child.signal(signal.SIGSTOP)
        self._child.wait_until_stopped()
        # Not before: a thread that still ran would have read a later time than the one it goes on
        # with, and its operation would take less than no time.
        self._since = time.monotonic_ns()

    def ended(self, seconds: float) -> bool:
        """Waits so long for its end. Throws CommandFailed."""
        assert self._child is not None
        return self._child.ended(seconds)

    def kill(self) -> None:
        if self._child is not None:
            self._child.kill()

    def _tell(self) -> None:
        # The same bytes each time: the command has mapped them.
        descriptor = os.open(self._file, os.O_WRONLY | os.O_CREAT, 0o644)
        try:
            os.pwrite(descriptor, struct.pack('=Q', self._stopped_nanos), 0)
        finally:
            os.close(descriptor)


def run(turns: Dict[str, Turn], timeout: float, tick: Optional[Callable[[], None]] = None,
        slice_seconds: float = SLICE_SECONDS) -> Dict[str, CommandFailed]:
    """Runs all of them to their ends, the first one first. Returns the errors of those that fail.

    `timeout` is for all together.
    """
    left = dict(turns)
    failed: Dict[str, CommandFailed] = {}
    deadline = time.monotonic() + timeout
    try:
        while left:
            for name, turn in list(left.items()):
                try:
                    turn.go_on()
                    ended = turn.ended(slice_seconds)
                    while not ended and len(left) == 1 and time.monotonic() < deadline:
                        if tick is not None:
                            tick()
                        ended = turn.ended(slice_seconds)
                    if not ended:
                        if time.monotonic() >= deadline:
                            raise CommandFailed(f'no end after {timeout:.0f} s, killed')
                        turn.stop()
                except CommandFailed as error:
                    turn.kill()
                    failed[name] = error
                    ended = True
                if ended:
                    del left[name]
                if tick is not None:
                    tick()
    finally:
        for turn in left.values():
            turn.kill()
    return failed
