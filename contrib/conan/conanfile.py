# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""A recipe of Conan 2 that builds the source tarball.

The tarball and its .sha256 have to lie beside this file (docs/packaging.md).
"""
import os

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import check_sha256, copy, load, rm, rmdir, unzip

# Option of the recipe -> (package, option of CMake, package of find_package(), its target).
LIBRARIES = {
    'with_lz4': ('lz4/[>=1.9 <2]', 'WITH_LZ4', 'lz4', 'lz4::lz4'),
    'with_snappy': ('snappy/[>=1.1 <2]', 'WITH_SNAPPY', 'Snappy', 'Snappy::snappy'),
    'with_zlib': ('zlib/[>=1.2.11 <2]', 'WITH_ZLIB', 'ZLIB', 'ZLIB::ZLIB'),
    'with_zstd': ('zstd/[>=1.5 <2]', 'WITH_ZSTD', 'zstd', 'zstd::zstd'),
}


class StrataConan(ConanFile):
    name = 'strata'
    version = '0.1.0'
    description = 'A fork of RocksDB that keeps values, merge operands and devices apart'
    license = 'GPL-2.0-only OR Apache-2.0'
    topics = 'rocksdb', 'database', 'key-value', 'lsm-tree'
    # The library has RocksDB's name, so a program links one of the two.
    provides = 'rocksdb'
    package_type = 'library'
    settings = 'os', 'compiler', 'build_type', 'arch'
    options = {'shared': [True, False], 'fPIC': [True, False], 'tools': [True, False],
               **{name: [True, False] for name in LIBRARIES}}
    default_options = {'shared': False, 'fPIC': True, 'tools': True,
                       **{name: True for name in LIBRARIES}}
    exports_sources = 'strata-*.tar.gz', 'strata-*.tar.gz.sha256'

    def chosen(self):
        """The rows of LIBRARIES that are on."""
        return [row for name, row in LIBRARIES.items() if self.options.get_safe(name)]

    def configure(self):
        if self.options.shared:
            self.options.rm_safe('fPIC')

    def layout(self):
        cmake_layout(self, src_folder='src')

    def requirements(self):
        for package, *_ in self.chosen():
            self.requires(package)

    def validate(self):
        if self.settings.os != 'Linux':
            raise ConanInvalidConfiguration('this recipe builds for Linux')
        if self.settings.get_safe('compiler.cppstd'):
            check_min_cppstd(self, 20)

    def source(self):
        archive = os.path.join(self.export_sources_folder, f'strata-{self.version}.tar.gz')
        check_sha256(self, archive, load(self, f'{archive}.sha256').split()[0])
        unzip(self, archive, strip_root=True)

    def generate(self):
        toolchain = CMakeToolchain(self)
        values = toolchain.cache_variables
        values['ROCKSDB_BUILD_SHARED'] = bool(self.options.shared)
        values['WITH_CORE_TOOLS'] = bool(self.options.tools)
        values['WITH_BZ2'] = values['WITH_LIBURING'] = False
        for name, (_, variable, *_) in LIBRARIES.items():
            values[variable] = bool(self.options.get_safe(name))
        toolchain.generate()
        deps = CMakeDeps(self)
        for package, _, file, target in self.chosen():
            name = package.split('/')[0]
            deps.set_property(name, 'cmake_file_name', file)
            deps.set_property(name, 'cmake_target_name', target)
        deps.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        licenses = os.path.join(self.package_folder, 'licenses')
        copy(self, 'LICENSE*', self.source_folder, licenses)
        copy(self, 'LICENSE.leveldb', os.path.join(self.source_folder, 'src'), licenses)
        # CMakeDeps writes what find_package() reads.
        rmdir(self, os.path.join(self.package_folder, 'lib', 'cmake'))
        rmdir(self, os.path.join(self.package_folder, 'lib', 'pkgconfig'))
        if self.options.shared:
            rm(self, 'librocksdb.a', os.path.join(self.package_folder, 'lib'))

    def package_info(self):
        target = 'rocksdb-shared' if self.options.shared else 'rocksdb'
        self.cpp_info.libs = ['rocksdb']
        self.cpp_info.system_libs = ['pthread', 'm', 'dl']
        self.cpp_info.set_property('cmake_file_name', 'RocksDB')
        self.cpp_info.set_property('cmake_target_name', f'RocksDB::{target}')
        self.cpp_info.set_property('pkg_config_name', 'rocksdb')
