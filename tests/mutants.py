"""Whether the tests notice when the code is wrong: a seeded sample of mutants, each run against the tests next to it.

``python tests/mutants.py --n 30 --seed 1 --modules losses/ metrics/scores.py`` changes one operator, number, ``and``,
``not``, ``min`` or returned value of a function at a time, and runs those tests next to the module that call the
function. A mutant that no test notices has survived. ``equivalent_mutants.toml`` lists those that no test can notice,
with the reason, by the line that changes. Not changed: numbers at the top level of modules, which are tuned, tolerances
for rounding errors, defaults, which other tests compare with the documents, types, and texts of errors and warnings.

pytest runs once for each folder of tests, with this file as a plugin: it first records which functions each test calls,
and then makes a process for each mutant in which the code of a function is replaced, so that no file changes.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from pathlib import Path
from types import FunctionType

from _pytest.runner import runtestprotocol

sys.path[:0] = [str(Path(__file__).parent)]
from helpers.mutations import ROOT, Module  # noqa: E402  # of this folder

EQUIVALENT = Path(__file__).with_name("equivalent_mutants.toml")
MODULES = [
    *("losses/", "metrics/", "measures.py", "penalties.py", "thresholds.py", "kernel/qp.py"),
    *("solvers/cutting_plane.py", "solvers/proximal_bundle.py"),
    *("online/loops.py", "online/follow_the_leader.py", "online/psam.py", "papers/streams.py"),
]
# The tests next to a module, by the folder or file that it is in.
NEAR = {
    "losses": ["losses", "test_contracts.py", "online/test_carried_cuts.py"],
    "metrics": ["metrics"],
    "measures.py": ["measures", "test_*threshold*.py"],
    "penalties.py": ["penalties", "solvers/test_solvers_constraints.py"],
    "thresholds.py": ["test_*threshold*.py", "test_tpr_floor.py", "test_limits.py"],
    "kernel": ["kernel"],
    "solvers": ["solvers"],
    "online": ["online"],
    "papers": ["online", "papers"],
}


def options():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--n", type=int, default=100, help="number of mutants")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--modules", nargs="*", default=MODULES, help="modules, or the folders they are in")
    parser.add_argument("--contains", default="", help="only mutants of lines with this text")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--budget", type=float, default=300.0, help="most seconds of tests for a mutant")
    parser.add_argument("--calls", type=Path, help="folder of what tests call, from an earlier run or for later ones")
    return parser


def sampled(args):
    """Return the mutants of the sample, the modules, and how many mutants there are and are known as equivalent."""
    names = [str(path.relative_to(ROOT)) for path in sorted(ROOT.rglob("*.py")) if path.name != "__init__.py"]
    modules = {name: Module(name) for name in names if name.startswith(tuple(args.modules))}
    known = {(one["line"], one["becomes"]) for one in tomllib.loads(EQUIVALENT.read_text(encoding="utf-8"))["mutant"]}
    found = [mutant for module in modules.values() for mutant in module.found if args.contains in mutant.before[0]]
    candidates = [mutant for mutant in found if mutant.key() not in known]
    sample = random.Random(args.seed).sample(candidates, min(args.n, len(candidates)))
    return sample, modules, (len(found), len(found) - len(candidates))


def main():
    args = options().parse_args()
    sample, _, (total, known) = sampled(args)
    print(f"{total} mutants, {known} known as equivalent; {len(sample)} run", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results"
        results.touch()
        for key in sorted({mutant.module.partition("/")[0] for mutant in sample}):
            here = Path(__file__).parent
            tests = [str(found) for pattern in NEAR[key] for found in sorted(here.glob(pattern))]
            command = [sys.executable, "-m", "pytest", "-q", "-p", "mutants", "-p", "no:cacheprovider", *tests]
            environment = {"PYTHONPATH": os.pathsep.join([str(here), os.environ.get("PYTHONPATH", "")])}
            environment |= {"ROCMAX_MUTANTS": json.dumps([*sys.argv[1:]]), "ROCMAX_NEAR": key}
            environment |= {"ROCMAX_RESULTS": str(results), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
            done = subprocess.run(command, env=os.environ | environment, stdout=subprocess.PIPE, text=True)
            if done.returncode != 0:
                print(done.stdout)
        lines = results.read_text(encoding="utf-8").splitlines()
    counts = Counter(line.partition(" ")[0] for line in lines)
    print(f"seed {args.seed}: {counts['killed']} of {counts.total()} killed")


# The plugin of pytest


def pytest_runtestloop(session):
    """Run the mutants of one folder instead of the tests."""
    args = options().parse_args(json.loads(os.environ["ROCMAX_MUTANTS"]))
    key = os.environ["ROCMAX_NEAR"]
    sample, modules, _ = sampled(args)
    calls = recorded(session.items, args.calls and args.calls / f"{key}.json")
    waiting = [mutant for mutant in sample if mutant.module.partition("/")[0] == key]
    running = {}
    while waiting or running:
        if waiting and len(running) < args.jobs:
            mutant = waiting.pop()
            tests = tests_of(mutant, session.items, calls, args.budget)
            code = modules[mutant.module].code(mutant)
            child = forked(functools.partial(run_mutant, mutant, code, tests, calls))
            running[child] = mutant, time.monotonic()
        for child, (mutant, began) in list(running.items()):
            seconds = time.monotonic() - began
            if seconds > 60 + 5 * args.budget:
                os.kill(child, signal.SIGKILL)
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                del running[child]
                report("killed" if status else "survived", seconds, mutant)
        time.sleep(0.02)
    return True


def report(outcome, seconds, mutant):
    sys.stderr.write(f"{outcome} ({seconds:.0f} s) {mutant}\n\n")
    with Path(os.environ["ROCMAX_RESULTS"]).open("a", encoding="utf-8") as file:
        file.write(f"{outcome}\n")


def forked(function):
    """Call a function in a process of its own, without output; its exit code is 1 if the function fails or says so."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            for stream in (1, 2):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
            code = int(bool(function()))
        finally:
            os._exit(code)
    return child


