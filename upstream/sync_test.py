# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Tests of a sync: edits in build/src and in patches/, and git under any settings."""
import os
import shutil
import time
from unittest import mock

import survey
from files import entry_of, walk
from patches import patch_ids
from tree_fixture import NUMBERED, UPSTREAM, TreeTest, make_upstream, write


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
                  for path in walk(self.root) if '/.' not in path}
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
        self.assertFalse(self.patches.exists() and walk(self.patches))

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
        ids = patch_ids(self.patch().read_bytes())
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
        self.assertEqual(set(walk(self.patches)), {f'{p}.patch' for p in changed})
        self.assert_in_step()
        fresh = self.folder / 'fresh'
        shutil.copytree(self.bare, fresh, symlinks=True)
        shutil.copytree(self.patches, fresh / 'patches')
        self.assertEqual(self.command(fresh, 'source')[0], 0)
        for path in changed - {'include/tiny/options.h'}:
            self.assertEqual(entry_of(fresh / 'build/src' / path),
                             entry_of(self.src / path))
        self.assertFalse((fresh / 'build/src/include/tiny/options.h').exists())

    def test_no_mass_deletion(self):
        with mock.patch.object(survey, 'MAX_DELETIONS', 3):
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
        """A commit made by hand may be subject to .gitattributes and .gitignore."""
        shutil.rmtree(self.src)
        shutil.copytree(self.kit / 'upstream', self.src)
        (self.src / 'cmake/find.cmake').rename(self.folder / 'find.cmake')
        self.git('init', '-q')
        self.git('add', '-A')
        self.git('-c', 'user.name=n', '-c', 'user.email=e', 'commit', '-qm', 'pristine')
        (self.folder / 'find.cmake').rename(self.src / 'cmake/find.cmake')
        self.edit('db/numbered.cc', 'line_7()', 'line_7(1)')
        self.good()
        self.assertEqual(walk(self.patches), ['db/numbered.cc.patch'])
        self.assert_in_step()

    def test_pin_moved_by_a_pull(self):
        """Another clone rebased and pushed; this clone has edits of its own."""
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
        self.assertEqual(walk(folder), sorted(UPSTREAM))
        with mock.patch.dict(os.environ, STRATA_UPSTREAM='/nowhere'):
            self.assertEqual(self.good('pristine'), '')  # needs no upstream any more
        old = (folder / 'db/numbered.cc').stat().st_mtime_ns
        write(folder / 'db/crlf.cc', 'one\n')
        (folder / 'tools/run.sh').chmod(0o644)
        self.assertIn('2 files', self.good('pristine'))
        self.assertEqual((folder / 'db/crlf.cc').read_bytes(), UPSTREAM['db/crlf.cc'])
        self.assertTrue(os.access(folder / 'tools/run.sh', os.X_OK))
        self.assertEqual((folder / 'db/numbered.cc').stat().st_mtime_ns, old)
