"""Small files that unpack to gigabytes, or list the same few bytes without end: each reader says so, in little memory.

Each is read in a process that may have two gigabytes more than it has when it begins.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import subprocess
import sys
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from numpy.typing import NDArray

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="no limits on memory there"),
]
GIGABYTES = 0.5  # more makes no difference, but takes longer to write
PACKERS: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress}
UNIT = 1 << 24

LIMIT = 2 << 30  # bytes more than a process has when it begins
READ = (
    f"LIMIT = {LIMIT}"
    + """
import json, logging, os, resource, sys, time
import numpy as np
import fginfer, h5py
from fginfer import FactorGraph, FginferError, Result
from fginfer.extreme import ExtremeClassifier
from fginfer.extreme.reader import read_training
from fginfer.formats import read_evidence, read_solution
from fginfer.learn import StructuredSVM, read_conll, read_conllu, read_svmlight
logging.disable(logging.CRITICAL)
three = FactorGraph([3, 3, 3])
X = [np.eye(3)[:2] for _ in range(4)]
readers = {
    "model": fginfer.read,
    "evidence": lambda p: read_evidence(p, three),
    "solution": lambda p: read_solution(p, three),
    "conll": read_conll,
    "conllu": read_conllu,
    "svmlight": read_svmlight,
    "extreme": lambda p: read_training(p, True, False, True),
    "extreme-model": ExtremeClassifier.load,
    "svm": StructuredSVM.load,
    "result": Result.load,
    "checkpoint": lambda p: StructuredSVM(max_iter=2, checkpoint=p).fit(X, [[0, 1]] * 4),
}
for line in sys.stdin:
    kind, path = json.loads(line)
    ends, begins = os.pipe()
    child = os.fork()
    if child == 0:  # one file a process: what is left of one must not harm the next
        held = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (held + LIMIT, held + LIMIT))
        begin = time.process_time()
        try:
            readers[kind](path)
            said = "read"
        except FginferError as error:
            said = f"{type(error).__name__}: {error}"
        except BaseException as error:
            said = f"HARM {type(error).__name__}: {error}"
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        os.write(begins, json.dumps([kind, path, said, round(time.process_time() - begin, 2), round(peak)]).encode())
        os._exit(0)
    os.close(begins)
    print(os.read(ends, 100000).decode(), flush=True)
    os.close(ends)
    os.waitpid(child, 0)
