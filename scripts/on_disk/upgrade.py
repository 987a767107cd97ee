#!/usr/bin/env python3
# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Takes RocksDB's databases to Strata and back, and compares what they hold at each station.

Usage: upgrade.py STOCK_SOURCE STOCK_BUILD STRATA_SOURCE STRATA_BUILD WORK_DIR [KIND/FEATURES...]

upgrade.cc, linked with RocksDB, makes a database of a kind: plain, with blob files, with garbage in
them, with merge operands in SST files, with several column families, or with the prepared
transactions of a process that did not close it. Strata opens it with features off and on, writes to
it and runs jobs. RocksDB must then refuse it, with the message that docs/ has, unless the features
leave nothing on disk. After the documented way back, step by step or by `ldb disable_features`,
RocksDB opens it, verifies all checksums, and goes on writing.

After each station the contents of the database are written to a file, and must be equal to the byte
to the model that the writes were applied to.

The last line is "N passed, N failed"; a case is a kind of database and a set of features.
"""
import dataclasses
import filecmp
import os
import re
import shutil
import sys

from steps import (HERE, Problem, build, call, disable_address_map, disable_features, ldb, report,
                   require_loads, require_no_trace)

DOCS = os.path.join(os.path.dirname(os.path.dirname(HERE)), "docs")
KINDS = ["plain", "blobs", "garbage", "operands", "families", "transactions"]

# How RocksDB says that it does not know something in the MANIFEST -> the page that says so.
MAPPED_ENTRIES = ("new-file4 custom field not supported", "formats.md")
BLOB_FILES = ("Forward incompatible custom field encountered", "formats.md")
UNKNOWN_TAG = ("unknown tag", "formats.md")
# How Strata says that a path is missing.
MISSING_PATH = ("and the file is not in the last one either", "operations.md")

TWO_PATHS = ["--paths=2", "--blobs=1"]


@dataclasses.dataclass
class Features:
    """A set of features, and its way back."""
    on: list  # options of upgrade.cc
    refusals: list  # RocksDB refuses with one of them; none: it opens the database
    # The way back: `ldb disable_address_map`, then "off" with these options, if there are any.
    has_map: bool = False
    off: list = None
    # The paths with which RocksDB opens the database afterwards.
    paths: list = dataclasses.field(default_factory=list)
    crash: bool = False  # Strata's process ends without closing the database
    # The way back is `ldb disable_features` with these options instead; none: it is not.
    command: list = None

    @property
    def has_layout(self):
        return "--layout=split" in self.on

    def uses(self, feature):
        return any(option.startswith("--features=") and feature in option for option in self.on)

    @property
    def uses_map(self):
        return self.uses("map")

    @property
    def has_deltas(self):
        return self.uses("deltas")


EVERYTHING = ["--features=map,deltas,merged_values,writes", *TWO_PATHS, "--layout=split"]
FEATURES = {
    "map": Features(["--features=map", "--blobs=1"], [MAPPED_ENTRIES, BLOB_FILES], has_map=True),
    "versioned": Features(["--features=map,no_bypass", "--blobs=1"],
                          [MAPPED_ENTRIES, BLOB_FILES], has_map=True),
    "deltas": Features(["--features=deltas"], [UNKNOWN_TAG], off=["--drain=compact"]),
    "deltas_by_jobs": Features(["--features=deltas"], [UNKNOWN_TAG], off=["--drain=jobs"]),
    "merged_values": Features(["--features=merged_values"], []),
    "writes": Features(["--features=writes"], []),
    # The last path is given up.
    "layouts": Features([*TWO_PATHS, "--layout=split"], [BLOB_FILES],
                        off=[*TWO_PATHS, "--layout=first"]),
    # Both options become empty, and RocksDB gets the same paths.
    "layouts_off": Features([*TWO_PATHS, "--layout=split"], [BLOB_FILES], off=TWO_PATHS,
                            paths=["--paths=2"]),
    "all": Features(EVERYTHING, [MAPPED_ENTRIES, BLOB_FILES, UNKNOWN_TAG], has_map=True,
                    off=[*TWO_PATHS, "--layout=first"]),
    "all_killed": Features(EVERYTHING, [MAPPED_ENTRIES, BLOB_FILES, UNKNOWN_TAG], has_map=True,
                           off=[*TWO_PATHS, "--layout=first"], crash=True),
    "map_by_ldb": Features(["--features=map", "--blobs=1"], [MAPPED_ENTRIES, BLOB_FILES],
                           command=[]),
    "versioned_by_ldb": Features(["--features=map,no_bypass", "--blobs=1"],
                                 [MAPPED_ENTRIES, BLOB_FILES], command=[]),
    "deltas_by_ldb": Features(["--features=deltas"], [UNKNOWN_TAG], command=[]),
    "merged_values_by_ldb": Features(["--features=merged_values"], [], command=[]),
    "writes_by_ldb": Features(["--features=writes"], [], command=[]),
    # RocksDB gets the same paths.
    "layouts_by_ldb": Features([*TWO_PATHS, "--layout=split"], [BLOB_FILES], command=[],
                               paths=["--paths=2"]),
    # All files are on the first path afterwards.
    "layouts_first_by_ldb": Features([*TWO_PATHS, "--layout=split"], [BLOB_FILES],
                                     command=["--into_first_path"]),
    "all_by_ldb": Features(EVERYTHING, [MAPPED_ENTRIES, BLOB_FILES, UNKNOWN_TAG], command=[],
                           paths=["--paths=2"]),
    "all_killed_by_ldb": Features(EVERYTHING, [MAPPED_ENTRIES, BLOB_FILES, UNKNOWN_TAG],
                                  crash=True, command=["--into_first_path"]),
}


def require_documented(refusal):
    """The page must have the message, wherever its lines are broken."""
    message, page = refusal
    with open(os.path.join(DOCS, page), encoding="utf-8") as f:
        if message not in re.sub(r"\s+", " ", f.read()):
            raise Problem(f'docs/{page} does not say "{message}"')


class Case:
    """One database on its way. The steps are called in the order of run()."""

    def __init__(self, stock_build, strata_build, work, kind, features):
        self.builds = {"stock": stock_build, "strata": strata_build}
        self.programs = {side: os.path.join(work, side + "_upgrade") for side in self.builds}
        self.kind, self.features = kind, features
        self.folder = os.path.join(work, kind + "." + next(
            name for name, f in FEATURES.items() if f is features))
        os.makedirs(self.folder)
        self.db = os.path.join(self.folder, "db")
        self.model = os.path.join(self.folder, "model")
        self.found = os.path.join(self.folder, "found")

    def step(self, side, command, *options):
        return call(self.programs[side], command, "--db=" + self.db, "--kind=" + self.kind,
                    *options)

    def must(self, station, side, command, *options):
        """A step that must succeed."""
        done = self.step(side, command, *options)
        if done.returncode != 0:
            raise Problem(f"{station}: {side} {command} {' '.join(options)}: "
                          f"{done.stdout[-2000:]}")

    def must_equal(self, station, side, *options, read_only):
        """What the library finds must be the model."""
        if os.path.exists(self.found):
            os.unlink(self.found)
        self.must(station, side, "dump", "--out=" + self.found, f"--read_only={int(read_only)}",
                  *options)
        if not filecmp.cmp(self.found, self.model, shallow=False):
            raise Problem(f"{station}: {side} finds other contents; compare {self.found} "
                          f"and {self.model}")

    def must_refuse(self, station, side, refusals, *options):
        """The library must open the database neither for reading nor for writing."""
        for refusal in refusals:
            require_documented(refusal)
        for read_only in (1, 0):
            done = self.step(side, "dump", "--out=" + self.found, f"--read_only={read_only}",
                             *options)
            if done.returncode == 0:
                raise Problem(f"{station}: {side} opens the database")
            if not any(message in done.stdout for message, _ in refusals):
                raise Problem(f"{station}: {side} refuses the database with another message: "
                              f"{done.stdout[-2000:]}")

    def begin(self):
        self.must("created", "stock", "create", "--model=" + self.model)
        self.must_equal("created", "stock", read_only=True)
        # Read-only, so that prepared transactions stay as they were left.
        self.must_equal("opened with all features off", "strata", read_only=True)

    def go(self):
        on = self.features.on
        self.must_equal("opened with features on", "strata", *on, read_only=True)
        self.must("work", "strata", "work", "--model=" + self.model, "--seed=1",
                  f"--left={int(self.kind == 'transactions')}",
                  f"--crash={int(self.features.crash)}", *on)
        self.must_equal("after the work", "strata", *on, read_only=True)
        if self.features.crash:
            # An open for writing would empty the WAL and its buffer.
            self.refusals()
        self.must_equal("opened again", "strata", *on, read_only=False)
        if self.features.uses_map:
            self.verify("verify_address_map")
        if self.features.has_deltas:
            self.verify("verify_delta_store")

    def verify(self, command):
        done = ldb(self.builds["strata"], self.db, command, "--threads=2")
        if done.returncode != 0:
            raise Problem(f"{command}: {done.stdout[-2000:]}")

    def refusals(self):
        if self.features.refusals:
            self.must_refuse("before the way back", "stock", self.features.refusals)
        else:
            self.must_equal("without a way back", "stock", read_only=True)
        if self.features.has_layout:
            self.must_refuse("opened without the second path", "strata", [MISSING_PATH],
                             *[option for option in self.features.on
                               if option != "--paths=2" and option != "--layout=split"])
        # What was refused is as it was.
        self.must_equal("after refusals", "strata", *self.features.on, read_only=True)

    def go_back_by_steps(self):
        features = self.features
        if features.has_map:
            disable_address_map(self.builds["strata"], self.db)
        if features.off is not None:
            self.must("the way back", "strata", "off", *features.off)
        if features.has_layout:
            # The next MANIFEST is without the other paths.
            self.must_equal("opened once more", "strata", *features.paths, read_only=False)

    def go_back_by_command(self):
        disable_features(self.builds["strata"], self.db, *self.features.command)
        directories = [self.db, self.db + ".1"] if self.features.has_layout else [self.db]
        require_no_trace(*directories)

    def go_back(self):
        features = self.features
        if features.command is None:
            self.go_back_by_steps()
        else:
            self.go_back_by_command()
        if features.has_layout and not features.paths:
            left = [name for name in os.listdir(self.db + ".1")
                    if name.endswith((".sst", ".blob", ".delta"))]
            if left:
                raise Problem(f"the path that was given up has {', '.join(left)}")
            shutil.rmtree(self.db + ".1")
        self.must_equal("the way back", "stock", *features.paths, read_only=True)
        # With the OPTIONS file of Strata. RocksDB's have no paths.
        if not features.paths:
            require_loads(self.builds["stock"], self.db)
        self.must_equal("the way back", "stock", *features.paths, read_only=False)

    def end(self):
        """RocksDB goes on, and Strata opens what it leaves."""
        self.must("RocksDB's work", "stock", "work", "--model=" + self.model, "--seed=2",
                  *self.features.paths)
        self.must_equal("after RocksDB's work", "stock", *self.features.paths, read_only=True)
        self.must_equal("after RocksDB's work", "strata", *self.features.paths, read_only=True)

    def run(self):
        self.begin()
        self.go()
        self.refusals()
        self.go_back()
        self.end()
        shutil.rmtree(self.folder)


def main():
    if len(sys.argv) < 6:
        sys.exit(__doc__)
    stock_source, stock_build, strata_source, strata_build, work = sys.argv[1:6]
    names = sys.argv[6:] or [f"{kind}/{name}" for kind in KINDS for name in FEATURES]
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    work = os.path.abspath(work)
    build("upgrade.cc", stock_source, stock_build, os.path.join(work, "stock_upgrade"))
    build("upgrade.cc", strata_source, strata_build, os.path.join(work, "strata_upgrade"))
    cases = {}
    for name in names:
        kind, _, features = name.partition("/")
        if kind not in KINDS or features not in FEATURES:
            sys.exit(f"no such case: {name}; kinds: {' '.join(KINDS)}; "
                     f"features: {' '.join(FEATURES)}")
        case = Case(stock_build, strata_build, work, kind, FEATURES[features])
        cases[name] = (case.run, "equal at all stations")
    return report(cases)


if __name__ == "__main__":
    sys.exit(main())
