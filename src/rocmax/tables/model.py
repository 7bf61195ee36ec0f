"""Fitted model with its metadata, which can be saved to a file and loaded."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import estimator_html_repr
from sklearn.utils.metaestimators import available_if

from rocmax._support import Array, Index
from rocmax._validation import positive_index, towards
from rocmax.model_io import load_fitted, save
from rocmax.tables.read import typed_labels


def _has_probabilities(model: TableModel) -> bool:
    return model.facts.get("calibration") is not None


class TableModel:
    """Model fitted to a table, with its metadata.

    It is returned by :func:`fit_table` and :func:`load_model`. Its methods are those of a fitted classifier of
    scikit-learn, on tables: ``rocmax.report``, scorers and displays take it. :func:`predict` and
    :func:`write_predictions` have more options and, for files of any size, bounded memory.

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
    def classes_(self) -> NDArray[Any]:
        """The classes in the type of the target, in ascending order."""
        return np.sort(self._labels)

    @property
    def _labels(self) -> NDArray[Any]:
        """The negative class and the positive class."""
        labels = np.array([self.facts["negative"], self.facts["positive"]], dtype=object)
        return typed_labels(labels, self.facts.get("label_type", "text"))

    @property
    def pos_label(self) -> Any:
        """Label of the positive class in the type of the target."""
        return self._labels[1:].tolist()[0]

    @property
    def min_fpr(self) -> float:
        """Lower end of the range of false-positive rates that the model was fitted for."""
        return float(self.facts["min_fpr"])

    @property
    def max_fpr(self) -> float:
        """Upper end of the range of false-positive rates that the model was fitted for."""
        return float(self.facts["max_fpr"])

    @property
    def min_tpr(self) -> float:
        """Lower limit on the true-positive rate that the model was fitted for."""
        return float(self.facts.get("min_tpr", 0.0))

    def decision_function(self, X: Any) -> Array:
        """Return the decision value of each row; positive values indicate ``classes_[1]``.

        Parameters
        ----------
        X : str, Path, list of them, file or data frame
            A table, as in :func:`predict`.

        Returns
        -------
        ndarray of shape (n_rows,)
            Decision values, with the sign that scikit-learn expects. :meth:`positive_scores` has the sign of the
            positive class.
        """
        return towards(self.positive_scores(X), positive_index(self.classes_, self.pos_label))

    def positive_scores(self, X: Any) -> Array:
        """Return the score of each row: higher means positive, and above zero the row is predicted positive.

        Parameters
        ----------
        X : str, Path, list of them, file or data frame
            A table, as in :func:`predict`.

        Returns
        -------
        ndarray of shape (n_rows,)
            Scores, those of :func:`predict`.
        """
        found: Array = self._predicted(X)["score"].to_numpy()
        return found

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label of each row, in the type of the target.

        Parameters
        ----------
        X : str, Path, list of them, file or data frame
            A table, as in :func:`predict`.

        Returns
        -------
        ndarray of shape (n_rows,)
            Labels.
        """
        return self._labels[(self.positive_scores(X) > 0).astype(np.intp)]

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]  # scikit-learn has no types
    def predict_proba(self, X: Any) -> Array:
        """Return the probabilities of the classes, calibrated on the held-out rows of the fit.

        Parameters
        ----------
        X : str, Path, list of them, file or data frame
            A table, as in :func:`predict`.

        Returns
        -------
        ndarray of shape (n_rows, 2)
            Probabilities of ``classes_``.
        """
        share = self._predicted(X, proba=True)["probability"].to_numpy()
        by_class = (1.0 - share, share) if positive_index(self.classes_, self.pos_label) else (share, 1.0 - share)
        return np.column_stack(by_class)

    def _predicted(self, X: Any, **options: Any) -> Any:
        # That module needs this class.
        from rocmax.tables.predict import predict

        return predict(self, X, **options)

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

    def _repr_html_(self) -> str:
        """Return the model as HTML, for notebooks; text of the user is escaped."""
        rows, held_out = self.facts["rows"], self.held_out
        about = {
            "model": repr(self),
            "file": "" if self.path is None else str(self.path),
            "rows": ", ".join(f"{count} {name}" for name, count in rows.items()),
            "measure": self.facts["measure"],
            "held out": "" if held_out is None else _interval_text(held_out),
            "fitted": self.facts["fitted"],
        }
        left = 'style="text-align: left"'
        lines = "".join(
            f"<tr><th {left}>{name}</th><td {left}>{escape(text)}</td></tr>" for name, text in about.items() if text
        )
        notes = "".join(f"<li>{escape(note)}</li>" for note in self.notes)
        return f"<table>{lines}</table>{f'<ul>{notes}</ul>' if notes else ''}{estimator_html_repr(self.model)}"


def _interval_text(found: dict[str, Any]) -> str:
    """Return a value with its 95 % confidence interval."""
    return f"{found['value']:.4f} (95 % interval {found['low']:.4f} to {found['high']:.4f})"


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
