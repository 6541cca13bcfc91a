"""How a round's work is shared out among the members of a team: more for who gets on, little for who does not."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING

from fginfer.portfolio.cliques import CliqueProof
from fginfer.portfolio.elimination import EliminationMember
from fginfer.portfolio.member import Member
from fginfer.portfolio.narrow import NarrowSearch
from fginfer.portfolio.opening import HOPELESS
from fginfer.portfolio.relaxations import MOVED, Cycles, Greedy, Relaxation, Slabs, Sweeps
from fginfer.portfolio.searches import Search
from fginfer.portfolio.trees import Dolls, Proof, QuickTree, Tree

if TYPE_CHECKING:
    from fginfer.portfolio.team import Team

# Commits say on which instances a rule was tried. Most numbers are round ones: chosen, not measured. Half and twice of
# some of them on seven instances (two grids, side chains, detection, spot5/503, alignment, planning; 2 CPU s each):
# NEAR_SHARE, SMALL_SHARE and PATIENCE change times by little more than two runs differ (15 %). Half of LITTLE_PATIENCE:
# grid20 .65 -> .51 s; twice: .85 s, and planning is not proven in 2 s.
NEAR_PROOF, NEAR_SHARE = 0.01, 0.25  # of a round for the search: at this gap the proof is likely to find the rest
TREE_TRIAL, TREE_LEAD = 2e8, 0.05  # work by which edac has to be ahead of the other proof by this part of the gap: ...
TREE_SHARES = 0.25, 2.0, 0.1  # ... its share until then, and after that, if it is and if it is not
TREE_LEVEL = 1.0  # its share if neither is ahead: its bound may rise only near the end
FEW_BEHIND = 0.5  # its share where there are few labelings, while its bound is behind
STALE_WORK, STALE_TIMES = 2e8, 4.0  # a search that has found nothing for so long, and so many times what it took to ...
# ... find the best, leaves its time to such a tree
IDLE_CLIQUES = 0.25  # share of a proof by cliques that does not move its bound
FEW_CLIQUES = 3e7  # work by which a proof by cliques has to be ahead where there are few labelings
DOLLS_TRIAL, DOLLS_SHARE = 1e8, 0.25  # work by which Russian dolls have to be ahead of all others, and their share
DOLLS_SHARES = 2.0, 0.02  # the same after it, if they are and if they are not
PATIENCE = 5e8  # work after which a proof that has not moved the bound ...
FAR_PROOF, LITTLE_PATIENCE = 0.05, 1e8  # ... (less if the gap is this large) ...
NEAR_PATIENCE = 3e7  # of one that began with the messages of sweeps, before another relaxation goes on from these
SMALL_SHARE = 0.1  # ... by MOVED (member.py) of the gap is left with this share
OVERTAKEN = 0.5  # of the gap of a proof that a relaxation which joined it has closed: the proof has little to add
HELPERS_TRIAL = 0.5  # share of a relaxation that joined a proof, until its bound is better
NARROW_TIMES = 10.0  # an entry takes gdmm so long where tables are large, by accesses to memory; few labels fit a cache
HOPELESS_SHARE = 0.02  # of all but the search where that is first: an entry takes them up to three times as long
SOON_WORK, SOON_TIMES = 1e9, 4.0  # a tree that is likely to end after so much, or so many times what it has done, ...
FIRST_SHARE = 2.0  # ... has this share, ...
SOONER, LATER_SHARE = 2.0, 0.25  # ... and others, if they would take so many times as long, this one
FEW_PASSES = 3  # over the tables, at least, before another relaxation is left with that share, too; ...
FEW_ITERATIONS = 20  # of gdmm, the same; ...
FEW_SWEEPS = 20  # ... of TRW-S, which in single precision has a new bound only after sixteen


def share_of(member: Member, team: Team) -> float:
    """This member's, in the round to come: 1 is as much as the round is long."""
    if isinstance(member, Search | Proof | QuickTree | Dolls | Sweeps | Greedy | Cycles) and _search_is_first(team):
        return 1.0 if isinstance(member, Search) else HOPELESS_SHARE
    if isinstance(member, Proof):
        return _share_of_proof(member, team)
    if isinstance(member, CliqueProof):
        return _share_of_cliques(member, team)
    if isinstance(member, Cycles):
        return _share_of_cycles(member, team)
    if isinstance(member, QuickTree):
        return _share_of_tree(member, team)
    if isinstance(member, Dolls):
        return _share_of_dolls(member, team)
    if isinstance(member, Sweeps | Greedy):
        return _share_of_relaxation(member, team)
    if isinstance(member, Search):
        return _share_of_search(member, team)
    return member.share


