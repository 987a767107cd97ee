# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""The rounds of "make crash-test": which modes and features there are, which of them exclude each
other, and the command of a round.

A feature that is on here is one that the round's database may have. tools/strata/crashtest*.py then
turn it off for some runs of db_stress of the round, so that what is on disk outlives the option.
"""
import random

from crash import covering

# The mode -> its arguments of db_crashtest.py. 'overlap' is a program of ours.
MODES = {
    'plain': [],
    'simple': ['--simple'],
    'cf_consistency': ['--cf_consistency'],
    'txn': ['--txn', '--txn_write_policy=0'],
    'txn_prepared': ['--txn', '--txn_write_policy=1'],
    'txn_unprepared': ['--txn', '--txn_write_policy=2'],
    'optimistic_txn': ['--optimistic_txn'],
    'best_efforts': ['--test_best_efforts_recovery'],
    'timestamps': ['--enable_ts'],
    'multiops_txn': ['--test_multiops_txn', '--txn_write_policy=0'],
    'multiops_prepared': ['--test_multiops_txn', '--txn_write_policy=1'],
    'multiops_unprepared': ['--test_multiops_txn', '--txn_write_policy=2'],
    'tiered': ['--test_tiered_storage'],
    'overlap': None,
}
_MULTIOPS = ('multiops_txn', 'multiops_prepared', 'multiops_unprepared')
_NOT_COMMITTED = ('txn_prepared', 'txn_unprepared', 'multiops_prepared', 'multiops_unprepared')
_TXN = ('txn', 'txn_prepared', 'txn_unprepared') + _MULTIOPS

# The first level of a feature is that of a database without it.
FACTORS = {
    'mode': list(MODES),
    # By whom processes are killed: db_crashtest.py from outside, db_stress itself at kill points.
    'kills': ['blackbox', 'whitebox', 'none'],
    # Where large values are: in SST files, in RocksDB's blob files, in an address map with
    # versioned values alone (enable_lsm_bypass is off), in one that bypasses the LSM-tree.
    'values': ['sst', 'blob', 'map', 'bypass'],
    'deltas': ['no', 'yes'],
    'merged_values': ['no', 'yes'],
    'paths': ['no', 'yes'],
    'wal_buffer': ['no', 'yes'],
    'write_groups': ['no', 'yes'],
    'faults': ['none', 'read', 'write', 'metadata', 'all'],
    'checkpoints': ['no', 'yes'],
    'backups': ['no', 'yes'],
}

# Levels of one factor that exclude levels of another one.
_EXCLUDED = [
    # The program of ours has no other process to kill, and only these features.
    ('mode', [m for m in MODES if m != 'overlap'], 'kills', ['none']),
    ('mode', ['overlap'], 'kills', ['blackbox', 'whitebox']),
    ('mode', ['overlap'], 'values', ['blob']),
    ('mode', ['overlap'], 'paths', ['yes']),
    ('mode', ['overlap'], 'wal_buffer', ['yes']),
    ('mode', ['overlap'], 'write_groups', ['yes']),
    ('mode', ['overlap'], 'faults', ['read', 'write', 'metadata', 'all']),
    ('mode', ['overlap'], 'checkpoints', ['yes']),
    ('mode', ['overlap'], 'backups', ['yes']),
    # As in crash_test.mk of RocksDB.
    ('mode', [*_MULTIOPS, 'best_efforts'], 'kills', ['whitebox']),
    # db_crashtest.py turns blob files off.
    ('mode', ['best_efforts', 'tiered'], 'values', ['blob', 'map', 'bypass']),
    # The address map, delta separation and the merged-value cache refuse timestamps.
    ('mode', ['timestamps'], 'values', ['map', 'bypass']),
    ('mode', ['timestamps'], 'deltas', ['yes']),
    ('mode', ['timestamps'], 'merged_values', ['yes']),
    # Such transactions work with versioned values only; the other two features refuse them.
    ('mode', list(_NOT_COMMITTED), 'values', ['bypass']),
    ('mode', list(_NOT_COMMITTED), 'deltas', ['yes']),
    ('mode', list(_NOT_COMMITTED), 'merged_values', ['yes']),
    # This test writes no merge operands, makes no copies, and db_crashtest.py turns faults off.
    ('mode', ['multiops_txn'], 'deltas', ['yes']),
    ('mode', ['multiops_txn'], 'merged_values', ['yes']),
    ('mode', list(_MULTIOPS), 'faults', ['read', 'write', 'metadata', 'all']),
    ('mode', list(_MULTIOPS), 'backups', ['yes']),
    # db_crashtest.py makes no checkpoints of transactions.
    ('mode', list(_TXN), 'checkpoints', ['yes']),
    # There is no WAL, and db_crashtest.py has no write faults then.
    ('mode', ['best_efforts'], 'wal_buffer', ['yes']),
    ('mode', ['best_efforts'], 'faults', ['write', 'all']),
]

# db_crashtest.py: the flag that injects a fault into one of so many operations -> the kind of
# fault and the numbers to choose from.
_FAULTS = {
    'read_fault_one_in': ('read', [32, 1000]),
    'open_read_fault_one_in': ('read', [0, 32]),
    'write_fault_one_in': ('write', [128, 1000]),
    'open_write_fault_one_in': ('write', [0, 16]),
    'metadata_read_fault_one_in': ('metadata', [32, 1000]),
    'metadata_write_fault_one_in': ('metadata', [128, 1000]),
    'open_metadata_read_fault_one_in': ('metadata', [0, 8]),
    'open_metadata_write_fault_one_in': ('metadata', [0, 8]),
}

# Presets of RocksDB determine the number of column families in these modes.
_OWN_COLUMN_FAMILIES = ('simple', 'best_efforts', *_MULTIOPS)

# A whitebox run kills itself after a time that suits short rounds: db_crashtest.py's own number,
# 888887, is meant for runs of 200,000 operations per thread.
RANDOM_KILL_ODD = 88889
WHITEBOX_OPS_PER_THREAD = 2000
# Seconds for the last run of a round, which only verifies. Longer is a finding.
VERIFY_SECONDS = 600


def excluded_pairs():
    """_EXCLUDED, level by level."""
    return [((a, x), (b, y)) for a, a_levels, b, b_levels in _EXCLUDED
            for x in a_levels for y in b_levels]


def make_covering(seed):
    return covering.Covering(FACTORS, excluded_pairs(), random.Random(f'order {seed}'))


def rounds(seed):
    """The rows of a crash test, without end: first each pair of levels comes up, then, for each
    mode, everything off, RocksDB's blob files alone and everything on, then any rows."""
    c = make_covering(seed)
    yield from c.covering_rows()
    landmarks = []
    for mode in FACTORS['mode']:
        landmarks += [c.complete({'mode': mode}), everything_on(c, mode)]
        if c.is_allowed({'mode': mode, 'values': 'blob'}):
            landmarks.append(c.complete({'mode': mode, 'values': 'blob'}))
    c.rng.shuffle(landmarks)
    yield from landmarks
    while True:
        yield c.random_row()


