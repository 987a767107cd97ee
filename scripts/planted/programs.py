# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Runs test programs until the first case that fails, and remembers what fails without an edit."""
import dataclasses
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import threading
import time

from .patch import Program

# Seconds between two looks at a program that runs.
PAUSE = 0.1
# A program that is about to fill the disk or the memory is stopped, as one that hangs is.
MIN_FREE_DISK = 2 << 30
# What an edited library may take: this many times what the unedited one took, and this many
# seconds more. Less would call a busy machine a hang.
SLOWER, MORE_SECONDS = 4, 60
# Programs that search for a given time instead of running cases, with their arguments.
SEARCHES = {'metamorphic_test': '--seconds={seconds}'}


class Stopped(Exception):
    """The whole run was interrupted."""


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a program did. `how` is passed, failed, aborted, hung or grew; `case` is the first test
    case that failed, or in which it stopped."""
    how: str
    case: str
    seconds: float
    failed: tuple = ()  # all failing cases, if it ran to its end
    ran: int = 0        # cases that were begun


def failing_cases(text):
    """The cases that a log of GoogleTest says have failed, in order."""
    cases = re.findall(r'^\[  FAILED  \] ([^\s,]+)', text, re.M)
    return list(dict.fromkeys(c for c in cases if '.' in c))


def judge(text, code, stopped, seconds):
    """The Outcome of a program from its log, its exit code, and why it was stopped, if it was."""
    begun = re.findall(r'^\[ RUN      \] (\S+)', text, re.M)
    failed = failing_cases(text)
    last = begun[-1] if begun else '(start)'
    ended = text.count('\n[       OK ] ') + text.count('\n[  FAILED  ] ')
    if stopped in ('hung', 'grew'):
        how, case = stopped, failed[0] if failed else last
    elif not stopped and code and (code < 0 or ended < len(begun)):
        how, case = 'aborted', last
    elif failed:
        how, case = 'failed', failed[0]
    elif code:
        how, case = 'failed', '(exit)'
    else:
        how, case = 'passed', ''
    return Outcome(how, case, seconds, tuple(failed), len(begun))


def used_memory(pid):
    """The resident bytes of a process, 0 if it has gone."""
    try:
        with open(f'/proc/{pid}/statm', encoding='ascii') as f:
            return int(f.read().split()[1]) * resource.getpagesize()
    except (OSError, IndexError, ValueError):
        return 0


class Runner:
    """Starts programs of a build folder. Once `stopping` is set, running programs are killed and
    their run() raises Stopped. Thread-safe."""

    def __init__(self, root, folder, work, jobs=1):
        self.root, self.folder, self.work = root, os.path.abspath(folder), work
        memory = os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES')
        self.max_memory = memory // (jobs + 1)
        self.numbers = iter(range(1, 1 << 62))
        self.lock = threading.Lock()
        self.stopping = threading.Event()

    def path(self, name):
        return os.path.join(self.folder, name)

    def exists(self, name):
        return os.access(self.path(name), os.X_OK)

    def run(self, program, seconds, env, log, *, without=(), to_the_end=False, words=()):
        """Runs a program, without the cases `without`, for at most `seconds`. It is stopped as
        soon as a case has failed, unless it is to run to its end."""
        with self.lock:
            tmp = os.path.join(self.work, 'tmp', str(next(self.numbers)))
        os.makedirs(tmp)
        pattern = program.filter or '*'
        if without:
            pattern += (':' if '-' in pattern else '-') + ':'.join(without)
        full = {k: v for k, v in os.environ.items() if not k.startswith(('GTEST_', 'GIT_'))}
        full.update(TEST_TMPDIR=tmp, TMPDIR=tmp, GTEST_FILTER=pattern,
                    STRATA_TESTDATA=os.path.join(self.root, 'testdata'), **env)
        began = time.monotonic()
        os.makedirs(os.path.dirname(log), exist_ok=True)
        with open(log, 'wb') as out:
            child = subprocess.Popen([self.path(program.name), *words], stdin=subprocess.DEVNULL,
                                     stdout=out, stderr=subprocess.STDOUT, cwd=tmp, env=full,
                                     start_new_session=True)
        try:
            stopped = self.watch(child, log, began + seconds, tmp, to_the_end)
        finally:
            try:
                os.killpg(child.pid, signal.SIGKILL)  # also what the program started
            except ProcessLookupError:
                pass
            code = child.wait()
            took = time.monotonic() - began
            shutil.rmtree(tmp, ignore_errors=True)
        with open(log, encoding='utf-8', errors='replace') as f:
            return judge(f.read(), code, stopped, took)

    def watch(self, child, log, deadline, tmp, to_the_end):
        """Waits for the end of a program; returns why it is to be stopped, or ''."""
        with open(log, 'rb') as f:
            tail = b''
            while True:
                ended = child.poll() is not None
                tail = tail[-200:] + f.read()
                if not to_the_end and re.search(rb'^\[  FAILED  \] \S+\.', tail, re.M):
                    return 'failed'
                if ended:
                    return ''
                if self.stopping.is_set():
                    raise Stopped
                if time.monotonic() > deadline:
                    return 'hung'
                if used_memory(child.pid) > self.max_memory or \
                        shutil.disk_usage(tmp).free < MIN_FREE_DISK:
                    return 'grew'
                time.sleep(PAUSE)


class Baselines:
    """What programs do with the unedited library. A result is kept in a file and holds until the
    program or the library is built again. Thread-safe: each program runs once."""

    def __init__(self, runner, library, path):
        self.runner, self.library, self.path = runner, library, path
        self.lock, self.locks = threading.Lock(), {}
        self.known = {}
        if os.path.exists(path):
            with open(path, encoding='utf-8') as f:
                for line in f:
                    row = json.loads(line)
                    self.known[row['program']] = row

    def stamp(self, program):
        return [os.stat(p).st_mtime_ns
                for p in (self.runner.path(program.name), self.runner.path(self.library))]

    def get(self, program, seconds):
        """{how, case, seconds, failed, ran} of a program that may take `seconds`."""
        with self.lock:
            lock = self.locks.setdefault(str(program), threading.Lock())
        with lock:
            row, stamp = self.known.get(str(program)), self.stamp(program)
            # A program that took too long may be given more time.
            if row and row['stamp'] == stamp and (row['how'] != 'hung' or
                                                  row['seconds'] >= seconds):
                return row
            log = os.path.join(self.runner.work, 'logs', f'unedited-{program.name}.log')
            outcome = self.runner.run(program, seconds, {}, log, to_the_end=True,
                                      words=search_words(program, seconds))
            row = {'program': str(program), 'stamp': stamp, 'how': outcome.how,
                   'case': outcome.case, 'seconds': round(outcome.seconds, 1),
                   'failed': list(outcome.failed), 'ran': outcome.ran}
            with self.lock:
                self.known[str(program)] = row
                with open(self.path, 'a', encoding='utf-8') as f:
                    f.write(json.dumps(row) + '\n')
            return row


def search_words(program, seconds):
    """The arguments of a program that searches for a given time; it ends with time to spare."""
    words = SEARCHES.get(program.name)
    return words.format(seconds=max(int(seconds * 0.8), 1)).split() if words else []


def try_program(runner, baselines, program, seconds, env, log):
    """(Outcome, '') of a program with an edited library, or (None, why it proves nothing)."""
    if not runner.exists(program.name):
        return None, f'{program.name} is not built'
    clean = baselines.get(program, seconds)
    if clean['how'] == 'hung':
        return None, f'{program} takes more than {seconds} s without the bug'
    if clean['how'] not in ('passed', 'failed') or clean['case'] == '(exit)':
        return None, f'{program} fails without the bug, too'
    if program.filter and not clean['ran']:
        return None, f'no case matches {program}'
    limit = clean['seconds'] * SLOWER + MORE_SECONDS
    return runner.run(program, limit, env, log, without=clean['failed'],
                      words=search_words(program, seconds)), ''


def programs_of_folder(sources, path):
    """The test programs of ours whose sources lie in the folder of the source `path`."""
    folder = os.path.dirname(path)
    return [Program(os.path.basename(s)[:-len('.cc')]) for s in sources
            if os.path.dirname(s) == folder]
