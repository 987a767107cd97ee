# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Reading TOML declarations: typed access, and errors that name the file and the key."""
import re
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional

try:
    import tomllib
except ImportError:  # before Python 3.11
    try:
        import tomli as tomllib  # type: ignore
    except ImportError:
        tomllib = None  # type: ignore[assignment]


class DeclarationError(Exception):
    """A declaration is wrong. The text names the file and the key."""


_REQUIRED = object()
_SIZE = re.compile(r'([0-9]+(?:\.[0-9]+)?)\s*(KiB|MiB|GiB)')
# What a flag may leave open: the folder of the run, and a share of the dataset.
DATA_SHARE = re.compile(r'\{data/([0-9.]+\s*(?:KiB|MiB|GiB)|[0-9]+)\}')
_UNITS = {'KiB': 1 << 10, 'MiB': 1 << 20, 'GiB': 1 << 30}
_KINDS = {
    'text': (str,),
    'integer': (int,),
    'number': (int, float),
    'boolean': (bool,),
    'list': (list,),
    'table': (dict,),
}


def parse_size(value: Any) -> Optional[int]:
    """Bytes of an integer or of a text like '64 MiB'; None if it is neither."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, str):
        match = _SIZE.fullmatch(value.strip())
        if match:
            return int(float(match.group(1)) * _UNITS[match.group(2)])
    return None


def share_of_data(divisor: str, data: int) -> int:
    """What {data/DIVISOR} stands for; at least 1."""
    size = parse_size(divisor) or int(divisor)
    return max(1, round(data / size))


def load_file(path: Path) -> Dict[str, Any]:
    if tomllib is None:
        raise DeclarationError('reading TOML needs Python 3.11, or the package tomli: '
                               'pip install -r bench/requirements.txt')
    try:
        with open(path, 'rb') as file:
            return tomllib.load(file)
    except OSError as error:
        raise DeclarationError(f'{path}: {error.strerror}') from error
    except tomllib.TOMLDecodeError as error:
        raise DeclarationError(f'{path}: {error}') from error


class Table:
    """A TOML table that is read key by key; close() reports the keys nobody asked for."""

    def __init__(self, data: Dict[str, Any], file: str, prefix: str = '') -> None:
        self._data = dict(data)
        self._file = file
        self._prefix = prefix
        self._known: List[str] = []

    def fail(self, key: str, message: str) -> 'DeclarationError':
        return DeclarationError(f'{self._file}: {self._prefix}{key}: {message}')

    def __contains__(self, key: str) -> bool:
        return key in self._data

    def get(self, key: str, kind: str, default: Any = _REQUIRED,
            check: Optional[Callable[[Any], Optional[str]]] = None) -> Any:
        """The value of a key. `check` returns what is wrong with it, or None."""
        self._known.append(key)
        if key not in self._data:
            if default is _REQUIRED:
                raise self.fail(key, f'missing (a {kind} is needed)')
            return default
        value = self._data.pop(key)
        if kind == 'size':
            size = parse_size(value)
            if size is None or size < 0:
                raise self.fail(key, f'{value!r} is not a size like 4096 or "64MiB"')
            value = size
        elif not isinstance(value, _KINDS[kind]) or (kind != 'boolean' and isinstance(value, bool)):
            raise self.fail(key, f'{value!r} is not a {kind}')
        if check is not None:
            wrong = check(value)
            if wrong:
                raise self.fail(key, wrong)
        return value

    def choice(self, key: str, choices: List[str], default: Any = _REQUIRED) -> Any:
        return self.get(key, 'text', default, lambda value: None if value in choices else
                        f'{value!r} is none of {", ".join(choices)}')

    def texts(self, key: str, default: Any = _REQUIRED) -> List[str]:
        return self.get(key, 'list', default, lambda value: None if all(
            isinstance(item, str) for item in value) else 'not a list of texts')

    def flags(self, key: str) -> Dict[str, str]:
        """A table of db_bench flags, as they go on the command line."""
        table = self.get(key, 'table', {})
        flags = {}
        for name, value in table.items():
            if not re.fullmatch(r'[a-z][a-z0-9_]*', name):
                raise self.fail(f'{key}.{name}', 'not the name of a flag (without dashes)')
            if isinstance(value, bool):
                flags[name] = 'true' if value else 'false'
            elif isinstance(value, (int, float)):
                flags[name] = str(value)
            elif isinstance(value, str):
                if re.search('[{}]', DATA_SHARE.sub('', value.replace('{dir}', ''))):
                    raise self.fail(f'{key}.{name}', f'{value!r}: only {{dir}}, {{data/15}} and '
                                    '{data/64MiB} are filled in')
                size = parse_size(value)
                flags[name] = value if size is None else str(size)
            else:
                raise self.fail(f'{key}.{name}', f'{value!r} is no value for a flag')
        return flags

    def table(self, key: str) -> 'Table':
        return Table(self.get(key, 'table'), self._file, f'{self._prefix}{key}.')

    def tables(self, key: str) -> List['Table']:
        items = self.get(key, 'list', [])
        if not all(isinstance(item, dict) for item in items):
            raise self.fail(key, 'not a list of tables')
        return [Table(item, self._file, f'{self._prefix}{key}[{n}].')
                for n, item in enumerate(items)]

    def close(self) -> None:
        for key in self._data:
            raise self.fail(key, f'unknown key; known are: {", ".join(sorted(self._known))}')


def positive(value: Any) -> Optional[str]:
    return None if value > 0 else 'must be above 0'