def recorded(items, file):
    """Return the time of each test and the functions that it calls; those in a file if it exists."""
    with tempfile.TemporaryDirectory() as folder:
        file = file or Path(folder) / "calls.json"
        if not file.exists():
            os.waitpid(forked(functools.partial(record, items, file)), 0)
        calls = json.loads(file.read_text(encoding="utf-8"))
    new = {"seconds": 0.0, "functions": None}  # run first
    return {item.nodeid: calls.get(item.nodeid, new) for item in items}


def record(items, file):
    calls, codes = {}, set()

    def seen(frame, event, _):
        if event == "call":
            codes.add(frame.f_code)

    for item, following in zip(items, [*items[1:], None], strict=True):
        codes.clear()
        began = time.perf_counter()
        sys.setprofile(seen)
        passed = passes(item, following)
        sys.setprofile(None)
        # A test that fails without a mutant is not run with one.
        places = [(code.co_filename, code.co_qualname.partition(".<")[0]) for code in codes if passed]
        functions = {f"{Path(file).relative_to(ROOT)}:{name}" for file, name in places if file.startswith(str(ROOT))}
        calls[item.nodeid] = {"seconds": time.perf_counter() - began, "functions": sorted(functions)}
    file.write_text(json.dumps(calls), encoding="utf-8")


def passes(item, following):
    return not any(report.failed for report in runtestprotocol(item, log=False, nextitem=following))


def tests_of(mutant, items, calls, budget):
    """Return the tests that call the function of a mutant, fast ones first, up to a number of seconds."""

    def call(items, start):
        functions = {item: calls[item.nodeid]["functions"] for item in items}
        return [item for item in items if functions[item] is None or any(map(start, functions[item]))]

    found = call(items, f"{mutant.module}:{mutant.function}".__eq__)
    if all(calls[item.nodeid]["functions"] is None for item in found):
        # Calls of compiled functions are not seen.
        found = call(items, lambda name: name.startswith(f"{mutant.module}:"))
    found.sort(key=lambda item: calls[item.nodeid]["seconds"])
    tests, spent = [], 0.0
    for item in found:
        spent += calls[item.nodeid]["seconds"]
        tests += [item] if spent <= budget or not tests else []
    return tests


def run_mutant(mutant, code, tests, calls):
    """Run tests with the code of a function replaced; return whether one of them fails."""
    function_of(mutant).__code__ = code
    # Compiled functions are looked up by the time of the file, which has not changed.
    os.environ["NUMBA_CACHE_DIR"] = tempfile.mkdtemp(dir=Path(os.environ["ROCMAX_RESULTS"]).parent)
    if "numba" in sys.modules:
        importlib.import_module("numba").config.CACHE_DIR = os.environ["NUMBA_CACHE_DIR"]
    signal.signal(signal.SIGALRM, too_long)
    for test, following in zip(tests, [*tests[1:], None], strict=True):
        signal.alarm(30 + int(10 * calls[test.nodeid]["seconds"]))
        if not passes(test, following):
            return True
    return False


def too_long(*_):
    raise TimeoutError("the test takes much longer than without the mutant")


def function_of(mutant):
    """Return the function that has the mutant, without decorators."""
    found = importlib.import_module(".".join(("rocmax", *Path(mutant.module).with_suffix("").parts)))
    for name in mutant.function.split("."):
        found = vars(found)[name]
    while not isinstance(found, FunctionType):
        found = next(
            getattr(found, name) for name in ("fget", "func", "__func__", "__wrapped__") if hasattr(found, name)
        )
    while hasattr(found, "__wrapped__"):
        found = found.__wrapped__
    return found


if __name__ == "__main__":
    main()
