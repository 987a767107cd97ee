# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
#
# Strata's own sources. Written by scripts/overlay_sources.py, which every build runs;
# read by cmake/strata.cmake and included by src.mk.

STRATA_LIB = \

STRATA_TEST_LIB = \

STRATA_TEST_MAIN = \

STRATA_BENCH = \

STRATA_STRESS = \

LIB_SOURCES += $(STRATA_LIB)
TEST_LIB_SOURCES += $(STRATA_TEST_LIB)
BENCH_LIB_SOURCES += $(STRATA_BENCH)
STRESS_LIB_SOURCES += $(STRATA_STRESS)
