"""Data sets for the benchmarks: synthetic ones, and real ones where their files are available."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import sparse

ROOT = Path(__file__).resolve().parents[2]


class Dataset(NamedTuple):
    """Standardized features in double precision, and labels 0/1."""

    name: str
    X: np.ndarray
    y: np.ndarray


def data_directory() -> Path:
    """Return the directory of the real sets: ``ROCMAX_DATA``, or ``../shared/data`` next to the repository."""
    given = os.environ.get("ROCMAX_DATA")
    return Path(given) if given else ROOT.parent / "shared" / "data"


def load_real(name: str) -> Dataset | None:
    """Return a real set, all rows, or None (and say so) if its file is absent."""
    path = data_directory() / f"{name}.npz"
    if not path.exists():
        print(f"skipped {name}: no {path.name} in the data directory (set ROCMAX_DATA)")
        return None
    with np.load(path) as z:
        y = z["y"].astype(np.int64)
        if "X" in z.files:
            X = z["X"].astype(np.float64)
        else:
            parts = (z["data"], z["indices"], z["indptr"])
            X = sparse.csr_array(parts, shape=tuple(z["shape"])).toarray().astype(np.float64)
    return Dataset(name, standardize(X), y)


def synthetic(n_rows: int, n_features: int, positives: float = 0.09, seed: int = 0) -> Dataset:
    """Return Gaussian features and the top share of a linear score with noise as positives."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_features))
    direction = rng.standard_normal(n_features)
    signal = X @ (direction / np.linalg.norm(direction)) + 0.5 * rng.standard_normal(n_rows)
    y = (signal > np.quantile(signal, 1 - positives)).astype(np.int64)
    return Dataset(f"synthetic {n_rows:.0e}".replace("e+0", "e"), standardize(X), y)


def standardize(X: np.ndarray) -> np.ndarray:
    """Center and scale the columns in place by their population deviation; a constant column is divided by 1."""
    X -= X.mean(axis=0)
    deviation = X.std(axis=0)
    # Centring leaves rounding dust in a constant column, not an exact zero.
    X /= np.where(deviation > 1e-12, deviation, 1.0)
    return X
