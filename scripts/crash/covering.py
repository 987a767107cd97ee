# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Combinations of levels of several factors, in an order that covers all pairs early.

A row is a dict with a level for each factor. Some pairs of levels exclude each other; every pair
that some row can have comes up in the first rows, of which there are about as many as the two
largest factors have pairs of levels. The same factors and the same random numbers give the same
order.
"""
import itertools

# So many rows are made at random, and the row with the most uncovered pairs is taken.
CANDIDATES = 8


class Covering:
    def __init__(self, factors, excluded, rng):
        """factors: name -> levels. excluded: pairs ((name, level), (name, level)) that no row has.
        REQUIRES: there is a row without an excluded pair."""
        self.factors = factors
        self.rng = rng
        self.excluded = {}
        for a, b in excluded:
            self.excluded.setdefault(a, set()).add(b)
            self.excluded.setdefault(b, set()).add(a)

    def fits(self, row, name, level):
        """Whether the level excludes none of the row's."""
        against = self.excluded.get((name, level))
        return not against or not any(item in against for item in row.items())

    def complete(self, row, shuffled=False):
        """The row with levels for all other factors, the first ones that fit, or random ones; None
        if there are none."""
        missing = [name for name in self.factors if name not in row]
        if not missing:
            return dict(row)
        name = missing[0]
        levels = list(self.factors[name])
        if shuffled:
            self.rng.shuffle(levels)
        for level in levels:
            if self.fits(row, name, level):
                found = self.complete({**row, name: level}, shuffled)
                if found:
                    return found
        return None

    def is_allowed(self, row):
        """Whether no two of the row's levels exclude each other."""
        return all(self.fits(row, name, level) for name, level in row.items())

    def pairs(self):
        """All pairs of levels that some row can have, in the order of the factors."""
        found = []
        for (a, a_levels), (b, b_levels) in itertools.combinations(self.factors.items(), 2):
            for pair in itertools.product([(a, level) for level in a_levels],
                                          [(b, level) for level in b_levels]):
                if self.is_allowed(dict(pair)) and self.complete(dict(pair)):
                    found.append(pair)
        return found

    def pairs_of(self, row):
        """The pairs of levels of a row, as pairs() has them."""
        return set(itertools.combinations([(name, row[name]) for name in self.factors], 2))

    def _candidate(self, uncovered, in_order):
        """A row with one of the uncovered pairs, and with more of them as far as levels fit."""
        row = dict(self.rng.choice(in_order))
        names = [name for name in self.factors if name not in row]
        self.rng.shuffle(names)
        for name in names:
            best, most = None, -1
            levels = list(self.factors[name])
            self.rng.shuffle(levels)
            for level in levels:
                if not self.fits(row, name, level):
                    continue
                item = (name, level)
                gain = sum((item, other) in uncovered or (other, item) in uncovered
                           for other in row.items())
                if gain > most and self.complete({**row, name: level}):
                    best, most = level, gain
            row[name] = best
        return {name: row[name] for name in self.factors}

    def covering_rows(self):
        """Rows until each pair has come up."""
        in_order = self.pairs()
        uncovered = set(in_order)
        while uncovered:
            candidates = [self._candidate(uncovered, in_order) for _ in range(CANDIDATES)]
            row = max(candidates, key=lambda r: len(self.pairs_of(r) & uncovered))
            uncovered -= self.pairs_of(row)
            in_order = [pair for pair in in_order if pair in uncovered]
            yield row

    def random_row(self):
        """Any row without an excluded pair."""
        return self.complete({}, shuffled=True)
