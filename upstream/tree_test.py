#!/usr/bin/env python3
# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Tests of tree.py on a tiny upstream."""
import contextlib
import io
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

import tree

HERE = pathlib.Path(__file__).resolve().parent
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
    """Memory, if there is some that can hold scripts: half the time on a busy disk."""
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
            code = tree.main(['--root', str(root), *map(str, args)])
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


class SourceTest(TreeTest):
    def test_tree_from_nothing(self):
        self.assertEqual(self.text('db/numbered.cc'), NUMBERED)
        self.assertTrue(os.access(self.src / 'tools/run.sh', os.X_OK))
        self.assertEqual(os.readlink(self.src / 'db/ours.cc'), '../../../db/ours.cc')
        self.assertFalse((self.src / 'include/tiny/ours.h').is_symlink())
        self.assertFalse((self.src / 'bench').exists())
        for path, data in UPSTREAM.items():
            self.assertEqual((self.src / path).read_bytes(), data)
        self.assert_in_step()

    def test_no_change_writes_nothing(self):
        self.edit('db/numbered.cc', 'line_7', 'seam_7')
        self.good()
        before = {path: (self.root / path).lstat().st_mtime_ns
                  for path in tree.walk(self.root) if '/.' not in path}
        self.assertEqual(self.good(), '')
        after = {path: (self.root / path).lstat().st_mtime_ns for path in before}
        self.assertEqual(before, after)

    def test_edit_in_tree(self):
        self.edit('db/numbered.cc', 'line_7()', 'line_7(1)')
        self.bad('check', says='db/numbered.cc has edits that patches/ lacks')
        self.good()
        self.assertEqual(self.patch().read_text().split('\n')[3:], [
            '+++ b/db/numbered.cc', '@@ -6,3 +6,3 @@', ' line_6();', '-line_7();',
            '+line_7(1);', ' line_8();', ''])
        self.assert_in_step()
        self.edit('db/numbered.cc', 'line_7(1)', 'line_7()')
        self.good()
        self.assertFalse(self.patches.exists() and tree.walk(self.patches))

    def test_edit_in_patches(self):
        self.patch_made_elsewhere('db/numbered.cc', 'line_7()', 'line_7(1)')
        old = (self.src / 'db/repeated.cc').stat().st_mtime_ns
        now = time.time() - 1
        self.bad('status', says='changed in patches/')
        self.good()
        self.assertIn('line_7(1)', self.text('db/numbered.cc'))
        self.assertGreater((self.src / 'db/numbered.cc').stat().st_mtime, now)
        self.assertEqual((self.src / 'db/repeated.cc').stat().st_mtime_ns, old)
        self.assert_in_step()
        self.patch().unlink()
        self.good()
        self.assertEqual(self.text('db/numbered.cc'), NUMBERED)

    def test_hand_edited_patch(self):
        self.edit('db/numbered.cc', 'line_7()', 'line_7(1)')
        self.good()
        self.edit(self.patch(), '+line_7(1)', '+line_7(22)')
        self.bad(says=['numbered.cc.patch', 'hunk 1', '40 zeros'])
        ids = tree.patch_ids(self.patch().read_bytes())
        self.edit(self.patch(), ids[1], '0' * 40)
        self.good()
        self.assertIn('line_7(22)', self.text('db/numbered.cc'))
        self.assert_in_step()

    def test_both_changed_different_files(self):
        self.patch_made_elsewhere('db/numbered.cc', 'line_7()', 'line_7(1)')
        self.edit('db/repeated.cc', 'head_2', 'seam_2')
        self.good()
        self.assertIn('line_7(1)', self.text('db/numbered.cc'))
        self.assertIn('+seam_2();', self.patch('db/repeated.cc').read_text())
        self.assert_in_step()

    def test_both_changed_one_file(self):
        self.patch_made_elsewhere('db/numbered.cc', 'line_7()', 'line_7(1)')
        self.edit('db/numbered.cc', 'line_20()', 'line_20(1)')
        self.good()
        for text in (self.text('db/numbered.cc'), self.patch().read_text()):
            self.assertIn('line_7(1)', text)
            self.assertIn('line_20(1)', text)
        self.assert_in_step()

    def conflict(self):
        self.patch_made_elsewhere('db/numbered.cc', 'line_7()', 'line_7(1)')
        self.edit('db/numbered.cc', 'line_7()', 'line_7(2)')
        self.edit('db/repeated.cc', 'head_2', 'seam_2')
        patch = self.patch().read_bytes()
        self.bad(says=['db/numbered.cc', 'resolve tree'])
        self.assertIn('line_7(2)', self.text('db/numbered.cc'))
        self.assertEqual(self.patch().read_bytes(), patch)
        self.assertFalse(self.patch('db/repeated.cc').exists())
        self.assertIn('<<<<<<< build/src',
                      self.text('build/conflicts/db/numbered.cc', self.root))

    def test_conflict_tree_wins(self):
        self.conflict()
        self.assertIn('git -C', self.good('resolve', 'tree', 'db/numbered.cc'))
        self.assertIn('+line_7(2)', self.patch().read_text())
        self.assertIn('+seam_2', self.patch('db/repeated.cc').read_text())
        self.assertFalse((self.root / 'build/conflicts').exists())
        self.assert_in_step()

    def test_conflict_patches_win(self):
        self.conflict()
        self.bad('resolve', 'patches', 'db/repeated.cc', says='not in conflict')
        self.good('resolve', 'patches', 'patches/db/numbered.cc.patch')
        self.assertIn('line_7(1)', self.text('db/numbered.cc'))
        self.assert_in_step()

    def test_odd_bytes(self):
        unusual = 'db/gr\u00fc\u00dfe \u0434.cc'
        self.edit(unusual, 'int b', 'int c')
        self.edit('db/crlf.cc', 'two\r\n', 'two\r\nand\n')
        self.edit('db/no_newline.cc', 'three', 'drei')
        write(self.src / 'db/latin.cc', b'// caf\xe9s\nint latin;\n')
        write(self.src / 'db/empty.cc', 'int filled;\n')
        write(self.src / 'db/image.bin', bytes(range(255, -1, -1)))
        (self.src / 'tools/run.sh').chmod(0o644)
        (self.src / 'CMakeLists.txt').chmod(0o755)
        (self.src / 'include/tiny/options.h').unlink()
        self.edit('.gitignore', '*_test', '*_tests')
        changed = {unusual, 'db/crlf.cc', 'db/no_newline.cc', 'db/latin.cc',
                   'db/empty.cc', 'db/image.bin', 'tools/run.sh', 'CMakeLists.txt',
                   'include/tiny/options.h', '.gitignore'}
        self.good()
        self.assertEqual(set(tree.walk(self.patches)), {f'{p}.patch' for p in changed})
        self.assert_in_step()
        fresh = self.folder / 'fresh'
        shutil.copytree(self.bare, fresh, symlinks=True)
        shutil.copytree(self.patches, fresh / 'patches')
        self.assertEqual(self.command(fresh, 'source')[0], 0)
        for path in changed - {'include/tiny/options.h'}:
            self.assertEqual(tree.entry_of(fresh / 'build/src' / path),
                             tree.entry_of(self.src / path))
        self.assertFalse((fresh / 'build/src/include/tiny/options.h').exists())

    def test_no_mass_deletion(self):
        with mock.patch.object(tree, 'MAX_DELETIONS', 3):
            shutil.rmtree(self.src / 'db')
            self.bad(says=['missing from build/src', 'restore'])
            self.git('restore', '.')
            self.good()
        self.assert_in_step()

    def test_commits_of_a_person_are_edits(self):
        self.edit('db/numbered.cc', 'line_7()', 'line_7(1)')
        self.git('-c', 'user.name=n', '-c', 'user.email=e', 'commit', '-qam', 'mine')
        self.good()
        self.assertIn('line_7(1)', self.patch().read_text())
        self.assert_in_step()

    def test_lost_git_folder(self):
        self.edit('db/numbered.cc', 'line_7()', 'line_7(1)')
        self.good()
        self.edit('db/repeated.cc', 'head_2', 'seam_2')
        shutil.rmtree(self.src / '.git')
        self.good()
        self.assertIn('+seam_2', self.patch('db/repeated.cc').read_text())
        self.assert_in_step()

    def test_link_in_place_of_upstream_file(self):
        (self.src / 'db/empty.cc').unlink()
        (self.src / 'db/empty.cc').symlink_to('numbered.cc')
        self.bad(says='db/empty.cc')

    def test_clone_inside_a_clone(self):
        inner = self.root / 'build/inner'
        shutil.copytree(self.bare, inner, symlinks=True)
        self.assertEqual(self.command(inner, 'source')[0], 0)
        self.edit('db/numbered.cc', 'line_7()', 'line_7(1)', inner / 'build/src')
        self.assertEqual(self.command(inner, 'source')[0], 0)
        self.assertFalse(self.patch().exists())
        self.use(inner)
        self.assertTrue(self.patch().exists())
        self.assert_in_step()

    def test_archive_inside_a_clone(self):
        inner = self.root / 'third/inner'
        shutil.copytree(self.bare, inner, symlinks=True)
        shutil.rmtree(inner / '.git')
        self.use(inner)
        self.good()
        self.assertTrue((self.src / 'db/ours.cc').is_symlink())

    def test_linked_worktree(self):
        self.git('add', '-A', top=self.root)
        self.git('-c', 'user.name=n', '-c', 'user.email=e', 'commit', '-qm', 'all',
                 top=self.root)
        self.git('worktree', 'add', '-q', self.folder / 'linked', top=self.root)
        self.use(self.folder / 'linked')
        self.good()
        self.assert_in_step()

    def test_hostile_git(self):
        hooks = self.folder / 'hooks'
        for hook in ('reference-transaction', 'post-index-change', 'post-checkout'):
            write(hooks / hook, '#!/bin/sh\nexit 1\n')
            (hooks / hook).chmod(0o755)
        write(self.folder / 'ignore', 'db/\n*.h\n')
        write(self.folder / 'attributes', '* text eol=crlf filter=bad\n')
        write(self.folder / '.gitconfig', (
            f'[core]\nautocrlf = true\nhooksPath = {hooks}\n'
            f'excludesFile = {self.folder}/ignore\nignoreCase = true\n'
            f'attributesFile = {self.folder}/attributes\nfileMode = false\n'
            '[filter "bad"]\nclean = false\nsmudge = false\nrequired = true\n'
            '[diff]\nnoprefix = true\nexternal = false\nalgorithm = patience\n'
            'context = 9\nmnemonicPrefix = true\n[commit]\ngpgSign = true\n'
            '[apply]\nwhitespace = fix\n[color]\nui = always\n'
            '[merge]\nconflictStyle = zdiff3\n'))
        write(self.folder / 'git/ignore', 'db/\n')
        hostile = {
            'HOME': str(self.folder), 'XDG_CONFIG_HOME': str(self.folder),
            'GIT_DIR': '/nowhere', 'GIT_WORK_TREE': '/nowhere', 'GIT_INDEX_FILE': '/no',
            'GIT_EXTERNAL_DIFF': 'false', 'GIT_DIFF_OPTS': '-u7',
            'GIT_OBJECT_DIRECTORY': '/nowhere', 'GIT_CONFIG_COUNT': '1',
            'GIT_CONFIG_KEY_0': 'core.bare', 'GIT_CONFIG_VALUE_0': 'true',
            'GIT_LITERAL_PATHSPECS': '1', 'LC_ALL': 'C'}
        self.use(self.folder / 'victim')
        shutil.copytree(self.bare, self.root, symlinks=True)
        with mock.patch.dict(os.environ, hostile):
            self.good()
            self.edit('db/numbered.cc', 'line_7();', 'line_7();  ')
            self.good()
        self.assertIn('+line_7();  \n line_8', self.patch().read_text())
        self.assert_in_step()

    def test_adoption(self):
        """A build/src made by hand: one commit, edits, a link, a new file."""
        shutil.rmtree(self.src)
        shutil.copytree(self.kit / 'upstream', self.src)
        self.git('init', '-q')
        self.git('-c', 'core.attributesFile=/dev/null', '-c', 'core.autocrlf=false',
                 'add', '-Af')
        self.git('-c', 'user.name=n', '-c', 'user.email=e', 'commit', '-qm', 'pristine')
        self.edit('db/numbered.cc', 'line_7()', 'line_7(1)')
        (self.src / 'db/ours.cc').symlink_to(self.root / 'db/ours.cc')
        write(self.src / 'db/new.cc', 'int fresh;\n')
        self.bad(says='db/new.cc')
        self.assertFalse(self.patch().exists())
        shutil.move(self.src / 'db/new.cc', self.root / 'db/new.cc')
        self.good()
        self.assertIn('line_7(1)', self.patch().read_text())
        self.assertTrue((self.src / 'db/new.cc').is_symlink())
        self.assert_in_step()

    def test_adoption_of_a_wrong_pristine(self):
        """.gitattributes or .gitignore may have had their say in a hand-made commit."""
        shutil.rmtree(self.src)
        shutil.copytree(self.kit / 'upstream', self.src)
        (self.src / 'cmake/find.cmake').rename(self.folder / 'find.cmake')
        self.git('init', '-q')
        self.git('add', '-A')
        self.git('-c', 'user.name=n', '-c', 'user.email=e', 'commit', '-qm', 'pristine')
        (self.folder / 'find.cmake').rename(self.src / 'cmake/find.cmake')
        self.edit('db/numbered.cc', 'line_7()', 'line_7(1)')
        self.good()
        self.assertEqual(tree.walk(self.patches), ['db/numbered.cc.patch'])
        self.assert_in_step()

    def test_pin_moved_by_a_pull(self):
        """Another clone rebased and pushed; here are edits that it did not have."""
        self.edit('db/numbered.cc', 'line_7()', 'line_7(1)')
        self.good()
        other = self.folder / 'other'
        shutil.copytree(self.root, other, symlinks=True)
        newer = self.folder / 'newer'
        make_upstream(newer, **{'db/numbered.cc': 'first();\n' + NUMBERED,
                                'db/brand_new.cc': 'int brand_new;\n',
                                'db/crlf.cc': None})
        code, text = self.command(other, 'rebase', newer, '2.0.0+8.0.0')
        self.assertEqual(code, 0, text)
        for folder in ('patches', 'upstream'):
            shutil.rmtree(self.root / folder)
            shutil.copytree(other / folder, self.root / folder)
        self.edit('db/numbered.cc', 'line_30()', 'line_30(1)')
        with mock.patch.dict(os.environ, STRATA_UPSTREAM=str(newer)):
            self.good()
            merged = NUMBERED.replace('line_7()', 'line_7(1)').replace(
                'line_30()', 'line_30(1)')
            self.assertEqual(self.text('db/numbered.cc'), 'first();\n' + merged)
            self.assertFalse((self.src / 'db/crlf.cc').exists())
            self.assertTrue((self.src / 'db/brand_new.cc').exists())
            self.assert_in_step()

    def test_pristine(self):
        self.good('pristine')
        folder = self.root / 'build/pristine'
        self.assertEqual(tree.walk(folder), sorted(UPSTREAM))
        with mock.patch.dict(os.environ, STRATA_UPSTREAM='/nowhere'):
            self.assertEqual(self.good('pristine'), '')  # needs no upstream any more
        old = (folder / 'db/numbered.cc').stat().st_mtime_ns
        write(folder / 'db/crlf.cc', 'one\n')
        (folder / 'tools/run.sh').chmod(0o644)
        self.assertIn('2 files', self.good('pristine'))
        self.assertEqual((folder / 'db/crlf.cc').read_bytes(), UPSTREAM['db/crlf.cc'])
        self.assertTrue(os.access(folder / 'tools/run.sh', os.X_OK))
        self.assertEqual((folder / 'db/numbered.cc').stat().st_mtime_ns, old)


