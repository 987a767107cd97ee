# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""What coverage says: the report, the numbers as a table of tabs, and the table of the docs."""
import dataclasses
import os

from . import source

BEGIN = '<!-- The table of coverage. "scripts/coverage.py table" writes it. -->'
END = '<!-- The end of the table of coverage. -->'
NUMBERS = ('lines', 'lines_run', 'branches', 'branches_taken', 'functions', 'functions_called')
FIELDS = ('kind', 'path', 'files', *NUMBERS)
WIDTH = 100     # columns of what is quoted from a source


@dataclasses.dataclass
class Numbers:
    """Of a file, of a folder, or of all."""
    files: int = 0
    lines: int = 0
    lines_run: int = 0
    branches: int = 0
    branches_taken: int = 0
    functions: int = 0
    functions_called: int = 0

    def add(self, other):
        for field in dataclasses.fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))


@dataclasses.dataclass
class Result:
    """What is counted of a file, and what of it did not run."""
    path: str
    numbers: Numbers
    text: list                                                  # its lines
    uncalled: list = dataclasses.field(default_factory=list)    # [Function]
    not_run: list = dataclasses.field(default_factory=list)     # lines of called functions
    not_taken: list = dataclasses.field(default_factory=list)   # [(line, not taken, all)]


def innermost(functions, line):
    """The function that begins last among those that have this line."""
    around = [place for place, f in functions.items() if f.first <= line <= f.last]
    return max(around, default=None)


def evaluate(path, text, counts):
    """The Result of a file from its text and its FileCounts."""
    skip = source.exclusions(text)
    result = Result(path, Numbers(files=1), text.split('\n'))
    numbers = result.numbers
    dead = {innermost(counts.functions, line) for line in skip.dead_bodies}
    uncalled_lines, skipped_lines = set(), set(skip.lines)
    for place, f in sorted(counts.functions.items()):
        if place in dead:
            skipped_lines.update(range(f.first, f.last + 1))
        elif f.first not in skip.defaulted:
            numbers.functions += 1
            numbers.functions_called += f.count > 0
            if not f.count:
                result.uncalled.append(f)
                uncalled_lines.update(range(f.first, f.last + 1))
    for line, count in sorted(counts.lines.items()):
        if line not in skipped_lines and line not in skip.defaulted:
            numbers.lines += 1
            numbers.lines_run += count > 0
            if not count and line not in uncalled_lines:
                result.not_run.append(line)
    for line, missed, total in branches_of(counts, skip, skipped_lines):
        numbers.branches += total
        numbers.branches_taken += total - missed
        if missed and counts.lines.get(line):
            result.not_taken.append((line, missed, total))
    return result


def branches_of(counts, skip, skipped_lines):
    """[(line, number of branches not taken, number of branches)] of a file, each line once."""
    missed = {}     # key -> number
    for key, taken in counts.branches.items():
        if key[0] not in skipped_lines and key[0] not in skip.branches:
            missed[key] = sum(1 for count in taken if not count)
    totals = {key: key[2] for key in missed}
    for first, last in skip.dead_branches:
        # Each instance of a template has its own. It is the last condition that leads there.
        for function in {key[1] for key in missed if first <= key[0] <= last}:
            keys = [k for k in missed if k[1] == function and first <= k[0] <= last and missed[k]]
            if keys:
                totals[max(keys)] -= 1
                missed[max(keys)] -= 1
    lines = {}
    for key, total in totals.items():
        known = lines.setdefault(key[0], [0, 0])
        known[0] += missed[key]
        known[1] += total
    return [(line, *pair) for line, pair in sorted(lines.items())]


def by_folder(results):
    """{folder: Numbers}, in the order of the names."""
    folders = {}
    for result in results:
        folders.setdefault(os.path.dirname(result.path), Numbers()).add(result.numbers)
    return dict(sorted(folders.items()))


def total_of(results):
    total = Numbers()
    for result in results:
        total.add(result.numbers)
    return total


