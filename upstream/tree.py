#!/usr/bin/env python3
# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Keeps build/src in step with the pinned upstream, patches/ and the overlay.

build/src is a git repository whose HEAD is the commit *patched*, child of *pristine*
(or *pristine* alone, before the first sync).  *patched* is what the tree and patches/
agreed on at the last sync; it is the base of every three-way decision here:

    base    a file in *patched*
    work    the file in build/src
    wanted  the file that upstream + patches/ say

A sync computes one result per file, then writes build/src, then patches/, then moves
HEAD, all under a lock.  A file that only one side changed gives the same result when
a killed sync is run again, whatever was already written.  A file that both changed
would not, so its merge is noted down before the first write (see merge()).  Nothing
is written unless all of it can be, and no file is replaced that changed meanwhile.

The overlay works alike: the project's file against the regular file that stands in
its place in build/src (a copy under include/, or what an editor put over the link).
The base is kept as the tree refs/strata/overlay.
"""
import argparse
import array
import contextlib
import fcntl
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import types

FILE, EXECUTABLE, LINK = '100644', '100755', '120000'
OLDEST_CARGO = (1, 82)
# Debian's cargo-web installs the second; a rustup without a toolchain may hide it.
CARGOS = ('cargo', '/usr/bin/cargo')
# More upstream files than this missing at once is an accident, not a change.
MAX_DELETIONS = 20
# What editors and Python leave behind; never an edit that could be lost.
JUNK = re.compile(
    r'(^|/)(__pycache__|\.cache)/|\.py[co]$|~$|(^|/)\.[^/]*\.sw[a-z]$|(^|/)\.#'
    r'|(^|/)#[^/]*#$|(^|/)(compile_commands\.json|tags|TAGS|4913|\.DS_Store)$')

RUN = 8  # this many consecutive lines of upstream code are a copy
CODE_SUFFIXES = (
    '.cc', '.h', '.c', '.cpp', '.hpp', '.cxx', '.inc', '.in', '.py', '.mk', '.cmake',
    '.sh', '.bash', '.txt', '.pl', '.proto', '.S', '.java', '.bat', '.ps1', '.yml')
NOT_CODE = re.compile(
    r'#|//|/\*|\*|namespace |using |[\W_]*$')  # '#': includes and scripts' comments


class Problem(Exception):
    """What went wrong and what the person in front of the screen can do about it."""


def listed(names, limit=20):
    names = sorted(names)
    more = [f'... and {len(names) - limit} more'] if len(names) > limit else []
    return ''.join(f'\n  {name}' for name in names[:limit] + more)


def note(text):
    print(f'tree: {text}', file=sys.stderr)


# --- Files.  An entry is (mode, blob id), as git has it; None stands for no file. ---


def blob_id(data):
    return hashlib.sha1(b'blob %d\0' % len(data) + data).hexdigest()


def entry_of(path):
    try:
        mode = path.lstat().st_mode
        if path.is_symlink():
            return LINK, blob_id(os.fsencode(os.readlink(path)))
        return EXECUTABLE if mode & 0o100 else FILE, blob_id(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None


def write_file(path, data, mode=FILE):
    """Replaces a file in one step; a kill leaves at most a file that JUNK covers."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f'.{path.name}.part~')
    part.write_bytes(data)
    part.chmod(0o755 if mode == EXECUTABLE else 0o644)
    os.replace(part, path)


def remove_file(path, top):
    """Removes a file and the directories below `top` that this leaves empty."""
    path.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        for parent in path.parents:
            if parent == top:
                break
            parent.rmdir()


def make_link(path, target):
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f'.{path.name}.part~')
    part.unlink(missing_ok=True)
    part.symlink_to(target)
    os.replace(part, path)


def require(path, expected):
    if entry_of(path) != expected:
        raise Problem(f'{path} changed during the sync; nothing is lost, run it again')


def put(path, expected, entry, data, top):
    """Makes `path` the given entry, unless it is no longer what the sync saw."""
    require(path, expected)
    if entry is None:
        remove_file(path, top)
    else:
        write_file(path, data, entry[0])


def walk(top):
    """Relative paths of the regular files below `top`, sorted, links left out."""
    found = []
    for folder, folders, names in os.walk(top):
        folders[:] = [name for name in folders if name not in ('.git', '__pycache__')]
        for name in names:
            path = os.path.join(folder, name)
            if not os.path.islink(path):
                found.append(os.path.relpath(path, top))
    return sorted(found)


# --- upstream/PIN and upstream/FILES ---


def read_pin(path):
    pin = {}
    for line in path.read_text().splitlines():
        key, _, value = line.partition('=')
        pin[key.strip()] = value.strip()
    missing = {'package', 'version', 'folder'} - pin.keys()
    if missing:
        raise Problem(f'{path} lacks {", ".join(sorted(missing))}')
    return pin


def describe_file(path):
    x = 'x' if os.stat(path).st_mode & 0o100 else '-'
    with open(path, 'rb') as file:
        return hashlib.file_digest(file, 'sha256').hexdigest(), x


def describe_dir(top):
    return {path: describe_file(os.path.join(top, path)) for path in walk(top)
            if not JUNK.search(path)}


def format_files(files):
    return b''.join(os.fsencode(f'{sha} {x} {path}\n')
                    for path, (sha, x) in sorted(files.items()))


def parse_files(data):
    files = {}
    for line in os.fsdecode(data).split('\n')[:-1]:
        sha, x, path = line.split(' ', 2)
        files[path] = sha, x
    return files


def differing(top, files):
    """The files of the pin that `top` lacks or has in another form."""
    found = {}
    for path, want in files.items():
        full = os.path.join(top, path)
        if os.path.islink(full) or not os.path.isfile(full):
            found[path] = 'missing'
        elif (have := describe_file(full)) != want:
            found[path] = ('other content' if have[0] != want[0] else
                           'should be executable' if want[1] == 'x' else
                           'should not be executable')
    return found


# --- Fetching ---


def find_cargo():
    tried = []
    for name in CARGOS:
        path = shutil.which(name)
        if not path:
            continue
        run = subprocess.run([path, '--version'], capture_output=True, text=True)
        version = re.match(r'cargo (\d+)\.(\d+)', run.stdout)
        if version and tuple(map(int, version.groups())) >= OLDEST_CARGO:
            return path
        said = (run.stdout or run.stderr).strip().split('\n')[0]
        tried.append(f'{path}: {said or "no answer"}')
    why = f'cargo is too old or does not run:{listed(tried)}' if tried else 'no cargo'
    raise Problem(
        f'upstream RocksDB is fetched with cargo >= {OLDEST_CARGO[0]}.'
        f'{OLDEST_CARGO[1]}; {why}\nEither `apt-get install cargo-web` (Debian 12), or '
        'set STRATA_UPSTREAM to an unpacked tree of the pinned RocksDB')


