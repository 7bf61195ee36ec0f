"""Training of boosted trees by LightGBM and XGBoost, a few rounds at a time."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from rocmax._support import Array, Bools, need
from rocmax.boosted.objective import relative_weights
from rocmax.boosted.trees import TreeModel, lightgbm_rows, read_lightgbm, read_xgboost, threads, xgboost_rows

ENGINES = ("lightgbm", "xgboost")
# Gradient and curvature of each row at given scores, in place of the built-in logistic loss.
Objective = Callable[[Array], tuple[Array, Array]]

# Share of the rows, and of the columns, that a tree uses if several models are averaged: they must differ.
_SHARE = 0.8


class TreeSettings(NamedTuple):
    """Parameters that all trees of a fit share, and the number of threads.

    With ``subsample``, each tree uses a random part of the rows and columns. XGBoost does not use ``min_samples_leaf``.
    """

    engine: str
    categorical: list[int]
    monotonic: list[int] | None
    min_samples_leaf: int
    n_jobs: int | None
    learning_rate: float
    subsample: bool


class TreeData(ABC):
    """Training rows in the format of an engine; the bins of the features are shared by all fits to the rows.

    Missing values are NaN, categories are integer codes. The engine gets weights divided by their mean.
    """

    def __init__(self, X: Any, positive: Bools, weight: Array | None, settings: TreeSettings) -> None:
        self.n_features = int(X.shape[1])
        self.positive, self.weight, self.settings = positive, relative_weights(weight), settings
        self.rows = self._convert(X)

    @abstractmethod
    def _convert(self, X: Any) -> Any:
        """Return the rows in the format of the engine."""

    @abstractmethod
    def start(self, max_leaf_nodes: int, seed: int, objective: Objective | None) -> GrowingTrees:
        """Return an ensemble without trees; the objective is the built-in logistic loss if it is None."""


class GrowingTrees(ABC):
    """Ensemble that grows."""

    def __init__(self, data: TreeData, booster: Any, objective: Objective | None) -> None:
        self.data, self._booster, self._objective = data, booster, objective
        self.n_rounds = 0

    @abstractmethod
    def grow(self, n_rounds: int) -> None:
        """Add trees, one in each round; fewer if no further split is possible."""

    @abstractmethod
    def scores(self, X: Any, first: int, last: int | None = None) -> Array:
        """Return what the trees of the rounds from ``first`` to ``last`` add to the scores of rows; None is the end."""

    @abstractmethod
    def model(self) -> TreeModel:
        """Return the fitted ensemble."""


class _LightGBMData(TreeData):
    def _convert(self, X: Any) -> Any:
        return need("lightgbm").Dataset(
            lightgbm_rows(X),
            label=self.positive.astype(np.float64),
            weight=self.weight,
            categorical_feature=self.settings.categorical,
            params=self._params(),
            free_raw_data=False,
        )

    def _can_split(self) -> bool:
        rows = self.rows.construct()
        return any(rows.feature_num_bin(i) > 1 for i in range(self.n_features))

    def _params(self) -> dict[str, Any]:
        least, monotonic = self.settings.min_samples_leaf, self.settings.monotonic
        return {
            # The same trees for any number of threads.
            **{"verbose": -1, "deterministic": True, "force_row_wise": True},
            "min_data_in_leaf": least,
            "min_data_in_bin": min(3, least),  # 3 is the default of LightGBM
            **({} if monotonic is None else {"monotone_constraints": monotonic}),
            **threads(self.settings.n_jobs),
        }

    def start(self, max_leaf_nodes: int, seed: int, objective: Objective | None) -> GrowingTrees:
        if not self._can_split():
            # LightGBM rejects callable objectives if no feature varies; there are no trees to grow in this case.
            objective = None
        params = {
            **self._params(),
            "objective": "binary" if objective is None else "none",
            "num_leaves": max_leaf_nodes,
            "learning_rate": self.settings.learning_rate,
            "seed": seed,
        }
        if self.settings.subsample:
            params.update(bagging_fraction=_SHARE, bagging_freq=1, feature_fraction=_SHARE)
        return _LightGBMTrees(self, need("lightgbm").Booster(params, self.rows), objective)


class _LightGBMTrees(GrowingTrees):
    def grow(self, n_rounds: int) -> None:
        for _ in range(n_rounds):
            if self._booster.update(fobj=None if self._objective is None else self._callable):
                break
            self.n_rounds += 1

    def _callable(self, scores: Array, _: Any) -> tuple[Array, Array]:
        assert self._objective is not None
        return self._objective(scores)

    def scores(self, X: Any, first: int, last: int | None = None) -> Array:
        n_rounds = min(self.n_rounds, last or self.n_rounds) - first
        if n_rounds <= 0:
            return np.zeros(X.shape[0])
        found = self._booster.predict(
            lightgbm_rows(X),
            raw_score=True,
            start_iteration=first,
            num_iteration=n_rounds,
            **threads(self.data.settings.n_jobs),
        )
        return np.asarray(found, dtype=np.float64)

    def model(self) -> TreeModel:
        return read_lightgbm(self._booster.model_to_string(), self.data.n_features)


class _XGBoostData(TreeData):
    def _convert(self, X: Any) -> Any:
        categorical = self.settings.categorical
        types = ["c" if column in set(categorical) else "q" for column in range(self.n_features)]
        return need("xgboost").QuantileDMatrix(
            # The zeros of a sparse matrix would be missing values.
            X.toarray() if sparse.issparse(X) else X,
            label=self.positive.astype(np.float64),
            weight=self.weight,
            feature_types=types if categorical else None,
            enable_categorical=bool(categorical),
            nthread=self.settings.n_jobs,
        )

    def start(self, max_leaf_nodes: int, seed: int, objective: Objective | None) -> GrowingTrees:
        settings = self.settings
        params: dict[str, Any] = {
            "objective": "binary:logistic",
            "tree_method": "hist",
            "grow_policy": "lossguide",
            "max_depth": 0,
            "max_leaves": max_leaf_nodes,
            "learning_rate": settings.learning_rate,
            "seed": seed,
            "verbosity": 0,
        }
        if objective is not None:
            # Start from scores of zero; the objective adds the log-odds itself.
            params["base_score"] = 0.5
        if settings.n_jobs is not None:
            params["nthread"] = settings.n_jobs
        if settings.monotonic is not None:
            params["monotone_constraints"] = tuple(settings.monotonic)
        if settings.subsample:
            params.update(subsample=_SHARE, colsample_bytree=_SHARE)
        return _XGBoostTrees(self, need("xgboost").Booster(params, [self.rows]), objective)


class _XGBoostTrees(GrowingTrees):
    def grow(self, n_rounds: int) -> None:
        for _ in range(n_rounds):
            if self._objective is None:
                self._booster.update(self.data.rows, self.n_rounds)
            else:
                margin = self._booster.predict(self.data.rows, output_margin=True)
                gradient, curvature = self._objective(margin.astype(np.float64))
                self._booster.boost(self.data.rows, iteration=self.n_rounds, grad=gradient, hess=curvature)
            self.n_rounds += 1

    def scores(self, X: Any, first: int, last: int | None = None) -> Array:
        rows = xgboost_rows(X, self.data.settings.n_jobs)
        found = self._booster.predict(rows, output_margin=True, iteration_range=(first, last or self.n_rounds))
        # XGBoost adds the score at the start to every part.
        return np.asarray(found, dtype=np.float64) - (self._start_score() if first else 0.0)

    def _start_score(self) -> float:
        config = json.loads(self._booster.save_config())
        share = float(config["learner"]["learner_model_param"]["base_score"].strip("[]"))
        return float(np.log(share / (1.0 - share)))

    def model(self) -> TreeModel:
        return read_xgboost(bytes(self._booster.save_raw("json")).decode(), self.data.n_features)


DATA: dict[str, type[TreeData]] = {"lightgbm": _LightGBMData, "xgboost": _XGBoostData}
