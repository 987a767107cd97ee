# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
#
# Included by the patched CMakeLists.txt of the tree at its end: adds Strata's own sources
# to targets other than the library and its tests (see strata.cmake).

function(strata_add_sources kind target)
  strata_read_list(${kind} paths)
  if(NOT TARGET ${target} OR NOT paths)
    return()
  endif()
  list(TRANSFORM paths PREPEND "${PROJECT_SOURCE_DIR}/")
  target_sources(${target} PRIVATE ${paths})
  set_source_files_properties(${paths} TARGET_DIRECTORY ${target}
    PROPERTIES COMPILE_OPTIONS "${STRATA_COMPILE_OPTIONS}")
endfunction()

strata_add_sources(TEST_LIB testutillib${ARTIFACT_SUFFIX})

# Functions that stand in front of libc's, and what uses them, for the tests of seeded interleavings
# alone. From a library, the linker would take the former for every test, because each test calls
# functions of these names.
strata_read_list(SEEDED STRATA_SEEDED)
if(STRATA_SEEDED)
  add_library(strata_seeded OBJECT EXCLUDE_FROM_ALL ${STRATA_SEEDED})
  target_compile_options(strata_seeded PRIVATE ${STRATA_COMPILE_OPTIONS})
  foreach(test IN LISTS STRATA_TEST_MAIN)
    get_filename_component(name "${test}" NAME_WE)
    if(name MATCHES "^seeded_" AND TARGET ${name}${ARTIFACT_SUFFIX})
      target_sources(${name}${ARTIFACT_SUFFIX} PRIVATE $<TARGET_OBJECTS:strata_seeded>)
      target_link_libraries(${name}${ARTIFACT_SUFFIX} ${CMAKE_DL_LIBS})
    endif()
  endforeach()
endif()

strata_add_sources(BENCH db_bench${ARTIFACT_SUFFIX})

# The workloads of db_bench: a library of its own, because their tests link it, too.
strata_read_list(BENCH_LIB STRATA_BENCH_LIB)
if(STRATA_BENCH_LIB)
  add_library(strata_bench STATIC EXCLUDE_FROM_ALL ${STRATA_BENCH_LIB})
  target_compile_options(strata_bench PRIVATE ${STRATA_COMPILE_OPTIONS})
  target_link_libraries(strata_bench PUBLIC ${ROCKSDB_LIB})
  # db_stress has the simulated devices in common with db_bench. It is a target of another directory,
  # to which a library can be linked from here since this policy.
  cmake_policy(SET CMP0079 NEW)
  foreach(tool db_bench db_stress)
    if(TARGET ${tool}${ARTIFACT_SUFFIX})
      target_link_libraries(${tool}${ARTIFACT_SUFFIX} strata_bench)
    endif()
  endforeach()
  foreach(test IN LISTS STRATA_TEST_MAIN)
    get_filename_component(name "${test}" NAME_WE)
    if(test MATCHES "^tools/workloads/" AND TARGET ${name}${ARTIFACT_SUFFIX})
      target_link_libraries(${name}${ARTIFACT_SUFFIX} strata_bench)
    endif()
  endforeach()
endif()
strata_add_sources(STRESS db_stress${ARTIFACT_SUFFIX})

# Tests of upstream's that GCC 12 warns about, which upstream's -Werror would not forgive. A
# compiler that does not know the warning does not mind its absence.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set_source_files_properties(
    utilities/write_batch_with_index/write_batch_with_index_test.cc
    PROPERTIES COMPILE_OPTIONS -Wno-range-loop-construct)
  # With FAST_DEBUG, which optimises, as upstream's debug builds do not.
  set_source_files_properties(
    options/options_test.cc
    PROPERTIES COMPILE_OPTIONS -Wno-maybe-uninitialized)
endif()

