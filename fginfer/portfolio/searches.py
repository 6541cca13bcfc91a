"""Members that look for labelings."""

from __future__ import annotations

from fginfer.portfolio.member import Member


class Ascent(Member):
    """Coordinate ascent from many starts."""

    name = "icm"


class Clauses(Member):
    """Feasible labelings by learning from conflicts."""

    name = "clauses"


class Search(Member):
    """Better labelings."""

    name = "search"
