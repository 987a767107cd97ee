#!/usr/bin/env python3
# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Installs the library from a build folder and builds programs against what was installed.

Usage: install_test.py BUILD_FOLDER  (its targets rocksdb-shared, ldb, sst_dump must be built)

Consumers in C++ and C, through find_package(RocksDB) and through pkg-config, are compiled,
linked with the shared library and run; with the static one, too, if BUILD_FOLDER has it. What
was compiled with other C++ headers must be refused. The package is configured again for a
temporary prefix, in a folder of its own, with the library of BUILD_FOLDER: nothing is
recompiled.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = None

PROGRAM = r'''
#include <cstdio>
#include <memory>
#include <string>

#include "rocksdb/convenience.h"
#include "rocksdb/db.h"
#include "rocksdb/options.h"
#include "rocksdb/utilities/options_util.h"
#include "rocksdb/version.h"

int main(int, char** argv) {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.enable_blob_files = true;
  options.compression = rocksdb::kZSTD;
  std::unique_ptr<rocksdb::DB> db;
  rocksdb::Status s = rocksdb::DB::Open(options, argv[1], &db);
  if (s.ok()) s = db->Put(rocksdb::WriteOptions(), "key", std::string(1000, 'v'));
  if (s.ok()) s = db->Flush(rocksdb::FlushOptions());
  std::string value;
  if (s.ok()) s = db->Get(rocksdb::ReadOptions(), "key", &value);
  db.reset();
  const auto& properties = rocksdb::GetRocksBuildProperties();
  auto strata = properties.find("strata_version");
  if (!s.ok() || value.size() != 1000 || strata == properties.end()) {
    std::fprintf(stderr, "%s, %zu bytes\n", s.ToString().c_str(), value.size());
    return 1;
  }
  std::printf("rocksdb %s strata %s codecs", rocksdb::GetRocksVersionAsString(true).c_str(),
              strata->second.c_str());
  for (auto codec : rocksdb::GetSupportedCompressions()) {
    std::printf(" %d", static_cast<int>(codec));
  }
  std::printf("\n");
  return 0;
}
'''

