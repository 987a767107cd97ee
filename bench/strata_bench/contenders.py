# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""The contenders of bench/contenders.toml, and what their programs can do."""
import hashlib
import os
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Dict, Iterable, Optional, Set, Tuple

from strata_bench.declarations import DeclarationError, Table, load_file

KINDS = ['db_bench', 'fio']


class NotAvailable(Exception):
    """A contender cannot run here; the text says why."""


@dataclass
class Contender:
    name: str
    title: str
    kind: str = 'db_bench'
    binary: Path = Path()
    flags: Dict[str, str] = field(default_factory=dict)
    block_size: int = 4096  # fio
    extends: Tuple[str, ...] = ()  # all that it was made of

    def is_one_of(self, names: Iterable[str]) -> bool:
        """Whether it is named, or one that it was made of."""
        return not {self.name, *self.extends}.isdisjoint(names)


def parse(path: Path, root: Path) -> Dict[str, Contender]:
    """All contenders. `extends` takes program and flags of one that stands above."""
    contenders: Dict[str, Contender] = {}
    for name, data in load_file(path).items():
        if not isinstance(data, dict):
            raise DeclarationError(f'{path}: {name}: not a table')
        if not re.fullmatch(r'[a-z][a-z0-9-]*', name):
            raise DeclarationError(f'{path}: {name}: names have small letters, digits and dashes')
        table = Table(data, str(path), f'{name}.')
        title = table.get('title', 'text')
        base = table.get('extends', 'text', None)
        if base is not None and base not in contenders:
            raise table.fail('extends', f'{base!r} is not a contender that stands above')
        kind = table.choice('kind', KINDS, contenders[base].kind if base else 'db_bench')
        contender = Contender(name, title, kind)
        if base is not None:
            contender.extends = (*contenders[base].extends, base)
        if kind == 'fio':
            contender.binary = Path(table.get('program', 'text', 'fio'))
            contender.block_size = table.get('block_size', 'size', 4096)
        else:
            if base is None:
                contender.binary = root / table.get('program', 'text')
            else:
                program = table.get('program', 'text', None)
                contender.binary = root / program if program else contenders[base].binary
                contender.flags.update(contenders[base].flags)
            contender.flags.update(table.flags('flags'))
        table.close()
        contenders[name] = contender
    return contenders


def known_flags(help_text: str) -> Set[str]:
    """The flags that `db_bench --help` lists."""
    return set(re.findall(r'^\s+-([A-Za-z0-9_]+) \(', help_text, re.MULTILINE))


class Programs:
    """What is asked of programs more than once in a session. Not for several threads."""

    def __init__(self) -> None:
        self._flags: Dict[Path, Set[str]] = {}
        self._hashes: Dict[Tuple[str, int, int], str] = {}

    def flags(self, binary: Path) -> Set[str]:
        if binary not in self._flags:
            try:
                done = subprocess.run([str(binary), '--help'], stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, text=True, errors='replace',
                                      timeout=60, check=False)
            except (OSError, subprocess.TimeoutExpired) as error:
                raise NotAvailable(f'{binary}: {error}') from error
            flags = known_flags(done.stdout)
            if not flags:
                lines = done.stdout.strip().splitlines()
                raise NotAvailable(f'{binary} --help lists no flags: '
                                   f'{lines[-1] if lines else "no output"}')
            self._flags[binary] = flags
        return self._flags[binary]

    def _hash(self, path: Path) -> str:
        stat = path.stat()
        key = (str(path), stat.st_size, stat.st_mtime_ns)
        if key not in self._hashes:
            digest = hashlib.sha256()
            with open(path, 'rb') as file:
                for block in iter(lambda: file.read(1 << 20), b''):
                    digest.update(block)
            self._hashes[key] = digest.hexdigest()
        return self._hashes[key]

    def stamp(self, binary: Path) -> str:
        """Changes with the program and with the RocksDB library that it loads."""
        stamps = [self._hash(binary)]
        library = rocksdb_library(binary)
        if library is not None:
            stamps.append(self._hash(library))
        return hashlib.sha256(' '.join(stamps).encode()).hexdigest()

    def check(self, contender: Contender, flags: Iterable[str]) -> None:
        """Throws NotAvailable, saying what is missing."""
        if contender.kind == 'fio':
            if not _on_path(str(contender.binary)):
                raise NotAvailable(f'{contender.binary} is not installed')
            return
        if not os.access(contender.binary, os.X_OK):
            raise NotAvailable(f'{contender.binary} is not built')
        unknown = sorted(set(flags) - self.flags(contender.binary))
        if unknown:
            raise NotAvailable(f'{contender.binary.name} does not know '
                               + ', '.join(f'--{name}' for name in unknown))


def rocksdb_library(binary: Path) -> Optional[Path]:
    try:
        done = subprocess.run(['ldd', str(binary)], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, check=False)
    except OSError:
        return None
    match = re.search(r'librocksdb\S* => (\S+)', done.stdout)
    return Path(match.group(1)) if match and os.path.exists(match.group(1)) else None


def built_for(binary: Path) -> str:
    """What a program in a build folder was built for (CMake's PORTABLE), '' if nothing says so."""
    try:
        cache = (binary.parent / 'CMakeCache.txt').read_text(encoding='utf-8')
    except OSError:
        return ''
    match = re.search(r'^PORTABLE:\w+=(.*)$', cache, re.MULTILINE)
    return match.group(1).strip() if match else ''


def _on_path(program: str) -> bool:
    if os.sep in program:
        return os.access(program, os.X_OK)
    return any(os.access(os.path.join(folder, program), os.X_OK)
               for folder in os.environ.get('PATH', '').split(os.pathsep))


def replace_program(all_contenders: Dict[str, Contender], name: str, binary: Path) -> None:
    """For a contender and for all that share its program."""
    if name not in all_contenders:
        raise DeclarationError(f'no contender {name}; there are: {", ".join(all_contenders)}')
    old = all_contenders[name].binary
    for contender in all_contenders.values():
        if contender.binary == old:
            contender.binary = binary
