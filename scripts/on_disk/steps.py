# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""What the scripts of this folder have in common: programs that are linked with one of the two
libraries, and the tools of the two builds."""
import os
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))


class Problem(Exception):
    """A step has shown something that must not be."""


def run(*command, **kwargs):
    """The standard output of a command that must succeed."""
    return subprocess.run(command, check=True, capture_output=True, text=True,
                          **kwargs).stdout


def call(*command):
    """A command that may fail, with all of its output as stdout."""
    return subprocess.run(command, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)


def build(program, source, build_dir, binary):
    """Compiles a program of this folder with the headers and the library of one build."""
    run("g++", "-std=c++20", "-O1", "-fno-rtti", "-Wall",
        "-I", os.path.join(source, "include"),
        os.path.join(HERE, program), "-o", binary, "-L", build_dir,
        "-lrocksdb", "-Wl,-rpath," + os.path.abspath(build_dir))


def ldb(build_dir, directory, *arguments):
    """A command of a build's ldb, with the database's own options."""
    return call(os.path.join(build_dir, "tools", "ldb"), "--db=" + directory,
                "--try_load_options", *arguments)


def disable_address_map(strata_build, directory):
    """Takes all values out of the address maps of a closed database."""
    done = ldb(strata_build, directory, "disable_address_map", "--threads=2")
    if done.returncode != 0 or "OK" not in done.stdout:
        raise Problem("disable_address_map failed: " + done.stdout[-2000:])


def disable_features(strata_build, directory, *options):
    """Takes all of Strata's features out of a closed database, and nothing in a second run."""
    for expected in ("To do:", "Nothing to do"):
        done = ldb(strata_build, directory, "disable_features", "--threads=2", *options)
        if done.returncode != 0 or "OK: RocksDB" not in done.stdout:
            raise Problem("disable_features failed: " + done.stdout[-2000:])
        if expected not in done.stdout:
            raise Problem(f'disable_features does not say "{expected}": {done.stdout[-2000:]}')


def require_no_trace(*directories):
    """No file of the directories of a closed database may be one that RocksDB does not know, and
    the newest OPTIONS file must be one that RocksDB could have written."""
    for directory in directories:
        names = sorted(os.listdir(directory))
        unknown = [n for n in names if n.endswith((".delta", ".dbtmp")) or n == "WALBUFFER"]
        if unknown:
            raise Problem(f"{directory} still has {', '.join(unknown)}")
        options = [n for n in names if n.startswith("OPTIONS-")]
        if options:
            with open(os.path.join(directory, options[-1]), encoding="utf-8") as f:
                if "# strata:" in f.read():
                    raise Problem(f"{directory}/{options[-1]} still has options of Strata's")


def require_loads(stock_build, directory):
    """RocksDB must open a database with the OPTIONS file as it is."""
    opened = ldb(stock_build, directory, "--ignore_unknown_options=false",
                 "checkconsistency")
    if opened.returncode != 0 or "OK" not in opened.stdout:
        raise Problem("RocksDB cannot load what is left: " +
                      opened.stdout[-2000:])


def report(cases):
    """Runs cases, name -> (function without arguments, what it shows). Prints a line for each and
    the last line; returns the exit code."""
    failed = 0
    for name, (function, shown) in cases.items():
        try:
            function()
            print(f"{name}: {shown}", flush=True)
        except Problem as problem:
            print(f"{name}: {problem}", flush=True)
            failed += 1
    print(f"{len(cases) - failed} passed, {failed} failed")
    return 1 if failed else 0
