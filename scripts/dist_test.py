#!/usr/bin/env python3
# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Tests of dist.py on a tiny project, and of the tarball's CMakeLists.txt. No compiler is run."""
import contextlib
import gzip
import hashlib
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import unittest

import dist
from temporary_folder import Temporary
from tree_fixture import TreeTest, write

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
COMMITTED = 1700000000


def text_of(path):
    return (ROOT / path).read_text(encoding='utf-8')


def cmake(*args):
    """The exit status of a cmake and what it printed."""
    run = subprocess.run(['cmake', *map(str, args)], capture_output=True, text=True)
    return run.returncode, run.stdout + run.stderr


def own_version():
    """The version of the repository."""
    return dist.read_version({dist.VERSION: (dist.FILE, (ROOT / dist.VERSION).read_bytes())})


def unknown_options(path):
    """The CMake options in a file of ours that neither RocksDB's CMakeLists.txt nor ours has."""
    if not (ROOT / 'build/src/CMakeLists.txt').exists():
        raise unittest.SkipTest('build/src is not there')
    text = text_of('build/src/CMakeLists.txt') + text_of('cmake/strata.cmake')
    known = set(re.findall(r'(?:option|CMAKE_DEPENDENT_OPTION|set|if\(NOT) ?\(?(\w+)', text))
    used = set(re.findall(r'\b((?:WITH|ROCKSDB|STRATA)_[A-Z0-9_]*[A-Z0-9]|USE_RTTI|PORTABLE'
                          r'|FAIL_ON_WARNINGS)\b', text_of(path)))
    used -= {'STRATA_VERSION', 'STRATA_TESTDATA', 'STRATA_UPSTREAM'}
    assert used, path
    return sorted(used - known)


