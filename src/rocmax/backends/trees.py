"""Fitted tree ensembles of LightGBM and XGBoost, kept as the text of the engine's own model format."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from rocmax._packages import need
from rocmax._typing import Array
from rocmax.backends._tree_text import check_tree_model, shorten_text


class TreeModel:
    """Ensemble of trees, fitted by LightGBM or XGBoost.

    The booster of the engine is created from the text when it is first needed. It is neither copied nor pickled, and
    scores before and after saving are equal.

    Parameters
    ----------
    engine : {"lightgbm", "xgboost"}
        Library that fitted the trees.
    text : str
        The model: LightGBM's text format, of which only the trees are kept, or XGBoost's JSON format.
    n_features : int
        Number of features.
    """

    def __init__(self, engine: str, text: str, n_features: int) -> None:
        # What is fitted can be loaded again.
        self.__setstate__({"engine": engine, "text": shorten_text(engine, text), "n_features": n_features})

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("engine", "text", "n_features")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Before the engine reads the text: a damaged model could end the process.
        check_tree_model(state)
        self.engine: str = state["engine"]
        self.text: str = state["text"]
        self.n_features: int = state["n_features"]

    def predict(self, X: Any, n_jobs: int | None = None) -> Array:
        """Return the sum of the leaf values of each row, on the scale of log-odds.

        Parameters
        ----------
        X : ndarray or CSR matrix of shape (n_samples, n_features)
            Rows. Missing values are NaN, categories are integer codes.
        n_jobs : int or None, default=None
            Number of threads; None for the default of the engine.

        Returns
        -------
        ndarray of shape (n_samples,)
            Scores in double precision.
        """
        self._check_width(X)
        if self.engine == "lightgbm":
            scores = self._booster().predict(lightgbm_rows(X), raw_score=True, **_threads(n_jobs))
        else:
            scores = self._xgboost(n_jobs).predict(xgboost_rows(X, n_jobs), output_margin=True)
        return np.asarray(scores, dtype=np.float64)

    def contributions(self, X: Any, n_jobs: int | None = None) -> Array:
        """Return the contribution of each feature to the score of each row (SHAP values); the last column is constant.

        Parameters
        ----------
        X : ndarray or CSR matrix of shape (n_samples, n_features)
            Rows, as in :meth:`predict`.
        n_jobs : int or None, default=None
            Number of threads; None for the default of the engine.

        Returns
        -------
        ndarray of shape (n_samples, n_features + 1)
            Contributions, whose sum is the score.
        """
        self._check_width(X)
        if self.engine == "lightgbm":
            found = self._booster().predict(lightgbm_rows(X), pred_contrib=True, **_threads(n_jobs))
            found = found.toarray() if sparse.issparse(found) else found
        else:
            found = self._xgboost(n_jobs).predict(xgboost_rows(X, n_jobs), pred_contribs=True)
        return np.asarray(found, dtype=np.float64)

    def booster(self) -> Any:
        """Return the booster of the engine."""
        return self._booster()

    def importances(self) -> Array:
        """Return the sum of the gains of the splits on each feature."""
        if self.engine == "lightgbm":
            return np.asarray(self._booster().feature_importance("gain"), dtype=np.float64)
        found = np.zeros(self.n_features)
        for name, gain in self._booster().get_score(importance_type="total_gain").items():
            found[int(name[1:])] = gain
        return found

    def _check_width(self, X: Any) -> None:
        if X.shape[1] != self.n_features:
            raise ValueError(f"X must have {self.n_features} features; got {X.shape[1]}")

    def _xgboost(self, n_jobs: int | None) -> Any:
        """Return the ensemble of XGBoost with a number of threads, which it does not take in a prediction."""
        booster = self._booster()
        if self.__dict__.get("_n_jobs") != n_jobs:
            booster.set_param("nthread", n_jobs or 0)
            self._n_jobs = n_jobs
        return booster

    def _booster(self) -> Any:
        if "_built" not in self.__dict__:
            self._built = _lightgbm_booster(self.text) if self.engine == "lightgbm" else _xgboost_booster(self.text)
        return self._built


def _lightgbm_booster(text: str) -> Any:
    return need("lightgbm").Booster(model_str=text)


def _xgboost_booster(text: str) -> Any:
    booster = need("xgboost").Booster()
    booster.load_model(bytearray(text.encode()))
    # Names of the form f0, f1, ... are required by get_score; other names would be compared with those of the data.
    booster.feature_names = None
    return booster


def lightgbm_rows(X: Any) -> Any:
    """Return rows for LightGBM, which does not accept sparse arrays, only sparse matrices."""
    return sparse.csr_matrix(X) if sparse.issparse(X) else X


def xgboost_rows(X: Any, n_jobs: int | None) -> Any:
    """Return rows for XGBoost, which would treat the zeros of a sparse matrix as missing."""
    return need("xgboost").DMatrix(X.toarray() if sparse.issparse(X) else X, nthread=n_jobs)


def _threads(n_jobs: int | None) -> dict[str, int]:
    return {} if n_jobs is None else {"num_threads": n_jobs}
