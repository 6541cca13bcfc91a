"""The house: which room may see which. CONTRIBUTING.md draws the arrows; this is what keeps them true."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CSRC, PACKAGE = ROOT / "csrc", ROOT / "fginfer"
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)

# What a C room may include besides itself and the public headers. "solver.h" is a room of one header.
C_ARROWS: dict[str, set[str]] = {
    "base": set(),
    "model": {"base"},
    "io": {"base", "model"},
    "rules": {"base"},
    "oracle": {"base", "model", "rules"},
    "solver": {"base", "model"},
    "primal": {"base", "model", "solver", "rules"},
    "dual": {"base", "model", "solver", "primal"},
    "gdmm": {"base", "model", "solver", "primal", "oracle"},
    "exact": {"base", "model", "solver", "primal"},
    "again": {"base", "model"},
    "semidefinite": {"base", "model", "solver", "primal", "dual"},
    "methods": {"solver"},
    "optimise": {"base"},
    "learn": {"base", "oracle", "optimise"},
    "latent": {"base"},
    "sparsemap": {"base"},
}

# The rooms of the package: their modules, and what they may import besides themselves. "package" is fginfer itself,
# with the names that users see.
PYTHON_ROOMS: dict[str, tuple[str, set[str]]] = {
    "tools": (
        "errors names options archives unpacking blas budget replacing html startup crew printable plugins",
        set(),
    ),
    "core": ("core", {"tools"}),
    "results": ("result log terminal notebook plots", {"tools", "core"}),
    "model": (
        "graph graph_changes builder from_arrays tables table_roles table_values condition describe labelings "
        "graph_networkx graph_edits growing handles journal what_if rules constraints alone lower lowering folding",
        {"tools", "core", "results"},
    ),
    "formats": ("formats", {"tools", "core", "results", "model"}),
    "oracles": (
        "oracles sources search search_backends search_questions reference beliefs",
        {"tools", "core", "model"},
    ),
    "solving": (
        "solve solver follower many batches exact_scores engine methods cluster k_best distances"
        " parts samples blocks marginals approximate sum_product gibbs log_z_above log_z_below ranked_parts"
        " max_marginals intervals by_shape reparametrise explain hard_parts relax proof proving shrinking apart prices"
        " conflicts",
        {"tools", "core", "results", "model", "formats", "oracles", "package", "checker"},
    ),
    "portfolio": ("portfolio", {"tools", "core", "results", "model", "solving"}),
    "learn": ("learn", {"tools", "core", "results", "model", "formats", "oracles", "solving"}),
    "extreme": ("extreme", {"tools", "core", "results", "formats", "oracles", "learn"}),
    "latent": ("latent", {"tools", "core", "model", "solving", "learn"}),
    "nn": ("nn", {"tools", "core", "results", "model", "solving"}),
    "saved": ("saved", {"tools", "learn", "extreme"}),
    "trim": ("trim", {"tools", "core"}),
    "interop": ("interop", {"tools", "core", "results", "model", "formats", "oracles", "solving"}),
    "compare": ("compare", {"tools", "core", "results", "model", "formats", "solving", "package"}),
    "viewer": ("viewer", {"tools", "core", "results", "model"}),
    "checker": ("checker trimming", set()),
    "commands": (
        "commands cli __main__",
        {
            "checker",
            "tools",
            "core",
            "results",
            "model",
            "formats",
            "oracles",
            "solving",
            "learn",
            "extreme",
            "compare",
            "viewer",
            "package",
        },
    ),
    "package": (
        "__init__ __version__",
        {"tools", "core", "results", "model", "formats", "oracles", "solving", "portfolio", "saved", "viewer"},
    ),
}
PYTHON_ROOM = {module: room for room, (modules, _) in PYTHON_ROOMS.items() for module in modules.split()}


def room_of(path: str) -> str:
    """ "dual/trws.c" -> "dual"; "solver.h" -> "solver"."""
    first = path.split("/")[0]
    return first.rsplit(".", 1)[0]


def wrong_includes(path: str, text: str) -> list[str]:
    room = room_of(path)
    public = {p.name for p in (CSRC / "include").iterdir()}
    return [
        f"{path} includes {name}"
        for name in INCLUDE.findall(text)
        if name not in public and room_of(name) != room and room_of(name) not in C_ARROWS[room]
    ]


def c_files() -> list[str]:
    files = [p.relative_to(CSRC).as_posix() for p in sorted(CSRC.rglob("*.[ch]"))]
    return [p for p in files if not p.startswith("include/")]


def test_every_c_file_has_a_room():
    assert {room_of(p) for p in c_files()} <= set(C_ARROWS)


def test_includes_follow_the_arrows():
    assert [w for p in c_files() for w in wrong_includes(p, (CSRC / p).read_text())] == []


@pytest.mark.parametrize(
    ("path", "header"),
    [
        ("base/pool.c", "model/model.h"),
        ("dual/trws.c", "gdmm/gdmm.h"),
        ("learn/data.c", "solver.h"),
        ("model/x.h", "oracle/oracle.h"),
    ],
)
def test_a_wrong_include_is_seen(path: str, header: str):
    assert wrong_includes(path, f'#include "base/util.h"\n#include "{header}"\n') == [f"{path} includes {header}"]


def test_public_headers_stand_alone():
    public = {p.name for p in (CSRC / "include").iterdir()}
    for p in (CSRC / "include").glob("*.h"):
        assert set(INCLUDE.findall(p.read_text())) <= public, p.name


def imports(text: str) -> set[str]:
    """Modules of fginfer, and names in them; relative imports count as of the package, which nobody needs."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            module = "fginfer" if node.level else node.module or ""
            names |= {module} if module != "fginfer" else set()
            names |= {f"{module}.{alias.name}" for alias in node.names}
    return {n for n in names if n.split(".")[0] == "fginfer"}


