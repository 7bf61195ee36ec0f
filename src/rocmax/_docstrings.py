"""Public names: where they are exported, and the texts that their docstrings share."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

# A docstring refers to an entry by a line with its bare name, or with several names: ``tol, max_iter, pos_label``. A
# line ``tol : ...`` is followed by more text. The default is that of the signature. A text that differs is written
# where it belongs, with its type as usual.
SHARED = {
    "Parameters": r"""
ax : matplotlib.axes.Axes
    Axes to plot on. If None, a new figure is created.
beta : float
    Weight of the recall, above 0.
C : float
    Regularization parameter, the weight of the loss against the penalty. Must be positive.
coef0 : float
    Independent term of the "poly" and "sigmoid" kernels.
columns : sequence of str
    Features to read, in this order. If None, all columns are read except the target and the column of weights.
confidence_level : float
    Confidence level of the interval, above 0 and below 1.
constraint : {"l2", "l1", "elasticnet", "group"}
    Norm constraint on the weights. None adds the penalty :math:`\frac{1}{2}|w|^2` to ``C`` times the loss. Otherwise
    the loss alone is minimized, subject to :math:`\Omega(w) \le` ``radius``, and ``C`` is not used: "l2"
    :math:`|w|_2`, "l1" :math:`|w|_1` (few features), "elasticnet" :math:`\kappa|w|_1 + \frac{1-\kappa}{2}|w|_2^2`
    (more features, and correlated ones together), "group" :math:`\sum_p |w_p|_2` (few groups of features). The
    features should have a common scale.
degree : int
    Degree of the "poly" kernel.
delimiter : str
    Field delimiter of a text table. If None, it is detected from the header and the first rows.
encoding : str
    The encoding of a text table. If None, it is detected in its first 4 MB: UTF-8, otherwise cp1252, a superset of
    latin-1.
estimator : estimator
    Classifier with ``decision_function`` or ``predict_proba``.
gamma : {"scale", "auto"} or float
    Kernel coefficient of "rbf", "poly" and "sigmoid". "scale" is ``1 / (n_features * X.var())``, "auto" is ``1 /
    n_features``.
group : str
    A column; rows with the same value in it stay on one side of every split.
groups : array-like of shape (n_samples,)
    Group of each row, such as a customer. Rows of one group may depend on each other; groups are independent. None
    means independent rows.
k : int or float
    Number of rows as an int, or fraction of all rows, above 0 and at most 1, as a float.
kernel : {"rbf", "linear", "poly", "sigmoid", "precomputed"} or callable
    Kernel, which must be positive semidefinite. Its parameters are those of scikit-learn's ``SVC``.
l1_ratio : float
    The :math:`\kappa` of ``constraint="elasticnet"``, from 0 to 1.
loss : {"auto", "convex"}
    Loss to minimize:

    - "auto": minimizes a soft version of the measure, starting from logistic regression. A penalty on the change of
      the scores regularizes the fit towards this starting point. The fit cannot collapse to zero weights, and the
      measure on the training rows is at least that of the starting point. Features are standardized internally, so
      their scale does not matter.
    - "convex": minimizes :math:`\frac{1}{2}|w|^2 + C R(Xw)` with a convex bound, to a certified gap. If the classes
      overlap strongly, the optimum can be at zero weights.

max_fpr : float
    Upper end of the range of false-positive rates, above ``min_fpr`` and at most 1.
max_gram_mb : float
    Maximum size of the Gram matrix in megabytes; 1000 corresponds to 11,180 rows.
max_iter : int
    Maximum number of iterations.
measure : str, Measure or callable
    Name of a measure, one of :func:`rocmax.measures.measure_names`, with or without the suffix ``_score``; or a
    :class:`~rocmax.measures.Measure`; or the function itself, scikit-learn's ``roc_auc_score`` and
    ``average_precision_score`` too.
min_fpr : float
    Lower end of the range of false-positive rates, at least 0.
min_tpr : float
    Lower limit on the true-positive rate, at least 0 and below 1.
n_bins : int
    Maximum number of bins, at least 2. With at most as many distinct scores, the value is exact.
n_features : int
    Number of features of an svmlight file. If None, the largest index is used.
n_jobs : int or None
    Number of parallel processes. None means 1, unless in a :obj:`joblib.parallel_config` context; -1 means all cores.
path : str, Path or data frame
    A file that ends in .csv, .tsv, .xlsx, .parquet (.pq) or .svmlight (.svm, .libsvm); text may be compressed (.gz,
    .bz2, .zst). A pandas or polars DataFrame is also accepted.
pos_label : int, float, bool or str
    Label of the positive class. None takes the larger label.
positive : object
    Label of the positive class. None is enough where there is no doubt: 0 and 1, "no" and "yes".
radius : float
    Upper bound on the norm or penalty of the weights, above zero.
random_state : int, RandomState instance or None
    Seed or generator of all random draws. Pass an int for reproducible results; None draws a new seed. NumPy's
    global generator is never used.
reading : Reading
    How the table is written and read: delimiter, decimal mark, missing values, and more. None detects it or, for a
    fitted model, reads the table as that of the fit.
running : Running
    Where the call runs, and whom it tells what it does.
sample_weight : array-like of shape (n_samples,)
    Sample weights; a weight is equivalent to a number of copies of the row.
skip_unlabeled : bool
    Whether to leave out rows without a label, which are otherwise an error.
