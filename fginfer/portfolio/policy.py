"""The policy of method="auto", from first to last. Steps 1 and 2 are in before_presolve.py, 3 in after_presolve.py,
rounds in run.py; who works on a part of a model, and how much, is in team.py and shares.py.

1. Tiny models: some iterations of branch and bound, before anything else is set up. Most end here.
   Others: a labeling by coordinate ascent, within milliseconds. Where hard constraints stand against it, a search
   for a feasible one that learns from conflicts; what it does not find at once it goes on looking for in step 6.
2. A few sweeps of TRW-S, more of them where the gap is small: tight relaxations end here. Large models begin with them
   instead of ascent, and go on from there unless presolve removes much. Penalties far above all other costs are taken
   for constraints that the same search may meet. Then short runs of branch and bound, from the messages of the sweeps,
   and, on small models, of edac on the model as it is, edac first where there are few labelings; other easy models end
   here, and what is likely to end soon is gone on with. Where factors have more than two variables ADMM gets a turn of
   the sweeps' work, from their messages: if its bound is better, it goes on instead of them, after the proofs.
3. Presolve: exact reductions with a way back. What is left falls into connected parts. Where it changes next to nothing
   the proofs of step 2 go on instead. Of a model of a million entries or more it is asked after the first sweeps of
   step 2, and if it leaves much less, that is gone on with at once.
4. Every part gets a portfolio of members: a *proof* (branch and bound, whose root is TRW-S) and a *search* for better
   labelings. Large parts get TRW-S alone instead of the proof. Parts with very large tables get gdmm, since one pass
   over them would cost more than its whole run.
5. A small part that is cheap to eliminate gets nothing but elimination. A part in which labels exclude each other in
   cliques gets a proof that sees them, one of binary variables bounds from its frustrated cycles. One that is not
   solved after a few rounds gets edac as another proof (one with few labelings at once), Russian dolls, which keep
   little work unless their bound is ahead, and elimination as another member where its treewidth allows it. A part
   whose proof does not get on leaves it little work, and gets another relaxation: slabs where the gap is large and the
   part sparse enough, else gdmm. A proof that is likely to end soon, by how fast it is done with branches, has most of
   the work. On dense graphs of binary variables, where bounds may say nothing, 2 is cut short, 3 is left out, and
   nearly all work is the search's.
6. Members work in rounds. A round gives every member of every part the same amount of work, counted in table entries;
   then the best labeling and the best bound of a part are handed to its members. Rounds grow from a fraction of a
   millisecond to some tens of them. With several threads the members of a round run at the same time: what they do does
   not depend on it.

Nothing is decided by the clock, which only says when to stop.
"""

from __future__ import annotations

from collections.abc import Iterator

from fginfer.engine import Settings
from fginfer.portfolio.after_presolve import reduce_and_divide
from fginfer.portfolio.before_presolve import BeforePresolve
from fginfer.portfolio.given import Given
from fginfer.portfolio.member import Member
from fginfer.portfolio.run import Options, Run
from fginfer.portfolio.workers import Workers


class Policy(Run):
    """A run, and its stages in their order. `step` goes on to the next pause."""

    def __init__(self, given: Given, settings: Settings, options: Options, workers: Workers) -> None:
        super().__init__(given, settings, options, workers)
        self._steps = self._stages()

    def step(self) -> None:
        """Works until it may pause; a pause changes nothing but the time."""
        end = object()
        if next(self._steps, end) is end and self.status == "running":
            self.status = "converged"  # there is nothing more to try

    def cancel(self) -> None:
        """What is under way on other threads is not needed any more."""
        self.reduction.cancel()

    @property
    def memory(self) -> int:
        """Bytes that the members at work take."""
        parts = [] if self.division is None else self.division.parts
        members = [m for part in parts for m in part.members if isinstance(m, Member)]
        return sum(int(m.engine.info.memory) for m in (members if self.sweeps is None else [self.sweeps, *members]))

    def _stages(self) -> Iterator[None]:
        before = BeforePresolve(self)
        for stage in before.stages():
            yield from stage()
            if before.ends(stage):
                self.settle()
            if self.status != "running":
                return
        yield from reduce_and_divide(self)
        self.settle()
        while self.status == "running":
            yield from self.round()
            if self.status != "running":
                return
            self.iterations += 1
            limit = self.settings.max_iterations
            if limit is not None and self.iterations >= limit:
                self.gather(self.known, fully=True)
                self.status = "iteration_limit"
            yield
