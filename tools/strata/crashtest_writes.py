#  Copyright (c) The Strata Authors
#  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Write groups and the WAL buffer in db_crashtest.py: each run of db_stress has others."""

import random

DEFAULT_PARAMS = {
    "max_write_groups_per_leader": lambda: random.choice([1, 2, 8, 64]),
    "wal_mmap_buffer_size": lambda: random.choice([0, 4096, 65536, 1048576]),
}


def finalize(params):
    """Once per run of db_stress, after what decides about the kind of writes."""
    if params.get("enable_pipelined_write", 0) != 0 or params.get("unordered_write", 0) != 0:
        params["max_write_groups_per_leader"] = 1
    # Both are refused together with a WAL buffer.
    if params.get("recycle_log_file_num", 0) != 0 or params.get("manual_wal_flush_one_in", 0) != 0:
        params["wal_mmap_buffer_size"] = 0