def fetch_upstream(pin, files):
    """The directory of a verified upstream tree; downloads the package if need be."""
    given = os.environ.get('STRATA_UPSTREAM')
    if given:
        if not os.path.isdir(given):
            raise Problem(f'STRATA_UPSTREAM={given} is not a directory')
        source = os.path.abspath(given)
        remedy = 'STRATA_UPSTREAM must name an unmodified tree of it'
    else:
        source = fetch_package(pin)
        remedy = f'remove {os.path.dirname(source)}, so that cargo unpacks it again'
    wrong = [f'{path}: {how}' for path, how in differing(source, files).items()]
    if wrong:
        raise Problem(
            f'{source} is not the RocksDB that upstream/FILES pins (package '
            f'{pin["package"]} {pin["version"]}); {len(wrong)} of {len(files)} files '
            f'differ:{listed(wrong)}\n{remedy}')
    return source


def fetch_package(pin):
    home = pathlib.Path(os.environ.get('CARGO_HOME') or '~/.cargo').expanduser()
    name = f'{pin["package"]}-{pin["version"]}'

    def unpacked():
        for package in sorted(home.absolute().glob(f'registry/src/*/{name}')):
            # cargo writes .cargo-ok last
            if (package / '.cargo-ok').exists() and (package / pin['folder']).is_dir():
                return str(package / pin['folder'])
        return None

    found = unpacked()
    if found:
        return found
    cargo = find_cargo()
    wanted = f'{pin["package"]}@{pin["version"].partition("+")[0]}'
    note(f'fetching {wanted} with {cargo}')
    with tempfile.TemporaryDirectory() as folder:
        # A directory without manifest or configuration: nothing there can interfere.
        run = subprocess.run([cargo, 'info', wanted], cwd=folder, text=True,
                             stdin=subprocess.DEVNULL, capture_output=True,
                             env={**os.environ, 'CARGO_HOME': str(home.absolute())})
    found = unpacked()
    if not found:
        said = ''.join(f'\n  {line}' for line in run.stderr.strip().split('\n')[-5:])
        raise Problem(
            f'`cargo info {wanted}` did not give the package {name}:{said}\nCheck the '
            'network and proxy (cargo must reach its registry), or set STRATA_UPSTREAM '
            'to an unpacked tree of the pinned RocksDB')
    return found


# --- Git ---


class Git:
    """Plumbing on one repository that no environment or configuration can bend.

    It does not wait for the disk: after a power failure that damaged it, .git can be
    removed from build/src; the edits are in the worktree and in patches/."""

    OPTIONS = [word for setting in (
        'core.attributesFile=/dev/null', 'core.autocrlf=false', 'core.bare=false',
        'core.compression=1', 'core.excludesFile=/dev/null', 'core.fileMode=true',
        'core.fsmonitor=false', 'core.fsync=none', 'core.hooksPath=/dev/null',
        'core.ignoreCase=false', 'core.quotePath=true', 'core.safecrlf=false',
        'core.sparseCheckout=false', 'core.splitIndex=false', 'core.symlinks=true',
        'core.untrackedCache=false', 'gc.auto=0', 'safe.directory=*',
        'init.defaultBranch=main', 'init.templateDir=') for word in ('-c', setting)]
    DIFF = ['-r', '-U1', '--full-index', '--binary', '--no-renames', '--no-ext-diff',
            '--no-textconv', '--no-color', '--inter-hunk-context=0', '--no-relative',
            '--diff-algorithm=myers', '--indent-heuristic',
            '--src-prefix=a/', '--dst-prefix=b/']

    def __init__(self, git_dir, work_tree):
        self.git_dir, self.work_tree = git_dir, work_tree
        self.known_trees = {None: {}}
        env = {key: value for key, value in os.environ.items()
               if not key.startswith('GIT_')}
        env.update(GIT_CONFIG_GLOBAL=os.devnull, GIT_CONFIG_NOSYSTEM='1',
                   GIT_ATTR_NOSYSTEM='1', GIT_TERMINAL_PROMPT='0', LC_ALL='C')
        for who in ('AUTHOR', 'COMMITTER'):
            env.update({f'GIT_{who}_NAME': 'Strata',
                        f'GIT_{who}_EMAIL': 'strata@localhost',
                        f'GIT_{who}_DATE': '2000-01-01T00:00:00Z'})
        self.env = env

    def try_run(self, *args, data=None, index=None, work_tree=None):
        top = work_tree or self.work_tree
        env = {**self.env, 'GIT_INDEX_FILE': str(index)} if index else self.env
        return subprocess.run(
            ['git', *self.OPTIONS, f'--git-dir={self.git_dir}', f'--work-tree={top}',
             *args], cwd=top, env=env, input=data or b'', capture_output=True)

    def run(self, *args, **options):
        done = self.try_run(*args, **options)
        if done.returncode:
            raise Problem(f'git {args[0]} failed in {self.work_tree}: '
                          f'{os.fsdecode(done.stderr).strip()}')
        return done.stdout

    def line(self, *args, **options):
        return os.fsdecode(self.run(*args, **options)).strip()

    def paths(self, *args, **options):
        return os.fsdecode(self.run(*args, **options)).split('\0')[:-1]

    def entries(self, tree):
        """{path: entry} of a tree; None is the empty tree."""
        if tree not in self.known_trees:
            found = self.known_trees[tree] = {}
            for record in self.paths('ls-tree', '-r', '-z', tree):
                meta, path = record.split('\t', 1)
                mode, _, oid = meta.split(' ')
                found[path] = mode, oid
        return dict(self.known_trees[tree])

    def write_tree(self, entries):
        index = self.git_dir / 'strata-scratch-index'
        self.fresh_index(index)
        lines = ''.join(f'{mode} {oid}\t{path}\0'
                        for path, (mode, oid) in entries.items())
        self.run('update-index', '-z', '--index-info', index=index,
                 data=os.fsencode(lines))
        return self.line('write-tree', index=index)

    def fresh_index(self, index):
        """Removes an index, and the lock that a killed git may have left beside it."""
        index.unlink(missing_ok=True)
        index.with_name(f'{index.name}.lock').unlink(missing_ok=True)

    def store(self, data):
        return self.line('hash-object', '-w', '--stdin', data=data)

    def blobs(self, oids):
        """{id: content}"""
        oids = sorted(set(oids))
        if not oids:
            return {}
        out = self.run('cat-file', '--batch', data='\n'.join(oids).encode() + b'\n')
        found, at = {}, 0
        for oid in oids:
            end = out.index(b'\n', at)
            header = out[at:end].split(b' ')
            if header[1] != b'blob':
                raise Problem(f'{self.git_dir} lacks object {oid}')
            size = int(header[2])
            found[oid] = out[end + 1:end + 1 + size]
            at = end + size + 2
        return found

    def commit(self, tree, subject, parent=None):
        return self.line('commit-tree', tree, '-m', subject,
                         *(('-p', parent) if parent else ()))

    def set_ref(self, ref, value):
        self.run('update-ref', ref, value)


