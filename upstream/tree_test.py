#!/usr/bin/env python3
# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Runs all tests of tree.py and its modules, or the named ones.

Usage: tree_test.py [unittest arguments]      such as RebaseTest.test_abort
"""
import unittest

from fetch_test import FetchTest
from interruption_test import InterruptionTest
from originality_test import OriginalityTest
from overlay_test import OverlayTest
from patches_test import PatchTest
from rebase_test import RebaseTest
from sync_test import SourceTest

__all__ = ['FetchTest', 'InterruptionTest', 'OriginalityTest', 'OverlayTest',
           'PatchTest', 'RebaseTest', 'SourceTest']

if __name__ == '__main__':
    unittest.main()
