# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Telling an idle machine from a busy one, page cache, disk, fio's output."""
import json
import os
import unittest
from pathlib import Path
from unittest import mock

from strata_bench import fio, machine, probe
from strata_bench.process import CommandFailed
from tests import support


class BusyTest(support.FolderTest):
    def setUp(self) -> None:
        super().setUp()
        self.fake = support.FakeProc(self.folder / 'proc')
        self.fake.process(1, 'init')
        self.busy_share = 0.0

    def proc(self) -> machine.Proc:
        def sleep(_seconds: float) -> None:
            self.fake.busy_ticks += round(800 * self.busy_share)
            self.fake.idle_ticks += round(800 * (1 - self.busy_share))
            self.fake.write_cpu()
            if self.busy_share:
                self.fake.process(77, 'python3', ticks=500)
        return machine.Proc(str(self.fake.root), sleep)

    def test_idle(self) -> None:
        self.fake.process(50, 'bash')
        self.proc().check(4, with_load=True)

    def test_build(self) -> None:
        self.fake.process(50, 'cc1plus')
        self.fake.process(51, 'ninja')
        with self.assertRaisesRegex(machine.Busy, r'cc1plus \(50\), ninja \(51\)'):
            self.proc().check(4, with_load=False)

    def test_another_measurement(self) -> None:
        self.fake.process(50, 'db_bench_workloads'[:15])
        with self.assertRaisesRegex(machine.Busy, 'db_bench'):
            self.proc().check(4, with_load=False)

    def test_zombies_and_ancestors_do_not_count(self) -> None:
        self.fake.process(50, 'ninja', state='Z')
        self.fake.process(60, 'make')
        self.fake.process(os.getpid(), 'python3', parent=60)
        self.proc().check(4, with_load=False)

    def test_cpu(self) -> None:
        self.fake.process(77, 'python3', ticks=0)
        self.busy_share = 0.10
        self.proc().check(4, with_load=False)
        self.busy_share = 0.25
        with self.assertRaisesRegex(machine.Busy,
                                    r'75% of the time, most of all by python3 \(77\)'):
            self.fake.process(77, 'python3', ticks=0)
            self.proc().check(4, with_load=False)

    def test_waiting_for_the_disk_is_not_idle(self) -> None:
        def sleep(_seconds: float) -> None:
            (self.fake.root / 'stat').write_text('cpu  1000 0 0 1400 400 0 0 0 0 0\n')
        proc = machine.Proc(str(self.fake.root), sleep)
        with self.assertRaisesRegex(machine.Busy, '50%'):
            proc.check(4, with_load=False)

    def test_load(self) -> None:
        (self.fake.root / 'loadavg').write_text('3.50 0.20 0.30 1/100 4242\n')
        self.proc().check(4, with_load=False)
        with self.assertRaisesRegex(machine.Busy, '3.50 on 4 CPUs'):
            self.proc().check(4, with_load=True)
        self.proc().check(8, with_load=True)

    def test_patience(self) -> None:
        waits = []

        def sleep(seconds: float) -> None:
            waits.append(seconds)
            if len(waits) == 3:
                (self.fake.root / '50' / 'comm').write_text('bash\n')

        self.fake.process(50, 'ninja')
        machine.wait_until_idle(self.proc(), 4, 100, sleep)
        self.assertEqual(len(waits), 3)
        self.fake.process(50, 'ninja')
        with self.assertRaises(machine.Busy):
            machine.wait_until_idle(self.proc(), 4, 20, waits.append)

    def test_others_while_something_runs(self) -> None:
        # 10 s of 2 CPUs; others take 1 s here and steal 0.5 s, the command takes 4 s.
        mine = iter([100.0, 104.0, 104.0, 105.0])
        watch = machine.CpuWatch(machine.Proc(str(self.fake.root)), lambda: next(mine))
        stat = self.fake.root / 'stat'
        hertz = os.sysconf('SC_CLK_TCK')
        stat.write_text('cpu  0 0 0 0 0 0 0 0 0 0\n')
        with watch:
            stat.write_text(f'cpu  {4 * hertz} 0 {1 * hertz} {4 * hertz} {5 * hertz} '
                            f'{3 * hertz} {2.5 * hertz:.0f} {0.5 * hertz:.0f} 0 0\n')
        self.assertAlmostEqual(watch.share or 0, 1.5 / 20)
        with watch:  # a second command, alone
            stat.write_text(f'cpu  {5 * hertz} 0 {1 * hertz} {23 * hertz} {5 * hertz} '
                            f'{3 * hertz} {2.5 * hertz:.0f} {0.5 * hertz:.0f} 0 0\n')
        self.assertAlmostEqual(watch.share or 0, 1.5 / 40)

    def test_watch_without_proc(self) -> None:
        watch = machine.CpuWatch(machine.Proc(str(self.folder / 'none')))
        with watch:
            pass
        self.assertIsNone(watch.share)

    def test_no_proc_at_all(self) -> None:
        machine.Proc(str(self.folder / 'none'), lambda _: None).check(4, with_load=True)


