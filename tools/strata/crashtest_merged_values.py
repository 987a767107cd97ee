#  Copyright (c) The Strata Authors
#  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""The merged-value cache in db_crashtest.py: each run of db_stress has it on or off."""

import random

DEFAULT_PARAMS = {
    # 1: the run may have a merged-value cache. Not chosen here: the seed is not set yet.
    "merged_value_cache": lambda: random.choice([0, 1]),
}


def _conflicts(params):
    """What excludes the cache."""
    return (
        params.get("use_merge", 0) == 0
        or params.get("user_timestamp_size", 0) != 0
        or params.get("unordered_write", 0) != 0
        or params.get("inplace_update_support", 0) != 0
        or params.get("txn_write_policy", 0) != 0
        or params.get("test_secondary", 0) != 0
    )


def finalize(params):
    """Once per run of db_stress, after what decides about transactions: replaces merged_value_cache
    by the flags of db_stress."""
    if not params.pop("merged_value_cache", 0) or _conflicts(params) or random.randrange(4) == 0:
        return
    params["enable_merged_value_cache"] = 1
    # 0 and the largest number stand for a share of the block cache.
    params["merged_value_cache_size"] = random.choice([0, (1 << 64) - 1, 100000, 8 << 20])
    params["experimental_mempurge_threshold"] = 0
