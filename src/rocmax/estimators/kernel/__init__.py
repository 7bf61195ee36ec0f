"""Kernel machines for the AUC."""
