#  Copyright (c) The Strata Authors
#  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""The blob address map in db_crashtest.py.

Whether a DB may have one is chosen once. Each run of db_stress may then have it on or off, so that
values move into the map and out of it again.

With --blob_gc_stress=1 it has one, and its blob files are collected all the time.
"""

import random

DEFAULT_PARAMS = {
    # 1: the DB may have a map.
    "address_map": random.choice([0, 0, 0, 1, 1]),
    # 1: it does, and the garbage in its blob files is collected all the time.
    "blob_gc_stress": 0,
    # 1: all values in the map are versioned, in all runs. Chosen with the map unless it is given.
    "address_map_versioned": 0,
    "collect_blob_garbage_one_in": lambda: random.choice([0, 10000, 100000]),
}

# Many small files, much garbage.
_GC_STRESS = {
    "write_buffer_size": lambda: random.choice([256 << 10, 512 << 10, 1 << 20]),
    "blob_file_size": lambda: random.choice([64 << 10, 128 << 10, 256 << 10]),
    "target_file_size_base": lambda: random.choice([64 << 10, 512 << 10]),
    "max_bytes_for_level_base": lambda: random.choice([1 << 20, 10 << 20]),
    # Keys are overwritten soon. The same in all runs.
    "max_key": 100000,
    # What a snapshot reads is no garbage.
    "acquire_snapshot_one_in": lambda: random.choice([0, 0, 100, 10000]),
    "collect_blob_garbage_one_in": lambda: random.choice([1000, 10000]),
}

# The test with transactions of several operations has its own.
_OF_MULTI_OPS = ("write_buffer_size", "max_key", "acquire_snapshot_one_in")

# sync_fault_injection is none of these: no operation fails from it.
_FAULTS = (
    "read_fault_one_in",
    "write_fault_one_in",
    "metadata_read_fault_one_in",
    "metadata_write_fault_one_in",
    "open_read_fault_one_in",
    "open_write_fault_one_in",
    "open_metadata_read_fault_one_in",
    "open_metadata_write_fault_one_in",
)

# What a DB with values in direct mode refuses.
_NEED_VERSIONED = ("unordered_write", "txn_write_policy")


def _conflicts(params):
    """What is settled for the life of the DB and excludes the map."""
    return (
        params.get("compaction_style") == 2  # FIFO
        or params.get("use_blob_db") == 1
        or params.get("user_timestamp_size", 0) != 0
    )


def choose(params, blob_params, blobs_allowed, given=()):
    """Once per crash test, when the other presets have been chosen. given: the names of what the
    command line has settled."""
    params["address_map_given"] = frozenset(given)
    gc_stress = params.get("blob_gc_stress") and (
        "address_map" not in given or params["address_map"]
    )
    if gc_stress:
        params["address_map"] = 1
    if not params.get("address_map"):
        params["blob_gc_stress"] = 0
        return
    if not blobs_allowed or _conflicts(params):
        params["address_map"] = params["blob_gc_stress"] = 0
        if gc_stress:
            print("blob_gc_stress is off: this crash test cannot have an address map\n")
        return
    if gc_stress:
        for name, value in _GC_STRESS.items():
            if name not in given and not (
                params.get("test_multi_ops_txns") and name in _OF_MULTI_OPS
            ):
                params[name] = value
    for name, value in blob_params.items():
        params.setdefault(name, value)
    # These give way. Whether they are on is chosen once, too, and a run without the map might
    # leave what one with it refuses.
    params["enable_blob_direct_write"] = 0
    params["inplace_update_support"] = 0
    # Transactions that are not write-committed, and unordered writes, want a DB without values in
    # direct mode.
    if "address_map_versioned" not in given:
        wanted = [name for name in _NEED_VERSIONED if name in given and params.get(name)]
        params["address_map_versioned"] = 1 if wanted else random.choice([0, 0, 1])
    # A secondary does not open a DB with a map, also when this run has it off.
    params["test_secondary"] = 0
    params["remote_compaction_worker_threads"] = 0


def finalize(params):
    """Once per run of db_stress, last: replaces address_map and blob_gc_stress by the flags of
    db_stress."""
    allowed = params.pop("address_map", 0)
    versioned = params.pop("address_map_versioned", 0)
    gc_stress = params.pop("blob_gc_stress", 0)
    given = params.pop("address_map_given", ())
    if not allowed or _conflicts(params):
        return
    if not versioned:
        params["unordered_write"] = 0
        if "txn_write_policy" in params:
            params["txn_write_policy"] = 0
    if gc_stress and (params.get("verification_only") or random.choice([0, 1])):
        # Only without faults is each file that is left over a failure (--verify_no_leaked_files).
        # What the faults are otherwise has been made to fit the rest already.
        params.update((name, 0) for name in _FAULTS if name not in given)
    if random.randrange(16 if gc_stress else 4) == 0:
        return
    params["enable_blob_address_map"] = 1
    params["enable_lsm_bypass"] = 0 if versioned else random.choice([0, 1, 1, 1])
    params["save_blob_address_map"] = random.choice([0, 1, 1, 1])
    params["blob_gc_space_amp_limit"] = (
        1.01 if gc_stress else random.choice([0, 1.01, 1.01, 1.1, 1.2, 2.0])
    )
    # With the larger budgets, nearly each scan has its range sorted.
    params["blob_scan_sort_budget"] = random.choice([0, 1, 100, 1000])
    # Some runs have several garbage collections at a time.
    params["max_background_jobs"] = random.choice([4, 16] if gc_stress else [2, 2, 8])
    params["blob_prefetch_count"] = random.choice([-1, -1, 0, 1, 7, 64])
    params["enable_blob_files"] = 1
    blob_garbage_collection = random.choice([0, 1])
    if "enable_blob_garbage_collection" not in given:
        params["enable_blob_garbage_collection"] = blob_garbage_collection
    params["experimental_mempurge_threshold"] = 0
