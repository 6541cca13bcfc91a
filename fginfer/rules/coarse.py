"""Sums of numbers that do not fit into the 64 bits of the core, such as weights of seventeen digits: two sums in
coarser units, of which one forbids a little too much and the other one allows a little too much."""

from __future__ import annotations

from dataclasses import replace

from fginfer.rules.steps import Piece, Steps
from fginfer.rules.sums import SumRule

MOST_TOTAL = 2**52  # the largest total of a coarse sum: totals of the core are doubles now and then (chosen)


def coarse(rule: SumRule) -> tuple[SumRule, SumRule] | None:
    """A rule that forbids whatever this one forbids, and a rule whose score is never below that of this one.

    None where there are several limits with prices per unit. A unit of the coarse sums is `unit` of the given ones, and
    each variable loses less than one of them.
    """
    if rule.modulus:
        return None
    unit = -(-rule.steps.most // MOST_TOTAL) or 1
    adds = tuple(tuple(a // unit for a in add) for add in rule.adds)
    most, lost = sum(max(add) for add in adds), len(adds)
    pieces = rule.steps.pieces
    is_constant = not any(p.slope for p in pieces)
    found = (_constant if is_constant else _sloped)(rule.steps, unit, lost, most)
    return (
        None if found is None else (replace(rule, adds=adds, steps=found[0]), replace(rule, adds=adds, steps=found[1]))
    )


def _constant(steps: Steps, unit: int, lost: int, most: int) -> tuple[Steps, Steps]:
    """The worst and the best score of the totals that a coarse one may stand for."""
    pieces = steps.pieces
    borders = {0, *(max(0, -(-(p.start - e) // unit)) for p in pieces for e in (0, lost * (unit - 1)))}
    narrow, wide = [], []
    for start in sorted(b for b in borders if b <= most):
        low = min(start * unit, steps.most)
        high = min(low + lost * (unit - 1), steps.most)
        inside = [steps.piece(low), *(p for p in pieces if low < p.start <= high)]
        narrow.append(Piece(start, min(p.base for p in inside)))
        wide.append(Piece(start, max(p.base for p in inside)))
    return Steps(tuple(narrow), most), Steps(tuple(wide), most)


def _sloped(given: Steps, unit: int, lost: int, most: int) -> tuple[Steps, Steps] | None:
    """Limits with a price per unit beyond them."""
    pieces = given.pieces
    plateau = [k for k, p in enumerate(pieces) if p.base == 0 and not p.slope]
    if len(plateau) != 1 or len(pieces) > 3 or plateau[0] > 1 or len(pieces) - plateau[0] > 2:
        return None
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
    wide = steps(low // unit - lost, None if high is None else high // unit + 1)
    if kept_high is not None and max(0, kept_low) > kept_high:
        return wide, wide
    return steps(kept_low, kept_high), wide


def _moved(piece: Piece, start: int, unit: int, anchor: int) -> Piece:
    return Piece(start, 0.0, piece.slope * unit, anchor)
