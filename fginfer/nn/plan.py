"""An order of elimination for a structure: which tables are added up to eliminate each variable, and their axes."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from fginfer.nn.structure import Structure

MOST_STATES = 1 << 20  # states of one table on the way, for one item of a batch (chosen)


@dataclass(frozen=True)
class Member:
    """A table that takes part in a step: unaries are numbered first, then factors, then messages of earlier steps."""

    number: int
    order: tuple[int, ...]  # its axes in the order in which the step has them
    shape: tuple[int, ...]  # with an axis of length 1 for each variable it does not have
    sums: tuple[int, ...]  # axes of the step that it does not have


@dataclass(frozen=True)
class Step:
    """Eliminates `variable`, which is the last of `scope`."""

    variable: int
    scope: tuple[int, ...]
    shape: tuple[int, ...]
    members: tuple[Member, ...]


@dataclass(frozen=True)
class Plan:
    """The steps in order; `states` are those of all their tables, `widest` those of the largest."""

    steps: tuple[Step, ...]
    states: int
    widest: int


def make_plan(structure: Structure, most: int = MOST_STATES) -> Plan | None:
    """Smallest table first; None where one would have more than `most` states."""
    cards = structure.cards.tolist()
    n = len(cards)
    scopes: dict[int, tuple[int, ...]] = {v: (v,) for v in range(n)}
    scopes |= {n + f: scope for f, scope in enumerate(structure.scopes)}
    of: list[set[int]] = [{v} for v in range(n)]
    for f, scope in enumerate(structure.scopes):
        for v in scope:
            of[v].add(n + f)

    def around(v: int) -> set[int]:
        return {u for k in of[v] for u in scopes[k]}

    def size(v: int) -> int:
        product = 1
        for u in around(v):
            product *= cards[u]
        return product

    sizes = [size(v) for v in range(n)]
    queue = [(sizes[v], v) for v in range(n)]
    heapify(queue)
    steps: list[Step] = []
    states = widest = 0
    following = n + len(structure.scopes)
    while queue:
        known, v = heappop(queue)
        if known != sizes[v]:
            continue  # it has changed since: another entry says how
        if known > most:
            return None
        scope = (*sorted(around(v) - {v}), v)
        steps.append(_step(v, scope, cards, [(k, scopes.pop(k)) for k in sorted(of[v])]))
        states, widest = states + known, max(widest, known)
        gone, of[v], sizes[v] = of[v], set(), -1
        scopes[following] = scope[:-1]
        for u in scope[:-1]:
            of[u] = (of[u] - gone) | {following}
        for u in scope[:-1]:
            sizes[u] = size(u)
            heappush(queue, (sizes[u], u))
        following += 1
    return Plan(tuple(steps), states, widest)


def _step(v: int, scope: tuple[int, ...], cards: list[int], members: list[tuple[int, tuple[int, ...]]]) -> Step:
    at = {u: k for k, u in enumerate(scope)}
    made = []
    for number, own in members:
        order = tuple(sorted(range(len(own)), key=lambda q: at[own[q]]))
        shape = tuple(cards[u] if u in own else 1 for u in scope)
        made.append(Member(number, order, shape, tuple(at[u] for u in scope if u not in own)))
    return Step(v, scope, tuple(cards[u] for u in scope), tuple(made))