def merge_file(git, base, ours, theirs, labels):
    """(content, clean); content is None where the files are not text."""
    with tempfile.TemporaryDirectory() as folder:
        names = []
        for name, data in (('ours', ours), ('base', base), ('theirs', theirs)):
            names.append(os.path.join(folder, name))
            pathlib.Path(names[-1]).write_bytes(data)
        flags = [word for label in labels for word in ('-L', label)]
        done = git.try_run('merge-file', '-p', '--diff3', *flags, *names)
    if done.returncode > 127:
        return None, False
    return done.stdout, done.returncode == 0


# --- Patches ---


HUNK = re.compile(rb'(?m)^(@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@).*$')


def patch_header(patch):
    return re.split(rb'(?m)^(?:@@ |GIT binary patch)', patch, maxsplit=1)[0]


def patch_ids(patch):
    """The blob ids (before, after) that a patch names; None if it only sets a mode."""
    header = patch_header(patch)
    found = re.search(rb'(?m)^index ([0-9a-f]{40})\.\.([0-9a-f]{40})\b', header)
    if found:
        return found[1].decode(), found[2].decode()
    if patch != header or b'\nnew mode ' not in header:
        raise Problem('it has no "index" line with two full ids')
    return None


def context_too_wide(patch):
    """The first hunk with more than one context line a side, or None."""
    for number, hunk in enumerate(HUNK.split(patch)[2::2], 1):
        kinds = ''.join(chr(line[0]) for line in hunk.split(b'\n') if line)
        if re.search(r'^  |   |  $', kinds.replace('\\', '')):
            return number
    return None