class PatchTest(TreeTest):
    def test_hunk_landing_elsewhere(self):
        """One line of context also fits elsewhere; the blob id tells."""
        path = 'db/repeated.cc'
        self.edit(path, 'head_4();\n{\n  same', 'head_4();\n{\n  other')
        self.good()
        before = self.text(path)
        self.edit(self.patch(path), '@@ -18,3 +18,3 @@', '@@ -26,3 +26,3 @@')
        self.bad(says=[f'{path}.patch', 'gives blob', 'hunk 1'])
        self.assertEqual(self.text(path), before)
        self.bad('check', says=f'{path}.patch')
        self.edit(self.patch(path), '@@ -26,3 +26,3 @@', '@@ -25,3 +25,3 @@')
        self.bad(says=[f'{path}.patch', 'gives blob', 'hunk 1', 'landed at line'])

    def test_hunk_that_does_not_fit(self):
        self.edit('db/numbered.cc', 'line_7()', 'line_7(1)')
        self.edit('db/numbered.cc', 'line_30()', 'line_30(1)')
        self.good()
        self.edit(self.patch(), '-line_30();', '-line_x();')
        self.bad(says=['patches/db/numbered.cc.patch', 'hunk 2 (@@ -29,3 +29,3 @@)'])

    def test_malformed_patches(self):
        self.edit('db/numbered.cc', 'line_7()', 'line_7(1)')
        self.good()
        good = self.patch().read_bytes()
        for change, says in (
                ((b'@@ -6,3', b'@@ -6,9'), 'corrupt'),
                ((b'index ', b'index 12'), 'index'),
                ((b'numbered', b'repeated'), 'db/repeated.cc instead'),
                ((tree.patch_ids(good)[0].encode(), b'1' * 40), 'another version')):
            write(self.patch(), good.replace(*change))
            self.bad(says=['patches/db/numbered.cc.patch', says])
        write(self.patch(), good)
        write(self.patches / 'db/unknown.cc.patch', good)
        self.bad(says=['patches/db/unknown.cc.patch', 'no such file'])

    def test_check_bytes_and_context(self):
        self.edit('db/numbered.cc', 'line_7()', 'line_7(1)')
        self.good()
        self.edit(self.patch(), '@@ -6,3 +6,3 @@\n line_6();',
                  '@@ -5,4 +5,4 @@ class\n line_5();\n line_6();')
        self.bad('check', says=['hunk 1 has more than one context line',
                                'is not what the tree emits'])
        self.good('patches')
        self.assert_in_step()

    def test_check_patch_names(self):
        write(self.patches / 'db/notes.txt', 'x')
        self.bad('check', says='patches/db/notes.txt is not a patch')


