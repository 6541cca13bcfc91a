"""Runs methods and peers on files, one at a time, and collects what they found."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from math import inf
from pathlib import Path
from typing import Any

from fginfer.cluster import cluster_map
from fginfer.compare.machine import machine_text
from fginfer.compare.peers import PEERS
from fginfer.errors import SettingsError
from fginfer.methods import available_methods, did_you_mean
from fginfer.printable import printable
from fginfer.result import relative_gap

HIT = 1e-6  # a score this close to the best (relative) counts as the best


@dataclass(frozen=True)
class Run:
    """One method on one file, once. Scores are of the original model, recomputed from its tables."""

    file: str
    method: str
    repeat: int
    status: str  # a status of Result; or too_large, failed
    score: float | None = None
    bound: float | None = None
    seconds: float | None = None
    iterations: int | None = None
    peak_mb: float | None = None  # peak of the whole process, file reading included
    message: str = ""
    trace: tuple[tuple[float, float | None, float | None], ...] = ()
    unit: float = 0.0  # the unit of the model: see Result
    note: str = ""  # what a reader of the row must know, as of a labeling that is a rounded linear program

    @property
    def ended(self) -> str:
        """How it ended, for people."""
        text = self.message or self.status.replace("_", " ")
        return f"{text} ({self.note})" if self.note else text

    @property
    def gap(self) -> float | None:
        return relative_gap(self.score, self.bound, self.unit)

    def seconds_to(self, target: float) -> float:
        """When a score of `target` (to HIT) was reached; inf if never."""
        enough = target - HIT * max(self.unit, abs(target))
        if self.score is None or self.score < enough:
            return inf
        reached = (t for t, score, _ in self.trace if score is not None and score >= enough)
        return next(reached, self.seconds if self.seconds is not None else inf)


@dataclass(frozen=True)
class Comparison:
    """All runs, what could not be run and why, and the settings they shared."""

    runs: tuple[Run, ...]
    missing: dict[str, str]
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def files(self) -> list[str]:
        return list(dict.fromkeys(run.file for run in self.runs))

    @property
    def methods(self) -> list[str]:
        return list(dict.fromkeys(run.method for run in self.runs))

    def of(self, file: str, method: str) -> list[Run]:
        """The runs of a method on a file, one for each repeat."""
        return [run for run in self.runs if run.file == file and run.method == method]

    def best_score(self, file: str) -> float | None:
        """The highest score of all methods on a file; None if nobody has a labeling."""
        return max((r.score for r in self.runs if r.file == file and r.score is not None), default=None)

    def worst(self, file: str, method: str) -> Run:
        """The repeat with the lowest score, then the latest: what a user can count on."""
        runs = self.of(file, method)
        best = self.best_score(file)
        target = -inf if best is None else best
        return min(runs, key=lambda r: (-inf if r.score is None else r.score, -r.seconds_to(target)))

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C came before all had run."""
        return any(run.status == "interrupted" for run in self.runs)

    def as_json(self) -> dict[str, Any]:
        """What the report is made of, as JSON can hold it."""
        return {
            "settings": self.settings,
            "missing": self.missing,
            "runs": [asdict(r) | {"gap": r.gap} for r in self.runs],
        }


