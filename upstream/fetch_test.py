# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Tests of the ways to get upstream."""
import os
import shutil
from unittest import mock

import fetch
from tree_fixture import TreeTest, make_upstream, write


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
                mock.patch.object(fetch, 'CARGOS', ('cargo',))):
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
        with mock.patch.object(fetch, 'CARGOS', ('cargo', 'cargo-new')):
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