# Many files in one translation unit (FAST_DEBUG and FAST_RELEASE in scripts/configure.sh). CMake
# leaves out files with compile options of their own, so Strata's have none then.
if(STRATA_UNITY)
  set_target_properties(${ROCKSDB_SHARED_LIB} PROPERTIES
    UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${STRATA_UNITY})
  strata_read_list(LIB own)
  strata_read_list(TEST_LIB own_test)
  list(APPEND own ${own_test})
  list(TRANSFORM own PREPEND "${PROJECT_SOURCE_DIR}/")
  set_property(SOURCE ${own} PROPERTY COMPILE_OPTIONS)
  if(TARGET testutillib${ARTIFACT_SUFFIX})
    set_target_properties(testutillib${ARTIFACT_SUFFIX} PROPERTIES
      UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${STRATA_UNITY})
  endif()
  # It names the commit, for which run_tests.py throws away no results.
  set_source_files_properties(${BUILD_VERSION_CC} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endif()

# Of the static library only objects are known, of which the linker's language does not follow.
set_target_properties(${ROCKSDB_STATIC_LIB} PROPERTIES LINKER_LANGUAGE CXX)

# The public headers need C++20, so programs that link the library are compiled with it.
set(libraries ${ROCKSDB_STATIC_LIB})
if(ROCKSDB_BUILD_SHARED)
  list(APPEND libraries ${ROCKSDB_SHARED_LIB})
endif()
foreach(library IN LISTS libraries)
  target_compile_features(${library} INTERFACE cxx_std_20)
endforeach()

# What only the shared library has, with the symbol version that it needs.
if(ROCKSDB_BUILD_SHARED AND UNIX AND NOT APPLE)
  strata_read_list(SHARED STRATA_SHARED)
  add_library(strata_shared OBJECT ${STRATA_SHARED})
  set_target_properties(strata_shared PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_compile_definitions(strata_shared PRIVATE STRATA_FOREIGN_HEADERS)
  # Link-time optimisation would lose the symbol versions, which are in asm statements.
  target_compile_options(strata_shared PRIVATE
    ${STRATA_COMPILE_OPTIONS} -fno-lto ${STRATA_COVERAGE_OPTIONS})
  target_include_directories(strata_shared PRIVATE "${PROJECT_SOURCE_DIR}/include")
  target_sources(${ROCKSDB_SHARED_LIB} PRIVATE $<TARGET_OBJECTS:strata_shared>)
  set(map "${PROJECT_SOURCE_DIR}/cmake/shared_symbols.map")
  target_link_options(${ROCKSDB_SHARED_LIB} PRIVATE "LINKER:--version-script=${map}")
  set_property(TARGET ${ROCKSDB_SHARED_LIB} APPEND PROPERTY LINK_DEPENDS "${map}")
endif()

# The counts of coverage belong to the library, which is linked with --coverage, and not to programs.
# ExitChild() (test_util/strata/exit_child_test_util.h) calls the library's __gcov_dump().
if(STRATA_COVERAGE)
  target_link_options(${ROCKSDB_STATIC_LIB} INTERFACE --coverage)
  if(ROCKSDB_BUILD_SHARED)
    target_link_options(${ROCKSDB_SHARED_LIB} PRIVATE --coverage "LINKER:-u,__gcov_dump")
  endif()
endif()

# The tools with which a database is inspected, and made one of RocksDB again. They find the
# library beside them, wherever it is installed.
if(NOT WIN32 OR ROCKSDB_INSTALL_ON_WINDOWS)
  file(RELATIVE_PATH to_library
    "${CMAKE_INSTALL_FULL_BINDIR}" "${CMAKE_INSTALL_FULL_LIBDIR}")
  foreach(tool ldb sst_dump)
    if(TARGET ${tool}${ARTIFACT_SUFFIX})
      set_target_properties(${tool}${ARTIFACT_SUFFIX} PROPERTIES
        INSTALL_RPATH "$ORIGIN/${to_library}")
      install(TARGETS ${tool}${ARTIFACT_SUFFIX} COMPONENT runtime
        RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
    endif()
  endforeach()
endif()

# Micro-benchmarks: programs of their own, built when asked for.
add_executable(address_map_bench${ARTIFACT_SUFFIX} EXCLUDE_FROM_ALL
  microbench/strata/address_map_bench.cc)
target_compile_options(address_map_bench${ARTIFACT_SUFFIX} PRIVATE ${STRATA_COMPILE_OPTIONS})
target_link_libraries(address_map_bench${ARTIFACT_SUFFIX} ${ROCKSDB_LIB} ${GFLAGS_LIB})

# Fuzzers ("make fuzz"). clang's libFuzzer has the main() of each. The library is compiled with
# -fsanitize=fuzzer-no-link (scripts/configure.sh), so that the fuzzer sees which code an input
# reaches.
strata_read_list(FUZZER STRATA_FUZZERS)
if(STRATA_FUZZ)
  add_custom_target(strata_fuzzers)
  foreach(fuzzer IN LISTS STRATA_FUZZERS)
    get_filename_component(name "${fuzzer}" NAME_WE)
    add_executable(${name} EXCLUDE_FROM_ALL "${fuzzer}")
    target_compile_options(${name} PRIVATE ${STRATA_COMPILE_OPTIONS})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    target_link_libraries(${name} ${ROCKSDB_LIB})
    add_dependencies(strata_fuzzers ${name})
  endforeach()
endif()

# The test that runs all of them over their corpora, with any compiler: it has their sources, too.
set(corpus_test fuzz_corpus_test${ARTIFACT_SUFFIX})
if(TARGET ${corpus_test})
  target_sources(${corpus_test} PRIVATE ${STRATA_FUZZERS})
  target_compile_options(${corpus_test} PRIVATE ${STRATA_COMPILE_OPTIONS})
  target_compile_definitions(${corpus_test} PRIVATE
    STRATA_FUZZ_CORPUS_TEST
    STRATA_FUZZ_CORPUS="${PROJECT_SOURCE_DIR}/fuzz/strata/corpus")
endif()
