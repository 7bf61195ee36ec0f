"""What a classifier that wraps another one passes on to it: parameters of ``fit``, and probabilities."""

from __future__ import annotations

from typing import Any

from sklearn import get_config
from sklearn.utils import _safe_indexing
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _num_samples, check_is_fitted, has_fit_parameter

from rocmax._typing import Array


def _has_probabilities(wrapper: Any) -> bool:
    return hasattr(getattr(wrapper, "estimator_", wrapper.estimator), "predict_proba")


class WrappedClassifier:
    """Mixin of classifiers with a parameter ``estimator`` and the attribute ``estimator_``."""

    estimator: Any

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]  # scikit-learn has no types
    def predict_proba(self, X: Any) -> Array:
        """Return the probabilities of the classes from the estimator; the threshold does not change them.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Probabilities, in the order of ``classes_``.
        """
        check_is_fitted(self, "estimator_")
        fitted: Any = vars(self)["estimator_"]
        result: Array = fitted.predict_proba(X)
        return result

    def get_metadata_routing(self) -> Any:
        """Return the routing of metadata: ``groups`` is for the choice of the threshold, all else for the estimator.

        Returns
        -------
        MetadataRouter
            The routing.
        """
        mapping = MethodMapping().add(caller="fit", callee="fit")
        router = MetadataRouter(owner=type(self).__name__).add_self_request(self)
        return router.add(estimator=self.estimator, method_mapping=mapping)


def fit_params(wrapper: Any, params: dict[str, Any], groups: Any) -> dict[str, Any]:
    """Return the parameters for the ``fit`` of the wrapped estimator, with the groups if it takes them."""
    given = {name: value for name, value in params.items() if value is not None}
    if get_config()["enable_metadata_routing"]:
        passed = given if groups is None else {**given, "groups": groups}
        result: dict[str, Any] = process_routing(wrapper, "fit", **passed).estimator.fit
        return result
    takes_groups = groups is not None and has_fit_parameter(wrapper.estimator, "groups")
    return {**given, "groups": groups} if takes_groups else given


def row_params(params: dict[str, Any], n_rows: int, rows: Any) -> dict[str, Any]:
    """Return parameters of ``fit`` for some rows; those without a value for each row are not changed."""
    return {name: _safe_indexing(value, rows) if _has_rows(value, n_rows) else value for name, value in params.items()}


def _has_rows(value: Any, n_rows: int) -> bool:
    return (
        value is not None
        and not isinstance(value, str | dict)
        and hasattr(value, "__len__")
        and _num_samples(value) == n_rows
    )
