"""Compiled loops for sequential algorithms, as functions on arrays.

A matrix is a two-dimensional array, or the tuple ``(data, indices, indptr)`` of a CSR matrix with sorted indices.
Each method is implemented once, based on a few row operations that exist for both formats. The cost of a step is
proportional to the number of stored values of the rows. All compiled code is in this file, because the cache on disk
detects only changes of the file that contains a loop.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rocmax._validation import canonical_csr

try:
    from llvmlite import ir
    from numba import njit, types
    from numba.extending import intrinsic, overload
except ImportError:
    njit = None
    warnings.warn(
        "numba is not installed: the loops of PSAMClassifier and of the online methods in rocmax.papers run in plain "
        "Python. The results are the same, but a fit takes about a hundred times as long. Install rocmax[streams]",
        stacklevel=2,
    )

# Sums may be reordered to use vector instructions; infinities and NaN are handled correctly.
_FAST = {"fastmath": {"reassoc", "contract", "nsz"}}


def _loop(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a loop when it is called for the first time with arguments of their types, once per machine."""
    if njit is None:
        return function
    try:
        compiled: Callable[..., Any] = njit(cache=True, nogil=True, **_FAST)(function)
    except RuntimeError:
        # There is no writable cache directory: the loop is compiled in each process.
        compiled = njit(nogil=True, **_FAST)(function)
    return compiled


def _either(matrix: Callable[..., Any], other: Callable[..., Any]) -> Callable[..., Any]:
    """Return an operation that is one of two functions: the first if its first argument is a matrix."""

    def chosen(first: Any) -> Callable[..., Any]:
        return matrix if getattr(first, "ndim", 0) == 2 else other

    def operation(*arguments: Any) -> Any:
        return chosen(arguments[0])(*arguments)

    if njit is not None:

        @overload(operation, jit_options=_FAST, strict=False)  # type: ignore[untyped-decorator]  # numba has no types
        def compiled(kind: Any, *_: Any) -> Callable[..., Any]:
            return chosen(kind)

    return operation


def loop_form(X: Any) -> Any:
    """Return a matrix in the format of the loops: C-ordered array, or CSR arrays without duplicates."""
    if not sparse.issparse(X):
        return _multiplied(np.ascontiguousarray(X))
    X = canonical_csr(X)
    return _multiplied(X.data), X.indices, X.indptr


def _multiplied(values: NDArray[Any]) -> NDArray[Any]:
    # A product of numbers in single precision is one in Python, where a compiled loop multiplies in double precision.
    return values if njit is not None else values.astype(np.float64, copy=False)


# Unsigned indices avoid the check for negative values, which would take as long as the arithmetic.
_uint = np.uint64

# Scale below which the weights are rescaled: the average is a difference, and its rounding error grows as the scale
# decreases.
_SMALLEST = 1e-4
# Rows are prefetched this number of steps before they are used, about the latency of main memory. This saves up to half
# of the time, and has no overhead if the rows are in the cache: benchmarks/solvers/row_prefetch.py.
_AHEAD = 4
_LINE = 8  # double-precision numbers in a cache line
_MOST_LINES = 16  # the rest of a long row is prefetched by the processor


if njit is not None:

    @intrinsic
    def _prefetch(_, array, index):
        """Prefetch the cache line that contains ``array[index]``."""

        def generate(context, builder, signature, args):
            start = context.make_array(signature.args[0])(context, builder, args[0]).data
            byte, integer = ir.IntType(8).as_pointer(), ir.IntType(32)
            kind = ir.FunctionType(ir.VoidType(), [byte, integer, integer, integer])
            fetch = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
            place = builder.bitcast(builder.gep(start, [args[1]]), byte)
            builder.call(fetch, [place, integer(0), integer(3), integer(1)])
            return context.get_dummy_value()

        return types.void(array, types.uint64), generate


def _dense_fetch(X, i):
    row = X[i]
    for k in range(0, min(row.size, _LINE * _MOST_LINES), _LINE):
        _prefetch(row, _uint(k))


