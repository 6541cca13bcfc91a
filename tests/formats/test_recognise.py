"""One list of formats: what the manual, the help and the errors say, and files that are recognised by their text."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

import fginfer
from fginfer import FactorGraph, FormatError
from fginfer.cli import main
from fginfer.formats import FORMATS
from fginfer.formats.recognise import by_content

ROOT = Path(__file__).parent.parent.parent
HERE = ROOT / "tests" / "corpus"


def test_the_manual_lists_every_format():
    page = (ROOT / "docs" / "start" / "formats.md").read_text()
    rows = [
        f"| `{name}` | {' '.join(f'`{e}`' for e in known.extensions)} | "
        f"{known.text}{'' if known.write else '; read only'} |"
        for name, known in FORMATS.items()
    ]
    assert [row for row in rows if row not in page] == []


def test_help_and_errors_list_every_format(capsys, tmp_path: Path):
    main(["solve", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    (tmp_path / "m.odd").write_text("nothing at all\n")
    with pytest.raises(FormatError) as error:
        fginfer.read(tmp_path / "m.odd")
    for name, known in FORMATS.items():
        assert f"{name}," in text or name == list(FORMATS)[-1]
        assert name in str(error.value)
        for extension in known.extensions:
            assert extension in text
            assert extension in str(error.value)


def test_files_are_recognised_by_their_text():
    found = {
        p.name: by_content(p.read_bytes()) for p in HERE.iterdir() if not p.name.startswith(("rows", "tags", "word"))
    }
    wanted = {
        name: FORMATS_BY_EXTENSION.get(Path(name).suffix.lower())
        for name in found
        if FORMATS_BY_EXTENSION.get(Path(name).suffix.lower())
    }
    wanted["logs.LG"] = "uai"  # the text does not say that its numbers are logarithms
    del wanted["relaxed.cfn"]  # a network without a single keyword
    assert {name: found[name] for name in wanted} == wanted


FORMATS_BY_EXTENSION = {extension: name for name, known in FORMATS.items() for extension in known.extensions}


@pytest.mark.parametrize("name", ["small.uai", "names.cfn", "shared.wcsp"])
def test_a_file_without_an_extension_of_its_own(name: str, tmp_path: Path):
    data = (HERE / name).read_bytes()
    (tmp_path / "g05_60.0").write_bytes(data)
    (tmp_path / "g05_60.1.gz").write_bytes(gzip.compress(data))
    meant = fginfer.read(HERE / name)
    for other in ("g05_60.0", "g05_60.1.gz"):
        again = fginfer.read(tmp_path / other)
        assert again.cards.tolist() == meant.cards.tolist()
        assert again.score([0] * meant.n_variables) == meant.score([0] * meant.n_variables)


def test_a_renamed_file_is_refused_with_what_it_seems_to_be(tmp_path: Path):
    (tmp_path / "m.wcsp").write_bytes((HERE / "names.cfn").read_bytes())
    with pytest.raises(FormatError, match=r"looks like cfn \(toulbar2.*--format cfn"):
        fginfer.read(tmp_path / "m.wcsp")
    assert fginfer.read(tmp_path / "m.wcsp", format="cfn").n_variables == 3
    (tmp_path / "m.uai").write_bytes(gzip.compress((HERE / "small.uai").read_bytes()))
    with pytest.raises(FormatError, match=r"those of a \.gz file"):
        fginfer.read(tmp_path / "m.uai")


def test_a_format_that_is_only_read(tmp_path: Path):
    with pytest.raises(FormatError, match="rudy files are read, not written; written are uai"):
        fginfer.write(FactorGraph([2]), tmp_path / "m.rud")


def test_a_format_that_is_known_but_not_read_is_refused_by_name(tmp_path: Path):
    (tmp_path / "m.bif").write_text("network n {\n}\nvariable a {\n  type discrete [ 2 ] { no, yes };\n}\n")
    (tmp_path / "m.cnf").write_text("c remark\np cnf 2 1\n1 -2 0\n")
    for name in ("bif", "cnf"):
        if name not in FORMATS:
            with pytest.raises(FormatError, match=f"looks like {name}, a format that is not read"):
                fginfer.read(tmp_path / f"m.{name}")
