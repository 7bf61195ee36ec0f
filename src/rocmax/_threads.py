"""Number of threads: what the user asks for, or by the work and the cores that the process may use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from threading import Lock

from joblib import cpu_count, parallel_config
from threadpoolctl import threadpool_info, threadpool_limits

# Values that an engine reads in each round, or leaves that a prediction adds up, for each thread. With fewer, threads
# wait for each other longer than they work, and on a busy machine they wait with a full processor.
WORK_PER_THREAD = 2_000_000
# Variables by which a user sets the number of threads of BLAS.
BLAS_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")

_wanted: ContextVar[int | None] = ContextVar("threads", default=None)


def engine_threads(n_jobs: int | None, work: int) -> int | None:
    """Return the number of threads of an engine of trees."""
    wanted = _wanted.get() if n_jobs is None else n_jobs
    if wanted is not None:
        if wanted == 0:
            raise ValueError("n_jobs must be None, a positive integer, or -1 for all cores; got 0")
        return int(wanted) if wanted > 0 else max(1, int(cpu_count()) + 1 + int(wanted))
    if os.environ.get("OMP_NUM_THREADS"):
        return None
    # cpu_count respects the affinity and the quota of the process.
    most = min(int(cpu_count()), work // WORK_PER_THREAD)
    if most <= 1:
        return 1
    return min([most, *(int(pool["num_threads"]) for pool in threadpool_info() if pool["user_api"] == "openmp")])


@contextmanager
def using_threads(wanted: int | None) -> Iterator[None]:
    """Set the number of threads of engines, BLAS and workers while the block runs.

    Without a number, engines follow their work, and BLAS has one thread unless a variable such as ``OMP_NUM_THREADS``
    is set: products of a matrix and a vector gain little from more, and lose much on a busy machine.
    """
    token = _wanted.set(wanted)
    try:
        with ExitStack() as stack:
            if wanted is not None:
                stack.enter_context(parallel_config("loky", inner_max_num_threads=wanted))
            if wanted is not None or not any(os.environ.get(name) for name in BLAS_VARIABLES):
                stack.enter_context(_blas.limited(wanted or 1))
            yield
    finally:
        _wanted.reset(token)


class _BlasLimit:
    """Limit on the threads of BLAS, which holds for all threads of the process.

    The first block that is entered sets it and the last one that is left restores it, so that blocks in several threads
    do not undo each other's out of order.
    """

    def __init__(self) -> None:
        self._lock, self._inside = Lock(), 0
        self._limits: threadpool_limits | None = None

    @contextmanager
    def limited(self, number: int) -> Iterator[None]:
        """Limit the threads while the block runs."""
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._limits = threadpool_limits(number, user_api="blas")
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if self._inside == 0 and self._limits is not None:
                    self._limits.restore_original_limits()


_blas = _BlasLimit()
