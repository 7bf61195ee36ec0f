"""Passes, time and memory of the solvers."""