def expand_methods(text: str) -> tuple[list[str], dict[str, str]]:
    """Names from a comma-separated list, and the peers that are missing with the reason. Unknown names: an error.

    >>> expand_methods("auto, trws, auto")
    (['auto', 'trws'], {})
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    known = (*available_methods(), *PEERS)
    for name in names:
        if name not in known:
            several = all(part in known for part in name.split()) and len(name.split()) > 1
            meant = "; put commas between them" if several else did_you_mean(name, known)
            raise SettingsError(f"there is no method or peer {name!r}; there are {', '.join(known)}{meant}")
    if not names:
        raise SettingsError("--methods names no method")
    missing = {name: reason for name in names if name in PEERS and (reason := PEERS[name].missing()) is not None}
    return [name for name in dict.fromkeys(names) if name not in missing], missing


def evidence_of(path: Path) -> Path | None:
    """model.uai.gz comes with model.uai.evid, where there is such a file."""
    name = path.name
    for ending in (".gz", ".xz", ".bz2"):
        name = name.removesuffix(ending)
    beside = path.with_name(name + ".evid")
    return beside if beside.exists() else None


def _run(job: dict[str, Any], file: str, repeat: int) -> Run:
    limit = 3 * job["seconds"] + 120
    note = PEERS[job["method"]].note if job["method"] in PEERS else ""
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "fginfer.compare.worker"],
            input=json.dumps(job),
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=limit,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Run(file, job["method"], repeat, "failed", message=f"no answer after {limit:.0f} s", note=note)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        return Run(file, job["method"], repeat, "failed", message=printable(lines[-1]), note=note)
    answer = json.loads(done.stdout[done.stdout.rindex('{"labels"') :])  # a peer may print before it
    return Run(
        file,
        job["method"],
        repeat,
        answer["status"],
        answer["score"],
        answer["bound"],
        answer["seconds"],
        answer["iterations"],
        answer["peak_mb"],
        trace=tuple((t, s, b) for t, s, b in answer["trace"]),
        unit=answer["unit"],
        note=note,
    )


Job = tuple[dict[str, Any], str, int]  # what the worker is told; the file as named; the number of the repeat


def _answers(jobs: list[Job], scheduler: Any, security: Any) -> Iterator[tuple[int, Run]]:
    if scheduler is None:
        yield from ((k, _run(*job)) for k, job in enumerate(jobs))
    else:
        yield from cluster_map(_run_job, jobs, scheduler, security)


def _run_job(job: Job) -> Run:
    return _run(*job)


def compare(
    files: Iterable[str | Path],
    methods: Sequence[str],
    *,
    time_limit: float = 10.0,
    repeat: int = 1,
    seed: int = 0,
    threads: int = 1,
    gap: float = 1e-6,
    missing: dict[str, str] | None = None,
    evidence: bool = True,
    report: Callable[[Run], None] = lambda run: None,
    scheduler: Any = None,
    security: Any = None,
    max_memory: float | None = None,
) -> Comparison:
    """Runs every method on every file, one at a time; repeats differ by the seed. Uses evidence files beside models.

    With a `scheduler` (the address of a Dask scheduler, or a Client) the runs are spread over a cluster whose workers
    see the same files; start one worker a core, so that runs do not disturb each other. `security` (a
    distributed.Security) is for an address that begins with tls://. `max_memory`: see `read`. Ctrl-C raises
    KeyboardInterrupt; `report` was called with every run that had ended.

    >>> from fginfer import FactorGraph, write
    >>> write(FactorGraph([2, 2]), "model.uai")
    >>> [run.score for run in compare(["model.uai"], ["trws", "icm"], time_limit=1.0).runs]
    [0.0, 0.0]
    """
    data = compare_until_stopped(
        files, methods, time_limit, repeat, seed, threads, gap, missing, evidence, report, scheduler, security,
        max_memory,
    )  # fmt: skip
    if data.interrupted:
        raise KeyboardInterrupt
    return data


def compare_until_stopped(
    files: Iterable[str | Path],
    methods: Sequence[str],
    time_limit: float,
    repeat: int,
    seed: int,
    threads: int,
    gap: float,
    missing: dict[str, str] | None,
    evidence: bool,
    report: Callable[[Run], None],
    scheduler: Any = None,
    security: Any = None,
    max_memory: float | None = None,
) -> Comparison:
    """As `compare`; after Ctrl-C, what has not run has the status "interrupted"."""
    if scheduler is None and security is not None:
        raise SettingsError("security is for a cluster: give the address of its scheduler")
    jobs: list[Job] = []
    for file in files:
        path = Path(file)
        found = evidence_of(path) if evidence else None
        for method in methods:
            for k in range(repeat):
                job = {
                    "path": str(path),
                    "evidence": None if found is None else str(found),
                    "method": method,
                    "seconds": time_limit,
                    "seed": seed + k,
                    "threads": threads,
                    "gap": gap,
                    "max_memory": max_memory,
                }
                jobs.append((job, str(file), k))
    runs = [Run(file, job["method"], k, "interrupted") for job, file, k in jobs]
    with suppress(KeyboardInterrupt):
        for k, run in _answers(jobs, scheduler, security):
            runs[k] = run
            report(run)
    settings = {
        "time_limit": time_limit,
        "repeat": repeat,
        "seed": seed,
        "threads": threads,
        "gap": gap,
        "machine": machine_text() if scheduler is None else "a cluster of Dask workers",
        "versions": {name: PEERS[name].version() for name in methods if name in PEERS},
    }
    return Comparison(tuple(runs), dict(missing or {}), settings)
