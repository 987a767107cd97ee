# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Reads gcov's JSON, and adds up the counts of the objects that have code of the same source."""
import concurrent.futures
import dataclasses
import json
import os
import re
import subprocess

OBJECTS_PER_CALL = 8
# What gcov says on stderr of counts that it cannot read, because a process was killed while it
# wrote them, or because the object was compiled again. They count as zero.
LOST_COUNTS = re.compile(r'^.*:(?:stamp mismatch|profile mismatch|unknown function|not a gcov data|'
                         r'corrupted|overflowed).*$', re.M)
OTHER_VERSION = re.compile(r"^.*:version '.*$", re.M)


class Problem(Exception):
    """Counts cannot be read; the message says why."""


@dataclasses.dataclass
class Function:
    name: str
    first: int  # line
    last: int
    count: int = 0


@dataclasses.dataclass
class FileCounts:
    """The counts of one source.

    Instances of a template, and the copies of an inline function in several objects, begin at the
    same place, so they are one function. Their branches are the same, too, and are added up one by
    one. Instances that have another number of branches, for instance because of `if constexpr`, are
    kept apart."""
    lines: dict = dataclasses.field(default_factory=dict)      # line -> count
    functions: dict = dataclasses.field(default_factory=dict)  # (line, column) -> Function
    # (line, (line, column) of the function, number of branches) -> [count]
    branches: dict = dataclasses.field(default_factory=dict)

    def add(self, functions, lines):
        """Adds what the JSON of one object says of this source."""
        places = {}
        for f in functions:
            place = (f['start_line'], f['start_column'])
            places[f['name']] = place
            known = self.functions.setdefault(
                place, Function(f['demangled_name'], f['start_line'], f['end_line']))
            known.count += f['execution_count']
        for line in lines:
            number = line['line_number']
            self.lines[number] = self.lines.get(number, 0) + line['count']
            counts = real_branches(line['branches'])
            if counts:
                key = (number, places.get(line.get('function_name')), len(counts))
                known = self.branches.setdefault(key, [0] * len(counts))
                for i, count in enumerate(counts):
                    known[i] += count

    def merge(self, other):
        for line, count in other.lines.items():
            self.lines[line] = self.lines.get(line, 0) + count
        for place, f in other.functions.items():
            known = self.functions.setdefault(place, dataclasses.replace(f, count=0))
            known.count += f.count
        for key, counts in other.branches.items():
            known = self.branches.setdefault(key, [0] * len(counts))
            for i, count in enumerate(counts):
                known[i] += count


def real_branches(branches):
    """The counts of a line's branches, without those of calls that may throw. Such a call has two
    ways out, one after the other: on, and to what is done for an exception."""
    counts, i = [], 0
    while i < len(branches):
        this, after = branches[i], branches[i + 1] if i + 1 < len(branches) else None
        if this['throw']:
            i += 2 if after and after['fallthrough'] else 1
        elif after and after['throw'] and this['fallthrough']:
            i += 2
        else:
            counts.append(this['count'])
            i += 1
    return counts


class Paths:
    """Says which source of ours a name in gcov's JSON means."""

    def __init__(self, root):
        self.root = os.path.realpath(root)
        self.known = {}

    def own(self, folder, name):
        """The path of our source below the root, or None. The tree in build/src has links to our
        sources, or copies of them, so the same one has several names."""
        path = os.path.join(folder, name)
        if path not in self.known:
            self.known[path] = self.find(os.path.realpath(path))
        return self.known[path]

    def find(self, path):
        relative = os.path.relpath(path, self.root).replace(os.sep, '/')
        if relative.startswith('build/src/'):
            relative = relative[len('build/src/'):]
        if relative.startswith(('../', 'build/')) or \
                not os.path.isfile(os.path.join(self.root, relative)):
            return None
        return relative


def read_json(text, paths, into):
    """Adds gcov's output, one JSON document per line, to `into`: {path: FileCounts}. Returns the
    number of documents."""
    documents = 0
    for line in text.splitlines():
        if not line.strip():
            continue
        document = json.loads(line)
        documents += 1
        for file in document['files']:
            path = paths.own(document['current_working_directory'], file['file'])
            if path is not None:
                into.setdefault(path, FileCounts()).add(file['functions'], file['lines'])
    return documents


def run_gcov(gcov, notes, paths):
    """({path: FileCounts}, [complaint]) of the objects whose notes (.gcno) are given."""
    try:
        run = subprocess.run([gcov, '--json-format', '--branch-probabilities', '--stdout', *notes],
                             stdin=subprocess.DEVNULL, capture_output=True, text=True,
                             errors='replace')
    except OSError as e:
        raise Problem(f'{gcov}: {e.strerror}') from e
    other = OTHER_VERSION.search(run.stderr)
    if run.returncode or other:
        what = other.group() if other else run.stderr.strip() or f'exit code {run.returncode}'
        raise Problem(f'{gcov}: {what}')
    found = {}
    try:
        documents = read_json(run.stdout, paths, found)
    except (ValueError, KeyError) as e:
        raise Problem(f'{gcov}: output that is not JSON of a known format: {e!r}') from e
    if documents != len(notes):
        raise Problem(f'{gcov}: {documents} of {len(notes)} objects were read: '
                      f'{run.stderr.strip()}')
    return found, LOST_COUNTS.findall(run.stderr)


def read(gcov, notes, root, jobs):
    """({path of a source of ours: FileCounts}, [complaint]) of all objects together."""
    paths = Paths(root)
    batches = [notes[i:i + OBJECTS_PER_CALL] for i in range(0, len(notes), OBJECTS_PER_CALL)]
    total, complaints = {}, []
    with concurrent.futures.ThreadPoolExecutor(max(jobs, 1)) as pool:
        for found, lost in pool.map(lambda batch: run_gcov(gcov, batch, paths), batches):
            complaints += lost
            for path, counts in found.items():
                total.setdefault(path, FileCounts()).merge(counts)
    return total, complaints
