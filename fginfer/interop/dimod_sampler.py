"""fginfer as a sampler of dimod: whoever has one changes a line to get proofs."""

from __future__ import annotations

from typing import Any

import dimod
import numpy as np

from fginfer.errors import SettingsError
from fginfer.interop.dimod_models import from_dimod
from fginfer.k_best import k_best
from fginfer.options import check_whole
from fginfer.solve import solve


class DimodSampler(dimod.Sampler):  # type: ignore[misc, name-defined, unused-ignore]
    """The best samples of a binary quadratic model, lowest energy first.

    `sample(bqm)` has one sample; `sampleset.info` has its status ("optimal" is a proof), its lower bound on all
    energies, and seconds. `num_reads=k` has the k best, all different. `time_limit`, `seed`, `method` and
    the other settings of `fginfer.solve` do what they do there; `num_reads` above 1 takes those of `fginfer.k_best`.
    """

    @property
    def parameters(self) -> dict[str, list[str]]:
        """What `sample` takes beside the model."""
        names = ("num_reads", "time_limit", "seed", "threads", "method", "gap", "max_iterations", "cutoff")
        return {name: [] for name in names}

    @property
    def properties(self) -> dict[str, str]:
        """What this sampler is."""
        return {"description": "fginfer: the best samples with a proof where there is one, else with a bound"}

    def sample(self, bqm: Any, *, num_reads: int = 1, **settings: Any) -> Any:
        """A SampleSet; its energies are those that the model itself computes."""
        check_whole("num_reads", num_reads)
        if num_reads < 1:
            raise SettingsError(f"num_reads must be 1 or more, not {num_reads}")
        if not isinstance(bqm, dimod.BinaryQuadraticModel):
            raise SettingsError(f"sample takes a BinaryQuadraticModel, not {type(bqm).__name__}")
        graph = from_dimod(bqm)
        if "cutoff" in settings and settings["cutoff"] is not None:
            settings["cutoff"] = 0.0 - settings["cutoff"]
        if num_reads == 1:
            results = [solve(graph, trace=False, dual=False, **settings)]
            status: str = results[0].status
        else:
            answers = k_best(graph, num_reads, **settings)
            results, status = list(answers), answers.status
        found = [r.labels for r in results if r.labels is not None]
        states = np.array(found, np.int8).reshape(len(found), graph.n_variables)
        if bqm.vartype is dimod.SPIN:
            states = 2 * states - 1
        bound = results[0].bound if results else None
        info = {
            "status": status,
            "bound": None if bound is None else 0.0 - bound,
            "seconds": sum(r.seconds for r in results),
        }
        return dimod.SampleSet.from_samples_bqm((states, list(bqm.variables)), bqm, info=info)  # type: ignore[no-untyped-call, unused-ignore]