def everything_on(c, mode):
    """The row of a mode with the last level of each factor that fits."""
    row = {'mode': mode}
    for name, levels in FACTORS.items():
        if name not in row:
            fitting = [level for level in levels if c.fits(row, name, level)]
            row[name] = fitting[0] if name == 'kills' else fitting[-1]
    return row


def round_seed(seed, number):
    """The seed of what is chosen inside of a round."""
    return random.Random(f'round {seed} {number}').randrange(1, 1 << 32)


# --- rows as text ---------------------------------------------------------------------------------

def mode_text(row):
    return f"{row['kills']}/{row['mode']}"


def features_text(row):
    """'values=map deltas', or 'off' for a row without any feature."""
    words = []
    for name, levels in FACTORS.items():
        if name in ('mode', 'kills') or row[name] == levels[0]:
            continue
        words.append(name if row[name] == 'yes' else f'{name}={row[name]}')
    return ' '.join(words) or 'off'


def parse_row(text):
    """The row of '<mode_text> <features_text>'. ValueError if it is none, or is not allowed."""
    mode, *words = text.split()
    kills, slash, name = mode.partition('/')
    row = {'mode': name, 'kills': kills}
    for word in words:
        if word != 'off':
            key, equals, level = word.partition('=')
            row[key] = level if equals else 'yes'
    for key, level in row.items():
        if not slash or level not in FACTORS.get(key, ()):
            raise ValueError(f'{key}={level} is no level of a factor')
    row = {key: row.get(key, levels[0]) for key, levels in FACTORS.items()}
    if not make_covering(0).is_allowed(row):
        raise ValueError(f'the levels of "{text}" exclude each other')
    return row


# --- commands -------------------------------------------------------------------------------------

def _fault_flags(row, rng):
    faults = row['faults']
    flags = {flag: rng.choice(numbers) if faults in (kind, 'all') else 0
             for flag, (kind, numbers) in _FAULTS.items()}
    if faults == 'none':
        return flags
    # Each of these would turn the faults off.
    flags['test_batches_snapshots'] = 0
    if faults in ('read', 'all'):
        flags['use_multiscan'] = 0
    if faults in ('write', 'all'):
        flags['disable_wal'] = 0
    if faults in ('metadata', 'all'):
        flags['manual_wal_flush_one_in'] = 0
    return flags


