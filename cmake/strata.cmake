# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
#
# Included by the patched CMakeLists.txt of the tree just before its source list is used:
# adds Strata's own sources to SOURCES and its tests to PLUGIN_TESTS. strata_end.cmake
# adds the rest once the targets exist.
#
# Which file belongs to what is decided by scripts/overlay_sources.py (its head has the
# rules); the result, strata.mk, is read here. In a tree that is linked to the project, a
# file that comes or goes makes the next build write the list again.

# strata_read_list(KIND OUT): the paths under "STRATA_<KIND> = \" in strata.mk.
function(strata_read_list kind out)
  file(READ "${CMAKE_CURRENT_LIST_DIR}/strata.mk" lines)
  # A backslash before a semicolon would join two elements of a CMake list.
  string(REPLACE "\\" "" lines "${lines}")
  string(REPLACE "\n" ";" lines "${lines}")
  set(inside FALSE)
  set(paths "")
  foreach(line IN LISTS lines)
    if(line MATCHES "^STRATA_([A-Z_]+) = ")
      if(CMAKE_MATCH_1 STREQUAL kind)
        set(inside TRUE)
      else()
        set(inside FALSE)
      endif()
    elseif(inside AND line MATCHES "^ +([^ ]+)")
      list(APPEND paths "${CMAKE_MATCH_1}")
    elseif(NOT line MATCHES "^ ")
      set(inside FALSE)
    endif()
  endforeach()
  set(there "")
  foreach(path IN LISTS paths)
    if(EXISTS "${PROJECT_SOURCE_DIR}/${path}")
      list(APPEND there "${path}")
    else()
      message(WARNING "Strata: ${path} is not in the tree yet, so it is left out. "
        "Run \"make source\" in the project's root.")
    endif()
  endforeach()
  set(${out} "${there}" PARENT_SCOPE)
endfunction()

# OFF in builds with sanitizers (scripts/configure.sh), in which compilers give false warnings.
option(STRATA_WERROR "Treat warnings in Strata's own files as errors" ON)

# ON in build/coverage ("make coverage").
option(STRATA_COVERAGE "Count which code of Strata's own part of the library runs" OFF)

# Compile options, besides those of strata_compile_options(), for the sources of which coverage is
# counted. All other files are compiled as without coverage, so ccache has their objects.
function(strata_coverage_options out)
  set(options "")
  if(STRATA_COVERAGE)
    list(APPEND options --coverage -O1 -g1
      # With it GCC counts atomically. -fprofile-update=atomic would say the same, but ccache 4.7
      # does not store objects that are compiled with it.
      -pthread
      # Otherwise a function is inlined and simplified before its branches are counted.
      -fno-early-inlining -fno-ssa-phiopt
      # A test program that has an inline function, too, has a copy of it without counts, which the
      # dynamic linker would choose for the library as well.
      -fvisibility-inlines-hidden
      # GCC gives false warnings about instrumented code.
      -Wno-error)
  endif()
  set(${out} "${options}" PARENT_SCOPE)
endfunction()

# Compile options for Strata's own files. The prefix maps make __FILE__ in them what it is
# in an upstream file, a path below the tree: they are compiled through links, which ccache
# resolves to a relative path below the project's root.
function(strata_compile_options out)
  set(options "")
  if(NOT MSVC)
    if(STRATA_WERROR)
      list(APPEND options -Werror)
    endif()
    file(RELATIVE_PATH tree "${CMAKE_BINARY_DIR}" "${PROJECT_SOURCE_DIR}")
    set(prefixes "")
    if(STRATA_HOME)
      file(RELATIVE_PATH home_relative "${CMAKE_BINARY_DIR}" "${STRATA_HOME}")
      list(APPEND prefixes "${STRATA_HOME}" "${home_relative}")
    endif()
    # The last map that matches wins, so the tree comes after the root that contains it.
    list(APPEND prefixes "${PROJECT_SOURCE_DIR}" "${tree}")
    foreach(prefix IN LISTS prefixes)
      string(REGEX REPLACE "/$" "" prefix "${prefix}")
      if(prefix)
        list(APPEND options "-fmacro-prefix-map=${prefix}/=")
      endif()
    endforeach()
  endif()
  set(${out} "${options}" PARENT_SCOPE)
endfunction()

# The project's root if the tree is linked to one; empty in a copy with the links resolved.
function(strata_home out)
  set(home "")
  if(IS_SYMLINK "${PROJECT_SOURCE_DIR}/cmake/strata.mk")
    get_filename_component(home "${PROJECT_SOURCE_DIR}/cmake/strata.mk" REALPATH)
    get_filename_component(home "${home}/../.." ABSOLUTE)
  endif()
  set(${out} "${home}" PARENT_SCOPE)
endfunction()

# Brings the list up to date when files come or go, and checks it: every link in the tree
# to a source must be on it.
function(strata_check_list home)
  set(globs "")
  foreach(top cache db db_stress_tool env file fuzz logging memory memtable monitoring options port
      table test_util tools trace_replay util utilities)
    list(APPEND globs "${PROJECT_SOURCE_DIR}/${top}/*.cc")
  endforeach()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}" ${globs})
  if(home AND EXISTS "${home}/scripts/overlay_sources.py")
    execute_process(COMMAND python3 "${home}/scripts/overlay_sources.py" --write
      RESULT_VARIABLE failed)
    if(failed)
      message(FATAL_ERROR "Strata: the list of sources cannot be made; see above")
    endif()
  endif()
  set(listed "")
  foreach(kind LIB SHARED TEST_LIB TEST_MAIN SEEDED BENCH_LIB BENCH STRESS FUZZER)
    strata_read_list(${kind} paths)
    list(APPEND listed ${paths})
  endforeach()
  foreach(path IN LISTS sources)
    if(IS_SYMLINK "${PROJECT_SOURCE_DIR}/${path}" AND NOT path IN_LIST listed)
      message(FATAL_ERROR "Strata: ${path} is a link that cmake/strata.mk does not list. "
        "Run \"make source\" in the project's root.")
    endif()
  endforeach()
