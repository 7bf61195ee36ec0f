"""Plain text tables by the parser of pandas 3.1, where it gives what pyarrow would give: on few cores it is faster.

Its result is taken only if nothing in the file leaves room for two readings; for everything else, and for every error,
pyarrow is asked.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from rocmax.data._files import Source

# Older parsers are slower than pyarrow, and round the last digit of some numbers.
OLDEST = (3, 1)
# Rows from which the types are guessed before the whole file is read.
PEEK = 1000
CHUNK = 1 << 18
# Quotes hide delimiters, and the two readers do not agree on what kind of number +1 is.
DOUBTFUL = (b'"', b"+")
# Words that may be something else than text.
WORDS = {"true", "false", "inf", "infinity"}


class Layout(NamedTuple):
    """What is known of a table before it is read: its columns, those that are wanted, and kinds that were declared."""

    names: Sequence[str]
    wanted: Sequence[str]
    kinds: Mapping[str, str]
    separator: str
    missing: Sequence[str]


def read(source: Source, layout: Layout) -> Any | None:
    """Return the wanted columns of a file as a DataFrame, or None if the other reader should look at it."""
    import pandas as pd

    is_new = tuple(int(part) for part in pd.__version__.split(".")[:2]) >= OLDEST
    if not is_new or source.compression is not None or not source.path.is_file() or not layout.separator.isascii():
        return None
    # The parser looks at all columns, the other one at those that are wanted.
    if 2 * len(layout.wanted) < len(layout.names) or _parse(source, layout, PEEK) is None:
        return None
    marks = _count(source, layout.separator.encode())
    if marks is None:
        return None
    lines, separators = marks
    frame = _parse(source, layout)
    # pandas refuses long rows and fills up short ones, which leaves too few separators.
    if frame is None or lines != len(frame) + 1 or separators != lines * (len(layout.names) - 1):
        return None
    return frame


def _parse(source: Source, layout: Layout, n_rows: int | None = None) -> Any | None:
    import pandas as pd

    try:
        with warnings.catch_warnings(), source.path.open("rb") as file:
            warnings.simplefilter("ignore", pd.errors.DtypeWarning)
            frame = pd.read_csv(
                file,
                sep=layout.separator,
                engine="c",
                header=0,
                names=list(layout.names),  # pandas has names of its own for columns without one
                dtype={name: str for name, kind in layout.kinds.items() if kind == "text"},
                na_values=list(layout.missing),
                keep_default_na=False,
                nrows=n_rows,
            )
    except (ValueError, OverflowError):  # what is wrong, and where, is for the other reader to say
        return None
    if frame.shape[1] != len(layout.names) or not isinstance(frame.index, pd.RangeIndex):
        return None
    if list(layout.wanted) != list(layout.names):
        frame = frame[list(layout.wanted)]
    # A column of a frame takes longer to get than a wide row of numbers to parse.
    doubtful = [
        name
        for name, dtype in zip(layout.wanted, frame.dtypes, strict=True)
        if dtype.kind not in "bif" and layout.kinds.get(name) != "text"
    ]
    return frame if all(_is_clear(frame[name], layout.kinds.get(name), layout) for name in doubtful) else None


def _is_clear(column: Any, kind: str | None, layout: Layout) -> bool:
    """Whether a column that holds no numbers or booleans is text that can be nothing else."""
    import pandas as pd

    if kind == "number" or not (
        isinstance(column.dtype, pd.StringDtype) or pd.api.types.infer_dtype(column, skipna=True) == "string"
    ):
        return False
    first = str(column.loc[column.first_valid_index()])
    # pandas keeps the words for missing values in a column with a whole number that is too large.
    return first[:1].isalpha() and first.lower() not in WORDS | {word.lower() for word in layout.missing}


def _count(source: Source, separator: bytes) -> tuple[int, int] | None:
    """Return the numbers of lines and of separators; None if something in the file can be read in two ways."""
    lines, separators, last = 0, 0, b"\n"
    with source.path.open("rb") as file:
        while part := file.read(CHUNK):
            if any(mark in part for mark in DOUBTFUL):
                return None
            content = np.frombuffer(part, np.uint8)
            lines += int(np.count_nonzero(content == ord("\n")))
            separators += int(np.count_nonzero(content == ord(separator)))
            last = part[-1:]
    return lines + (last != b"\n"), separators
