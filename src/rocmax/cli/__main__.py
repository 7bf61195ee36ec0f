"""Entry point of ``python -m rocmax.cli``, equivalent to ``rocmax``."""

from __future__ import annotations

from rocmax.cli import main

main()
