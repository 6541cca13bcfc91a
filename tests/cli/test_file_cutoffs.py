"""The cutoff of a file on its way through the commands: it is kept, refused or dropped by request, never lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cli_support import run, strict_json

# Two variables that cost 1 or 2 each; the bound says that a total of 2, the least there is, is too much.
INFEASIBLE = "ub 2 2 2 2\n2 2\n1 0 1 1\n1 2\n1 1 1 1\n1 2\n"
FEASIBLE = INFEASIBLE.replace("ub 2 2 2 2", "ub 2 2 2 3")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "ub.wcsp").write_text(INFEASIBLE)
    return tmp_path / "ub.wcsp"


@pytest.mark.parametrize("target", ["x.uai", "x.LG", "x.h5"])
def test_convert_refuses_to_lose_it(model: Path, target: str, capsys: Any) -> None:
    code, _, err = run(capsys, "convert", model, model.with_name(target))
    assert code == 3
    assert "cutoff" in err
    assert "--drop-cutoff" in err
    assert not model.with_name(target).exists()
    assert run(capsys, "convert", model, model.with_name(target), "--drop-cutoff")[0] == 0
    assert run(capsys, "solve", model.with_name(target), "--quiet")[0] == 0


@pytest.mark.parametrize("target", ["x.wcsp", "x.cfn", "x.npz"])
def test_convert_keeps_it(model: Path, target: str, capsys: Any) -> None:
    assert run(capsys, "convert", model, model.with_name(target))[0] == 0
    assert run(capsys, "solve", model.with_name(target), "--quiet")[0] == 20


def test_check_knows_it(model: Path, capsys: Any) -> None:
    (model.parent / "x.MPE").write_text("MPE\n2 0 0")
    code, out, _ = run(capsys, "check", model, model.parent / "x.MPE")
    assert code == 20
    assert "violated constraints  1\n  the score -2 is not above the cutoff -2 of the file" in out
    code, out, _ = run(capsys, "check", model, model.parent / "x.MPE", "--json")
    assert (code, strict_json(out)["feasible"]) == (20, False)
    model.write_text(FEASIBLE)
    assert run(capsys, "check", model, model.parent / "x.MPE")[0] == 0


def test_info_and_the_log_tell_it(model: Path, capsys: Any) -> None:
    assert "only scores above -2 count" in run(capsys, "info", model)[1]
    assert strict_json(run(capsys, "info", model, "--json")[1])["cutoff"] == -2.0
    assert "only scores above -2 count" in run(capsys, "solve", model)[2]
