#!/usr/bin/env python3
# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Tests of coverage.py and its parts."""
import argparse
import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.insert(0, HERE)
import coverage  # noqa: E402
import run_tests  # noqa: E402
from gcov import counts, report, source  # noqa: E402
from temporary_folder import Temporary  # noqa: E402

INCLUDE = os.path.join(ROOT, 'build', 'src', 'include')


def compile_options():
    """The options for coverage in cmake/strata.cmake."""
    with open(os.path.join(ROOT, 'cmake', 'strata.cmake'), encoding='utf-8') as f:
        text = f.read()
    body = re.search(r'list\(APPEND options (--coverage.*?)\)\n', text, re.S).group(1)
    return re.sub(r'#.*', '', body).split()


def branch(count, fallthrough=False, throw=False):
    return {'count': count, 'fallthrough': fallthrough, 'throw': throw}


def a_line(number, count, branches=(), function='f'):
    return {'line_number': number, 'count': count, 'branches': list(branches),
            'function_name': function}


def a_function(name, first, last, count, column=1):
    return {'name': name, 'demangled_name': name + '()', 'start_line': first, 'end_line': last,
            'start_column': column, 'execution_count': count}


class Blank(unittest.TestCase):
    def test_keeps_places(self):
        text = ('int a = 1\'000;  // {\n/* ( \n */ char c = \'"\'; f("}\\"(", \'\\\'\');\n'
                '#define X(a) \\\n  { a\nR"x(  ") } )x" + L\'{\'\n  #if {\n{}')
        code = source.blank(text)
        self.assertEqual(len(code), len(text))
        self.assertEqual([len(line) for line in code.split('\n')],
                         [len(line) for line in text.split('\n')])
        self.assertEqual(''.join(code.split()), "inta=1'000;charc=;f(,);+L{}")

    def test_unfinished(self):
        for text in ('/* x', '"x', 'R"(x', '//', '#', "'"):
            self.assertEqual(source.blank(text).strip(), '', text)

    def test_pairs_with_alternatives_of_the_preprocessor(self):
        pairs = source.pair('void f() {\n  g(\n  g();\n}\nvoid h() {}')
        self.assertEqual(pairs[9], 23)
        self.assertEqual(source.pair(')}({'), {})


