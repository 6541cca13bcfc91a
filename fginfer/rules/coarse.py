"""Sums of numbers that do not fit into the 64 bits of the core, such as weights of seventeen digits: two sums in
coarser units, of which one forbids a little too much and the other one allows a little too much."""

from __future__ import annotations

from dataclasses import replace
from math import inf

from fginfer.rules.steps import Piece, Steps
from fginfer.rules.sums import SumRule

MOST_TOTAL = 2**52  # the largest total of a coarse sum: totals of the core are doubles now and then (chosen)


def coarse(rule: SumRule) -> tuple[SumRule, SumRule] | None:
    """A rule that forbids whatever this one forbids, and a rule whose score is never below that of this one.

    None where the score has another shape than limits with a constant or linear price. A unit of the coarse sums is
    `unit` of the given ones, and each variable loses less than one of them.
    """
    pieces = rule.steps.pieces
    plateau = [k for k, p in enumerate(pieces) if p.base == 0 and not p.slope]
    if rule.modulus or len(plateau) != 1 or len(pieces) > 3 or plateau[0] > 1 or len(pieces) - plateau[0] > 2:
        return None
    unit = -(-rule.steps.most // MOST_TOTAL)
    adds = tuple(tuple(a // unit for a in add) for add in rule.adds)
    most, lost = sum(max(add) for add in adds), len(adds)
    first = plateau[0]
    low = pieces[first].start
    high = pieces[first + 1].start - 1 if first + 1 < len(pieces) else None
    below = pieces[0] if first == 1 else None
    above = pieces[-1] if high is not None else None

    def steps(least: int, last: int | None) -> Steps:
        found = []
        if below is not None and least > 0:
            found.append(_moved(below, 0, unit, least))
        found.append(Piece(max(0, least), 0.0))
        if above is not None and last is not None and last < most:
            found.append(_moved(above, max(0, last + 1), unit, last))
        return Steps(tuple(found), most)

    kept_low, kept_high = -(-low // unit), None if high is None else high // unit - lost
    if kept_high is None or max(0, kept_low) <= kept_high:
        narrow = replace(rule, adds=adds, steps=steps(kept_low, kept_high))
    else:  # no coarse total is sure to lie within the limits
        narrow = replace(rule, adds=adds, steps=Steps((Piece(0, -inf),), most))
    wide = replace(rule, adds=adds, steps=steps(low // unit - lost, None if high is None else high // unit + 1))
    return narrow, wide


def _moved(piece: Piece, start: int, unit: int, anchor: int) -> Piece:
    return Piece(start, piece.base if not piece.slope else 0.0, piece.slope * unit, anchor)
