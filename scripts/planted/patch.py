# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""A planted bug: the patch, what it says about itself, and how it is applied.

A patch is applied by its text: the context and the removed lines of each hunk must occur exactly
once in the file. The line numbers of a hunk are for readers and for other tools, so a patch
outlives changes elsewhere in the file, and is an error when the code that it changes has changed.
"""
import dataclasses
import difflib
import fnmatch
import os
import re

FOLDER = os.path.join('testdata', 'planted_bugs')

# The first word of a patch's name -> the area's title. The table has this order.
AREAS = {
    'map': 'Address map',
    'image': 'Checkpoint of the map, recovery',
    'index': 'Record index, blob files',
    'gc': 'Blob garbage collection',
    'sort': 'Values sorted for scans',
    'bypass': 'LSM bypass',
    'get': 'Point reads, MultiGet',
    'iter': 'Iterators, snapshots',
    'delta': 'Delta files, buckets, reads',
    'fold': 'Collection, merge, fold and drain of deltas',
    'merged': 'Merged-value cache',
    'path': 'Per-level paths',
    'copy': 'Checkpoints and restores in several directories',
    'wal': 'WAL buffer, write groups',
    'manifest': 'MANIFEST records, undo after failed installs',
    'sync': 'Syncs',
    'files': 'Obsolete files, ingestion',
    'repair': 'Repair, resume',
    'options': 'Options checks',
    'ldb': 'ldb commands',
}
HEAD = ('What', 'Effect', 'Tests')
# Lines of context: one, or more where one does not tell the place.
CONTEXT = range(1, 10)


class PatchError(Exception):
    """A patch is wrong; the message says which and why."""


@dataclasses.dataclass(frozen=True)
class Program:
    """A test program, or some of its cases."""
    name: str
    filter: str = ''

    def __str__(self):
        return self.name + (f':{self.filter}' if self.filter else '')

    @staticmethod
    def parse(text):
        name, _, pattern = text.partition(':')
        return Program(name, pattern)


@dataclasses.dataclass(frozen=True)
class Bug:
    """One patch. `hunks` are pairs of lists of lines: what the file has, and what it gets."""
    name: str
    what: str
    effect: str
    tests: tuple
    path: str
    hunks: tuple
    text: str

    @property
    def area(self):
        return self.name.split('-')[0]

    def apply(self, text):
        """The text of the file with the bug. Raises PatchError unless each hunk fits at exactly
        one place."""
        lines = text.split('\n')
        places = []
        for number, (before, after) in enumerate(self.hunks, 1):
            found = [i for i in range(len(lines) - len(before) + 1)
                     if lines[i:i + len(before)] == before]
            if len(found) != 1:
                where = 'nowhere' if not found else f'at {len(found)} places'
                raise PatchError(f'{self.name}: hunk {number} fits {where} in {self.path}')
            places.append((found[0], before, after))
        places.sort(key=lambda place: place[0])
        for (first, before, _), (second, _, _) in zip(places, places[1:]):
            if first + len(before) > second:
                raise PatchError(f'{self.name}: two hunks overlap in {self.path}')
        for place, before, after in reversed(places):
            lines[place:place + len(before)] = after
        return '\n'.join(lines)

    def applied(self, root):
        """The edited text of the file below `root`."""
        try:
            with open(os.path.join(root, self.path), encoding='utf-8') as f:
                text = f.read()
        except OSError as e:
            raise PatchError(f'{self.name}: {e}') from e
        edited = self.apply(text)
        if edited == text:
            raise PatchError(f'{self.name}: the patch changes nothing')
        return edited


def parse_head(name, lines):
    """({key of HEAD: text}, index of the first line after the head)."""
    values, key, at = {}, None, 0
    while at < len(lines) and lines[at].startswith('#'):
        found = re.fullmatch(r'# (\w+): (\S.*)', lines[at])
        if found and found.group(1) in HEAD:
            key = found.group(1)
            if key in values:
                raise PatchError(f'{name}: two lines "# {key}:"')
            values[key] = found.group(2).strip()
        elif key and re.fullmatch(r'#   \S.*', lines[at]):
            values[key] += ' ' + lines[at][1:].strip()
        else:
            raise PatchError(f'{name}: line {at + 1} of the head is neither '
                             f'"# {"|".join(HEAD)}: ..." nor "#   ..."')
        at += 1
    missing = [key for key in HEAD if key not in values]
    if missing:
        raise PatchError(f'{name}: the head has no "# {missing[0]}:"')
    for key in ('What', 'Effect'):
        if not re.fullmatch(r'[A-Z`].*[^.]\.', values[key]):
            raise PatchError(f'{name}: "# {key}:" is not a sentence')
    return values, at


def parse_hunks(name, lines):
    """The hunks in the lines that follow "+++"."""
    hunks = []
    for line in lines:
        if line.startswith('@@'):
            hunks.append(([], []))
        elif not hunks:
            raise PatchError(f'{name}: "{line}" stands ahead of the first hunk')
        elif line[:1] in (' ', '-', '+'):
            before, after = hunks[-1]
            if line[0] != '+':
                before.append(line[1:])
            if line[0] != '-':
                after.append(line[1:])
        else:
            raise PatchError(f'{name}: "{line}" is no line of a hunk')
    if not hunks:
        raise PatchError(f'{name}: there is no hunk')
    for before, after in hunks:
        if not before or before == after:
            raise PatchError(f'{name}: a hunk has no lines to find, or changes nothing')
    return tuple(hunks)


def parse(name, text):
    """The Bug of a patch file's text. Raises PatchError."""
    if not re.fullmatch(r'[a-z]+(-[a-z0-9]+)+', name):
        raise PatchError(f'{name}: a name is AREA-WORDS, in small letters, digits and hyphens')
    if name.split('-')[0] not in AREAS:
        raise PatchError(f'{name}: the areas are {" ".join(AREAS)}')
    if not text.endswith('\n'):
        raise PatchError(f'{name}: the last line has no end')
    lines = text[:-1].split('\n')
    head, at = parse_head(name, lines)
    old, new = (re.fullmatch(pattern, line) for pattern, line in
                zip((r'--- a/(\S+)', r'\+\+\+ b/(\S+)'), [*lines[at:at + 2], '', '']))
    if not old or not new or old.group(1) != new.group(1):
        raise PatchError(f'{name}: after the head come "--- a/PATH" and "+++ b/PATH"')
    tests = tuple(Program.parse(word) for word in head['Tests'].split())
    return Bug(name=name, what=head['What'], effect=head['Effect'], tests=tests,
               path=old.group(1), hunks=parse_hunks(name, lines[at + 2:]), text=text)


