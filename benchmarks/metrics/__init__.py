"""Intervals and tests in simulations."""