class Exclusions(unittest.TestCase):
    def of(self, text):
        return source.exclusions(text)

    def test_statements_for_tests(self):
        found = self.of('void f() {\n  assert(a &&\n         b(c));\n  TEST_SYNC_POINT("x");\n'
                        '  TEST_SYNC_POINT_CALLBACK(\n      "y", &z);\n  TEST_KILL_RANDOM("k");\n'
                        '  static_assert(a);\n  ASSERT_OK(s);\n  reassert(b);\n  g();\n}\n')
        self.assertEqual(found.lines, {2, 3, 4, 5, 6, 7})

    def test_macros_and_statics(self):
        found = self.of('class A {\n  static bool Is(int a) { return a && b; }\n};\n'
                        'void f() {\n  static const X* const x =\n      new X;\n'
                        '  PERF_COUNTER_ADD(a,\n                   b);\n'
                        '  IGNORE_STATUS_IF_ERROR(s);\n  if (a) {\n    static int b = g();\n'
                        '  }\n}\n')
        self.assertEqual(found.branches, {5, 7, 8, 9, 11})
        self.assertEqual(found.lines, set())

    def test_rest_of_a_block(self):
        found = self.of('void f() {\n  if (a &&\n      b) {\n    assert(false);\n    g();\n'
                        '    return;\n  } else if (c) {\n    h();\n    assert(false);\n  }\n}\n')
        self.assertEqual(found.lines, {4, 5, 6, 9})
        # The second one is reached up to h().
        self.assertEqual(found.dead_branches, [(2, 3)])
        self.assertEqual(found.dead_bodies, set())

    def test_unreachable_default(self):
        found = self.of('int f() {\n  switch (k) {\n    case kA:\n      return 1;\n'
                        '    default:\n      assert(false);\n      return 0;\n    case kB: {\n'
                        '      return 3;\n    }\n  }\n}\n')
        self.assertEqual(found.lines, {6, 7})
        self.assertEqual(found.dead_branches, [(2, 2)])

    def test_unreachable_default_in_braces(self):
        found = self.of('int f() {\n  switch (g(\n      k)) {\n    case kA:\n      return 1;\n'
                        '    default: {\n      assert(false);\n      return 0;\n    }\n  }\n}\n')
        self.assertEqual(found.lines, {7, 8})
        self.assertEqual(found.dead_branches, [(2, 3)])

    def test_switches(self):
        found = self.of('int f() {\n  switch (k) {\n    case kA:\n      return 1;\n  }\n'
                        '  switch (k) {\n    case 1:\n      switch (m) {\n        case 2:\n'
                        '          break;\n      }\n    default:\n      return 2;\n  }\n}\n')
        # The second one has a default label, the one inside has none.
        self.assertEqual(found.dead_branches, [(2, 2), (8, 8)])

    def test_unreachable_functions(self):
        found = self.of('class A {\n  void Seek(const Slice&) override { assert(false); }\n'
                        '  Status Get() const override {\n    assert(false);  // why\n'
                        '    return Status::OK();\n  }\n  A() = default;\n'
                        '  void Next() {\n    g();\n    assert(false);\n  }\n};\n')
        self.assertEqual(found.dead_bodies, {2, 3})
        self.assertEqual(found.lines, {2, 4, 5, 10})
        self.assertEqual(found.defaulted, {7})

    def test_our_sources(self):
        """Each is read to its end: all braces have a partner."""
        for path in coverage.overlay_sources.find(ROOT)['LIB']:
            with open(os.path.join(ROOT, path), encoding='utf-8') as f:
                code = source.blank(f.read())
            self.assertEqual(len([p for p in source.pair(code) if code[p] in '{}']),
                             code.count('{') + code.count('}'), path)


class Counts(unittest.TestCase):
    def test_branches_of_exceptions_are_left_out(self):
        f, t = branch(2, fallthrough=True), branch(0, throw=True)
        for branches, expected in (
                ([], []), ([f, t], []), ([t, f], []), ([branch(3), f], [3, 2]),
                ([f, branch(0), f, t, branch(0, True), branch(5)], [2, 0, 0, 5]),
                ([branch(1), branch(0), branch(4), f, t], [1, 0, 4]),
                ([branch(7), f, f, t], [7, 2]), ([t], []), ([branch(1), t], [1])):
            self.assertEqual(counts.real_branches(branches), expected)

    def test_copies_and_instances_are_one_function(self):
        found = counts.FileCounts()
        found.add([a_function('f', 1, 5, 2), a_function('g<int>', 7, 9, 0, column=3),
                   a_function('g<char>', 7, 9, 4, column=3)],
                  [a_line(2, 2, [branch(2, True), branch(0)]),
                   a_line(8, 0, [branch(0, True), branch(0)], 'g<int>'),
                   a_line(8, 4, [branch(0, True), branch(4)], 'g<char>')])
        other = counts.FileCounts()
        other.add([a_function('f', 1, 5, 1)], [a_line(2, 1, [branch(0, True), branch(1)]),
                                               a_line(3, 0)])
        found.merge(other)
        self.assertEqual(found.lines, {2: 3, 3: 0, 8: 4})
        self.assertEqual({place: f.count for place, f in found.functions.items()},
                         {(1, 1): 3, (7, 3): 4})
        self.assertEqual(found.branches, {(2, (1, 1), 2): [2, 1], (8, (7, 3), 2): [0, 4]})
        # The sum does not write into what it was made of.
        empty = counts.FileCounts()
        empty.merge(found)
        empty.merge(found)
        self.assertEqual(found.branches[(2, (1, 1), 2)], [2, 1])
        self.assertEqual(found.functions[(1, 1)].count, 3)
        self.assertEqual(empty.branches[(2, (1, 1), 2)], [4, 2])

    def test_other_shapes_are_kept_apart(self):
        found = counts.FileCounts()
        found.add([a_function('g<int>', 7, 9, 1), a_function('g<char>', 7, 9, 1)],
                  [a_line(8, 1, [branch(1, True), branch(0)], 'g<int>'),
                   a_line(8, 1, [branch(1)], 'g<char>')])
        self.assertEqual(found.branches, {(8, (7, 1), 2): [1, 0], (8, (7, 1), 1): [1]})


