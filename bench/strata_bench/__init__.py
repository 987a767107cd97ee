# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""The measuring bench of Strata: runs db_bench's workloads and compares what comes out."""
