# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Messages for the user, and the exception that carries an error message.

This module relies on the standard library alone; all other modules use it.
"""
import sys


class Problem(Exception):
    """An error that the user can act on: the text names the cause and a remedy."""


def listed(names, limit=20):
    """The sorted names, one per indented line; beyond `limit` they are only counted."""
    names = sorted(names)
    more = [f'... and {len(names) - limit} more'] if len(names) > limit else []
    return ''.join(f'\n  {name}' for name in names[:limit] + more)


def note(text):
    """Prints a progress message."""
    print(f'tree: {text}', file=sys.stderr)
