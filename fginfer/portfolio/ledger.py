"""Ledger: who worked how much in a run of auto, what each one found, and what presolve left."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields

from fginfer.core.presolve import PresolveStatistics
from fginfer.engine import Settings
from fginfer.portfolio.rules import Rules

# What presolve counts that says nothing about a model, or that has another name here.
_NOT_TOLD = ("infeasible", "complete", "roof_bound", "error", "variables", "factors", "labels")


@dataclass
class Account:
    """What one member has done. Members work on several threads, so each writes into an account of its own."""

    who: str
    work: float = 0.0  # table entries, and what stands for them
    seconds: float = 0.0  # inside the core
    iterations: int = 0
    nodes: int = 0  # nodes of a search tree
    sweeps: int = 0  # over all tables
    labelings: int = 0  # times that it had a better labeling than anybody before
    bounds: int = 0  # times that it had a better bound than anybody before
    _labeling: bool = False  # the same in a turn that is not over: how often it pauses must not count
    _bound: bool = False
    _before: tuple[float, int, int, int] = (0.0, 0, 0, 0)  # work, iterations, nodes and sweeps when the round began

    def begin_round(self) -> None:
        """From here on what it does counts for a round that may have to be undone."""
        self._before = self.work, self.iterations, self.nodes, self.sweeps

    def undo_round(self) -> None:
        """The round was decided by somebody before it: with one thread it would not have worked."""
        self.work, self.iterations, self.nodes, self.sweeps = self._before

    def note(self, labeling: bool, bound: bool, over: bool = True) -> None:
        """Whether this turn, which may not be `over`, has brought a better labeling or bound than anybody's."""
        self._labeling |= labeling
        self._bound |= bound
        if over:
            self.labelings += self._labeling
            self.bounds += self._bound
            self._labeling = self._bound = False


_COUNTED = tuple(f.name for f in fields(Account) if f.name != "who" and not f.name.startswith("_"))


class Ledger:
    """The accounts of a run. It keeps no member alive: these hold the memory."""

    def __init__(self) -> None:
        self._accounts: list[Account] = []
        self._presolve: dict[str, float] = {}

    def open(self, who: str) -> Account:
        """An account for a member that begins."""
        account = Account(who)
        self._accounts.append(account)
        return account

    def work(self) -> float:
        """What all members have done so far."""
        return sum(account.work for account in self._accounts)

    def presolved(self, variables: int, factors: int, done: PresolveStatistics) -> None:
        """What presolve made of a model of so many variables and factors."""
        told = {f.name: float(getattr(done, f.name)) for f in fields(done) if f.name not in _NOT_TOLD}
        left = {"variables": variables, "variables_left": done.variables, "factors": factors,
                "factors_left": done.factors, "labels_left": done.labels}  # fmt: skip
        self._presolve = {"used": 0.0, **{name: float(n) for name, n in left.items()}, **told}

    def use_presolve(self) -> None:
        """From here on what presolve left is worked on, and not the model as it was."""
        self._presolve["used"] = 1.0

    def statistics(self) -> dict[str, float]:
        """Flat, name -> number; counters that are 0 are left out but for work and seconds."""
        told: dict[str, float] = {f"presolve.{name}": n for name, n in self._presolve.items()}
        for who in dict.fromkeys(account.who for account in self._accounts):
            mine = [account for account in self._accounts if account.who == who]
            sums = {name: float(sum(getattr(account, name) for account in mine)) for name in _COUNTED}
            told |= {f"{who}.{name}": n for name, n in sums.items() if n or name in ("work", "seconds")}
        return told


_AS_THEY_ARE = Rules()


@dataclass(frozen=True)
class Terms(Settings):
    """What a member works under: the settings of the caller, the ledger and the rules of the run."""

    ledger: Ledger = field(default_factory=Ledger)
    rules: Rules = _AS_THEY_ARE


def terms_of(settings: Settings, rules: Rules | None = None) -> Terms:
    """The same settings with a ledger and rules; those that have them keep them."""
    if isinstance(settings, Terms):
        return settings
    plain = {f.name: getattr(settings, f.name) for f in fields(Settings)}
    return Terms(**plain, rules=_AS_THEY_ARE if rules is None else rules)


def joined(names: Iterable[str | None]) -> str | None:
    """Names of all who had a part in something, each once."""
    return ", ".join(sorted({name for name in names if name is not None})) or None