class DistTest(TreeTest):
    """The fixture's project with a patch and with what dist.py needs, committed."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        top = cls.project
        write(top / dist.VERSION, '#pragma once\n#define STRATA_VERSION "1.2.3"\n')
        write(top / dist.ENTRY, 'add_subdirectory(src)\n')
        write(top / 'LICENSE', 'ours\n')
        write(top / 'README.md', 'read\n')
        write(top / 'docs/page.md', 'page\n')
        write(top / 'scripts/run.sh', '#!/bin/sh\n')
        (top / 'scripts/run.sh').chmod(0o755)
        numbered = top / 'build/src/db/numbered.cc'
        numbered.write_bytes(numbered.read_bytes().replace(b'line_7', b'seven'))
        assert cls.command(top, 'source')[0] == 0
        cls.commit(top)

    @staticmethod
    def commit(top):
        date = f'{COMMITTED} +0300'
        for words in (['add', '-A'], ['-c', 'user.name=A', '-c', 'user.email=a@b', 'commit', '-qm',
                                      'all']):
            subprocess.run(['git', '-C', top, *words], check=True, stdout=subprocess.DEVNULL,
                           env={**os.environ, 'GIT_AUTHOR_DATE': date, 'GIT_COMMITTER_DATE': date})

    def dist(self, *args, root=None, **environ):
        """The exit status of dist.py and what it printed."""
        out = io.StringIO()
        out.reconfigure = lambda **_: None
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            code = dist.main(['--root', str(root or self.root), *args], environ)
        return code, out.getvalue()

    def refused(self, says, *args, **environ):
        code, text = self.dist(*args, **environ)
        self.assertEqual(code, 1, text)
        self.assertIn(says, text)
        self.assertFalse((self.root / 'build/dist').exists())

    def made(self, *args, root=None, **environ):
        """{name: content} of what dist.py wrote."""
        code, text = self.dist(*args, root=root, **environ)
        self.assertEqual(code, 0, text)
        folder = (root or self.root) / 'build/dist'
        return {path.name: path.read_bytes() for path in folder.iterdir()}

    def members(self, data, top):
        """{path below `top`: (TarInfo, content)} of a tarball."""
        with tarfile.open(fileobj=io.BytesIO(data), mode='r:gz') as tar:
            found = {member.name: (member, tar.extractfile(member).read()) for member in tar}
        self.assertEqual([name for name in found if not name.startswith(top + '/')], [])
        return {name[len(top) + 1:]: file for name, file in found.items()}


class Bytes(DistTest):
    def test_the_same_from_another_folder(self):
        """Another clone, without build/src, with other times, permissions and settings."""
        other = self.folder / 'elsewhere' / 'clone'
        subprocess.run(['git', 'clone', '-q', self.root, other], check=True, umask=0o077)
        for number, path in enumerate(sorted(other.rglob('*'))):
            os.utime(path, (number, number))
        write(self.folder / 'home/.gitconfig',
              '[core]\n\tautocrlf = true\n\tfileMode = false\n\tquotePath = false\n')
        made = []
        for root, mask, environ in (
                (self.root, 0o022, {'TZ': 'UTC', 'LC_ALL': 'C'}),
                (other, 0o077, {'TZ': 'Asia/Tokyo', 'LC_ALL': 'C.UTF-8', 'LANG': 'de_DE.UTF-8',
                                'PYTHONHASHSEED': '7', 'HOME': str(self.folder / 'home')})):
            run = subprocess.run([sys.executable, HERE / 'dist.py', '--root', root], umask=mask,
                                 cwd=root, env={**os.environ, **environ}, capture_output=True,
                                 text=True)
            self.assertEqual(run.returncode, 0, run.stderr)
            made.append({path.name: path.read_bytes() for path in (root / 'build/dist').iterdir()})
        self.assertEqual(sorted(made[0]), [
            'strata-1.2.3-recipe.tar.gz', 'strata-1.2.3-recipe.tar.gz.sha256',
            'strata-1.2.3.tar.gz', 'strata-1.2.3.tar.gz.sha256'])
        self.assertEqual(*made)

    def test_nothing_of_the_machine_is_in_a_tarball(self):
        for name, data in self.made().items():
            if name.endswith('.sha256'):
                continue
            self.assertEqual(data[:10], b'\x1f\x8b\x08\x00' + bytes(4) + b'\x02\xff', name)
            with tarfile.open(fileobj=io.BytesIO(data)) as tar:
                members = tar.getmembers()
            names = [os.fsencode(member.name) for member in members]
            self.assertEqual(names, sorted(names))
            self.assertEqual({(member.uid, member.gid, member.uname, member.gname, member.mtime)
                              for member in members}, {(0, 0, '', '', COMMITTED)})
            self.assertEqual({member.mode for member in members}, {0o644, 0o755})
            self.assertTrue(all(member.isfile() for member in members))

    def test_time_from_the_environment(self):
        made = self.made(SOURCE_DATE_EPOCH='12345')
        files = self.members(made['strata-1.2.3.tar.gz'], 'strata-1.2.3')
        self.assertEqual({member.mtime for member, _ in files.values()}, {12345})
        # IMPORTED says when the commit was made, not what the files' time is.
        self.assertIn(b'\ncommitted: 2023-11-14T22:13:20Z\n', files['IMPORTED'][1])

    def test_wrong_time_in_the_environment(self):
        for wrong in ('yesterday', '-1', '1.5', '1' * 12):
            self.refused('SOURCE_DATE_EPOCH', SOURCE_DATE_EPOCH=wrong)

    def test_checksums(self):
        made = self.made()
        for name in ('strata-1.2.3.tar.gz', 'strata-1.2.3-recipe.tar.gz'):
            self.assertEqual(made[f'{name}.sha256'].decode(),
                             f'{hashlib.sha256(made[name]).hexdigest()}  {name}\n')

    def test_the_sum_before_compression(self):
        _, text = self.dist()
        data = (self.root / 'build/dist/strata-1.2.3.tar.gz').read_bytes()
        self.assertIn(hashlib.sha256(gzip.decompress(data)).hexdigest(), text)

    def test_long_names(self):
        deep = '/'.join(['folder-with-a-long-name'] * 12) + '/file'
        files = {deep: (dist.FILE, b'deep'), 'b\u00fccher': (dist.EXECUTABLE, b'')}
        found = self.members(dist.compress(dist.make_tar('top', files, 1)), 'top')
        self.assertEqual({path: data for path, (_, data) in found.items()},
                         {deep: b'deep', 'b\u00fccher': b''})


class Contents(DistTest):
    def test_complete(self):
        files = self.members(self.made()['strata-1.2.3.tar.gz'], 'strata-1.2.3')
        tree = {f'src/{path.relative_to(self.src)}': path for path in self.src.rglob('*')
                if path.is_file() and '.git' not in path.relative_to(self.src).parts}
        rest = {'CMakeLists.txt': self.root / dist.ENTRY}
        for name in ('LICENSE', 'README.md', 'docs/page.md', 'patches/db/numbered.cc.patch',
                     'upstream/FILES', 'upstream/PIN'):
            rest[name] = self.root / name
        self.assertIn('src/db/ours.cc', tree)
        self.assertIn('src/include/tiny/ours.h', tree)
        self.assertEqual(sorted(files), sorted([*tree, *rest, 'IMPORTED']))
        for name, path in {**tree, **rest}.items():
            member, data = files[name]
            self.assertEqual(data, path.read_bytes(), name)
            self.assertEqual(member.mode == 0o755, os.access(path, os.X_OK), name)
        self.assertIn(b'seven', files['src/db/numbered.cc'][1])

    def test_imported(self):
        files = self.members(self.made()['strata-1.2.3.tar.gz'], 'strata-1.2.3')
        note = files['IMPORTED'][1].decode()
        head = self.git('rev-parse', 'HEAD', top=self.root).strip()
        for line in ('version: 1.2.3', f'commit: {head}',
                     'upstream package: tiny-sys 1.0.0+7.0.0 (crates.io), folder tiny',
                     'Files of RocksDB that Strata has changed: 1\n  src/db/numbered.cc',
                     'Files that Strata has added: 2\n  src/db/ours.cc\n  src/include/tiny/ours.h'):
            self.assertIn(f'{line}\n', note)

    def test_the_command_in_imported_names_the_changed_files(self):
        data = self.made()['strata-1.2.3.tar.gz']
        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            tar.extractall(self.folder)
        top = self.folder / 'strata-1.2.3'
        command = re.search(r'^  (awk .*)$', (top / 'IMPORTED').read_text(), re.M)[1]
        # The fixture has a name with a space, of which this awk takes the first word alone.
        sums = (top / 'upstream/FILES').read_text().split('\n')
        (top / 'upstream/FILES').write_text('\n'.join(s for s in sums if s.count(' ') < 3))
        run = subprocess.run(command, shell=True, cwd=top, capture_output=True, text=True,
                             env={**os.environ, 'LC_ALL': 'C'})
        self.assertEqual(run.stdout, 'src/db/numbered.cc: FAILED\n')

    def test_upstream_has_no_name_that_the_command_would_cut(self):
        self.assertEqual([line for line in text_of('upstream/FILES').splitlines()
                          if line.count(' ') != 2], [])

    def test_removed_files_are_named(self):
        (self.src / 'db/empty.cc').unlink()
        self.good()
        self.commit(self.root)
        files = self.members(self.made()['strata-1.2.3.tar.gz'], 'strata-1.2.3')
        self.assertNotIn('src/db/empty.cc', files)
        self.assertIn(b'  src/db/empty.cc (removed)\n', files['IMPORTED'][1])

    def test_recipe(self):
        files = self.members(self.made()['strata-1.2.3-recipe.tar.gz'], 'strata-1.2.3-recipe')
        tracked = self.git('ls-files', '-z', top=self.root).split('\0')[:-1]
        self.assertEqual(sorted(files), sorted([*tracked, 'RECIPE']))
        for name in tracked:
            self.assertEqual(files[name][1], (self.root / name).read_bytes(), name)
        note = files['RECIPE'][1].decode()
        self.assertIn('\nversion: 1.2.3\n', note)
        self.assertIn('"cargo info tiny-sys@1.0.0"', note)
        self.assertIn('STRATA_UPSTREAM=/path/to/tiny-sys-1.0.0+7.0.0/tiny\n', note)

    def test_the_recipe_makes_the_complete_tree(self):
        made = self.made()
        with tarfile.open(fileobj=io.BytesIO(made['strata-1.2.3-recipe.tar.gz'])) as tar:
            tar.extractall(self.folder)
        root = self.folder / 'strata-1.2.3-recipe'
        code, text = self.command(root, 'source')
        self.assertEqual(code, 0, text)
        files = self.members(made['strata-1.2.3.tar.gz'], 'strata-1.2.3')
        for name, (_, data) in files.items():
            if name.startswith('src/'):
                self.assertEqual((root / 'build' / name).read_bytes(), data, name)


class Refusals(DistTest):
    def test_changes_that_are_not_committed(self):
        for change, says in (
                (lambda: write(self.root / 'LICENSE', 'other\n'), 'LICENSE: not committed'),
                (lambda: write(self.root / 'new.txt', ''), 'new.txt: not committed'),
                (lambda: (self.root / 'docs/page.md').unlink(), 'docs/page.md: not committed'),
                (lambda: (self.root / 'scripts/run.sh').chmod(0o644),
                 'scripts/run.sh: not committed'),
                (lambda: self.patch().unlink(), 'patches/db/numbered.cc.patch: not committed'),
                (lambda: write(self.root / 'db/ours.cc', 'int other;\n'),
                 'db/ours.cc: not committed')):
            with self.subTest(says):
                change()
                self.refused(says)
                subprocess.run(['git', '-C', self.root, 'reset', '-q', '--hard'], check=True)
                subprocess.run(['git', '-C', self.root, 'clean', '-qfd'], check=True)
        self.made()

    def test_staged_changes_are_not_committed(self):
        write(self.root / 'LICENSE', 'other\n')
        self.git('add', 'LICENSE', top=self.root)
        self.refused('LICENSE: not committed')

    def test_edits_in_the_tree(self):
        self.edit('db/numbered.cc', 'line_9', 'nine')
        before = self.patch().read_bytes()
        self.refused('build/src/db/numbered.cc: edited')
        self.assertEqual(self.patch().read_bytes(), before)

    def test_edits_of_a_copied_header(self):
        self.edit('include/tiny/ours.h', 'a();', 'z();')
        self.refused('build/src/include/tiny/ours.h: edited')

    def test_files_that_belong_nowhere(self):
        write(self.src / 'db/stray.cc', '')
        self.refused('db/stray.cc')
        self.refused('db/stray.cc', '--dirty')

    def test_conflicts(self):
        self.patch_made_elsewhere('db/numbered.cc', 'line_20', 'theirs')
        self.edit('db/numbered.cc', 'line_20', 'mine')
        self.refused('exclude each other', '--dirty')

    def test_without_git(self):
        shutil.rmtree(self.root / '.git')
        self.refused('not a git checkout', '--dirty')

    def test_without_a_commit(self):
        shutil.rmtree(self.root / '.git')
        subprocess.run(['git', 'init', '-q', self.root], check=True)
        self.refused('no commit', '--dirty')

    def test_links(self):
        (self.root / 'docs/link.md').symlink_to('page.md')
        self.commit(self.root)
        self.refused('docs/link.md is not a regular file')

    def test_without_a_version(self):
        write(self.root / dist.VERSION, '#define STRATA_VERSION "next"\n')
        self.commit(self.root)
        self.refused(dist.VERSION)

    def test_without_the_entry_point(self):
        (self.root / dist.ENTRY).unlink()
        self.commit(self.root)
        self.refused(dist.ENTRY)

    def test_what_is_no_change(self):
        write(self.root / 'db/ours.o', 'ignored')
        write(self.root / 'db/.ours.cc.swp', 'of an editor')
        (self.root / 'LICENSE').touch()
        (self.src / 'db/numbered.cc').touch()
        self.assertIn('strata-1.2.3.tar.gz', self.made())

    def test_dirty(self):
        write(self.root / 'docs/new.md', 'new')
        self.edit('db/numbered.cc', 'line_9', 'nine')
        self.edit('include/tiny/ours.h', 'a();', 'z();')
        made = self.made('--dirty')
        self.assertEqual(sorted(made)[2:], ['strata-1.2.3-dirty.tar.gz',
                                            'strata-1.2.3-dirty.tar.gz.sha256'])
        files = self.members(made['strata-1.2.3-dirty.tar.gz'], 'strata-1.2.3-dirty')
        self.assertEqual(files['docs/new.md'][1], b'new')
        self.assertIn(b'nine', files['src/db/numbered.cc'][1])
        self.assertIn(b'z();', files['src/include/tiny/ours.h'][1])
        self.assertRegex(files['IMPORTED'][1].decode(), r'\nversion: 1\.2\.3-dirty\n'
                                                        r'commit: [0-9a-f]{40}, with changes\n')

    def test_dirty_without_changes_is_clean(self):
        self.assertIn('strata-1.2.3.tar.gz', self.made('--dirty'))


class Project(unittest.TestCase):
    """What the repository itself has."""

    def test_the_readme_has_the_version(self):
        self.assertIn(f'\nVersion {own_version()}; ', text_of('README.md'))

    def test_what_is_kept_exists(self):
        self.assertEqual([name for name in dist.KEPT if not (ROOT / name).exists()], [])
        self.assertTrue((ROOT / dist.ENTRY).is_file())

    def test_what_is_kept(self):
        for path, want in (('LICENSE', True), ('LICENSE.md', False), ('docs/page.md', True),
                           ('docs', False), ('bench/README.md', False), (dist.ENTRY, False),
                           ('upstream/PIN', True), ('upstream/tree.py', False)):
            self.assertEqual(dist.kept(path), want, path)

    def test_options_of_the_entry_point_exist(self):
        for path in (dist.ENTRY, 'docs/packaging.md'):
            self.assertEqual(unknown_options(path), [])

    def test_the_tree_refers_to_nothing_above_it(self):
        """Strata's CMake files ask for scripts of the project, which a tarball does not have."""
        for path in sorted((ROOT / 'cmake').glob('strata*.cmake')):
            for line in path.read_text(encoding='utf-8').splitlines():
                if 'scripts/' in line and not line.lstrip().startswith('#'):
                    self.assertRegex(line, r'if\(home AND EXISTS "\$\{home\}/|COMMAND python3 '
                                           r'"\$\{home\}/', path.name)


