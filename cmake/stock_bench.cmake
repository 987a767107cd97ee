# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
#
# For the build of unpatched RocksDB, into which configure.sh injects it
# (CMAKE_PROJECT_rocksdb_INCLUDE): adds the target db_bench_workloads, which is Strata's
# db_bench on RocksDB's own library. So both sides of a measurement run the same benchmarks.
# Nothing in the library changes, and the tree is not touched. With FAST_RELEASE it is compiled
# like Strata's, several source files at once, so that the two can be compared.
#
# STRATA_ROOT is the project's root, with the patched tree in build/src.

function(strata_add_stock_bench)
  file(GLOB workloads CONFIGURE_DEPENDS "${STRATA_ROOT}/tools/workloads/*.cc")
  list(FILTER workloads EXCLUDE REGEX "_test\\.cc$")
  add_executable(db_bench_workloads EXCLUDE_FROM_ALL
    tools/simulated_hybrid_file_system.cc
    tools/db_bench.cc
    tools/tool_hooks.cc
    "${STRATA_ROOT}/build/src/tools/db_bench_tool.cc"
    "${STRATA_ROOT}/tools/strata/db_bench_workloads.cc"
    "${STRATA_ROOT}/utilities/strata/field_update.cc"
    ${workloads})
  # After the tree's own folders, so that RocksDB's headers are those of its library.
  target_include_directories(db_bench_workloads PRIVATE "${STRATA_ROOT}")
  target_compile_definitions(db_bench_workloads PRIVATE STRATA_STOCK_LIBRARY)
  target_link_libraries(db_bench_workloads ${ROCKSDB_LIB} ${THIRDPARTY_LIBS})
  if(STRATA_UNITY)
    set_target_properties(${ROCKSDB_SHARED_LIB} PROPERTIES
      UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${STRATA_UNITY})
  endif()
endfunction()

cmake_language(DEFER CALL strata_add_stock_bench)
