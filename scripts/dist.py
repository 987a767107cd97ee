#!/usr/bin/env python3
# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Writes the source tarballs of Strata ("make dist").

Usage: dist.py [--root DIR] [--out DIR] [--dirty]

  strata-VERSION.tar.gz           the complete source: RocksDB with the patches and with Strata's
                                  files, which CMake builds without git, Python and network
  strata-VERSION-recipe.tar.gz    the files of this repository, which fetch and patch RocksDB

A .sha256 is written beside each. VERSION is that of util/strata/strata_version.h. The same commit
gives the same bytes: nothing of the clock, the user, the machine or the folder gets into a tarball.
All files have the time of the commit, or SOURCE_DATE_EPOCH if that is set.

Changes that are not committed are refused, and so are edits in build/src that patches/ does not
have. --dirty takes them, and the version ends with "-dirty". build/src itself is not changed, and
need not be there.
"""
import argparse
import dataclasses
import datetime
import gzip
import hashlib
import io
import os
import pathlib
import re
import sys
import tarfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(os.path.dirname(HERE), 'upstream'))
from files import EXECUTABLE, FILE, JUNK, blob_id, entry_of, write_file  # noqa: E402
from git import Git  # noqa: E402
from problem import Problem, listed  # noqa: E402
from source_tree import SourceTree  # noqa: E402
from survey import survey  # noqa: E402
import sync  # noqa: E402

VERSION = 'util/strata/strata_version.h'
ENTRY = 'contrib/tarball/CMakeLists.txt'
# The files of the repository, beside those in src/, of which the complete source has a copy.
# A name that ends with a slash is a folder.
KEPT = ('HISTORY.md', 'LICENSE', 'LICENSE.Apache', 'LICENSE.GPL2', 'README.md',
        'contrib/', 'docs/', 'patches/', 'testdata/', 'upstream/FILES', 'upstream/PIN')


@dataclasses.dataclass
class Source:
    """What the tarballs are made of. A set of files is {path: (mode, content)}."""
    version: str        # without "-dirty"
    commit: str
    committed: int      # seconds since 1970, of the commit
    pin: object         # of upstream/pin.py
    ours: dict          # the files of the repository
    tree: dict          # the files of build/src
    patched: list       # the paths of RocksDB's files that differ from RocksDB's, or are missing
    own: list           # the paths in `tree` that RocksDB does not have
    dirty: list         # the reasons why the commit does not give these files


# --- reading -----------------------------------------------------------------


def read_version(ours):
    if VERSION not in ours:
        raise Problem(f'{VERSION} is missing')
    found = re.search(rb'^#define STRATA_VERSION "(\d+\.\d+\.\d+)"$', ours[VERSION][1], re.M)
    if not found:
        raise Problem(f'{VERSION} has no line `#define STRATA_VERSION "N.N.N"`')
    return found[1].decode()


def read_ours(git, root, committed):
    """The files that git tracks or would track. `committed` are the entries of the commit."""
    names = git.paths('ls-files', '-co', '--exclude-standard', '-z')
    found = {}
    for name in set(names):
        if name not in committed and (JUNK.search(name) or name.startswith('build/')):
            continue
        entry = entry_of(root / name)
        if entry is None:
            continue
        if entry[0] not in (FILE, EXECUTABLE):
            raise Problem(f'{name} is not a regular file')
        found[name] = entry[0], (root / name).read_bytes()
    return found


def uncommitted(committed, ours):
    """The paths of files that differ from those of the commit."""
    have = {path: (mode, blob_id(data)) for path, (mode, data) in ours.items()}
    return [path for path in sorted(have.keys() | committed.keys())
            if have.get(path) != committed.get(path)]


def unpatched(seen):
    """The paths in build/src with edits that the repository does not have."""
    plan = seen.overlay
    return [path for path in sorted(seen.result.keys() | seen.wanted.keys())
            if seen.result.get(path) != seen.wanted.get(path)] + \
        [path for path in sorted(plan.result) if plan.result[path] != plan.project[path]]


def read_source(root):
    """The Source of the project in `root`."""
    if not (root / '.git').exists():
        raise Problem(f'{root} is not a git checkout, so the commit is not known')
    git = Git(root / '.git', root)
    if git.try_run('rev-parse', '-q', '--verify', 'HEAD').returncode:
        raise Problem('there is no commit yet')
    committed = git.entries('HEAD')
    tree = SourceTree(root)
    with tree.locked():
        tree.refuse_during_rebase()
        seen = survey(tree)
        sync.refuse(tree, seen)
        entries = {**seen.result, **seen.overlay.result}
        blobs = tree.git.blobs(oid for _, oid in entries.values())
    ours = read_ours(git, root, committed)
    dirty = [f'{path}: not committed' for path in uncommitted(committed, ours)]
    dirty += [f'build/src/{path}: edited, and "make patches" has not run since'
              for path in unpatched(seen)]
    pristine = seen.pristine_entries
    return Source(
        version=read_version(ours), commit=git.line('rev-parse', 'HEAD'),
        committed=int(git.line('log', '-1', '--format=%ct', 'HEAD')), pin=tree.pin, ours=ours,
        tree={path: (mode, blobs[oid]) for path, (mode, oid) in entries.items()},
        patched=[path for path in sorted(pristine) if entries.get(path) != pristine[path]],
        own=sorted(entries.keys() - pristine.keys()), dirty=dirty)


# --- what is in the tarballs -------------------------------------------------


def full_version(source):
    return source.version + ('-dirty' if source.dirty else '')


def origin(source):
    """The lines that say where the files come from."""
    pin = source.pin
    when = datetime.datetime.fromtimestamp(source.committed, datetime.timezone.utc)
    return [f'version: {full_version(source)}',
            f'commit: {source.commit}' + (', with changes' if source.dirty else ''),
            f'committed: {when:%Y-%m-%dT%H:%M:%SZ}',
            f'upstream package: {pin.package} {pin.version} (crates.io), folder {pin.folder}',
            f'SHA-256 of upstream/FILES: {pin.digest}']


def imported_note(source):
    """The text of IMPORTED."""
    changed = [f'  src/{path}' + ('' if path in source.tree else ' (removed)')
               for path in source.patched]
    return '\n'.join([
        'The complete source of Strata', '', *origin(source), '',
        'src/ is RocksDB as the package above has it, with two changes. The patches in patches/,',
        'one for each changed file, were applied. Then the files of Strata were added. Nothing was',
        'generated or left out. upstream/FILES has the SHA-256 of each file of the package, so',
        'this command names the files of the first list below, and no others:', '',
        "  awk '{ print $1 \"  src/\" $3 }' upstream/FILES | sha256sum --check --quiet", '',
        'src/COPYING, src/LICENSE.Apache and src/LICENSE.leveldb are the licenses of RocksDB,',
        'LICENSE that of Strata. Code of others in src/ names its license itself.', '',
        f'Files of RocksDB that Strata has changed: {len(source.patched)}', *changed, '',
        f'Files that Strata has added: {len(source.own)}',
        *(f'  src/{path}' for path in source.own), ''])


def recipe_note(source):
    """The text of RECIPE."""
    pin = source.pin
    package, version = pin.package, pin.version.partition('+')[0]
    return '\n'.join([
        'The recipe of Strata: its repository, without RocksDB', '', *origin(source), '',
        '"make release" fetches the package above, checks each file of it against upstream/FILES,',
        'applies patches/, and builds the result. It needs git, Python, CMake and cargo. README.md',
        'has the other targets. For a machine without cargo or without network, get the package',
        f'elsewhere ("cargo info {package}@{version}" downloads it; a .crate file is a tar.gz),',
        'unpack it, and name its folder:', '',
        f'  make release STRATA_UPSTREAM=/path/to/{package}-{pin.version}/{pin.folder}', ''])


def kept(path):
    """Whether the complete source has this file of the repository outside src/."""
    if path == ENTRY:
        return False    # it is the CMakeLists.txt
    return any(path == name or name.endswith('/') and path.startswith(name) for name in KEPT)


def complete_files(source):
    if ENTRY not in source.ours:
        raise Problem(f'{ENTRY} is missing')
    files = {f'src/{path}': file for path, file in source.tree.items()}
    files.update((path, file) for path, file in source.ours.items() if kept(path))
    files['CMakeLists.txt'] = source.ours[ENTRY]
    files['IMPORTED'] = FILE, imported_note(source).encode('utf-8', 'surrogateescape')
    return files


def recipe_files(source):
    return {**source.ours, 'RECIPE': (FILE, recipe_note(source).encode())}


# --- writing -----------------------------------------------------------------


def file_time(source, environ):
    """The time of all files in the tarballs, in seconds since 1970."""
    given = environ.get('SOURCE_DATE_EPOCH')
    if not given:
        return source.committed
    if not re.fullmatch(r'[0-9]{1,11}', given):
        raise Problem(f'SOURCE_DATE_EPOCH={given} is not a number of seconds')
    return int(given)


def make_tar(top, files, time):
    """The bytes of a tar in which `files` are below the folder `top`."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode='w', format=tarfile.PAX_FORMAT, encoding='utf-8',
                      errors='surrogateescape') as tar:
        for path in sorted(files, key=os.fsencode):
            mode, data = files[path]
            member = tarfile.TarInfo(f'{top}/{path}')
            member.size, member.mtime = len(data), time
            member.mode = 0o755 if mode == EXECUTABLE else 0o644
            member.uid = member.gid = 0
            member.uname = member.gname = ''
            tar.addfile(member, io.BytesIO(data))
    return out.getvalue()


