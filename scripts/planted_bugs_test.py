#!/usr/bin/env python3
# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Tests of planted_bugs.py and of the package planted."""
import argparse
import contextlib
import io
import os
import subprocess
import time
import unittest
from unittest import mock

import planted_bugs
import run_tests
from planted import library, patch, programs, results
from temporary_folder import Temporary

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)


class PlantedPatches(Temporary):
    HEAD = ('# What: A test is left out.\n# Effect: A wrong value\n#   is returned.\n'
            '# Tests: a_test b_test:S.A*\n')
    DIFF = '--- a/db/a.cc\n+++ b/db/a.cc\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n'
    FILE = 'one\ntwo\nthree\nfour\none\ntwo\nfour\n'

    def bug(self, diff=None, head=None, name='map-x'):
        return patch.parse(name, (self.HEAD if head is None else head) + (diff or self.DIFF))

    def test_all_fit(self):
        number, found = planted_bugs.problems(ROOT)
        self.assertEqual(found, [])
        self.assertGreater(number, 100)

    def test_parse(self):
        bug = self.bug()
        self.assertEqual((bug.area, bug.what, bug.effect, bug.path), (
            'map', 'A test is left out.', 'A wrong value is returned.', 'db/a.cc'))
        self.assertEqual([str(t) for t in bug.tests], ['a_test', 'b_test:S.A*'])
        self.assertEqual(bug.hunks, ((['one', 'two', 'three'], ['one', '2', 'three']),))

    def test_what_is_no_patch(self):
        for name, head, diff, complaint in (
                ('Map-x', None, None, 'a name is'), ('nowhere-x', None, None, 'the areas are'),
                ('map-x', '# What: A b.\n# Tests: t\n', None, 'no "# Effect:"'),
                ('map-x', self.HEAD + '# What: C d.\n', None, 'two lines'),
                ('map-x', self.HEAD + '# Why: C d.\n', None, 'line 5 of the head'),
                ('map-x', self.HEAD.replace('out.', 'out'), None, 'not a sentence'),
                ('map-x', None, self.DIFF.replace('b/db/a', 'b/db/b'), 'after the head'),
                ('map-x', None, self.DIFF.replace('@@ -1,3 +1,3 @@\n', ''), 'ahead of the first'),
                ('map-x', None, self.DIFF + '\\ No newline\n', 'no line of a hunk'),
                ('map-x', None, self.DIFF + '@@ -9 +9 @@\n a\n', 'changes nothing'),
                ('map-x', None, self.DIFF + '@@ -9 +9 @@\n+a\n', 'no lines to find'),
                ('map-x', None, self.DIFF[:-1], 'has no end')):
            with self.assertRaises(patch.PatchError, msg=complaint) as e:
                self.bug(diff, head, name)
            self.assertIn(complaint, str(e.exception))

    def test_apply(self):
        self.assertEqual(self.bug().apply(self.FILE), self.FILE.replace('two\nthree', '2\nthree'))
        moved = 'zero\n' * 50 + self.FILE
        self.assertEqual(self.bug().apply(moved), moved.replace('two\nthree', '2\nthree'))
        two = self.bug(self.DIFF + '@@ -7 +7,2 @@\n two\n+3\n four\n')
        self.assertEqual(two.apply(self.FILE), 'one\n2\nthree\nfour\none\ntwo\n3\nfour\n')

    def test_a_place_that_is_not_clear(self):
        for diff, text, complaint in (
                (self.DIFF, self.FILE.replace('three', 'Three'), 'fits nowhere'),
                (self.DIFF, self.FILE * 2, 'fits at 2 places'),
                (self.DIFF + '@@ -3 +3 @@\n three\n-four\n+4\n', self.FILE, 'two hunks overlap')):
            with self.assertRaises(patch.PatchError, msg=complaint) as e:
                self.bug(diff).apply(text)
            self.assertIn(complaint, str(e.exception))

    def test_load(self):
        self.write('testdata/planted_bugs/wal-a.patch', self.HEAD + self.DIFF)
        self.write('testdata/planted_bugs/map-b.patch', self.HEAD + self.DIFF)
        self.write('testdata/planted_bugs/map-a.patch', self.HEAD + self.DIFF)
        names = [bug.name for bug in patch.load(self.dir)]
        self.assertEqual(names, ['map-a', 'map-b', 'wal-a'])
        self.assertEqual([bug.name for bug in patch.load(self.dir, ['map-*'])], names[:2])
        with self.assertRaises(patch.PatchError):
            patch.load(self.dir, ['map-a', 'gc-*'])

    def test_make(self):
        old = 'one\ntwo\nthree\n' * 2 + 'four\n'
        new = 'one\ntwo\nthree\none\n2\nthree\nfour\n'
        text = patch.make('map-x', self.HEAD, 'db/a.cc', old, new)
        self.assertEqual(patch.parse('map-x', text).apply(old), new)
        with self.assertRaises(patch.PatchError):
            patch.make('map-x', self.HEAD, 'db/a.cc', old, old)

    def test_add(self):
        self.write('db/a.cc', self.FILE)
        self.write('testdata/history/a.txt')
        for words in (['init', '-q'], ['add', '-A']):
            subprocess.run(['git', '-C', self.dir, *words], check=True)

        def add(*arguments):
            with mock.patch.object(planted_bugs, 'ROOT', self.dir), \
                    mock.patch.object(run_tests, 'stop_on_sigterm'), \
                    contextlib.redirect_stdout(io.StringIO()), \
                    contextlib.redirect_stderr(io.StringIO()) as err:
                return planted_bugs.main(['add', *arguments]), err.getvalue()
        self.assertIn('0 files have edits', add('map-x')[1])
        self.write('db/a.cc', self.FILE.replace('three', '3'))
        self.assertIn('give --what', add('map-x')[1])
        # There is no such program, which "check" says.
        self.assertEqual(add('map-x', '--what', 'A b.', '--effect', 'C d.', '--tests', 'no_test'),
                         (1, ''))
        bug, = patch.load(self.dir)
        self.assertEqual((bug.what, bug.applied(self.dir)),
                         ('A b.', self.FILE.replace('three', '3')))
        self.write('db/a.cc', self.FILE.replace('three', 'tree'))
        add('map-x', '--effect', 'E f.')
        bug, = patch.load(self.dir)
        self.assertEqual((bug.what, bug.effect, bug.applied(self.dir)),
                         ('A b.', 'E f.', self.FILE.replace('three', 'tree')))

    def test_filters(self):
        cases, scripts = ['S.A', 'S.B', 'T.A'], ['map_crash']
        for pattern in ('S.A', 'S.*', '*.B', 'P/S.A/3', '*/T.A/*', 'S.A:T.A', 'S.*-S.B',
                        '*map_crash*', '*'):
            self.assertEqual(planted_bugs.unmatched(pattern, cases, scripts), [], pattern)
        self.assertEqual(planted_bugs.unmatched('S.A:S.C:*map_cash*', cases, scripts),
                         ['S.C', '*map_cash*'])


