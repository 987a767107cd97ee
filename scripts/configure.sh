#!/bin/sh
# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
#
# Usage: configure.sh FOLDER [cmake arguments]
# Configures build/FOLDER, which is one of
#   release debug          Strata, from build/src
#   demo-tools             db_bench as "make demo" needs it, in the least time
#   asan tsan              the same as debug with AddressSanitizer and UndefinedBehaviorSanitizer,
#                          or with ThreadSanitizer
#   coverage               the same as debug with counts of what runs in Strata's part of the library
#   fuzz                   the fuzzers of fuzz/strata, with AddressSanitizer. They need clang, which
#                          scripts/fuzz.py looks for and names in the cmake arguments
#   stock stock-debug      unpatched upstream, from build/pristine, with the same flags
# It does so only if the folder is new or the arguments or options changed; what changes
# in the tree itself is the business of the build (CMake watches its own files).
set -eu
name=$1
shift
root=$(cd "$(dirname "$0")/.." && pwd -P)
case $name in
  release|demo-tools) tree=$root/build/src type=Release ;;
  debug|coverage) tree=$root/build/src   type=Debug ;;
  asan|tsan|fuzz) tree=$root/build/src   type=Debug ;;
  stock)       tree=$root/build/pristine type=Release ;;
  stock-debug) tree=$root/build/pristine type=Debug ;;
  *) echo "configure.sh: unknown build folder '$name'" >&2; exit 2 ;;
esac
# FAST_DEBUG: for a machine that builds once, to run the tests. The library in unity files;
# of the debug information what a stack trace needs; optimised as far as that costs no time.
[ "$type" != Debug ] || [ -z "${FAST_DEBUG:-}" ] ||
  set -- "$@" "-DCMAKE_CXX_FLAGS_DEBUG=-g1 -O1" -DSTRATA_UNITY=12
# Sanitizers. Their code is optimised a little, because the tests take several times as long
# without. Warnings are not errors, because GCC gives false ones about instrumented code, and clang
# (for fuzz) has warnings that the other builds do not have.
case $name in
  asan) set -- "$@" -DWITH_ASAN=ON -DWITH_UBSAN=ON ;;
  tsan) set -- "$@" -DWITH_TSAN=ON ;;
  # In place of the flags in strata_options.cmake, which are for GCC.
  fuzz) sanitize='-fsanitize=address,fuzzer-no-link'
        set -- "$@" -DSTRATA_FUZZ=ON "-DCMAKE_C_FLAGS=-fmacro-prefix-map=$tree/= $sanitize" \
          "-DCMAKE_CXX_FLAGS=-fmacro-prefix-map=$tree/= $sanitize" ;;
esac
case $name in
  asan|tsan|fuzz) set -- "$@" -DFAIL_ON_WARNINGS=OFF -DSTRATA_WERROR=OFF \
    "-DCMAKE_CXX_FLAGS_DEBUG=-g1 -O1 -fno-omit-frame-pointer" ;;
esac
[ "$name" != coverage ] || set -- "$@" -DSTRATA_COVERAGE=ON
# FAST_RELEASE: the same as FAST_DEBUG for a machine that builds the library once, to try it.
[ "$type" != Release ] || [ "$name" = demo-tools ] || [ -z "${FAST_RELEASE:-}" ] ||
  set -- "$@" -DSTRATA_UNITY=12
# The demo shows where bytes are, not speed, and the first build is what a newcomer waits for.
[ "$name" != demo-tools ] ||
  set -- "$@" "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG" -DSTRATA_UNITY=12
# PORTABLE=0: for this machine's CPU, as RocksDB's own builds are if nothing else is asked for.
[ "$type" != Release ] || [ -z "${PORTABLE:-}" ] || set -- "$@" "-DPORTABLE=$PORTABLE"
# Strata's db_bench on unpatched RocksDB, for measurements.
[ "$name" != stock ] || set -- "$@" \
  "-DSTRATA_ROOT=$root" "-DCMAKE_PROJECT_rocksdb_INCLUDE=$root/cmake/stock_bench.cmake"
dir=$root/build/$name
options=$root/cmake/strata_options.cmake
stamp=$dir/strata-configured
want="$root $type $(command -v c++) $(command -v mold || true) ${CC:-} ${CXX:-} $*"
want="$want $(cksum < "$options")"
if [ -f "$dir/build.ninja" ] && [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$want" ]; then
  exit 0
fi
# Start from an empty cache: values there would win over changed options, and a clone that
# was moved has another place's paths in it. Objects are kept; ninja compares command lines.
rm -f "$dir/CMakeCache.txt"
# CMake keeps what it knows of the compiler elsewhere, and starts over without these options if
# another clang is named.
[ "$name" != fuzz ] || rm -rf "$dir"/CMakeFiles/[0-9]*
mkdir -p "$dir"
rm -f "$stamp"
echo "configuring build/$name ($type)"
if ! cmake -G Ninja "-DSTRATA_TREE=$tree" -C "$options" -S "$tree" -B "$dir" \
    "-DCMAKE_BUILD_TYPE=$type" "$@" > "$dir/configure.log" 2>&1; then
  cat "$dir/configure.log"
  exit 1
fi
# GoogleTest and tools come with the tree; the compression libraries must not go missing silently.
for lib in ROCKSDB_IOURING_PRESENT SNAPPY LZ4 ZLIB ZSTD BZIP2 GFLAGS; do
  if ! grep -q -e "-D$lib\b" "$dir/build.ninja"; then
    echo "configure.sh: $lib is not in the build; see $dir/configure.log" >&2
    exit 1
  fi
done
printf '%s\n' "$want" > "$stamp"