solver : {"certified", "cutting_plane"}
    Solver of the penalized problem. "certified" finds the minimum, with a certified duality gap. "cutting_plane" is
    Algorithm 1 of Narasimhan and Agarwal, :class:`~rocmax.solvers.CuttingPlane`: it stops when no constraint is
    violated by more than ``tol``, which is absolute (:math:`10^{-4}` in the paper), and returns its last iterate, even
    where zero weights have a lower objective.
start_C : float
    Regularization parameter of the logistic regression from which ``loss="auto"`` starts.
table : str, Path, list of them, file or data frame
    A file (csv, tsv, xlsx, parquet or svmlight, text also compressed), or a DataFrame of pandas or polars. Columns are
    found by name.
target : str
    Name of the column with the labels. An svmlight file stores its labels itself and takes no target.
timeout : float
    Seconds for which workers are awaited if there is none, or if none of them loads a partition.
tol : float
    Tolerance for stopping: the fit stops when ``dual_gap_`` is at most ``tol`` times ``objective_``, and at most
    ``tol`` times the improvement of the objective over zero weights.
types : dict
    "number" or "text" for columns whose type should not be inferred.
verbose : bool
    Whether to report progress on standard error.
warm_start : bool
    Whether to start from the solution of the previous fit.
X : array-like of shape (n_samples, n_features)
    Rows.
y : array-like of shape (n_samples,)
    Two classes, of any type.
y_pred : array-like of shape (n_samples,)
    Predicted labels.
y_score : array-like of shape (n_samples,)
    Higher means more likely positive.
y_true : array-like of shape (n_samples,)
    Two classes, of any type.
zero_based : bool
    Whether the feature indices of an svmlight file start at 0 instead of 1.
""",
    "Attributes": r"""
classes_ : ndarray of shape (2,)
    The classes.
coef_ : ndarray of shape (1, n_features)
    Weights.
dual_gap_ : float
    The objective minus a certified lower bound on its minimum; NaN where the loss is not convex.
estimator_ : estimator
    The fitted classifier.
feature_names_in_ : ndarray
    Names of the features, if `X` had any.
intercept_ : ndarray of shape (1,)
    Minus the threshold.
n_features_in_ : int
    Number of features.
n_iter_ : int
    Number of iterations.
objective_ : float
    The objective at the solution.
positive_class_ : object
    The positive class.
support_ : ndarray of shape (n_support,)
    Indices of the support vectors.
support_vectors_ : ndarray or CSR matrix of shape (n_support, n_features)
    Support vectors; not available for "precomputed".
threshold_ : float
    Rows with a score above it are predicted positive. The score is the decision function, with the sign that makes
    high values indicate the positive class, or the probability of the positive class.
trace_ : list of Progress
    Objective, bound and passes over the data, one entry per iteration.
""",
}


_DECISION_VALUES = """ndarray of shape (n_samples,)
    Decision values. With ``pos_label=classes_[0]``, *lower* values indicate the positive class, as expected by
    scikit-learn's scorers and displays; ``positive_scores`` returns values in which higher means positive."""


def _entries(text: str) -> dict[str, str]:
    """Return the entries of a section by name."""
    return {entry.split(" : ")[0]: entry for entry in re.split(r"\n(?=\S)", text.strip())}


_ENTRIES = {section: _entries(text) for section, text in SHARED.items()} | {
    "Returns": {"decision_values": _DECISION_VALUES, "self": "self : object\n    The fitted estimator."}
}
_NAMES = re.compile(r"\w+(, \w+)*")


def publish(public: str, namespace: dict[str, Any], names: Iterable[str]) -> None:
    """Make classes and functions of a ``namespace`` public: complete their docstrings, and set their ``__module__``.

    ``__module__`` becomes the public module that exports them, as in NumPy and SciPy, so that pickles, model files,
    reprs and the documentation do not depend on the file of the definition. Objects of other packages are not changed.
    """
    for name in names:
        value = namespace[name]
        ours = (inspect.isclass(value) or inspect.isfunction(value)) and value.__module__.startswith("rocmax")
        if ours and value.__name__ == name:
            complete(value)
            value.__module__ = public


def complete(value: Any) -> None:
    """Fill the shared texts into the docstring of a function, or of a class, its base classes and their methods."""
    if not inspect.isclass(value):
        _fill(value)
        return
    for owner in value.__mro__:
        if owner.__module__.startswith("rocmax"):
            _fill(owner)
            for member in vars(owner).values():
                member = getattr(member, "__func__", getattr(member, "fn", member))  # `fn` with `available_if`
                if inspect.isfunction(member):
                    _fill(member)


def _fill(value: Any) -> None:
    lines: list[str] = []
    given = inspect.cleandoc(value.__doc__ or "").splitlines()
    section = ""
    for line, following in pairwise([*given, ""]):
        if following and not following.strip("-"):
            section = line
        elif section in _ENTRIES and (line.endswith(" : ...") or (_NAMES.fullmatch(line) and following[:1] != " ")):
            lines += [_entry(section, name, value) for name in line.removesuffix(" : ...").split(", ")]
            continue
        lines.append(line)
    if lines != given:
        value.__doc__ = "\n".join(lines)


def _entry(section: str, name: str, value: Any) -> str:
    """Return a shared entry, with the default of the signature."""
    try:
        entry = _ENTRIES[section][name]
    except KeyError:
        raise ValueError(f"docstring of {value.__qualname__}: no shared text for {name!r} of {section}") from None
    if section != "Parameters":
        return entry
    default = inspect.signature(value).parameters[name].default
    if default is inspect.Parameter.empty:
        return entry
    written = f'"{default}"' if isinstance(default, str) else repr(default)
    head, _, text = entry.partition("\n")
    return f"{head}, default={written}\n{text}"
