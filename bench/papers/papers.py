"""One command for each table and figure of the papers: what docs/papers.md names.

    python -m bench papers                          the names, with what each repeats and how it is run
    python -m bench papers NAME [FOLDER] [...]      runs it; FOLDER takes the place of the folder in its line, further
                                                    arguments go to the bench
    python -m bench papers table3.2 INSTANCES [--seconds 10] [--methods gdmm,trws]

Most are parts of other benches. `table3.2` is here: score and seconds to it of gdmm and its rivals, beside the figures
of the thesis where an instance is the thesis's own (ImageAlignment_13; others are of the same families).
"""

from __future__ import annotations

import argparse
import runpy
import sys
import time
from pathlib import Path
from typing import NamedTuple

import fginfer


class Row(NamedTuple):
    what: str
    bench: str
    arguments: str  # FOLDER: a folder of data sets; INSTANCES: of models


ROWS = {
    "figure2.1": Row("thesis, Figure 2.1 and Theorem 7: stationary points and non-zeros", "trim", "FOLDER --theorem"),
    "table2.1": Row("thesis, Tables 2.1 and 2.6: multiclass", "extreme", "FOLDER --part quality --data pinyin"),
    "table2.2": Row("thesis, Table 2.2: label sets by PD-Sparse", "extreme", "FOLDER --part quality --data tags"),
    "table2.3": Row("thesis, Table 2.3: k_A and k_W", "extreme", "FOLDER --part growth"),
    "table2.4": Row("thesis, Table 2.4: very many labels", "extreme", "FOLDER --part scale"),
    "table2.5": Row("thesis, Table 2.5: small label sets", "extreme", "FOLDER --part quality --data bibtex"),
    "table2.7": Row("thesis, Table 2.7: trimming", "trim", "FOLDER --targets 0.1"),
    "table3.2": Row("thesis, Table 3.2 and Figure 3.4: MAP methods side by side", "", "INSTANCES"),
    "growth": Row("thesis, section 3.2: work of an oracle call against the labels", "growth", "--most 512"),
    "matching": Row("thesis, section 3.2: graph matching", "matching", "INSTANCES/facebook"),
    "binary": Row("thesis, Algorithm 9: many binary factors", "binary", ""),
    "figure3.2": Row("thesis, Figure 3.2; GDMM learning, Figure 2", "learning_papers", "FOLDER --part figure2"),
    "figure3.3": Row("thesis, Figure 3.3; GDMM learning, Figure 3", "learning", "FOLDER"),
    "figure3.5": Row(
        "thesis, Figure 3.5, Table 3.3: faces",
        "inner_products",
        "--part multiclass --k 30000 --methods Margin MIPS-codes Decomp-MIPS-2-codes",
    ),
    "figure3.6": Row(
        "thesis, Figure 3.6, Table 3.4: labels by search", "inner_products", "--part multilabel --data FOLDER"
    ),
    "figure3.7": Row("thesis, Figure 3.7, Table 3.5: words", "inner_products", "--part words --data FOLDER"),
    "figure4.1": Row("thesis, Figure 4.1, 4.3, Table 4.1: latent features, synthetic", "latent", "--part recovery"),
    "figure4.2": Row("thesis, Figure 4.2: latent features, real", "latent", "--data FOLDER --part real"),
    "table4.2": Row("thesis, Table 4.2, Figures 4.4 and 4.5: mixtures", "mixture", "--methods lasso,published,em"),
    "figure4.6": Row("thesis, Figure 4.6: mixtures of polynomials", "mixture", "--polynomials"),
    "figure4.7": Row("thesis, Figure 4.7: prices", "mixture", "--prices"),
    "bcfw1": Row("BCFW, Figure 1: three lambdas", "learning_papers", "FOLDER --part lambda"),
    "bcfw2": Row("BCFW, Figure 2: step sizes", "learning_papers", "FOLDER --part steps"),
    "bcfw3": Row("BCFW, Figures 3 and 4: averages", "learning_papers", "FOLDER --part averages"),
    "bcfw5": Row("BCFW, Figure 5: matchings", "learning_papers", "FOLDER --part alignment"),
    "dcd1": Row("DCD-SSVM, Figures 1 to 3, Table 1: tagging", "learning_papers", "FOLDER --part dcd-tagging"),
    "dcd-parsing": Row("DCD-SSVM, the same on parsing", "learning_papers", "FOLDER --part dcd-parsing"),
    "proxqn3": Row("Prox-QN, Figures 3, 4, 7, 8, Table 1: OCR", "crf", "FOLDER --part ocr"),
    "proxqn5": Row("Prox-QN, Figures 5 and 6, Table 2: hierarchies", "crf", "FOLDER --part hierarchy"),
}

# What the thesis prints in Table 3.2: seconds, decoded score.
PUBLISHED = {
    "ImageAlignment_13": {
        "bp": (4.136, -6907),
        "mplp": (9.85, -6907.6),
        "psdd": (531.4, -6907.6),
        "ad3": (60.2, -6917.09),
        "trws": (0.65, -6907),
        "gdmm": (18.09, -6907.6),
    }
}
MODELS = (
    "pic11_segmentation/2_17_s.21.uai.gz",
    "uai14_map/ImageAlignment_13.uai.gz",
    "eurlex/EurLex.subtest.uai.gz",
    "pic11_proteinfolding/pdb1fmj.uai.gz",
)


def rivals(folder: Path, methods: list[str], seconds: float) -> None:
    for file in MODELS:
        name, graph = Path(file).name.split(".uai")[0], fginfer.read(folder / file)
        print(f"{name}: {graph.n_variables} variables, {graph.n_factors} factors, {graph.max_labels} labels")
        for method in methods:
            begin = time.process_time()
            r = fginfer.solve(graph, method, time_limit=seconds, dual=False)
            cpu, score = time.process_time() - begin, -float("inf") if r.score is None else r.score
            best = next((p.seconds for p in r.trace if p.score is not None and p.score >= score - 1e-9), r.seconds)
            printed = PUBLISHED.get(name, {}).get(method)
            paper = "" if printed is None else f"   printed: {printed[1]} after {printed[0]} s"
            bound = "none" if r.bound is None else f"{r.bound:.4f}"
            print(f"  {method:6} {score:14.4f} after {best:7.3f} s, bound {bound}, {r.status}, CPU {cpu:.2f} s{paper}")


def listing() -> None:
    for name, row in ROWS.items():
        line = f"papers {name} INSTANCES" if not row.bench else f"{row.bench} {row.arguments}".rstrip()
        print(f"{name:12} {row.what}\n{'':12} python -m bench {line}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="?", choices=list(ROWS), metavar="NAME")
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--methods", default="gdmm,trws,mplp,ad3,psdd,bp,auto")
    options, rest = parser.parse_known_args()
    if options.name is None:
        return listing()
    row = ROWS[options.name]
    wants = next((word for word in ("FOLDER", "INSTANCES") if word in row.arguments), None)
    if wants and options.folder is None:
        parser.error(f"{options.name} needs a folder: {wants}")
    if not row.bench:
        return rivals(options.folder, options.methods.split(","), options.seconds)
    arguments = row.arguments.replace(wants, str(options.folder)) if wants else row.arguments
    from bench.__main__ import benches

    sys.argv = [row.bench, *arguments.split(), *rest]
    runpy.run_module(benches()[row.bench][0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
