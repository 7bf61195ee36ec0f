"""Training of boosted trees by LightGBM and XGBoost, a few rounds at a time."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

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


@dataclass(frozen=True)
class TreeSettings:
    """Parameters of the trees; with ``subsample``, each tree uses a random part of the rows and columns."""

    max_leaf_nodes: int
    learning_rate: float
    seed: int
    subsample: bool


class TreeData(ABC):
    """Training rows in the format of an engine; the bins of the features are shared by all fits to the rows.

    Missing values are NaN, categories are integer codes. The engine gets weights divided by their mean. XGBoost does
    not use ``min_samples_leaf``.
    """

    def __init__(
        self,
        X: Any,
        positive: Bools,
        weight: Array | None,
        *,
        categorical: list[int],
        monotonic: list[int] | None,
        min_samples_leaf: int,
        n_jobs: int | None,
    ) -> None:
        self.n_features = int(X.shape[1])
        self.positive = positive
        self.weight = relative_weights(weight)
        self.categorical = categorical
        self.monotonic = monotonic
        self.min_samples_leaf = min_samples_leaf
        self.n_jobs = n_jobs
        self.rows = self._convert(X)

    @abstractmethod
    def _convert(self, X: Any) -> Any:
        """Return the rows in the format of the engine."""

    @abstractmethod
    def start(self, settings: TreeSettings, objective: Objective | None) -> GrowingTrees:
        """Return an ensemble without trees; the objective is the built-in logistic loss if it is None."""


class GrowingTrees(ABC):
    """Ensemble that grows."""

    n_rounds = 0

    def __init__(self, data: TreeData, booster: Any, objective: Objective | None) -> None:
        self.data = data
        self._booster = booster
        self._objective = objective

    @abstractmethod
    def grow(self, n_rounds: int) -> None:
        """Add trees, one in each round; fewer if no further split is possible."""

    @abstractmethod
    def scores(self, X: Any, first: int) -> Array:
        """Return what the trees from round ``first`` on add to the scores of rows."""

    @abstractmethod
    def model(self, n_rounds: int) -> TreeModel:
        """Return the fitted ensemble of the first rounds."""


class _LightGBMData(TreeData):
    def _convert(self, X: Any) -> Any:
        return need("lightgbm").Dataset(
            lightgbm_rows(X),
            label=self.positive.astype(np.float64),
            weight=self.weight,
            categorical_feature=self.categorical,
            params=self._params(),
            free_raw_data=False,
        )

    def _can_split(self) -> bool:
        rows = self.rows.construct()
        return any(rows.feature_num_bin(i) > 1 for i in range(self.n_features))

    def _params(self) -> dict[str, Any]:
        # The same trees for any number of threads.
        params: dict[str, Any] = {"verbose": -1, "deterministic": True, "force_row_wise": True}
        params["min_data_in_leaf"] = self.min_samples_leaf
        params["min_data_in_bin"] = min(3, self.min_samples_leaf)  # 3 is the default of LightGBM
        if self.n_jobs is not None:
            params["num_threads"] = self.n_jobs
        if self.monotonic is not None:
            params["monotone_constraints"] = self.monotonic
        return params

    def start(self, settings: TreeSettings, objective: Objective | None) -> GrowingTrees:
        if not self._can_split():
            # LightGBM rejects callable objectives if no feature varies; there are no trees to grow in this case.
            objective = None
        params = {
            **self._params(),
            "objective": "binary" if objective is None else "none",
            "num_leaves": settings.max_leaf_nodes,
            "learning_rate": settings.learning_rate,
            "seed": settings.seed,
        }
        if settings.subsample:
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

    def scores(self, X: Any, first: int) -> Array:
        if first >= self.n_rounds:
            return np.zeros(X.shape[0])
        found = self._booster.predict(
            lightgbm_rows(X),
            raw_score=True,
            start_iteration=first,
            num_iteration=self.n_rounds - first,
            **threads(self.data.n_jobs),
        )
        return np.asarray(found, dtype=np.float64)

    def model(self, n_rounds: int) -> TreeModel:
        text = self._booster.model_to_string(num_iteration=n_rounds)
        return read_lightgbm(text, self.data.n_features)


class _XGBoostData(TreeData):
    def _convert(self, X: Any) -> Any:
        types = ["c" if column in set(self.categorical) else "q" for column in range(self.n_features)]
        return need("xgboost").QuantileDMatrix(
            # The zeros of a sparse matrix would be missing values.
            X.toarray() if sparse.issparse(X) else X,
            label=self.positive.astype(np.float64),
            weight=self.weight,
            feature_types=types if self.categorical else None,
            enable_categorical=bool(self.categorical),
            nthread=self.n_jobs,
        )

    def start(self, settings: TreeSettings, objective: Objective | None) -> GrowingTrees:
        params: dict[str, Any] = {
            "objective": "binary:logistic",
            "tree_method": "hist",
            "grow_policy": "lossguide",
            "max_depth": 0,
            "max_leaves": settings.max_leaf_nodes,
            "learning_rate": settings.learning_rate,
            "seed": settings.seed,
            "verbosity": 0,
        }
        if objective is not None:
            # Start from scores of zero; the objective adds the log-odds itself.
            params["base_score"] = 0.5
        if self.n_jobs is not None:
            params["nthread"] = self.n_jobs
        if self.monotonic is not None:
            params["monotone_constraints"] = tuple(self.monotonic)
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

    def scores(self, X: Any, first: int) -> Array:
        rows = xgboost_rows(X, self.data.n_jobs)
        found = self._booster.predict(rows, output_margin=True, iteration_range=(first, self.n_rounds))
        # XGBoost adds the score at the start to every part.
        return np.asarray(found, dtype=np.float64) - (self._start_score() if first else 0.0)

    def _start_score(self) -> float:
        config = json.loads(self._booster.save_config())
        share = float(config["learner"]["learner_model_param"]["base_score"].strip("[]"))
        return float(np.log(share / (1.0 - share)))

    def model(self, n_rounds: int) -> TreeModel:
        text = bytes(self._booster[:n_rounds].save_raw("json")).decode()
        return read_xgboost(text, self.data.n_features)


DATA: dict[str, type[TreeData]] = {"lightgbm": _LightGBMData, "xgboost": _XGBoostData}
