"""Linear classifiers for decisions at a threshold: F-beta, G-mean, precision at k, the break-even point."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.extmath import row_norms

from rocmax._support import Array, check_top
from rocmax._validation import TrainingSet, check_choice, check_number
from rocmax.base import MeasureMixin
from rocmax.linear.base import LinearScoreClassifier, RowsInMemory
from rocmax.linear.refine import RULES, Refinement, StandardizedRows, Start
from rocmax.losses import Loss, PrecisionAtK
from rocmax.measures import BreakEvenPointMeasure, FBetaMeasure, GMeanMeasure, Measure, PrecisionAtKMeasure
from rocmax.penalties import SquaredL2
from rocmax.solvers import OCAS, Callback, Result


class ThresholdRefinement(Refinement):
    """Refinement for a threshold-based measure; ``width`` of the soft step is in standard deviations of the scores."""

    def __init__(self, data: TrainingSet, measure: Measure, width: float, tol: float, max_iter: int) -> None:
        super().__init__(StandardizedRows(data), measure.soft_loss(width), tol, max_iter)
        self._of_decisions = measure

    def trust(self, start: Start) -> float:
        """Return the inverse penalty weight, from the size of the smaller class and the evidence at the start."""
        trust: float = RULES.trust * min(self._loss.m, self._loss.n) / self._rows.shape[1] * self.evidence(start)
        return trust

    def evidence(self, start: Start) -> float:
        """Return the fraction of the squared gradient norm at the start that exceeds sampling noise, at least 0.

        If the start is a stationary point of the expected loss, the expected squared norm is the sum over the rows of
        the squared norms of their terms, with a relative standard error of sqrt(2 / d) for d uncorrelated features, as
        for a chi-square distribution. Without that, the result is the shrinkage factor of the James-Stein estimator.
        """
        slope = self._rows.anchored(self._loss, start, 0.0).value_and_gradient(start.scores)[1]
        total = self._rows.operator.rmatvec(slope)
        noise = float(slope**2 / self._loss.weight @ self._distances())
        chance, square = noise * (1.0 + np.sqrt(2.0 / total.size)), float(total @ total)
        return 1.0 - chance / square if square > chance else 0.0

    def _distances(self) -> Array:
        """Return the squared distance of each row from the mean; sparse rows are not centered by the scaler."""
        operator = self._rows.operator
        mean = np.asarray(operator.rmatvec(self._loss.weight / self._loss.weight.sum()))
        squares = row_norms(operator.rows(slice(None)), squared=True)
        result: Array = squares - 2.0 * operator.matvec(mean) + float(mean @ mean)
        return result

    def _measure(self, scores: Array) -> float:
        data = self._rows.data
        threshold = self._of_decisions.threshold(scores, data.positive, data.weight)
        return self._of_decisions.score(data.positive, scores - threshold, sample_weight=data.weight, pos_label=True)


class ThresholdBasedMixin(MeasureMixin):
    """Mixin for threshold-based measures: minimize a soft version of the measure, or a convex upper bound.

    It must precede ``LinearScoreClassifier`` in the list of bases.
    """

    verbose: Any

    def __init__(
        self,
        loss: str = "auto",
        *,
        C: float = 10.0,
        start_C: float = 1.0,
        tol: float = 1e-3,
        max_iter: int = 500,
        pos_label: Any = None,
        verbose: bool = False,
        warm_start: bool = False,
    ) -> None:
        self.loss = loss
        self.C = C
        self.start_C = start_C
        self.tol = tol
        self.max_iter = max_iter
        self.pos_label = pos_label
        self.verbose = verbose
        self.warm_start = warm_start

    def _check_parameters(self) -> None:
        super()._check_parameters()  # type: ignore[misc]  # of LinearScoreClassifier
        check_number("C", self.C, above=0.0)
        check_number("start_C", self.start_C, above=0.0)
        check_choice("loss", self.loss, ("auto", "convex"))

    def _minimize(self, data: RowsInMemory, w0: Array | None, callback: Callback | None) -> Result:
        measure = self._make_measure()
        if self.loss == "convex":
            solver = OCAS(self.tol, self.max_iter)
            return data.solve(solver, self._convex_loss(), SquaredL2(self.C), w0, callback)
        refinement = ThresholdRefinement(data, measure, soft_width(data), self.tol, self.max_iter)
        return refinement.run(refinement.logistic_start(self.start_C), self.C, w0, callback)

    def _convex_loss(self) -> Loss:
        return self._make_measure().convex_loss()

    def _remedy(self) -> str:
        if self.loss == "auto":
            return "No feature separates the classes; check that the features vary."
        return (
            "The optimum of this convex loss is at zero weights: in no direction is the mean of the positives above "
            'the mean of the same number of highest negatives. Use loss="auto", which does not collapse.'
        )


def soft_width(data: TrainingSet) -> float:
    """Return the width of the soft step in standard deviations of the scores.

    It is proportional to the size of the smaller class to the power -1/5, like the optimal bandwidth in kernel density
    estimation.
    """
    weight = np.ones(data.positive.size) if data.weight is None else data.weight
    rarer = min(float(weight[data.positive].sum()), float(weight[~data.positive].sum()))
    result: float = 2.0 * max(rarer, 1.0) ** -0.2
    return result


class FBetaClassifier(ThresholdBasedMixin, LinearScoreClassifier):
    r"""Linear classifier for :math:`F_\beta`.

    Finally, the threshold is set to the value that maximizes :math:`F_\beta` on the training rows.

    Parameters
    ----------
    beta
    loss : ...
        The soft version is :class:`~rocmax.losses.SoftMeasure`, the bound :class:`~rocmax.losses.FBeta` at
        the best shift of the scores.
    C : ...
        With ``loss="auto"``, small values keep the model close to the starting point and large values optimize the soft
        measure only, if its gradient at the starting point exceeds sampling noise.
    start_C
    tol : ...
        With ``loss="auto"``, it stops when an iteration reduces the objective by less than ``tol / 100``, relatively.
    max_iter, pos_label, verbose, warm_start

    Attributes
    ----------
    coef_, intercept_, classes_, objective_, dual_gap_, n_iter_, trace_, n_features_in_, feature_names_in_

    Notes
    -----
    With "auto" the fit minimizes, for scores :math:`t` with unit standard deviation and the scores :math:`t_0` of the
    starting point,

    .. math:: R(t) + \frac{1}{2 C \kappa} \mathrm{Var}(t - t_0), \qquad
              \kappa = \frac{\min(m, n)}{10 \, d} \,
              \Bigl(1 - \frac{(1 + \sqrt{2/d}) \sum_i |g_i|^2}{|\sum_i g_i|^2}\Bigr)_+

    with :math:`m` positives, :math:`n` negatives, :math:`d` features, and :math:`g_i` the contribution of row i to the
    gradient of :math:`R` at the starting point. The last factor is the fraction of the squared gradient norm that
    exceeds sampling noise by more than one standard error, similar to the James-Stein estimator. If it is 0, the model
    is the starting point.

    With "convex", zero weights are optimal for every ``C`` if, in every direction, the mean of the positives is at most
    the mean of the same number of highest negatives. For normally distributed classes of equal variance, this is the
    case below an AUC of 0.74 with 30 % positives, 0.89 with 10 %, 0.93 with 5 %. The fit then issues a
    ``ConvergenceWarning``.

    References
    ----------
    Joachims, "A support vector method for multivariate performance measures", ICML 2005.
    James and Stein, "Estimation with quadratic loss", Fourth Berkeley Symposium, 1961.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from rocmax import FBetaClassifier
    >>> X, y = make_classification(n_samples=1000, weights=[0.9], random_state=0)
    >>> model = FBetaClassifier(beta=1.0).fit(X, y)
    >>> round(model.score(X, y), 2)
    0.9
    """

    def __init__(
        self,
        beta: float = 1.0,
        loss: str = "auto",
        *,
        C: float = 10.0,
        start_C: float = 1.0,
        tol: float = 1e-3,
        max_iter: int = 500,
        pos_label: Any = None,
        verbose: bool = False,
        warm_start: bool = False,
    ) -> None:
        stop: Any = {"tol": tol, "max_iter": max_iter, "verbose": verbose}
        super().__init__(loss, C=C, start_C=start_C, pos_label=pos_label, warm_start=warm_start, **stop)
        self.beta = beta

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("beta", self.beta, above=0.0)

    def _make_measure(self) -> Measure:
        return FBetaMeasure(self.beta)


class GMeanClassifier(ThresholdBasedMixin, LinearScoreClassifier):
    r"""Linear classifier for the G-mean, the geometric mean of the true-positive and the true-negative rate.

    Finally, the threshold is set to the value that maximizes the G-mean on the training rows.

    Parameters
    ----------
    loss : ...
        The soft version is :class:`~rocmax.losses.SoftMeasure`, the bound :class:`~rocmax.losses.GMean` at
        the best shift of the scores.
    C, start_C, tol, max_iter, pos_label, verbose, warm_start

    Attributes
    ----------
    coef_, intercept_, classes_, objective_, dual_gap_, n_iter_, trace_, n_features_in_, feature_names_in_

    Notes
    -----
    The objective of "auto", its ``C`` and ``tol``, and when "convex" gives zero weights, are described in
    :class:`FBetaClassifier`.

    References
    ----------
    Kubat and Matwin, "Addressing the curse of imbalanced training sets: one-sided selection", ICML 1997.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from rocmax import GMeanClassifier
    >>> X, y = make_classification(n_samples=1000, weights=[0.9], random_state=0)
    >>> model = GMeanClassifier().fit(X, y)
    >>> round(model.score(X, y), 2)
    0.96
    """

    def _make_measure(self) -> Measure:
        return GMeanMeasure()


class PrecisionAtKClassifier(ThresholdBasedMixin, LinearScoreClassifier):
    r"""Linear classifier for the precision among the ``k`` highest scores.

    A row is predicted positive if its score is above the threshold that separates the top ``k`` training rows.

    Parameters
    ----------
    k
    loss : ...
        The soft version is :class:`~rocmax.losses.SoftPrecision`, the bound :class:`~rocmax.losses.PrecisionAtK`.
    C, start_C
    reference : {"best", "positives"}, default="best"
        Reference labeling in the convex loss of the precision at k, see :class:`~rocmax.losses.PrecisionAtK`:
        "positives" is that of the papers. Must be "best" with ``loss="auto"``.
    tol, max_iter, pos_label, verbose, warm_start

    Attributes
    ----------
    coef_, intercept_, classes_, objective_, dual_gap_, n_iter_, trace_, n_features_in_, feature_names_in_

    Notes
    -----
    The objective of "auto", its ``C`` and its ``tol`` are described in :class:`FBetaClassifier`.

    With "convex", zero weights are optimal for every ``C`` if, in every direction, the mean of the positives is at most
    that of the ``k`` highest negatives, as for the convex bounds of the partial AUC. This can occur for a small ``k``
    if the classes overlap strongly. The fit then issues a ``ConvergenceWarning``.

    References
    ----------
    Kar, Narasimhan and Jain, "Surrogate functions for maximizing precision at the top", ICML 2015.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from rocmax import PrecisionAtKClassifier
    >>> X, y = make_classification(n_samples=1000, weights=[0.9], random_state=0)
    >>> model = PrecisionAtKClassifier(k=0.05).fit(X, y)
    >>> round(model.score(X, y), 2)
    0.98
    """

    def __init__(
        self,
        k: float = 0.1,
        loss: str = "auto",
        *,
        C: float = 10.0,
        start_C: float = 1.0,
        reference: str = "best",
        tol: float = 1e-3,
        max_iter: int = 500,
        pos_label: Any = None,
        verbose: bool = False,
        warm_start: bool = False,
    ) -> None:
        stop: Any = {"tol": tol, "max_iter": max_iter, "verbose": verbose}
        super().__init__(loss, C=C, start_C=start_C, pos_label=pos_label, warm_start=warm_start, **stop)
        self.k = k
        self.reference = reference

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_top(self.k)
        check_choice("reference", self.reference, ("best", "positives"))
        if self.loss == "auto" and self.reference != "best":
            raise ValueError(f"reference must be 'best' with loss='auto'; got {self.reference!r}. Use loss='convex'")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Only k rows are predicted positive, whatever the number of positives, so that the accuracy can be low.
        tags.classifier_tags.poor_score = True
        return tags

    def _make_measure(self) -> Measure:
        return PrecisionAtKMeasure(self.k)

    def _convex_loss(self) -> Loss:
        return PrecisionAtK(self.k, self.reference)

    def _remedy(self) -> str:
        if self.loss == "auto":
            return super()._remedy()
        return (
            "The optimum of this convex loss is at zero weights: in no direction is the mean of the positives above "
            'the mean of the k highest negatives. Use loss="auto", which does not collapse, or a k closer to the '
            "number of positives."
        )


class BreakEvenClassifier(ThresholdBasedMixin, LinearScoreClassifier):
    r"""Linear classifier for the precision-recall break-even point.

    The number of training rows predicted positive equals the number of positives.

    Parameters
    ----------
    loss : ...
        The soft version is :class:`~rocmax.losses.SoftPrecision`, the bound :class:`~rocmax.losses.BreakEven`.
    C, start_C, tol, max_iter, pos_label, verbose, warm_start

    Attributes
    ----------
    coef_, intercept_, classes_, objective_, dual_gap_, n_iter_, trace_, n_features_in_, feature_names_in_

    Notes
    -----
    The objective of "auto", its ``C`` and ``tol``, and when "convex" gives zero weights, are described in
    :class:`FBetaClassifier`.

    References
    ----------
    Joachims, "A support vector method for multivariate performance measures", ICML 2005.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from rocmax import BreakEvenClassifier
    >>> X, y = make_classification(n_samples=1000, weights=[0.9], random_state=0)
    >>> model = BreakEvenClassifier().fit(X, y)
    >>> round(model.score(X, y), 2)
    0.88
    """

    def _make_measure(self) -> Measure:
        return BreakEvenPointMeasure()
