"""Rules: every number that method="auto" decides by, in one table.

A row has a name, a value, its unit and a sentence that says what it decides. Most values are round ones, chosen and not
measured. A run carries its own rules: `solve(graph, rules={"tiny_states": 0})` changes a row of it, for tests and
measurements.

Units: *entries* of tables; *work*, entries that are read, or what takes as long; a *share*, work for each unit of work
that a round gives; a *gap*, relative to the size of the score; a *part* of something, from 0 to 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from math import inf
from typing import Any, NamedTuple, TypeVar, cast

from fginfer.errors import SettingsError
from fginfer.options import check_number, unknown_option

T = TypeVar("T", int, float)


def _rule(value: T, unit: str, sentence: str, low: float = 0.0, high: float = inf) -> T:
    told = {"unit": unit, "sentence": sentence, "low": low, "high": high}
    made: T = field(default=value, metadata=told)
    return made


@dataclass(frozen=True)
class Rules:
    """The table. Members, teams and stages read it; none of them has numbers of its own."""

    # fmt: off
    # tiny models, which most end with
    tiny_states: float = _rule(20_000, "entries",
        "A model of no more entries and variables begins with branch and bound: to find out more would take longer.")
    tiny_iterations: int = _rule(80, "iterations",
        "The first run of branch and bound on a tiny model ends after so many.")
    tiny_work: float = _rule(1e6, "work",
        "The same run ends after so much work.")
    at_once_states: float = _rule(1e5, "entries",
        "Below this a pass takes a tenth of a millisecond, so jobs are done at once and not on another thread.")

    # first labelings and sweeps
    clauses_work: float = _rule(3e7, "work",
        "A first labeling that meets all hard constraints is looked for with so many literals, half a second.")
    clauses_first: float = _rule(5e6, "work",
        "The same where labelings are few and edac is likely to say as soon whether there is one.")
    learning_first: float = _rule(3e7, "work",
        "Constraints as clauses and linear constraints are searched with so much before other members join.")
    learning_entries: float = _rule(2e4, "entries",
        "Tables of no more beside constraints are said as clauses before other members look for a first labeling.")
    learning_share: float = _rule(0.5, "part",
        "After that the same search gets so much of the work of all others.")
    learning_piece: float = _rule(1e6, "work",
        "Between two looks at the clock it works so much, some milliseconds.", low=1)
    penalty_work: float = _rule(1e7, "work",
        "A labeling that pays no large penalty is looked for with so many literals.")
    sweeps_pass: float = _rule(3e6, "entries",
        "A model whose pass reads no more is swept for as long as its gap is small.")
    sweeps_a_look: int = _rule(16, "sweeps",
        "So many sweeps are done between two looks at the gap.", low=1)
    most_sweeps: int = _rule(256, "sweeps",
        "The sweeps before presolve end after so many.")
    presolve_after: int = _rule(16, "sweeps",
        "Presolve that has begun beside the sweeps is asked after so many: they take about as long.")
    sweeps_gap: float = _rule(0.05, "gap",
        "Sweeps go on, and proofs before presolve get more work, while the gap is no larger.")
    sweeps_gain: float = _rule(0.01, "part of the gap",
        "Sweeps go on while a look's sweeps lower the bound by so much.", low=-inf)
    far_gap: float = _rule(0.1, "gap",
        "Sweeps go on at this larger gap, too, if it closes quickly.")
    falls_to: float = _rule(0.8, "part of the gap",
        "A gap closes quickly if a look's sweeps leave no more of it.")
    rival_sweeps: int = _rule(32, "sweeps",
        "ADMM begins from the messages of so many, and has to be ahead of the next ones after as much work.")
    rival_turns: int = _rule(4, "turns",
        "ADMM may go on for so many turns without closing the gap.", low=1)
    rival_leaves: float = _rule(0.7, "part of the gap",
        "After that many turns no more may be left for ADMM to go on.")
    first_sweeps: int = _rule(8, "sweeps",
        "A large model begins with so many, by which TRW-S has found what search would take much longer for.", low=1)
    last_sweeps: int = _rule(64, "sweeps",
        "The first sweeps of a large model end after so many.")
    loose: float = _rule(0.1, "gap",
        "A larger gap after the first sweeps means that ascent and search have better labelings.")
    crowded_sweeps: int = _rule(2, "sweeps",
        "Crowded binary models are judged after so many.")
    hopeless: float = _rule(0.5, "gap",
        "At a larger gap the relaxation of a crowded binary model says nothing.")
    worth_threads: float = _rule(2e5, "entries",
        "Sweeps over fewer take less time than starting threads for them.")

    # solving again
    again_sweeps: float = _rule(6.0, "passes",
        "A keeper that has not closed the gap after so much work leaves a changed model to a new start.")
    again_factor: float = _rule(16.0, "entries",
        "A factor costs a keeper so much beyond the entries it reads.")
    again_slice: float = _rule(1e6, "work",
        "A keeper looks at the clock after so much.", low=1.0)

    again_wide: float = _rule(0.0625, "part",
        "Where so many variables have new scores, whole sweeps take less than a keeper.", high=1.0)
    again_iterations: int = _rule(16, "sweeps",
        "Sweeps that have not closed the gap after so many leave a changed model to a new start.", low=1)

    # proofs before presolve
    proof_gap: float = _rule(1e-6, "gap",
        "Who allows a larger gap does not mind a missing proof.")
    quick_work: float = _rule(1.2e7, "work",
        "Proofs before presolve get so much work at least.")
    quick_passes: float = _rule(6.0, "passes",
        "Proofs before presolve get the work of so many passes at least.")
    quick_first: float = _rule(0.1, "part of that work",
        "The first turn of the proofs gives so much, so that neither waits long for the other's end.")
    quick_second: float = _rule(0.3, "part of that work",
        "The second turn gives so much.")
    quick_third: float = _rule(0.6, "part of that work",
        "The third turn gives so much.")
    quick_more: float = _rule(5e7, "work",
        "Further turns give so much in all while a proof makes progress.")
    trial_states: float = _rule(1e5, "entries",
        "edac takes part before presolve in models of no more, and only their labelings are counted.")
    trial_share: float = _rule(0.5, "share",
        "edac has this share beside branch and bound before presolve.")
    trial_falls: float = _rule(0.8, "part of the gap",
        "A turn that leaves no more of a small gap is worth another one.")
    few_trial_share: float = _rule(4.0, "share",
        "edac has this share in the first turn where labelings are few.")
    few_again_share: float = _rule(2.0, "share",
        "edac has this share in the later turns where labelings are few.")

    # presolve
    worth_beside: float = _rule(1e6, "entries",
        "Presolve begins beside the sweeps of a model whose pass reads more.")
    reduced: float = _rule(0.8, "part of a pass",
        "Where presolve leaves more of a model that was swept, the sweeps go on instead.")
    kept: float = _rule(0.95, "part of the entries",
        "Where presolve leaves as much, the proofs under way go on instead.")
    kept_near: float = _rule(0.8, "part of the entries",
        "Where sweeps have left a small gap and presolve as much as this, what they know is worth more.")

    # rounds
    first_round: float = _rule(5e5, "work",
        "The first round gives a share of 1 so much.")
    round_growth: float = _rule(2.0, "times",
        "Each round gives so many times the work of the one before.", low=1.0)
    longest_round: float = _rule(2e7, "work",
        "No round gives more, which takes some tens of milliseconds.")

    # who joins a part, and when
    few_factors: int = _rule(2000, "factors",
        "Parts of no more are looked at for elimination before anything else.", low=-1)
    at_once: float = _rule(3e7, "work",
        "Such a part is left to elimination alone if that takes no more.")
    elimination_round: int = _rule(4, "round",
        "Elimination is considered for the other parts in this round: the easy ones have ended by then.")
    worth_eliminating: float = _rule(3e10, "work",
        "Elimination that would take more is not begun.")
    elimination_slice: float = _rule(0.005, "seconds",
        "Elimination looks at the clock after so long; its progress is counted in work.", low=1e-4)
    cycles_round: int = _rule(2, "round",
        "Bounds from frustrated cycles join in this round.")
    assignment_round: int = _rule(2, "round",
        "Bounds of quadratic assignment join in this round.")
    sdp_round: int = _rule(4, "round",
        "Semidefinite bounds of binary parts join in this round: cycles have ended by then where they suffice.")
    crowded_sdp: int = _rule(2, "round",
        "They join in this round where variables meet so many others that cycles are of no use.")
    triples_round: int = _rule(5, "round",
        "Bounds from triples of variables join in this round, where gaps are still wide.")
    clique_round: int = _rule(2, "round",
        "Cliques of labels that exclude each other are looked for in this round.")
    tree_round: int = _rule(4, "round",
        "edac and Russian dolls join in this round.")
    soon_round: int = _rule(3, "round",
        "edac joins in this round if there is no labeling yet.")
    tree_states: float = _rule(5e6, "entries",
        "edac, Russian dolls and cliques take parts of no more entries.")
    narrow_after: int = _rule(2, "sweeps",
        "The search among few labels joins after so many, when a labeling says which labels promise most.")
    narrow_entries: float = _rule(4e6, "entries",
        "The tables of a narrow model have no more, which are made in a tenth of a second.")
    least_labels: int = _rule(16, "labels",
        "With fewer a variable a search would find little.")
    left_out: float = _rule(4.0, "times",
        "A narrow model pays if variables have so many times the labels that it keeps.")
    late_search: int = _rule(50, "iterations",
        "A search joins a huge model after so many of its relaxation.")
    dense_search: int = _rule(4, "iterations",
        "The same on dense graphs of binary variables, where the relaxation's labelings stay poor.")

    # shares: searches
    near_proof: float = _rule(0.01, "gap",
        "At a smaller gap the proof is likely to find what is missing.")
    near_share: float = _rule(0.25, "share",
        "A search has this share where others are as likely to find what is missing.")
    narrow_times: float = _rule(10.0, "times",
        "A search among few labels has so many times its share, since its entries are in the cache.")
    stale_work: float = _rule(2e8, "work",
        "A search that has found nothing for less is not stale.")
    stale_times: float = _rule(4.0, "times",
        "A search is stale, and leaves its work to a tree, after so many times what its last finding took.")
    hopeless_share: float = _rule(0.02, "share",
        "All but the search have this share where bounds say nothing.")

    # shares: proofs
    moved: float = _rule(0.02, "part of the gap",
        "A bound that falls by so much makes progress.")
    patience: float = _rule(5e8, "work",
        "A proof that has not moved its bound for so long is left with a small share.")
    little_patience: float = _rule(1e8, "work",
        "The same where the gap is large, and the idle work after which a proof gets a helper.")
    near_patience: float = _rule(3e7, "work",
        "The idle work after which a proof that began from the messages of sweeps gets a helper.")
    far_proof: float = _rule(0.05, "gap",
        "At a larger gap a proof has a long way to go.")
    small_share: float = _rule(0.1, "share",
        "A proof or relaxation that makes no progress has this share.")
    overtaken: float = _rule(0.5, "part of the gap",
        "A proof has little to add once a helper has closed so much of the gap that it leaves.", low=-inf)
    tree_trial: float = _rule(2e8, "work",
        "edac and the proof by cliques have to be ahead after so much.")
    tree_lead: float = _rule(0.05, "part of the gap",
        "edac is ahead if its bound is better by so much.")
    tree_trial_share: float = _rule(0.25, "share",
        "edac has this share at first.")
    tree_level: float = _rule(1.0, "share",
        "edac has this share if nobody is ahead: its bound may fall only near the end.")
    tree_ahead_share: float = _rule(2.0, "share",
        "edac has this share if it is ahead.")
    tree_behind_share: float = _rule(0.1, "share",
        "edac has this share if it is behind.")
    few_behind_share: float = _rule(0.5, "share",
        "The same where labelings are few.")
    few_cliques: float = _rule(3e7, "work",
        "The proof by cliques has to be ahead after so much where labelings are few.")
    idle_cliques_share: float = _rule(0.25, "share",
        "The proof by cliques has this share while it does not move its bound.")
    dolls_trial: float = _rule(1e8, "work",
        "Russian dolls have to be ahead of all others after so much.")
    dolls_share: float = _rule(0.25, "share",
        "Russian dolls have this share until then.")
    dolls_ahead_share: float = _rule(2.0, "share",
        "Russian dolls have this share while they are ahead.")
    dolls_behind_share: float = _rule(0.02, "share",
        "Russian dolls have this share once they have had their trial and are behind.")

    sdp_trial: float = _rule(3e8, "work",
        "Semidefinite bounds have to be ahead of all others after so much.")
    sdp_share: float = _rule(1.0, "share",
        "Semidefinite bounds have this share until then.")

    triples_trial: float = _rule(1e8, "work",
        "Bounds from triples have to be ahead of all others after so much.")
    triples_share: float = _rule(1.0, "share",
        "Bounds from triples have this share until then, and while they are ahead and fall.")

    assignment_trial: float = _rule(3e8, "work",
        "Bounds of quadratic assignment have to be ahead of all others after so much.")
    assignment_share: float = _rule(1.0, "share",
        "Bounds of quadratic assignment have this share until then.")

    # shares: who is likely to end soon
    least_explored: float = _rule(0.05, "part of a tree",
        "Before so much is explored, how long the rest takes is a guess.")
    next_look: float = _rule(1.5, "times",
        "How far a tree is explored is noted each time its work has grown by so many times.", low=1.0)
    looks: int = _rule(2, "looks",
        "The slowest of so many tells how fast a tree progresses.", low=1)
    soon_work: float = _rule(1e9, "work",
        "A tree that is likely to need no more work ends soon.")
    soon_times: float = _rule(4.0, "times",
        "A tree that is likely to need no more than so many times its work so far ends soon.")
    first_share: float = _rule(2.0, "share",
        "A tree that ends soon has this share, as have cycles and helpers that lead.")
    sooner: float = _rule(2.0, "times",
        "A tree is late if it is likely to take so many times as long as the first to end.")
    later_share: float = _rule(0.25, "share",
        "A late tree has no more than this share.")

    # shares: relaxations
    slabs_share: float = _rule(0.2, "share",
        "Slabs have this share: their first iterations bring most.")
    helpers_share: float = _rule(0.5, "share",
        "gdmm beside a proof has this share until its bound is better.")
    idle_passes: float = _rule(3.0, "passes",
        "gdmm is idle, and left with a small share, only after so many passes without a better bound.")
    idle_iterations: float = _rule(20.0, "iterations",
        "gdmm is idle only after so many iterations, too: one brings little, tens bring much.")
    idle_sweeps: float = _rule(20.0, "sweeps",
        "TRW-S is idle only after so many: in single precision it has a new bound every sixteen.")

    # sizes of models
    few_bits: float = _rule(300.0, "bits",
        "Labelings are few if one is said in no more: a tree may see all of them.")
    fewer_bits: float = _rule(100.0, "bits",
        "Labelings are very few if one is said in no more.")
    fewer_times: float = _rule(2.0, "times",
        "edac's shares are so many times as large where labelings are very few.")
    long_pass: float = _rule(1.5e8, "entries",
        "A model whose pass reads more is huge.")
    large_table: float = _rule(2.5e4, "entries",
        "Where tables of a huge model have more on average, sweeps are too slow and gdmm reads few rows of each.")
    many_tables: int = _rule(50_000, "factors",
        "A huge model of more factors is taken for an image, whose tables are shared, and is swept all the same.")
    few_labels: int = _rule(8, "labels",
        "Messages of no more labels take no time.")
    dense_degree: float = _rule(50.0, "factors a variable",
        "With more TRW-S splits messages so often that its bound stays behind, and gdmm works instead.")
    pass_too_long: float = _rule(2e7, "entries",
        "A model of more is too large for branch and bound, and is left to TRW-S.")
    many_factors: int = _rule(1_000_000, "factors",
        "A model of more is huge: one relaxation with all memory, and no presolve.")
    many_binary: int = _rule(100_000, "factors",
        "Only a binary model of more factors is taken for dense.")
    binary_degree: float = _rule(20.0, "factors a variable",
        "Only a binary model of more factors a variable is taken for dense.")
    sdp_variables: int = _rule(600, "variables",
        "Binary parts of more take too long for semidefinite bounds, whose passes are cubic.")
    least_places: int = _rule(6, "variables",
        "Smaller assignments end before anybody joins.")
    most_places: int = _rule(40, "variables and labels",
        "Quadratic assignment takes no larger parts: its memory grows with the fourth power.", high=40)
    sdp_degree: float = _rule(2.0, "factors a variable",
        "With fewer, cycles are as tight as semidefinite bounds, and quicker.")
    triples_degree: float = _rule(3.0, "factors a variable",
        "With fewer there are few triples of variables that all meet.")
    triples_factors: int = _rule(20_000, "factors",
        "With more a look at all triples takes too long.")
    few_attract: float = _rule(0.1, "part of the factors",
        "gdmm touches few factors of a dense binary model if no more of them reward two ones.")
    crowded: float = _rule(8.0, "factors a variable",
        "A binary model of more is crowded: presolve removes nothing, and a gap that is hopeless stays so.")
    many_cycles: int = _rule(40_000, "factors",
        "Cycles of a binary model of more take too long to begin.")

    # what takes as long as reading an entry
    iteration_work: float = _rule(200.0, "work",
        "An iteration costs so much beyond the entries it reads, so that tiny models count as work, too.")
    oracle_work: float = _rule(4000.0, "work",
        "A factor costs gdmm no more in an iteration, 9 us.")
    small_oracle: float = _rule(500.0, "work",
        "A factor costs gdmm at least so much in an iteration, 2 us.")
    oracle_state: float = _rule(8.0, "work",
        "Each entry of a factor's table adds so much to what it costs gdmm.")
    factor_work: float = _rule(250.0, "work",
        "A factor of nine binary variables costs ADMM so much in an iteration.")
    rounding_times: float = _rule(1e3, "times",
        "A tree that has ended this near to a proof's tolerance is complete: rounding stands between.")

    # fmt: on
    @classmethod
    def changed(cls, given: object) -> Rules:
        """The table with some rows changed; a SettingsError names what does not fit."""
        if isinstance(given, Rules):
            return given
        if not isinstance(given, Mapping):
            raise SettingsError(f"rules must be a dict of names and numbers, not {given!r}")
        known = {row.name: row for row in rows()}
        numbers: dict[str, Any] = {}
        for name, value in given.items():
            if name not in known:
                raise unknown_option(str(name), "auto (as a rule)", known)
            numbers[name] = _checked(known[name], value)
        return cls(**numbers)


class Row(NamedTuple):
    """A row of the table."""

    name: str
    value: float
    unit: str
    sentence: str
    low: float
    high: float


def rows() -> Iterator[Row]:
    """The table, row by row."""
    for f in fields(Rules):
        yield Row(f.name, cast(float, f.default), **f.metadata)


def _checked(row: Row, value: object) -> float:
    check_number(f"the rule {row.name}", value)
    number = float(cast(float, value))
    if not row.low <= number <= row.high:
        raise SettingsError(f"the rule {row.name} must be from {row.low:g} to {row.high:g}, not {value!r}")
    return round(number) if isinstance(row.value, int) and number < inf else number
