"""The commands of docs/reasons.md on a real table, with what they print.

``python -m benchmarks.workflow.reasons [--pictures docs/images]`` writes benchmarks/results/reasons_commands.md. The
table is telco-churn, customers of a telephone company; two thirds are for the fit. With ``--pictures``, Chromium draws
the page of the report.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import pandas as pd

from benchmarks._shared.data import data_directory
from benchmarks._shared.results import publish
from benchmarks.workflow.production import draw, run

COMMANDS = [
    "rocmax fit history.csv --target Churn --max-fpr 0.05 --id customerID --out churn.rocmax",
    "rocmax predict churn.rocmax new.csv --reasons 3 --out scores.csv",
    "rocmax predict churn.rocmax new.csv --reasons 3 --out scores.jsonl",
    "rocmax predict churn.rocmax new.csv --reasons 40 --out scores.csv",
    "rocmax report churn.rocmax new.csv --out report.html",
]


def flagged(folder: Path) -> str:
    """Return the header, and the first flagged rows of the files, as they are written."""
    table = pd.read_csv(folder / "scores.csv")
    rows = [0, *(table.index[table["score"] > 0] + 1)[:3]]
    texts = (folder / "scores.csv").read_text(encoding="utf-8").splitlines()
    lines = (folder / "scores.jsonl").read_text(encoding="utf-8").splitlines()
    return "\n".join([*(texts[i] for i in rows), "", lines[rows[1] - 1]])


def main() -> None:
    """Run the commands."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pictures", type=Path)
    args = parser.parse_args()
    table = pd.read_csv(data_directory() / "tables" / "telco-churn.csv.gz", dtype=str)
    rows = table.sample(frac=1.0, random_state=0)
    with tempfile.TemporaryDirectory() as name:
        folder, last = Path(name), len(table) * 2 // 3
        rows.iloc[:last].to_csv(folder / "history.csv", index=False)
        rows.iloc[last:].to_csv(folder / "new.csv", index=False)
        sections = ["The commands of docs/reasons.md, and all that they print."]
        for command in COMMANDS:
            print(command, flush=True)
            sections.append(f"```\n$ {command}\n{run(command, folder, '--reasons 40' not in command)}\n```")
        sections.append(
            f"The first flagged rows of scores.csv, and the first of scores.jsonl:\n\n```\n{flagged(folder)}\n```"
        )
        if args.pictures is not None:
            page = (folder / "report.html").read_text(encoding="utf-8")
            start, end = page.index('<section aria-labelledby="alerts">'), page.index('<details id="data">')
            first = page.index("<header>")
            (folder / "alerts.html").write_text(page[:first] + "<main>" + page[start:end] + "</main>", encoding="utf-8")
            draw(folder / "alerts.html", (args.pictures / "reasons_report.png").resolve(), 640)
    publish("reasons_commands", "Reasons on a real table", sections)


if __name__ == "__main__":
    main()
