"""The Python code on every page of the manual runs, page by page, as a reader would paste it."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {
    str(path.relative_to(DOCS)): blocks
    for path in sorted(DOCS.rglob("*.md"))
    if (blocks := re.findall(r"```python\n(.*?)```", path.read_text(), flags=re.DOTALL))
}


@pytest.mark.parametrize("page", PAGES)
def test_the_code_of_a_page_runs_and_prints_what_its_comments_say(
    page: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in PAGES[page]:
        exec(compile(block, page, "exec"), names)
    printed = capsys.readouterr().out.splitlines()
    for said in re.findall(r"^print\(.*\) +# (\[.*|[\d.]+.*)$", "\n".join(PAGES[page]), flags=re.MULTILINE):
        shown = re.split(r"\.\.\.|:", said)[0].strip()  # "2.08..." is a beginning, what follows a colon is a remark
        assert any(line.startswith(shown) for line in printed), f"{page} says {shown!r}, printed: {printed}"


def test_pages_were_found() -> None:
    assert {"index.md", "oracles.md", "start/first_model.md", "coming_from/toulbar2.md"} <= set(PAGES)


@pytest.mark.parametrize(
    "package", ["", ".learn", ".learn.crf", ".extreme", ".latent", ".trim", ".nn", ".oracles", ".plots"]
)
def test_the_reference_has_every_public_name(package: str) -> None:
    page = (DOCS / "reference" / "index.md").read_text()
    listed = set(re.findall(r"^   (\w+)$", page, flags=re.MULTILINE))
    names = set(import_module(f"fginfer{package}").__all__) - {"oracles"}  # a section of its own
    assert names <= listed, sorted(names - listed)
