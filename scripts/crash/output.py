# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""What the output of a round says: how often a process was killed, how many operations there were,
and what went wrong."""
import dataclasses
import re

_RUN = re.compile(r'^Running db_stress with pid=\d+: ', re.M)
_KILLED = re.compile(r'^(?:TERMINATED|KILLED) \d+|ended before kill: exitcode=-15$', re.M)
_FINISHED = re.compile(r'\.\.\. finished (\d+) ops')
_TOTAL = re.compile(r'Wrote .* of (\d+) ops\)')
_FINAL = 'Running final time for verification'
_TOO_LONG = 'Killing the run for running too long'
_NO_SPACE = '=== Out-of-space diagnostics ==='
# One line for each slice of the overlap stress test.
_SLICE = re.compile(r'(\d+) writes, (\d+) point reads, (\d+) views, ')
_SLICE_FINDINGS = re.compile(r': ([1-9]\d*) findings')
# Lines of stderr that say more than the first one.
_TELLING = re.compile(
    r'Assertion|[Vv]erification|Corruption|Sanitizer|leaked|Received signal|[Ee]rror')


@dataclasses.dataclass
class Outcome:
    kills: int
    operations: int  # at least: what a killed process had not written yet is not among them
    problem: str = ''  # empty if nothing is wrong
    no_space: bool = False


def _step_before(count):
    """db_stress reports the progress of a thread at growing distances: the report before this
    one was so many operations ago."""
    for limit, step in ((1000, 100), (5000, 500), (10000, 1000), (50000, 5000), (100000, 10000),
                        (500000, 50000)):
        if count <= limit:
            return step
    return 100000


def operations_of_run(text):
    """The operations of one run of db_stress: exactly if it came to its end, else as far as its
    threads had reported progress."""
    totals = _TOTAL.findall(text)
    if totals:
        return sum(int(total) for total in totals)
    return sum(_step_before(int(count)) for count in _FINISHED.findall(text))


def _complaint(text, code):
    """The line of the output that says best what went wrong."""
    errors = text.rpartition('stderr:\n')[2] if 'stderr:\n' in text else ''
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    if not lines:
        lines = [line.strip() for line in text.splitlines()
                 if re.search(r'FAILED|ERROR|Error|rror: ', line)][-1:]
    telling = [line for line in lines if _TELLING.search(line)]
    if telling or lines:
        return (telling or lines)[0][:300]
    return f'exit code {code}'


def of_crashtest(text, code):
    """The outcome of db_crashtest.py. code: its exit code, None if it had to be killed."""
    runs = _RUN.split(text)[1:]
    outcome = Outcome(kills=sum(bool(_KILLED.search(run)) for run in runs),
                      operations=sum(operations_of_run(run) for run in runs))
    if _NO_SPACE in text:
        outcome.no_space = True
        outcome.problem = 'no space on the device'
    elif code is None:
        outcome.problem = 'db_crashtest.py did not end'
    elif code != 0:
        outcome.problem = _complaint(text, code)
    elif not runs:
        outcome.problem = 'there was no run of db_stress'
    # db_crashtest.py takes these for a success.
    elif _TOO_LONG in text:
        outcome.problem = 'a run of db_stress did not end'
    elif _FINAL in text and _KILLED.search(text.rpartition(_FINAL)[2]):
        outcome.problem = 'the last verification did not end'
    return outcome


def of_overlap(text, code):
    """The outcome of overlap_stress_test. code: its exit code, None if it had to be killed."""
    slices = _SLICE.findall(text)
    outcome = Outcome(kills=0, operations=sum(int(n) for slice_ in slices for n in slice_))
    if code is None:
        outcome.problem = 'overlap_stress_test did not end'
    elif code != 0:
        bad = [line for line in text.splitlines() if _SLICE_FINDINGS.search(line)]
        outcome.problem = bad[0][:300] if bad else _complaint('stderr:\n' + text, code)
    elif not slices:
        outcome.problem = 'overlap_stress_test did nothing'
    return outcome
