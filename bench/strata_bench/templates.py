# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Loaded databases, kept as templates: loaded once, copied for each run that needs a fresh one.

A folder holds the database in "db" and whatever other paths it uses beside it. Files that RocksDB
never changes once they are written (SST, blob) are copied by hard link, all others byte by byte.
A template has a stamp file of what made it, and of its immutable files: one that was changed by
accident is found out and loaded again.
"""
import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, Optional

IMMUTABLE = ('.sst', '.ldb', '.blob', '.delta')
_STAMP = 'template.json'
_SKIPPED = {_STAMP, 'LOCK', 'report.json', 'timeseries.csv', 'output.log'}


def stamp(**what: Any) -> str:
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:20]


def remove(folder: Path) -> None:
    """Removes a folder, and the second device's part of it if there is one."""
    if not folder.is_dir():
        return
    for path in folder.iterdir():
        if path.is_symlink() and path.is_dir():
            shutil.rmtree(path.resolve(), ignore_errors=True)
    shutil.rmtree(folder)


def prepare(folder: Path, slow: Optional[Path]) -> None:
    """Makes an empty folder, whose "slow" lies on another device if one was given."""
    remove(folder)
    (folder / 'db').mkdir(parents=True)
    if slow is not None:
        target = slow / folder.name
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        (folder / 'slow').symlink_to(target)


def copy_tree(source: Path, target: Path) -> None:
    """Copies a database; `target` may hold empty folders."""
    target.mkdir(parents=True, exist_ok=True)
    for path in sorted(source.iterdir()):
        copy = target / path.name
        if path.name in _SKIPPED:
            continue
        if path.is_dir():
            copy_tree(path, copy)
        elif path.suffix in IMMUTABLE:
            try:
                os.link(path, copy)
            except OSError:  # another device, or a file system without links
                shutil.copy2(path, copy)
        else:
            shutil.copy2(path, copy)


def walk(folder: Path) -> Iterator[Path]:
    """All files."""
    # Path.rglob does not follow the link to the second device.
    for root, _, names in os.walk(folder, followlinks=True):
        for name in names:
            yield Path(root) / name


def _immutable_files(folder: Path) -> Dict[str, Any]:
    return {str(path.relative_to(folder)): [path.stat().st_size, path.stat().st_mtime_ns]
            for path in walk(folder) if path.suffix in IMMUTABLE}


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in walk(folder)) if folder.exists() else 0


# What a gigabyte costs in the paper on tiered storage, its Table 5.
FAST_PRICE, SLOW_PRICE = 0.39, 0.19


def tiers(folder: Path) -> Dict[str, float]:
    """How a database lies on the two tiers: "slow" beside it is the slower, all else the faster."""
    slow = size_of(folder / 'slow')
    fast = size_of(folder / 'db') + size_of(folder / 'fast')
    return {'fast_bytes': fast, 'slow_bytes': slow,
            'slow_percent': 100 * slow / (fast + slow) if fast + slow else 0.0,
            'cost_usd': (fast * FAST_PRICE + slow * SLOW_PRICE) / 1e9}


class Templates:
    def __init__(self, root: Path, slow: Optional[Path] = None) -> None:
        self._root = root
        self._slow = slow

    def _folder(self, owner: str, what: str) -> Path:
        return self._root / f'{owner}-{what}'

    def is_current(self, owner: str, what: str) -> bool:
        folder = self._folder(owner, what)
        try:
            content = json.loads((folder / _STAMP).read_text())
        except (OSError, ValueError):
            return False
        return content.get('stamp') == what and content.get('files') == _immutable_files(folder)

    def get(self, owner: str, what: str, load: Callable[[Path], Any]) -> Path:
        """The template; `load` fills a new one and may throw."""
        folder = self._folder(owner, what)
        if self.is_current(owner, what):
            os.utime(folder / _STAMP)
            return folder
        prepare(folder, self._slow)
        try:
            report = load(folder)
        except BaseException:
            remove(folder)
            raise
        content = {'stamp': what, 'files': _immutable_files(folder), 'load': report}
        temporary = folder / (_STAMP + '.tmp')
        temporary.write_text(json.dumps(content))
        temporary.rename(folder / _STAMP)
        return folder

    def load_report(self, owner: str, what: str) -> Any:
        return json.loads((self._folder(owner, what) / _STAMP).read_text()).get('load')

    def copy(self, template: Path, folder: Path) -> None:
        prepare(folder, self._slow)
        copy_tree(template, folder)

    def bytes(self) -> int:
        return size_of(self._root)

    def prune(self, limit: int, keep: Optional[set] = None) -> None:
        """Removes templates, the one used longest ago first, until `limit` bytes are left."""
        if not self._root.exists():
            return
        folders = [path for path in self._root.iterdir() if path.is_dir()]

        def used(path: Path) -> float:
            try:
                return (path / _STAMP).stat().st_mtime
            except OSError:
                return 0.0  # half a template: it goes first

        total = {path: size_of(path) for path in folders}
        for path in sorted(folders, key=used):
            if sum(total.values()) <= limit:
                break
            if keep is None or path.name not in keep:
                remove(path)
                del total[path]
