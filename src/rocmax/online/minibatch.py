"""Mini-batch training for every measure with a convex loss."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rocmax._support import Array, Bools
from rocmax._validation import Block, TrainingSet, check_choice, check_number, random_source
from rocmax.base import MeasureParameterMixin
from rocmax.linear.base import LinearScoreClassifier
from rocmax.losses import PrecisionAtK
from rocmax.losses.base import Loss
from rocmax.measures import Measure
from rocmax.online.base import RULES as STREAM
from rocmax.online.base import BatchStreamMixin
from rocmax.online.sampling import Buffer, Reservoir, stack
from rocmax.solvers import Callback, Progress, Result
from rocmax.solvers.stochastic import MiniBatchSteps


@dataclass(frozen=True)
class MiniBatchRules:
    """Numbers of the estimator."""

    # Minimum numbers of steps and of passes if max_iter is None.
    fewest_steps: int = 500
    fewest_passes: int = 5


RULES = MiniBatchRules()


class Form(NamedTuple):
    """Form of the method, in which the published one differs from the default."""

    average: str
    positives: str
    fit_intercept: bool
    fewest_steps: int
    fewest_passes: int


PUBLISHED = Form("uniform", "fixed", False, fewest_steps=1, fewest_passes=1)


class StreamState:
    """State of ``partial_fit`` between calls: steps, buffered rows and samples of bounded size."""

    def __init__(
        self, estimator: MiniBatchClassifier, measure: Measure, steps: MiniBatchSteps, rng: np.random.RandomState
    ) -> None:
        self.steps = steps
        self.n_skipped = 0
        self._measure = measure
        self._rng = rng
        self._buffer = Buffer(estimator.batch_size)
        self._positives = None if estimator.reservoir_size is None else Reservoir(estimator.reservoir_size)
        self._sample = Reservoir(STREAM.threshold_rows)
        self._n_negatives = 0

    def take(self, X: Any, positive: Bools) -> None:
        """Add rows and take a step for each full batch."""
        self.remember(X, positive)
        if self._positives is not None:
            X, positive = X[~positive], positive[~positive]
        for batch, labels in self._buffer.push(X, positive):
            weight = None
            if self._positives is not None and len(self._positives):
                ratio = self._positives.seen / self._n_negatives
                batch, labels, weight = with_sample(self._positives.rows()[0], batch, self._measure, ratio)
            if labels.all() or not labels.any():
                self.n_skipped += 1
            else:
                self.steps.step(batch, labels, weight)

    def remember(self, X: Any, positive: Bools) -> None:
        """Add rows to the samples."""
        self._sample.add(X, positive, self._rng)
        if self._positives is not None:
            self._positives.add(X[positive], positive[positive], self._rng)
            self._n_negatives += int((~positive).sum())

    def threshold(self, w: Array) -> float:
        """Return the threshold chosen on the sample; zero if it contains only one class."""
        X, positive = self._sample.rows()
        if positive.all() or not positive.any():
            return 0.0
        return self._measure.threshold(X @ w, positive)


def n_batches(n_rows: int, size: int) -> int:
    """Return the number of batches of about the given size."""
    return max(1, round(n_rows / size))


def with_sample(sample: Any, negatives: Any, measure: Measure, ratio: float) -> tuple[Any, Bools, Array | None]:
    """Return a batch of sampled positives and negatives, with weights if the measure depends on the class ratio."""
    labels = np.arange(sample.shape[0] + negatives.shape[0]) < sample.shape[0]
    weight = None
    if measure.depends_on_class_ratio:
        weight = np.where(labels, ratio * negatives.shape[0] / sample.shape[0], 1.0)
    return stack([sample, negatives]), labels, weight


class MiniBatchClassifier(BatchStreamMixin, MeasureParameterMixin, LinearScoreClassifier):  # type: ignore[misc]  # no weights
    r"""Linear classifier trained by stochastic subgradient descent on mini-batches.

    For each batch of ``batch_size`` rows, one step is taken along a subgradient of the loss on the batch,

    .. math:: w \leftarrow \Pi\bigl(w - \tfrac{\eta}{\sqrt t}\, \nabla R_{\text{batch}}(w)\bigr),

    and the model is a mean of the iterates (1PMB). With ``reservoir_size``, every batch of negatives is compared with
    this number of positives (2PMB), which is better if positives are rare. A stream keeps a sample of the positives;
    ``fit`` cycles through all positives. In a batch, the positives are weighted according to their fraction in the
    data.

    ``fit`` shuffles the rows. ``partial_fit`` processes any number of rows in the given order, in constant memory. Rows
    are buffered until there are ``batch_size`` of them. A batch without positives or without negatives is skipped and
    counted. After ``fit``, ``partial_fit`` continues from the fitted model; for this purpose, the estimator stores a
    sample of at most 10,000 rows. Parameters that affect the steps must not change between calls.

    Parameters
    ----------
    measure : str or Measure, default="partial_auc"
        Measure to train for: "roc_auc", "partial_auc", "tpr_at_fpr", "precision_at_k",
        "break_even_point", "average_precision", "f_beta" or "g_mean", whose convex loss is minimized; that of the
        break-even point for the average precision. An object of :mod:`rocmax.measures` has its own parameters.
    min_fpr : ...
        Used by "partial_auc".
    max_fpr : ...
        Used by "partial_auc"; also the limit of "tpr_at_fpr".
    min_tpr : ...
        Used by "partial_auc".
    k : ...
        Used by "precision_at_k". ``fit`` converts a number to a fraction of the training rows. ``partial_fit`` requires
        a fraction, because the total number of rows is unknown.
    beta : ...
        Used by "f_beta".
    reference : {"best", "positives"}, default="best"
        Reference labeling in the convex loss of the precision at k, see :class:`~rocmax.losses.PrecisionAtK`:
        "positives" is that of the papers. Must be "best" for other measures.
    max_iter : int, default=None
        Maximum number of passes over the rows in ``fit``. None takes 5, or more on small samples, so that there are at
        least 500 steps.
    batch_size : int, default=500
        Number of rows in a batch; the number of negatives if ``reservoir_size`` is given.
    reservoir_size : int, default=None
        Number of positives that each batch of negatives is compared with. None takes the positives of the batch.
    positives : {"cycle", "fixed"}, default="cycle"
        Positives that ``fit`` uses in a pass, with ``reservoir_size``: "cycle" goes through all positives, with weights
        if the measure depends on the fraction of positives. "fixed" draws one sample per pass and uses it in
        all batches without weights, as published. ``partial_fit`` always uses its sample of the stream.
    learning_rate : "auto" or float, default="auto"
        Length of the first step. "auto" takes the length at which a step along the difference of the class means in the
        first batch separates the mean scores by the margin, 1.
    radius : float, default=None
        Upper bound on the L2 norm of the weights, enforced by projection after each step. None means no bound.
    average : {"linear", "uniform"}, default="linear"
        Weights of the iterates in their mean: proportional to the number of the step, so that early steps have little
        influence, or equal, as published.
    fit_intercept : bool, default=True
        Whether the steps include an intercept for losses that depend on a shift of the scores: those of "f_beta" and
        "g_mean", and "precision_at_k" with ``reference="positives"``. It is not part of the published methods. The
        threshold is chosen in both cases.
    as_published : bool, default=False
        Whether to use the published method: 1PMB, or 2PMB with ``reservoir_size``. Then ``average`` is "uniform",
        ``positives`` is "fixed", ``fit_intercept`` is False and the reference of the precision at k is "positives",
        whatever their values, and ``max_iter=None`` takes one pass.
    random_state, pos_label, verbose

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        Weights, the mean of the iterates.
    intercept_ : ndarray of shape (1,)
        Minus the threshold, chosen as in the batch classifier of the same measure, on the training rows, or on a sample
        of 10,000 rows of a stream.
    classes_
    n_steps_ : int
        Number of steps.
    n_skipped_ : int
        Number of batches that were skipped because a class was missing.
    n_iter_ : int
        Number of passes of ``fit`` plus calls of ``partial_fit``.
    objective_ : float
        Loss on the training rows at the end of ``fit``.
    dual_gap_ : float
        NaN, because there is no certificate.
    n_features_in_, feature_names_in_

    Notes
    -----
    ``MiniBatchClassifier(as_published=True)`` is 1PMB, and with ``reservoir_size=batch_size`` 2PMB. The published
    losses are sums, ours are means. Hence a published step length :math:`\eta` corresponds to
    ``learning_rate`` equal to :math:`\eta` times the number of pairs in the window of a batch for the partial AUC, and
    to :math:`\eta m^2 / k` for precision at k and batches with :math:`m` positives, where the published weights are
    :math:`2k/m` times ours.

    References
    ----------
    Kar, Narasimhan and Jain, "Online and stochastic gradient methods for non-decomposable loss functions", NIPS 2014.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from rocmax import MiniBatchClassifier
    >>> X, y = make_classification(n_samples=20000, weights=[0.9], random_state=0)
    >>> model = MiniBatchClassifier("f_beta", random_state=0).fit(X, y)
    >>> round(model.score(X, y), 2)
    0.66
    >>> stream = MiniBatchClassifier("roc_auc", reservoir_size=200, random_state=0)
    >>> for start in range(0, 20000, 700):
    ...     stream = stream.partial_fit(X[start : start + 700], y[start : start + 700], classes=[0, 1])
    >>> stream.n_steps_
    35
    """

    _free = ("max_iter", "random_state", "verbose")
    max_iter: int | None  # type: ignore[assignment]  # None chooses a number of passes by the number of rows
    _stream: StreamState
    # The default applies to models that were saved by versions without this parameter.
    as_published: bool = False

    def __init__(
        self,
        measure: str | Measure = "partial_auc",
        *,
        min_fpr: float = 0.0,
        max_fpr: float = 0.1,
        min_tpr: float = 0.0,
        k: float = 0.1,
        beta: float = 1.0,
        reference: str = "best",
        max_iter: int | None = None,
        batch_size: int = 500,
        reservoir_size: int | None = None,
        positives: str = "cycle",
        learning_rate: float | str = "auto",
        radius: float | None = None,
        average: str = "linear",
        fit_intercept: bool = True,
        as_published: bool = False,
        random_state: Any = None,
        pos_label: Any = None,
        verbose: bool = False,
    ) -> None:
        self.measure = measure
        self.min_fpr = min_fpr
        self.max_fpr = max_fpr
        self.min_tpr = min_tpr
        self.k = k
        self.beta = beta
        self.reference = reference
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.reservoir_size = reservoir_size
        self.positives = positives
        self.learning_rate = learning_rate
        self.radius = radius
        self.average = average
        self.fit_intercept = fit_intercept
        self.as_published = as_published
        self.random_state = random_state
        self.pos_label = pos_label
        self.verbose = verbose

    def _make_state(self, measure: Measure, n_features: int) -> None:
        steps = self.make_steps(measure, n_features)
        self._stream = StreamState(self, measure, steps, random_source(self.random_state))

    def _update(self, measure: Measure, block: Block) -> None:
        stream = self._stream
        before = stream.steps.n_steps
        stream.take(block.X, block.positive)
        self.n_iter_ += 1
        self.n_steps_, self.n_skipped_ = stream.steps.n_steps, stream.n_skipped
        self.dual_gap_ = np.nan
        if not hasattr(self, "coef_") or self.n_steps_ > before:
            w = stream.steps.mean_w
            self._keep_weights(w, stream.threshold(w), block)

    def _check_parameters(self) -> None:
        self._check_measure()
        check_number("batch_size", self.batch_size, above=1, integer=True)
        check_choice("positives", self.positives, ("cycle", "fixed"))
        check_choice("average", self.average, ("linear", "uniform"))
        for name in ("max_iter", "reservoir_size"):
            if getattr(self, name) is not None:
                check_number(name, getattr(self, name), above=0, integer=True)
        if self.learning_rate != "auto":
            check_number("learning_rate", self.learning_rate, above=0.0)
        if self.radius is not None:
            check_number("radius", self.radius, above=0.0)

    def make_steps(self, measure: Measure, n_features: int) -> MiniBatchSteps:
        """Return the optimizer in its initial state."""
        radius = np.inf if self.radius is None else self.radius
        rate = None if isinstance(self.learning_rate, str) else self.learning_rate
        loss, form = self._convex_loss(measure).with_intercept(), self._form()
        return MiniBatchSteps(loss, n_features, rate, radius, form.average, form.fit_intercept)

    def _form(self) -> Form:
        own = Form(self.average, self.positives, self.fit_intercept, RULES.fewest_steps, RULES.fewest_passes)
        return PUBLISHED if self.as_published else own

    def _convex_loss(self, measure: Measure) -> Loss:
        loss = super()._convex_loss(measure)
        return replace(loss, reference="positives") if self.as_published and isinstance(loss, PrecisionAtK) else loss

    def _minimize(self, data: TrainingSet, w0: Array | None, callback: Callback | None) -> Result:
        rng = random_source(self.random_state)
        rows = rng.permutation(data.positive.size)
        measure = self._make_measure().as_fraction(rows.size)
        per_pass = n_batches(rows.size, self.batch_size)
        form = self._form()
        passes = self.max_iter or max(form.fewest_passes, -(-form.fewest_steps // per_pass))
        steps, trace = self.make_steps(measure, data.X.shape[1]), []
        n_skipped = 0
        for n_iter in range(1, passes + 1):
            for X, positive, weight in self._batches(measure, data, rows, rng):
                if positive.all() or not positive.any():
                    n_skipped += 1
                else:
                    steps.step(X, positive, weight)
            trace.append(Progress(np.nan, np.nan, n_iter))
            if callback is not None:
                callback(trace[-1])
        self._begin_stream(measure, data, steps, rng, n_skipped)
        w, b = steps.mean_w.copy(), steps.mean_b
        bound = self._convex_loss(measure).with_intercept().bind(data.positive[rows])
        objective = bound.value_and_gradient((data.X @ w + b)[rows])[0]
        trace[-1] = trace[-1]._replace(objective=objective)
        return Result(w, objective, np.nan, len(trace), True, "all passes done", trace)

    def _begin_stream(
        self, measure: Measure, data: TrainingSet, steps: MiniBatchSteps, rng: np.random.RandomState, n_skipped: int
    ) -> None:
        """Store the state from which ``partial_fit`` continues."""
        stream = StreamState(self, measure, steps, rng)
        stream.n_skipped = n_skipped
        stream.remember(data.X, data.positive)
        self._stream, self.n_steps_, self.n_skipped_ = stream, steps.n_steps, n_skipped

    def _batches(
        self, measure: Measure, data: TrainingSet, rows: NDArray[np.intp], rng: np.random.RandomState
    ) -> Iterator[tuple[Any, Bools, Array | None]]:
        """Yield the batches of one pass."""
        rows = rng.permutation(rows)
        if self.reservoir_size is None:
            # Batches of nearly equal size, without a small last one.
            for part in np.array_split(rows, n_batches(rows.size, self.batch_size)):
                yield data.X[part], data.positive[part], None
            return
        positives = rows[data.positive[rows]]
        negatives = rows[~data.positive[rows]]
        ratio, size = positives.size / negatives.size, min(self.reservoir_size, positives.size)
        fixed = self._form().positives == "fixed"
        for i, part in enumerate(np.array_split(negatives, n_batches(negatives.size, self.batch_size))):
            # All positives are in memory: by default, cycle through them, because a single sample for the whole pass
            # would cause a bias. The rows are in random order, so that the first positives are a random sample.
            first = 0 if fixed else i * size
            sample = positives.take(np.arange(first, first + size), mode="wrap")
            X, labels, weight = with_sample(data.X[sample], data.X[part], measure, ratio)
            yield X, labels, None if fixed else weight
