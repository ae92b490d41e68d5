"""Slurm's multifactor priority: shares, decaying usage, and the scores that follow from them.

Mirrors :class:`~hpcsimkit.policies.slurm.SlurmMultifactor`.
"""

from __future__ import annotations

from math import exp2
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.compiled.compilation import called, machine_code
from hpcsimkit.compiled.machines import Machines
from hpcsimkit.compiled.queue import BLOCKS
from hpcsimkit.compiled.state import RUNNING, Integers, Jobs, Numbers, Run
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.policies.slurm import SlurmMultifactor

ENTITLED, LONGEST, CHARGED_AT = range(3)
"""Positions in :attr:`Shares.known`."""


class Shares(NamedTuple):
    """Users, their shares and their usage.

    Attributes
    ----------
    age, max_age, fair_share, attribute, half_life, unit : float
        Parameters of the order, and the usage of a billing of 1 without end, if usage decays.
    user : array of int64, shape (jobs,)
        Number of each job's user or group.
    billing, standing : array of float64, shape (jobs,)
        Usage per second, and the part of the priority that does not change.
    share : array of float64, shape (users,)
        Share of each user.
    seen : array of uint8, shape (users,)
        Whether the share of each user counts.
    used, worth : array of float64, shape (users + 1,)
        Usage by jobs that have ended, of each user and of all, as it counted after the last end; usage of all
        jobs, as it counts now.
    known : array of float64
        Sum of the shares that count, longest requested time so far [s], and the instant of the last end [s],
        at the positions named above.
    """

    age: float
    max_age: float
    fair_share: float
    attribute: float
    half_life: float
    unit: float
    user: Integers
    billing: Numbers
    standing: Numbers
    share: Numbers
    seen: NDArray[np.uint8]
    used: Numbers
    worth: Numbers
    known: Numbers


def new_shares(order: SlurmMultifactor, workload: Workload, nodes: int) -> Shares:
    """Return the state before the first event; mirrors ``SlurmMultifactor.reset``."""
    terms = order.terms(workload, nodes)
    users = len(terms.share)
    return Shares(
        age=float(order.age),
        max_age=float(order.max_age),
        fair_share=float(order.fair_share),
        attribute=float(order.attribute),
        half_life=float(order.half_life),
        unit=order.unit,
        user=terms.user.astype(np.int64),
        billing=terms.billing,
        standing=terms.standing,
        share=terms.share,
        seen=np.full(users, terms.entitled > 0, dtype=np.uint8),
        used=np.zeros(users + 1),
        worth=np.zeros(users + 1),
        known=np.array([terms.entitled, terms.longest, 0.0]),
    )


@machine_code
def see(shares: Shares, jobs: Jobs, row: int) -> None:
    """Record the user and the requested time of a job; mirrors ``SlurmMultifactor.arrive``."""
    known, user = shares.known, shares.user[row]
    if not shares.seen[user]:
        shares.seen[user] = 1
        known[ENTITLED] += shares.share[user]
    known[LONGEST] = max(known[LONGEST], jobs.requested_time[row])


@machine_code
def _decayed(shares: Shares, seconds: float) -> float:
    """Return what a unit of usage counts after some time; mirrors ``SlurmMultifactor._decayed``."""
    return exp2(-seconds / shares.half_life) if shares.half_life else 1.0


@machine_code
def _charge(shares: Shares, run: Run, used: Numbers, row: int, now: int) -> None:
    """Add the usage of a job that has run until now; mirrors ``SlurmMultifactor._charge``."""
    seconds = float(now - run.start_time[row])
    if shares.half_life:
        seconds = (1.0 - exp2(-seconds / shares.half_life)) * shares.unit
    usage = shares.billing[row] * seconds
    used[shares.user[row]] += usage
    used[len(used) - 1] += usage


@called
def charge_ended(shares: Shares, run: Run, row: int, now: int) -> None:
    """Charge the user of a job that ends now; mirrors the first part of ``SlurmMultifactor._usage``."""
    if now > shares.known[CHARGED_AT]:
        decayed = _decayed(shares, now - shares.known[CHARGED_AT])
        for user in range(len(shares.used)):
            shares.used[user] *= decayed
        shares.known[CHARGED_AT] = now
    _charge(shares, run, shares.used, row, now)


@called
def value_usage(shares: Shares, run: Run, machines: Machines | None, now: int) -> None:
    """Compute what all usage so far counts now; mirrors the second part of ``SlurmMultifactor._usage``."""
    decayed = _decayed(shares, now - shares.known[CHARGED_AT])
    for user in range(len(shares.used)):
        shares.worth[user] = shares.used[user] * decayed
    if machines is not None:
        expected = machines.expected
        for place in range(expected.counters[BLOCKS]):
            block = expected.order[place]
            for position in range(expected.filled[block]):
                _charge(shares, run, shares.worth, expected.rows[block, position], now)
    else:
        for place in range(run.counters[RUNNING]):
            _charge(shares, run, shares.worth, run.expected[1, place], now)


@machine_code
def minus_priority(shares: Shares, jobs: Jobs, row: int, now: int) -> float:
    """Return the score of a job; mirrors ``SlurmMultifactor.scores``."""
    user, worth, known = shares.user[row], shares.worth, shares.known
    whole = worth[len(worth) - 1]
    ratio = (worth[user] / max(whole, 1e-9)) / (shares.share[user] / known[ENTITLED])
    return float(
        -(
            shares.age * min((now - jobs.submit_time[row]) / shares.max_age, 1.0)
            + shares.fair_share * exp2(-ratio)
            + shares.attribute * (1.0 - jobs.requested_time[row] / known[LONGEST])
            + shares.standing[row]
        )
    )
