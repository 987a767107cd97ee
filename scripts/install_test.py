#!/usr/bin/env python3
# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Installs the library from a build folder and builds programs against what was installed.

Usage: install_test.py BUILD_FOLDER      (its target rocksdb-shared must be built)

Two consumers, one through find_package(RocksDB) and one through pkg-config, are compiled,
linked with the shared library and run. The package is configured anew for a temporary
prefix, in a folder of its own, with the library of BUILD_FOLDER: nothing is recompiled.
"""
import os
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
  for (auto codec : rocksdb::GetSupportedCompressions()) std::printf(" %d", static_cast<int>(codec));
  std::printf("\n");
  return 0;
}
'''

CMAKELISTS = r'''
cmake_minimum_required(VERSION 3.18)
project(consumer CXX)
set(CMAKE_CXX_STANDARD 20)
find_package(RocksDB 11 REQUIRED)
add_executable(consumer consumer.cc)
target_link_libraries(consumer PRIVATE RocksDB::rocksdb-shared)
# Not built, only generated: that needs every target that the static library names.
add_executable(static-consumer EXCLUDE_FROM_ALL consumer.cc)
target_link_libraries(static-consumer PRIVATE RocksDB::rocksdb)
'''


def sh(*command, **more):
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    if run.returncode:
        raise AssertionError(f'{" ".join(command)}: exit {run.returncode}\n{run.stdout}')
    return run.stdout


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
           '-C', os.path.join(ROOT, 'cmake', 'strata_options.cmake'), '-S', values['CMAKE_HOME_DIRECTORY'],
           '-B', build, f'-DCMAKE_BUILD_TYPE={values["CMAKE_BUILD_TYPE"]}',
           f'-DCMAKE_INSTALL_PREFIX={cls.prefix}', '-DCMAKE_INSTALL_LIBDIR=lib', '-DWITH_TESTS=OFF')
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
        if os.path.exists(static):
            os.symlink(static, os.path.join(build, 'librocksdb.a'))
        else:  # upstream's install wants it; an empty archive keeps its place, nothing here links it
            sh('ar', 'crs', os.path.join(build, 'librocksdb.a'))
        sh('cmake', '--install', build)
        for consumer in ('cmake', 'pkgconfig'):
            os.mkdir(os.path.join(cls.top, consumer))
            with open(os.path.join(cls.top, consumer, 'consumer.cc'), 'w', encoding='utf-8') as f:
                f.write(PROGRAM)
        with open(os.path.join(cls.top, 'cmake', 'CMakeLists.txt'), 'w', encoding='utf-8') as f:
            f.write(CMAKELISTS)

    def run_consumer(self, program, name):
        env = dict(os.environ, LD_LIBRARY_PATH=os.path.join(self.prefix, 'lib'))
        out = sh(program, os.path.join(self.top, 'db-' + name), env=env)
        words = out.split()
        self.assertEqual(words[:2], ['rocksdb', '11.8.1'])
        self.assertEqual(words[2], 'strata')
        # none, snappy, zlib, bzip2, lz4, lz4hc, zstd
        self.assertLessEqual({'0', '1', '2', '3', '4', '5', '7'}, set(words[5:]))
        libs = sh('ldd', program, env=env)
        self.assertIn(os.path.join(self.prefix, 'lib', 'librocksdb.so.11'), libs)

    def test_files(self):
        lib = os.path.join(self.prefix, 'lib')
        self.assertEqual(os.readlink(os.path.join(lib, 'librocksdb.so')), 'librocksdb.so.11')
        self.assertEqual(os.readlink(os.path.join(lib, 'librocksdb.so.11')), 'librocksdb.so.11.8.1')
        for folder, _, names in os.walk(os.path.join(self.prefix, 'include')):
            for name in names:
                path = os.path.join(folder, name)
                self.assertFalse(os.path.islink(path), f'{path}: a link into the tree was installed')

    def test_find_package(self):
        d = os.path.join(self.top, 'cmake')
        sh('cmake', '-G', 'Ninja', '-S', d, '-B', os.path.join(d, 'out'), f'-DCMAKE_PREFIX_PATH={self.prefix}')
        sh('ninja', '-C', os.path.join(d, 'out'))
        self.run_consumer(os.path.join(d, 'out', 'consumer'), 'cmake')

    def test_pkg_config(self):
        env = dict(os.environ, PKG_CONFIG_PATH=os.path.join(self.prefix, 'lib', 'pkgconfig'))
        self.assertEqual(sh('pkg-config', '--modversion', 'rocksdb', env=env).strip(), '11.8.1')
        words = sh('pkg-config', '--cflags', '--libs', 'rocksdb', env=env).split()
        self.assertIn(f'-I{self.prefix}/include', words)
        d = os.path.join(self.top, 'pkgconfig')
        sh(os.environ.get('CXX', 'c++'), '-std=c++20', os.path.join(d, 'consumer.cc'), '-o',
           os.path.join(d, 'consumer'), *words)
        self.run_consumer(os.path.join(d, 'consumer'), 'pkgconfig')


if __name__ == '__main__':
    if len(sys.argv) < 2 or not os.path.exists(os.path.join(sys.argv[1], 'CMakeCache.txt')):
        print(__doc__)
        sys.exit(2)
    BUILD = os.path.abspath(sys.argv.pop(1))
    unittest.main()
