"""Entry point of ``python -m rocmax``, equivalent to the command ``rocmax``."""

from __future__ import annotations

from rocmax.cli import main

main()