def compress(data):
    """The data as a gzip file without name and time."""
    out = io.BytesIO()
    with gzip.GzipFile(filename='', mode='wb', compresslevel=9, fileobj=out, mtime=0) as file:
        file.write(data)
    return out.getvalue()


def write_tarball(out, top, files, time):
    """Writes `top`.tar.gz and its .sha256 to the folder `out`; says what it has written."""
    tar = make_tar(top, files, time)
    data = compress(tar)
    name = f'{top}.tar.gz'
    digest = hashlib.sha256(data).hexdigest()
    write_file(out / name, data)
    write_file(out / f'{name}.sha256', f'{digest}  {name}\n'.encode())
    print(f'{out / name}: {len(files)} files, {len(data)} bytes\n'
          f'  sha256 {digest}\n'
          f'  sha256 {hashlib.sha256(tar).hexdigest()} before compression')


def dist(root, out, dirty, environ):
    source = read_source(root)
    if source.dirty and not dirty:
        raise Problem(
            f'the tarballs would have changes that no commit has:{listed(source.dirty)}\n'
            'Commit them, or take them: make dist DIRTY=1, with a version that ends with "-dirty"')
    time = file_time(source, environ)
    name = f'strata-{full_version(source)}'
    write_tarball(out, name, complete_files(source), time)
    write_tarball(out, f'{name}-recipe', recipe_files(source), time)


def main(argv, environ=os.environ):
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors='backslashreplace')
    parser = argparse.ArgumentParser(prog='dist.py', description='Writes the source tarballs.')
    parser.add_argument('--root', type=pathlib.Path, metavar='DIR',
                        default=pathlib.Path(HERE).parent, help='the project')
    parser.add_argument('--out', type=pathlib.Path, metavar='DIR',
                        help='where the tarballs go, build/dist of the project by default')
    parser.add_argument('--dirty', action='store_true',
                        help='take changes that are not committed')
    args = parser.parse_args(argv)
    root = args.root.resolve()
    try:
        dist(root, args.out or root / 'build' / 'dist', args.dirty, environ)
    except Problem as problem:
        print(f'dist: {problem}', file=sys.stderr)
        return 1
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
