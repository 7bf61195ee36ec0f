"""``python -m rocmax.cli``, the same as ``rocmax``."""

from rocmax.cli import main

main()