def percent(part, whole):
    """Never 100 if something is missing."""
    if not whole:
        return '-'
    text = f'{100 * part / whole:.1f}'
    return '99.9' if text == '100.0' and part < whole else text


def ranges(lines, there):
    """[(first, last)] of lines in order; lines without code between them, which are not in `there`,
    do not part them."""
    found = []
    for line in lines:
        if found and not any(n in there for n in range(found[-1][1] + 1, line)):
            found[-1][1] = line
        else:
            found.append([line, line])
    return [tuple(pair) for pair in found]


def quote(result, line):
    text = result.text[line - 1].strip() if line <= len(result.text) else ''
    return text if len(text) <= WIDTH else text[:WIDTH - 3] + '...'


def row(name, n):
    return (f'{name:<58} {n.lines_run:>7}/{n.lines:<7} {percent(n.lines_run, n.lines):>5} '
            f'{n.branches_taken:>7}/{n.branches:<7} {percent(n.branches_taken, n.branches):>5} '
            f'{n.functions_called:>6}/{n.functions:<6}')


def render(results, counts, heading):
    """The report. counts: {path: FileCounts}."""
    head = f'{"":<58} {"lines run":>15} {"%":>5} {"branches taken":>15} {"%":>5} {"functions":>13}'
    out = [heading, '', head, row('all', total_of(results)), '', 'Folders', '', head]
    out += [row(folder, n) for folder, n in by_folder(results).items()]
    out += ['', 'Files, those with most branches that were not taken first', '', head]
    order = sorted(results, key=lambda r: (r.numbers.branches_taken - r.numbers.branches,
                                           r.numbers.lines_run - r.numbers.lines, r.path))
    out += [row(result.path, result.numbers) for result in order]
    out += ['', 'Functions that were never called', '']
    for result in results:
        if result.uncalled:
            out.append(result.path)
            out += [f'  {f.first:>5}  {f.name}' for f in result.uncalled]
    out += ['', 'Lines that did not run and branches that were not taken, in functions that were '
            'called', '']
    for result in results:
        there = counts[result.path].lines
        items = [(a, f'{a}' if a == b else f'{a}-{b}', 'not run')
                 for a, b in ranges(result.not_run, there)]
        items += [(line, f'{line}', f'{missed} of {total} branches')
                  for line, missed, total in result.not_taken]
        if items:
            out.append(result.path)
            out += [f'  {where:>11}  {what:<20} {quote(result, line)}'.rstrip()
                    for line, where, what in sorted(items)]
    return '\n'.join(out) + '\n'


def render_tsv(results):
    rows = [('total', '', total_of(results))]
    rows += [('folder', folder, n) for folder, n in by_folder(results).items()]
    rows += [('file', result.path, result.numbers) for result in results]
    lines = ['\t'.join(FIELDS)]
    for kind, path, n in rows:
        lines.append('\t'.join([kind, path, str(n.files),
                                *(str(getattr(n, field)) for field in NUMBERS)]))
    return '\n'.join(lines) + '\n'


def read_tsv(text):
    """[(kind, path, Numbers)] of what render_tsv() has made."""
    rows = []
    for line in text.splitlines():
        values = line.split('\t')
        if len(values) == len(FIELDS) and values[0] != 'kind':
            rows.append((values[0], values[1], Numbers(*map(int, values[2:]))))
    return rows


def render_table(rows):
    """The Markdown table of the folders and of all, from what read_tsv() returns."""
    lines = ['| Folder | files | lines | run | branches | taken | functions | never called |',
             '| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |']
    for kind, path, n in sorted(rows, key=lambda row: (row[0] == 'total', row[1])):
        if kind != 'file':
            name = 'all' if kind == 'total' else f'`{path}/`'
            lines.append(
                f'| {name} | {n.files} | {n.lines:,} | {percent(n.lines_run, n.lines)} % | '
                f'{n.branches:,} | {percent(n.branches_taken, n.branches)} % | {n.functions:,} | '
                f'{n.functions - n.functions_called} |')
    return '\n'.join(lines) + '\n'