def load(root, names=()):
    """All planted bugs of the project at `root`, or those that `names` (which may have * in them)
    name, by area and name. Raises PatchError."""
    folder = os.path.join(root, FOLDER)
    files = os.listdir(folder) if os.path.isdir(folder) else []
    found = sorted(f[:-len('.patch')] for f in files if f.endswith('.patch'))
    wrong = [n for n in names if not fnmatch.filter(found, n)]
    if wrong:
        raise PatchError(f'no such planted bug: {" ".join(wrong)}')
    bugs = []
    for name in found:
        if names and not any(fnmatch.fnmatch(name, n) for n in names):
            continue
        with open(os.path.join(folder, name + '.patch'), encoding='utf-8') as f:
            bugs.append(parse(name, f.read()))
    order = list(AREAS)
    return sorted(bugs, key=lambda bug: (order.index(bug.area), bug.name))


def make(name, head, path, old, new):
    """The text of a patch that changes `old` into `new`. `head` has the three lines of a patch's
    head. Raises PatchError."""
    error = PatchError(f'{name}: the edit changes nothing')
    for context in CONTEXT:
        diff = difflib.unified_diff(old.split('\n'), new.split('\n'), f'a/{path}', f'b/{path}',
                                    n=context, lineterm='')
        text = head + ''.join(line + '\n' for line in diff)
        try:
            if parse(name, text).apply(old) == new:
                return text
        except PatchError as e:
            error = e
    raise error
