#  Copyright (c) The Strata Authors
#  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""The blob address map in db_crashtest.py.

Whether a DB may have one is chosen once. Each run of db_stress may then have it on or off, so that values
move into the map and out of it again.
"""

import random

# 1: the DB may have a map.
DEFAULT_PARAMS = {"address_map": random.choice([0, 0, 0, 1, 1])}


def _conflicts(params):
    """What is settled for the life of the DB and excludes the map."""
    return (
        params.get("compaction_style") == 2  # FIFO
        or params.get("use_blob_db") == 1
        or params.get("user_timestamp_size", 0) != 0
    )


def choose(params, blob_params, blobs_allowed):
    """Once per crash test, when the other presets have been chosen."""
    if not params.get("address_map"):
        return
    if not blobs_allowed or _conflicts(params):
        params["address_map"] = 0
        return
    for name, value in blob_params.items():
        params.setdefault(name, value)
    # These give way. Whether they are on is chosen once, too, and a run without the map might
    # leave what one with it refuses.
    params["enable_blob_direct_write"] = 0
    params["inplace_update_support"] = 0
    # Transactions that are not write-committed, and unordered writes, want a DB without values in
    # direct mode.
    params["address_map_versioned"] = random.choice([0, 0, 1])
    # A secondary does not open a DB with a map, also when this run has it off.
    params["test_secondary"] = 0
    params["remote_compaction_worker_threads"] = 0


def finalize(params):
    """Once per run of db_stress, last: replaces address_map by the flags of db_stress."""
    allowed = params.pop("address_map", 0)
    versioned = params.pop("address_map_versioned", 0)
    if not allowed or _conflicts(params):
        return
    if not versioned:
        params["unordered_write"] = 0
        if "txn_write_policy" in params:
            params["txn_write_policy"] = 0
    if random.choice([0, 1, 1, 1]) == 0:
        return
    params["enable_blob_address_map"] = 1
    params["enable_lsm_bypass"] = 0 if versioned else random.choice([0, 1, 1, 1])
    params["blob_gc_space_amp_limit"] = random.choice([0, 1.01, 1.01, 1.1, 1.2, 2.0])
    params["blob_prefetch_count"] = random.choice([-1, -1, 0, 1, 7, 64])
    params["enable_blob_files"] = 1
    params["enable_blob_garbage_collection"] = 0
    params["experimental_mempurge_threshold"] = 0
