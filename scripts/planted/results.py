# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""The results of planted bugs: the file that runs write, and the table of the documentation."""
import dataclasses
import hashlib
import os

from common import marked_text

from .patch import AREAS, FOLDER

# Beside the patches: a run of all takes hours, so results outlive the build folder.
FILE = os.path.join(FOLDER, 'results.tsv')
FIELDS = ('name', 'digest', 'result', 'program', 'case', 'how', 'seconds', 'compile_seconds',
          'note')
BEGIN = '<!-- The table. "scripts/planted_bugs.py table" writes it. -->'
END = '<!-- The end of the table. -->'
HOW = {'failed': '', 'aborted': ' (abort)', 'hung': ' (hang)', 'grew': ' (memory or disk)'}


@dataclasses.dataclass
class Result:
    """`result` is caught, missed or error; `digest` says for which patch and which source."""
    name: str
    digest: str
    result: str
    program: str = ''
    case: str = ''
    how: str = ''
    seconds: str = ''
    compile_seconds: str = ''
    note: str = ''

    def line(self):
        values = (str(getattr(self, field)) for field in FIELDS)
        return '\t'.join(' '.join(value.split()) for value in values)


def digest_of(bug, edited):
    """A result holds until the patch or the source that it edits changes."""
    return hashlib.sha256(f'{bug.text}\0{edited}'.encode()).hexdigest()[:16]


def read(path):
    """{name: its last Result}."""
    results = {}
    if os.path.exists(path):
        with open(path, encoding='utf-8') as f:
            for line in f:
                values = line.rstrip('\n').split('\t')
                if len(values) == len(FIELDS) and values[0] != 'name':
                    results[values[0]] = Result(*values)
    return results


def keep(path, result):
    """Puts a result into the file in place of an earlier one of the same bug. The lines are in the
    order of the names, so that two versions of the file can be compared and merged."""
    write(path, read(path) | {result.name: result})


def forget_earlier(path, result):
    """Takes a result of the same bug out of the file if it is of another patch or source."""
    known = read(path)
    if result.name in known and known[result.name].digest != result.digest:
        del known[result.name]
        write(path, known)


def write(path, known):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + '.tmp', 'w', encoding='utf-8') as f:
        f.write('\t'.join(FIELDS) + '\n')
        f.writelines(known[name].line() + '\n' for name in sorted(known))
    os.replace(path + '.tmp', path)


def cell(text):
    return text.replace('|', '\\|')


def row(bug, result):
    caught = f'`{result.program}`' + (f' {result.case}' if result.case else '')
    return (f'| {cell(bug.what)} | {cell(caught)}{HOW.get(result.how, "")} | '
            f'{float(result.seconds):.1f} |')


def render(bugs, results):
    """The text between BEGIN and END. Results of bugs that are no more are left out."""
    known = {bug.name: results[bug.name] for bug in bugs if bug.name in results}
    caught = [bug for bug in bugs if bug.name in known and known[bug.name].result == 'caught']
    missed = [bug for bug in bugs if bug.name in known and known[bug.name].result == 'missed']
    lines = [f'{len(bugs)} bugs are planted. {len(caught)} of them were caught, {len(missed)} were '
             f'not, {len(bugs) - len(caught) - len(missed)} have not been run.', '']
    if missed:
        lines += ['Not caught by any test:', '']
        lines += [f'* `{bug.name}`: {bug.what} {bug.effect}' for bug in missed]
        lines.append('')
    for area, title in AREAS.items():
        mine = [bug for bug in bugs if bug.area == area]
        if not mine:
            continue
        found = [bug for bug in mine if bug in caught]
        lines += [f'### {title}', '', f'{len(found)} of {len(mine)} caught.', '']
        if found:
            lines += ['| What | caught by | seconds |', '| --- | --- | --- |']
            lines += [row(bug, known[bug.name]) for bug in found]
            lines.append('')
    return '\n'.join(lines)


def write_table(path, bugs, results):
    """Replaces what stands between the two markers in the file `path`."""
    marked_text.replace(path, BEGIN, END, render(bugs, results))
