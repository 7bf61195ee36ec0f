"""CPU seconds of `rocmax fit` on a small table, whole commands.

``python -m benchmarks.workflow.small_tables [--repeats 3]`` writes benchmarks/results/small_tables.md. The table is
titanic.csv.gz, 891 rows, in the folder tables of the data (the environment variable ROCMAX_DATA).
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from statistics import median

from benchmarks._shared.data import data_directory
from benchmarks._shared.results import command_cpu_time, machine, markdown

OUT = Path(__file__).parents[1] / "results" / "small_tables.md"
TABLE = data_directory() / "tables" / "titanic.csv.gz"
GOAL = 8.0
CASES = {
    "no limit": (),
    "`--max-fpr 0.1`": ("--max-fpr", "0.1"),
    "`--max-fpr 0.1 --model linear`": ("--max-fpr", "0.1", "--model", "linear"),
    "`--max-fpr 0.1 --model boosted`": ("--max-fpr", "0.1", "--model", "boosted"),
}
# The goal is for the defaults, which compare the families.
JUDGED = ("no limit", "`--max-fpr 0.1`")


def main() -> None:
    """Time every case in turn and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    seconds: dict[str, list[float]] = {name: [] for name in CASES}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "model.rocmax")
        for _ in range(repeats):
            for name, options in CASES.items():
                seconds[name].append(command_cpu_time("fit", TABLE, "--target", "Survived", *options, "--out", out))
            start = command_cpu_time("--help")
    rows = [
        [name, f"{min(taken):.1f}", f"{median(taken):.1f}", goal(name, min(taken))] for name, taken in seconds.items()
    ]
    text = f"""# CPU seconds of a fit on a small table

`python -m benchmarks.workflow.small_tables --repeats {repeats}`: `rocmax fit` on titanic (891 rows, 7 columns used),
whole commands on one thread, {repeats} runs of each in turn. `rocmax --help` takes {start:.1f} s.

{machine()}

{markdown(["options", "least", "median", f"goal: {GOAL:g}"], rows)}
"""
    OUT.write_text(text, encoding="utf-8")
    print(text)


def goal(name: str, taken: float) -> str:
    """Return whether a case meets the goal; empty for cases without one."""
    if name not in JUDGED:
        return ""
    return "met" if taken < GOAL else "missed"


if __name__ == "__main__":
    main()
