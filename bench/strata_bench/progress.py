# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""A progress bar with the time left, told from the runs that are finished."""
import sys
import time
from typing import Callable, Dict, List, Optional, TextIO, Tuple

Key = Tuple[int, str, str]


def estimate(done: Dict[Key, float], left: List[Key]) -> Optional[float]:
    """Seconds for the runs that are left: each takes as long as the most similar finished ones."""
    if not done:
        return None

    def mean(similar: Callable[[Key], bool]) -> Optional[float]:
        times = [seconds for key, seconds in done.items() if similar(key)]
        return sum(times) / len(times) if times else None

    total = 0.0
    for _, point, contender in left:
        guesses = (mean(lambda key: key[1:] == (point, contender)),
                   mean(lambda key: key[1] == point),
                   mean(lambda key: key[2] == contender),
                   mean(lambda key: True))
        total += next(guess for guess in guesses if guess is not None)
    return total


def duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f'{hours}:{minutes:02}:{rest:02}' if hours else f'{minutes}:{rest:02}'


class Progress:
    """A line on a terminal that is rewritten; elsewhere one line per run."""

    def __init__(self, stream: Optional[TextIO] = None) -> None:
        self._stream = stream or sys.stderr
        self._live = self._stream.isatty()
        self._order: List[Key] = []
        self._done: Dict[Key, float] = {}
        self._finished = 0
        self._current: List[Key] = []  # of one pair and one point
        self._what = ''
        self._started = 0.0
        self._width = 0

    def begin(self, order: List[Key], finished: Dict[Key, float]) -> None:
        self._order = order
        self._done = dict(finished)
        self._finished = len(finished)

    def start(self, keys: List[Key]) -> None:
        self._current = keys
        self._started = time.monotonic()
        self.phase('')
        if not self._live:
            self._stream.write(self.line() + '\n')
            self._stream.flush()

    def phase(self, what: str) -> None:
        self._what = what
        self.tick()

    def end(self, key: Key, seconds: Optional[float]) -> None:
        """`seconds` is None for a run that failed: it tells nothing about the others."""
        self._finished += 1
        if seconds is not None:
            self._done[key] = seconds
        self._current = []

    def line(self) -> str:
        total = len(self._order)
        left = self._order[self._finished:]
        seconds = estimate(self._done, left)
        text = 'time left unknown yet'
        if seconds is not None:
            if self._current:
                seconds = max(0.0, seconds - (time.monotonic() - self._started))
            text = f'{duration(seconds)} left'
        filled = 24 * self._finished // total if total else 24
        current = ''
        if self._current:
            pair, point, _ = self._current[0]
            names = ', '.join(contender for _, _, contender in self._current)
            current = f'  pair {pair + 1}, {names}' + (f', {point}' if point else '') + \
                (f': {self._what}' if self._what else '')
        return f'[{"=" * filled}{" " * (24 - filled)}] {self._finished}/{total}  {text}{current}'

    def tick(self) -> None:
        if self._live:
            line = self.line()[:118]
            self._stream.write('\r' + line.ljust(self._width))
            self._stream.flush()
            self._width = len(line)

    def message(self, text: str) -> None:
        if self._live:
            self._stream.write('\r' + ' ' * self._width + '\r')
            self._width = 0
        self._stream.write(text + '\n')
        self._stream.flush()