def _value_flags(row, rng):
    values = row['values']
    if values in ('map', 'bypass'):
        return {'address_map': 1, 'address_map_versioned': int(values == 'map'),
                'blob_gc_stress': rng.choice([0, 0, 1])}
    flags = {'address_map': 0, 'blob_gc_stress': 0, 'enable_blob_direct_write': 0}
    if values == 'sst':
        return {**flags, 'enable_blob_files': 0, 'enable_blob_garbage_collection': 0,
                'allow_setting_blob_options_dynamically': 0}
    flags.update({
        'enable_blob_files': 1,
        'allow_setting_blob_options_dynamically': rng.choice([0, 1]),
        'min_blob_size': rng.choice([0, 8, 16]),
        'blob_file_size': rng.choice([1 << 20, 16 << 20, 256 << 20]),
        'blob_compression_type': rng.choice(['none', 'snappy', 'lz4', 'zstd']),
        'blob_file_starting_level': rng.choice([0, 0, 1, 2]),
        'enable_blob_garbage_collection': rng.choice([0, 1, 1, 1]),
        'blob_garbage_collection_age_cutoff': rng.choice([0.25, 0.5, 1.0]),
        'blob_garbage_collection_force_threshold': rng.choice([0.5, 0.75, 1.0]),
        'use_blob_cache': rng.choice([0, 1]),
        # Each of these would turn blob files off.
        'remote_compaction_worker_threads': 0,
    })
    if row['mode'] in _TXN:
        flags['commit_bypass_memtable_one_in'] = 0
    if row['mode'] == 'timestamps':
        flags['persist_user_defined_timestamps'] = 1
    return flags


def crashtest_flags(row, seed):
    """The parameters of db_crashtest.py that the row settles, by name."""
    rng = random.Random(f'flags {seed}')
    flags = {'max_key': rng.choice([25000, 100000])}
    if row['mode'] in _MULTIOPS:
        flags.clear()  # its test has keys of its own
    # Few: each run of db_stress begins by verifying all keys of all column families.
    if row['mode'] not in _OWN_COLUMN_FAMILIES:
        flags['column_families'] = rng.choice(
            [2, 3] if row['mode'] == 'cf_consistency' else [1, 2, 3])
    flags.update(_value_flags(row, rng))
    flags['delta_separation'] = int(row['deltas'] == 'yes')
    flags['merged_value_cache'] = int(row['merged_values'] == 'yes')
    flags['per_level_paths'] = rng.choice([1, 2, 3]) if row['paths'] == 'yes' else 0
    flags['wal_mmap_buffer_size'] = 0
    flags['max_write_groups_per_leader'] = 1
    flags['checkpoint_one_in'] = rng.choice([1000, 10000]) if row['checkpoints'] == 'yes' else 0
    flags['backup_one_in'] = rng.choice([1000, 10000]) if row['backups'] == 'yes' else 0
    flags.update(_fault_flags(row, rng))
    # What would turn a feature off gives way.
    if row['merged_values'] == 'yes':
        flags.update({'use_merge': 1, 'test_secondary': 0, 'unordered_write': 0})
    if row['wal_buffer'] == 'yes':
        flags.update({'wal_mmap_buffer_size': rng.choice([4096, 65536, 1048576]),
                      'manual_wal_flush_one_in': 0, 'recycle_log_file_num': 0, 'disable_wal': 0})
    if row['write_groups'] == 'yes':
        flags.update({'max_write_groups_per_leader': rng.choice([2, 8, 64]),
                      'enable_pipelined_write': 0, 'unordered_write': 0})
    if row['kills'] == 'whitebox':
        # Without a WAL there are few kill points.
        flags.update({'ops_per_thread': WHITEBOX_OPS_PER_THREAD, 'disable_wal': 0,
                      'random_kill_odd': RANDOM_KILL_ODD})
    if row['paths'] == 'yes' and 'yes' in (row['checkpoints'], row['backups']):
        # Each round makes some copies into several directories, and some into one.
        flags['copy_layout_one_in'] = rng.choice([2, 2, 4])
    return flags


def crashtest_command(row, seed, seconds, interval, python, script, db_stress):
    """The command of a round that db_crashtest.py runs."""
    flags = crashtest_flags(row, seed)
    flags.update({'duration': seconds, 'verify_timeout': VERIFY_SECONDS,
                  # How many operations a killed run had made is otherwise not known.
                  'progress_reports': 1})
    if row['kills'] == 'blackbox':
        flags['interval'] = interval
    return [python, '-u', script, row['kills'], *MODES[row['mode']], f'--stress_cmd={db_stress}',
            f'--initial_random_seed_override={seed}',
            *(f'--{name}={value}' for name, value in sorted(flags.items()))]


def overlap_command(row, seed, seconds, interval, program, db):
    """The command of a round of the overlap stress test."""
    return [program, f'--seconds={seconds}', f'--slice={interval}', f'--seed={seed}',
            f'--db={db}', f"--map={int(row['values'] != 'sst')}",
            f"--bypass={int(row['values'] == 'bypass')}", f"--delta={int(row['deltas'] == 'yes')}",
            f"--merged_values={int(row['merged_values'] == 'yes')}"]