"""
)


def packed(head: bytes, filler: bytes, suffix: str, gigabytes: float = GIGABYTES) -> bytes:
    """A compressed file that begins with `head` and goes on with the filler for so long."""
    return (PACKERS[suffix](head) if head else b"") + _unit(filler, suffix) * int(gigabytes * 2**30 / UNIT)


@cache
def _unit(filler: bytes, suffix: str) -> bytes:
    return PACKERS[suffix](filler * (UNIT // len(filler)))


def archive(**members: NDArray[Any]) -> bytes:
    out = io.BytesIO()
    np.savez_compressed(out, **members)
    return out.getvalue()


def zip_of_blanks(name: str, gigabytes: float = GIGABYTES) -> bytes:
    """An archive one of whose members announces and holds that many zeros."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as zipped:
        for scalar in ("fginfer", "given_factors", "constant"):
            with zipped.open(f"{scalar}.npy", "w") as member:
                np.lib.format.write_array(member, np.array(1, np.int64))
        with zipped.open(f"{name}.npy", "w", force_zip64=True) as member:
            n = int(gigabytes * 2**30 / 4)
            np.lib.format.write_array_header_1_0(member, {"descr": "<i4", "fortran_order": False, "shape": (n,)})
            for _ in range(n * 4 // UNIT):
                member.write(bytes(UNIT))
    return out.getvalue()


def hdf(path: Path) -> None:
    with h5py.File(path, "w") as file:
        group = file.create_group("gm")
        group.create_dataset("header", data=np.array([2, 0, 1, 0, 0, 1], np.uint64))
        states = group.create_dataset(
            "numbers-of-states", shape=(1 << 28,), dtype=np.uint64, compression="gzip", chunks=(1 << 20,)
        )
        states[: 1 << 20] = 1
        for k in range(1, 100):  # the same chunk again and again, as it is stored
            states.id.write_direct_chunk((k << 20,), states.id.read_direct_chunk((0,))[1])


def bombs(folder: Path) -> list[tuple[str, Path]]:
    """(kind, file) of everything that is tried."""
    out: list[tuple[str, Path]] = []

    def add(kind: str, name: str, data: bytes) -> None:
        path = folder / f"{len(out)}.{name}"
        path.write_bytes(data)
        out.append((kind, path))

    opened = b'{{x <9} {a: 2} {f: {scope: [a] "costs": [0'
    heads = (("cfn", opened), ("wcsp", b"x 1 2 1 9\n2\n"), ("uai", b"MARKOV\n1\n2\n"), ("LG", b""))
    for name, head in heads:
        add("model", f"{name}.gz", packed(head, b" ", ".gz"))
        add("model", f"{name}.xz", packed(head, b"\n", ".xz"))
    for kind in ("evidence", "solution", "conll", "conllu", "svmlight", "extreme"):
        add(kind, "x.gz", packed(b"", b" ", ".gz"))
        add(kind, "x.bz2", packed(b"", b"\n", ".bz2"))
    add("model", "npz.gz", packed(b"", b"\0", ".gz"))
    add("model", "h5.bz2", packed(b"", b"\0", ".bz2"))
    # The same few words without end; those below 128 MB are looked at.
    for filler in (b"#\n", b"1 ", b"[", b'"', b"a:1,"):
        add("model", "cfn.gz", packed(opened, filler, ".gz", 0.1))
    add("model", "cfn.gz", packed(b"{{x <9} {", b"1 ", ".gz"))
    for filler in (b"0 ", b"1", b"-1 "):
        add("model", "wcsp.gz", packed(b"x 1 2 1 9\n2\n1 0 0 900000000\n", filler, ".gz", 0.1))
        add("model", "uai.gz", packed(b"MARKOV\n1\n2\n1\n1 0\n2\n", filler, ".gz"))
        add("evidence", "evid.gz", packed(b"", filler, ".gz", 0.1))
        add("solution", "MPE.gz", packed(b"MPE 3 ", filler, ".gz", 0.1))
    for kind, filler in (("conll", b"a b\n"), ("conll", b"# x y\n"), ("conllu", b"# x\n"), ("svmlight", b"1 1:1\n")):
        add(kind, "x.gz", packed(b"", filler, ".gz"))
    for kind, filler in (("svmlight", b"1:1 "), ("extreme", b"1:1 "), ("conll", b"a "), ("conllu", b"a\t")):
        add(kind, "x.gz", packed(b"", filler, ".gz", 0.1))
    add("extreme", "xmlrepo.gz", packed(b"2147483646 5 5\n", b"\n", ".gz"))
    zipped, header = zip_of_blanks("cards"), archive(header=np.zeros(200_000_000, np.uint8))
    add("model", "npz", zipped)
    for kind in ("svm", "result", "checkpoint"):
        add(kind, f"{kind}.npz", zipped)
        add(kind, f"{kind}-header.npz", header)
    add("extreme-model", "model.fgx", zipped)
    hdf(folder / "bomb.h5")
    out.append(("model", folder / "bomb.h5"))
    return out


def test_nothing_unpacks_to_all_of_the_memory(tmp_path: Path) -> None:
    tried = bombs(tmp_path)
    asked = "".join(json.dumps([kind, str(path)]) + "\n" for kind, path in tried)
    run = subprocess.run([sys.executable, "-c", READ], input=asked, capture_output=True, text=True)
    answers = [json.loads(line) for line in run.stdout.splitlines()]
    assert (run.returncode, len(answers)) == (0, len(tried)), run.stderr[-2000:]
    for kind, path, said, _, _ in answers:
        assert Path(path).stat().st_size < 20e6, path
        assert said.startswith(f"FormatError: {path}"), (kind, path, said)
        assert "\n" not in said
