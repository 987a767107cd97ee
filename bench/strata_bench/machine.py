# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""The machine: what it is, whether it is idle enough to measure on, disk space, page cache."""
import os
import platform
import resource
import shutil
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Tuple

from strata_bench import templates

# Their presence means that something is built, tested or measured at the same time.
FOREIGN_WORK = {'ninja', 'make', 'cc1', 'cc1plus', 'clang', 'clang++', 'as', 'ld', 'ld.bfd',
                'ld.gold', 'ld.lld', 'mold', 'lto1', 'rustc', 'ctest', 'db_bench', 'db_stress',
                'db_bench_worklo', 'fio'}
MIN_IDLE = 0.85          # of all CPUs, over the sample
MAX_LOAD_PER_CPU = 0.75  # 1-minute load average; looked at before the first run only
SAMPLE_SECONDS = 2.0
SHORT_SAMPLE_SECONDS = 0.5  # between the phases of an experiment, of which there are many
# The share of all CPUs that others, other virtual machines among them, may take while something is
# measured. Contenders that take turns (fio and recoveries do not) suffer from it alike, so it may
# be large.
# Kernel threads work for us, too, so it is not 0.
MAX_FOREIGN_CPU = 0.25


class Busy(Exception):
    """The machine does something else; the text says what."""


class Proc:
    """What of /proc is needed to tell an idle machine from a busy one."""

    def __init__(self, root: str = '/proc', sleep: Callable[[float], None] = time.sleep) -> None:
        self._root = Path(root)
        self._sleep = sleep

    def _read(self, *parts: str) -> str:
        try:
            return self._root.joinpath(*parts).read_text(errors='replace')
        except OSError:  # a process that has ended, or no Linux
            return ''

    def _pids(self) -> List[str]:
        try:
            return [name for name in os.listdir(self._root) if name.isdigit()]
        except OSError:
            return []

    def foreign_work(self) -> List[str]:
        """"name (pid)" of processes that disturb any measurement, this one's ancestors aside."""
        mine = self._ancestors()
        found = []
        for pid in self._pids():
            name = self._read(pid, 'comm').strip()
            state = self._read(pid, 'stat').rpartition(')')[2].split()
            if name in FOREIGN_WORK and int(pid) not in mine and state[:1] not in (['Z'], ['T']):
                found.append(f'{name} ({pid})')
        return sorted(found)

    def _ancestors(self) -> set:
        """bench/run may itself have been started by make."""
        pid = os.getpid()
        result = set()
        while pid > 1 and pid not in result:
            result.add(pid)
            fields = self._read(str(pid), 'stat').rpartition(')')[2].split()
            pid = int(fields[1]) if len(fields) > 1 else 0
        return result

    def _cpu(self) -> Optional[Tuple[int, int]]:
        """(idle, all) ticks since boot. Waiting for a disk is idle for a CPU, not for us."""
        for line in self._read('stat').splitlines():
            if line.startswith('cpu '):
                ticks = [int(tick) for tick in line.split()[1:9]]
                return ticks[3], sum(ticks)
        return None

    def cpu_seconds(self) -> Optional[Tuple[float, float]]:
        """(busy, all) seconds of all CPUs since boot. Busy is work of processes, here or, as
        "steal", in other virtual machines; interrupts belong to whoever waits for them."""
        for line in self._read('stat').splitlines():
            if line.startswith('cpu '):
                user, nice, system, idle, wait, irq, softirq, steal = (
                    [int(tick) for tick in line.split()[1:9]] + [0] * 8)[:8]
                busy = user + nice + system + steal
                hertz = os.sysconf('SC_CLK_TCK')
                return busy / hertz, (busy + idle + wait + irq + softirq) / hertz
        return None

    def _ticks(self) -> Dict[str, Tuple[str, int]]:
        result = {}
        for pid in self._pids():
            name, _, rest = self._read(pid, 'stat').rpartition(')')
            fields = rest.split()
            if len(fields) > 12:
                result[pid] = (name.partition('(')[2], int(fields[11]) + int(fields[12]))
        return result

    def idle(self, seconds: float = SAMPLE_SECONDS) -> Tuple[float, List[str]]:
        """The idle share of all CPUs over a sample, and the busiest processes."""
        before, cpu_before = self._ticks(), self._cpu()
        self._sleep(seconds)
        after, cpu_after = self._ticks(), self._cpu()
        if cpu_before is None or cpu_after is None or cpu_after[1] <= cpu_before[1]:
            return 1.0, []
        share = (cpu_after[0] - cpu_before[0]) / (cpu_after[1] - cpu_before[1])
        used = sorted(((ticks - before.get(pid, ('', ticks))[1], f'{name} ({pid})')
                       for pid, (name, ticks) in after.items() if int(pid) != os.getpid()),
                      reverse=True)
        return share, [name for ticks, name in used[:3] if ticks > 0]

    def load(self) -> float:
        fields = self._read('loadavg').split()
        return float(fields[0]) if fields else 0.0

    def check(self, cpus: int, with_load: bool, seconds: float = SAMPLE_SECONDS) -> None:
        """Throws Busy."""
        work = self.foreign_work()
        if work:
            raise Busy(f'a build or another measurement is running: {", ".join(work[:5])}')
        if with_load and self.load() > MAX_LOAD_PER_CPU * cpus:
            raise Busy(f'the load average is {self.load():.2f} on {cpus} CPUs')
        share, busiest = self.idle(seconds)
        if share < MIN_IDLE:
            names = f', most of all by {", ".join(busiest)}' if busiest else ''
            raise Busy(f'CPUs and disk are idle for only {share:.0%} of the time{names}')


