# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
#
# The front door: every task is a target here. "make help" lists them.

.DEFAULT_GOAL := help
SHELL := /bin/sh
MAKEFLAGS += --no-print-directory
.NOTPARALLEL:

JOBS   ?= $(shell nproc 2>/dev/null || echo 2)
PREFIX ?= /usr/local
SIDE   ?= strata
PYTHON ?= python3

# Objects are the same in every clone of the project, wherever it lies.
export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_NOHASHDIR := 1

tree  := $(PYTHON) upstream/tree.py
ninja  = ninja -C build/$(1) -j $(JOBS)
# Quoted, because a name may have * in it.
planted = $(foreach bug,$(BUGS),'$(bug)') $(if $(SAMPLE),--sample $(SAMPLE))

.PHONY: help deps source patches check-patches release debug stock stock-debug db_bench \
  db_stress ldb sst_dump address_map_bench check check-style check-asan check-tsan coverage \
  check-upstream check-on-disk crash-test metamorphic planted-bugs fuzz find-clang style-tools demo \
  install dist clean distclean format pristine sweep

help:
	@echo 'Strata: RocksDB with keys, values and deltas kept apart. Targets:'
	@echo
	@echo '  demo            build db_bench, and show keys and values on the devices they are told to'
	@echo '                  (DEMO_NUM=keys, default 500000: 500 MB at a time; KEEP=1 keeps the data)'
	@echo '  check           build and run the tests, and check-style (TESTS="name ..." for some of them)'
	@echo '  check-style     check the format of our C++ files, and our Python files with ruff'
	@echo '  check-asan      our C++ tests with AddressSanitizer and UndefinedBehaviorSanitizer, built'
	@echo '                  in build/asan (TESTS="name ..." for some of them)'
	@echo '  check-tsan      the same with ThreadSanitizer, built in build/tsan'
	@echo '  coverage        our C++ tests in build/coverage, with counts of what runs of our part of the'
	@echo '                  library; the report is build/coverage/report.txt (docs/coverage.md;'
	@echo '                  TESTS="name ..." for some of them)'
	@echo '  fuzz            build the fuzzers of fuzz/strata with clang, and run each for a minute'
	@echo '                  (FUZZ_SECONDS=n, default 60; FUZZERS="name ..." for some of them;'
	@echo '                  FUZZ_MERGE=1 puts the best of what is found into fuzz/strata/corpus)'
	@echo '  metamorphic     random histories, which must have the same answers with all options, for'
	@echo '                  HOURS=1 (SEED=n, default 1; SEEDED=1: with threads whose schedule a seed'
	@echo '                  chooses, PCT=1 with priorities, SCHEDULES=n for each set of options);'
	@echo '                  see docs/history-scripts.md'
	@echo '  sweep           each history script with a fault at its n-th operation on files, for every n'
	@echo '                  (docs/fault-sweeps.md; many hours. SWEEP="script ..." for some scripts,'
	@echo '                  SWEEP_KIND=kind, SWEEP_VARIANT=variant, SWEEP_POINTS=n for n points'
	@echo '                  of each script and variant, chosen by SWEEP_SEED=n)'
	@echo '  check-upstream  run all test binaries of upstream, results in build/upstream-tests-*.tsv'
	@echo '                  (SHARD=i/n for a part, FRESH=1 to start over, TESTS="name ..." for some;'
	@echo '                  SIDE=stock for unpatched upstream, SIDE=map with an address map everywhere,'
	@echo '                  SIDE=blob with blob files everywhere, SIDE=merged with a merged-value cache,'
	@echo '                  SIDE=deltas with delta separation, SIDE=all with map, merged-value cache and'
	@echo '                  deltas, SIDE=layouts with each database on two paths)'
	@echo '  crash-test      crash tests in short rounds over all modes and features, with build/debug'
	@echo '                  (HOURS=n, default 1; SEED=n, default 1: a run goes on where an earlier one'
	@echo '                  with its seed ended); rounds and findings are in build/crash-test'
	@echo '  check-on-disk   with make stock release: files equal those of RocksDB with all options off;'
	@echo '                  databases go from RocksDB to Strata, with each feature, and back'
	@echo '  planted-bugs    compile the library with each wrong edit of testdata/planted_bugs, and show'
	@echo '                  which test catches it (BUGS="name ..." for some, SAMPLE=n for n of each area,'
	@echo '                  FRESH=1 to run again what has a result)'
	@echo '  check-patches   prove that patches/ is exactly what the tree says'
	@echo
	@echo '  release         the shared library and the tools, optimised, in build/release'
	@echo '  debug           the shared library with assertions and sync points, in build/debug'
	@echo '  db_bench db_stress ldb sst_dump    one tool, in build/release'
	@echo '  address_map_bench    a micro-benchmark of the blob address map, in build/release'
	@echo '  stock           unpatched upstream with the same flags, in build/stock'
	@echo '  stock-debug     the same in build/stock-debug, for tests that fail'
	@echo '  install         install the library, ldb and sst_dump (PREFIX=/usr/local, DESTDIR=)'
	@echo '  dist            the source tarballs in build/dist, complete and as a recipe, from a tree without'
	@echo '                  changes that are not committed (DIRTY=1 takes them; docs/packaging.md)'
	@echo
	@echo '  pristine        unpatched upstream in build/pristine, without a build'
	@echo '  source          make or refresh build/src: upstream, patches/ and our own files'
	@echo '  patches         write the edits made in build/src back to patches/'
	@echo '  format          clang-format our own C++ files that changed (ALL=1: all of them)'
	@echo '  style-tools     install clang-format and ruff in build/style-venv, for format and check-style'
	@echo '  deps            install missing Debian packages (every build does; STRATA_DEPS=0: do not)'
	@echo '  clean           remove the objects; build/src and its edits stay'
	@echo '  distclean       remove build/, unless build/src holds edits that are not in patches/'
	@echo
	@echo '  JOBS=$(JOBS) jobs at a time; STRATA_UPSTREAM=dir takes RocksDB 11.8.1 from a directory;'
	@echo '  FAST_DEBUG=1 builds debug, asan, tsan, coverage and fuzz in less time: several source files'
	@echo '  are compiled as one, with less debug information. A build after a change takes longer then'