class PlantedRuns(Temporary):
    """The runs, with shell scripts in place of compiler, linker and test programs: an object is
    the source's text, the library the texts of its objects, and a program looks for words in it."""
    COMPILER = """out=; in=
while [ $# -gt 0 ]; do case $1 in -o) out=$2; shift;; -c) in=$2; shift;; esac; shift; done
if grep -q 'syntax error' "$in"; then echo "error: in $in"; exit 1; fi
sed 's/#include "\\(.*\\)"/cat "\\1"/' "$in" | while read -r line; do
  case $line in 'cat "'*) eval "$line";; *) echo "$line";; esac; done > "$out"
"""
    LINKER = """objects=; out=
while [ $# -gt 0 ]; do case $1 in -o) out=$2; shift;; *.o) objects="$objects $1";; esac; shift
done
cat $objects > "$out"
"""
    # A source defines its name, and the unity file's text loses the lines of weak names.
    NM = "for file; do :; done; sed -n 's/.* //;1s/$/ T 0 0/p' \"$file\""
    OBJCOPY = 'grep -v -f "${1#--weaken-symbols=}" "$2" > "$3"; test -s "$3"'
    PROGRAM = """lib=${LD_PRELOAD:-${LD_LIBRARY_PATH:+${LD_LIBRARY_PATH%%%%:*}/librocksdb.so.9}}
lib=${lib:-%(own)s/librocksdb.so.9.1}
if [ -n "$TRACE" ]; then echo "librocksdb.so.9 => $lib (0x1)"; exit; fi
test -d "$TEST_TMPDIR" && test "$TEST_TMPDIR" = "$PWD" || exit 9
echo %(name)s >> %(own)s/ran
%(body)s
"""
    CASE = """echo "[ RUN      ] S.A"
if grep -q '%s' "$lib"; then %s; else echo "[       OK ] S.A (0 ms)"; fi
"""
    # A program is stopped after its first failed case.
    FAILED = 'echo "[  FAILED  ] S.A (1 ms)"; sleep 3600'

    def setUp(self):
        super().setUp()
        self.build = os.path.join(self.dir, 'build', 'debug')
        # The variable that the dynamic linker knows would list what the shell loads.
        loaded_by = library.Build.loaded_by
        self.trace = mock.patch.object(library.Build, 'loaded_by',
                                       lambda _, *a: loaded_by(*a, switch='TRACE'))
        self.trace.start()
        self.addCleanup(self.trace.stop)
        cc = self.write('cc', '#!/bin/sh\n' + self.COMPILER, 0o755)
        ld = self.write('ld', '#!/bin/sh\n' + self.LINKER, 0o755)
        for tool in ('NM', 'OBJCOPY'):
            path = self.write(tool.lower(), '#!/bin/sh\n' + getattr(self, tool), 0o755)
            replaced = mock.patch.object(library.Build, tool, path)
            replaced.start()
            self.addCleanup(replaced.stop)
        src = os.path.join(self.dir, 'build', 'src')
        prefix = 'CMakeFiles/rocksdb-shared.dir/'
        objects = [f'{prefix}db/a.cc.o', f'{prefix}Unity/unity_0_cxx.cxx.o']
        unity = self.write(f'build/debug/{prefix}Unity/unity_0_cxx.cxx', ''.join(
            f'#include "{src}/db/{name}.cc"\n\n' for name in 'bc'))
        self.entries = [
            {'directory': self.build, 'file': file, 'output': output,
             'command': f'{cc} -O1 -MD -MT {output} -MF {output}.d -o {output} -c {file}'}
            for output, file in zip(objects, (f'{src}/db/a.cc', unity))]
        self.entries.append({
            'directory': self.build, 'file': objects[0], 'output': 'librocksdb.so.9.1',
            'command': f': && {ld} -shared -Wl,-soname,librocksdb.so.9 -o librocksdb.so.9.1 '
                       f'{" ".join(objects)} -lz && :'})
        for name in 'abc':
            self.write(f'db/{name}.cc', f'good {name}\nend\n')
            self.write(f'build/src/db/{name}.cc', f'good {name}\nend\n')
        self.write(f'build/debug/{objects[0]}', 'good a\n')
        self.write(f'build/debug/{objects[1]}', 'good b\ngood c\n')
        self.write('build/debug/librocksdb.so.9.1', 'good a\ngood b\ngood c\n')
        self.now = time.time()
        self.built('build/debug/librocksdb.so.9.1')

    def program(self, name, body, word='bad'):
        self.write(f'build/debug/{name}', '#!/bin/sh\n' + self.PROGRAM % {
            'own': self.build, 'name': name,
            'body': self.CASE % (word, body) if body else word}, 0o755)
        self.write(f'db/{name}.cc', 'TEST(S, A) {}\n')

    def plant(self, name, source='a', word='bad', tests='first_test'):
        self.write(f'testdata/planted_bugs/{name}.patch',
                   f'# What: It is {word}.\n# Effect: It fails.\n# Tests: {tests}\n'
                   f'--- a/db/{source}.cc\n+++ b/db/{source}.cc\n@@ -1,2 +1,2 @@\n'
                   f'-good {source}\n+{word} {source}\n end\n')

    def built(self, path):
        """Makes a file newer than all others."""
        self.now += 10
        os.utime(os.path.join(self.dir, path), (self.now, self.now))

    def run_bugs(self, *arguments, more_seconds=programs.MORE_SECONDS):
        """Returns (exit code, {name: Result}, what was printed, the programs that ran)."""
        ran = os.path.join(self.build, 'ran')
        if os.path.exists(ran):
            os.unlink(ran)
        with mock.patch.object(planted_bugs, 'ROOT', self.dir), \
                mock.patch.object(library.Build, 'ask_ninja', lambda _: self.entries), \
                mock.patch.object(run_tests, 'stop_on_sigterm'), \
                mock.patch.object(programs, 'MORE_SECONDS', more_seconds), \
                mock.patch.object(programs, 'SLOWER', 0), \
                contextlib.redirect_stdout(io.StringIO()) as out:
            code = planted_bugs.main(['run', '--jobs', '1', *arguments])
        words = []
        if os.path.exists(ran):
            with open(ran, encoding='utf-8') as f:
                words = f.read().split()
        tsv = os.path.join(self.dir, results.FILE)
        return code, results.read(tsv), out.getvalue(), words

    def test_caught_and_missed(self):
        self.program('first_test', self.FAILED)
        self.program('other_test', self.FAILED, 'odd')
        self.program('history_script_test', self.FAILED, 'sad')
        self.plant('map-a')
        self.plant('map-b', 'b')     # in a unity file
        self.plant('map-odd', 'c', 'odd')
        self.plant('map-sad', 'c', 'sad')
        self.plant('map-missed', 'a', 'unseen')
        self.plant('map-wrong', 'a', 'syntax error')
        code, rows, out, _ = self.run_bugs()
        self.assertEqual(code, 1)
        self.assertEqual({n: (r.result, r.program, r.case, r.how) for n, r in rows.items()}, {
            'map-a': ('caught', 'first_test', 'S.A', 'failed'),
            'map-b': ('caught', 'first_test', 'S.A', 'failed'),
            'map-odd': ('caught', 'other_test', 'S.A', 'failed'),
            'map-sad': ('caught', 'history_script_test', 'S.A', 'failed'),
            'map-missed': ('missed', '', '', ''), 'map-wrong': ('error', '', '', '')})
        self.assertIn('the edit does not compile', rows['map-wrong'].note)
        self.assertIn('error: in ', out)
        self.assertIn('6 planted bugs: 4 caught, 1 not caught, 1 with errors', out)
        # Nothing else is left, and the build folder is as it was.
        self.assertEqual(sorted(os.listdir(os.path.join(self.dir, 'build', 'planted'))),
                         ['baselines.jsonl', 'logs', 'tmp'])
        with open(os.path.join(self.build, 'librocksdb.so.9.1'), encoding='utf-8') as f:
            self.assertEqual(f.read(), 'good a\ngood b\ngood c\n')

        # Only what the patches name is run, and what that does not catch gets no result.
        code, rows, out, ran = self.run_bugs('map-missed', 'map-a', '--quick', '--fresh')
        self.assertEqual((code, ran), (1, ['first_test', 'first_test']))
        self.assertEqual(rows['map-missed'].result, 'missed')
        self.assertIn('2 planted bugs: 1 caught, 1 not caught', out)

        code, _, out, ran = self.run_bugs('map-a', 'map-odd')
        self.assertEqual((code, ran), (0, []))
        self.assertIn('2 of 2 bugs have a result already', out)
        self.write('db/a.cc', 'first\ngood a\nend\n')
        self.built('build/debug/librocksdb.so.9.1')
        self.assertEqual(self.run_bugs('map-a', 'map-odd')[3], ['first_test', 'first_test'])
        self.assertEqual(self.run_bugs('map-a', '--fresh')[3], ['first_test'])
        self.assertEqual(len(self.run_bugs('map-a')[1]), 6)
        # What is not caught any more has no result until all programs have run.
        code, without, out, _ = self.run_bugs('map-missed', '--quick')
        self.assertEqual((code, len(without)), (1, 5))
        self.assertIn('1 planted bugs: 0 caught, 0 not caught, 0 with errors, 1 without', out)
        self.assertEqual(self.run_bugs('map-missed')[1]['map-missed'].result, 'missed')
        with open(os.path.join(self.dir, results.FILE), encoding='utf-8') as f:
            names = [line.split('\t')[0] for line in f]
        self.assertEqual(names, ['name', *sorted(rows)])

    def test_how_programs_end(self):
        self.program('abort_test', 'kill -ABRT $$')
        self.program('exit_test', None, 'grep -q bad "$lib" && exit 1; exit 0')
        for name in ('abort', 'exit'):
            self.plant(f'map-{name}', tests=f'{name}_test')
        _, rows, _, _ = self.run_bugs()
        self.assertEqual({n: (r.case, r.how) for n, r in rows.items()}, {
            'map-abort': ('S.A', 'aborted'), 'map-exit': ('(exit)', 'failed')})

    def test_a_program_that_hangs(self):
        self.program('first_test', 'sleep 3600')
        self.plant('map-a')
        _, rows, _, _ = self.run_bugs(more_seconds=1)
        self.assertEqual((rows['map-a'].case, rows['map-a'].how), ('S.A', 'hung'))

    def test_a_program_that_takes_too_long(self):
        self.program('first_test', None, 'sleep 3600')
        self.plant('map-a')
        _, rows, _, _ = self.run_bugs('--seconds-per-test', '1')
        self.assertEqual(rows['map-a'].result, 'error')
        self.assertIn('first_test takes more than 1 s without the bug', rows['map-a'].note)

    def test_what_fails_without_the_bug_proves_nothing(self):
        two = ('echo "[ RUN      ] S.A"; case $GTEST_FILTER in *-S.A) ;; *) '
               'echo "[  FAILED  ] S.A (1 ms)"; f=1;; esac; echo "[ RUN      ] S.B"; '
               'if grep -q bad "$lib"; then echo "[  FAILED  ] S.B (1 ms)"; f=1; else '
               'echo "[       OK ] S.B (1 ms)"; fi; exit $f')
        self.program('first_test', None, two)
        self.program('crash_test', None, 'kill -SEGV $$')
        self.plant('map-a')
        self.plant('map-b', word='unseen', tests='crash_test absent_test first_test')
        _, rows, _, _ = self.run_bugs()
        self.assertEqual(rows['map-a'].case, 'S.B')
        self.assertEqual(rows['map-b'].result, 'missed')
        for note in ('crash_test fails without the bug, too', 'absent_test is not built'):
            self.assertIn(note, rows['map-b'].note)

    def test_a_program_that_looks_beside_itself_first(self):
        rpath = 'lib=${LD_PRELOAD:-%s/librocksdb.so.9.1}\n' % self.build
        program = self.write('build/debug/rpath_test', '#!/bin/sh\n' + rpath +
                             'echo "librocksdb.so.9 => $lib (0x1)"\n', 0o755)
        out = os.path.join(self.dir, 'out')
        self.write('out/librocksdb.so.9')
        build = library.Build(self.dir, self.build, self.entries)
        self.assertEqual(list(build.library_environment(program, out)), ['LD_PRELOAD'])
        self.write('build/debug/static_test', '#!/bin/sh\n', 0o755)
        with self.assertRaises(library.BuildError):
            build.library_environment(os.path.join(self.build, 'static_test'), out)

    def test_commands(self):
        build = library.Build(self.dir, self.build, self.entries)
        unity = self.entries[1]['output']
        self.assertEqual([build.object_of(f'db/{n}.cc') for n in 'abc'],
                         [self.entries[0]['output'], unity, unity])
        with self.assertRaises(library.BuildError):
            build.object_of('db/d.cc')
        words = build.compile_words(self.entries[0], 'db/a.cc', '/o/src/db/a.cc', '/o/e.o', '/o')
        self.assertEqual(words[1:], [
            '-O1', '-o', '/o/e.o', '-c', '/o/src/db/a.cc', '-O0', '-g0', '-iquote',
            os.path.join(self.dir, 'build', 'src', 'db'), '-fmacro-prefix-map=/o/src/='])
        with self.assertRaises(library.BuildError):
            library.Build(self.dir, self.build, self.entries[:2])

    def test_an_old_library(self):
        build = library.Build(self.dir, self.build, self.entries)
        build.require_up_to_date()
        for source in ('db/a.cc', 'db/c.cc'):
            self.built(os.path.join('build/src', source))
            with self.assertRaises(library.BuildError) as e:
                build.require_up_to_date()
            self.assertIn(source, str(e.exception))
            self.built('build/debug/librocksdb.so.9.1')
            build.require_up_to_date()
        os.unlink(os.path.join(self.build, 'librocksdb.so.9.1'))
        with self.assertRaises(library.BuildError):
            build.require_up_to_date()

    def test_sample(self):
        for area in ('map', 'gc'):
            for i in range(7):
                self.plant(f'{area}-{i}')
        with mock.patch.object(planted_bugs, 'ROOT', self.dir):
            for sample, expected in ((None, 14), (1, 2), (3, 6), (9, 14)):
                args = argparse.Namespace(names=[], sample=sample)
                self.assertEqual(len(planted_bugs.chosen(args)), expected)

    def test_table(self):
        self.plant('map-a')
        self.plant('map-b', word='un|seen')
        self.plant('wal-a')
        bugs = patch.load(self.dir)
        found = {'map-a': results.Result('map-a', '', 'caught', 'a_test', 'S.A', 'hung', '1.26'),
                 'map-b': results.Result('map-b', '', 'missed'),
                 'gone-a': results.Result('gone-a', '', 'caught', 'a_test', 'S.A', 'hung', '1')}
        path = self.write('table.md', f'before\n{results.BEGIN}\nold\n{results.END}\nafter\n')
        for _ in range(2):
            results.write_table(path, bugs, found)
            with open(path, encoding='utf-8') as f:
                text = f.read()
            self.assertTrue(text.startswith('before\n') and text.endswith('\nafter\n'), text)
        self.assertNotIn('old', text)
        for line in ('3 bugs are planted. 1 of them were caught, 1 were not, 1 have not been run.',
                     '* `map-b`: It is un|seen. It fails.', '### Address map', '1 of 2 caught.',
                     '| It is bad. | `a_test` S.A (hang) | 1.3 |', '0 of 1 caught.'):
            self.assertIn(line + '\n', text)
        self.assertNotIn('gone', text)
        with self.assertRaises(SystemExit):
            results.write_table(self.write('none.md'), bugs, found)


if __name__ == '__main__':
    unittest.main()