class OverlayTest(TreeTest):
    def test_added_and_removed(self):
        write(self.root / 'util/deep/new.cc', 'x')  # not a folder of this upstream
        write(self.root / 'db/deep/new.cc', 'x')
        write(self.root / 'db/ignored.o', 'x')
        self.good()
        self.assertFalse((self.src / 'util').exists())
        self.assertFalse((self.src / 'db/ignored.o').exists())
        self.assertEqual(os.readlink(self.src / 'db/deep/new.cc'),
                         '../../../../db/deep/new.cc')
        self.assert_in_step()
        for path in ('db/deep/new.cc', 'include/tiny/ours.h'):
            (self.root / path).unlink()
        self.good()
        self.assertFalse((self.src / 'db/deep').exists())
        self.assertFalse((self.src / 'include/tiny/ours.h').exists())
        self.assert_in_step()

    def test_edit_through_the_link(self):
        write(self.src / 'db/ours.cc', 'int better;\n')
        self.good()
        self.assertEqual(self.text('db/ours.cc', self.root), 'int better;\n')

    def test_replaced_link(self):
        (self.src / 'db/ours.cc').unlink()
        write(self.src / 'db/ours.cc', 'int by_rename;\n')
        self.bad('check', says='db/ours.cc')
        self.good()
        self.assertEqual(self.text('db/ours.cc', self.root), 'int by_rename;\n')
        self.assertTrue((self.src / 'db/ours.cc').is_symlink())
        self.assert_in_step()

    def test_replaced_link_and_changed_file(self):
        (self.src / 'db/ours.cc').unlink()
        write(self.src / 'db/ours.cc', 'int by_rename;\n')
        write(self.root / 'db/ours.cc', 'int here;\n')
        self.bad(says=['db/ours.cc', 'make both equal'])
        self.assertEqual(self.text('db/ours.cc'), 'int by_rename;\n')
        self.assertEqual(self.text('db/ours.cc', self.root), 'int here;\n')
        write(self.root / 'db/ours.cc', 'int by_rename;\n')
        self.good()
        self.assert_in_step()

    def test_include_copies(self):
        path = 'include/tiny/ours.h'
        self.edit(path, 'a()', 'a(1)', self.root)
        self.good()
        self.assertIn('a(1)', self.text(path))
        self.edit(path, 'a(1)', 'a(2)')
        self.bad('check', says=path)
        self.good()
        self.assertIn('a(2)', self.text(path, self.root))
        self.edit(path, 'a(2)', 'a(3)')
        self.edit(path, 'f()', 'f(3)', self.root)
        self.good()
        for top in (self.root, self.src):
            self.assertEqual(self.text(path, top),
                             'a(3);\nb();\nc();\nd();\ne();\nf(3);\n')
        self.assert_in_step()
        self.edit(path, 'a(3)', 'a(4)')
        self.edit(path, 'a(3)', 'a(5)', self.root)
        self.bad(says=path)
        self.assertIn('a(4)', self.text(path))
        self.assertIn('a(5)', self.text(path, self.root))

    def test_edited_copy_of_a_removed_file(self):
        self.edit('include/tiny/ours.h', 'a()', 'a(1)')
        (self.root / 'include/tiny/ours.h').unlink()
        self.bad(says='include/tiny/ours.h')
        self.assertIn('a(1)', self.text('include/tiny/ours.h'))

    def test_stray_file(self):
        write(self.src / 'db/stray_test', 'int stray;\n')  # upstream would ignore it
        write(self.src / 'tools/__pycache__/x.pyc', 'x')
        write(self.src / 'db/.ours.cc.swp', 'x')
        self.edit('db/numbered.cc', 'line_7()', 'line_7(1)')
        text = self.bad(says=['db/stray_test', 'mv build/src/db/stray_test'])
        self.assertNotIn('pycache', text)
        self.assertNotIn('swp', text)
        self.bad('check', says='db/stray_test')
        self.assertTrue((self.src / 'db/stray_test').exists())
        (self.src / 'db/stray_test').unlink()
        self.good()
        self.assertTrue((self.src / 'db/.ours.cc.swp').exists())

    def test_shadowing(self):
        write(self.root / 'db/numbered.cc', 'int shadow;\n')
        self.bad(says=['db/numbered.cc', 'may not replace'])
        self.bad('check', says='db/numbered.cc')
        self.assertEqual(self.text('db/numbered.cc'), NUMBERED)


