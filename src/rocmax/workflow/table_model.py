"""A fitted model with its facts, as it is saved to a file and loaded from one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rocmax._typing import Index
from rocmax.model_io import load_fitted, save


class TableModel:
    """A model fitted to a table, with what later steps need to know about it.

    :func:`fit_table` and :func:`load_model` make these.

    Parameters
    ----------
    model : estimator
        The fitted pipeline of preprocessing and classifier; with a limit on the false-positive rate, a
        :class:`rocmax.FPRThresholdClassifier` around it.
    facts : dict
        Columns and their kinds, classes, window, measure, tuning, numbers of rows, versions; all of them plain values.
    notes : sequence of str, default=()
        What the user should know about the fit: columns that were left out, for example.
    path : Path, default=None
        The file that the model comes from.
    held_out_rows : ndarray of int, default=None
        Places in the table of the rows that were held out; None for a model from a file.

    Attributes
    ----------
    model, facts, notes, path, held_out_rows
        As given.
    """

    def __init__(
        self,
        model: Any,
        facts: dict[str, Any],
        *,
        notes: Any = (),
        path: Path | None = None,
        held_out_rows: Index | None = None,
    ) -> None:
        self.model = model
        self.facts = facts
        self.notes: list[str] = list(notes)
        self.path = path
        self.held_out_rows = held_out_rows

    @property
    def name(self) -> str:
        """The name of the file without its ending; the name of the model if there is no file."""
        return self.facts["model"] if self.path is None else self.path.stem

    @property
    def positive(self) -> str:
        """The label of the positive class."""
        result: str = self.facts["positive"]
        return result

    @property
    def threshold(self) -> float | None:
        """The lowest score of the classifier that is taken for positive; None without a limit."""
        return self.facts.get("threshold")

    @property
    def held_out(self) -> dict[str, Any] | None:
        """The measure on the rows held out, with the ends of its interval."""
        return self.facts.get("held_out")

    @property
    def place(self) -> str:
        """What messages call the model."""
        return "the model" if self.path is None else str(self.path)

    def save(self, path: str | Path) -> None:
        """Save the model and its facts to a file, which is written whole or not at all.

        Parameters
        ----------
        path : str or Path
            The file, ``model.rocmax`` by custom. :func:`load_model` and the command ``rocmax`` read it.
        """
        save(self.model, path, about=self.facts)

    def __repr__(self) -> str:
        limit = "" if self.facts["max_fpr"] == 1.0 else f", max_fpr={self.facts['max_fpr']:g}"
        return f"TableModel({self.facts['model']!r}, positive={self.positive!r}{limit})"


def load_model(path: str | Path, *, max_bytes: int | None = None) -> TableModel:
    """Load a model that :meth:`TableModel.save` or ``rocmax fit`` saved; nothing in the file is executed.

    Parameters
    ----------
    path : str or Path
        The file.
    max_bytes : int, default=None
        Maximum number of bytes that the file may unpack to, as in :func:`rocmax.load`.

    Returns
    -------
    TableModel
        The model with its facts.

    Raises
    ------
    ModelFileError
        If the file is not such a model.
    """
    model, facts = load_fitted(path, max_bytes=max_bytes)
    return TableModel(model, facts, path=Path(path))