def favour_who_ends_soon(team: Team) -> None:
    """Where a proof is at hand, the search has less, too."""
    if _search_is_first(team) or not let_end(team.members):
        return
    for member in team.members:
        if isinstance(member, Search):
            member.share = min(member.share, NEAR_SHARE)


def let_end(members: Sequence[Member | EliminationMember]) -> bool:
    """Is a tree likely to end soon? Then it has the work, and those that are not likely to end as soon have little.
    Bounds do not tell: that of a depth-first search stays where it is until the last branch near the root."""
    trees = [(m.work_left(), m) for m in members if isinstance(m, Tree)]
    least, first = min(trees, default=(inf, None), key=lambda of: of[0])
    if first is None or least > max(SOON_WORK, SOON_TIMES * first.work):
        return False
    for left, tree in trees:
        if left > SOONER * least:
            tree.share = min(tree.share, LATER_SHARE)
    first.share = max(first.share, FIRST_SHARE)
    return True


def share_of_new_tree(team: Team) -> float:
    """edac's when it joins: little, unless it may be over soon."""
    soon = team.labels is None or team.size.few_labelings
    return team.size.tree_times * TREE_LEVEL if soon else TREE_SHARES[0]


def gets_on(proof: Relaxation, team: Team) -> bool:
    """Has it moved its bound not long ago?"""
    return proof.idle_work(team.score) < (LITTLE_PATIENCE if is_far(proof, team) else PATIENCE)


def needs_help(proof: Relaxation, team: Team) -> bool:
    """Would another relaxation be worth a try? That takes less than to give up this one: branch and bound moves its
    bound seldom, and late."""
    patience = LITTLE_PATIENCE if is_far(proof, team) or team.messages is None else NEAR_PATIENCE
    return proof.idle_work(team.score) >= patience and not trees_decide(team)


def is_far(relaxation: Relaxation, team: Team) -> bool:
    """Is it loose, so that a proof has a long way to go?"""
    return relaxation.bound - team.score > FAR_PROOF * max(team.unit, abs(team.score))


def leading_proof(team: Team) -> Proof | CliqueProof | None:
    """The branch and bound with the best bound."""
    proofs = [m for m in team.members if isinstance(m, Proof | CliqueProof)]
    return min(proofs, key=lambda m: m.bound, default=None)


def trees_decide(team: Team) -> bool:
    """Whether there is any labeling is for edac and the clauses to find out."""
    return team.size.few_labelings and team.labels is None


def _share_of_proof(proof: Proof, team: Team) -> float:
    """All of it while the proof gets on, little once it has not moved the bound for long."""
    if trees_decide(team):
        share = NEAR_SHARE
    elif team.has(Slabs):  # it is they that move the bound now
        share = SMALL_SHARE
    else:
        share = 1.0 if gets_on(proof, team) else SMALL_SHARE
    behind = any(m.bound < proof.bound for m in team.members if isinstance(m, CliqueProof))
    if behind or _is_overtaken(proof, team):  # the same search by a worse bound, or one that ends without a tree
        return SMALL_SHARE
    return share


def _is_overtaken(proof: Proof, team: Team) -> bool:
    """Has who came to help closed so much of the gap it leaves that the relaxation may be tight? Or anything, where it
    stands still?"""
    best = min((m.bound for m in team.members if isinstance(m, Greedy | Cycles)), default=inf)
    much = OVERTAKEN if proof.idle_work(team.score) < LITTLE_PATIENCE else min(OVERTAKEN, MOVED)
    return proof.bound - best > much * (proof.bound - team.score)


def _share_of_cliques(proof: CliqueProof, team: Team) -> float:
    """Little once its bound is behind that of the others, less once it has not moved it for long."""
    trial = FEW_CLIQUES if team.size.few_labelings else TREE_TRIAL
    if proof.bound > team.bound and proof.work >= trial:
        return SMALL_SHARE
    return 1.0 if gets_on(proof, team) else IDLE_CLIQUES


def _share_of_cycles(cycles: Cycles, team: Team) -> float:
    """Most of it while they get on, or lead: then they are likely to end with a proof. Their iterations are long."""
    return FIRST_SHARE if _cycles_lead(team) or cycles.idle_work(team.score) < PATIENCE else SMALL_SHARE


def _cycles_lead(team: Team) -> bool:
    """Do they see what trees do not?"""
    others = min((m.bound for m in team.members if isinstance(m, Tree)), default=inf)
    bound = min((m.bound for m in team.members if isinstance(m, Cycles)), default=inf)
    return others - bound > OVERTAKEN * (others - team.score)


