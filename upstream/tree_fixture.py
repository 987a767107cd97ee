# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""A tiny upstream, and a test case with a project in sync with it.

This module relies on `cli`: a test runs the commands as a user does.
"""
import contextlib
import io
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import cli

NUMBERED = ''.join(f'line_{n}();\n' for n in range(1, 41))
REPEATED = ''.join(f'head_{n}();\n{{\n  same();\n}}\n' for n in range(9))
UPSTREAM = {
    '.gitignore': b'*.cmake\n*_test\n',
    '.gitattributes': b'* text=auto eol=crlf\n*.cc diff=odd ident\n',
    'CMakeLists.txt': b'project(tiny)\n',
    'cmake/find.cmake': b'find()\n',
    'db/numbered.cc': NUMBERED.encode(),
    'db/repeated.cc': REPEATED.encode(),
    'db/empty.cc': b'',
    'db/gr\u00fc\u00dfe \u0434.cc': 'int gr\u00fc\u00dfe;\nint b;\n'.encode(),
    'db/latin.cc': b'// caf\xe9\nint latin;\n',
    'db/crlf.cc': b'one\r\ntwo\r\nthree\r\n',
    'db/no_newline.cc': b'one\ntwo\nthree',
    'db/image.bin': bytes(range(256)) * 4,
    'include/tiny/db.h': b'class DB {};\n',
    'include/tiny/options.h': b'struct Options {};\n',
    'tools/run.sh': b'#!/bin/sh\necho run\n',
}
PIN = 'package=tiny-sys\nversion=1.0.0+7.0.0\nfolder=tiny\n'


def write(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())


def make_upstream(folder, **changes):
    for path, data in {**UPSTREAM, **changes}.items():
        if data is not None:
            write(folder / path, data)
    if (folder / 'tools/run.sh').exists():
        (folder / 'tools/run.sh').chmod(0o755)


def fast_folder():
    """A folder in memory that can hold scripts, or None; it halves the time."""
    shm = '/dev/shm'
    if os.access(shm, os.W_OK) and not os.statvfs(shm).f_flag & os.ST_NOEXEC:
        return shm
    return None


class TreeTest(unittest.TestCase):
    """Each test gets a project in sync, with one overlay file and one public header."""

    @classmethod
    def setUpClass(cls):
        cls.kit = pathlib.Path(tempfile.mkdtemp(prefix='tree_test-', dir=fast_folder()))
        cls.addClassCleanup(shutil.rmtree, cls.kit)
        make_upstream(cls.kit / 'upstream')
        project = cls.kit / 'project'
        write(project / 'upstream/PIN', PIN)
        write(project / '.gitignore', 'build/\n*.o\n')
        write(project / 'db/ours.cc', 'int ours;\n')
        write(project / 'include/tiny/ours.h', 'a();\nb();\nc();\nd();\ne();\nf();\n')
        write(project / 'bench/run.py', 'print("not overlay")\n')
        subprocess.run(['git', 'init', '-q', project], check=True)
        os.environ['STRATA_UPSTREAM'] = str(cls.kit / 'upstream')
        cls.addClassCleanup(os.environ.pop, 'STRATA_UPSTREAM')
        assert cls.command(project, 'files', cls.kit / 'upstream')[0] == 0
        cls.bare = cls.kit / 'bare'
        shutil.copytree(project, cls.bare, symlinks=True)
        code, text = cls.command(project, 'source')
        assert code == 0, text
        cls.project = project

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=self.kit))
        self.root = self.folder / 'project'
        shutil.copytree(self.project, self.root, symlinks=True)
        self.use(self.root)

    def use(self, root):
        self.root, self.src, self.patches = root, root / 'build/src', root / 'patches'

    @staticmethod
    def command(root, *args):
        out = io.StringIO()
        out.reconfigure = lambda **_: None
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            code = cli.main(['--root', str(root), *map(str, args)])
        return code, out.getvalue()

    def good(self, *args):
        code, text = self.command(self.root, *(args or ['source']))
        self.assertEqual(code, 0, text)
        return text

    def bad(self, *args, says=()):
        code, text = self.command(self.root, *(args or ['source']))
        self.assertEqual(code, 1, text)
        for part in [says] if isinstance(says, str) else says:
            self.assertIn(part, text)
        return text

    def edit(self, path, old, new, top=None):
        path = (top or self.src) / path
        data = path.read_bytes()
        self.assertIn(old.encode(), data)
        path.write_bytes(data.replace(old.encode(), new.encode(), 1))

    def text(self, path, top=None):
        return ((top or self.src) / path).read_bytes().decode()

    def patch(self, path='db/numbered.cc'):
        return self.patches / f'{path}.patch'

    def patch_made_elsewhere(self, path, old, new):
        """Puts the patch of an edit into patches/ without the tree having seen it."""
        other = self.folder / 'other'
        shutil.rmtree(other, ignore_errors=True)
        shutil.copytree(self.root, other, symlinks=True)
        self.edit(path, old, new, other / 'build/src')
        code, text = self.command(other, 'source')
        self.assertEqual(code, 0, text)
        shutil.rmtree(self.patches, ignore_errors=True)
        shutil.copytree(other / 'patches', self.patches)

    def git(self, *args, top=None):
        return subprocess.run(['git', '-C', top or self.src, *args], check=True,
                              capture_output=True, text=True).stdout

    def assert_in_step(self):
        self.good('status')
        self.good('check')
        subjects = self.git('log', '--format=%s').split()
        self.assertEqual(subjects, ['patched', 'pristine'])
        self.assertEqual(self.git('status', '--porcelain'), '')
