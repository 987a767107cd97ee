#!/usr/bin/env python3
# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Shows that a database with an address map goes back to RocksDB, and not by accident.

Usage: way_back.py STOCK_BUILD STRATA_BUILD WORK_DIR

Strata's db_bench writes a database with an address map and updates it. RocksDB
must refuse it. After `ldb disable_address_map`, or `ldb disable_features` if there
are deltas, too, RocksDB must open it with the OPTIONS file as it is, and db_bench,
linked with RocksDB, must find every record with a value that was written for it.

A database whose process was killed while it had a WAL buffer: RocksDB must refuse
it, and open it once Strata's ldb has opened and closed it, by a write or by
`ldb disable_features`, with every record that Strata's ldb finds.

upgrade.py has the other features, and databases that RocksDB has made.

The last line is "N passed, N failed"; a case is a set of options.
"""
import os
import shutil
import signal
import subprocess
import sys
import time

from steps import (Problem, call, disable_address_map, disable_features, report, require_loads,
                   require_no_trace)

CASES = {
    "bypass": [],
    "no_bypass": ["--enable_lsm_bypass=false"],
    "small_and_large": ["--min_blob_size=400", "--ycsb_field_count=4",
                        "--ycsb_field_length=100"],
    "merges": ["--ycsb_mix=put:40,merge:60", "--merge_operator=fieldupdate"],
    "deltas": ["--ycsb_mix=put:40,merge:60", "--merge_operator=fieldupdate",
               "--enable_delta_separation=true", "--enable_merged_value_cache=true"],
}
RECORDS = 20000


def run_case(stock_build, strata_build, directory, flags):
    merges = [f for f in flags if f.startswith("--merge_operator")]
    shape = [f for f in flags if f.startswith("--ycsb_field")] + merges
    common = ["--db=" + directory, f"--num={RECORDS}",
              f"--ycsb_records={RECORDS}", "--key_size=16"]
    blobs = ["--enable_blob_files=true", "--write_buffer_size=1048576"]
    if not any(f.startswith("--min_blob_size") for f in flags):
        blobs.append("--min_blob_size=0")
    mix = [] if any(f.startswith("--ycsb_mix") for f in flags) else [
        "--ycsb_mix=put:100"]
    written = call(os.path.join(strata_build, "db_bench"),
                   "--benchmarks=ycsbload,ycsbmix,flush,waitforcompaction",
                   "--enable_blob_address_map=true", *common, *blobs, *mix,
                   *flags)
    if written.returncode != 0:
        raise Problem("writing failed: " + written.stdout[-2000:])
    verify = [os.path.join(stock_build, "db_bench_workloads"),
              "--benchmarks=verify", "--use_existing_db=true", *common, *blobs,
              *shape]
    refused = call(*verify)
    if refused.returncode == 0:
        raise Problem("RocksDB opens a database with an address map")
    if "--enable_delta_separation=true" in flags:
        disable_features(strata_build, directory)
        require_no_trace(directory)
    else:
        disable_address_map(strata_build, directory)
    # RocksDB's ldb does not know the operator of db_bench.
    if not merges:
        require_loads(stock_build, directory)
    verified = call(*verify)
    if verified.returncode != 0 or f"{RECORDS} records" not in verified.stdout:
        raise Problem("RocksDB misses something: " + verified.stdout[-2000:])


def count(build, directory):
    """How many records ldb counts, or its output if it cannot."""
    counted = call(os.path.join(build, "tools", "ldb"), "--db=" + directory,
                   "dump", "--count_only")
    for line in counted.stdout.splitlines():
        if line.startswith("Keys in range:"):
            return int(line.split(":")[1])
    return counted.stdout[-2000:]


def write_one(strata_build, directory):
    """Opens and closes a database."""
    written = call(os.path.join(strata_build, "tools", "ldb"), "--db=" + directory, "put", "one",
                   "more")
    if written.returncode != 0:
        raise Problem("opening and closing it failed: " + written.stdout[-2000:])


def run_killed_case(stock_build, strata_build, directory, take_buffer):
    writer = subprocess.Popen(
        [os.path.join(strata_build, "db_bench"), "--benchmarks=fillrandom",
         "--db=" + directory, "--num=100000000", "--threads=2",
         "--value_size=100", "--wal_mmap_buffer_size=65536"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(2)
    if writer.poll() is not None:
        raise Problem("db_bench did not write")
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    if not os.path.exists(os.path.join(directory, "WALBUFFER")):
        raise Problem("there is no WAL buffer")
    if isinstance(count(stock_build, directory), int):
        raise Problem("RocksDB opens a database with a WAL buffer")
    take_buffer(strata_build, directory)
    ours = count(strata_build, directory)
    theirs = count(stock_build, directory)
    if not isinstance(ours, int) or ours < 1000 or ours != theirs:
        raise Problem(f"Strata finds {ours} records, RocksDB {theirs}")


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    stock_build, strata_build, work = sys.argv[1:]
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    cases = {}
    for name, flags in CASES.items():
        cases[name] = (lambda name=name, flags=flags: run_case(
            stock_build, strata_build, os.path.join(work, name), flags),
            "RocksDB reads it after the way back")
    for name, take_buffer in {"killed": write_one, "killed_by_ldb": disable_features}.items():
        cases[name] = (lambda name=name, take_buffer=take_buffer: run_killed_case(
            stock_build, strata_build, os.path.join(work, name), take_buffer),
            "RocksDB reads it after an open and a close")
    return report(cases)


if __name__ == "__main__":
    sys.exit(main())