class Paths(Temporary):
    def test_own(self):
        self.write('db/x.cc')
        self.write('db/copied.h')
        for path in ('build/src/db/copied.h', 'build/src/db/theirs.cc', 'build/coverage/y.cc'):
            self.write(path)
        os.symlink(os.path.join(self.dir, 'db/x.cc'), os.path.join(self.dir, 'build/src/db/x.cc'))
        paths = counts.Paths(self.dir)
        folder = os.path.join(self.dir, 'build', 'coverage')
        for name, expected in (
                (os.path.join(self.dir, 'build/src/db/x.cc'), 'db/x.cc'),
                ('../src/db/x.cc', 'db/x.cc'), ('../../db/x.cc', 'db/x.cc'),
                ('../src/./db/copied.h', 'db/copied.h'), ('../src/db/theirs.cc', None),
                ('y.cc', None), ('../../db/none.cc', None), ('/usr/include/stdio.h', None)):
            self.assertEqual(paths.own(folder, name), expected, name)


class Evaluate(unittest.TestCase):
    TEXT = ('int f(int a) {\n'                  # 1
            '  if (a > 1 && g()) {\n'           # 2
            '    assert(a < 9);\n'              # 3
            '    h();\n'                        # 4
            '\n'
            '    i();\n'                        # 6
            '  }\n'
            '  return a;\n'                     # 8
            '}\n'
            'void unused() {\n'                 # 10
            '  if (b) {\n'                      # 11
            '  }\n'
            '}\n'
            'void never() { assert(false); }\n'  # 14
            'A::A() = default;\n'               # 15
            'int s(K k) {\n'                    # 16
            '  switch (k) {\n'                  # 17
            '    case kA:\n'
            '      return 1;\n'                 # 19
            '  }\n'
            '}\n')

    def result(self):
        found = counts.FileCounts()
        found.add([a_function('f', 1, 9, 5), a_function('unused', 10, 13, 0),
                   a_function('never', 14, 14, 0), a_function('A', 15, 15, 0),
                   a_function('s', 16, 21, 2)],
                  [a_line(1, 5), a_line(2, 5, [branch(5, True), branch(0), branch(0), branch(5)]),
                   a_line(3, 0, [branch(0), branch(0)]), a_line(4, 0), a_line(6, 0), a_line(8, 5),
                   a_line(10, 0, function='unused'),
                   a_line(11, 0, [branch(0), branch(0)], 'unused'),
                   a_line(14, 0, function='never'), a_line(15, 0, function='A'),
                   a_line(16, 2, function='s'), a_line(17, 2, [branch(2), branch(0)], 's'),
                   a_line(19, 2, function='s')])
        return report.evaluate('db/x/y.cc', self.TEXT, found), found

    def test_numbers(self):
        result, _ = self.result()
        self.assertEqual(result.numbers, report.Numbers(1, lines=10, lines_run=6, branches=7,
                                                        branches_taken=3, functions=3,
                                                        functions_called=2))
        self.assertEqual([f.name for f in result.uncalled], ['unused()'])
        self.assertEqual(result.not_run, [4, 6])
        self.assertEqual(result.not_taken, [(2, 2, 4)])

    def test_report(self):
        result, found = self.result()
        other = report.Result('db/z.h', report.Numbers(1, 3, 3, 0, 0, 1, 1), [''])
        text = report.render([result, other], {'db/x/y.cc': found, 'db/z.h': counts.FileCounts()},
                             'Head')
        for line in ('all', 'db/x', 'db', 'db/x/y.cc', 'db/z.h'):
            self.assertRegex(text, rf'(?m)^{line} +\d')
        self.assertRegex(text, r'(?m)^db/x/y.cc +6/10 +60.0 +3/7 +42.9 +2/3 *$')
        self.assertIn('db/x/y.cc\n     10  unused()\n', text)
        self.assertIn('            2  2 of 4 branches      if (a > 1 && g()) {\n'
                      '          4-6  not run              h();\n', text)
        self.assertNotIn('never', text.replace('never called', ''))

    def test_table(self):
        result, _ = self.result()
        rows = report.read_tsv(report.render_tsv([result]))
        self.assertEqual(rows[0], ('total', '', result.numbers))
        self.assertEqual([row[:2] for row in rows[1:]], [('folder', 'db/x'), ('file', 'db/x/y.cc')])
        self.assertEqual(report.render_table(rows).split('\n')[2:],
                         ['| `db/x/` | 1 | 10 | 60.0 % | 7 | 42.9 % | 3 | 1 |',
                          '| all | 1 | 10 | 60.0 % | 7 | 42.9 % | 3 | 1 |', ''])

    def test_dead_branch_of_a_condition(self):
        """One branch of the last condition leads to what cannot be reached, in each instance."""
        text = 'void f() {\n  if (a &&\n      b) {\n    assert(false);\n  }\n}\n'
        found = counts.FileCounts()
        pair = [branch(4, True), branch(0)]
        found.add([a_function('f<int>', 1, 6, 4), a_function('f<char>', 1, 6, 4)],
                  [a_line(2, 4, pair, 'f<int>'), a_line(3, 4, pair, 'f<int>'),
                   a_line(2, 4, pair + [branch(4)], 'f<char>'),
                   a_line(3, 4, pair, 'f<char>'), a_line(4, 0)])
        result = report.evaluate('a.h', text, found)
        self.assertEqual(result.not_taken, [(2, 2, 5)])
        self.assertEqual((result.numbers.branches, result.numbers.branches_taken), (6, 4))

    def test_percent(self):
        for part, whole, expected in ((0, 0, '-'), (1, 1, '100.0'), (99999, 100000, '99.9'),
                                      (1, 3, '33.3'), (0, 5, '0.0')):
            self.assertEqual(report.percent(part, whole), expected)

    def test_ranges(self):
        self.assertEqual(report.ranges([4, 6, 7, 9], {4, 6, 7, 8, 9}), [(4, 7), (9, 9)])
        self.assertEqual(report.ranges([], {1}), [])


