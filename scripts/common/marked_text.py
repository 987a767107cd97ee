# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Puts what a script has measured into a page of the documentation, between two markers."""
import os


def replace(path, begin, end, text):
    """Replaces what stands between the lines `begin` and `end` in the file `path`."""
    with open(path, encoding='utf-8') as f:
        page = f.read()
    if page.count(begin) != 1 or page.count(end) != 1:
        raise SystemExit(f'{path}: "{begin}" and "{end}" must be there once each')
    head, tail = page.split(begin)[0], page.split(end)[1]
    with open(path + '.tmp', 'w', encoding='utf-8') as f:
        f.write(f'{head}{begin}\n\n{text}\n{end}{tail}')
    os.replace(path + '.tmp', path)
