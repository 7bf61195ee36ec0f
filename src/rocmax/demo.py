"""Card payments that are generated: arrays for the examples, and the tables and commands of ``rocmax demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocmax._files import write_file
from rocmax._support import Array, Parameter, ParameterError, need

N_ROWS, N_LATER = 24_000, 12_000
ALERTS = "alerts.csv"


def make_payments(seed: int, n_rows: int = 40_000) -> tuple[Array, NDArray[np.int_]]:
    """Generate payments with 20 features, label 1 for fraud, which is 5 % of them.

    Features 0 to 4 measure activity, features 5 to 10 indicate specific kinds of fraud, and the others are noise. All
    features are correlated and heavy-tailed. Half of the frauds have slightly higher activity (*takeover*), 40 % have
    high values of specific indicators (*card testing*), and the others have both. A few honest customers are more
    active than most frauds (*travelers*). Activity therefore separates fraud from most payments, but it is misleading
    near the top of the ranking.
    """
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((n_rows, 3)) @ rng.normal(0.0, 0.4, (3, 20))
    # Scale each row so that it follows Student's t distribution with 8 degrees of freedom.
    tail = np.sqrt(8.0 / rng.chisquare(8.0, (n_rows, 1)))
    X = (rng.standard_normal(factors.shape) + factors) * tail
    y = (np.arange(n_rows) < n_rows // 20).astype(np.int_)
    fraud = rng.choice(["takeover", "card testing", "both"], n_rows, p=[0.5, 0.4, 0.1])
    honest = rng.choice(["ordinary", "traveler"], n_rows, p=[0.975, 0.025])
    kind = np.where(y == 1, fraud, honest)
    activity = np.array([1.5, 1.2, 1.2, 1.0, 1.0])
    X[kind == "takeover", :5] += activity
    X[kind == "card testing", 5:8] += [3.0, 2.7, 2.7]
    X[kind == "both", :5] += 0.6 * activity
    X[kind == "both", 8:11] += 2.2
    X[kind == "traveler", :5] += [2.5, 2.2, 2.2, 2.0, 2.0]
    return X, y


def payments_table(seed: int) -> Any:
    """Return payments of 18 months in the order of time, with the columns that such tables have; 4 % are frauds.

    Half of the frauds take over a card and buy more than its owner does; the others test stolen cards, with small
    payments online. Some honest customers travel, and look more suspicious than most takeovers.
    """
    rng = np.random.default_rng(seed)
    n = N_ROWS + N_LATER
    kind = rng.choice(["ordinary", "traveler", "takeover", "testing"], n, p=[0.94, 0.02, 0.02, 0.02])
    away, takeover, testing = (kind == name for name in ("traveler", "takeover", "testing"))
    customer = rng.integers(0, 3000, n)
    habit = rng.normal(size=(2, 3000))[:, customer]

    def heavy(mean: Array) -> Array:
        return mean + rng.standard_t(6, n)

    amount = np.exp(3.2 + 0.5 * habit[0] + 0.7 * heavy(2.2 * away + 1.5 * takeover - 1.8 * testing))
    distance = np.exp(1.5 + 0.6 * heavy(5.0 * away + 2.6 * takeover))
    in_an_hour = 1 + rng.poisson(np.exp(0.1 * habit[1] + 1.2 * away + 0.7 * takeover + 1.6 * testing))
    days_known = np.clip(rng.exponential(700, n) * np.where(testing, 0.3, 1.0), 0, 4000)
    online = rng.random(n) < np.select([away, takeover, testing], [0.1, 0.5, 0.97], 0.35)
    merchant = rng.choice(["grocery", "fuel", "restaurant", "fashion", "electronics", "gift cards"], n)
    merchant[away & (rng.random(n) < 0.8)] = "restaurant"
    merchant[testing & (rng.random(n) < 0.5)] = "gift cards"
    minutes = np.sort(rng.integers(0, 540 * 1440, n))
    return need("pandas").DataFrame(
        {
            "payment": np.arange(n),
            "time": np.datetime64("2024-01-01T00:00") + minutes.astype("timedelta64[m]"),
            "customer": np.char.add("c", customer.astype(str)),
            "amount": amount.round(2),
            "merchant": merchant,
            "country": rng.choice(["FR", "DE", "IT", "ES", "US"], n, p=[0.5, 0.2, 0.15, 0.08, 0.07]),
            "online": np.where(online, "yes", "no"),
            "payments_in_an_hour": in_an_hour,
            "distance_from_home": np.where(online | (rng.random(n) < 0.05), np.nan, distance.round(1)),
            "days_known": np.where(rng.random(n) < 0.08, np.nan, days_known.round()),
            "label": np.where(takeover | testing, "fraud", "ok"),
        }
    )


def commands(directory: Path, seed: int) -> list[list[str]]:
    """Write the tables of the demo; return the commands to run, the last of which writes the report."""
    if directory.exists() and not directory.is_dir():
        raise ParameterError(Parameter("out"), f" must be a directory; got the file {str(directory)!r}")
    directory.mkdir(parents=True, exist_ok=True)
    table = payments_table(seed)
    names = ("payments.csv", "later.csv", "model.rocmax", ALERTS, "report.html")
    payments, later, model, alerts, report = (str(directory / name) for name in names)
    for path, rows in ((payments, table[:N_ROWS]), (later, table[N_ROWS:])):
        write_file(Path(path), rows.to_csv(index=False).encode())
    target = ["--target", "label", "--positive", "fraud", "--time", "time", "--id", "payment", "--id", "customer"]
    return [
        ["fit", payments, *target, "--max-fpr", "0.01", "--confidence", "0.95", "--out", model],
        ["evaluate", model, later],
        ["predict", model, later, "--reasons", "2", "--out", alerts],
        ["report", model, later, "--out", report],
    ]


def top_alerts(directory: Path, n: int = 3) -> list[str]:
    """Return a line for each of the highest scores in the predictions: the payment, and why it is stopped."""
    alerts = need("pandas").read_csv(directory / ALERTS).nlargest(n, "score")
    return [
        f"payment {row['payment']}: score {row['score']:.2f}, because of "
        + ", ".join(
            f"{row[f'reason_{i}']} = {row[f'reason_{i}_value']} ({row[f'reason_{i}_effect']:+.2f})" for i in (1, 2)
        )
        for _, row in alerts.iterrows()
    ]