def wait_until_idle(proc: Proc, cpus: int, patience: float,
                    sleep: Callable[[float], None] = time.sleep,
                    sample: float = SAMPLE_SECONDS) -> None:
    """A short disturbance is waited for. Throws Busy after `patience` seconds."""
    waited = 0.0
    while True:
        try:
            proc.check(cpus, with_load=False, seconds=sample)
            return
        except Busy:
            if waited >= patience:
                raise
        sleep(sample)
        waited += 2 * sample


def own_cpu_seconds() -> float:
    """Of this process and of its children that have ended."""
    return sum(usage.ru_utime + usage.ru_stime for usage in (
        resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)))


class CpuWatch:
    """How much of the CPUs others took while commands ran.

    Usage: `with watch: ...` around each command; more than once adds up. The command must have
    ended inside.
    """

    def __init__(self, proc: Proc, own: Callable[[], float] = own_cpu_seconds) -> None:
        self._proc = proc
        self._own = own
        self._foreign = 0.0
        self._all = 0.0

    def __enter__(self) -> 'CpuWatch':
        self._cpus, self._mine = self._proc.cpu_seconds(), self._own()
        return self

    def __exit__(self, *_: Any) -> None:
        after = self._proc.cpu_seconds()
        if self._cpus is None or after is None:
            return
        mine = self._own() - self._mine
        self._foreign += max(0.0, after[0] - self._cpus[0] - mine)
        self._all += after[1] - self._cpus[1]

    @property
    def share(self) -> Optional[float]:
        """Of all CPUs, while commands ran; None if nothing is known."""
        return self._foreign / self._all if self._all > 0 else None


class HaltPolling:
    """Lets idle virtual CPUs wait for work a while before they halt, as long as it is entered.

    A CPU that has halted is woken by the host, which takes as long as reading from a fast disk,
    and now more, now less. Only root may change it; where it is not there, nothing is done.
    """

    NANOS = 400_000

    def __init__(self, control: Path = Path(
            '/sys/module/haltpoll/parameters/guest_halt_poll_ns')) -> None:
        self._control = control
        self._before: Optional[str] = None

    def __enter__(self) -> 'HaltPolling':
        try:
            before = self._control.read_text().strip()
            if int(before) < self.NANOS:
                self._control.write_text(f'{self.NANOS}\n')
                self._before = before
        except (OSError, ValueError):
            pass
        return self

    def __exit__(self, *_: Any) -> None:
        if self._before is not None:
            self._control.write_text(f'{self._before}\n')
            self._before = None

    def nanos(self) -> Optional[int]:
        """As it is now; None if it is unknown."""
        try:
            return int(self._control.read_text())
        except (OSError, ValueError):
            return None


def drop_caches(folder: Path, control: Path = Path('/proc/sys/vm/drop_caches')) -> str:
    """Empties the page cache, or that of the files in a folder. Says which."""
    os.sync()
    try:
        control.write_text('3\n')
        return 'all'
    except OSError:
        pass
    if not hasattr(os, 'posix_fadvise'):
        return 'none'
    for path in templates.walk(folder):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)
    return 'files'


def file_system(folder: Path) -> str:
    """The kind of the file system that a folder, or the first there is above it, lies on."""
    while not folder.exists():
        folder = folder.parent
    return _mount_of(folder.resolve(), _text('/proc/mounts'))[1]


def free_bytes(folder: Path) -> int:
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free


def _first_match(text: str, key: str) -> str:
    """The value of the first "key : value" line."""
    for line in text.splitlines():
        name, _, value = line.partition(':')
        if name.strip() == key:
            return value.strip()
    return ''


def _text(path: str) -> str:
    try:
        return Path(path).read_text(errors='replace')
    except OSError:
        return ''


def _mount_of(folder: Path, mounts: str) -> Tuple[str, str]:
    """(device, file system) of the mount that holds a folder."""
    best = ('', '', '')
    for line in mounts.splitlines():
        fields = line.split()
        if len(fields) < 3:
            continue
        device, point, kind = fields[:3]
        inside = point == '/' or str(folder) == point or str(folder).startswith(point + '/')
        if inside and len(point) >= len(best[1]):
            best = (device, point, kind)
    return best[0], best[2]


def describe(folder: Path) -> Dict[str, Any]:
    """CPU, memory, kernel and the disk under a folder, for the reports."""
    while not folder.exists():
        folder = folder.parent
    cpuinfo, meminfo = _text('/proc/cpuinfo'), _text('/proc/meminfo')
    release = {key: value.strip('"') for key, _, value in
               (line.partition('=') for line in _text('/etc/os-release').splitlines())}
    device, file_system = _mount_of(folder.resolve(), _text('/proc/mounts'))
    memory = _first_match(meminfo, 'MemTotal').split()
    result: Dict[str, Any] = {
        'cpu': _first_match(cpuinfo, 'model name') or platform.processor() or platform.machine(),
        'cpus': os.cpu_count(),
        'memory_bytes': int(memory[0]) * 1024 if memory else None,
        'kernel': f'{platform.system()} {platform.release()}',
        'os': release.get('PRETTY_NAME', ''),
        'file_system': file_system,
        'disk': {'device': os.path.basename(device), 'bytes': shutil.disk_usage(folder).total},
    }
    polling = HaltPolling().nanos()
    if polling is not None:
        result['halt_poll_nanos'] = polling
    try:
        number = os.stat(folder).st_dev
        block = Path(f'/sys/dev/block/{os.major(number)}:{os.minor(number)}').resolve()
        if (block / 'partition').exists():
            block = block.parent
        for name in ('queue/rotational', 'queue/scheduler', 'device/model'):
            text = _text(str(block / name)).strip()
            if text:
                result['disk'][name.split('/')[1]] = text
    except OSError:
        pass
    return result