deps:
	@scripts/install-deps.sh

# --- the tree ----------------------------------------------------------------

source: deps
	@$(PYTHON) scripts/overlay_sources.py --write
	@$(tree) source

pristine: deps
	@$(tree) pristine

patches: deps
	@$(PYTHON) scripts/overlay_sources.py --write
	@$(tree) patches

check-patches: deps
	@$(PYTHON) scripts/overlay_sources.py --check
	@$(tree) check

# --- builds ------------------------------------------------------------------

build/release/build.ninja build/demo-tools/build.ninja build/debug/build.ninja \
build/asan/build.ninja build/tsan/build.ninja build/coverage/build.ninja: source
	@scripts/configure.sh $(notdir $(@D))
build/stock/build.ninja build/stock-debug/build.ninja: pristine
	@scripts/configure.sh $(notdir $(@D))

release: build/release/build.ninja
	$(call ninja,release) rocksdb-shared db_bench db_stress ldb sst_dump
debug: build/debug/build.ninja
	$(call ninja,debug) rocksdb-shared testutillib testharness
stock: build/stock/build.ninja source
	$(call ninja,stock) rocksdb-shared db_bench db_stress ldb sst_dump db_bench_workloads
stock-debug: build/stock-debug/build.ninja
	$(call ninja,stock-debug) rocksdb-shared testutillib testharness

db_bench db_stress ldb sst_dump address_map_bench: build/release/build.ninja
	$(call ninja,release) $@

# The prefix is written into rocksdb.pc, so it is configured, not only installed to.
install: build/release/build.ninja
	cmake -DCMAKE_INSTALL_PREFIX="$(abspath $(PREFIX))" build/release > build/release/configure.log
	$(call ninja,release) rocksdb rocksdb-shared ldb sst_dump
	DESTDIR="$(DESTDIR)" cmake --install build/release

# It writes nothing into build/src and patches/, so an edit in build/src is found and refused.
dist: deps
	@$(PYTHON) scripts/overlay_sources.py --check
	@$(PYTHON) scripts/dist.py $(if $(DIRTY),--dirty)

# --- tests and the demonstration ---------------------------------------------

check: build/debug/build.ninja
	@scripts/run_tests.py check $(TESTS) --jobs $(JOBS)

# It is part of "make check", too: run_tests.py starts the same script.
check-style: source
	@$(PYTHON) scripts/check_style.py

check-asan: build/asan/build.ninja
	@scripts/run_tests.py check $(TESTS) --build asan --jobs $(JOBS)

