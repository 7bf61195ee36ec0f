"""Bootstrap resamples as multiplicities of blocks of ties or, in large samples, of groups of blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from rocmax._typing import Array
from rocmax.metrics.curve import Blocks, RankedRows

# Below this number of copies per block, drawing and counting copies is faster than drawing the counts.
_FEW_COPIES = 30
# Up to this number of distinct scores, blocks are not grouped.
N_EXACT = 20_000
# The standard deviation of a rank in a resample is at least this number of groups.
_FINENESS = 5


def resamples(blocks: Blocks, count: int, rng: np.random.Generator, depth: float = 1.0) -> Iterator[Blocks]:
    """Yield the blocks with resampled weights; blocks of tied rows are drawn instead of rows.

    With more than ``N_EXACT`` blocks, neighbouring blocks are grouped; see :func:`group_starts`.
    """
    starts = group_starts(blocks, depth)
    draw_negative, draw_positive = (_redrawer(np.add.reduceat(weight, starts), rng) for weight in blocks)
    for _ in range(count):
        yield Blocks(draw_negative(), draw_positive())


def paired_resamples(
    models: Sequence[RankedRows], count: int, rng: np.random.Generator, depth: float = 1.0
) -> Iterator[list[Blocks]]:
    """Yield the blocks of several models of the same rows, with the same resampled rows for each model."""
    groups, sizes = [], []
    for rows in models:
        starts = group_starts(rows.blocks(), depth)
        group_of_block = np.searchsorted(starts, np.arange(rows.n_blocks), "right") - 1
        groups.append(group_of_block[rows.block])
        sizes.append(starts.size)
    positive, weight = models[0].positive, models[0].weight
    draws = [
        _joint_redrawer(weight[members], [group[members] for group in groups], sizes, rng)
        for members in (~positive, positive)
    ]
    for _ in range(count):
        negatives, positives = (draw() for draw in draws)
        yield [Blocks(*classes) for classes in zip(negatives, positives, strict=True)]


def cluster_resamples(
    models: Sequence[RankedRows], groups: NDArray[np.intp], count: int, rng: np.random.Generator, depth: float = 1.0
) -> Iterator[list[Blocks]]:
    """Yield the blocks of several models of the same rows, with resampled groups of rows.

    Groups with positives only, with negatives only, and with both are resampled separately. Thus every resample has
    both classes, and groups of one row each are resampled as rows are.
    """
    positive, weight = models[0].positive, models[0].weight
    places, sizes = [], []
    for rows in models:
        starts = group_starts(rows.blocks(), depth)
        place = np.searchsorted(starts, rows.block, "right") - 1
        places.append(place + starts.size * positive)
        sizes.append(starts.size)
    kinds = np.bincount(groups, positive) > 0, np.bincount(groups, ~positive) > 0
    strata = [np.flatnonzero(one & two) for one, two in (kinds, (~kinds[0], kinds[1]), (kinds[0], ~kinds[1]))]
    times = np.zeros(kinds[0].size)
    for _ in range(count):
        for members in strata:
            times[members] = np.bincount(rng.integers(max(1, members.size), size=members.size), minlength=members.size)
        drawn = weight * times[groups]
        counted = (np.bincount(place, drawn, 2 * size) for place, size in zip(places, sizes, strict=True))
        sums = [total.astype(np.float64, copy=False) for total in counted]
        yield [Blocks(total[:size], total[size:]) for total, size in zip(sums, sizes, strict=True)]


def n_independent(positive: NDArray[np.bool_], weight: Array, groups: NDArray[np.intp] | None) -> float:
    """Return the number of independent rows, or groups, of the class that has fewer."""
    if groups is None:
        return float(min(weight[positive].sum(), weight[~positive].sum()))
    return float(min(np.unique(groups[members]).size for members in (positive, ~positive)))


def group_starts(blocks: Blocks, depth: float = 1.0) -> NDArray[np.intp]:
    r"""Return the first block of each group of neighbouring blocks; blocks are not grouped up to ``N_EXACT`` blocks.

    In a resample the number of rows above a score of rank ``j``, counted from the nearer end, has a standard deviation
    of about :math:`\sqrt{j}`. A group there has :math:`\sqrt{j} / 5` rows of either class, and one row near the ends.
    Treating groups as ties changes a measure by a tenth of its standard error on average and leaves at most
    :math:`15 (\sqrt{n} + \sqrt{m})` groups. All blocks beyond the false-positive rate ``depth`` form one group.
    """
    if blocks.negative.size <= N_EXACT:
        return np.arange(blocks.negative.size)
    new = np.ones(blocks.negative.size, dtype=bool)
    new[1:] = (np.diff(_places(blocks.negative)) > 0) | (np.diff(_places(blocks.positive)) > 0)
    if depth < 1:
        reach = depth * float(blocks.negative.sum())
        # Ten standard deviations beyond the rate, which no resample reaches.
        beyond = np.cumsum(blocks.negative) > reach + 10 * np.sqrt(reach) + 100
        new &= ~beyond
        new[np.argmax(beyond)] = True
    return np.flatnonzero(new)


def _places(weight: Array) -> Array:
    """Return an integer for each block that increases by one per fifth of a standard deviation of the rank."""
    before = np.cumsum(weight) - weight
    half = float(weight.sum()) / 2
    rising, falling = np.minimum(before, half), np.clip(2 * half - before, 0.0, half)
    result: Array = np.floor(2 * _FINENESS * (np.sqrt(rising) + np.sqrt(half) - np.sqrt(falling)))
    return result


def _redrawer(weight: Array, rng: np.random.Generator) -> Callable[[], Array]:
    """Return a function that resamples the copies of one class."""
    total, n_copies = _copies(weight)
    occupied = np.flatnonzero(weight)
    if _countable(weight, n_copies, occupied.size):
        owner = np.repeat(np.arange(weight.size), weight.astype(np.intp))
        return lambda: np.bincount(owner[rng.integers(n_copies, size=n_copies)], minlength=weight.size).astype(float)

    def draw() -> Array:
        drawn = np.zeros(weight.size)
        drawn[occupied] = rng.multinomial(n_copies, weight[occupied] / total) * (total / n_copies)
        return drawn

    return draw


def _joint_redrawer(
    weight: Array, groups: list[NDArray[np.intp]], sizes: list[int], rng: np.random.Generator
) -> Callable[[], list[Array]]:
    """Return a function that resamples the rows of one class and counts them in the groups of each model."""
    _, n_copies = _copies(weight)
    if not _countable(weight, n_copies, weight.size):
        draw_rows = _redrawer(weight, rng)

        def weigh() -> list[Array]:
            drawn = draw_rows()
            counts = (np.bincount(group, drawn, size) for group, size in zip(groups, sizes, strict=True))
            return [summed.astype(np.float64, copy=False) for summed in counts]

        return weigh
    copies = weight.astype(np.intp)
    apart = np.ones(weight.size, dtype=bool)
    if weight.size > N_EXACT:
        # Rows that are in the last group of every model need not be distinguished.
        apart = np.any([group < size - 1 for group, size in zip(groups, sizes, strict=True)], axis=0)
    owned = [np.repeat(group[apart], copies[apart]) for group in groups]
    n_owned = owned[0].size

    def count() -> list[Array]:
        n_apart = n_owned if n_owned == n_copies else rng.binomial(n_copies, n_owned / n_copies)
        rows = rng.integers(max(1, n_owned), size=n_apart)
        found = [np.bincount(group.take(rows), minlength=size) for group, size in zip(owned, sizes, strict=True)]
        for counts in found:
            counts[-1] += n_copies - n_apart
        return [counts.astype(np.float64) for counts in found]

    return count


def _copies(weight: Array) -> tuple[float, int]:
    """Return the total weight of a class and the corresponding number of copies."""
    total = float(weight.sum())
    n_copies = round(total)
    if n_copies < 1:
        raise ValueError(
            f"sample_weight must sum to at least 1 in each class, because the bootstrap draws copies; got {total:g}; "
            "scale sample_weight to numbers of copies"
        )
    return total, n_copies


def _countable(weight: Array, n_copies: int, n_places: int) -> bool:
    """Return whether the weights are integers and the copies few enough to be drawn individually."""
    return n_copies < _FEW_COPIES * n_places and bool((weight == np.floor(weight)).all())
