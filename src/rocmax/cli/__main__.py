"""Entry point of ``python -m rocmax.cli``, equivalent to ``rocmax``."""

from rocmax.cli import main

main()