# An application's own classes, compiled with default flags: they need the type information
# of the classes that they are derived from.
SUBCLASSES = r'''
#include <cstdio>
#include <memory>
#include <string>
#include <typeinfo>

#include "rocksdb/compaction_filter.h"
#include "rocksdb/comparator.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "rocksdb/file_system.h"
#include "rocksdb/iterator.h"
#include "rocksdb/listener.h"
#include "rocksdb/merge_operator.h"
#include "rocksdb/slice_transform.h"
#include "rocksdb/table_properties.h"
#include "rocksdb/utilities/stackable_db.h"
#include "rocksdb/write_batch.h"

using namespace rocksdb;

struct Append : AssociativeMergeOperator {
  bool Merge(const Slice&, const Slice* old, const Slice& value, std::string* result,
             Logger*) const override {
    *result = (old != nullptr ? old->ToString() : "") + value.ToString();
    return true;
  }
  const char* Name() const override { return "Append"; }
};

struct Descending : Comparator {
  int Compare(const Slice& a, const Slice& b) const override { return b.compare(a); }
  const char* Name() const override { return "Descending"; }
  void FindShortestSeparator(std::string*, const Slice&) const override {}
  void FindShortSuccessor(std::string*) const override {}
};

struct Counter : WriteBatch::Handler {
  int merges = 0;
  Status MergeCF(uint32_t, const Slice&, const Slice&) override {
    ++merges;
    return Status::OK();
  }
};

struct Listener : EventListener {
  int flushes = 0;
  void OnFlushCompleted(DB*, const FlushJobInfo&) override { ++flushes; }
};

struct Full : MergeOperator {
  const char* Name() const override { return "Full"; }
};
struct Filter : CompactionFilter {
  const char* Name() const override { return "Filter"; }
};
struct Factory : CompactionFilterFactory {
  std::unique_ptr<CompactionFilter> CreateCompactionFilter(
      const CompactionFilter::Context&) override {
    return std::make_unique<Filter>();
  }
  const char* Name() const override { return "Factory"; }
};
struct Prefix : SliceTransform {
  const char* Name() const override { return "Prefix"; }
  Slice Transform(const Slice& key) const override { return key; }
  bool InDomain(const Slice&) const override { return true; }
};
struct Environment : EnvWrapper {
  using EnvWrapper::EnvWrapper;
  const char* Name() const override { return "Environment"; }
};
struct Files : FileSystemWrapper {
  using FileSystemWrapper::FileSystemWrapper;
  const char* Name() const override { return "Files"; }
};
struct Stacked : StackableDB {
  using StackableDB::StackableDB;
};

int main(int, char** argv) {
  Descending descending;
  auto listener = std::make_shared<Listener>();
  auto files = std::make_shared<Files>(FileSystem::Default());
  std::unique_ptr<Env> env = NewCompositeEnv(files);
  Environment environment(env.get());
  Options options;
  options.create_if_missing = true;
  options.env = &environment;
  options.comparator = &descending;
  options.merge_operator = std::make_shared<Append>();
  options.compaction_filter_factory = std::make_shared<Factory>();
  options.prefix_extractor = std::make_shared<Prefix>();
  options.listeners.push_back(listener);
  std::unique_ptr<DB> base;
  Status s = DB::Open(options, argv[1], &base);
  if (!s.ok()) {
    std::fprintf(stderr, "%s\n", s.ToString().c_str());
    return 1;
  }
  Stacked db(base.release());
  WriteBatch batch;
  Counter counter;
  s = batch.Merge("key", "a");
  if (s.ok()) s = batch.Merge("key", "b");
  if (s.ok()) s = batch.Iterate(&counter);
  if (s.ok()) s = db.Write(WriteOptions(), &batch);
  if (s.ok()) s = db.Flush(FlushOptions());
  std::string value;
  if (s.ok()) s = db.Get(ReadOptions(), "key", &value);
  Full full;
  const Customizable* object = &full;
  const bool typed =
      dynamic_cast<const MergeOperator*>(object) == &full && typeid(*object) == typeid(Full);
  if (!s.ok() || value != "ab" || counter.merges != 2 || listener->flushes != 1 || !typed) {
    std::fprintf(stderr, "%s %s %d %d\n", s.ToString().c_str(), value.c_str(), counter.merges,
                 listener->flushes);
    return 1;
  }
  return 0;
}
'''

C_PROGRAM = r'''
#include <rocksdb/c.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char** argv) {
  char* error = NULL;
  size_t size = 0;
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
  rocksdb_readoptions_t* read = rocksdb_readoptions_create();
  rocksdb_options_set_create_if_missing(options, argc > 1);
  rocksdb_t* db = rocksdb_open(options, argv[1], &error);
  if (error == NULL) rocksdb_put(db, write, "key", 3, "value", 5, &error);
  char* value = error == NULL ? rocksdb_get(db, read, "key", 3, &size, &error) : NULL;
  if (error != NULL || size != 5 || memcmp(value, "value", 5) != 0) {
    fprintf(stderr, "%s\n", error != NULL ? error : "wrong value");
    return 1;
  }
  rocksdb_free(value);
  rocksdb_close(db);
  rocksdb_readoptions_destroy(read);
  rocksdb_writeoptions_destroy(write);
  rocksdb_options_destroy(options);
  return 0;
}
'''

# What is left of a program, and of RocksDB's library, with RocksDB's headers: the symbols.
FOREIGN_HEADER = r'''
namespace rocksdb {
struct DBOptions {
  DBOptions();
  char members[512];
};
}  // namespace rocksdb
'''

# find_package() says which standard the headers need.
CMAKELISTS = r'''
cmake_minimum_required(VERSION 3.18)
project(consumer CXX)
find_package(RocksDB 11 REQUIRED)
add_executable(consumer consumer.cc)
target_link_libraries(consumer PRIVATE RocksDB::rocksdb-shared)
# Not built, only generated: that needs every target that the static library names.
add_executable(static-consumer EXCLUDE_FROM_ALL consumer.cc)
target_link_libraries(static-consumer PRIVATE RocksDB::rocksdb)
'''


