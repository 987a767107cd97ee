#  Copyright (c) The Strata Authors
#  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Delta separation in db_crashtest.py.

Whether a DB may have delta files is chosen once. Each run of db_stress may then have the option on
or off: what there is stays readable. The merged-value cache, blob files, the address map and paths
are chosen elsewhere, so that all combinations come; some DBs have everything.
"""

import random

DEFAULT_PARAMS = {
    # 1: the DB may have delta files. Not chosen here: the seed is not set yet.
    "delta_separation": lambda: random.choice([0, 1]),
}


def _conflicts(params):
    """What is settled for the life of the DB and excludes delta files, or has no operands."""
    return (
        params.get("compaction_style") == 2  # FIFO
        or params.get("user_timestamp_size", 0) != 0
        or params.get("txn_write_policy", 0) != 0
        or params.get("enable_blob_direct_write", 0) != 0
        or params.get("use_blob_db", 0) != 0
        or params.get("test_multi_ops_txns", 0) != 0
    )


def choose(params, given=()):
    """Once per crash test, when the other presets have been chosen. given: the names of what the
    command line has settled."""
    if callable(params.get("delta_separation")):
        params["delta_separation"] = params["delta_separation"]()
    if params.get("delta_separation"):
        # Chosen once as well: they give way, unless it is them that are asked for.
        for name in ("txn_write_policy", "enable_blob_direct_write"):
            if name in params and name not in given:
                params[name] = 0
    if not params.get("delta_separation") or _conflicts(params):
        params["delta_separation"] = 0
        return
    # These give way, in all runs: one with the option off may find delta files.
    params["inplace_update_support"] = 0
    params["test_secondary"] = 0
    params["remote_compaction_worker_threads"] = 0
    # By chance alone, all of it together would be rare.
    if random.randrange(3) == 0:
        for name in ("merged_value_cache", "address_map", "per_level_paths"):
            if name not in given:
                params[name] = 1
    # Many flushes with operands in most of them: what jobs are there for.
    if "use_merge" not in given:
        params["use_merge"] = lambda: random.choice([0, 1, 1, 1, 1])
    if "write_buffer_size" not in given:
        params["write_buffer_size"] = lambda: random.choice([256 << 10, 1 << 20, 4 << 20])


def finalize(params):
    """Once per run of db_stress, last but for the map: replaces delta_separation by the flags of
    db_stress."""
    if not params.pop("delta_separation", 0) or _conflicts(params):
        return
    params["experimental_mempurge_threshold"] = 0
    if params.get("use_merge", 0) == 0 or random.randrange(6) == 0:
        return
    params["enable_delta_separation"] = 1
    # The first partition comes with a twentieth of what all buckets are meant for, or after 16
    # flushes; few buckets are not split but folded.
    size, number = random.choice(
        [(4096, 4), (4096, 16), (4096, 64), (4096, 1024), (16384, 16), (65536, 64), (262144, 32768)]
    )
    params["delta_bucket_size"] = size
    params["delta_max_buckets"] = number
    params["delta_bucket_split_ratio"] = random.choice([0.1, 0.3, 0.8, 1.0])
    # The last one is the default, a share of the block cache.
    params["delta_cache_size"] = random.choice([0, 100000, 8 << 20, (1 << 64) - 1, (1 << 64) - 1])
    # Half of it is how many jobs there may be. The map has its own.
    params["max_background_jobs"] = random.choice([2, 4, 8])
