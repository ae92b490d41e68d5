"""Names on the command line: every one of them runs; what is not a name is said in one line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.parts import registry
from hpcsimkit.experiments.parts.catalogue import Entry, entries
from hpcsimkit.experiments.parts.registry import make
from hpcsimkit.io import catalogue
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.policies import (
    EASY,
    F1,
    FCFS,
    SAF,
    SJF,
    WFP3,
    Conservative,
    Greedy,
    HoldUnfit,
    LargestFirst,
    LastTwo,
    Noisy,
    RandomOrder,
    Reservations,
    ShortestPredicted,
    SlurmMultifactor,
)  # fmt: skip
from tests.kernel.helpers import run, workload

JOBS = workload(
    [(0, 10, 12, 3), (1, 5, 5, 4), (2, 8, 8, 1), (2, 20, 7, 1), (3, 0, 9, 2), (30, 4, 4, 4)], 4,
    user=[1, 2, 1, 2, 3, 1], queue=[1, 1, 2, 2, 1, 1], recorded_wait_time=[0, 9, 5, 2, 1, 0],
)  # fmt: skip

BUILT_IN = ["fcfs", "lcfs", "sjf", "ljf", "saf", "laf", "sqf", "largest", "srf", "wfp3", "unicef", "f1", "f2", "f3", "f4", "xfactor", "slurm", "random", "oracle-sjf", "oracle-saf", "none", "easy", "easy-sjf", "easy-saf", "easy-bestfit", "easy-k", "easy-ar", "easy-noise", "easy++", "conservative", "conservative-replan", "greedy", "binpacking", "random-fit"]  # fmt: skip


def test_nothing_of_the_catalogue_is_missing() -> None:
    assert set(BUILT_IN) <= {entry.name for entry in entries()}


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: entry.name)
def test_every_name_runs_alone_and_has_one_line(entry: Entry) -> None:
    assert entry.summary and "\n" not in entry.summary
    if entry.name == "boosting":
        pytest.importorskip("sklearn")
    for name in (entry.name, *entry.aliases):
        result = run(JOBS, f"easy+{name}" if entry.kind == "tester" else name)  # which needs reservations
        assert (result.start_time >= JOBS.submit_time).all()
    assert all(make(alias) == make(entry.name) for alias in entry.aliases)


@pytest.mark.parametrize(
    ("name", "policy"),
    [
        ("sjf+easy", Pipeline(order=SJF(), backfiller=EASY())),
        ("easy+sjf", Pipeline(order=SJF(), backfiller=EASY())),
        ("SJF + Easy", Pipeline(order=SJF(), backfiller=EASY())),
        ("fcfs", Pipeline(order=FCFS())),
        ("f1+none", Pipeline(order=F1())),
        ("wfp+greedy", Pipeline(order=WFP3(), backfiller=Greedy())),
        ("easy-k(4)", Pipeline(backfiller=Reservations(4))),
        ("easy-k(count=4)", Pipeline(backfiller=Reservations(4))),
        ("easy-k(None)", Pipeline(backfiller=Reservations(None))),
        ("conservative-replan", Pipeline(backfiller=Reservations(None))),
        ("slurm(age=5.5, shares=equal)+conservative",
         Pipeline(order=SlurmMultifactor(age=5.5, shares="equal"), backfiller=Conservative())),
        ("slurm(qos_priority={'high': 10, 'normal': 1})",
         Pipeline(order=SlurmMultifactor(qos_priority={"high": 10, "normal": 1}))),
        ("slurm(shares='equal')", Pipeline(order=SlurmMultifactor(shares="equal"))),
        ("easy-saf", Pipeline(backfiller=EASY(candidates=SAF()))),
        ("easy++", Pipeline(backfiller=EASY(candidates=ShortestPredicted()), estimates=LastTwo())),
        ("easy+++sjf", Pipeline(order=SJF(), backfiller=EASY(candidates=ShortestPredicted()), estimates=LastTwo())),
        ("fcfs+easy+noisy(1e-1)", Pipeline(order=FCFS(), backfiller=EASY(), estimates=Noisy(0.1))),
        ("hold-unfit+sjf+commit+window(7)", Pipeline(order=SJF(), inspector=HoldUnfit(), commit=True, window=7)),
        ("binpacking", Pipeline(order=LargestFirst(), backfiller=Greedy())),
        ("random-fit", Pipeline(order=RandomOrder(), backfiller=Greedy())),
    ],
)  # fmt: skip
def test_grammar(name: str, policy: Pipeline) -> None:
    assert make(name) == policy


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("fcfs+esay", r"unknown policy 'esay' in 'fcfs\+esay'; nearest: easy"),
        ("esay", "unknown policy 'esay'; nearest: easy"),
        ("qqqqqq", "unknown policy 'qqqqqq'; .*lists them"),
        ("", "not understood"),
        ("fcfs+", "fcfs"),
        ("+fcfs", "not understood"),
        ("fcfs+sjf", "gives the order twice"),
        ("easy+greedy", "gives the backfiller twice"),
        ("binpacking+sjf", "gives the order twice"),
        ("easy-k(", "not understood"),
        ("easy-k)", "not understood"),
        ("easy-k(4", "not understood"),
        ("easy-k(4))", "not understood"),
        ("easy-k(4)(5)", "not understood"),
        ("easy-k(**x)", "not understood"),
        ("easy-k(1+)", "not understood"),
        ("easy-k(__import__('os'))", "not understood"),
        ("easy-k(cuont=4)", "unexpected keyword argument 'cuont'; parameters: count"),
        ("easy-k(1, 2)", "too many positional arguments; parameters: count"),
        ("fcfs(3)", "too many positional arguments; parameters: none"),
        ("no_such_module:Policy", "'no_such_module:Policy' cannot be imported: ModuleNotFoundError"),
        ("json:NoSuchThing", "json has no 'NoSuchThing'"),
        (
            "json:__doc__",
            "'json:__doc__' must be a subclass of Policy, Answering, Order, .* or a function of json that returns one; found a str",
        ),
        ("json:JSONDecoder", "must be a subclass of Policy, .* found the class JSONDecoder"),
        ("builtins:dict", "must be a subclass of Policy, .* found the class dict"),
        ("os:popen('touch executed')", "is a function without the annotation of a policy"),
        ("no_such_module:a.b", "needs the form module:Name or file.py:Name, found 'a.b'"),
        ("fcfs+no_such_module:Policy+esay", "unknown policy 'esay'"),
        (f"fcfs({'-' * 1500}1)", "not understood"),
        ("f" * 3000, "a policy's name has at most 2000 characters, found 3000"),
        ("no/such/file.py:Policy", "no such file: no/such/file.py"),
    ],
)
def test_what_is_not_a_name(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        make(name)
    assert "\n" not in str(caught.value)


SOURCE = """
from hpcsimkit.kernel.policy import Order, Policy