def _csr_fetch(X, i):
    data, indices, indptr = X
    start, last = _uint(indptr[i]), _uint(indptr[i + _uint(1)]) - _uint(1)
    # Prefetching an address out of bounds is harmless, and a check would take time.
    _prefetch(data, start)
    _prefetch(data, start + _uint(_LINE))
    _prefetch(data, last)
    _prefetch(indices, start)
    _prefetch(indices, last)


def _dense_dot(X, i, v):
    row, total = X[i], 0.0
    for k in range(v.size):
        total += v[k] * row[k]
    return total


def _csr_dot(X, i, v):
    data, indices, indptr = X
    total = 0.0
    for k in range(indptr[i], indptr[i + _uint(1)]):
        total += v[_uint(indices[_uint(k)])] * data[_uint(k)]
    return total


def _dense_squared(X, i):
    row, total = X[i], 0.0
    for k in range(row.size):
        total += row[k] ** 2
    return total


def _csr_squared(X, i):
    data, _, indptr = X
    total = 0.0
    for k in range(indptr[i], indptr[i + _uint(1)]):
        total += data[_uint(k)] ** 2
    return total


def _dense_add(X, i, step, v):
    row = X[i]
    for k in range(v.size):
        v[k] += step * row[k]


def _csr_add(X, i, step, v):
    data, indices, indptr = X
    for k in range(indptr[i], indptr[i + _uint(1)]):
        v[_uint(indices[_uint(k)])] += step * data[_uint(k)]


def _dense_add_both(X, i, step, v, other, u):
    row = X[i]
    for k in range(v.size):
        v[k] += step * row[k]
        u[k] += other * row[k]


def _csr_add_both(X, i, step, v, other, u):
    data, indices, indptr = X
    for k in range(indptr[i], indptr[i + _uint(1)]):
        place, value = _uint(indices[_uint(k)]), data[_uint(k)]
        v[place] += step * value
        u[place] += other * value


fetch = _either(_dense_fetch, _csr_fetch) if njit is not None else lambda *_: None
row_dot = _either(_dense_dot, _csr_dot)
row_squared = _either(_dense_squared, _csr_squared)
row_add = _either(_dense_add, _csr_add)
row_add_both = _either(_dense_add_both, _csr_add_both)


def _dense_pair_dot(X, i, j, v):
    left, right, total = X[i], X[j], 0.0
    for k in range(v.size):
        total += v[k] * (left[k] - right[k])
    return total


def _csr_pair_dot(X, i, j, v):
    return row_dot(X, i, v) - row_dot(X, j, v)


def _dense_pair_squared(X, i, j, work):
    left, right, total = X[i], X[j], 0.0
    for k in range(left.size):
        total += (left[k] - right[k]) ** 2
    return total


def _csr_pair_squared(X, i, j, work):
    # Not |x_i|^2 + |x_j|^2 - 2 x_i.x_j, which is dominated by rounding error for nearly equal rows; steps divide by it.
    data, indices, indptr = X
    total = 0.0
    for k in range(indptr[i], indptr[i + _uint(1)]):
        work[_uint(indices[_uint(k)])] = data[_uint(k)]
    for k in range(indptr[j], indptr[j + _uint(1)]):
        place = _uint(indices[_uint(k)])
        total += (work[place] - data[_uint(k)]) ** 2
        work[place] = 0.0
    for k in range(indptr[i], indptr[i + _uint(1)]):
        place = _uint(indices[_uint(k)])
        total += work[place] ** 2
        work[place] = 0.0
    return total


def _dense_pair_add_both(X, i, j, step, v, other, u):
    left, right = X[i], X[j]
    for k in range(v.size):
        value = left[k] - right[k]
        v[k] += step * value
        u[k] += other * value


def _csr_pair_add_both(X, i, j, step, v, other, u):
    row_add_both(X, i, step, v, other, u)
    row_add_both(X, j, -step, v, -other, u)


def _dense_pair_values(X, i, j, index, value):
    left, right = X[i], X[j]
    for k in range(left.size):
        index[k] = k
        value[k] = left[k] - right[k]
    return left.size


