#!/usr/bin/env python3
# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Tests of contrib/: the dashboard and the alerts use metrics that the library writes, and what the
library writes is the format of Prometheus.

contrib/prometheus/metrics.txt has the metrics. The C++ test db_metrics_test compares it with what a
database writes, and prometheus_text_test compares testdata/prometheus/writer.txt with what the
class that writes the format makes. So these files stand for the library here. Programs that read
the format are asked if they are installed: the module prometheus_client, and promtool. A check
without its program is skipped: a line that begins with "skipped: " says so.
"""
import json
import math
import os
import re
import shutil
import subprocess
import sys
import unittest

try:
    from prometheus_client import parser
except ImportError:
    parser = None

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
METRICS = os.path.join(ROOT, 'contrib', 'prometheus', 'metrics.txt')
ALERTS = os.path.join(ROOT, 'contrib', 'prometheus', 'strata-alerts.yml')
DASHBOARD = os.path.join(ROOT, 'contrib', 'grafana', 'strata.json')
PROMTOOL = shutil.which('promtool')
SAMPLE = os.path.join(ROOT, 'testdata', 'prometheus', 'writer.txt')


def read(path):
    with open(path, encoding='utf-8') as f:
        return f.read()


def metrics():
    """{name: type}, of the metrics in the list."""
    return dict(re.findall(r'^# TYPE (\S+) (\S+)$', read(METRICS), re.M))


def samples():
    """The names that expressions may use."""
    names = set()
    for name, kind in metrics().items():
        names |= {name, name + '_sum', name + '_count'} if kind == 'summary' else {name}
    return names


def names_in(text):
    return set(re.findall(r'\brocksdb_\w+', text))


def panels():
    """The panels of the dashboard, and their expressions: [(title, [expression])]."""
    found = []
    for panel in json.loads(read(DASHBOARD))['panels']:
        found.append((panel['title'], [target['expr'] for target in panel.get('targets', [])]))
    return found


def rules():
    """{alert: expression}. The file has one of two forms: expr: TEXT, or expr: >- and lines."""
    found = {}
    for block in re.split(r'^      - alert: ', read(ALERTS), flags=re.M)[1:]:
        name = block.split('\n', 1)[0]
        expr = re.search(r'^        expr: (?:>-\n)?(.*?)(?=^        \w+:)', block, re.M | re.S)
        found[name] = ' '.join(expr.group(1).split())
    return found


class List(unittest.TestCase):
    def test_each_metric_has_help_and_type(self):
        lines = read(METRICS).splitlines()
        self.assertEqual(len(lines) % 2, 0)
        for text, kind in zip(lines[::2], lines[1::2]):
            name = kind.split()[2]
            self.assertRegex(text, rf'^# HELP {name} .+\.$')
            self.assertRegex(kind, rf'^# TYPE {name} (counter|gauge|summary)$')
        self.assertEqual(len(metrics()), len(lines) // 2)

    def test_names_say_what_grows(self):
        for name, kind in metrics().items():
            self.assertEqual(name.endswith('_total'), kind == 'counter', name)

    def test_no_two_samples_have_one_name(self):
        count = sum(3 if kind == 'summary' else 1 for kind in metrics().values())
        self.assertEqual(len(samples()), count)


class Users(unittest.TestCase):
    def test_the_dashboard_uses_metrics_of_the_list(self):
        queries = read(DASHBOARD)
        self.assertEqual(names_in(queries) - samples(), set())
        for title, expressions in panels():
            for expression in expressions:
                self.assertTrue(names_in(expression), title)

    def test_the_dashboard_has_its_rows(self):
        dashboard = json.loads(read(DASHBOARD))
        rows = [panel['title'] for panel in dashboard['panels'] if panel['type'] == 'row']
        self.assertEqual(rows, ['Reads', 'Writes', 'Compaction', 'Address map and blob GC',
                                'Deltas', 'Tiers'])
        ids = [panel['id'] for panel in dashboard['panels']]
        self.assertEqual(len(ids), len(set(ids)))
        places = [tuple(panel['gridPos'][key] for key in 'xy') for panel in dashboard['panels']]
        self.assertEqual(len(places), len(set(places)))

    def test_counters_are_used_with_a_rate(self):
        """A counter as it is says nothing: it has grown since the last restart."""
        counters = {name for name, kind in metrics().items() if kind == 'counter'}
        expressions = [e for _, found in panels() for e in found] + list(rules().values())
        for expression in expressions:
            for name in names_in(expression) & counters:
                uses = re.findall(rf'(\w+\()?{name}\b', expression)
                self.assertTrue(all(use in ('rate(', 'increase(') for use in uses), expression)

    def test_the_alerts_use_metrics_of_the_list(self):
        found = rules()
        self.assertGreater(len(found), 6)
        self.assertEqual(len(found), read(ALERTS).count('expr:'))
        for alert, expression in found.items():
            self.assertTrue(names_in(expression), alert)
        self.assertEqual(names_in(read(ALERTS)) - samples(), set())


class Readers(unittest.TestCase):
    def check_families(self, families, expected):
        """What the parser has read. Its names of counters are without _total."""
        found = {}
        for family in families:
            name = family.name + ('_total' if family.type == 'counter' else '')
            self.assertNotIn(name, found)
            found[name] = family
        self.assertEqual({name: family.type for name, family in found.items()}, expected)
        return found

    @unittest.skipIf(parser is None, 'prometheus_client is not installed')
    def test_prometheus_client_reads_the_sample(self):
        found = self.check_families(
            parser.text_string_to_metric_families(read(SAMPLE)),
            {'rocksdb_events_total': 'counter', 'rocksdb_cf_numbers': 'gauge',
             'rocksdb_times': 'summary'})
        self.assertEqual(found['rocksdb_events_total'].documentation,
                         'Events of a backslash \\ and a\nline break, with "quotes".')
        self.assertEqual(found['rocksdb_events_total'].samples[0].value, 2 ** 54)
        gauges = [(s.labels, s.value) for s in found['rocksdb_cf_numbers'].samples]
        self.assertTrue(math.isnan(gauges.pop(3)[1]))
        self.assertEqual(gauges, [({'cf': 'default'}, 0), ({'cf': 'a "quoted" name'}, -3),
                                  ({'cf': 'back\\slash'}, 0.25),
                                  ({'cf': 'zürich €'}, math.inf),
                                  ({'cf': '\\xff\\xc3('}, -math.inf),
                                  ({'cf': '', 'level': '1'}, 1e30)])
        self.assertEqual(found['rocksdb_cf_numbers'].samples[3].labels, {'cf': 'line\nbreak'})
        times = [(s.name, s.labels) for s in found['rocksdb_times'].samples]
        self.assertEqual(times, [('rocksdb_times', {'quantile': '0.5'}),
                                 ('rocksdb_times', {'quantile': '0.99'}),
                                 ('rocksdb_times_sum', {}), ('rocksdb_times_count', {}),
                                 ('rocksdb_times', {'cf': 'x', 'quantile': '1'}),
                                 ('rocksdb_times_sum', {'cf': 'x'}),
                                 ('rocksdb_times_count', {'cf': 'x'})])

    @unittest.skipIf(parser is None, 'prometheus_client is not installed')
    def test_prometheus_client_reads_the_list(self):
        self.check_families(parser.text_string_to_metric_families(read(METRICS)), metrics())

    @unittest.skipIf(PROMTOOL is None, 'promtool is not installed')
    def test_promtool_accepts_the_alerts(self):
        result = subprocess.run([PROMTOOL, 'check', 'rules', ALERTS], capture_output=True,
                                text=True, check=False)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)


if __name__ == '__main__':
    # Before unittest writes, so that each of them is a line of its own.
    if parser is None:
        print('skipped: the format of metrics: the module prometheus_client is not installed')
    if PROMTOOL is None:
        print('skipped: the syntax of alerts: promtool is not installed')
    sys.stdout.flush()
    unittest.main()