class Tree:
    """One project's build/src."""

    def __init__(self, root, build=None):
        self.root = pathlib.Path(root).resolve()
        self.build = pathlib.Path(build) if build else self.root / 'build'
        self.src = self.build / 'src'
        self.patches = self.root / 'patches'
        self.pin_path = self.root / 'upstream' / 'PIN'
        self.files_path = self.root / 'upstream' / 'FILES'
        self.pin = read_pin(self.pin_path)
        self.load_files()
        self.git = Git(self.src / '.git', self.src)
        self.index = self.src / '.git' / 'strata-index'
        self.notes_path = self.src / '.git' / 'strata.json'
        self.rebase_path = self.src / '.git' / 'strata-rebase.json'

    def load_files(self):
        data = self.files_path.read_bytes()
        self.files = parse_files(data)
        self.files_digest = hashlib.sha256(data).hexdigest()

    @contextlib.contextmanager
    def locked(self):
        self.build.mkdir(parents=True, exist_ok=True)
        with open(self.build / '.tree.lock', 'w') as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                note('waiting for another sync')
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def open(self):
        """Makes build/src a repository, with attributes that leave bytes alone."""
        path = self.src / '.git' / 'info' / 'attributes'
        text = b'* -text -ident !eol !filter !working-tree-encoding !diff !merge\n'
        if entry_of(path) != (FILE, blob_id(text)):
            self.src.mkdir(parents=True, exist_ok=True)
            self.git.run('init', '-q')  # completes one that was killed, too
            write_file(path, text)
        try:
            self.notes = json.loads(self.notes_path.read_bytes())
        except (FileNotFoundError, ValueError):
            self.notes = {}

    def keep(self, **notes):
        """Notes what is slow to find out again; losing the notes loses nothing."""
        if any(self.notes.get(key) != value for key, value in notes.items()):
            self.notes.update(notes)
            write_file(self.notes_path, json.dumps(self.notes).encode())

    # --- The sides of a sync ---

    def commits(self):
        """(pristine, patched, tree of patched), all None in a new repository.

        Commits that a person made on top are edits like any others: the worktree has
        them, so the search goes past them."""
        log = self.git.try_run('log', '--first-parent', '--format=%s|%H|%T|%P', 'HEAD')
        for line in os.fsdecode(log.stdout).splitlines():
            subject, commit, tree, parent = line.rsplit('|', 3)
            if subject == 'patched':
                return parent, commit, tree
            if subject == 'pristine':
                return commit, commit, tree
        return None, None, None

    def is_pristine(self, commit):
        entries = self.git.entries(commit)
        if ({path: 'x' if mode == EXECUTABLE else '-' if mode == FILE else '?'
             for path, (mode, _) in entries.items()}
                != {path: x for path, (_, x) in self.files.items()}):
            return False
        blobs = self.git.blobs(oid for _, oid in entries.values())
        return all(hashlib.sha256(blobs[oid]).hexdigest() == self.files[path][0]
                   for path, (_, oid) in entries.items())

    def import_pristine(self, source, files):
        index = self.git.git_dir / 'strata-scratch-index'
        self.git.fresh_index(index)
        # Names from FILES, so that no .gitignore has a say.
        self.git.run('update-index', '--add', '-z', '--stdin', index=index,
                     work_tree=source, data=os.fsencode('\0'.join(files)))
        return self.git.commit(self.git.line('write-tree', index=index), 'pristine')

    def pristine(self, current):
        """The commit of the pinned upstream; `current`, if it is that."""
        known = self.notes.get('pristine')
        if known and known == [self.files_digest, current]:
            return current
        if not current or not self.is_pristine(current):
            source = fetch_upstream(self.pin, self.files)
            current = self.import_pristine(source, self.files)
        self.keep(pristine=[self.files_digest, current])
        return current

    def snapshot(self, base, paths):
        """The tree that the worktree is, upstream's files only.

        Keeps an index for its stat data, so that only touched files are read; its own
        one, because a person's git may have filled the other under any configuration.
        """
        self.index.with_name(f'{self.index.name}.lock').unlink(missing_ok=True)
        reset = ('read-tree', *(('--reset', '-i', base) if base else ('--empty',)))
        if self.git.try_run(*reset, index=self.index).returncode:
            self.git.fresh_index(self.index)
            self.git.run(*reset, index=self.index)
        self.git.run('update-index', '--add', '--remove', '-z', '--stdin',
                     index=self.index, data=os.fsencode('\0'.join(paths)))
        tree = self.git.line('write-tree', index=self.index)
        odd = [path for path, (mode, _) in self.git.entries(tree).items()
               if mode not in (FILE, EXECUTABLE)]
        if odd:
            raise Problem('not regular files in build/src; an upstream file cannot '
                          f'become a link:{listed(odd)}')
        return tree

    def read_patches(self):
        """{upstream path: patch}"""
        found = {}
        for path in walk(self.patches):
            if path.endswith('.patch'):
                found[path[:-len('.patch')]] = (self.patches / path).read_bytes()
        return found

    def apply(self, pristine, patches):
        """The tree of upstream with patches applied; says which hunk is at fault."""
        entries = self.git.entries(pristine)
        bad, ids, tree = {}, {}, None
        one_by_one = self.touched(b''.join(patches.values())) != list(patches)
        for path, patch in patches.items():
            try:
                ids[path] = patch_ids(patch)
                self.check_header(path, patch, ids[path], entries, one_by_one)
            except Problem as problem:
                bad[path] = str(problem)
        if not bad:
            tree, bad = self.apply_all(pristine, patches, ids)
        if bad:
            raise Problem('patches that do not apply:' + listed(
                f'patches/{path}.patch: {why}' for path, why in bad.items()))
        return tree

    def touched(self, patch):
        """The files that a patch changes; a Problem in their place if it is none."""
        if not patch:
            return []
        done = self.git.try_run('apply', '--numstat', '-z', data=patch)
        if done.returncode:
            return Problem(os.fsdecode(done.stderr).strip().replace('\n', '; '))
        return [record.split('\t')[2]
                for record in os.fsdecode(done.stdout).split('\0')[:-1]]

    def check_header(self, path, patch, ids, entries, parse):
        if path not in entries:
            raise Problem('upstream has no such file; new files belong in the overlay')
        if parse:
            touched = self.touched(patch)
            if isinstance(touched, Problem):
                raise touched
            if touched != [path]:
                raise Problem(f'it changes {", ".join(touched) or "nothing"} instead')
        if ids and ids[0] != entries[path][1]:
            raise Problem(f'made for another version of the file: it starts from '
                          f'{ids[0]}, the pin has {entries[path][1]}; re-emit it from '
                          'a tree of the pin (a new version takes `tree.py rebase`)')

    def apply_all(self, pristine, patches, ids):
        index = self.git.git_dir / 'strata-scratch-index'
        text = b''.join(patch if patch.endswith(b'\n') else patch + b'\n'
                        for patch in patches.values())
        self.git.fresh_index(index)
        self.git.run('read-tree', pristine, index=index)
        flags = ('apply', '--cached', '--whitespace=nowarn')
        explain = (*flags, '--check', '--verbose')
        bad = {}
        if text and self.git.try_run(*flags, index=index, data=text).returncode:
            for path, patch in patches.items():
                done = self.git.try_run(*explain, index=index, data=patch)
                if done.returncode:
                    bad[path] = self.blame(patch, done.stderr)
            return None, bad
        tree = self.git.line('write-tree', index=index)
        entries = self.git.entries(tree)
        for path, want in ids.items():
            have = entries.get(path, (None, '0' * 40))[1]
            # Zeros on a file that stays: edited by hand, the result is not known.
            if want and want[1] not in (have, '0' * 40):
                self.git.run('read-tree', pristine, index=index)
                done = self.git.try_run(*explain, index=index, data=patches[path])
                bad[path] = (
                    f'gives blob {have}, its index line says {want[1]}: '
                    f'{self.blame(patches[path], done.stderr)}. If you edited it by '
                    'hand, put 40 zeros for that id; a sync writes the right one')
        return tree, bad

    @staticmethod
    def blame(patch, stderr):
        """Names the hunk at fault from what git says of a patch."""
        said = os.fsdecode(stderr)
        hunks = [hunk.decode() for hunk in HUNK.findall(patch)]
        moved = re.findall(r'Hunk #(\d+) succeeded at (\d+) \(offset', said)
        if moved:
            return '; '.join(f'hunk {n} ({hunks[int(n) - 1]}) landed at line {line}'
                             for n, line in moved)
        failed = re.search(r'patch failed: .*:(\d+)$', said, re.M)
        if failed:
            at = [n for n, hunk in enumerate(hunks, 1)
                  if re.match(rf'@@ -{failed[1]}\b', hunk)]
            if at:
                return f'hunk {at[0]} ({hunks[at[0] - 1]}) does not fit'
        if hunks and 'error' not in said:
            return 'the text of a hunk was changed: ' + ', '.join(
                f'hunk {n} ({hunk})' for n, hunk in enumerate(hunks, 1))
        return said.strip().replace('\n', '; ')

    def wanted(self, pristine, patches):
        """apply(), remembered."""
        digest = hashlib.sha256()
        for path, patch in sorted(patches.items()):
            digest.update(os.fsencode(f'{path}\0{len(patch)}\0') + patch)
        key = [pristine, digest.hexdigest()]
        if self.notes.get('patches', [])[:2] != key:
            self.keep(patches=key + [self.apply(pristine, patches)])
        return self.notes['patches'][2]

    def emit(self, pristine, tree):
        """{upstream path: patch} from one tree to the other."""
        raw = self.git.paths('diff-tree', '-r', '-z', '--no-renames', pristine, tree)
        text = self.git.run('diff-tree', '-p', *self.git.DIFF, pristine, tree)
        chunks = re.split(rb'(?m)^(?=diff --git )', text)[1:]
        paths = raw[1::2]
        assert len(chunks) == len(paths)
        # What git puts after the second @@ is upstream text that moves with upstream.
        return {path: HUNK.sub(rb'\1', chunk) for path, chunk in zip(paths, chunks)}

    # --- Deciding ---

    def merge(self, path, base, ours, theirs, labels):
        """(entry, clean) of three entries; the entry of a conflict has markers.

        Merging is not repeatable once a side was replaced by the result, so a sync
        that was killed between its writes must find its own results here."""
        if ours == theirs or theirs == base:
            return ours, True
        if ours == base:
            return theirs, True
        for old in self.notes.get('merges', []):
            name, *sides, result = (
                tuple(side) if isinstance(side, list) else side for side in old)
            if (name == path and base == sides[0] and ours in (sides[1], result)
                    and theirs in (sides[2], result)):
                return result, True
        if None in (base, ours, theirs):
            return ours or theirs, False
        mode = theirs[0] if ours[0] == base[0] else ours[0]
        if theirs[1] in (base[1], ours[1]):
            return (mode, ours[1]), True
        if ours[1] == base[1]:
            return (mode, theirs[1]), True
        blobs = self.git.blobs((base[1], ours[1], theirs[1]))
        data, clean = merge_file(self.git, blobs[base[1]], blobs[ours[1]],
                                 blobs[theirs[1]], labels)
        if data is None:
            return ours, False
        return (mode, self.git.store(data)), clean

    def survey(self):
        """Reads all sides; writes nothing but git objects and notes."""
        self.open()
        seen = types.SimpleNamespace()
        current, patched, base_tree = self.commits()
        seen.pristine = self.pristine(current)
        seen.pristine_entries = self.git.entries(seen.pristine)
        seen.patches = self.read_patches()
        before = self.notes.get('patches')
        wanted_tree = self.wanted(seen.pristine, seen.patches)
        seen.new_patches = self.notes['patches'] != before
        seen.head = patched if current == seen.pristine else None
        base, seen.wanted = self.git.entries(base_tree), self.git.entries(wanted_tree)
        work_tree = self.snapshot(base_tree, sorted(base.keys() | seen.wanted.keys()))
        seen.work, seen.work_tree = self.git.entries(work_tree), work_tree
        if not patched:
            # A tree under construction, or one that lost its .git: what is there may
            # hold edits, what is missing was not written yet.
            base = {path: seen.pristine_entries[path] for path in seen.work}
        seen.base = base
        gone = [path for path in base if path in seen.wanted and path not in seen.work]
        if len(gone) > MAX_DELETIONS:
            raise Problem(
                f'{len(gone)} upstream files are missing from build/src. If they were '
                'removed by accident, get them back with\n'
                f'  git -C {self.src} restore .\n'
                f'To delete upstream files for good, remove at most {MAX_DELETIONS} '
                f'between two syncs. Missing:{listed(gone)}')
        labels = 'build/src', 'last sync', 'patches'
        seen.result, seen.conflicts, merges = {}, {}, []
        for path in sorted(seen.base.keys() | seen.work.keys() | seen.wanted.keys()):
            sides = [side.get(path) for side in (base, seen.work, seen.wanted)]
            entry, clean = self.merge(path, *sides, labels)
            if not clean:
                seen.conflicts[path] = entry
            elif entry is not None:
                seen.result[path] = entry
            if clean and entry not in (sides[1], sides[2]):
                merges.append([path, *sides, entry])
        self.survey_overlay(seen, merges)
        # With those of a killed sync, which may be killed again.
        seen.merges = self.notes.get('merges', []) + merges
        return seen

    def project_files(self):
        """The project's own regular files, relative, as far as git knows them."""
        if (self.root / '.git').exists():
            git = Git(self.root / '.git', self.root)
            names = set(git.paths('ls-files', '-co', '--exclude-standard', '-z'))
        else:
            names = walk(self.root)
        return sorted(
            path for path in names
            if not path.startswith('build/') and not JUNK.search(path)
            and not (self.root / path).is_symlink() and (self.root / path).is_file())

    def overlay_files(self, files):
        """The project's files in upstream's directories; hidden ones stay private."""
        tops = {path.split('/')[0] for path in files if '/' in path}
        return [path for path in self.project_files()
                if '/' in path and path.split('/')[0] in tops and path[0] != '.']

    def link_target(self, path):
        here = os.path.realpath((self.src / path).parent)
        return os.path.relpath(self.root / path, here)

    def survey_overlay(self, seen, merges):
        """Decides on each overlay file and on everything else that git does not know.

        seen.overlay      what the project's files must become
        seen.project      what they are
        seen.links        links to make
        seen.copies       {path: (entry that is there, wanted)} in build/src
        seen.stray        files that nobody accounts for
        """
        paths = self.overlay_files(self.files)
        shadows = [path for path in paths if path in self.files]
        if shadows:
            raise Problem('the overlay may not replace upstream files (edit them in '
                          f'build/src, the edit becomes a patch):{listed(shadows)}')
        index = self.git.git_dir / 'strata-overlay-index'
        index.with_name(f'{index.name}.lock').unlink(missing_ok=True)
        ref = self.git.try_run('rev-parse', '-q', '--verify', 'refs/strata/overlay')
        base = self.git.entries(os.fsdecode(ref.stdout).strip() or None)
        self.git.run('update-index', '--add', '--remove', '--replace', '-z', '--stdin',
                     index=index, work_tree=self.root,
                     data=os.fsencode('\0'.join(sorted(set(paths) | base.keys()))))
        known = self.git.entries(self.git.line('write-tree', index=index))
        seen.project = {path: known[path] for path in paths if path in known}
        seen.overlay_base = base
        seen.overlay, seen.links, seen.copies, seen.stray = {}, [], {}, []
        for path, entry in seen.project.items():
            seen.overlay[path] = entry
            place = self.src / path
            copied = path.startswith('include/')
            if place.is_symlink():
                if not copied and os.readlink(place) == self.link_target(path):
                    continue
                there = None
            elif place.is_dir():
                seen.stray.append(f'{path} is a directory, but a file in the overlay')
                continue
            else:
                there = entry_of(place)
            if there and there != entry:
                self.git.store(place.read_bytes())
                require(place, there)
                sides = [base.get(path), entry, there]
                result, clean = self.merge(
                    path, *sides, (path, 'last sync', f'build/src/{path}'))
                if not clean:
                    seen.conflicts[path] = result
                    continue
                if result not in (entry, there):
                    merges.append([path, *sides, result])
                seen.overlay[path] = result
            if copied:
                if there != seen.overlay[path]:
                    seen.copies[path] = entry_of(place), seen.overlay[path]
            else:
                seen.links.append((path, entry_of(place)))
        for path in self.git.paths('ls-files', '-o', '-z', index=self.index):
            place = self.src / path
            if path in seen.overlay or path in seen.conflicts or JUNK.search(path):
                continue
            ours = (os.readlink(place) == self.link_target(path) if place.is_symlink()
                    else entry_of(place) == base.get(path))
            if ours:  # a link or an unedited copy of a file that left the overlay
                seen.copies[path] = entry_of(place), None
            else:
                seen.stray.append(path)

    # --- Writing ---

    def refuse(self, seen):
        if seen.stray:
            raise Problem(
                'files in build/src that are neither upstream\'s nor the overlay\'s; a '
                f'new file belongs in the project, move it there:{listed(seen.stray)}\n'
                f'  for example: mv build/src/{seen.stray[0]} {seen.stray[0]}')
        if not seen.conflicts:
            return
        blobs = self.git.blobs(oid for _, oid in seen.conflicts.values())
        folder = self.build / 'conflicts'
        patched, overlay = [], []
        for path, (mode, oid) in sorted(seen.conflicts.items()):
            write_file(folder / path, blobs[oid], mode)
            (overlay if path in seen.project else patched).append(path)
        text = 'changed on both sides in ways that exclude each other; nothing written.'
        if patched:
            text += (f'\nIn build/src and in patches/:{listed(patched)}\n'
                     '  keep the tree\'s:    tree.py resolve tree FILE...\n'
                     '  keep the patch\'s:   tree.py resolve patches FILE...\n'
                     '  or put a merge into build/src/FILE, then `resolve tree FILE`')
        if overlay:
            text += (f'\nIn the project and in build/src:{listed(overlay)}\n'
                     '  make both equal, copying over the one you do not want')
        raise Problem(f'{text}\nMerges with conflict markers are in {folder}')

    def write_worktree(self, have, want):
        """Rewrites the files that differ, and only these: ninja goes by their times."""
        changed = [path for path in sorted(have.keys() | want.keys())
                   if have.get(path) != want.get(path)]
        blobs = self.git.blobs(want[path][1] for path in changed if path in want)
        for path in changed:
            entry = want.get(path)
            put(self.src / path, have.get(path), entry, entry and blobs[entry[1]],
                self.src)
        return len(changed)

    def write_patches(self, have, want):
        changed = [path for path in sorted(have.keys() | want.keys())
                   if have.get(path) != want.get(path)]
        for path in changed:
            place = self.patches / f'{path}.patch'
            there = entry_of(place)
            if (there and there[1]) != (path in have and blob_id(have[path]) or None):
                raise Problem(f'{place} changed during the sync; run it again')
            put(place, there, (FILE, '') if path in want else None, want.get(path),
                self.patches)
        return len(changed)

    def write_overlay(self, seen):
        blobs = self.git.blobs(
            [entry[1] for path, entry in seen.overlay.items()
             if entry != seen.project[path]]
            + [entry[1] for _, entry in seen.copies.values() if entry])
        for path, entry in seen.overlay.items():
            if entry != seen.project[path]:
                put(self.root / path, seen.project[path], entry, blobs[entry[1]],
                    self.root)
        for path, (have, entry) in seen.copies.items():
            put(self.src / path, have, entry, entry and blobs[entry[1]], self.src)
        for path, have in seen.links:
            require(self.src / path, have)
            make_link(self.src / path, self.link_target(path))
        if seen.overlay != seen.overlay_base:
            self.git.set_ref('refs/strata/overlay', self.git.write_tree(seen.overlay))
            # So that `git status` in build/src shows a person only what matters.
            text = ''.join('/' + re.sub(r'([\\*?\[ ])', r'\\\1', path) + '\n'
                           for path in seen.overlay)
            write_file(self.src / '.git' / 'info' / 'exclude', os.fsencode(text))

    def commit(self, pristine, tree):
        """Makes `tree` the base of the next sync."""
        self.git.set_ref('HEAD', self.git.commit(tree, 'patched', pristine))

    def refuse_during_rebase(self):
        if self.rebase_path.exists():
            raise Problem('a rebase is in progress: resolve what it listed, then '
                          '`tree.py rebase --continue`, or `tree.py rebase --abort`')

    def sync(self):
        self.refuse_during_rebase()
        for path in walk(self.patches):
            if path.endswith('.part~'):  # left by a kill
                (self.patches / path).unlink()
        seen = self.survey()
        self.refuse(seen)
        tree, patches = seen.work_tree, seen.patches
        if seen.result != seen.work:
            tree = self.git.write_tree(seen.result)
        if seen.result != seen.wanted or seen.new_patches:
            patches = self.emit(seen.pristine, tree)
            if self.wanted(seen.pristine, patches) != tree:
                raise Problem('the patches of build/src do not give build/src; this is '
                              'a fault of tree.py, nothing was written')
        self.keep(merges=seen.merges)
        written = self.write_worktree(seen.work, seen.result)
        emitted = self.write_patches(seen.patches, patches)
        self.write_overlay(seen)
        if not seen.head or seen.result != seen.base or seen.head == seen.pristine:
            self.commit(seen.pristine, tree)
        self.refresh_index(tree, written)
        self.keep(merges=[])
        shutil.rmtree(self.build / 'conflicts', ignore_errors=True)
        if written or emitted:
            note(f'{written} files of build/src and {emitted} patches written')
        return seen, tree

    def refresh_index(self, tree, written):
        """Leaves build/src's own index at *patched*, with fresh stat data."""
        if written:
            self.git.run('read-tree', '--reset', '-i', tree, index=self.index)
            self.git.try_run('update-index', '-q', '--refresh', index=self.index)
        # With its time, by which git knows which entries it must not trust.
        shutil.copy2(self.index, self.src / '.git' / 'index.part')
        os.replace(self.src / '.git' / 'index.part', self.src / '.git' / 'index')

    # --- Commands ---

    def source(self):
        with self.locked():
            self.sync()

    def emit_patches(self):
        """A sync after which patches/ has the bytes that the tree gives."""
        with self.locked():
            seen, tree = self.sync()
            self.write_patches(self.read_patches(), self.emit(seen.pristine, tree))

    def resolve(self, side, paths):
        with self.locked():
            self.refuse_during_rebase()
            seen = self.survey()
            base, kept = dict(seen.base), []
            for path in paths:
                path = path.removeprefix('build/src/').removeprefix('patches/')
                path = path.removesuffix('.patch')
                if path not in seen.conflicts or path in seen.project:
                    raise Problem(f'{path} is not in conflict between build/src and '
                                  'patches/')
                # As if the losing side had been agreed on, and the other then edited.
                winner, loser = ((seen.work, seen.wanted) if side == 'tree'
                                 else (seen.wanted, seen.work))
                base.pop(path, None)
                if path in loser:
                    base[path] = loser[path]
                    kept.append(f'git -C {self.src} show {loser[path][1]}  # {path}')
            self.commit(seen.pristine, self.git.write_tree(base))
            note(f'what was given up can still be seen:{listed(kept)}')
            self.sync()

    def export_pristine(self):
        with self.locked():
            top = self.build / 'pristine'
            wrong = differing(top, self.files)
            if wrong:
                source = pathlib.Path(fetch_upstream(self.pin, self.files))
                for path in wrong:
                    write_file(top / path, (source / path).read_bytes(),
                               EXECUTABLE if self.files[path][1] == 'x' else FILE)
                note(f'{len(wrong)} files of {top} written')

    def status(self):
        """Prints what a sync would do; True if that is nothing."""
        print(f'upstream: {self.pin["package"]} {self.pin["version"]}, '
              f'{len(self.files)} files')
        if not (self.src / '.git').exists():
            print('build/src: not there yet')
            return False
        with self.locked():
            if self.rebase_path.exists():
                print('a rebase is in progress')
            seen = self.survey()
        names = sorted(seen.base.keys() | seen.work.keys() | seen.wanted.keys())
        groups = {
            'edited in build/src': [
                path for path in names if seen.work.get(path) != seen.base.get(path)],
            'changed in patches/': [
                path for path in names if seen.wanted.get(path) != seen.base.get(path)],
            'in conflict': seen.conflicts,
            'stray in build/src': seen.stray,
            'overlay file edited through build/src': [
                path for path, entry in seen.overlay.items()
                if entry != seen.project[path]],
            'overlay entry to refresh': [
                *seen.copies, *(path for path, _ in seen.links)],
        }
        print(f'patches: {len(seen.patches)}; overlay files: {len(seen.project)}')
        for title, paths in groups.items():
            if paths:
                print(f'{title}:{listed(paths)}')
        return not any(groups.values()) and not self.rebase_path.exists()

    def check(self):
        """The findings that make patches/ and the overlay unfit to commit."""
        found = []
        if (self.src / '.git').exists():
            with self.locked():
                self.refuse_during_rebase()
                found += self.unsynced()
        source = fetch_upstream(self.pin, self.files)
        with tempfile.TemporaryDirectory() as folder:
            fresh = Tree(self.root, folder)
            fresh.open()
            pristine = fresh.import_pristine(source, self.files)
            found += fresh.check_patches(pristine)
        found += [f'{path} shadows an upstream file'
                  for path in self.overlay_files(self.files) if path in self.files]
        found += find_copies(self, source)
        return found

    def unsynced(self):
        """Edits in build/src that patches/ and the overlay do not have."""
        try:
            seen = self.survey()
        except Problem as problem:
            return [str(problem)]
        found = [f'build/src/{path} has edits that patches/ lacks; run `tree.py source`'
                 for path in sorted(seen.work.keys() | seen.wanted.keys())
                 if seen.work.get(path) not in (seen.base.get(path),
                                                seen.wanted.get(path))]
        found += [f'build/src/{path} is in neither upstream nor the overlay'
                  for path in seen.stray]
        found += [f'build/src/{path} and {path} differ; run `tree.py source`'
                  for path, entry in seen.overlay.items()
                  if entry != seen.project[path]]
        return found + [f'build/src/{path} and {path} are in conflict'
                        for path in seen.conflicts if path in seen.project]

    def check_patches(self, pristine):
        patches = self.read_patches()
        found = [f'patches/{path} is not a patch (FILE.patch for an upstream FILE)'
                 for path in walk(self.patches)
                 if not path.endswith('.patch') and not JUNK.search(path)]
        for path, patch in patches.items():
            number = context_too_wide(patch)
            if number:
                found.append(f'patches/{path}.patch: hunk {number} has more than one '
                             'context line a side')
        try:
            emitted = self.emit(pristine, self.apply(pristine, patches))
        except Problem as problem:
            return found + [str(problem)]
        return found + [f'patches/{path}.patch is not what the tree emits; run '
                        '`tree.py patches`' for path in patches
                        if emitted.get(path) != patches[path]]

    # --- Rebase ---

    def rebase(self, new_dir, version):
        if not re.fullmatch(r'[0-9A-Za-z.+-]+', version):
            raise Problem(f'{version!r} is not a package version')
        files = describe_dir(new_dir)
        if not files:
            raise Problem(f'no files in {new_dir}')
        with self.locked():
            seen, _ = self.sync()
            shadows = [path for path in self.overlay_files(files) if path in files]
            if shadows:
                raise Problem(f'{version} has files of these names; rename ours first:'
                              f'{listed(shadows)}')
            pristine = self.import_pristine(new_dir, files)
            result, conflicts = self.carry_over(seen, pristine)
            self.save_rebase({
                'pristine': pristine, 'version': version, 'conflicts': conflicts,
                'result': self.git.write_tree(result), 'written': False,
                'files': os.fsdecode(format_files(files))})
            self.advance_rebase()

    def carry_over(self, seen, pristine):
        """*patched* cherry-picked onto another *pristine*, following renames."""
        old, new = seen.pristine_entries, self.git.entries(pristine)
        fields = self.git.paths('diff-tree', '-r', '-z', '-M', '--diff-filter=R',
                                '--name-status', seen.pristine, pristine)
        renamed = dict(zip(fields[1::3], fields[2::3]))
        result, conflicts = dict(new), {}
        for path, was in old.items():
            ours = seen.result.get(path)
            if ours == was:
                continue
            to = renamed.get(path, path)
            entry, clean = self.merge(to, was, new.get(to), ours,
                                      ('new upstream', 'old upstream', 'patches'))
            result.pop(to, None)
            if entry:
                result[to] = entry
            if not clean:
                conflicts[to] = ('gone upstream' if to not in new else
                                 'deleted by us' if ours is None else 'conflict')
        return result, conflicts

    def save_rebase(self, state):
        write_file(self.rebase_path, json.dumps(state).encode())

    def load_rebase(self):
        self.open()
        if not self.rebase_path.exists():
            raise Problem('no rebase is in progress')
        state = json.loads(self.rebase_path.read_bytes())
        base = self.git.entries(self.commits()[2])
        result = self.git.entries(state['result'])
        work_tree = self.snapshot(state['result'], sorted(base.keys() | result.keys()))
        return state, base, result, self.git.entries(work_tree), work_tree

    def advance_rebase(self):
        """Goes on from wherever a rebase stands, killed or waiting for a person."""
        state, base, result, work, work_tree = self.load_rebase()
        if not state['written']:
            # A file that is no longer the base's was written before a kill.
            todo = {path: result.get(path) if work.get(path) == base.get(path)
                    else work.get(path) for path in base.keys() | result.keys()}
            self.write_worktree(work, {k: v for k, v in todo.items() if v})
            state['written'] = True
            self.save_rebase(state)
            if state['conflicts']:
                raise Problem(
                    'conflicts, marked in build/src:' + listed(
                        f'{path}: {why}' for path, why in state['conflicts'].items())
                    + '\nResolve them there (remove a file that is gone upstream, once '
                    'its seam has another place), then `tree.py rebase --continue`')
            return self.advance_rebase()
        new = self.git.entries(state['pristine'])
        marked = [path for path in state['conflicts'] if path in work and re.search(
            rb'(?m)^(<{7}|>{7}|\|{7}) ', (self.src / path).read_bytes())]
        if marked:
            raise Problem(f'conflict markers are left in build/src:{listed(marked)}')
        gone = [path for path in work if path not in new]
        if gone:
            raise Problem('gone upstream, still in build/src; find the seam another '
                          f'place, then remove:{listed(gone)}')
        self.write_patches(self.read_patches(), self.emit(state['pristine'], work_tree))
        write_file(self.files_path, os.fsencode(state['files']))
        pin = {**self.pin, 'version': state['version']}
        write_file(self.pin_path,
                   ''.join(f'{key}={value}\n' for key, value in pin.items()).encode())
        self.commit(state['pristine'], work_tree)
        self.rebase_path.unlink()
        self.pin = pin
        self.load_files()
        self.sync()
        note(f'build/src and patches/ are at {state["version"]}; build and test, then '
             'commit patches/ and upstream/')

    def continue_rebase(self):
        with self.locked():
            self.advance_rebase()

    def abort_rebase(self):
        with self.locked():
            _, base, _, work, _ = self.load_rebase()
            self.write_worktree(work, base)
            self.rebase_path.unlink()
            self.sync()


