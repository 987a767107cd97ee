# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
#
# The build options that every build folder shares. scripts/configure.sh passes this file
# to "cmake -C"; the root CMakeLists.txt includes it. Both end up with the same command
# lines, hence with the same ccache entries. A value given with -D wins.

foreach(name WITH_SNAPPY WITH_LZ4 WITH_ZLIB WITH_ZSTD WITH_BZ2 WITH_LIBURING WITH_GFLAGS
    WITH_ALL_TESTS)
  set(${name} ON CACHE BOOL "Strata builds with all of them")
endforeach()
# Applications derive from the library's classes (comparators, merge operators, listeners). With a
# compiler's default flags they need the type information of these, which RocksDB's release builds
# do not have if nothing else is asked for.
set(USE_RTTI ON CACHE STRING "Enable RTTI in builds")
set(PORTABLE 1 CACHE STRING "Minimum CPU arch to support, or 0 = current CPU, 1 = baseline CPU")

# mold links a test binary in a fraction of the time that GNU ld takes; lld is nearly as
# good. The choice is made here and not by upstream, which knows lld only.
set(ROCKSDB_NO_FAST_LINKER ON CACHE BOOL "Strata chooses the linker")
if(NOT DEFINED CACHE{STRATA_LINKER})
  find_program(STRATA_MOLD NAMES mold)
  find_program(STRATA_LLD NAMES ld.lld)
  set(linker "")
  if(STRATA_MOLD)
    set(linker mold)
  elseif(STRATA_LLD)
    set(linker lld)
  endif()
  set(STRATA_LINKER "${linker}" CACHE STRING "mold, lld, or empty for the compiler's default")
endif()
if(STRATA_LINKER)
  foreach(kind EXE SHARED)
    set(CMAKE_${kind}_LINKER_FLAGS "-fuse-ld=${STRATA_LINKER}" CACHE STRING "Linker flags")
  endforeach()
endif()

# STRATA_TREE is the tree to build: its prefix is stripped from __FILE__. GCC 12 reports
# overlaps in std::string's operator+ that are not there (-Wno-restrict).
if(STRATA_TREE)
  set(CMAKE_CXX_FLAGS "-Wno-restrict -fmacro-prefix-map=${STRATA_TREE}/=" CACHE STRING "C++ flags")
  set(CMAKE_C_FLAGS "-fmacro-prefix-map=${STRATA_TREE}/=" CACHE STRING "C flags")
endif()
