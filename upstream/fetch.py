# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Gets a verified tree of the pinned upstream.

The tree is the directory that STRATA_UPSTREAM names. Without that variable it is in the
cargo package that PIN names, which cargo downloads and unpacks.

This module relies on `pin`, on `problem`, and on a cargo that knows `cargo info`.
"""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from pin import differing
from problem import Problem, listed, note

OLDEST_CARGO = (1, 82)
# Debian's package cargo-web installs the second one. The first one may be a rustup
# without a toolchain, which hides it.
CARGOS = ('cargo', '/usr/bin/cargo')


def find_cargo():
    """The path of a cargo that is new enough."""
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


def fetch_upstream(pin):
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
    wrong = [f'{path}: {how}' for path, how in differing(source, pin.files).items()]
    if wrong:
        raise Problem(
            f'{source} is not the RocksDB that upstream/FILES pins (package '
            f'{pin.package} {pin.version}); {len(wrong)} of {len(pin.files)} files '
            f'differ:{listed(wrong)}\n{remedy}')
    return source


def fetch_package(pin):
    """The RocksDB folder of the unpacked cargo package."""
    home = pathlib.Path(os.environ.get('CARGO_HOME') or '~/.cargo').expanduser()
    name = f'{pin.package}-{pin.version}'

    def unpacked():
        for package in sorted(home.absolute().glob(f'registry/src/*/{name}')):
            # cargo writes .cargo-ok last
            if (package / '.cargo-ok').exists() and (package / pin.folder).is_dir():
                return str(package / pin.folder)
        return None

    found = unpacked()
    if found:
        return found
    cargo = find_cargo()
    wanted = f'{pin.package}@{pin.version.partition("+")[0]}'
    note(f'fetching {wanted} with {cargo}')
    with tempfile.TemporaryDirectory() as folder:
        # cargo reads manifests and configuration of its directory; this one has none.
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