def _share_of_tree(tree: QuickTree, team: Team) -> float:
    """Many quick nodes with weak bounds: all or little, by whose bound is ahead after a while."""
    trial, ahead, behind = TREE_SHARES
    if team.size.few_labelings:
        times = team.size.tree_times
        trial, ahead, behind = times * TREE_LEVEL, times * ahead, FEW_BEHIND
    proofs = [m for m in team.members if isinstance(m, Proof)]  # their bounds are their own, others are told the best
    proof = min((m.bound for m in proofs), default=inf)
    lead = TREE_LEAD * (proof - team.score) if team.score > -inf else 0.0
    # A better bound of gdmm, which ends above the optimum, says nothing about who gets there first.
    leads = tree.bound <= min((m.bound for m in team.members if not isinstance(m, Greedy | Search)), default=inf)
    if leads and proof - tree.bound > lead:
        return ahead
    if tree.work >= TREE_TRIAL:
        return TREE_LEVEL if leads else behind
    others_get_on = any(gets_on(m, team) for m in team.members if isinstance(m, Proof | CliqueProof))
    return trial if team.labels is not None and others_get_on else TREE_LEVEL


def _share_of_dolls(dolls: Dolls, team: Team) -> float:
    """Where they suit a model, their bound is ahead of all others long before their end; elsewhere hardly ever."""
    ahead, behind = DOLLS_SHARES
    if dolls.bound <= team.bound and dolls.work > 0:
        return ahead
    return DOLLS_SHARE if dolls.work < DOLLS_TRIAL else behind


def _share_of_relaxation(relaxation: Sweeps | Greedy, team: Team) -> float:
    """Little once it is as good as solved, and loose: the search needs the time. Complete 300 x 50, 10 s: 9621 to
    9675; four loose models of 5e7 entries: as good or better but for one by 1e-4."""
    if team.labels is None:
        return 1.0
    helps = leading_proof(team)
    if _is_idle(relaxation, team) and (helps is not None or is_far(relaxation, team)):
        return SMALL_SHARE
    if helps is None:
        return 1.0
    if helps.bound < relaxation.bound:
        return HELPERS_TRIAL
    return FIRST_SHARE if isinstance(helps, Proof) and _is_overtaken(helps, team) else 1.0


def _share_of_search(search: Search, team: Team) -> float:
    """Less where others are as likely to find what is missing."""
    near = team.labels is not None and team.bound - team.score <= NEAR_PROOF * max(team.unit, abs(team.score))
    if isinstance(search, NarrowSearch):
        return (NEAR_SHARE if near else 1.0) * NARROW_TIMES
    less = near or team.size.is_huge or trees_decide(team) or _sweeps_get_on(team) or _is_stale(search, team)
    less |= _cycles_lead(team)
    return NEAR_SHARE if less else 1.0


def _is_idle(relaxation: Sweeps | Greedy, team: Team) -> bool:
    """Has it hardly moved its bound in its last passes?"""
    passes = FEW_SWEEPS if isinstance(relaxation, Sweeps) else FEW_PASSES
    patience = max(LITTLE_PATIENCE, passes * team.model.pass_work)
    if isinstance(relaxation, Greedy) and relaxation.iterations > 0:  # one of them brings little, tens of them much
        patience = max(patience, FEW_ITERATIONS * relaxation.iteration_work)
    return relaxation.idle_work(team.score) >= patience


def _sweeps_get_on(team: Team) -> bool:
    """Does TRW-S on a large part still close a gap that is not large? Then its labelings get better, too."""
    return any(not _is_idle(m, team) and not is_far(m, team) for m in team.members if isinstance(m, Sweeps))


def _is_stale(search: Search, team: Team) -> bool:
    """Has it found nothing for long, while a tree gets on that would show that there is nothing?"""
    tree_gets_on = any(isinstance(m, QuickTree) and m.share >= TREE_LEVEL for m in team.members)
    return tree_gets_on and _is_exhausted(search, team)


def _is_exhausted(search: Search, team: Team) -> bool:
    return search.work - team.improved_at > max(STALE_WORK, STALE_TIMES * team.improved_at)


def _search_is_first(team: Team) -> bool:
    """Are bounds so far off, as on dense graphs of binary variables, that they are of no use to anybody?"""
    if not team.size.is_crowded or team.labels is None:
        return False
    far = team.bound - team.score > HOPELESS * max(team.unit, abs(team.score))
    return far and not any(isinstance(m, Search) and _is_exhausted(m, team) for m in team.members)
