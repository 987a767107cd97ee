# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Child processes: none outlives this one, and each can be ended at any time."""
import ctypes
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Callable, List, Optional

_PR_SET_PDEATHSIG = 1


class Interrupted(BaseException):
    """Ctrl-C, SIGTERM or SIGHUP. Not an Exception, so that no handler of those eats it."""


class CommandFailed(Exception):
    """A command failed; the text has the end of its output."""


def raise_on_signals() -> None:
    def handler(number: int, _frame: object) -> None:
        raise Interrupted(signal.Signals(number).name)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, handler)


try:
    _LIBC: Optional[ctypes.CDLL] = ctypes.CDLL(None)
except OSError:
    _LIBC = None


def _die_with_parent() -> None:
    if _LIBC is not None and hasattr(_LIBC, 'prctl'):
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def tail(path: Path, lines: int = 12) -> str:
    try:
        text = path.read_bytes()[-8192:].decode(errors='replace')
    except OSError:
        return ''
    return '\n'.join(text.strip().splitlines()[-lines:])


class Child:
    """A command in a session of its own, so that the terminal's Ctrl-C comes to us alone."""

    def __init__(self, command: List[str], log: Path) -> None:
        self.command = command
        self.log = log
        with open(log, 'wb') as output:
            try:
                self._process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                    start_new_session=True, preexec_fn=_die_with_parent)
            except OSError as error:
                raise CommandFailed(f'{command[0]}: {error}') from error
        self.started = time.monotonic()

    def running(self) -> bool:
        return self._process.poll() is None

    def ended(self, seconds: float) -> bool:
        """Waits so long for its end. Throws CommandFailed if it ended without success."""
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        if code != 0:
            how = f'signal {signal.Signals(-code).name}' if code < 0 else f'exit code {code}'
            raise CommandFailed(f'{Path(self.command[0]).name}: {how}\n{tail(self.log)}')
        return True

    def wait(self, timeout: float, tick: Optional[Callable[[], None]] = None) -> float:
        """Waits for success and returns the seconds it took. Throws CommandFailed."""
        try:
            while True:
                left = timeout - (time.monotonic() - self.started)
                if left <= 0:
                    self.kill()
                    raise CommandFailed(f'no end after {timeout:.0f} s, killed\n{tail(self.log)}')
                if self.ended(min(0.5, left)):
                    break
                if tick is not None:
                    tick()
        except Interrupted:
            self.kill()
            raise
        return time.monotonic() - self.started

    def signal(self, number: int) -> None:
        if self.running():
            os.kill(self._process.pid, number)

    def wait_until_stopped(self) -> None:
        """After SIGSTOP; or until its end."""
        if self._process.returncode is None:
            os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def kill(self) -> None:
        """SIGKILL to this one process: kill -9."""
        if self.running():
            os.kill(self._process.pid, signal.SIGKILL)
        self._process.wait()


def run(command: List[str], log: Path, timeout: float,
        tick: Optional[Callable[[], None]] = None) -> float:
    return Child(command, log).wait(timeout, tick)