CXX = os.environ.get('CXX', 'c++')
CC = os.environ.get('CC', 'cc')


def sh(*command, fails=False, **more):
    """Runs a command that must succeed, or fail. Returns what it printed."""
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         **more)
    if (run.returncode != 0) != fails:
        raise AssertionError(f'{" ".join(command)}: exit {run.returncode}\n{run.stdout}')
    return run.stdout


def symbols(path, *options):
    """The dynamic symbols of a program or a shared library, with their versions."""
    return [line.split()[-1] for line in sh('nm', '-D', *options, path).splitlines()]


def cache(build):
    """CMakeCache.txt: {name: value}."""
    out = {}
    with open(os.path.join(build, 'CMakeCache.txt'), encoding='utf-8') as f:
        for line in f:
            if ':' in line and '=' in line and not line.startswith(('#', '//')):
                name, rest = line.split(':', 1)
                out[name] = rest.split('=', 1)[1].rstrip('\n')
    return out


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.top = tempfile.mkdtemp(prefix='install-')
        cls.addClassCleanup(shutil.rmtree, cls.top, ignore_errors=True)
        cls.prefix = os.path.join(cls.top, 'prefix')
        values = cache(BUILD)
        build = os.path.join(cls.top, 'build')
        sh('cmake', '-G', 'Ninja', f'-DSTRATA_TREE={values["CMAKE_HOME_DIRECTORY"]}',
           '-C', os.path.join(ROOT, 'cmake', 'strata_options.cmake'),
           '-S', values['CMAKE_HOME_DIRECTORY'], '-B', build,
           f'-DCMAKE_BUILD_TYPE={values["CMAKE_BUILD_TYPE"]}',
           f'-DCMAKE_INSTALL_PREFIX={cls.prefix}', '-DCMAKE_INSTALL_LIBDIR=lib', '-DWITH_TESTS=OFF',
           # They are installed from BUILD: see test_tools().
           '-DWITH_CORE_TOOLS=OFF', '-DWITH_TOOLS=OFF')
        for name in os.listdir(BUILD):
            if name.startswith('librocksdb.so'):
                source = os.path.join(BUILD, name)
                if os.path.islink(source):
                    os.symlink(os.readlink(source), os.path.join(build, name))
                elif os.stat(source).st_dev == os.stat(build).st_dev:
                    os.link(source, os.path.join(build, name))
                else:
                    shutil.copy2(source, os.path.join(build, name))
        static = os.path.join(BUILD, 'librocksdb.a')
        cls.has_static = os.path.exists(static)
        if cls.has_static:
            os.symlink(static, os.path.join(build, 'librocksdb.a'))
        else:
            # Upstream's install wants it. An empty archive keeps its place, nothing here links it.
            sh('ar', 'crs', os.path.join(build, 'librocksdb.a'))
        sh('cmake', '--install', build)
        cls.lib = os.path.join(cls.prefix, 'lib')
        cls.library = os.path.join(cls.lib, 'librocksdb.so.11')
        cls.pkg = dict(os.environ, PKG_CONFIG_PATH=os.path.join(cls.lib, 'pkgconfig'))
        cls.flags = sh('pkg-config', '--cflags', '--libs', 'rocksdb', env=cls.pkg).split()

    def write(self, path, text):
        path = os.path.join(self.top, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'w', encoding='utf-8') as f:
            f.write(text)
        return path

    def with_libraries(self, *folders):
        return dict(os.environ, LD_LIBRARY_PATH=':'.join(folders))

    def build_and_run(self, name, text, compiler=CXX, flags=None):
        source = self.write(f'{name}/consumer.{"c" if compiler == CC else "cc"}', text)
        program = os.path.join(os.path.dirname(source), 'consumer')
        sh(compiler, source, '-o', program, *(self.flags if flags is None else flags))
        sh(program, os.path.join(self.top, 'db-' + name), env=self.with_libraries(self.lib))
        return program

    def run_consumer(self, program, name):
        env = self.with_libraries(self.lib)
        out = sh(program, os.path.join(self.top, 'db-' + name), env=env)
        words = out.split()
        self.assertEqual(words[:2], ['rocksdb', '11.8.1'])
        self.assertEqual(words[2], 'strata')
        # none, snappy, zlib, bzip2, lz4, lz4hc, zstd
        self.assertLessEqual({'0', '1', '2', '3', '4', '5', '7'}, set(words[5:]))
        self.assertIn(self.library, sh('ldd', program, env=env))

    def test_files(self):
        self.assertEqual(os.readlink(os.path.join(self.lib, 'librocksdb.so')), 'librocksdb.so.11')
        self.assertEqual(os.readlink(self.library), 'librocksdb.so.11.8.1')
        for folder, _, names in os.walk(os.path.join(self.prefix, 'include')):
            for name in names:
                path = os.path.join(folder, name)
                self.assertFalse(os.path.islink(path),
                                 f'{path}: a link into the tree was installed')

    def test_find_package(self):
        self.write('cmake/consumer.cc', PROGRAM)
        d = os.path.dirname(self.write('cmake/CMakeLists.txt', CMAKELISTS))
        sh('cmake', '-G', 'Ninja', '-S', d, '-B', os.path.join(d, 'out'),
           f'-DCMAKE_PREFIX_PATH={self.prefix}')
        sh('ninja', '-C', os.path.join(d, 'out'))
        self.run_consumer(os.path.join(d, 'out', 'consumer'), 'cmake')

    def test_pkg_config(self):
        version = sh('pkg-config', '--modversion', 'rocksdb', env=self.pkg)
        self.assertEqual(version.strip(), '11.8.1')
        self.assertIn(f'-I{self.prefix}/include', self.flags)
        self.assertIn('-std=c++20', self.flags)
        self.run_consumer(self.build_and_run('pkgconfig', PROGRAM), 'pkgconfig-again')

    def test_pkg_config_static(self):
        words = sh('pkg-config', '--static', '--libs', 'rocksdb', env=self.pkg).split()
        for lib in ('z', 'bz2', 'lz4', 'zstd', 'snappy', 'uring'):
            self.assertIn(f'-l{lib}', words)
        if not self.has_static:
            words.remove('-lrocksdb')
            self.build_and_run('static', 'int main() {}\n', flags=words)  # the libraries are there
            return
        words[words.index('-lrocksdb')] = '-l:librocksdb.a'
        flags = [f'-I{self.prefix}/include', '-std=c++20', *words]
        self.build_and_run('static', PROGRAM, flags=flags)
        self.build_and_run('static-c', C_PROGRAM, compiler=CC, flags=[flags[0], *words])

    def test_subclasses(self):
        self.build_and_run('subclasses', SUBCLASSES)
        # Debug builds always have type information. Release builds have it, too:
        self.assertEqual(cache(BUILD)['USE_RTTI'], 'ON')

    def test_c(self):
        """Programs in C are the same for both libraries: nothing in them names Strata."""
        program = self.build_and_run('c', C_PROGRAM, compiler=CC)
        self.assertEqual([s for s in symbols(program) if 'strata' in s], [])

    def test_c_headers_are_relative(self):
        """bindgen is given c.h alone, without a path to the folder that it lies in."""
        source = self.write('relative/include.c', f'#include "{self.prefix}/include/rocksdb/c.h"\n')
        sh(CC, '-fsyntax-only', source)

    def test_tools(self):
        prefix = os.path.join(self.top, 'elsewhere')
        sh('cmake', '--install', BUILD, '--prefix', prefix, '--component', 'runtime')
        db = os.path.join(self.top, 'db-tools')
        ldb, sst_dump = (os.path.join(prefix, 'bin', tool) for tool in ('ldb', 'sst_dump'))
        libraries = sh('ldd', ldb)
        library = re.search(r'librocksdb\.so\.11 => (\S+)', libraries).group(1)
        self.assertIn(os.path.join(os.path.realpath(prefix), ''), os.path.realpath(library))
        sh(ldb, f'--db={db}', '--create_if_missing', 'put', 'key', 'value')
        sh(ldb, f'--db={db}', 'compact')
        self.assertEqual(sh(ldb, f'--db={db}', 'get', 'key').strip(), 'value')
        self.assertIn("'key' seq:0, type:1 => value",
                      sh(sst_dump, f'--file={db}', '--command=scan'))
        self.assertIn('disable_address_map', sh(ldb, '--help'))

    # --- C++ programs that were compiled for another library, and other libraries ---

    def test_every_tagged_function_refuses(self):
        """util/strata/foreign_headers_shared.cc has what rocksdb/strata_abi.h has tagged, no more
        and no less."""
        names = symbols(self.library, '--defined-only')
        tagged = {re.sub(r'B\d+strata\d+', '', s) for s in names if re.search(r'B\d+strata\d+', s)}
        refused = {s.split('@')[0] for s in names
                   if s.endswith('@COMPILED_WITH_OTHER_HEADERS') and s[0] == '_'}
        self.assertIn('_ZN7rocksdb9DBOptionsC1Ev', tagged)
        self.assertEqual(tagged, refused)

    def test_objects_of_other_headers_do_not_link(self):
        source = self.write('foreign-object/main.cc',
                            FOREIGN_HEADER + 'int main() { rocksdb::DBOptions options; }\n')
        out = sh(CXX, source, '-o', source[:-3], *self.flags, fails=True)
        self.assertRegex(out, r'undefined (reference|symbol).*rocksdb::DBOptions::DBOptions\(\)')

    def test_programs_of_other_headers_are_refused(self):
        other = os.path.join(self.top, 'foreign-program')
        library = self.write('foreign-program/library.cc',
                             FOREIGN_HEADER + 'rocksdb::DBOptions::DBOptions() {}\n')
        sh(CXX, '-shared', '-fPIC', '-Wl,-soname,librocksdb.so.11', library,
           '-o', f'{other}/librocksdb.so.11')
        source = self.write('foreign-program/main.cc',
                            FOREIGN_HEADER + 'int main() { rocksdb::DBOptions options; }\n')
        for binding in ('lazy', 'now'):
            sh(CXX, source, '-o', f'{other}/main', f'{other}/librocksdb.so.11', f'-Wl,-z,{binding}')
            sh(f'{other}/main', env=self.with_libraries(other))
            out = sh(f'{other}/main', env=self.with_libraries(self.lib), fails=True)
            self.assertIn('this program was compiled with the C++ headers of RocksDB', out)
            self.assertIn('DBOptions::DBOptions()', out)

    def test_other_libraries_are_refused(self):
        """A library with all that the program needs but Strata's own symbols is refused at the
        start."""
        program = self.build_and_run('native', PROGRAM)
        guard = [s for s in symbols(program, '-u') if 'strata_cxx_abi' in s]
        self.assertEqual(guard, ['this_program_needs_librocksdb_of_strata_cxx_abi_1'])
        ours = {s.split('@')[0] for s in symbols(self.library, '--defined-only')}
        needed = {s for s in symbols(program, '-u') if s in ours and 'strata' not in s}
        self.assertTrue(needed)
        source = self.write('other-library/library.s', '.data\n' + ''.join(
            f'.globl {s}\n.type {s}, %object\n.size {s}, 8\n{s}: .quad 0\n'
            for s in sorted(needed)) +
            '.section .note.GNU-stack,"",%progbits\n')
        other = os.path.dirname(source)
        sh(CXX, '-shared', '-Wl,-soname,librocksdb.so.11', source,
           '-o', f'{other}/librocksdb.so.11')
        out = sh(program, os.path.join(self.top, 'db-other'), env=self.with_libraries(other),
                 fails=True)
        self.assertIn(f'undefined symbol: {guard[0]}', out)


if __name__ == '__main__':
    if len(sys.argv) < 2 or not os.path.exists(os.path.join(sys.argv[1], 'CMakeCache.txt')):
        print(__doc__)
        sys.exit(2)
    BUILD = os.path.abspath(sys.argv.pop(1))
    unittest.main()