def _csr_pair_values(X, i, j, index, value):
    data, indices, indptr = X
    left, right, count = indptr[i], indptr[j], 0
    left_end, right_end = indptr[i + _uint(1)], indptr[j + _uint(1)]
    while left < left_end or right < right_end:
        from_left = right == right_end or (left < left_end and indices[left] <= indices[right])
        from_right = left == left_end or (right < right_end and indices[right] <= indices[left])
        index[count] = indices[left] if from_left else indices[right]
        value[count] = (data[left] if from_left else 0.0) - (data[right] if from_right else 0.0)
        left += from_left
        right += from_right
        count += 1
    return count


pair_dot = _either(_dense_pair_dot, _csr_pair_dot)
pair_squared = _either(_dense_pair_squared, _csr_pair_squared)  # work is zero before and after
pair_add_both = _either(_dense_pair_add_both, _csr_pair_add_both)
pair_values = _either(_dense_pair_values, _csr_pair_values)  # fills indices and values of x_i - x_j, returns a count


# The weights are scale * v, and the sum of the averaged iterates is weight * v - u. Shrinking and averaging each change
# one number, and a step changes v and u only at the stored values of the rows.


@_loop
def _multiply_out(v, u, scale, weight):
    """Rescale so that ``v`` are the weights and ``u`` is minus the sum of the iterates."""
    for k in range(v.size):
        u[k] -= weight * v[k]
        v[k] *= scale


@_loop
def pair_steps(X, first, second, v, u, work, state, rules):
    """Take PSAM (proximal) or ASAM steps on the given pairs; return the state: step number and state of the average."""
    (t, scale, weight, count), (alpha, t0, rskip, askip, start, proximal) = state, rules
    until_shrink, until_average = rskip - t % rskip, askip - t % askip
    for k in range(first.size):
        i, j = _uint(first[k]), _uint(second[k])
        later = min(k + _AHEAD, first.size - 1)
        fetch(X, _uint(first[later]))
        fetch(X, _uint(second[later]))
        t += 1
        loss = 1.0 - scale * pair_dot(X, i, j, v)
        if loss > 0.0:
            step = 1.0 / (alpha * (t + t0))
            if proximal:
                squared = pair_squared(X, i, j, work)
                step = min(step, loss / squared) if squared > 0.0 else 0.0
            else:
                step *= min(loss, 1.0)
            step /= scale
            pair_add_both(X, i, j, step, v, step * weight, u)
        until_shrink -= 1
        if until_shrink == 0:
            until_shrink = rskip
            scale *= 1.0 - rskip / (t + t0)
            if scale < _SMALLEST:
                _multiply_out(v, u, scale, weight)
                scale, weight = 1.0, 0.0
        until_average -= 1
        if until_average == 0:
            until_average = askip
            if t > start:
                weight += scale
                count += 1
    return t, scale, weight, count


@_loop
def saddle_steps(X, positive, rows, v, u, state, zeta, radius):
    """Take SOLAM steps on the given rows; return the state."""
    t, scale, weight, total, a, b, alpha, p, longest = state
    squared = scale * scale * (v * v).sum()
    for k in range(rows.size):
        i = _uint(rows[k])
        fetch(X, _uint(rows[min(k + _AHEAD, rows.size - 1)]))
        t += 1
        gamma = zeta / sqrt(t)
        weight += gamma * scale
        total += gamma
        inner, length = scale * row_dot(X, i, v), row_squared(X, i)
        longest = max(longest, sqrt(length))
        if positive[i]:
            p += (1.0 - p) / t
            error = inner - a
            slope = 2.0 * (1.0 - p) * (error - 1.0 - alpha)
            rise = -2.0 * (1.0 - p) * (inner + p * alpha)
            a += 2.0 * gamma * (1.0 - p) * error
        else:
            p -= p / t
            error = inner - b
            slope = 2.0 * p * (error + 1.0 + alpha)
            rise = 2.0 * p * (inner - (1.0 - p) * alpha)
            b += 2.0 * gamma * p * error
        step = -gamma * slope
        row_add_both(X, i, step / scale, v, step * weight / scale, u)
        squared += step * (2.0 * inner + step * length)
        if squared > radius * radius:
            scale *= radius / sqrt(squared)
            squared = radius * radius
            if scale < _SMALLEST:
                _multiply_out(v, u, scale, weight)
                scale, weight = 1.0, 0.0
        bound = radius * longest
        a, b = min(max(a, -bound), bound), min(max(b, -bound), bound)
        alpha = min(max(alpha + gamma * rise, -2.0 * bound), 2.0 * bound)
    return t, scale, weight, total, a, b, alpha, p, longest