# --- Originality ---


def is_code(path):
    name = os.path.basename(path)
    return name.endswith(CODE_SUFFIXES) or '.' not in name


def shingles(path):
    """(line number, 64-bit hash) of each run of RUN code lines in a file."""
    numbers, digests = [], []
    with open(path, encoding='utf-8', errors='replace') as file:
        for number, line in enumerate(file, 1):
            text = ' '.join(line.split())
            if text and not NOT_CODE.match(text):
                numbers.append(number)
                digests.append(hashlib.blake2b(text.encode(), digest_size=8).digest())
    for i in range(len(digests) - RUN + 1):
        run = hashlib.blake2b(b''.join(digests[i:i + RUN]), digest_size=8).digest()
        yield numbers[i], int.from_bytes(run, sys.byteorder)


def upstream_shingles(tree, source):
    """The set of upstream's hashes, kept in build/ for the next time."""
    store = tree.build / f'upstream-shingles-{tree.files_digest[:12]}'
    if not store.exists():
        hashes = {value for path in tree.files if is_code(path)
                  for _, value in shingles(os.path.join(source, path))}
        write_file(store, array.array('Q', sorted(hashes)).tobytes())
    known = array.array('Q')
    known.frombytes(store.read_bytes())
    return set(known)


def find_copies(tree, source):
    """Where committed text repeats upstream."""
    known, hits = upstream_shingles(tree, source), []
    for path in tree.project_files():
        if is_code(path) and not path.startswith('patches/'):
            end = 0
            for number, value in shingles(tree.root / path):
                if value in known and number > end:
                    hits.append((path, number, value))
                    end = number + RUN
    where, wanted = {}, {value for _, _, value in hits}
    for path in tree.files if hits else ():
        if is_code(path):
            for number, value in shingles(os.path.join(source, path)):
                if value in wanted:
                    where.setdefault(value, f'{path}:{number}')
    return [f'{path}:{number} repeats upstream {where[value]} ({RUN} lines or more); '
            'write it in your own way, or make it a seam in the upstream file'
            for path, number, value in hits]


