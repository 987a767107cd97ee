#!/usr/bin/env python3
# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Tests of the recipes in contrib/, with stand-ins for vcpkg and for Conan."""
import hashlib
import importlib.util
import json
import os
import pathlib
import re
import shutil
import sys
import types
import unittest
from unittest import mock

from dist_test import ROOT, cmake, own_version, text_of, unknown_options
from temporary_folder import Temporary
from tree_fixture import write


class Recipes(unittest.TestCase):
    def test_versions_agree(self):
        self.assertEqual(json.loads(text_of('contrib/vcpkg/strata/vcpkg.json'))['version'],
                         own_version())
        self.assertIn(f"version = '{own_version()}'\n", text_of('contrib/conan/conanfile.py'))

    def test_options_exist(self):
        for path in ('contrib/vcpkg/strata/portfile.cmake', 'contrib/conan/conanfile.py'):
            self.assertEqual(unknown_options(path), [])


@unittest.skipUnless(shutil.which('cmake'), 'cmake is not installed')
class Vcpkg(Temporary):
    """The port, with functions in place of vcpkg's that print their arguments."""

    CALLED = ('vcpkg_check_linkage vcpkg_check_features vcpkg_cmake_configure vcpkg_cmake_install '
              'vcpkg_cmake_config_fixup vcpkg_fixup_pkgconfig vcpkg_copy_tools '
              'vcpkg_install_copyright').split()

    def run_port(self, features='', sums=None):
        port = pathlib.Path(self.dir, 'port')
        write(port / 'portfile.cmake', text_of('contrib/vcpkg/strata/portfile.cmake'))
        if sums is not None:
            write(port / 'strata-1.2.3.tar.gz', b'content')
            write(port / 'strata-1.2.3.tar.gz.sha256', f'{sums}  strata-1.2.3.tar.gz\n')
        # vcpkg's scripts ask for this version.
        script = 'cmake_minimum_required(VERSION 3.21)\n'
        script += ''.join(f'function({name})\n  message(STATUS "{name} ${{ARGN}}")\nendfunction()\n'
                          for name in self.CALLED)
        script += ('function(vcpkg_extract_source_archive out)\n'
                   '  message(STATUS "vcpkg_extract_source_archive ${ARGN}")\n'
                   '  set(${out} /unpacked PARENT_SCOPE)\nendfunction()\n'
                   f'set(VERSION 1.2.3)\nset(FEATURES "{features}")\n'
                   f'set(CURRENT_PACKAGES_DIR "{self.dir}/packages")\n'
                   f'include("{port}/portfile.cmake")\n')
        return cmake('-P', self.write('port.cmake', script))

    def test_steps(self):
        code, text = self.run_port('core;tools', hashlib.sha256(b'content').hexdigest())
        self.assertEqual(code, 0, text)
        called = re.findall(r'^-- (vcpkg_\w+)', text, re.M)
        self.assertEqual(called, ['vcpkg_check_linkage', 'vcpkg_extract_source_archive',
                                  *self.CALLED[1:]])
        self.assertIn('ARCHIVE;' + os.path.join(self.dir, 'port', 'strata-1.2.3.tar.gz'), text)
        self.assertIn('SOURCE_PATH;/unpacked;', text)
        for path in re.findall(r'/unpacked/([^;\n]+)', text):
            there = ROOT / (f'build/{path}' if path.startswith('src/') else path)
            self.assertTrue(there.exists() or not (ROOT / 'build/src').exists(), path)

    def test_tools_are_a_feature(self):
        code, text = self.run_port('core', hashlib.sha256(b'content').hexdigest())
        self.assertEqual(code, 0, text)
        self.assertNotIn('vcpkg_copy_tools', text)

    def test_refusals(self):
        code, text = self.run_port()
        self.assertNotEqual(code, 0)
        self.assertIn('strata-1.2.3.tar.gz is missing', ' '.join(text.split()))
        code, text = self.run_port(sums='0' * 64)
        self.assertNotEqual(code, 0)
        self.assertIn('has the SHA-256', ' '.join(text.split()))

    def test_features_agree(self):
        manifest = json.loads(text_of('contrib/vcpkg/strata/vcpkg.json'))
        asked = re.search(r'vcpkg_check_features\((.*?)\)',
                          text_of('contrib/vcpkg/strata/portfile.cmake'), re.S)[1]
        self.assertEqual(re.findall(r'^    (\w+) WITH_', asked, re.M),
                         list(manifest['features']))
        self.assertLess(set(manifest['default-features']), set(manifest['features']))
        self.assertEqual(manifest['name'], 'strata')


