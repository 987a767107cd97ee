#  Copyright (c) The Strata Authors
#  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Strata's options in db_crashtest.py: the only module of this folder that it imports.

The order of the calls matters: a later feature looks at what earlier ones have chosen.
"""

from strata import crashtest_deltas as deltas
from strata import crashtest_map as address_map
from strata import crashtest_merged_values as merged_values
from strata import crashtest_paths as paths
from strata import crashtest_writes as writes

DEFAULT_PARAMS = {
    **deltas.DEFAULT_PARAMS,
    **address_map.DEFAULT_PARAMS,
    **merged_values.DEFAULT_PARAMS,
    **paths.DEFAULT_PARAMS,
    **writes.DEFAULT_PARAMS,
}

# Option of the table -> why crash tests leave it at its default. All others need several values:
# scripts/scripts_test.py compares this file with options/strata/strata_option_table.h.
NOT_CHOSEN = {}


def choose(params, blob_params, args):
    """Once per crash test, when upstream's presets have been chosen."""
    given = {name for name, value in vars(args).items() if value is not None}
    blobs_allowed = not args.test_best_efforts_recovery and not args.test_tiered_storage
    deltas.choose(params, given)
    paths.choose(
        params, blob_params,
        blobs_allowed=blobs_allowed and params.get("test_secondary", 0) == 0)
    address_map.choose(params, blob_params, blobs_allowed=blobs_allowed, given=given)
    if params.get("user_timestamp_size", 0) != 0:
        # db_stress refuses wide columns with timestamps. The preset of timestamps has none, but
        # db_crashtest.py chooses that of blobs after it, which may have some.
        params["use_put_entity_one_in"] = 0


def finalize(params, is_remote_db):
    """Once per run of db_stress: replaces the names of features by flags of db_stress."""
    deltas.finalize(params)
    address_map.finalize(params)
    merged_values.finalize(params)
    paths.finalize(params, is_remote_db)
    writes.finalize(params)


def remove_extra_paths(db):
    """Deletes the directories beside that of the DB."""
    paths.remove_extra_paths(db)
