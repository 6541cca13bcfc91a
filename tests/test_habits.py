"""The house around the code: workflows, hooks, the changelog and the version say the same."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).parent.parent
pytestmark = pytest.mark.skipif(not (ROOT / ".ci").exists(), reason="a source distribution has no such files")


def parts() -> set[str]:
    found = re.search(r"some of it: (.*)", (ROOT / ".ci" / "run").read_text())
    assert found is not None
    return set(found[1].split())


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def yaml_files() -> list[Path]:
    return [*sorted((ROOT / ".github").rglob("*.yml")), ROOT / ".pre-commit-config.yaml"]


@pytest.mark.parametrize("path", yaml_files(), ids=lambda path: path.name)
def test_yaml_can_be_read(path: Path) -> None:
    assert isinstance(yaml.safe_load(path.read_text()), dict)


def test_workflows_run_every_part_and_no_other() -> None:
    """Those of the matrix, and those that are named; the manual is built by a workflow of its own."""
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())["jobs"]
    named = {
        word
        for job in jobs.values()
        for step in job["steps"]
        if step.get("run", "").startswith(".ci/run ")
        for word in step["run"].split()[1:]
        if word.isidentifier() or "-" in word
    }
    assert named | set(jobs["core"]["strategy"]["matrix"]["part"]) == parts() - {"docs"}
    assert {os.split("-")[0] for os in jobs["tests"]["strategy"]["matrix"]["os"]} == {"ubuntu", "macos", "windows"}


def test_every_part_is_a_step() -> None:
    steps = set(re.findall(r"\bstep ([a-z-]+) \"", (ROOT / ".ci" / "run").read_text()))
    assert steps == parts()


@pytest.mark.skipif(sys.platform == "win32", reason="a script of bash")
def test_a_part_that_there_is_not() -> None:
    done = subprocess.run([ROOT / ".ci" / "run", "nonsense"], capture_output=True, text=True, timeout=20)
    assert done.returncode == 3
    assert "there is no part nonsense" in done.stdout


def test_wheels_are_built_for_the_machines_of_the_project() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "wheels.yml").read_text())["jobs"]
    built = {arch for row in jobs["wheels"]["strategy"]["matrix"]["include"] for arch in row["archs"].split()}
    settings = project()["tool"]["cibuildwheel"]
    assert built == {arch for system in ("linux", "macos", "windows") for arch in settings[system]["archs"]}


def test_hooks_use_the_same_formatter_as_ci() -> None:
    hooks = {repo["repo"].rpartition("/")[2]: repo for repo in yaml.safe_load(yaml_files()[-1].read_text())["repos"]}
    found = re.search(r"clang-format==([\d.]+)", (ROOT / ".ci" / "run").read_text())
    assert found is not None
    assert hooks["mirrors-clang-format"]["rev"] == f"v{found[1]}"


HEADING = re.compile(r"^## \[(Unreleased|\d+\.\d+\.\d+)\](?: - (\d{4}-\d\d-\d\d|not yet released))?(?:: .+)?$", re.M)


def test_the_changelog_keeps_its_form() -> None:
    """Keep a Changelog: versions from the newest on, and under them the known kinds of changes."""
    text = (ROOT / "CHANGELOG.md").read_text()
    headings = re.findall(r"^## .*$", text, re.M)
    found = [HEADING.match(heading) for heading in headings]
    assert all(found), headings
    versions = [match[1] for match in found if match is not None]
    assert versions[0] == "Unreleased"
    numbers = [tuple(map(int, version.split("."))) for version in versions[1:]]
    assert numbers == sorted(numbers, reverse=True)
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    unreleased = text[text.index("## [Unreleased]") : text.index(f"## [{versions[1]}]")]
    assert set(re.findall(r"^### (.*)$", unreleased, re.M)) <= kinds


def test_the_version_is_in_one_place() -> None:
    """pyproject.toml has it; the core, the package and the wheels get it from there."""
    version = project()["project"]["version"]
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+|rc\d+)?", version)
    listed = [match[1] for match in HEADING.finditer((ROOT / "CHANGELOG.md").read_text())]
    if "dev" not in version:
        assert version == listed[1]
    tracked = ["CITATION.cff", "README.md", "docs/conf.py", "csrc/CMakeLists.txt", "fginfer/__init__.py"]
    for name in tracked:
        assert re.search(rf"\b{re.escape(version)}\b", (ROOT / name).read_text()) is None, name


# Words of clocks that people and time servers set. What another machine says of time can be compared with no other.
WALL_CLOCKS = re.compile(
    r"\btime\.time\(|\btime_ns\(|\bdatetime\.(now|today)\(|CLOCK_REALTIME|gettimeofday|\btime\(NULL\)|timedwait"
)
ASKS_THE_WALL = {"fginfer/replacing.py", "fginfer/extreme/workshops.py"}


def test_no_clock_can_be_set() -> None:
    sources = [*ROOT.glob("fginfer/**/*.py"), *ROOT.glob("csrc/**/*.[ch]")]
    found = {p.relative_to(ROOT).as_posix() for p in sources if WALL_CLOCKS.search(p.read_text(encoding="utf-8"))}
    assert found == ASKS_THE_WALL
