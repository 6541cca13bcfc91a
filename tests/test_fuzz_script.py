"""What tests/truth/fuzz.sh says of a run: inputs that ran are counted however the run ends, and harm is exit code 1."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parent / "truth" / "fuzz.sh"

# In place of a compiler: whatever it is to build becomes a fuzzer that says one line and ends.
COMPILER = """#!/bin/sh
while [ "$1" != -o ]; do shift; done
printf '#!/bin/sh\\necho "{says}"\\nexit {code}\\n' >"$2"
chmod +x "$2"
"""
GUIDED, RANDOM = "stat::number_of_executed_units: 1234", "1234 inputs from 1 on: 0 failures"


def program(file: Path, text: str) -> Path:
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    file.chmod(0o755)
    return file


def run(folder: Path, clang: str, cc: str, readers: str) -> tuple[int, str]:
    """Exit code and output of the script with these compilers; the newest clang is the one it takes."""
    program(folder / "bin" / "clang-99", clang)
    environment = {
        "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "CC": str(program(folder / "bin" / "some-cc", cc)),
        "PYTHON": readers,
        "FUZZ_FOLDER": str(folder / "kept"),
    }
    call = [SCRIPT, "5000", "10"]
    done = subprocess.run(call, env=os.environ | environment, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout


# libFuzzer ends with 77 after a crash and with 72 after Ctrl-C.
@pytest.mark.parametrize(
    ("fuzzer", "readers", "code"), [(0, "true", 0), (77, "true", 1), (72, "true", 1), (0, "false", 1)]
)
def test_counts_what_libfuzzer_ran(fuzzer: int, readers: str, code: int, tmp_path: Path) -> None:
    for times in (1, 2):
        exit_code, output = run(tmp_path, COMPILER.format(says=GUIDED, code=fuzzer), "", readers)
        assert exit_code == code
        assert f"C reader: 1234 inputs now, {1234 * times} in all" in output


@pytest.mark.parametrize(
    ("says", "fuzzer", "code", "ran"), [(RANDOM, 0, 0, 1234), (RANDOM, 1, 1, 1234), ("fell", 1, 1, 0)]
)
def test_counts_random_damage(says: str, fuzzer: int, code: int, ran: int, tmp_path: Path) -> None:
    no_clang = "#!/bin/sh\nexit 1\n"
    exit_code, output = run(tmp_path, no_clang, COMPILER.format(says=says, code=fuzzer), "true")
    assert exit_code == code
    assert "no libFuzzer" in output
    assert f"C reader: {ran} inputs now, {ran} in all" in output