def python_files() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


# What the door has that knows no C: plain numbers and text.
PLAIN = {"VERSION", "compiler", "cpu_path"}


def doors(text: str) -> list[str]:
    """Ways past fginfer.core to the C library: the library itself, or what hands out its functions and pointers."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom):
            module, names = node.module or "", [alias.name for alias in node.names]
            found += [f"imports {module}" for _ in [0] if module.startswith("fginfer._core")]
            found += [f"imports {name} from {module}" for name in names if name == "_core" or name in ("ffi", "lib")]
            if module == "fginfer.core.door":
                found += [f"imports {name} from the door" for name in names if name not in PLAIN]
            if module == "fginfer.core" and "door" in names:
                found.append("imports the door")
        elif isinstance(node, ast.Import):
            found += [f"imports {a.name}" for a in node.names if a.name in ("fginfer._core", "fginfer.core.door")]
        elif isinstance(node, ast.Attribute):
            inside = isinstance(node.value, ast.Name) and node.value.id in ("lib", "ffi")
            if inside or (node.attr in ("lib", "ffi", "_core") and _is_core(node.value)):
                found.append(f"calls {ast.unparse(node)}")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and re.match(r"fgi_\w*$", node.value):
            found.append(f"names the C function {node.value}")
    return found


def _is_core(node: ast.expr) -> bool:
    """fginfer.core.<module>, clock or whatever of core: a module whose lib and ffi would be a door, too."""
    return isinstance(node, ast.Name | ast.Attribute) and not ast.unparse(node).startswith(("self", "np", "numpy"))


def test_only_core_touches_the_c_library():
    others = [p for p in python_files() if p.relative_to(PACKAGE).parts[0] != "core"]
    assert [f"{p.relative_to(ROOT)} {way}" for p in others for way in doors(p.read_text())] == []


@pytest.mark.parametrize(
    "text",
    [
        "from fginfer._core import lib",
        "import fginfer._core",
        "from fginfer import _core",
        "from fginfer.core.door import check",
        "from fginfer.core import door",
        "import fginfer.core.door",
        "from fginfer.core.learn import lib",
        "from fginfer.core import learn\nlearn.lib.fgi_learn_free(x)",
        "f = getattr(x, 'fgi_learn_pass')",
        "def f(lib):\n    return lib.fgi_clock()",
    ],
)
def test_another_door_is_seen(text: str):
    assert doors(text)
    assert not doors("import numpy as np\nfrom fginfer.core.door import VERSION\nnp.lib.format.magic\nself._core.run()")


def wrong_imports(module: str, text: str) -> list[str]:
    """Imports of a module ("learn/base.py") that its room has no arrow to."""
    room = PYTHON_ROOM[module.split("/")[0].removesuffix(".py")]
    wrong = []
    for name in sorted(imports(text)):
        part = f"{name}.".split(".")[1]
        seen = PYTHON_ROOM.get(part, "package")  # fginfer itself, or a name that it hands out
        if seen != room and seen not in PYTHON_ROOMS[room][1] and part != "_core":
            wrong.append(f"{module} imports {name}")
    return wrong


def test_every_python_module_has_a_room_that_contributors_know():
    modules = {p.relative_to(PACKAGE).parts[0].removesuffix(".py") for p in python_files()}
    assert modules <= set(PYTHON_ROOM)
    known = set(re.findall(r"\w+", (ROOT / "CONTRIBUTING.md").read_text()))
    assert {m for m in modules if not m.startswith("_")} - known == set()


def test_imports_follow_the_arrows():
    files = [(p.relative_to(PACKAGE).as_posix(), p.read_text()) for p in python_files()]
    assert [wrong for name, text in files for wrong in wrong_imports(name, text)] == []


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("core/model.py", "from fginfer.graph import FactorGraph"),
        ("graph.py", "from fginfer import solve"),
        ("formats/wcsp.py", "import fginfer.learn"),
        ("portfolio/auto.py", "from fginfer.formats import read"),
        ("learn/base.py", "def f():\n    from fginfer.extreme.estimator import ExtremeClassifier"),
        ("trim/deep.py", "from .. import latent"),
        ("trim/deep.py", "from ..latent import lasso"),
    ],
)
def test_a_wrong_import_is_seen(module: str, text: str):
    assert wrong_imports(module, text)
    assert not wrong_imports(module, "import numpy\nfrom fginfer.errors import DataError")


def test_no_c_line_is_longer_than_120_columns():
    files = [*CSRC.rglob("*.[ch]"), *(ROOT / "tests" / "c").glob("*.[ch]")]
    assert [p.name for p in files for line in p.read_text().splitlines() if len(line) > 120] == []


def declared(header: str) -> set[str]:
    """Functions that a header declares and some C file defines."""
    code = re.sub(r"/\*.*?\*/|^\s*#.*?$", "", header, flags=re.M | re.S)
    return set(re.findall(r"^(?!static|typedef|extern)\w[\w *]*?\b(\w+)\([^{};]*\);", code, flags=re.M))


def lonely(headers: dict[str, str], files: dict[str, str]) -> list[str]:
    """What is declared for others, but used by no more than the file that defines it."""
    words = {path: set(re.findall(r"\w+", text)) for path, text in {**headers, **files}.items()}
    return sorted(
        f"{path} declares {name}"
        for path, text in headers.items()
        for name in declared(text)
        if sum(name in used for other, used in words.items() if other != path) < 2 and f"{name}(" not in macros(text)
    )


def macros(header: str) -> str:
    return "".join(re.findall(r"^\s*#\s*define.*$", header, flags=re.M))


def test_what_one_c_file_uses_is_in_no_header():
    texts = {
        p.relative_to(ROOT).as_posix(): p.read_text() for p in (*CSRC.rglob("*.[ch]"), *ROOT.glob("tests/c/*.[ch]"))
    }
    headers = {p: t for p, t in texts.items() if p.endswith(".h") and not p.startswith(("csrc/include", "tests"))}
    found = lonely(headers, {p: t for p, t in texts.items() if p not in headers})
    assert [line for line in found if "base/assert.h" not in line] == []  # its macros name what it declares


def test_a_lonely_function_is_seen():
    header = "/* e(); */\nint f(int a,\n    int b);\nint g(void);\n#define take(x) h(x)\nvoid *h(int x);\n"
    assert declared(header + "static inline int k(void);\n") == {"f", "g", "h"}
    assert lonely({"a.h": header}, {"a.c": "f g h", "b.c": "g"}) == ["a.h declares f"]


def missing_from_the_repository(recipes: str) -> set[str]:
    """What the recipes name in code spans and nobody defines: paths, C names with fgi_, Python classes."""
    spans = " ".join(re.findall(r"`([^`]*)`", recipes))
    paths = {p for p in re.findall(r"\b(?:csrc|fginfer|tests|docs)/[\w./]*", spans) if not re.search(r"NAME|ROOM", p)}
    headers = "\n".join(path.read_text() for path in CSRC.rglob("*.h"))
    modules = "\n".join(path.read_text() for path in PACKAGE.rglob("*.py"))
    lost = {p for p in paths if not (ROOT / p).exists()}
    lost |= {n for n in re.findall(r"\bfgi_\w+", spans) if "NAME" not in n and not re.search(rf"\b{n}\b", headers)}
    classes = set(re.findall(r"(?<![.\w\"])[A-Z][a-z]\w*", spans)) - {"Path", "None"}
    return lost | {n for n in classes if not re.search(rf"^class {n}\b", modules, re.M)}


def test_the_recipes_name_what_is_there():
    recipes = (ROOT / "CONTRIBUTING.md").read_text().partition("## Add a format")[2]
    assert missing_from_the_repository(recipes) == set()


def test_a_recipe_that_names_something_else_is_seen():
    given = (
        "Write `csrc/oracle/nowhere.c` with `fgi_nothing`; a `Source` whose questions are a `Batch`; see `fgi_source`."
    )
    assert missing_from_the_repository(given) == {"csrc/oracle/nowhere.c", "fgi_nothing", "Batch"}


# "Kolmogorov 2006", "(Chang and Yih 2013)", "Huang et al., 2017"
_AUTHOR = r"[A-Z][a-z]+(?:-[A-Z][a-z]+)?|O'Donoghue|de Givry"
_CITATION = re.compile(rf"({_AUTHOR})(?:(?:(?:,| and|, and) (?:{_AUTHOR}))*|,? et al\.),?\s+\(?((?:19|20)\d\d)\b")


def without_reference(text: str, references: list[str]) -> set[str]:
    """Citations (first author and year) in comments that no line of the references has."""
    flat = re.sub(r"\s*\n\s*[*#]?\s*", " ", text)
    cited = {(m.group(1), m.group(2)) for m in _CITATION.finditer(flat)}
    return {f"{a} {year}" for a, year in cited if not any(a in r.split("*")[0] and year in r for r in references)}


def test_every_citation_has_its_reference():
    page = (ROOT / "docs" / "mathematics.md").read_text().partition("## References")[2]
    references = [line for line in page.splitlines() if line.startswith("- ")]
    files = [*CSRC.rglob("*.[ch]"), *PACKAGE.rglob("*.py")]
    assert {c for p in files for c in without_reference(p.read_text(), references)} == set()


def test_a_citation_without_reference_is_seen():
    references = ["- V. Kolmogorov. *A title.* PAMI 2006.", "- M.-W. Chang, W.-t. Yih. *Another.* TACL 2013."]
    text = "/* (Kolmogorov 2006), as Chang and\n * Yih 2013 and Nobody et al. 2020 */"
    assert without_reference(text, references) == {"Nobody 2020"}
