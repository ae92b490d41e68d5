"""Cost of loading the compiled simulator, and its functions once they are loaded."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from threading import Lock
from typing import Any

from hpcsimkit.compiled.cache_folder import CACHE, PrivateFiles
from hpcsimkit.compiled.toolchain import is_tested

IN_THE_KERNEL = 1e-5
"""Time that SimPy takes for a job [s] with the quickest kinds of policy."""

SLOW_IN_THE_KERNEL = {
    "shares": 5,
    "candidate_shares": 5,
    "machines": 5,
    "profile": 5,
    "plan": 5,
    "seat": 5,
    "tests": 4,
    "replanning": 10,
    "slurm": 100,
}
"""Multiples of it for parts of a kind with which SimPy simulates far fewer jobs."""

SETTING_UP, LOADING, COMPILING = 0.05, 0.2, 5.0
"""Time [s] from which ``simulator="auto"`` takes the compiled simulator for runs that take longer on SimPy.

If it is loaded, it is worth the setting up; the first run of a process loads it, or compiles it if it has not
been compiled for this kind of policy before. All times are those of one processor, so that a slower one
changes all of them alike.
"""

SLOW_TO_COMPILE = {"machines": 5.0, "profile": 3.0, "plan": 3.0, "seat": 1.0, "gates": 6.0}
"""Further time to compile [s] for parts of a kind."""

WITH_STOCK_NUMBA = 2
"""Multiple of the time to compile without :mod:`~hpcsimkit.compiled.lowering`."""


DIRLAB = "dirlab"
"""The kind of all policies by the rules of :mod:`hpcsimkit.compiled.dirlab`."""

REPLANNING = "replanning"
"""The kind of all schedulers of :mod:`hpcsimkit.compiled.replanning`."""

SLURM = "slurm"
"""The kind of all runs of :mod:`hpcsimkit.compiled.slurm_loop`, as a rule the only part of it."""

STOPS = "stops"
"""The further part of the kind of those in which jobs may be stopped for others."""

GATES = "gates"
"""The first part of the kinds of all pipelines with gates, see :mod:`hpcsimkit.compiled.gated_loop`."""

SEAT, PUBLISHED_SEAT = "seat-textbook", "seat-dirlab"
"""The kinds of all pipelines with an open seat, see :mod:`hpcsimkit.compiled.seats`."""

PAIRS_SEAT = "seat-pairs"
"""The kind of the seat that chooses jobs and machines, see :mod:`hpcsimkit.compiled.pairs`."""

KINDS: dict[str, Callable[..., Any]] = {}
"""The function that runs or advances a simulation, as compiled for each kind of policy of this process."""

DIRECT: dict[str, Callable[..., Any]] = {}
"""The functions of runs with open seats, after their first calls, as they are called many times."""

LOCK = Lock()
"""Lock of the thread that loads a kind."""

SEEN: Counter[str] = Counter()
"""Number of jobs in the runs of this process that could be compiled, by kind of policy."""

ANNOUNCED: Counter[str] = Counter()
"""Number of jobs in the runs of the command under way, as far as it has announced them."""

BESIDE_JOBS = 100
"""Number of jobs that SimPy simulates in the time that it takes to set up a run."""


def is_compiled(kind: str) -> bool:
    """Return whether the simulator for a kind of policy has been compiled on this machine."""
    return PrivateFiles(CACHE / kind).has_files()


def least_jobs(kind: str) -> int:
    """Return the number of jobs from which ``simulator="auto"`` takes simulations with a kind of policy."""
    return round(_price(kind) / (IN_THE_KERNEL * slowness(kind)))


def _price(kind: str) -> float:
    """Return the time of the first compiled run of a kind [s], besides its simulation."""
    if kind in KINDS:
        return SETTING_UP
    if is_compiled(kind):
        return LOADING
    seconds = COMPILING + sum(SLOW_TO_COMPILE.get(part, 0) for part in kind.split("-"))
    return seconds if is_tested() else WITH_STOCK_NUMBA * seconds


def slowness(kind: str) -> int:
    """Return how many times as long as the quickest ones the kernel takes for a kind of policy, at least."""
    return max(SLOW_IN_THE_KERNEL.get(part, 1) for part in kind.split("-"))


def counted(kind: str, jobs: int) -> int:
    """Add the jobs of a run to the total of its kind, and return the number for which it may be compiled.

    They are those of all runs that the command has announced. Without, as many may follow as there have been
    so far: then a process that goes on takes at most twice as long as if it had known.
    """
    SEEN[kind] += jobs + BESIDE_JOBS
    return max(SEEN[kind], ANNOUNCED[kind])


def load(kind: str) -> Callable[..., Any]:
    """Return the simulator for a kind of policy; when its first call compiles, a terminal shows a line."""
    with LOCK:
        if kind not in KINDS:
            KINDS[kind] = _entry(kind)
        return KINDS[kind]


def call(kind: str, state: tuple[Any, ...]) -> Any:
    """Call a function of open seats with the state of a run, and return what it returns."""
    if kind not in DIRECT:
        from hpcsimkit.compiled.compilation import direct

        compiled = load(kind)
        found = compiled(*state)
        DIRECT[kind] = direct(compiled)
        return found
    return DIRECT[kind](*state)


def _entry(kind: str) -> Callable[..., Any]:
    from hpcsimkit.compiled import dirlab, gated_loop, loop, replanning, slurm_loop
    from hpcsimkit.compiled.compilation import entry

    if kind in (SEAT, PUBLISHED_SEAT):
        from hpcsimkit.compiled import seats

        return entry(seats.advance, CACHE / kind, compiling=_tell)
    if kind == PAIRS_SEAT:
        from hpcsimkit.compiled import pairs

        return entry(pairs.advance_to_pairs, CACHE / kind, compiling=_tell)
    whole: dict[str, Callable[..., Any]] = {
        DIRLAB: dirlab.simulate,
        GATES: gated_loop.simulate,
        REPLANNING: replanning.replan,
        SLURM: slurm_loop.simulate,
    }
    simulate = whole.get(kind.partition("-")[0], loop.simulate)
    return entry(simulate, CACHE / kind, nogil=True, compiling=_tell)


def _tell() -> None:
    if sys.stderr.isatty():
        print("compiling the simulator, once for this version and kind of policy ...", file=sys.stderr)
