"""Fitted model with its metadata, which can be saved to a file and loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rocmax._typing import Index
from rocmax.model_io import load_fitted, save


class TableModel:
    """Model fitted to a table, with its metadata.

    It is returned by :func:`fit_table` and :func:`load_model`.

    Parameters
    ----------
    model : estimator
        Fitted pipeline of preprocessing and classifier; with a limit on the false-positive rate, a
        :class:`rocmax.FPRThresholdClassifier` that wraps it.
    facts : dict
        Metadata, as plain values: columns and their kinds, classes, range of false-positive rates, measure, the chosen
        family ("family") and the comparison behind the choice ("families"), tuning, numbers of rows, versions.
    notes : sequence of str, default=()
        What the user should know about the fit: columns that were left out, for example.
    path : Path, default=None
        The file that the model comes from.
    held_out_rows : ndarray of int, default=None
        Places in the table of the rows that were held out; None for a model from a file.

    Attributes
    ----------
    model, facts, notes, path, held_out_rows
        Same as the parameters.
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
        """File name without its extension, or the name of the model if there is no file."""
        return self.facts["model"] if self.path is None else self.path.stem

    @property
    def family(self) -> str:
        """Name of the fitted model: the chosen family if the name of the model is "auto"."""
        # In files of earlier versions, "auto" is the linear model.
        default = "linear" if self.facts["model"] == "auto" else self.facts["model"]
        result: str = self.facts.get("family", default)
        return result

    @property
    def positive(self) -> str:
        """Label of the positive class."""
        result: str = self.facts["positive"]
        return result

    @property
    def pos_label(self) -> str:
        """Label of the positive class, by the name that estimators have for it."""
        return self.positive

    @property
    def threshold(self) -> float:
        """Scores above it are classified as positive: 0 on the scale of :func:`predict`, reports and ONNX graphs."""
        return 0.0

    @property
    def held_out(self) -> dict[str, Any] | None:
        """Value of the measure on the held-out rows, with its confidence interval."""
        return self.facts.get("held_out")

    @property
    def place(self) -> str:
        """Name of the model in messages."""
        return "the model" if self.path is None else str(self.path)

    def save(self, path: str | Path) -> None:
        """Save the model and its metadata to a file, which is written atomically.

        Parameters
        ----------
        path : str or Path
            Output file, by convention ``model.rocmax``. :func:`load_model` and the command ``rocmax`` read it.
        """
        save(self.model, path, about=self.facts)

    def __repr__(self) -> str:
        limit = "" if self.facts["max_fpr"] == 1.0 else f", max_fpr={self.facts['max_fpr']:g}"
        limit += f", min_tpr={self.facts['min_tpr']:g}" if self.facts.get("min_tpr") else ""
        chosen = "" if self.family == self.facts["model"] else f", family={self.family!r}"
        return f"TableModel({self.facts['model']!r}{chosen}, positive={self.positive!r}{limit})"


def load_model(path: str | Path, *, max_bytes: int | None = None) -> TableModel:
    """Load a model saved by :meth:`TableModel.save` or ``rocmax fit``; no code in the file is executed.

    Parameters
    ----------
    path : str or Path
        The file.
    max_bytes : int, default=None
        Maximum number of bytes that the file may unpack to, as in :func:`rocmax.load`.

    Returns
    -------
    TableModel
        The model and its metadata.

    Raises
    ------
    ModelFileError
        If the file is not a model of this kind.
    """
    model, facts = load_fitted(path, max_bytes=max_bytes)
    return TableModel(model, facts, path=Path(path))