class InterruptionTest(TreeTest):
    def run_killed_at(self, step, *args):
        """Runs a command in a child that dies before its step-th write; True if so."""
        sys.stdout.flush()
        child = os.fork()
        if child:
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
        left = [step]

        def dying(function):
            def wrapper(*args, **options):
                left[0] -= 1
                if not left[0]:
                    os._exit(9)
                return function(*args, **options)
            return wrapper

        os.replace = dying(os.replace)
        pathlib.Path.unlink = dying(pathlib.Path.unlink)
        tree.Git.set_ref = dying(tree.Git.set_ref)
        try:
            self.command(self.root, *args)
        finally:
            os._exit(0)

    def at_every_step(self, prepare, verify, args=('source',), resume=('source',),
                      stride=1):
        start = self.root
        for step in range(1, 200, stride):
            self.use(self.folder / f'step-{step}')
            shutil.copytree(start, self.root, symlinks=True)
            prepare()
            killed = self.run_killed_at(step, *args)
            if killed and step % 3 == 1:  # a second kill, at another place
                self.run_killed_at(step // 2 + 1, *resume)
            if resume[0] == 'source' or (self.src / '.git/strata-rebase.json').exists():
                self.command(self.root, *resume)
            elif killed:
                self.command(self.root, *args)
            with self.subTest(step=step):
                verify()
                self.good('status')
            shutil.rmtree(self.root)
            if not killed:
                self.assertGreater(step, 4)
                return
        self.fail('never done')

    def test_both_sides(self):
        """Each kind of change at once, so that every order of writes is met."""
        self.edit('db/crlf.cc', 'two', 'zwei')
        self.good()
        self.patch_made_elsewhere('db/numbered.cc', 'line_7()', 'line_7(1)')
        # A merge next to the other side's lines, which does not survive repetition.
        self.edit('db/numbered.cc', 'line_9()', 'line_9(1);\nmore()')
        self.edit('db/repeated.cc', 'head_2', 'seam_2')
        self.edit('db/crlf.cc', 'zwei', 'two')
        self.edit('include/tiny/ours.h', 'a()', 'a(1)')
        self.edit('include/tiny/ours.h', 'f()', 'f(1)', self.root)
        (self.src / 'db/ours.cc').unlink()
        write(self.src / 'db/ours.cc', 'int by_rename;\n')
        write(self.root / 'db/added.cc', 'int added;\n')

        def verify():
            merged = NUMBERED.replace('line_7()', 'line_7(1)').replace(
                'line_9()', 'line_9(1);\nmore()')
            self.assertEqual(self.text('db/numbered.cc'), merged)
            self.assertIn('+seam_2', self.patch('db/repeated.cc').read_text())
            self.assertIn('+more()', self.patch().read_text())
            self.assertIn('+line_7(1)', self.patch().read_text())
            self.assertFalse(self.patch('db/crlf.cc').exists())
            for top in (self.root, self.src):
                self.assertEqual(self.text('include/tiny/ours.h', top),
                                 'a(1);\nb();\nc();\nd();\ne();\nf(1);\n')
                self.assertEqual(self.text('db/ours.cc', top), 'int by_rename;\n')
            self.assertFalse([p for p in tree.walk(self.patches) if p.endswith('~')])

        self.at_every_step(lambda: None, verify)

    def test_first_sync(self):
        self.edit('db/numbered.cc', 'line_7()', 'line_7(1)')
        self.good()
        (self.root / 'db/ours.cc').rename(self.root / 'db/renamed.cc')

        def prepare():
            shutil.rmtree(self.src)

        def verify():
            self.assertIn('line_7(1)', self.text('db/numbered.cc'))
            self.assertEqual(tree.walk(self.patches), ['db/numbered.cc.patch'])
            self.assertEqual(set(UPSTREAM) - set(tree.walk(self.src)), set())

        # Most writes of a first sync are alike.
        self.at_every_step(prepare, verify, stride=7)

    def test_edit_between_kill_and_resumption(self):
        self.patch_made_elsewhere('db/numbered.cc', 'line_7()', 'line_7(1)')
        self.edit('db/numbered.cc', 'line_20()', 'line_20(1)')
        start = self.root
        for step in (3, 5, 7):
            self.use(self.folder / f'step-{step}')
            shutil.copytree(start, self.root, symlinks=True)
            self.run_killed_at(step, 'source')
            self.edit('db/numbered.cc', 'line_35()', 'line_35(1)')
            self.good()
            for part in ('line_7(1)', 'line_20(1)', 'line_35(1)'):
                self.assertIn(part, self.text('db/numbered.cc'))
                self.assertIn(part, self.patch().read_text())

    def test_rebase(self):
        self.edit('db/numbered.cc', 'line_7()', 'line_7(1)')
        self.edit('db/crlf.cc', 'two', 'zwei')
        self.good()
        newer = self.folder / 'newer'
        make_upstream(newer, **{'db/numbered.cc': 'first();\n' + NUMBERED,
                                'db/brand_new.cc': 'int x;\n', 'db/empty.cc': None})

        def verify():
            self.assertEqual(self.text('db/numbered.cc'),
                             'first();\n' + NUMBERED.replace('line_7()', 'line_7(1)'))
            self.assertIn('2.0.0', self.text('upstream/PIN', self.root))
            self.assertFalse((self.src / 'db/empty.cc').exists())
            self.assertIn('zwei', self.text('db/crlf.cc'))

        # Upstream's directory is whichever the project is at when it is killed.
        with mock.patch.object(tree, 'fetch_upstream', lambda pin, files: str(
                newer if 'db/brand_new.cc' in files else self.kit / 'upstream')):
            self.at_every_step(lambda: None, verify,
                               args=('rebase', newer, '2.0.0+8.0.0'),
                               resume=('rebase', '--continue'), stride=2)


class RebaseTest(TreeTest):
    def setUp(self):
        super().setUp()
        self.edit('db/numbered.cc', 'line_7()', 'line_7(1)')
        self.good()
        self.newer = self.folder / 'newer'

    def rebase(self, works, changes, says=()):
        make_upstream(self.newer, **changes)
        os.environ['STRATA_UPSTREAM'] = str(self.newer)
        self.addCleanup(os.environ.update, STRATA_UPSTREAM=str(self.kit / 'upstream'))
        args = 'rebase', self.newer, '2.0.0+8.0.0'
        return self.good(*args) if works else self.bad(*args, says=says)

    def test_clean(self):
        self.rebase(True, {
            'db/numbered.cc': NUMBERED.replace('line_2()', 'two()').replace(
                'line_12()', 'twelve();\nthirteen()'),
            'table/fresh.cc': 'int fresh;\n', 'db/crlf.cc': None})
        self.assertIn('line_7(1)', self.text('db/numbered.cc'))
        self.assertIn('thirteen', self.text('db/numbered.cc'))
        self.assertTrue((self.src / 'table/fresh.cc').exists())
        self.assertFalse((self.src / 'db/crlf.cc').exists())
        self.assertEqual(self.text('upstream/PIN', self.root),
                         PIN.replace('1.0.0+7.0.0', '2.0.0+8.0.0'))
        files = tree.parse_files((self.root / 'upstream/FILES').read_bytes())
        self.assertEqual(files, tree.describe_dir(self.newer))
        self.assert_in_step()

    def test_renamed_upstream(self):
        self.rebase(True, {'db/numbered.cc': None, 'db/moved.cc': 'x();\n' + NUMBERED})
        self.assertEqual(tree.walk(self.patches), ['db/moved.cc.patch'])
        self.assert_in_step()

    def test_conflict(self):
        self.rebase(False, {'db/numbered.cc': NUMBERED.replace('line_7()', 'seven()')},
                    says=['db/numbered.cc', '--continue'])
        self.assertIn('<<<<<<< new upstream', self.text('db/numbered.cc'))
        self.bad('source', says='a rebase is in progress')
        self.bad('rebase', '--continue', says=['markers', 'db/numbered.cc'])
        write(self.src / 'db/numbered.cc', NUMBERED.replace('line_7()', 'seven(1)'))
        self.good('rebase', '--continue')
        self.assertIn('-seven();\n+seven(1);', self.patch().read_text())
        self.assert_in_step()
        self.bad('rebase', '--continue', says='no rebase')

    def test_gone_upstream(self):
        self.rebase(False, {'db/numbered.cc': None}, says='gone upstream')
        self.bad('rebase', '--continue', says='db/numbered.cc')
        (self.src / 'db/numbered.cc').unlink()
        self.good('rebase', '--continue')
        self.assertEqual(tree.walk(self.patches), [])
        self.assert_in_step()

    def test_abort(self):
        self.rebase(False, {'db/numbered.cc': NUMBERED.replace('line_7()', 'seven()'),
                            'db/other.cc': 'x'})
        os.environ['STRATA_UPSTREAM'] = str(self.kit / 'upstream')
        self.good('rebase', '--abort')
        self.assertFalse((self.src / 'db/other.cc').exists())
        self.assertIn('line_7(1)', self.text('db/numbered.cc'))
        self.assert_in_step()

    def test_new_file_of_an_overlay_name(self):
        self.rebase(False, {'db/ours.cc': 'x'}, says=['db/ours.cc', 'rename ours'])


class FetchTest(TreeTest):
    def setUp(self):
        super().setUp()
        self.use(self.folder / 'unfetched')
        shutil.copytree(self.bare, self.root, symlinks=True)
        self.home = self.folder / 'cargo'
        self.tools = self.folder / 'bin'
        self.tools.mkdir()
        (self.tools / 'git').symlink_to(shutil.which('git'))
        for patch in (
                mock.patch.dict(os.environ, CARGO_HOME=str(self.home),
                                PATH=str(self.tools)),
                mock.patch.object(tree, 'CARGOS', ('cargo',))):
            patch.start()
            self.addCleanup(patch.stop)
        given = os.environ.pop('STRATA_UPSTREAM')
        self.addCleanup(os.environ.update, STRATA_UPSTREAM=given)

    def fake_cargo(self, version, action='exit 101', name='cargo'):
        write(self.tools / name, (
            f'#!/bin/sh\nif [ "$1" = --version ]; then echo "{version}"; exit; fi\n'
            f'export PATH=/usr/bin:/bin\n{action}\n'))
        (self.tools / name).chmod(0o755)

    def unpack(self, also='true'):
        package = f'{self.home}/registry/src/index-0/tiny-sys-1.0.0+7.0.0'
        return (f'[ "$*" = "info tiny-sys@1.0.0" ] && [ -z "$(ls -A)" ] && '
                f'mkdir -p {package} && '
                f'cp -Rp {self.kit}/upstream {package}/tiny && {also} && '
                f'touch {package}/.cargo-ok')

    def test_no_cargo(self):
        self.bad(says=['no cargo', 'apt-get install cargo-web', 'STRATA_UPSTREAM'])

    def test_old_cargo(self):
        self.fake_cargo('cargo 1.65.0')
        self.bad(says=['too old', 'cargo 1.65.0', '>= 1.82', 'cargo-web'])

    def test_second_cargo(self):
        self.fake_cargo('cargo 1.65.0')
        self.fake_cargo('cargo 1.85.0 (d73d2caf9)', self.unpack(), name='cargo-new')
        with mock.patch.object(tree, 'CARGOS', ('cargo', 'cargo-new')):
            self.good()
        self.assert_in_step()

    def test_download(self):
        self.fake_cargo('cargo 1.82.0', self.unpack())
        self.assertIn('fetching tiny-sys@1.0.0', self.good())
        self.fake_cargo('cargo 1.65.0')
        self.assert_in_step()

    def test_unreachable(self):
        self.fake_cargo('cargo 1.90.0', 'echo could not resolve host >&2; exit 101')
        self.bad(says=['could not resolve host', 'network', 'STRATA_UPSTREAM'])

    def test_differing_package(self):
        self.fake_cargo('cargo 1.90.0', self.unpack(
            f'for f in {self.home}/registry/src/*/*/tiny/db/crlf.cc; '
            'do echo >> "$f"; done'))
        self.bad(says=['1 of 15 files', 'db/crlf.cc: other content', 'remove '])

    def test_differing_directory(self):
        make_upstream(self.folder / 'given')
        (self.folder / 'given/tools/run.sh').chmod(0o644)
        (self.folder / 'given/db/empty.cc').unlink()
        with mock.patch.dict(os.environ, STRATA_UPSTREAM=str(self.folder / 'given')):
            self.bad(says=['tools/run.sh: should be executable', 'empty.cc: missing'])
        with mock.patch.dict(os.environ, STRATA_UPSTREAM='/nowhere'):
            self.bad(says='/nowhere is not a directory')


class OriginalityTest(TreeTest):
    LINES = [f'    line_{n}();' for n in range(10, 18)]

    def test_finding(self):
        text = '\n\n  // between\n'.join(self.LINES).replace('    ', '\t')
        write(self.root / 'db/copied.cc', f'int own;\n{text}\n}}\n')
        self.bad('check', says='db/copied.cc:2 repeats upstream db/numbered.cc:10')
        (self.root / 'db/copied.cc').unlink()
        for path in ('Makefile', 'bench/tool.py', 'CMakeLists.txt', '.ci/run'):
            write(self.root / path, text)
            self.bad('check', says=f'{path}:1 repeats upstream')
            (self.root / path).unlink()

    def test_no_finding(self):
        near = self.LINES[:7] + ['x();'] + self.LINES[:7]
        write(self.root / 'db/near.cc', '\n'.join(near))
        write(self.root / 'docs/text.md', '\n'.join(self.LINES))
        self.good('check')

    def test_patches_may_quote(self):
        self.edit('db/numbered.cc', '\n'.join(map(str.strip, self.LINES)), '')
        self.good()
        self.good('check')


if __name__ == '__main__':
    unittest.main()
