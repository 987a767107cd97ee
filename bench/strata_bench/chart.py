# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""The plot of docs/benchmarks.md: by what factor Strata is better or worse at each question.

It is an SVG written by hand: it needs no library, and the same numbers give the same text, so a
new measurement is a readable change of the file.
"""
import math
from html import escape
from typing import Iterator, List, Optional, Tuple

from strata_bench import stats
from strata_bench.questions import Answer

BETTER, WORSE, OTHER = '#0072B2', '#D55E00', '#555555'
# Factors beyond these are drawn at the edge. The number stands beside each bar in any case.
LOWEST, HIGHEST = 1 / 32, 16.0
LEFT, RIGHT, WIDTH = 250, 90, 900
ROW, TOP, HEAD = 20, 64, 28

# (title of the group, its answers)
Groups = List[Tuple[str, List[Answer]]]


def _factor(ratio: Optional[stats.Summary], higher_is_better: bool) -> Optional[stats.Summary]:
    """By what it is better: 2 is twice as good, whether more or less is wanted."""
    if ratio is None or ratio.low <= 0:
        return None
    if higher_is_better:
        return ratio
    return stats.Summary(1 / ratio.median, 1 / ratio.high, 1 / ratio.low, ratio.count)


def _x(factor: float) -> float:
    factor = min(max(factor, LOWEST), HIGHEST)
    share = math.log(factor / LOWEST) / math.log(HIGHEST / LOWEST)
    return LEFT + share * (WIDTH - LEFT - RIGHT)


def _text(x: float, y: float, text: str, anchor: str = 'start', more: str = '') -> str:
    return (f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}"{more}>'
            f'{escape(text)}</text>')


def _bar(answer: Answer, y: float) -> Iterator[str]:
    better = answer.question.higher_is_better
    yield _text(LEFT - 8, y + 4, answer.question.label, 'end')
    base = answer.to_rocksdb if answer.to_rocksdb is not None else answer.to_blobdb
    factor = _factor(base, better)
    if factor is not None:
        start, end = sorted((_x(1), _x(factor.median)))
        colour = BETTER if factor.median >= 1 else WORSE
        hollow = ' fill-opacity="0.45"' if answer.to_rocksdb is None else ''
        yield (f'<rect x="{start:.1f}" y="{y - 6:.0f}" width="{max(end - start, 1):.1f}" '
               f'height="12" fill="{colour}"{hollow}/>')
        low, high = _x(factor.low), _x(factor.high)
        yield f'<path d="M{low:.1f} {y:.0f}H{high:.1f}" stroke="#000" stroke-width="1.5"/>'
        yield _text(WIDTH - RIGHT + 12, y + 4, f'{factor.median:.2f}×')
    other = _factor(answer.blobdb_to_rocksdb, better)
    if other is not None:
        yield (f'<circle cx="{_x(other.median):.1f}" cy="{y:.0f}" r="4" fill="#fff" '
               f'stroke="{OTHER}" stroke-width="1.5"/>')


def draw(groups: Groups) -> str:
    height = TOP + sum(HEAD + ROW * len(answers) for _, answers in groups) + 12
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12">',
        '<!-- Written by bench/run; see benchmarks.md. -->',
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
        _text(12, 20, 'By what factor Strata is better (blue) or worse (orange) than RocksDB',
              more=' font-size="15"'),
        _text(12, 38, 'Bars: the median, logarithmic; lines: smallest to largest; circles: '
              'BlobDB; pale bars: against BlobDB, where RocksDB was not measured.',
              more=f' fill="{OTHER}"')]
    factor = LOWEST
    while factor <= HIGHEST:
        x = _x(factor)
        name = f'{factor:g}×' if factor >= 1 else f'1/{1 / factor:.0f}'
        lines += [f'<path d="M{x:.1f} {TOP}V{height - 8}" stroke="#ddd"/>',
                  _text(x, TOP - 6, name, 'middle', f' fill="{OTHER}"')]
        factor *= 2
    lines.append(f'<path d="M{_x(1):.1f} {TOP}V{height - 8}" stroke="{OTHER}"/>')
    y = TOP
    for title, answers in groups:
        lines.append(_text(12, y + HEAD - 10, title, more=' font-weight="bold"'))
        y += HEAD
        for answer in answers:
            lines += _bar(answer, y + ROW / 2)
            y += ROW
    return '\n'.join(lines) + '\n</svg>\n'
