"""The examples in docstrings run and print what they say, and what users call has one."""

from __future__ import annotations

import doctest
import inspect
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import fginfer

PACKAGE = Path(fginfer.__file__).parent
MODULES = [
    ".".join(("fginfer", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
    for path in sorted(PACKAGE.rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf-8")
]
PUBLIC = ["", ".learn", ".learn.crf", ".extreme", ".latent", ".trim", ".oracles", ".plots", ".reference", ".compare"]
# Made by other calls or by subclasses, and BackendIndex, which stands on packages that need not be there.
WITHOUT = {"Conditioned", "CrfEstimator", "SparseModel", "Learner", "Source", "BackendIndex"}


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With numpy and the names of fginfer, as a reader has imported them."""
    monkeypatch.chdir(tmp_path)
    known = {"np": np, **{public: getattr(fginfer, public) for public in fginfer.__all__}}
    ran = doctest.testmod(import_module(name), extraglobs=known, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert ran.attempted > 0
    assert ran.failed == 0


def is_called(public: object) -> bool:
    """Functions and classes that do something; not errors, plain records and protocols."""
    if inspect.isfunction(public):
        return True
    if not inspect.isclass(public) or issubclass(public, Exception | tuple) or getattr(public, "_is_protocol", False):
        return False
    return not hasattr(public, "__dataclass_fields__")


@pytest.mark.parametrize("package", PUBLIC)
def test_what_users_call_has_an_example(package: str) -> None:
    module = import_module(f"fginfer{package}")
    called = [name for name in module.__all__ if is_called(getattr(module, name)) and name not in WITHOUT]
    assert [name for name in called if ">>> " not in (getattr(module, name).__doc__ or "")] == []


# For formats, methods and other builders, which take a graph apart; not for people.
FOR_BUILDERS = {
    *("from_model", "from_model_arrays", "kept_unary", "shared_names", "snapshot", "table_arrays", "table_number"),
    *("table_snapshot", "take_names", "take_rules", "run_until", "seconds_to_copy", "prove"),
}


@pytest.mark.parametrize("public", [fginfer.FactorGraph, fginfer.Solver], ids=lambda c: c.__name__)
def test_every_method_of_graphs_and_solvers_has_an_example(public: type) -> None:
    methods = {name: getattr(public, name) for name in dir(public) if not name.startswith("_")}
    without = {name for name, f in methods.items() if callable(f) and ">>>" not in (inspect.getdoc(f) or "")}
    assert without - FOR_BUILDERS == set()