class CachesTest(support.FolderTest):
    def test_as_root(self) -> None:
        control = self.folder / 'drop_caches'
        control.write_text('')
        self.assertEqual(machine.drop_caches(self.folder, control), 'all')
        self.assertEqual(control.read_text(), '3\n')

    def test_without_the_right(self) -> None:
        (self.folder / 'db').mkdir()
        (self.folder / 'db' / '1.sst').write_text('x')
        control = self.folder / 'no' / 'such' / 'file'
        self.assertEqual(machine.drop_caches(self.folder, control), 'files')

    def test_on_the_second_device_too(self) -> None:
        (self.folder / 'device').mkdir()
        (self.folder / 'device' / '1.blob').write_text('x')
        work = self.folder / 'work'
        work.mkdir()
        (work / 'slow').symlink_to(self.folder / 'device')
        opened = []
        real = os.open

        def remember(path: Path, flags: int) -> int:
            opened.append(path.name)
            return real(path, flags)

        with mock.patch.object(os, 'open', remember):
            machine.drop_caches(work, self.folder / 'no' / 'file')
        self.assertEqual(opened, ['1.blob'])

    def test_halt_polling(self) -> None:
        control = self.folder / 'guest_halt_poll_ns'
        for before, inside in (('0', '400000'), ('500000', '500000')):
            control.write_text(before + '\n')
            with machine.HaltPolling(control) as polling:
                self.assertEqual(control.read_text(), inside + '\n')
                self.assertEqual(polling.nanos(), int(inside))
            self.assertEqual(control.read_text(), before + '\n')
        with machine.HaltPolling(self.folder / 'no' / 'file') as polling:
            self.assertIsNone(polling.nanos())

    def test_file_system(self) -> None:
        mounts = 'a / ext4 rw 0 0\nb /x tmpfs rw 0 0\nc /x/y xfs rw 0 0\n'
        with mock.patch.object(machine, '_text', return_value=mounts):
            self.assertEqual(machine.file_system(Path('/no/such/folder')), 'ext4')
        self.assertEqual(machine._mount_of(Path('/x/z'), mounts), ('b', 'tmpfs'))
        self.assertEqual(machine._mount_of(Path('/x/y/z'), mounts), ('c', 'xfs'))

    def test_free_disk_of_a_folder_to_be_made(self) -> None:
        self.assertGreater(machine.free_bytes(self.folder / 'a' / 'b'), 0)

    def test_describe(self) -> None:
        text = machine.describe(Path('/'))
        self.assertTrue(text['cpu'])
        self.assertGreaterEqual(text['cpus'], 1)
        json.dumps(text)


class ProbeTest(support.FolderTest):
    def test_by_hand(self) -> None:
        file = self.folder / 'data' / 'probe.dat'
        found = probe.by_hand(file, 1 << 20, 0.05)
        self.assertEqual(file.stat().st_size, 1 << 20)
        if 'error' in found:  # no direct I/O on this file system
            self.skipTest(found['error'])
        self.assertGreater(found['reads_per_sec'], 0)

    def test_errors_are_results(self) -> None:
        with mock.patch('shutil.which', return_value=None), \
                mock.patch.object(probe, '_lay_out', side_effect=OSError('no space')):
            self.assertEqual(probe.measure(self.folder), {'tool': '', 'error': 'no space'})

    def test_with_fio(self) -> None:
        with mock.patch('shutil.which', return_value='/bin/fio'), \
                mock.patch.object(probe, '_lay_out') as laid_out, \
                mock.patch.object(fio, 'measure', return_value={'ops_per_sec': 7.0}):
            self.assertEqual(probe.measure(self.folder), {'tool': 'fio', 'reads_per_sec': 7.0})
        laid_out.assert_called_once()


class FioTest(unittest.TestCase):
    def test_parse(self) -> None:
        job = {'jobs': [{'read': {
            'total_ios': 1000, 'runtime': 2000, 'iops': 500.0, 'io_bytes': 4096000,
            'clat_ns': {'mean': 90000.0, 'min': 50000, 'max': 1000000,
                        'percentile': {'99.000000': 200000, '99.990000': 900000}}}}]}
        report = fio.parse('fio: a warning\n' + json.dumps(job))
        self.assertEqual(report['ops_per_sec'], 500.0)
        self.assertEqual(report['latency_us']['read']['mean'], 90.0)
        self.assertEqual(report['latency_us']['read']['p99.99'], 900.0)
        self.assertEqual(report['seconds'], 2.0)

    def test_no_json(self) -> None:
        with self.assertRaises(CommandFailed):
            fio.parse('fio: engine io_uring not loadable')


if __name__ == '__main__':
    unittest.main()
