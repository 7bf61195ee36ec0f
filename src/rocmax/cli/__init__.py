"""Command line of rocmax: parses options, calls :mod:`rocmax.tables`, prints results."""

from __future__ import annotations

import os
import sys

from rocmax._files import run


def main() -> None:
    """Run the command line."""
    run(_run_app)


def _run_app() -> int:
    # Threads of OpenMP wait for each other without using the processor, which other processes may need. Libraries read
    # this when they are loaded, so it comes before their import.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        from rocmax.cli.app import app
    except ImportError as error:
        sys.stderr.write(f"Error: the command line requires more packages: pip install 'rocmax[cli]' ({error})\n")
        return 1
    app(prog_name="rocmax")
    return 0
