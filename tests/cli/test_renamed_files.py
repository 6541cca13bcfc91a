"""Every command with every file of the corpus under every extension: a slice of tests/truth/renamed.py.

Every third pair of file and extension is tried with one of the commands, in turn; the script tries all of them.
"""

from __future__ import annotations

import shutil
from itertools import cycle, product
from pathlib import Path
from typing import Any

import pytest
from cli_support import run

from tests.truth.renamed import COMMANDS, EXTENSIONS, MODELS, fault, make_sources, spoken

EACH = 3
DEAR = ("compare", "shard")  # these take a process or a folder each


@pytest.mark.slow
def test_every_file_under_every_extension(tmp_path: Path, capsys: Any) -> None:
    sources = [source for source in make_sources(tmp_path) if source not in MODELS]
    commands = cycle(command for command in COMMANDS if command[0] not in DEAR)
    pairs = list(product(sources, EXTENSIONS))[::EACH]
    for source, extension in pairs:
        path = tmp_path / f"x{extension}"
        shutil.copy(source, path)
        command = next(commands)
        code, _, err = run(capsys, *spoken(command, path, tmp_path))
        assert fault(command, code, err) is None, (source.name, extension, command, code, err)
        path.unlink()
    assert len(pairs) > 400
