"""Rival: another relaxation that goes on where sweeps leave a gap, if it gets on better than they do."""

from __future__ import annotations

import logging

import numpy as np
from numpy.typing import NDArray

from fginfer.core.model import Model
from fginfer.engine import Settings
from fginfer.errors import SolverError
from fginfer.portfolio.relaxations import Alternating

log = logging.getLogger("fginfer")

# Turns, and what so many leave of the gap where it is worth more of them: ADMM's bounds do not fall in every turn, and
# its labelings come late.
TURNS, LEAVES = 4, 0.7


class Rival:
    """ADMM, by turns as long as those of the sweeps."""

    def __init__(self, member: Alternating) -> None:
        self.member = member
        self.turn = 0.0  # work
        self.leads = False  # was its bound better than that of the sweeps after the first turn?
        self._gaps: list[float] = []  # before each of the others

    def takes_another_turn(self) -> bool:
        """Has it closed a part of the gap of late?"""
        if not (self.leads and self.member.running):
            return False
        self._gaps.append(self.member.bound - self.member.score)
        return len(self._gaps) <= TURNS or self._gaps[-1] <= LEAVES * self._gaps[-1 - TURNS]


def make_rival(model: Model, settings: Settings, messages: NDArray[np.float64] | None) -> Rival | None:
    """From the messages of sweeps, for models with factors of more than two variables: on pairs sweeps are faster, and
    do not stall as far from the optimum of the relaxation."""
    if model.max_arity <= 2 or messages is None:
        return None
    try:
        member = Alternating(model, settings)
    except (SolverError, MemoryError) as error:
        log.debug("no rival: %s", error)
        return None
    member.start_from(messages)
    return Rival(member)
