# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""The log of crash tests, a line for each round, and the tables that are made of it."""
import collections
import csv
import os

from crash import plan

COLUMNS = ('seed', 'round', 'commit', 'mode', 'features', 'seconds', 'kills', 'operations',
           'result', 'problem')


class RoundLog:
    """A file of tab-separated values with a header. Lines are only added."""

    def __init__(self, path):
        self.path = path

    def add(self, **entry):
        """REQUIRES: the names are COLUMNS."""
        new = not os.path.exists(self.path)
        with open(self.path, 'a', encoding='utf-8', newline='') as f:
            writer = csv.DictWriter(f, COLUMNS, delimiter='\t', lineterminator='\n')
            if new:
                writer.writeheader()
            writer.writerow({k: ' '.join(str(v).split()) for k, v in entry.items()})

    def entries(self):
        if not os.path.exists(self.path):
            return []
        with open(self.path, encoding='utf-8', newline='') as f:
            entries = list(csv.DictReader(f, delimiter='\t'))
        for entry in entries:
            for name in ('seed', 'round', 'kills', 'operations'):
                entry[name] = int(entry[name])
            entry['seconds'] = float(entry['seconds'])
        return entries

    def next_round(self, seed):
        """The number of the first round of the seed that is not in the log."""
        return 1 + max((e['round'] for e in self.entries() if e['seed'] == seed), default=-1)


def _row(entry):
    return plan.parse_row(f"{entry['mode']} {entry['features']}")


def covered_pairs(entries):
    """(number of pairs of levels that the rounds had, number of pairs that can be had)."""
    covering = plan.make_covering(0)
    pairs = set(covering.pairs())
    found = set()
    for entry in entries:
        try:
            found |= covering.pairs_of(_row(entry)) & pairs
        except ValueError:
            pass  # a round from before a change of the modes or features
    return len(found), len(pairs)


def _table(title, groups):
    """A Markdown table of totals. groups: name -> entries."""
    lines = [f'| {title} | rounds | hours | kills | operations | findings |',
             '| --- | --- | --- | --- | --- | --- |']
    for name, entries in groups.items():
        lines.append('| {} | {:,} | {:.1f} | {:,} | {:,} | {:,} |'.format(
            name, len(entries), sum(e['seconds'] for e in entries) / 3600,
            sum(e['kills'] for e in entries), sum(e['operations'] for e in entries),
            sum(e['result'] != 'ok' for e in entries)))
    return '\n'.join(lines)


def report(entries):
    """The totals of the log in Markdown: by mode, by feature, and the findings."""
    modes, features = collections.defaultdict(list), collections.defaultdict(list)
    for entry in entries:
        modes[entry['mode']].append(entry)
        for word in entry['features'].split():
            features[word].append(entry)
    modes = dict(sorted(modes.items()))
    modes['all'] = entries
    covered, pairs = covered_pairs(entries)
    commits = list(dict.fromkeys(entry['commit'] for entry in entries))
    parts = [_table('mode', modes), _table('feature', dict(sorted(features.items()))),
             f'{covered} of the {pairs} pairs of modes and features that can be combined came up. '
             f'Seeds: {", ".join(map(str, sorted({e["seed"] for e in entries}))) or "none"}. '
             f'Commits: {", ".join(commits) or "none"}.']
    findings = [e for e in entries if e['result'] != 'ok']
    if findings:
        parts.append('\n'.join(
            ['| finding | mode | features | problem |', '| --- | --- | --- | --- |'] +
            [f"| {e['seed']}-{e['round']} | {e['mode']} | {e['features']} | "
             f"{e['problem'].replace('|', chr(92) + '|')} |" for e in findings]))
    return '\n\n'.join(parts)