endfunction()

# The sources of the static library. Where there is a shared library, too, its objects serve for both,
# so that each file is compiled once. They are position-independent, which a static library may be.
# On Windows the two are compiled with different definitions.
function(strata_static_sources out)
  if(ROCKSDB_BUILD_SHARED AND NOT WIN32)
    set(objects "$<TARGET_OBJECTS:${ROCKSDB_SHARED_LIB}>")
    if(STRATA_COVERAGE)
      list(APPEND objects $<TARGET_OBJECTS:strata_counted>)
    endif()
    set(${out} "${objects}" PARENT_SCOPE)
  else()
    set(${out} "${SOURCES};${BUILD_VERSION_CC}" PARENT_SCOPE)
  endif()
endfunction()

# The linker flags of what a program needs that is linked with the static library, for
# "Libs.private" of rocksdb.pc: the libraries that the library is linked with.
function(strata_libs_private out)
  set(flags "")
  set(left ${THIRDPARTY_LIBS} ${CMAKE_THREAD_LIBS_INIT} ${CMAKE_DL_LIBS})
  foreach(lib IN ITEMS stdc++ m)  # for programs in C
    if(lib IN_LIST CMAKE_CXX_IMPLICIT_LINK_LIBRARIES)
      list(APPEND left ${lib})
    endif()
  endforeach()
  while(left)
    list(POP_FRONT left lib)
    if(TARGET "${lib}")
      get_target_property(type "${lib}" TYPE)
      if(NOT type STREQUAL "INTERFACE_LIBRARY")
        get_target_property(location "${lib}" LOCATION)
        list(APPEND left "${location}")
      endif()
      get_target_property(needs "${lib}" INTERFACE_LINK_LIBRARIES)
      if(needs)
        list(APPEND left ${needs})
      endif()
    elseif(IS_ABSOLUTE "${lib}")
      get_filename_component(dir "${lib}" DIRECTORY)
      get_filename_component(name "${lib}" NAME)
      if(NOT name MATCHES "^lib(.+)\\.(so|a|dylib)[.0-9]*$")
        list(APPEND flags "${lib}")
        continue()
      endif()
      set(name "${CMAKE_MATCH_1}")
      if(NOT dir IN_LIST CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES)
        list(APPEND flags "-L${dir}")
      endif()
      list(APPEND flags "-l${name}")
    elseif(lib MATCHES "^-")
      list(APPEND flags "${lib}")
    elseif(lib AND NOT lib MATCHES "[<>:]")
      list(APPEND flags "-l${lib}")
    endif()
  endwhile()
  list(REMOVE_DUPLICATES flags)
  string(JOIN " " flags ${flags})
  set(${out} "${flags}" PARENT_SCOPE)
endfunction()

strata_home(STRATA_HOME)
strata_check_list("${STRATA_HOME}")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
  "${CMAKE_CURRENT_LIST_DIR}/strata.mk")

strata_read_list(LIB STRATA_LIB)
strata_read_list(TEST_MAIN STRATA_TEST_MAIN)
# These tests put functions in front of those of glibc and of the shared library.
if(NOT CMAKE_SYSTEM_NAME STREQUAL "Linux" OR NOT ROCKSDB_BUILD_SHARED)
  list(FILTER STRATA_TEST_MAIN EXCLUDE REGEX "/seeded_[^/]*_test\\.cc$")
endif()
strata_compile_options(STRATA_COMPILE_OPTIONS)
strata_coverage_options(STRATA_COVERAGE_OPTIONS)
strata_libs_private(STRATA_LIBS_PRIVATE)
if(STRATA_COVERAGE)
  # Of an inline function that several objects have, the linker takes the first one, and RocksDB's
  # objects have copies without counts. Objects of another target come before those of sources.
  list(APPEND SOURCES $<TARGET_OBJECTS:strata_counted>)
else()
  list(APPEND SOURCES ${STRATA_LIB})
endif()
list(APPEND PLUGIN_TESTS ${STRATA_TEST_MAIN})
if(STRATA_LIB OR STRATA_TEST_MAIN)
  set_source_files_properties(${STRATA_LIB} ${STRATA_TEST_MAIN}
    PROPERTIES COMPILE_OPTIONS "${STRATA_COMPILE_OPTIONS}")
endif()
if(STRATA_COVERAGE)
  add_library(strata_counted OBJECT ${STRATA_LIB})
  set_target_properties(strata_counted PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_include_directories(strata_counted PRIVATE "${PROJECT_SOURCE_DIR}/include")
  # Options of the sources would come after those of the target.
  set_property(SOURCE ${STRATA_LIB} PROPERTY COMPILE_OPTIONS)
  target_compile_options(strata_counted PRIVATE
    ${STRATA_COMPILE_OPTIONS} ${STRATA_COVERAGE_OPTIONS})
endif()

# GCC 12 reports overlaps in std::string's operator+ that are not there.
if(CMAKE_COMPILER_IS_GNUCXX AND NOT CMAKE_CXX_FLAGS MATCHES "-Wno-restrict")
  set(CMAKE_CXX_FLAGS "${CMAKE_CXX_FLAGS} -Wno-restrict")
endif()
if(NOT MSVC AND NOT CMAKE_CXX_FLAGS MATCHES "-fmacro-prefix-map")
  set(CMAKE_CXX_FLAGS "${CMAKE_CXX_FLAGS} -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=")
endif()
