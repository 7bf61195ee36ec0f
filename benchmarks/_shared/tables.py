"""Data sets of the comparisons with other methods, and their splits into training and test rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from benchmarks._shared.data import data_directory

SETS = [
    "pima", "ionosphere", "oil", "yeast_me2", "abalone", "mammography-like", "spambase",
    "letter:A", "letter:K", "letter:O", "letter:Q", "letter:S", "letter:Z",
    "a9a", "adult", "ijcnn1", "cod-rna", "covtype", "covtype:5", "connect-4",
]  # fmt: skip


class Rows(NamedTuple):
    """Training and test rows with their labels."""

    X: np.ndarray
    X_test: np.ndarray
    y: np.ndarray
    y_test: np.ndarray


def mammography_like(n_rows: int = 9000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Six skewed features and 2.3 % positives, half of which look like the negatives."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n_rows) < 0.023).astype(int)
    X = rng.standard_normal((n_rows, 6)) @ rng.standard_normal((6, 6))
    visible = (y == 1) & (rng.random(n_rows) < 0.5)
    X += np.outer(visible, rng.normal(1.5, 0.5, 6))
    return np.sinh(X / 2), y


def load(name: str) -> tuple[np.ndarray, np.ndarray] | None:
    """Return features and labels of a set, or None if its file is absent; ``set:class`` picks a positive class."""
    if name == "mammography-like":
        return mammography_like()
    base, _, positive = name.partition(":")
    path = data_directory() / f"{base}.npz"
    if not path.exists():
        return None
    with np.load(path) as z:
        if "X" in z.files:
            X = z["X"].astype(np.float64)
        else:
            X = sparse.csr_array((z["data"], z["indices"], z["indptr"]), shape=tuple(z["shape"])).toarray()
        if not positive:
            return X.astype(np.float64), z["y"].astype(int)
        label = int(positive) if positive.isdigit() else ord(positive) - ord("A") + 1
        return X.astype(np.float64), (z["label"] == label).astype(int)


def split(name: str, seed: int, rows: int) -> Rows:
    """Return standardized training and test rows, two thirds and one third of at most ``rows``."""
    X, y = load(name)
    if y.size > rows:
        X, _, y, _ = train_test_split(X, y, train_size=rows, stratify=y, random_state=seed)
    return standardized(X, y, seed, 2 / 3, None)


def standardized(X: np.ndarray, y: np.ndarray, seed: int, train: float, test: int | None) -> Rows:
    """Split the rows and scale both parts by the training part."""
    X, X_test, y, y_test = train_test_split(X, y, train_size=train, test_size=test, stratify=y, random_state=seed)
    scaler = StandardScaler().fit(X)
    return Rows(scaler.transform(X), scaler.transform(X_test), y, y_test)


def large_test(name: str, seed: int, rows: int) -> Rows:
    """Return at most ``rows`` standardized training rows, and at most twice as many test rows."""
    X, y = load(name)
    train = min(rows, y.size * 2 // 3)
    return standardized(X, y, seed, train, min(2 * rows, y.size - train))


def load_or_say(name: str, said: set[str] = set()) -> bool:  # noqa: B006 - remembers what it has said
    """Return whether the file of a data set is available; print a note once if it is not."""
    base = name.partition(":")[0]
    there = base == "mammography-like" or (data_directory() / f"{base}.npz").exists()
    if not there and name not in said:
        said.add(name)
        print(f"skipped {name}: no {base}.npz in the data directory (set ROCMAX_DATA)")
    return there
