#!/usr/bin/env python3
# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""The base class of tests of scripts that write files."""
import os
import shutil
import tempfile
import unittest


class Temporary(unittest.TestCase):
    def setUp(self):
        self.dir = os.path.realpath(tempfile.mkdtemp(prefix='scripts-'))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def write(self, path, text='', mode=0o644):
        path = os.path.join(self.dir, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'w', encoding='utf-8') as f:
            f.write(text)
        os.chmod(path, mode)
        return path