# --- Command line ---


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
            ('patches', 'the same, and write patches/ anew from the tree'),
            ('pristine', 'make or refresh build/pristine, the unmodified upstream'),
            ('check', 'prove in a fresh tree that what would be committed is sound'),
            ('status', 'say what a sync would do; exit status 1 if anything')):
        commands.add_parser(name, help=text)
    resolve = commands.add_parser('resolve', help='decide a conflict')
    resolve.add_argument('side', choices=('tree', 'patches'))
    resolve.add_argument('paths', nargs='+', metavar='FILE')
    rebase = commands.add_parser('rebase', help='move to another upstream version')
    rebase.add_argument('new_dir', nargs='?', metavar='NEW_DIR')
    rebase.add_argument('version', nargs='?', metavar='NEW_VERSION')
    going = rebase.add_mutually_exclusive_group()
    going.add_argument('--continue', dest='go_on', action='store_true')
    going.add_argument('--abort', action='store_true')
    files = commands.add_parser('files', help='write upstream/FILES from a directory')
    files.add_argument('folder', metavar='DIR')
    args = parser.parse_args(argv)
    if args.command == 'rebase' and bool(args.version) == (args.go_on or args.abort):
        parser.error('rebase takes NEW_DIR NEW_VERSION, --continue or --abort')
    return args


def run(args):
    if args.command == 'files':
        write_files_list(args.root, args.folder)
        return 0
    tree = Tree(args.root)
    if args.command == 'status':
        return 0 if tree.status() else 1
    if args.command == 'check':
        found = tree.check()
        for finding in found:
            print(finding)
        return 1 if found else 0
    if args.command == 'resolve':
        tree.resolve(args.side, args.paths)
    elif args.command == 'rebase' and args.go_on:
        tree.continue_rebase()
    elif args.command == 'rebase' and args.abort:
        tree.abort_rebase()
    elif args.command == 'rebase':
        tree.rebase(os.path.abspath(args.new_dir), args.version)
    else:
        {'source': tree.source, 'patches': tree.emit_patches,
         'pristine': tree.export_pristine}[args.command]()
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


if __name__ == '__main__':
    sys.exit(main())
