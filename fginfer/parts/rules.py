"""Rules: every number that a solve in parts decides by. All are chosen; docs/how/scale.md says what they cost."""

from __future__ import annotations

from typing import NamedTuple


class PartRules(NamedTuple):
    """The table."""

    quantum_bits: int = 40  # bits: multipliers are multiples of 2^-40 of the largest score, so that sums are exact
    most_multiplier: int = 1 << 52  # quanta: a multiplier that would get larger stays as it is
    forbidden_drop: float = 1.0  # ranges: so far below its finite scores does a part's forbidden label count in a mean
    least_draw: float = 1e-3  # ratio: what is added to the draws from 0 to 1 that share out beliefs
    sweeps: int = 1  # iterations of a part in a round
    anew_sweeps: int = 8  # iterations of a part in a round, of a method that begins each round anew
    proof_iterations: int = 8  # iterations of auto on a part
    proof_pace: float = 1.0  # part of the gap: what the first step along a subgradient after proofs is to gain
    proof_less: float = 0.5  # ratio: the next ones, where the bound gained too little
    proof_patience: int = 3  # such steps in a row before they become smaller
    proof_least: float = 0.02  # part of the gap: no smaller ones are tried
    join_first: int = 1  # round: labels are joined for the first time after it
    join_growth: float = 1.25  # ratio: rounds between two joins, so that joining is a fixed part of the work
    strip_width: int = 2  # factors: variables so near to a separator are labelled again when parts are joined
    strip_wider: int = 2  # ratio: the next strip, where the labels that came of this one are forbidden
    strip_entries: int = 1 << 21  # labels: of a wider strip than this the outer variables are left out
    strip_sweeps: int = 40  # iterations of trws on the strip
    strip_search: int = 60  # iterations of search after them
    stall_rounds: int = 20  # rounds: a window in which progress is judged
    stall_gain: float = 1e-11  # part of the bound, a round: below it the rounds have converged
    kick_gain: float = 1e-2  # part of the gap, in a window: below it multipliers take a step along a subgradient
    kick_first: float = 0.5  # part of the gap: what the first of these steps is to gain
    kick_less: float = 0.8  # ratio: the next one, where the one before has gained too little
    kick_least: float = 0.02  # part of the gap: no smaller ones are tried
    keep_every: int = 64  # rounds between two that are kept, to go back to after a fault
    keep_seconds: float = 60.0  # seconds: where so many rounds take longer than this, one is kept sooner
    keep_share: float = 20.0  # ratio: between two kept rounds passes so many times the time that keeping takes
    slice_seconds: float = 0.05  # seconds: the clock is looked at so often inside a part
    balance: float = 1.05  # ratio: no part of a split by growth is larger than the mean by more than this
    smoothing: int = 4  # passes over the separators of a split by growth
    spool_bytes: int = 1 << 20  # bytes of a part's text that are held before they are written, where a file is cut
    spool_functions: int = 1 << 16  # functions whose scopes are Python numbers at a time, where a file is cut
    most_losses: int = 4  # workers of a part that may be lost before it has done a round; one more ends the solve
    stalled_seconds: float = 60.0  # a worker may count as stalled after so many seconds without an answer
    stalled_ratio: float = 20.0  # a stalled worker took so many times as long as the slowest of the others, too


RULES = PartRules()