@unittest.skipUnless(shutil.which('cmake'), 'cmake is not installed')
class EntryPoint(Temporary):
    """The CMakeLists.txt of the complete source, over a tree without languages."""

    SHOW = 'BUILD_TYPE INSTALL_PREFIX_INITIALIZED_TO_DEFAULT FIND_PACKAGE_TARGETS_GLOBAL'.split()

    def setUp(self):
        super().setUp()
        self.top = pathlib.Path(self.dir, 'strata')
        write(self.top / 'CMakeLists.txt', text_of(dist.ENTRY))
        write(self.top / 'src/util/strata/strata_version.h', text_of(dist.VERSION))
        # As in RocksDB's file: an older policy, options, a choice for the whole project.
        write(self.top / 'src/CMakeLists.txt', (
            'cmake_minimum_required(VERSION 3.12)\n'
            'project(rocksdb LANGUAGES NONE)\n'
            'if(NOT CMAKE_BUILD_TYPE)\n'
            '  set(CMAKE_BUILD_TYPE Debug CACHE STRING "" FORCE)\n'
            'endif()\n'
            'option(WITH_BZ2 "" OFF)\noption(WITH_TESTS "" ON)\n'
            'set(PORTABLE 0 CACHE STRING "")\n'
            'add_library(rocksdb INTERFACE)\nadd_library(rocksdb-shared INTERFACE)\n'
            'message(STATUS "src: ${CMAKE_BUILD_TYPE} ${WITH_BZ2} ${WITH_TESTS} ${PORTABLE} '
            '${CMAKE_INSTALL_PREFIX_INITIALIZED_TO_DEFAULT} ${CMAKE_FIND_PACKAGE_TARGETS_GLOBAL} '
            '${strata_VERSION}")\n'))

    def configure(self, top, *args):
        code, text = cmake('-S', top, '-B', os.path.join(self.dir, 'out'), *args)
        self.assertEqual(code, 0, text)
        self.assertNotIn('Warning', text)
        return {key: line for key, line in re.findall(r'^-- (src|parent): (.*)$', text, re.M)}

    def test_alone(self):
        found = self.configure(self.top)
        self.assertEqual(found['src'], f'Release ON OFF 1 FALSE  {own_version()}')

    def test_what_is_given_wins(self):
        found = self.configure(self.top, '-DWITH_BZ2=OFF', '-DWITH_TESTS=ON', '-DPORTABLE=haswell',
                               '-DCMAKE_BUILD_TYPE=Debug')
        self.assertEqual(found['src'], f'Debug OFF ON haswell FALSE  {own_version()}')

    def parent(self, text):
        top = os.path.join(self.dir, 'parent')
        write(pathlib.Path(top, 'CMakeLists.txt'), (
            f'cmake_minimum_required(VERSION 3.24)\nproject(parent LANGUAGES NONE)\n{text}\n'
            'if(NOT TARGET RocksDB::rocksdb OR NOT TARGET RocksDB::rocksdb-shared)\n'
            '  message(FATAL_ERROR "no targets")\nendif()\n'
            'message(STATUS "parent: \'${CMAKE_BUILD_TYPE}\' ${CMAKE_INSTALL_PREFIX} '
            '${CMAKE_FIND_PACKAGE_TARGETS_GLOBAL}")\n'))
        return top

    def test_in_another_project(self):
        """Normal variables count, and the parent's settings stay."""
        found = self.configure(self.parent(
            f'set(WITH_BZ2 OFF)\nset(PORTABLE haswell)\nadd_subdirectory({self.top} strata)'))
        self.assertEqual(found['src'], f'Release OFF OFF haswell FALSE ON {own_version()}')
        self.assertEqual(found['parent'], "'' /usr/local ")

    def test_the_documented_snippet(self):
        files = {str(path.relative_to(self.top)): (dist.FILE, path.read_bytes())
                 for path in self.top.rglob('*') if path.is_file()}
        data = dist.compress(dist.make_tar('strata-1.2.3', files, 1))
        archive = pathlib.Path(self.dir, 'strata-1.2.3.tar.gz')
        write(archive, data)
        snippet = re.search(r'```cmake\n(include\(FetchContent\)\n.*?)```',
                            text_of('docs/packaging.md'), re.S)[1]
        snippet, urls = re.subn(r'URL \S+', f'URL {archive}', snippet)
        snippet, sums = re.subn(r'SHA256=[^)\s]*', f'SHA256={hashlib.sha256(data).hexdigest()}',
                                snippet)
        self.assertEqual((urls, sums), (1, 1))
        # A library without files can stand for the program, if it passes on what it links.
        text = 'add_library(program INTERFACE)\n' + snippet.replace(' PRIVATE ', ' INTERFACE ')
        found = self.configure(self.parent(text))
        self.assertTrue(found['src'].startswith('Release OFF '), found)
        self.assertTrue(found['parent'].startswith("'' "), found)


if __name__ == '__main__':
    unittest.main()
