"""What the README shows works."""

from __future__ import annotations

import re
from pathlib import Path

README = (Path(__file__).parents[2] / "README.md").read_text()


def test_the_python_code_runs(capsys):
    names: dict[str, object] = {}
    for code in re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL):
        exec(compile(code, "README.md", "exec"), names)
    out = capsys.readouterr().out
    assert out.startswith("[1 2 2] 2.08")
    assert "optimal" in out
    assert "True (8,)" in out


def test_every_file_that_it_names_is_there() -> None:
    root = Path(__file__).parents[2]
    names = {name for name in re.findall(r"\]\(([^)#]+)\)", README) if "://" not in name}
    assert len(names) > 10
    assert sorted(name for name in names if not (root / name).exists()) == []


def test_two_set_up_commands():
    commands = re.findall(r"```sh\n(.*?)\n```", README, flags=re.DOTALL)
    assert len(commands) == 2
    assert re.fullmatch(r"pip install \. && fginfer solve models/\S+", commands[0])
    assert commands[1] == 'pip install ".[test]" && pytest'
