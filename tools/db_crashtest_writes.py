#  Copyright (c) The Strata Authors
#  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""max_write_groups_per_leader in db_crashtest.py: each run of db_stress has another one."""

import random

DEFAULT_PARAMS = {
    "max_write_groups_per_leader": lambda: random.choice([1, 2, 8, 64]),
}


def finalize(params):
    """Once per run of db_stress, after what decides about the kind of writes."""
    if params.get("enable_pipelined_write", 0) != 0 or params.get("unordered_write", 0) != 0:
        params["max_write_groups_per_leader"] = 1
