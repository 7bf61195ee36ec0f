"""The command ``rocmax``: parse, call, print."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line."""
    try:
        from rocmax.cli._app import app
    except ImportError as error:
        sys.stderr.write(f"Error: the command line needs packages: pip install 'rocmax[cli]' ({error})\n")
        sys.exit(1)
    app(prog_name="rocmax")