class Commands(Temporary):
    def command(self, *words):
        out = io.StringIO()
        with mock.patch.object(coverage, 'ROOT', self.dir), contextlib.redirect_stdout(out), \
                contextlib.redirect_stderr(out):
            return coverage.main(list(words)), out.getvalue()

    def test_run_removes_old_counts(self):
        old = self.write('build/coverage/CMakeFiles/old.dir/x.cc.gcda')
        notes = self.write('build/coverage/CMakeFiles/old.dir/x.cc.gcno')
        with mock.patch.object(run_tests, 'main', return_value=3) as run:
            code, out = self.command('run', 'a_test', '--jobs', '2')
        run.assert_called_once_with(['check', 'a_test', '--build', 'coverage', '--jobs', '2'])
        self.assertEqual((code, os.path.exists(old), os.path.exists(notes)), (3, False, True))
        self.assertIn('no counts', out)

    def test_objects_that_are_not_there(self):
        self.write('db/x.cc')
        self.write('build/coverage/y.gcda')
        code, out = self.command('report')
        self.assertEqual(code, 1)
        self.assertIn('strata_counted.dir/db/x.cc.gcno', out)

    def test_table(self):
        page = self.write('page.md', f'a\n{report.BEGIN}\nstale\n{report.END}\nb\n')
        self.assertEqual(self.command('table', page)[0], 1)
        self.write('build/coverage/report.tsv',
                   report.render_tsv([report.Result('db/x.cc', report.Numbers(1, 2, 1), [''])]))
        for _ in range(2):
            self.assertEqual(self.command('table', page)[0], 0)
        with open(page, encoding='utf-8') as f:
            text = f.read()
        self.assertTrue(text.startswith(f'a\n{report.BEGIN}\n\n| Folder |'), text)
        self.assertTrue(text.endswith(f'|\n\n{report.END}\nb\n'), text)
        self.assertNotIn('stale', text)

    def test_what_runs(self):
        """Our tests in C++ and no scripts, as with sanitizers."""
        with mock.patch.object(run_tests, 'upstream_tests',
                               return_value=sorted(run_tests.read_list()[0])):
            args = argparse.Namespace(command='list', build='coverage', names=[])
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                run_tests.check(args)
        self.assertEqual(out.getvalue().split(), run_tests.own_tests())


