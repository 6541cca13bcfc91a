"""How comments are written: what a machine can see of it (CONTRIBUTING and HOUSE have the rest)."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
MOST_LINES = 3  # a comment inside a function may have


class Comment(NamedTuple):
    """A comment, or a docstring, with where it is and how many lines it has."""

    place: str
    text: str
    is_inside: bool
    lines: int


def python_comments(path: Path) -> Iterator[Comment]:
    source = path.read_text(encoding="utf-8")
    lines, tree = source.split("\n"), ast.parse(source)
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    spans = [(n.lineno, n.end_lineno or 0) for n in functions]
    blocks: list[list[tuple[int, str]]] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        at, alone = token.start[0], lines[token.start[0] - 1].lstrip().startswith("#")
        if alone and blocks and blocks[-1][-1][0] == at - 1:
            blocks[-1].append((at, token.string))
        else:
            blocks.append([(at if alone else -at, token.string)])
    for block in blocks:
        first = abs(block[0][0])
        text = " ".join(said.lstrip("#").strip() for _, said in block)
        yield Comment(f"{path.name}:{first}", text, any(a <= first <= b for a, b in spans), len(block))
    for node in [tree, *(n for n in ast.walk(tree) if isinstance(n, ast.ClassDef)), *functions]:
        if text := ast.get_docstring(node):
            yield Comment(f"{path.name}:{node.body[0].lineno}", text, False, 0)


def c_comments(path: Path) -> Iterator[Comment]:
    source = path.read_text(encoding="utf-8")
    for found in re.finditer(r"/\*.*?\*/|//[^\n]*", source, flags=re.DOTALL):
        begin = source.rfind("\n", 0, found.start()) + 1
        text = re.sub(r"\n\s*\*? ?", " ", found[0].strip("/* \n"))
        line = source.count("\n", 0, begin) + 1
        yield Comment(
            f"{path.name}:{line}", text, path.suffix == ".c" and source[begin] in " \t", found[0].count("\n") + 1
        )


def all_python(*rooms: str) -> list[Comment]:
    paths = [path for room in rooms for path in sorted((ROOT / room).rglob("*.py"))]
    return [comment for path in paths for comment in python_comments(path)]


def all_c(*rooms: str) -> list[Comment]:
    paths = [path for room in rooms for path in sorted((ROOT / room).rglob("*.[ch]"))]
    return [comment for path in paths for comment in c_comments(path)]


def package_and_core() -> list[Comment]:
    return all_python("fginfer", "csrc") + all_c("csrc")


def everywhere() -> list[Comment]:
    return package_and_core() + all_python("tests", "bench", "docs", "models") + all_c("tests")


def begins_with_of(comments: list[Comment]) -> list[str]:
    return [f"{comment.place}: {comment.text[:60]}" for comment in comments if re.match(r"[Oo]f\b", comment.text)]


def test_no_comment_begins_with_of() -> None:
    assert begins_with_of(everywhere()) == []


def runs_on(comment: Comment) -> bool:
    """Whether it is a piece of a sentence that begins or goes on in another comment."""
    return bool(re.match(r"\.\.\.", comment.text) or re.search(r"([^,] \.\.\.|,)$", comment.text))


def test_no_sentence_runs_on_over_several_comments() -> None:
    assert [f"{c.place}: {c.text[:60]}" for c in package_and_core() if runs_on(c)] == []


def test_comments_inside_functions_are_short() -> None:
    assert [c.place for c in package_and_core() if c.is_inside and c.lines > MOST_LINES] == []


MEASURED = re.compile(r"(?<![\w^])\d*\.?\d+(?: and \d*\.?\d+)? ?(?:s|ms|us|%|MB|GB|passes)(?![\w/*])")
MOST_MEASURED = 1  # figure with a unit; several are measurements, which belong into docs/how/decisions


def measured(comment: Comment) -> list[str]:
    """Figures with a unit in what it says, examples aside."""
    return MEASURED.findall(comment.text.partition(">>>")[0])


def test_measurements_are_in_records_of_decisions() -> None:
    found = [c for c in package_and_core() if len(measured(c)) > MOST_MEASURED]
    assert [f"{c.place}: {measured(c)}" for c in found] == []


def test_measurements_are_seen() -> None:
    text = "568 tags on 2 threads would take 65 and 59 % of the time, and with so many labels 50 % or 0.2 s"
    assert measured(Comment("", text, False, 1)) == ["65 and 59 %", "50 %", "0.2 s"]
    assert measured(Comment("", "x -> 2 sums, 3 samples; 2^30 bytes", False, 1)) == []


def test_pieces_of_sentences_are_seen() -> None:
    said = [Comment("", text, False, 1) for text in ("begins ...", "... goes on", "one,", "0, 1, ...", "A sentence.")]
    assert [runs_on(comment) for comment in said] == [True, True, True, False, False]


def test_the_reader_of_comments_sees_them(tmp_path: Path) -> None:
    python = tmp_path / "a.py"
    python.write_text('"""Of a module."""\nx = 1  # of a line\n\n\ndef f():\n    # one\n    # two\n    return x\n')
    seen = {comment.text: comment for comment in python_comments(python)}
    assert set(seen) == {"Of a module.", "of a line", "one two"}
    assert seen["one two"].is_inside
    assert seen["one two"].lines == 2
    c = tmp_path / "a.c"
    c.write_text("/* Of a file,\n * in two lines. */\nint x; /* of x */\nvoid f(void) {\n    // inside\n}\n")
    assert [comment.text for comment in c_comments(c)] == ["Of a file, in two lines.", "of x", "inside"]
    assert [comment.is_inside for comment in c_comments(c)] == [False, False, True]
