"""A plugin of pytest for `tests/mutants.py`: which functions of rocmax a test calls, and tests that call one.

With ``ROCMAX_RECORD=file``, it writes the time of each test that passes and the functions that run in it. With
``ROCMAX_TESTS=file``, only the tests in the file run, in the order of the file.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path

import pytest

import rocmax

ROOT = f"{Path(rocmax.__file__).parent}{os.sep}"
RECORDS = {}
RECORD_FILE, TESTS_FILE = os.environ.get("ROCMAX_RECORD"), os.environ.get("ROCMAX_TESTS")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    if RECORD_FILE is None:
        return (yield)
    codes = set()

    def seen(frame, event, _):
        if event == "call":
            codes.add(frame.f_code)

    threading.setprofile(seen)
    sys.setprofile(seen)
    began = time.perf_counter()
    try:
        return (yield)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        names = {
            f"{code.co_filename.removeprefix(ROOT)}:{code.co_qualname.partition('.<')[0]}"
            for code in codes
            if code.co_filename.startswith(ROOT)
        }
        RECORDS[item.nodeid] = {"seconds": time.perf_counter() - began, "functions": sorted(names)}


def pytest_collection_modifyitems(config, items):
    if TESTS_FILE is not None:
        place = {name: i for i, name in enumerate(json.loads(Path(TESTS_FILE).read_text(encoding="utf-8")))}
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in place])
        items[:] = sorted((item for item in items if item.nodeid in place), key=lambda item: place[item.nodeid])


def pytest_sessionfinish():
    if RECORD_FILE is not None:
        Path(RECORD_FILE).write_text(json.dumps(RECORDS), encoding="utf-8")