class Recorder:
    """Stands for Conan's CMakeToolchain and CMakeDeps."""
    made = []

    def __init__(self, recipe):
        self.cache_variables, self.properties = {}, []
        Recorder.made.append(self)

    def set_property(self, *args):
        self.properties.append(args)

    def generate(self):
        pass


class Options(types.SimpleNamespace):
    def get_safe(self, name):
        return getattr(self, name, None)

    def rm_safe(self, name):
        self.__dict__.pop(name, None)


class Conan(Temporary):
    """The recipe, with modules in place of Conan's."""

    def setUp(self):
        super().setUp()
        Recorder.made.clear()
        self.calls = []
        names = {
            'conan': {'ConanFile': type('ConanFile', (), {'requires': lambda _, package:
                                                          self.calls.append(package)})},
            'conan.errors': {'ConanInvalidConfiguration': ValueError},
            'conan.tools': {},
            'conan.tools.build': {'check_min_cppstd': self.call('cppstd')},
            'conan.tools.cmake': {'CMake': mock.Mock(), 'CMakeDeps': Recorder,
                                  'CMakeToolchain': Recorder, 'cmake_layout': self.call('layout')},
            'conan.tools.files': {'check_sha256': self.call('check'), 'copy': self.call('copy'),
                                  'load': lambda *_: 'sum  name\n',
                                  'rm': self.call('rm'), 'rmdir': self.call('rmdir'),
                                  'unzip': self.call('unzip')}}
        modules = {}
        for name, members in names.items():
            modules[name] = types.ModuleType(name)
            modules[name].__dict__.update(members)
        patch = mock.patch.dict(sys.modules, modules)
        patch.start()
        self.addCleanup(patch.stop)
        spec = importlib.util.spec_from_file_location('strata_conanfile',
                                                      ROOT / 'contrib/conan/conanfile.py')
        self.module = importlib.util.module_from_spec(spec)
        with mock.patch.object(sys, 'dont_write_bytecode', True):
            spec.loader.exec_module(self.module)
        self.recipe = self.module.StrataConan()
        self.recipe.options = Options(**self.recipe.default_options)

    def call(self, name):
        return lambda recipe, *args, **options: self.calls.append((name, *args))

    def test_options(self):
        self.assertEqual(self.recipe.options.__dict__.keys(), self.recipe.__class__.options.keys())

    def test_requirements_and_variables(self):
        self.recipe.options.with_zstd = False
        self.recipe.requirements()
        self.assertEqual([package.split('/')[0] for package in self.calls],
                         ['lz4', 'snappy', 'zlib'])
        self.recipe.generate()
        toolchain, deps = Recorder.made
        self.assertEqual(toolchain.cache_variables, {
            'ROCKSDB_BUILD_SHARED': False, 'WITH_CORE_TOOLS': True, 'WITH_BZ2': False,
            'WITH_LIBURING': False, 'WITH_LZ4': True, 'WITH_SNAPPY': True, 'WITH_ZLIB': True,
            'WITH_ZSTD': False})
        self.assertEqual(len(deps.properties), 6)

    def test_targets_are_those_that_the_tree_links(self):
        if not (ROOT / 'build/src/CMakeLists.txt').exists():
            self.skipTest('build/src is not there')
        tree = text_of('build/src/CMakeLists.txt')
        for _, variable, package, target in self.module.LIBRARIES.values():
            self.assertIn(f'option({variable} ', tree)
            self.assertIn(f'find_package({package} ', tree)
            self.assertIn(f'THIRDPARTY_LIBS {target})', tree)

    def test_source(self):
        self.recipe.export_sources_folder = '/exported'
        self.recipe.source()
        archive = f'/exported/strata-{self.recipe.version}.tar.gz'
        self.assertEqual(self.calls, [('check', archive, 'sum'), ('unzip', archive)])

    def test_shared(self):
        self.recipe.options.shared = True
        self.recipe.configure()
        self.assertFalse(hasattr(self.recipe.options, 'fPIC'))
        self.recipe.package_folder, self.recipe.source_folder = '/package', '/source'
        self.recipe.package()
        self.assertIn(('rm', 'librocksdb.a', '/package/lib'), self.calls)
        self.recipe.cpp_info = mock.Mock()
        self.recipe.package_info()
        self.recipe.cpp_info.set_property.assert_any_call('cmake_target_name',
                                                          'RocksDB::rocksdb-shared')

    def test_other_systems_are_refused(self):
        self.recipe.settings = mock.Mock(os='Windows')
        with self.assertRaises(ValueError):
            self.recipe.validate()
        self.recipe.settings.os = 'Linux'
        self.recipe.validate()
        self.assertEqual(self.calls, [('cppstd', 20)])


if __name__ == '__main__':
    unittest.main()