class RunGcov(Temporary):
    def gcov(self, stdout='', stderr='', code=0):
        name = self.write('bin/gcov', f'#!/bin/sh\ncat <<\'X\'\n{stdout}\nX\n'
                          f'cat >&2 <<\'X\'\n{stderr}\nX\nexit {code}\n', 0o755)
        return counts.run_gcov(name, ['a.gcno'], counts.Paths(self.dir))

    def test_answers(self):
        self.write('x.cc')
        document = ('{"current_working_directory": "%s", "files": [{"file": "x.cc", '
                    '"functions": [], "lines": []}]}' % self.dir)
        found, lost = self.gcov(document, 'delta_version.gcda:cannot open data file, assuming not '
                                          'executed')
        self.assertEqual((list(found), lost), (['x.cc'], []))
        found, lost = self.gcov(document, 'a.gcda:stamp mismatch with notes file')
        self.assertEqual((list(found), len(lost)), (['x.cc'], 1))
        for stdout, stderr, code, what in (
                (document, "a.gcno:version 'B22*', prefer 'B32*'", 0, 'prefer'),
                (document, 'bad', 1, 'bad'), ('', 'no', 0, '0 of 1'), ('{}', '', 0, 'format'),
                ('File x.cc', '', 0, 'JSON')):
            with self.assertRaisesRegex(counts.Problem, what):
                self.gcov(stdout, stderr, code)

    def test_no_gcov(self):
        with self.assertRaises(counts.Problem):
            counts.run_gcov(os.path.join(self.dir, 'none'), ['a.gcno'], counts.Paths(self.dir))


# Compiled with the options of cmake/strata.cmake.
LIBRARY_CC = '''#include "db/counted.h"
#include <string>
std::string Text(int n);
int sevens = 0;
int Counted(int n) {
  if (n > 2 && Twice(n) < 10) {
    return Twice(n);
  }
  std::string text = Text(n);
  return static_cast<int>(text.size());
}
std::string Text(int n) { return std::string("text", static_cast<size_t>(n)); }
int OnlyInTheChild(int n) {
  return n + 1;
}
int NeverCalled(int n) { return n > 0 ? Twice(n) : 0; }
'''
LIBRARY_H = '''#pragma once
extern int sevens;
[[gnu::noinline]] inline int Twice(int n) {
  if (n == 7) {
    ++sevens;
  }
  return 2 * n;
}
int Counted(int n);
int OnlyInTheChild(int n);
'''
PROGRAM_CC = '''#include <sys/wait.h>
#include <unistd.h>

#include "db/counted.h"
#include "test_util/strata/exit_child_test_util.h"
int (*twice)(int) = Twice;
int main() {
  if (fork() == 0) {
    rocksdb::ExitChild(OnlyInTheChild(2));
  }
  int status = 0;
  wait(&status);
  return WEXITSTATUS(status) + Counted(1) + Counted(3) + twice(7) + sevens;
}
'''


