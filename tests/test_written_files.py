"""Files are written whole or not at all; a full disk costs a checkpoint, not the run; leftovers are cleared."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from fginfer import FactorGraph, FormatError, Result, solve, write
from fginfer.replacing import clear_leftovers, replacing, temporary_name

pytest.importorskip("sklearn")


def left_behind(target: Path) -> Path:
    """What a process that was killed while it wrote has left."""
    code = (
        "import os, sys\nfrom pathlib import Path\nfrom fginfer.replacing import replacing\n"
        "with replacing(Path(sys.argv[1])) as file:\n    file.write(b'half')\n    file.flush()\n"
        "    os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(target)], check=False)
    (left,) = target.parent.glob(f".{target.name}.*.part")
    return left


def test_what_killed_writers_left_is_cleared(tmp_path: Path) -> None:
    target = tmp_path / "m.uai"
    left = left_behind(target)
    mine, other = temporary_name(target), temporary_name(tmp_path / "n.uai")
    foreign = tmp_path / ".m.uai.elsewhere-1-0123456789ab.part"
    for path in (mine, other, foreign):
        path.write_bytes(b"")
    write(FactorGraph([2]), target)
    assert not left.exists()
    assert mine.exists()  # its process lives
    assert other.exists()  # it belongs to another file
    assert foreign.exists()  # nobody here knows whether its process lives
    os.utime(foreign, (time.time() - 1e6,) * 2)
    clear_leftovers(target)
    assert not foreign.exists()


def test_a_failed_write_leaves_what_was_there(tmp_path: Path) -> None:
    target = tmp_path / "x"
    target.write_bytes(b"old")
    with pytest.raises(ZeroDivisionError), replacing(target) as stream:
        stream.write(bytes(1 // 0))
    assert target.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["x"]
    with pytest.raises(FormatError, match="cannot be written"):
        solve(FactorGraph([2])).save(tmp_path / "missing" / "r.npz")


def limited(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs Python where no file gets larger than 3000 bytes: a full disk, for a file."""
    limit = (
        "import resource, signal, sys, fginfer.extreme, fginfer.learn\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))\n"
    )
    return subprocess.run([sys.executable, "-c", limit + code, *arguments], capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["bcfw", "gdmm"])
def test_a_full_disk_costs_the_checkpoint_only(tmp_path: Path, solver: str) -> None:
    code = (
        "import logging, numpy as np\nlogging.basicConfig()\nfrom fginfer.learn import StructuredSVM\n"
        "rng = np.random.default_rng(0)\nX = [rng.normal(size=(6, 40)) for _ in range(30)]\n"
        "y = [(x[:, 0] > 0).astype(int) for x in X]\n"
        "m = StructuredSVM(solver=sys.argv[2], max_iter=5, checkpoint=sys.argv[1], checkpoint_interval=0).fit(X, y)\n"
        "print(m.score(X, y))"
    )
    done = limited(code, str(tmp_path / "run.ckpt"), solver)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) > 0.8
    assert "checkpoint was not written, training goes on" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_costs_the_journal_only(tmp_path: Path) -> None:
    code = (
        "import logging, numpy as np\nlogging.basicConfig()\nfrom fginfer.extreme import ExtremeClassifier\n"
        "rng = np.random.default_rng(0)\nX = np.abs(rng.normal(size=(300, 30)))\ny = X.argmax(1)\n"
        "a = ExtremeClassifier(lam=0.01, checkpoint=sys.argv[1]).fit(X, y)\nb = ExtremeClassifier(lam=0.01).fit(X, y)\n"
        "print((a.predict(X) == b.predict(X)).all(), (a.predict(X) == y).mean() > 0.5)"
    )
    done = limited(code, str(tmp_path / "run.ckpt"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["True", "True"]
    assert "grows no more" in done.stderr


def test_archives_of_others_are_damaged_not_fatal(tmp_path: Path) -> None:
    path = tmp_path / "r.npz"
    text = np.frombuffer(("[" * 100_000).encode(), np.uint8)
    for name, value in {"result": text, "other": np.zeros(3), "trace": np.array(["x"])}.items():
        np.savez(path, **{name: value})
        with pytest.raises(FormatError, match="not a saved result"):
            Result.load(path)
    np.savez_compressed(path, result=np.zeros(400_000_000, np.uint8))
    with pytest.raises(FormatError, match="would take"):
        Result.load(path)
