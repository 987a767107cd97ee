#  Copyright (c) The Strata Authors
#  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Per-level paths in db_crashtest.py: which directories, which layout.

The directories are those of the DB for as long as it lives, hence chosen once;
each run of db_stress may have another layout over them.
"""

import random
import shutil

DEFAULT_PARAMS = {
    # How many directories beside that of the DB itself; 0: off.
    "per_level_paths": random.choice([0, 0, 1, 1, 2, 3]),
    # One of so many checkpoints and restored backups has several directories, if the DB has.
    "copy_layout_one_in": lambda: random.choice([0, 1, 1, 2, 4]),
    # One of so many operations moves a family to another layout, if the DB has several paths.
    "migrate_paths_one_in": lambda: random.choice([0, 10000, 100000]),
    # The device of a path becomes read-only for so many milliseconds from time to time, if the DB
    # has several paths.
    "path_fault_ms": lambda: random.choice([0, 0, 0, 200, 2000]),
}

_LAYOUTS = ["vertical", "horizontal", "mixed", "none"]


def extra_paths(db, count=3):
    return [f"{db}_path{i + 1}" for i in range(count)]


def copies(db):
    """Where db_stress puts checkpoints and restored backups that have several directories."""
    return f"{db}_copies"


def remove_extra_paths(db):
    for path in [*extra_paths(db), copies(db)]:
        shutil.rmtree(path, ignore_errors=True)


def choose(params, blob_params, blobs_allowed):
    """Once per crash test, when the other presets have been chosen: the directories, and the number
    of column families unless a preset needs a certain one."""
    if not params.get("per_level_paths"):
        return
    if "column_families" not in params:
        params["column_families"] = random.choice([1, 2, 3])
    # A layout says most when there are blobs. What a preset or the command line has settled stays.
    if blobs_allowed and "enable_blob_files" not in params and random.choice([0, 1, 1]):
        for name, value in blob_params.items():
            params.setdefault(name, value)


def _random_ids(num_paths):
    return ",".join(str(random.randrange(num_paths)) for _ in range(random.randint(1, 4)))


def _layout(num_paths):
    """(level_sst_path_ids, level_blob_path_ids)"""
    last = str(num_paths - 1)
    kind = random.choice(_LAYOUTS)
    if kind == "vertical":
        return "0", last
    if kind == "horizontal":
        ids = random.choice([f"0,{last}", f"0,0,{last}"])
        return ids, ids
    if kind == "mixed":
        return (
            random.choice(["", _random_ids(num_paths)]),
            random.choice(["", _random_ids(num_paths)]),
        )
    return "", ""


def finalize(params, is_remote_db):
    """Once per run of db_stress, last: replaces per_level_paths by the flags of db_stress,
    and takes copy_layout_one_in, migrate_paths_one_in and path_fault_ms away from a DB with one
    path."""
    extra = params.pop("per_level_paths", 0)
    copy_layout_one_in = params.pop("copy_layout_one_in", 0)
    migrate_paths_one_in = params.pop("migrate_paths_one_in", 0)
    path_fault_ms = params.pop("path_fault_ms", 0)
    db = params.get("db", "")
    if params.get("destroy_db_initially") and not is_remote_db:
        remove_extra_paths(db)
    # What follows from any of these is settled for the life of the DB.
    if (
        not extra
        or not db
        or is_remote_db
        or params.get("compaction_style") == 2  # FIFO keeps to one path
        or params.get("use_blob_db") == 1
        or params.get("num_dbs", 1) > 1
    ):
        return
    paths = [db] + extra_paths(db, extra)
    # The size counts while there is no layout: files then spill over to the next path.
    params["cf_paths"] = ",".join(
        path + random.choice([":4m", ":64m", ""]) for path in paths[:-1]
    ) + "," + paths[-1]
    params["level_sst_path_ids"], params["level_blob_path_ids"] = _layout(len(paths))
    params["delta_sorted_path_id"] = random.choice([-1, -1, *range(len(paths))])
    prices = [",".join(str(0.25 / 2**i) for i in range(len(paths))), ",".join("0" for _ in paths)]
    params["path_prices"] = random.choice(["", *prices])
    # Without a map they have no effect.
    params["blob_hot_bytes"] = random.choice([0, 50000, 1 << 20, 64 << 20])
    params["blob_hot_path_id"] = random.randrange(len(paths))
    params["copy_layout_one_in"] = copy_layout_one_in
    params["migrate_paths_one_in"] = migrate_paths_one_in
    params["path_fault_ms"] = path_fault_ms
    if path_fault_ms:
        # An open may need a path, and a verification expects no faults.
        params["reopen"] = 0
        params["continuous_verification_interval"] = 0
    # Not supported with several paths.
    params["remote_compaction_worker_threads"] = 0
    params["allow_resumption_one_in"] = 0
