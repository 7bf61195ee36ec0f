"""What tests of several files share."""

import pytest
from hypothesis import HealthCheck, settings

from helpers.commands import FIT, LINEAR, run
from helpers.tables import payments

# Property tests draw the same examples in every run, and are not timed: a machine can be busy.
settings.register_profile(
    "repeatable", derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("repeatable")


def pytest_addoption(parser):
    parser.addoption("--first-case", action="store_true", help="only the first case of each test, and no slow test")


def pytest_collection_modifyitems(config, items):
    """With ``--first-case``, keep one case of each test function and leave out what is slow."""
    if not config.getoption("--first-case"):
        return
    kept, seen = [], set()
    for item in items:
        test = item.nodeid.partition("[")[0]
        if test not in seen and item.get_closest_marker("slow") is None:
            seen.add(test)
            kept.append(item)
    config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
    items[:] = kept


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A folder with a table to learn from, train.csv, and another, test.csv."""
    folder = tmp_path_factory.mktemp("cli")
    payments(1200, 0).to_csv(folder / "train.csv", index=False)
    payments(900, 1).to_csv(folder / "test.csv", index=False)
    return folder


@pytest.fixture(scope="session")
def fitted(folder):
    """The model file that `rocmax fit` wrote, and what it printed."""
    done = run("fit", folder / "train.csv", *FIT, *LINEAR, "--out", folder / "model.rocmax")
    return folder / "model.rocmax", done
