"""Command line of rocmax: parses options, calls :mod:`rocmax.workflow`, prints results."""

from __future__ import annotations

import sys

from rocmax._exit import run


def main() -> None:
    """Run the command line."""
    run(_run_app)


def _run_app() -> int:
    try:
        from rocmax.cli._app import app
    except ImportError as error:
        sys.stderr.write(f"Error: the command line requires more packages: pip install 'rocmax[cli]' ({error})\n")
        return 1
    app(prog_name="rocmax")
    return 0
