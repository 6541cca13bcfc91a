"""Steps: a function of a whole total, piecewise linear, as the scores of sums are."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf

from fginfer.rules.rule import scaled


def smallest(numbers: Iterable[float]) -> float:
    """The least magnitude of those that are finite and not 0; 0: there is none."""
    return min((abs(x) for x in numbers if 0 < abs(x) < inf), default=0.0)


def significant_bits(number: float) -> int:
    """How many binary digits a number has."""
    numerator = abs(number.as_integer_ratio()[0])
    return (numerator // (numerator & -numerator)).bit_length() if numerator else 0


def sums_are_exact(numbers: Iterable[float], terms: int) -> bool:
    """Whether sums of so many of these numbers are exact: all are multiples of one power of two, and small enough."""
    ratios = [abs(number).as_integer_ratio() for number in numbers if number]
    if not ratios:
        return True
    largest = max(Fraction(*ratio) for ratio in ratios)
    grain = min(Fraction(numerator & -numerator, denominator) for numerator, denominator in ratios)
    return largest * terms <= grain * 2**53


@dataclass(frozen=True)
class Piece:
    """From the total `start` on (up to the next piece) the score is base + slope * (total - anchor)."""

    start: int
    base: float
    slope: float = 0.0
    anchor: int = 0

    def __call__(self, total: int) -> float:
        return self.base + self.slope * (total - self.anchor) if self.slope else self.base


@dataclass(frozen=True)
class Steps:
    """A score for each total from 0 to `most`: a list of pieces, the first of which starts at 0.

    >>> f = Steps.between(1, 2, 5, once=-3.0, unit=0.0)
    >>> [f(total) for total in range(6)]
    [-3.0, 0.0, 0.0, -3.0, -3.0, -3.0]
    """

    pieces: tuple[Piece, ...]
    most: int

    def __call__(self, total: int) -> float:
        return self.piece(total)(total)

    def piece(self, total: int) -> Piece:
        """The piece that a total lies in."""
        return self.pieces[bisect_right(self.pieces, total, key=lambda p: p.start) - 1]

    @property
    def last(self) -> int:
        """The total from which on there is one line."""
        return self.pieces[-1].start

    def forbids(self) -> bool:
        """Whether some total is forbidden."""
        return any(piece.base == -inf for piece in self.pieces)

    def weighted(self, weight: float) -> Steps:
        """The function times a weight > 0."""
        pieces = (Piece(p.start, scaled(weight, p.base), scaled(weight, p.slope), p.anchor) for p in self.pieces)
        out = Steps(tuple(pieces), self.most)
        scaled(weight, self.largest())
        return out

    def rounding(self, layers: int) -> float:
        """How far the score may be from a sum of as many steps on sloped pieces; 0 where no step is rounded."""
        slopes = {p.slope for p in self.pieces if p.slope}
        if all(significant_bits(slope) + self.most.bit_length() + 1 <= 53 for slope in slopes):
            return 0.0
        return (layers + 2) * 2.0**-52 * self.largest()

    def largest(self) -> float:
        """No finite score has a larger magnitude."""
        ends = [*(p.start - 1 for p in self.pieces[1:]), self.most]
        found = [abs(p(total)) for p, end in zip(self.pieces, ends, strict=True) for total in (p.start, end)]
        return max((size for size in found if size < inf), default=0.0)

    def moved(self, by: int, most: int) -> Steps:
        """The function g with g(t) = f(t + by) for t from 0 to most."""
        inside = [p for p in self.pieces if 0 < p.start - by <= most]
        first = self.piece(by)
        found = [Piece(max(0, p.start - by), p.base, p.slope, p.anchor - by) for p in (first, *inside)]
        return Steps(tuple(found), most)

    def moved_to(self, by: int) -> Callable[[int], Steps]:
        """`moved` for a largest total that is known later."""
        return lambda most: self.moved(by, most)

    def mirrored(self) -> Steps:
        """The function g with g(t) = f(most - t)."""
        ends = [*(p.start - 1 for p in self.pieces[1:]), self.most]
        turned = [
            Piece(self.most - end, p.base, -p.slope if p.slope else 0.0, self.most - p.anchor)
            for p, end in zip(self.pieces, ends, strict=True)
        ]
        return Steps(tuple(reversed(turned)), self.most)

    def excess(self, per_unit: float) -> Steps:
        """0 where a total is allowed, and less the further it is from one that is."""
        ends = [*(p.start - 1 for p in self.pieces[1:]), self.most]
        found: list[Piece] = []
        before: int | None = None  # the last total that is allowed
        for k, (piece, end) in enumerate(zip(self.pieces, ends, strict=True)):
            if piece.base > -inf:
                before = end
                found.append(Piece(piece.start, 0.0))
                continue
            after = next((p.start for p in self.pieces[k + 1 :] if p.base > -inf), None)
            if before is None:
                found.append(Piece(piece.start, -1.0) if after is None else Piece(piece.start, 0.0, per_unit, after))
                continue
            middle = end if after is None else (before + after) // 2
            if piece.start <= middle:
                found.append(Piece(piece.start, 0.0, -per_unit, before))
            if after is not None and middle < end:
                found.append(Piece(max(piece.start, middle + 1), 0.0, per_unit, after))
        return Steps(tuple(found), self.most)

    @classmethod
    def between(cls, low: int | None, high: int | None, most: int, once: float, unit: float) -> Steps:
        """0 within the limits; outside `once` (-inf if forbidden) and, for each unit of violation, `unit`."""
        pieces = []
        if low is not None and low > 0:
            pieces.append(Piece(0, once, -unit if unit else 0.0, low))
        if low is None or low <= most:
            pieces.append(Piece(max(0, low or 0), 0.0))
        if high is not None and high < most:
            pieces = [p for p in pieces if p.start <= high]
            pieces.append(Piece(max(0, high + 1), once, unit, high))
        return cls(tuple(pieces), most)

    @classmethod
    def listed(cls, scores: Sequence[float]) -> Steps:
        """A score for each total from 0 on."""
        pieces = [Piece(0, scores[0])]
        for total, score in enumerate(scores):
            if score != pieces[-1].base:
                pieces.append(Piece(total, score))
        return cls(tuple(pieces), len(scores) - 1)