@unittest.skipUnless(shutil.which('g++') and shutil.which('gcov'), 'needs g++ and gcov')
@unittest.skipUnless(os.path.isdir(INCLUDE), 'needs build/src')
class EndToEnd(Temporary):
    def run_in(self, folder, *command, env=None):
        run = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=env)
        self.assertEqual(run.stderr if run.returncode and not run.stdout else '', '', command)
        return run

    def test_library_and_program(self):
        """The counts of a process and of its child, in a source that is reached through a link, of
        a shared library whose program has a copy of its inline function."""
        self.write('db/counted.cc', LIBRARY_CC)
        self.write('db/counted.h', LIBRARY_H)
        self.write('program.cc', PROGRAM_CC)
        tree = os.path.join(self.dir, 'build', 'src', 'db')
        os.makedirs(tree)
        for name in ('counted.cc', 'counted.h'):
            os.symlink(f'../../../db/{name}', os.path.join(tree, name))
        build = os.path.join(self.dir, 'build', 'coverage')
        folder = 'CMakeFiles/strata_counted.dir/db'
        os.makedirs(os.path.join(build, folder))
        include = ['-I../src', f'-I{ROOT}', f'-I{INCLUDE}', '-std=c++20']
        self.run_in(build, 'g++', *include, *compile_options(), '-fPIC', '-c',
                    f'{self.dir}/build/src/db/counted.cc', '-o', f'{folder}/counted.cc.o')
        self.run_in(build, 'g++', '-shared', f'{folder}/counted.cc.o', '--coverage',
                    '-Wl,-u,__gcov_dump', '-o', 'libcounted.so')
        self.run_in(build, 'g++', *include, f'{self.dir}/program.cc',
                    f'{ROOT}/test_util/strata/exit_child_test_util.cc',
                    f'{ROOT}/util/strata/strata_abi.cc', '-o', 'program', '-L.', '-lcounted',
                    f'-Wl,-rpath,{build}')
        self.assertEqual(self.run_in(self.dir, f'{build}/program').returncode, 3 + 1 + 6 + 14 + 1)
        coverage.write_report(self.dir, build, 1)
        with open(os.path.join(build, 'report.txt'), encoding='utf-8') as f:
            text = f.read()
        below = text[text.index('Functions that were never called'):]
        self.assertEqual([' '.join(line.split()) for line in below.split('\n') if line][1:], [
            'db/counted.cc', '16 NeverCalled(int)',
            'Lines that did not run and branches that were not taken, in functions that were '
            'called',
            'db/counted.cc', '6 1 of 4 branches if (n > 2 && Twice(n) < 10) {',
            'db/counted.h', '4 1 of 2 branches if (n == 7) {', '5 not run ++sevens;'])
        with open(os.path.join(build, 'report.tsv'), encoding='utf-8') as f:
            rows = {path: n for kind, path, n in report.read_tsv(f.read()) if kind == 'file'}
        self.assertEqual(rows['db/counted.cc'].branches, 4 + 2)
        self.assertEqual(rows['db/counted.cc'].functions_called, 3)

    @unittest.skipUnless(shutil.which('ccache'), 'needs ccache')
    def test_ccache_keeps_the_objects(self):
        """With the option -fprofile-update=atomic it would not."""
        self.write('x.cc', 'int f(int a) { return a ? a : 1; }\n')
        env = {k: v for k, v in os.environ.items() if not k.startswith('CCACHE_')}
        env.update(CCACHE_DIR=os.path.join(self.dir, 'cache'), CCACHE_BASEDIR=self.dir,
                   CCACHE_NOHASHDIR='1')
        for _ in range(2):
            self.run_in(self.dir, 'ccache', 'g++', *compile_options(), '-c', f'{self.dir}/x.cc',
                        '-o', 'x.cc.o', env=env)
            self.assertTrue(os.path.exists(os.path.join(self.dir, 'x.cc.gcno')))
            os.unlink(os.path.join(self.dir, 'x.cc.gcno'))
        stats = self.run_in(self.dir, 'ccache', '--print-stats', env=env).stdout
        hits = re.findall(r'^(?:direct|preprocessed)_cache_hit\t(\d+)$', stats, re.M)
        self.assertEqual(sum(map(int, hits)), 1, stats)


if __name__ == '__main__':
    unittest.main()
