# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Tests of the bench: python3 -m unittest discover -s bench -t bench."""
