"""Changes of the arrays of tree models, at random."""

from __future__ import annotations

import io

import numpy as np

ODD_NUMBERS = [-(2**31), -100, -32, -2, -1, 0, 1, 2, 3, 7, 31, 64, 127, 10**6, 2**24, 2**31 - 1]
ODD_FRACTIONS = [*ODD_NUMBERS, 0.5, 1e-320, 1e308, -1e308, 1e39, np.nan, np.inf, -np.inf]


def change_entry(values, rng):
    """Replace one entry by another one of the array, an odd one or a neighbor."""
    values = values.copy()
    place, kind = int(rng.integers(values.size)), int(rng.integers(4))
    if values.dtype.kind == "b":
        values[place] ^= True
    elif kind == 0:
        values[place] = values[rng.integers(values.size)]
    elif kind == 1 and values.dtype.kind == "f":
        values[place] *= 1.5
    elif kind == 2:
        values[place] += rng.choice([-2, -1, 1, 2]).astype(values.dtype)
    else:
        odd = rng.choice(ODD_FRACTIONS if values.dtype.kind == "f" else ODD_NUMBERS)
        values[place] = odd if values.dtype.kind == "f" else np.int64(odd).astype(values.dtype)
    return values


def change_order(values, rng):
    i, j = rng.integers(0, values.size, 2)
    values = values.copy()
    values[[i, j]] = values[[j, i]]
    return values


def change_size(values, rng):
    """Delete or repeat entries."""
    i, j = sorted(int(place) for place in rng.integers(0, values.size + 1, 2))
    return np.concatenate([values[:i], values[j:]]) if rng.random() < 0.5 else np.concatenate([values[:j], values[i:]])


def change_type(values, rng):
    kinds = [np.int8, np.int32, np.int64, np.float32, np.float64, np.bool_, np.complex128, "U3", "S3"]
    with np.errstate(invalid="ignore"):
        return values.astype(kinds[int(rng.integers(len(kinds)))])


CHANGES = (change_entry, change_entry, change_entry, change_entry, change_order, change_size, change_type)


def mutate(content, rng):
    """Return a file of NumPy's format with one or two changes of its array, or of its bytes."""
    if rng.random() < 0.1:
        changed = bytearray(content)
        for place in rng.integers(0, len(changed), rng.integers(1, 4)):
            changed[place] = rng.integers(256)
        return bytes(changed)
    values = np.load(io.BytesIO(content))
    for _ in range(int(rng.integers(1, 3))):
        if values.size and values.dtype.kind in "bif":
            values = CHANGES[int(rng.integers(len(CHANGES)))](values, rng)
    return array_file(values)


def array_file(values):
    """Return an array in NumPy's file format."""
    out = io.BytesIO()
    np.save(out, values)
    return out.getvalue()
