# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
#
# An overlay port that builds the source tarball. The tarball and its .sha256 have to lie
# beside this file (docs/packaging.md).

# A dynamic build of RocksDB installs the static library as well, which vcpkg does not allow.
vcpkg_check_linkage(ONLY_STATIC_LIBRARY)

set(archive "${CMAKE_CURRENT_LIST_DIR}/strata-${VERSION}.tar.gz")
foreach(file IN ITEMS "${archive}" "${archive}.sha256")
  if(NOT EXISTS "${file}")
    message(FATAL_ERROR "${file} is missing. \"make dist\" writes it to build/dist.")
  endif()
endforeach()
file(STRINGS "${archive}.sha256" wanted LIMIT_COUNT 1)
string(SUBSTRING "${wanted}" 0 64 wanted)
file(SHA256 "${archive}" found)
if(NOT found STREQUAL wanted)
  message(FATAL_ERROR "${archive} has the SHA-256 ${found}, ${archive}.sha256 says ${wanted}.")
endif()
vcpkg_extract_source_archive(SOURCE_PATH ARCHIVE "${archive}")

vcpkg_check_features(OUT_FEATURE_OPTIONS feature_options
  FEATURES
    liburing WITH_LIBURING
    lz4 WITH_LZ4
    snappy WITH_SNAPPY
    tools WITH_CORE_TOOLS
    zlib WITH_ZLIB
    zstd WITH_ZSTD
)

# The package of a library with bzip2 would name it by its path on the machine that built it.
vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS
    ${feature_options}
    -DROCKSDB_BUILD_SHARED=OFF
    -DWITH_BZ2=OFF
  OPTIONS_DEBUG
    -DWITH_CORE_TOOLS=OFF
)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(PACKAGE_NAME rocksdb CONFIG_PATH lib/cmake/rocksdb)
vcpkg_fixup_pkgconfig()
if("tools" IN_LIST FEATURES)
  vcpkg_copy_tools(TOOL_NAMES ldb sst_dump AUTO_CLEAN)
endif()
file(REMOVE_RECURSE
  "${CURRENT_PACKAGES_DIR}/debug/include"
  "${CURRENT_PACKAGES_DIR}/debug/share")

vcpkg_install_copyright(
  COMMENT "Strata and RocksDB are under GPL-2.0-only or Apache-2.0, at your choice."
  FILE_LIST
    "${SOURCE_PATH}/LICENSE"
    "${SOURCE_PATH}/LICENSE.Apache"
    "${SOURCE_PATH}/LICENSE.GPL2"
    "${SOURCE_PATH}/src/LICENSE.leveldb"
)