check-tsan: build/tsan/build.ninja
	@scripts/run_tests.py check $(TESTS) --build tsan --jobs $(JOBS)

coverage: build/coverage/build.ninja
	@$(PYTHON) scripts/coverage.py run $(TESTS) --jobs $(JOBS)

HOURS ?= 1
SEED  ?= 1
ifdef SEEDED
metamorphic_test  = seeded_metamorphic_test
metamorphic_flags = --history_seed=$(SEED) --schedule_seed=$(SEED) $(if $(PCT),--pct) \
  $(if $(SCHEDULES),--schedules=$(SCHEDULES))
else
metamorphic_test  = metamorphic_test
metamorphic_flags = --seed=$(SEED)
endif
metamorphic: build/debug/build.ninja
	$(call ninja,debug) $(metamorphic_test)
	build/debug/$(metamorphic_test) $(metamorphic_flags) \
	  --seconds=$$($(PYTHON) -c 'print(float("$(HOURS)") * 3600)')

# Before the tree is made, so that a missing clang is said at once.
find-clang:
	@$(PYTHON) scripts/fuzz.py --find-clang

fuzz: find-clang source
	@$(PYTHON) scripts/fuzz.py $(FUZZERS) --jobs $(JOBS) \
	  $(if $(FUZZ_SECONDS),--seconds $(FUZZ_SECONDS)) $(if $(FUZZ_MERGE),--merge)

sweep: build/debug/build.ninja
	$(call ninja,debug) history_sweep_test
	@$(PYTHON) scripts/sweep.py build/debug/history_sweep_test $(SWEEP) --jobs $(JOBS) \
	  $(if $(SWEEP_KIND),--kind $(SWEEP_KIND)) $(if $(SWEEP_VARIANT),--variant $(SWEEP_VARIANT)) \
	  $(if $(SWEEP_SEED),--seed $(SWEEP_SEED)) $(if $(SWEEP_POINTS),--points $(SWEEP_POINTS))

ifeq ($(SIDE),stock)
check-upstream: build/stock-debug/build.ninja
else
check-upstream: build/debug/build.ninja
endif
	@scripts/run_tests.py upstream $(TESTS) --jobs $(JOBS) --side $(SIDE) \
	  $(if $(SHARD),--shard $(SHARD)) $(if $(FRESH),--fresh)

crash-test: build/debug/build.ninja
	$(call ninja,debug) db_stress overlap_stress_test
	@$(PYTHON) scripts/crash_test.py $(if $(HOURS),--hours $(HOURS)) $(if $(SEED),--seed $(SEED))

check-on-disk: stock release
	@$(PYTHON) scripts/on_disk/compare.py build/pristine build/stock build/src build/release \
	  build/on-disk/equal
	@$(PYTHON) scripts/on_disk/way_back.py build/stock build/release build/on-disk/back
	@$(PYTHON) scripts/on_disk/upgrade.py build/pristine build/stock build/src build/release \
	  build/on-disk/upgrade

planted-bugs: build/debug/build.ninja
	@programs=$$($(PYTHON) scripts/planted_bugs.py programs $(planted)) && \
	  $(call ninja,debug) rocksdb-shared $$programs
	@$(PYTHON) scripts/planted_bugs.py run $(planted) --jobs $(JOBS) $(if $(FRESH),--fresh)

demo: build/demo-tools/build.ninja
	@echo 'compiling db_bench, for the first time in some minutes; [done/all] counts the steps'
	$(call ninja,demo-tools) db_bench
	@$(PYTHON) scripts/demo.py build/demo-tools/db_bench $(if $(DEMO_NUM),--num $(DEMO_NUM)) \
	  $(if $(DEMO_DIR),--dir $(DEMO_DIR)) $(if $(KEEP),--keep)

# --- housekeeping ------------------------------------------------------------

style-tools:
	@PYTHON='$(PYTHON)' scripts/install-style-tools.sh

format: source
	@scripts/format.sh $(if $(ALL),--all)

clean:
	rm -rf build/release build/demo-tools build/debug build/asan build/tsan build/coverage build/fuzz \
	  build/stock build/stock-debug build/demo build/check build/planted

distclean:
	@if [ -d build/src ] && ! $(tree) status; then \
	  echo 'build/src and patches/ differ: "make source" brings them together first' >&2; exit 1; fi
	rm -rf build
