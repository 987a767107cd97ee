#!/usr/bin/env python3
# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Keeps cmake/strata.mk, the list of Strata's own C++ sources, in step with the files.

Usage: overlay_sources.py --write    bring the list up to date (every build does this)
       overlay_sources.py --check    exit 1 and say how the list differs (no change made)
       overlay_sources.py --print    print "kind path" for every source

The list is one file with two readers: cmake/strata.cmake parses it, and upstream's
src.mk includes it. It names what is compiled explicitly, so a copy of the tree in
which the overlay's links have become plain files builds the same thing.

What a file is follows from its place and its name:

  *_test.cc anywhere                       TEST_MAIN  one GoogleTest binary of that name
  interposed_*_test_util.cc and
  seeded_*_test_util.cc anywhere           SEEDED     the test binaries seeded_*_test, in which some
                                                      functions stand in front of libc's
  other *_test_util.cc, test_util/*.cc     TEST_LIB   the library that test binaries link
  *_shared.cc in a directory of LIB        SHARED     the shared librocksdb alone (CMake only)
  cache/ db/ env/ file/ logging/ memory/ memtable/ monitoring/ options/ port/ table/
  trace_replay/ util/ utilities/           LIB        librocksdb
  tools/strata/ldb_*.cc                    LIB        (where upstream has ldb, too)
  tools/workloads/*.cc                     BENCH_LIB  db_bench, the tests in tools/workloads/, and
                                                      db_stress (with CMake)
  tools/strata/db_bench_*.cc               BENCH      db_bench
  db_stress_tool/strata/*.cc               STRESS     db_stress
  fuzz/strata/*_fuzzer.cc                  FUZZER     a fuzzer of that name, and fuzz_corpus_test
  microbench/, examples/                   (none)     built by their own targets

Any other .cc file in these directories is an error, not silently left out.
"""
import os
import sys

LIBRARY = ('cache db env file logging memory memtable monitoring options port table '
           'trace_replay util utilities').split()
OTHER = 'test_util tools db_stress_tool fuzz include'.split()
# kind -> the variable of upstream's src.mk that it extends. Not so the tests: upstream's Makefile
# has a rule for each test by name, and we add no rules there. Tests are built by CMake. Nor what is
# only in the shared library: that Makefile makes both libraries of the same sources.
KINDS = {'LIB': 'LIB_SOURCES', 'SHARED': None, 'TEST_LIB': 'TEST_LIB_SOURCES', 'TEST_MAIN': None,
         'SEEDED': None, 'BENCH_LIB': 'BENCH_LIB_SOURCES', 'BENCH': 'BENCH_LIB_SOURCES',
         'STRESS': 'STRESS_LIB_SOURCES', 'FUZZER': None}
LIST = 'cmake/strata.mk'


class Misplaced(Exception):
    pass


def kind_of(path):
    """The kind of an overlay source, by the rules above. `path` is relative, with slashes."""
    top, name = path.split('/')[0], path.split('/')[-1]
    if name.endswith('_test.cc'):
        return 'TEST_MAIN'
    if name.startswith(('interposed_', 'seeded_')) and name.endswith('_test_util.cc'):
        return 'SEEDED'
    if name.endswith('_test_util.cc') or top == 'test_util':
        return 'TEST_LIB'
    if top == 'fuzz' and name.endswith('_fuzzer.cc'):
        return 'FUZZER'
    if name.endswith(('_bench.cc', '_fuzzer.cc')):
        raise Misplaced(f'{path}: micro-benchmarks live in microbench/, fuzzers in fuzz/')
    if top in LIBRARY:
        return 'SHARED' if name.endswith('_shared.cc') else 'LIB'
    if top == 'db_stress_tool':
        return 'STRESS'
    if top == 'tools':
        if path.startswith('tools/workloads/'):
            return 'BENCH_LIB'
        if name.startswith('db_bench_'):
            return 'BENCH'
        if name.startswith(('ldb_', 'sst_dump_')):
            return 'LIB'
    raise Misplaced(f'{path}: no rule says what this file is part of '
                    f'(the rules are at the top of scripts/overlay_sources.py)')


def find(root):
    """All overlay C++ sources: {kind: [path, ...]}, sorted. Raises Misplaced."""
    found = {kind: [] for kind in KINDS}
    tests = {}
    for top in LIBRARY + OTHER:
        for folder, dirs, names in os.walk(os.path.join(root, top)):
            dirs[:] = sorted(d for d in dirs if not d.startswith('.'))
            for name in sorted(names):
                if name.startswith('.') or not name.endswith(('.cc', '.cpp', '.cxx', '.c')):
                    continue
                path = os.path.relpath(os.path.join(folder, name), root).replace(os.sep, '/')
                if not name.endswith('.cc'):
                    raise Misplaced(f'{path}: sources are named .cc')
                kind = kind_of(path)
                if kind == 'TEST_MAIN' and tests.setdefault(name, path) != path:
                    raise Misplaced(f'{path}: {tests[name]} makes a binary of the same name')
                found[kind].append(path)
    return {kind: sorted(paths) for kind, paths in found.items()}


def render(found):
    out = ['# Copyright (c) The Strata Authors',
           '# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0',
           '#',
           "# Strata's own sources. Written by scripts/overlay_sources.py, which every build runs;",
           '# read by cmake/strata.cmake and included by src.mk.']
    for kind in KINDS:
        out += ['', f'STRATA_{kind} = \\']
        out += [f'  {path} \\' for path in found[kind]]
    out.append('')
    out += [f'{variable} += $(STRATA_{kind})' for kind, variable in KINDS.items() if variable]
    return '\n'.join(out) + '\n'


def parse(text):
    """The paths in a rendered list: {kind: [path, ...]}."""
    found, kind = {k: [] for k in KINDS}, None
    for line in text.split('\n'):
        words = line.split()
        if len(words) == 3 and words[1:] == ['=', '\\'] and words[0].startswith('STRATA_'):
            kind = words[0][len('STRATA_'):]
        elif kind and len(words) == 2 and words[1] == '\\':
            found[kind].append(words[0])
        else:
            kind = None
    return found


def main(argv):
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if len(argv) == 3 and argv[1] == '--root':
        root, argv = os.path.abspath(argv[2]), argv[:1]
    if len(argv) != 1 or argv[0] not in ('--write', '--check', '--print'):
        print(__doc__)
        return 2
    try:
        found = find(root)
    except Misplaced as e:
        print(f'overlay_sources: {e}', file=sys.stderr)
        return 1
    if argv[0] == '--print':
        for kind in KINDS:
            for path in found[kind]:
                print(kind, path)
        return 0
    path, new = os.path.join(root, LIST), render(found)
    try:
        with open(path, encoding='utf-8') as f:
            old = f.read()
    except FileNotFoundError:
        old = ''
    if old == new:
        return 0
    was = {p for paths in parse(old).values() for p in paths}
    now = {p for paths in found.values() for p in paths}
    for p in sorted(now - was):
        print(f'{LIST}: + {p}')
    for p in sorted(was - now):
        print(f'{LIST}: - {p}')
    if argv[0] == '--check':
        print(f'overlay_sources: {LIST} is out of date; run "make source" and commit it',
              file=sys.stderr)
        return 1
    with open(path + '.tmp', 'w', encoding='utf-8') as f:
        f.write(new)
    os.replace(path + '.tmp', path)
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
