#!/usr/bin/env python3
# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Keeps build/src in step with the pinned upstream, patches/ and the overlay.

build/src is RocksDB as PIN and FILES pin it, with patches/ applied and with the overlay
(the project's own files) linked or copied in. A person may edit build/src, patches/ and
the overlay; a sync brings them together and refuses if two edits exclude each other.
"tree.py --help" lists the commands.

The modules, each of which imports only modules above it:

    problem      messages to the user
    files        reads and replaces single files
    pin          upstream/PIN and upstream/FILES
    fetch        gets a verified tree of the pinned upstream
    git          runs git
    merge        merges three versions of a file
    patches      applies and emits patches/
    overlay      links and copies the project's own files
    source_tree  build/src as a repository
    survey       compares all sides and decides on each file
    sync         writes these decisions
    rebase       moves to another version of upstream
    originality  finds text of upstream in the project's own files
    check        reports, and proves that a commit is sound
    cli          the command line
"""
import sys

from cli import main

if __name__ == '__main__':
    sys.exit(main())
