# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""The command line of tree.py: parses it, runs one command, prints errors.

This module relies on `sync`, `check` and `rebase` for the commands, and on
`source_tree`, `pin`, `files` and `problem`.
"""
import argparse
import os
import pathlib
import sys

import check
import rebase
import sync
from files import write_file
from pin import describe_dir, format_files
from problem import Problem, note
from source_tree import SourceTree


def write_files_list(root, folder):
    files = describe_dir(folder)
    if not files:
        raise Problem(f'no files in {folder}')
    write_file(root / 'upstream' / 'FILES', format_files(files))
    note(f'{len(files)} files listed')


def parse_arguments(argv):
    parser = argparse.ArgumentParser(
        prog='tree.py',
        description='Keeps build/src, patches/ and the overlay in step.')
    parser.add_argument('--root', type=pathlib.Path, metavar='DIR',
                        default=pathlib.Path(__file__).resolve().parent.parent)
    commands = parser.add_subparsers(dest='command', required=True)
    for name, text in (
            ('source', 'make or sync build/src'),
            ('patches', 'the same, and write patches/ again from the tree'),
            ('pristine', 'make or refresh build/pristine, the unmodified upstream'),
            ('check', 'prove in a fresh tree that what would be committed is sound'),
            ('status', 'say what a sync would do; exit status 1 if anything')):
        commands.add_parser(name, help=text)
    resolve = commands.add_parser('resolve', help='decide a conflict')
    resolve.add_argument('side', choices=('tree', 'patches'))
    resolve.add_argument('paths', nargs='+', metavar='FILE')
    move = commands.add_parser('rebase', help='move to another upstream version')
    move.add_argument('new_dir', nargs='?', metavar='NEW_DIR')
    move.add_argument('version', nargs='?', metavar='NEW_VERSION')
    going = move.add_mutually_exclusive_group()
    going.add_argument('--continue', dest='go_on', action='store_true')
    going.add_argument('--abort', action='store_true')
    files = commands.add_parser('files', help='write upstream/FILES from a directory')
    files.add_argument('folder', metavar='DIR')
    args = parser.parse_args(argv)
    if args.command == 'rebase' and bool(args.version) == (args.go_on or args.abort):
        parser.error('rebase takes NEW_DIR NEW_VERSION, --continue or --abort')
    return args


def run(args):
    """Runs a command; returns the exit status."""
    if args.command == 'files':
        write_files_list(args.root, args.folder)
        return 0
    tree = SourceTree(args.root)
    if args.command == 'status':
        return 0 if check.status(tree) else 1
    if args.command == 'check':
        found = check.check(tree)
        for finding in found:
            print(finding)
        return 1 if found else 0
    if args.command == 'source':
        sync.source(tree)
    elif args.command == 'patches':
        sync.emit_patches(tree)
    elif args.command == 'pristine':
        tree.export_pristine()
    elif args.command == 'resolve':
        sync.resolve(tree, args.side, args.paths)
    elif args.go_on:
        rebase.continue_rebase(tree)
    elif args.abort:
        rebase.abort_rebase(tree)
    else:
        rebase.rebase(tree, os.path.abspath(args.new_dir), args.version)
    return 0


def main(argv=None):
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors='backslashreplace')
    try:
        return run(parse_arguments(argv))
    except Problem as problem:
        print(f'tree: {problem}', file=sys.stderr)
    except KeyboardInterrupt:
        print('tree: interrupted; run it again to finish', file=sys.stderr)
    return 1