@_loop
def buffer_steps(X, positive, rows, draws, buffers, seen, w, work, late, C, sequential):
    """Take OAM steps on the given rows, with reservoirs of row indices; ``buffers[1]`` contains positives."""
    capacity = buffers.shape[1]
    for k in range(rows.size):
        i, own = _uint(rows[k]), 1 if positive[rows[k]] else 0
        sign, other = 2.0 * own - 1.0, buffers[1 - own]
        largest = 0.5 * C * max(1.0, seen[1 - own] / capacity)
        n_late = 0
        for place in range(min(seen[1 - own], capacity)):
            j = _uint(other[place])
            loss = 1.0 - sign * pair_dot(X, i, j, w)
            if loss > 0.0 and sequential:
                squared = pair_squared(X, i, j, work)
                if squared > 0.0:
                    step = sign * min(largest, loss / squared)
                    row_add(X, i, step, w)
                    row_add(X, j, -step, w)
            elif loss > 0.0:
                late[n_late] = other[place]
                n_late += 1
        row_add(X, i, sign * largest * n_late, w)
        for place in range(n_late):
            row_add(X, _uint(late[place]), -sign * largest, w)
        seen[own] += 1
        # The n-th row of its class replaces a random row with probability capacity / n.
        slot = seen[own] - 1 if seen[own] <= capacity else int(draws[k] * seen[own])
        if slot < capacity:
            buffers[own, slot] = rows[k]


def _diagonal_product(covariance, index, value, count, product):
    variance = 0.0
    for k in range(count):
        product[k] = covariance[index[k]] * value[k]
        variance += product[k] * value[k]
    return variance


def _full_product(covariance, index, value, count, product):
    product[:] = 0.0
    for k in range(count):
        row = covariance[index[k]]
        for place in range(row.size):
            product[place] += value[k] * row[place]
    variance = 0.0
    for k in range(count):
        variance += product[index[k]] * value[k]
    return variance


def _diagonal_update(covariance, mean, index, count, product, alpha, beta):
    for k in range(count):
        mean[index[k]] += alpha * product[k]
        covariance[index[k]] -= beta * product[k] * product[k]


def _full_update(covariance, mean, index, count, product, alpha, beta):
    for place in range(mean.size):
        mean[place] += alpha * product[place]
        row, factor = covariance[place], beta * product[place]
        for k in range(row.size):
            row[k] -= factor * product[k]


covariance_product = _either(_full_product, _diagonal_product)  # fills covariance @ x, returns x.covariance @ x
covariance_update = _either(_full_update, _diagonal_update)


@_loop
def confidence_steps(X, positive, rows, buffers, seen, mean, covariance, index, value, product, C, phi):
    """Take CBR steps on the given rows, with the last row indices of each class; ``buffers[1]`` contains positives."""
    capacity = buffers.shape[1]
    psi, xi = 1.0 + phi * phi / 2.0, 1.0 + phi * phi
    for k in range(rows.size):
        i, own = _uint(rows[k]), 1 if positive[rows[k]] else 0
        sign, other = 2.0 * own - 1.0, buffers[1 - own]
        for place in range(min(seen[1 - own], capacity)):
            count = pair_values(X, i, _uint(other[place]), index, value)
            margin = 0.0
            for part in range(count):
                margin += mean[index[part]] * value[part]
            margin *= sign
            variance = covariance_product(covariance, index, value, count, product)
            if variance > 0.0 and margin < phi * sqrt(variance):
                root = sqrt(margin * margin * phi**4 / 4.0 + variance * phi * phi * xi)
                alpha = min(C, (root - margin * psi) / (variance * xi))
                spread = (
                    sqrt(alpha * alpha * variance * variance * phi * phi + 4.0 * variance) - alpha * variance * phi
                ) / 2
                beta = alpha * phi / (spread + variance * alpha * phi)
                covariance_update(covariance, mean, index, count, product, sign * alpha, beta)
        buffers[own, seen[own] % capacity] = rows[k]
        seen[own] += 1