class Smallest(Order):
    def __init__(self, sign=1):
        self.sign = sign
    def key(self, job):
        return self.sign * job.nodes

class Whole(Policy):
    def schedule(self, system):
        for job in system.queue:
            if system.fits(job):
                system.start(job)

def ready_made() -> Policy:
    from hpcsimkit.kernel.pipeline import Pipeline
    return Pipeline(order=Smallest(-1))

def unsaid():
    raise AssertionError("must not be called")

class Broken(Order):
    def __init__(self):
        raise ValueError("not today")
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a user's module in it, which is the current one."""
    (tmp_path / "own_policies_xyz.py").write_text(SOURCE)
    (tmp_path / "wrong_xyz.py").write_text("x = 1\nraise RuntimeError('bad day')\n")
    (tmp_path / "unreadable_xyz.py").write_text("def broken(:\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    for module in ("own_policies_xyz", "wrong_xyz", "unreadable_xyz"):
        sys.modules.pop(module, None)


@pytest.mark.parametrize("where", ["own_policies_xyz", "own_policies_xyz.py", "./own_policies_xyz.py"])
def test_own_policies(where: str, own: Path) -> None:
    assert make(f"{where}:Smallest+easy") == make(f"easy+{where}:Smallest")
    smallest = run(JOBS, f"{where}:Smallest+easy").hash
    assert smallest == run(JOBS, "sqf+easy").hash
    assert run(JOBS, f"{where}:Smallest(sign=-1)").hash == run(JOBS, "largest").hash
    assert run(JOBS, f"{where}:ready_made").hash == run(JOBS, "largest").hash
    assert run(JOBS, f"{where}:Whole").hash == run(JOBS, "fcfs+greedy").hash


def test_own_policies_by_absolute_path(own: Path) -> None:
    assert run(JOBS, f"{own / 'own_policies_xyz.py'}:Smallest").hash == run(JOBS, "sqf").hash


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("own_policies_xyz:Smalest", "own_policies_xyz has no 'Smalest'"),
        ("own_policies_xyz:Whole+easy", "is a whole policy: it cannot be joined"),
        ("easy+own_policies_xyz:Whole", "is a whole policy: it cannot be joined"),
        ("own_policies_xyz:Broken", "ValueError: not today.*own_policies_xyz.py:25"),
        ("own_policies_xyz:unsaid", r"a function without the annotation .*: def unsaid\(...\) -> Policy"),
        ("wrong_xyz:Policy", r"RuntimeError: bad day.*wrong_xyz.py:2\)"),
        ("wrong_xyz.py:Policy", r"RuntimeError: bad day.*wrong_xyz.py:2\)"),
        ("unreadable_xyz:Policy", r"SyntaxError.*unreadable_xyz.py:1\)"),
    ],
)
def test_own_policies_that_do_not_work(name: str, message: str, own: Path) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        make(name)
    assert "\n" not in str(caught.value)


def test_entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    group = registry.ENTRY_POINT_GROUP
    points = [
        EntryPoint("theirs", "hpcsimkit.policies.orders:SAF", group),
        EntryPoint("gone", "no_such_module:Policy", group),
    ]
    monkeypatch.setattr(catalogue, "entry_points", lambda group: points)
    assert make("theirs+easy") == make("saf+easy")
    assert [(entry.name, entry.kind) for entry in entries()][-2:] == [
        ("theirs", "plug-in"),
        ("gone", "plug-in"),
    ]
    with pytest.raises(UsageError, match="'gone' cannot be imported: ModuleNotFoundError"):
        make("gone")
    with pytest.raises(UsageError, match="nearest: theirs"):
        make("thiers")
