# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Medians, spreads and ratios of repeated runs, and the order in which runs alternate."""
import statistics
from dataclasses import dataclass
from typing import Dict, List, Optional, Sequence, Tuple


@dataclass
class Summary:
    median: float
    low: float
    high: float
    count: int


def summarise(values: Sequence[Optional[float]]) -> Optional[Summary]:
    known = [value for value in values if value is not None]
    if not known:
        return None
    return Summary(statistics.median(known), min(known), max(known), len(known))


def pair_ratios(values: Dict[int, Optional[float]], base: Dict[int, Optional[float]]
                ) -> Optional[Summary]:
    """Of value to base, pair by pair: what drifts slowly changes both sides of a pair alike.

    None if there is no pair, or if a base is not above 0: leaving such pairs out would choose among
    the results.
    """
    ratios = []
    for pair, number in values.items():
        other = base.get(pair)
        if number is None or other is None:
            continue
        if other <= 0:
            return None
        ratios.append(number / other)
    return summarise(ratios)


def schedule(points: Sequence[str], contenders: Sequence[str], pairs: int
             ) -> List[Tuple[int, str, str]]:
    """(pair, point, contender) in the order of turns: A B, B A, A B ...

    The contenders of a pair take turns at each point, and which has the first one changes from
    pair to pair, so that neither always meets the warmer or the fuller disk.
    """
    order = []
    for pair in range(pairs):
        turn = list(contenders) if pair % 2 == 0 else list(reversed(contenders))
        for point in points:
            order += [(pair, point, contender) for contender in turn]
    return order
