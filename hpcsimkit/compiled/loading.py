"""Cost of loading the compiled simulator, and its functions once they are loaded."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from threading import Lock
from typing import Any

from hpcsimkit.compiled.cache_folder import CACHE, CacheFolder

__all__ = [
    "CACHE",
    "DIRLAB",
    "KINDS",
    "PAIRS_SEAT",
    "PUBLISHED_SEAT",
    "SEAT",
    "call",
    "counted",
    "is_compiled",
    "least_jobs",
    "load",
    "slowness",
]

WHEN_LOADED, WHEN_COMPILED, WHEN_NEW = 5_000, 20_000, 200_000
"""Numbers of jobs from which ``simulator="auto"`` takes the compiled simulator.

Its first run in a process takes 0.2 s more, and 4 to 15 s more if it has not been compiled for this kind of
policy before; the kernel simulates 100 000 jobs per second.
"""

SLOW_IN_THE_KERNEL = {"shares": 5, "candidate_shares": 5, "machines": 5, "profile": 5, "plan": 5, "seat": 5}
"""Divisors of these numbers for parts of a kind with which the kernel simulates far fewer jobs."""


DIRLAB = "dirlab"
"""The kind of all policies by the rules of :mod:`hpcsimkit.compiled.dirlab`."""

SEAT, PUBLISHED_SEAT = "seat-textbook", "seat-dirlab"
"""The kinds of all pipelines with an open seat, see :mod:`hpcsimkit.compiled.seats`."""

PAIRS_SEAT = "seat-pairs"
"""The kind of the seat that chooses jobs and machines, see :mod:`hpcsimkit.compiled.pairs`."""

KINDS: dict[str, Callable[..., Any]] = {}
"""The function that runs or advances a simulation, as compiled for each kind of policy of this process."""

DIRECT: dict[str, Callable[..., Any]] = {}
"""The functions of runs with open seats, after their first calls, as they are called many times."""

LOADING = Lock()
"""Lock of the thread that loads a kind."""

SEEN: Counter[str] = Counter()
"""Number of jobs in the runs of this process that could be compiled, by kind of policy."""

BESIDE_JOBS = 100
"""Number of jobs that SimPy simulates in the time that it takes to set up a run."""


def is_compiled(kind: str) -> bool:
    """Return whether the simulator for a kind of policy has been compiled on this machine."""
    return CacheFolder(CACHE / kind).has_files()


def least_jobs(kind: str) -> int:
    """Return the number of jobs from which ``simulator="auto"`` takes simulations with a kind of policy."""
    least = WHEN_LOADED
    if kind not in KINDS:
        least = WHEN_COMPILED if is_compiled(kind) else WHEN_NEW
    return least // slowness(kind)


def slowness(kind: str) -> int:
    """Return how many times as long as the quickest ones the kernel takes for a kind of policy, at least."""
    return max(SLOW_IN_THE_KERNEL.get(part, 1) for part in kind.split("-"))


def counted(kind: str, jobs: int) -> int:
    """Count a run with a kind of policy, and return the number of jobs in all of them."""
    SEEN[kind] += jobs + BESIDE_JOBS
    return SEEN[kind]


def load(kind: str) -> Callable[..., Any]:
    """Return the simulator for a kind of policy; print a line on a terminal if it must be compiled first."""
    with LOADING:
        if kind not in KINDS:
            if sys.stderr.isatty() and not is_compiled(kind):
                print(
                    "compiling the simulator, once for this version and kind of policy ...", file=sys.stderr
                )
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
    from hpcsimkit.compiled import dirlab, loop
    from hpcsimkit.compiled.compilation import entry

    if kind in (SEAT, PUBLISHED_SEAT):
        from hpcsimkit.compiled import seats

        return entry(seats.advance, CACHE / kind)
    if kind == PAIRS_SEAT:
        from hpcsimkit.compiled import pairs

        return entry(pairs.advance_to_pairs, CACHE / kind)
    return entry(dirlab.simulate if kind == DIRLAB else loop.simulate, CACHE / kind, nogil=True)
