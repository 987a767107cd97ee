#!/usr/bin/env python3
# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Shows that Strata with its options off leaves on disk what RocksDB leaves.

Usage: compare.py STOCK_SOURCE STOCK_BUILD STRATA_SOURCE STRATA_BUILD WORK_DIR

Runs workload.cc, linked once with each library, and compares the two
directories file by file. Blob, WAL, OPTIONS and CURRENT files must be equal to
the byte. SST files must be so once the random database and session ids are
masked, apart from the four checksum bytes of the block that holds them. The
MANIFEST must decode to the same edits. In the end RocksDB opens what Strata
wrote, with the options from Strata's OPTIONS file.

The last line is "N passed, N failed"; a case is one workload variant.
"""
import os
import re
import shutil
import subprocess
import sys

from steps import build, run

CHECKSUM_BYTES = 4


def variants(binary):
    usage = subprocess.run([binary], capture_output=True, text=True).stderr
    return usage.split()[usage.split().index("VARIANT") + 1:]


def read(path):
    with open(path, "rb") as f:
        return f.read()


def names(directory):
    """The files to compare: LOG tells the run's story, LOCK is empty."""
    return sorted(n for n in os.listdir(directory)
                  if not n.startswith("LOG") and n not in ("IDENTITY", "LOCK"))


def random_ids(directory):
    ids = [read(os.path.join(directory, "IDENTITY")).strip()]
    for name in os.listdir(directory):
        if name.startswith("LOG"):
            log = read(os.path.join(directory, name))
            ids += re.findall(rb"DB Session ID:\s+(\w+)", log)
    return ids


def mask(content, ids):
    for unique in ids:
        content = content.replace(unique, b"#" * len(unique))
    return content


def compare_table(a, b, ids_a, ids_b):
    a, b = mask(a, ids_a), mask(b, ids_b)
    if len(a) != len(b):
        return f"sizes differ: {len(a)} and {len(b)}"
    differing = [i for i in range(len(a)) if a[i] != b[i]]
    if not differing:
        return None
    first, last = differing[0], differing[-1]
    masked_end = a.rfind(b"####")
    if last - first >= CHECKSUM_BYTES or not 0 <= masked_end < first:
        return f"{len(differing)} bytes differ from offset {first} to {last}"
    return None


def decoded_manifest(ldb, path, ids):
    text = run(ldb, "manifest_dump", "--verbose", "--path=" + path)
    text = mask(text.encode(), ids).decode()
    text = re.sub(r"unique_id\(internal\): \{[^}]*\} public_unique_id: [\w-]+",
                  "unique_id: #", text)
    return text.replace(os.path.dirname(path), "DIR")


def compare(ldb, a, b):
    """A list of what differs between the directories a and b."""
    if names(a) != names(b):
        return [f"files: {sorted(set(names(a)) ^ set(names(b)))}"]
    ids_a, ids_b = random_ids(a), random_ids(b)
    found = []
    for name in names(a):
        path_a, path_b = os.path.join(a, name), os.path.join(b, name)
        if name.endswith(".sst"):
            difference = compare_table(read(path_a), read(path_b), ids_a, ids_b)
        elif name.startswith("MANIFEST"):
            same = (decoded_manifest(ldb, path_a, ids_a) ==
                    decoded_manifest(ldb, path_b, ids_b))
            difference = None if same else "decoded edits differ"
        else:
            difference = None if read(path_a) == read(path_b) else "differ"
        if difference:
            found.append(f"{name}: {difference}")
    return found


def main():
    if len(sys.argv) != 6:
        sys.exit(__doc__)
    stock_source, stock_build, strata_source, strata_build, work = sys.argv[1:]
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    stock = os.path.join(work, "stock_workload")
    strata = os.path.join(work, "strata_workload")
    build("workload.cc", stock_source, stock_build, stock)
    build("workload.cc", strata_source, strata_build, strata)
    stock_ldb = os.path.join(stock_build, "tools", "ldb")
    failed = 0
    cases = variants(stock)
    for variant in cases:
        directories = []
        for binary in (stock, strata):
            directories.append(binary + "." + variant)
            run(binary, directories[-1], variant)
        found = compare(stock_ldb, *directories)
        opened = subprocess.run(
            [stock_ldb, "--db=" + directories[1], "--try_load_options",
             "--ignore_unknown_options=false", "checkconsistency"],
            capture_output=True, text=True)
        if opened.returncode != 0 or "OK" not in opened.stdout:
            found.append("RocksDB cannot load what Strata wrote: " +
                         opened.stdout + opened.stderr)
        print(f"{variant}: {len(names(directories[0]))} files, " +
              ("; ".join(found) if found else "equal"))
        failed += bool(found)
    print(f"{len(cases) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
