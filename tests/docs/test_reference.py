"""The reference has an entry for every public call, and says what each of its parameters is."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[2] / "docs"
sys.path.insert(0, str(DOCS))
from parameters import fields, parameters, word  # noqa: E402

PACKAGES = [
    "",
    ".nn",
    ".learn",
    ".learn.crf",
    ".extreme",
    ".latent",
    ".trim",
    ".oracles",
    ".plots",
    ".reference",
    ".compare",
]


def entries(package: str) -> Iterator[tuple[str, Any]]:
    """Every public function, and every public class with its public methods: what the pages are made of."""
    module = import_module(f"fginfer{package}")
    for name in module.__all__:
        public = getattr(module, name)
        if inspect.isclass(public):
            yield name, public
            for method in dir(public):
                called = getattr(public, method)
                ours = str(getattr(called, "__module__", "")).startswith("fginfer")
                if not method.startswith("_") and callable(called) and ours and not inspect.isclass(called):
                    yield f"{name}.{method}", called
        elif callable(public):
            yield name, public


def is_record(public: object) -> bool:
    """Made by other calls (KBest by k_best): what it holds are attributes, not parameters."""
    if not inspect.isclass(public):
        return False
    return public.__name__ == "KBest" or hasattr(public, "__dataclass_fields__") or issubclass(public, tuple)


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_call_says_what_it_does(package: str) -> None:
    assert [name for name, called in entries(package) if not inspect.getdoc(called)] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_every_parameter_is_explained(package: str) -> None:
    """In the docstring (of a class that inherits its settings, in its base's), or among the common words."""
    lost = []
    for name, called in entries(package):
        if is_record(called) or (inspect.isclass(called) and issubclass(called, Exception)):
            continue
        said = inspect.getdoc(called) or ""
        if inspect.isclass(called):
            said += " ".join(inspect.getdoc(base) or "" for base in called.__mro__ if base.__module__ != "builtins")
        owner = name.split(".")[0]
        lost += [
            f"{name}: {p}" for p in parameters(called) if not re.search(rf"\b{p}\b", said) and word(owner, p) is None
        ]
    assert lost == []


def test_a_page_of_a_class_lists_its_methods() -> None:
    template = (DOCS / "_templates" / "autosummary" / "class.rst").read_text()
    assert ":members:" in template
    assert ":inherited-members:" in template
    assert 'templates_path = ["_templates"]' in (DOCS / "conf.py").read_text()


def test_parameters_of_a_section_become_fields() -> None:
    lines = ["Parameters", "----------", "C : weight of the loss.", "tol : a gap. max_iter : passes,", "    at most."]
    assert fields(lines, ["C", "tol", "max_iter"]) == [
        ":param C: weight of the loss.",
        ":param tol: a gap.",
        ":param max_iter: passes,",
        "    at most.",
    ]


def test_prose_with_colons_stays_prose() -> None:
    lines = ["Minimises a loss: the hinge.", "", "C : weight", "", "Then more prose about C."]
    assert fields(lines, ["C"])[0] == lines[0]
    assert fields(lines, ["C"])[-1] == lines[-1]
