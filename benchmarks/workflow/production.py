"""The commands of docs/production.md on a real table, with what they print: from a plan to a limit that is watched.

``python -m benchmarks.workflow.production [--pictures docs/images]`` writes benchmarks/results/production.md. The table
is bank-full, calls of a bank from May 2008 to November 2010. Its file has the day and the month of each call in the
order of the calls, from which the year follows. ``duration`` is left out: it is known only after the call. With
``--pictures``, Chromium draws the pages of the report and of the monitor.
"""

from __future__ import annotations

import argparse
import datetime
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pandas as pd

from benchmarks._shared.data import data_directory
from benchmarks._shared.results import ONE_THREAD, ROCMAX, publish

MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
# The calls up to this date are there for the fit; those of the later months come one month after the other.
LAST_DAY = "2009-04-30"
LATER = ("2009-05", "2009-06", "2009-07", "2009-08")
TABLE = "--target subscribed --positive yes --max-fpr 0.05 --confidence 0.95"


def watched(model: str, page: str) -> list[str]:
    """Return the commands that watch a model month by month; the labels of a month come with the next one."""
    commands, come = [], ""
    for month in LATER:
        commands.append(f"rocmax monitor {model} {month}.csv --time date{come} --out {page}")
        come = f" --labels labels-{month}.csv"
    return commands


COMMANDS = [
    f"rocmax plan history.csv {TABLE} --time date",
    f"rocmax fit history.csv {TABLE} --id call --drop date --out random.rocmax",
    f"rocmax fit history.csv {TABLE} --id call --time date --gap 7d --out calls.rocmax",
    "rocmax evaluate random.rocmax later.csv",
    "rocmax evaluate calls.rocmax later.csv",
    "rocmax report calls.rocmax later.csv --out report.html",
    *watched("calls.rocmax", "limits.html"),
    *watched("random.rocmax", "broken.html"),
]


def calls() -> pd.DataFrame:
    """Return the table, with a number and the date of each call."""
    frame = pd.read_csv(data_directory() / "tables" / "bank-full.csv.gz")
    dates, year, last = [], 2008, 1
    for day, name in zip(frame.pop("day"), frame.pop("month"), strict=True):
        month = MONTHS.index(name) + 1
        year, last = year + (month < last), month
        dates.append(datetime.date(year, month, day))
    frame = frame.drop(columns="duration").rename(columns={"term deposit": "subscribed"})
    frame.insert(0, "date", [date.isoformat() for date in dates])
    frame.insert(0, "call", range(1, len(frame) + 1))
    return frame


def write_tables(folder: Path) -> None:
    """Write the history, the later calls, and a table of rows and one of labels for each of some later months."""
    frame = calls()
    before = frame["date"] <= LAST_DAY
    frame[before].to_csv(folder / "history.csv", index=False)
    frame[~before].to_csv(folder / "later.csv", index=False)
    for month in LATER:
        rows = frame[frame["date"].str.startswith(month)]
        rows.drop(columns="subscribed").to_csv(folder / f"{month}.csv", index=False)
        rows[["call", "subscribed"]].to_csv(folder / f"labels-{month}.csv", index=False)


def run(command: str, folder: Path, succeeds: bool = True) -> str:
    """Return what a command prints, notes and warnings included; raise an error if it fails but should not."""
    done = subprocess.run(
        [ROCMAX, *command.split()[1:]],
        cwd=folder,
        env={**os.environ, **ONE_THREAD},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=succeeds,
    )
    return done.stdout.rstrip()


def draw(page: Path, picture: Path, height: int) -> None:
    """Draw a page with Chromium."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        raise SystemExit("--pictures requires Chromium")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--window-size=1000,{height}"]
    with tempfile.TemporaryDirectory() as profile:
        command = [browser, *options, f"--user-data-dir={profile}", f"--screenshot={picture}", page.as_uri()]
        subprocess.run(command, check=True, capture_output=True)


def main() -> None:
    """Run the commands."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pictures", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_tables(folder)
        sections = ["The commands of the tutorial docs/production.md, and all that they print."]
        for command in COMMANDS:
            print(command, flush=True)
            sections.append(f"```\n$ {command}\n{run(command, folder)}\n```")
        if args.pictures is not None:
            draw(folder / "report.html", (args.pictures / "production_report.png").resolve(), 1250)
            draw(folder / "broken.html", (args.pictures / "production_broken.png").resolve(), 1250)
    publish("production", "From a plan to a limit that is watched", sections)


if __name__ == "__main__":
    main()
