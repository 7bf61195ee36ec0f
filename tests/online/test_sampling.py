"""Batches of a stream and samples of it: nothing is lost, nothing is doubled, every row has the same chance."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from rocmax.online.sampling import Buffer, Reservoir

law = settings(max_examples=30, deadline=None, derandomize=True, database=None)


@law
@given(st.lists(st.integers(0, 9), max_size=12), st.integers(1, 7), st.booleans())
def test_a_buffer_hands_on_every_row_once_and_in_order(chunks, size, as_csr):
    buffer = Buffer(size)
    numbers = np.arange(1.0, sum(chunks) + 1)
    out, start = [], 0
    for chunk in chunks:
        X = numbers[start : start + chunk, None]
        y = X[:, 0] % 2 == 0
        start += chunk
        for rows, labels in buffer.push(sparse.csr_array(X) if as_csr else X, y):
            assert rows.shape == (size, 1)
            out.append((rows.toarray() if as_csr else rows, labels))
        assert len(buffer) == start % size
    if len(buffer):  # what waits comes with the next rows
        n_waiting = len(buffer)
        filler = np.zeros((size - n_waiting, 1))
        ((rows, labels),) = buffer.push(sparse.csr_array(filler) if as_csr else filler, filler[:, 0] > 0)
        out.append(((rows.toarray() if as_csr else rows)[:n_waiting], labels[:n_waiting]))
        assert len(buffer) == 0
    if out:
        np.testing.assert_array_equal(np.concatenate([rows[:, 0] for rows, _ in out]), numbers)
        np.testing.assert_array_equal(np.concatenate([labels for _, labels in out]), numbers % 2 == 0)


def test_a_buffer_keeps_no_view_of_the_callers_rows():
    X, y = np.ones((3, 1)), np.array([True, False, True])
    buffer = Buffer(2)
    list(buffer.push(X, y))
    X[:], y[:] = 7.0, False
    ((rows, labels),) = buffer.push(np.zeros((1, 1)), np.array([False]))
    assert rows.tolist() == [[1.0], [0.0]]
    assert labels.tolist() == [True, False]


@pytest.mark.parametrize("chunk", [1, 7, 40])
def test_every_row_is_as_likely_to_stay_as_any_other(chunk):
    n, size, repeats = 40, 8, 3000
    rng = np.random.RandomState(0)
    X = np.arange(n, dtype=float)[:, None]
    counts = np.zeros(n)
    for _ in range(repeats):
        sample = Reservoir(size)
        for start in range(0, n, chunk):
            part = X[start : start + chunk]
            sample.add(part, part[:, 0] > 20, rng)
        rows, labels = sample.rows()
        assert len(sample) == size == np.unique(rows).size
        assert sample.seen == n
        np.testing.assert_array_equal(labels, rows[:, 0] > 20)
        counts[rows[:, 0].astype(int)] += 1
    expected = repeats * size / n
    # Sum of squared deviations of a fair draw: chi-square with 39 degrees of freedom, scaled by 1 - size / n.
    assert ((counts - expected) ** 2 / expected).sum() / (1 - size / n) < 75


def test_a_sample_larger_than_the_stream_is_the_stream():
    X = sparse.csr_array(np.eye(5))
    sample = Reservoir(9)
    sample.add(X, np.arange(5) < 2, np.random.RandomState(0))
    rows, labels = sample.rows()
    np.testing.assert_array_equal(rows.toarray(), np.eye(5))
    assert labels.tolist() == [True, True, False, False, False]
