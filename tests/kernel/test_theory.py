"""The simulator against queueing theory: M/M/c and M/G/1, first come first served; failures and repairs.

Times are drawn with means of thousands of seconds, so that rounding to whole seconds moves nothing. The
confidence interval comes from batch means: consecutive jobs wait alike, means of long batches hardly depend
on each other.
"""

from __future__ import annotations

from math import factorial

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse, stats
from scipy.sparse import linalg

from hpcsimkit.cluster.outages import Failures
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.restart import Restart, daly
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.results.metrics import measure

MEAN_SERVICE = 10_000.0
JOBS, WARMUP, BATCHES = 100_000, 4_000, 32


def simulate(service: NDArray[np.float64], load: float, servers: int, rng: np.random.Generator) -> Workload:
    """Return jobs of one node that arrive by a Poisson process, at a load per server."""
    gaps = rng.exponential(service.mean() / (load * servers), len(service))
    columns = {
        "submit_time": np.rint(gaps.cumsum()),
        "run_time": np.rint(service),
        "nodes": np.ones(len(gaps)),
    }
    return Workload(columns, machine_size=servers)


def interval_of_mean(values: NDArray[np.float64], level: float = 0.99) -> tuple[float, float]:
    """Return the mean and half of the width of its confidence interval, from batch means."""
    batches = values[: len(values) // BATCHES * BATCHES].reshape(BATCHES, -1).mean(axis=1)
    half = stats.t.ppf((1 + level) / 2, BATCHES - 1) * batches.std(ddof=1) / np.sqrt(BATCHES)
    return float(batches.mean()), float(half)


def check_mean_wait(workload: Workload, expected: float) -> None:
    """The interval must hold the expected value, and be narrow enough to say something."""
    result = Simulation(workload, Pipeline()).run()
    mean, half = interval_of_mean(result.wait_time[WARMUP:])
    assert half < 0.2 * expected
    assert abs(mean - expected) < half


def erlang_c(servers: int, load: float) -> float:
    """Return the probability that an arrival must wait in M/M/c, `load` per server."""
    offered = servers * load
    waiting = offered**servers / factorial(servers) / (1 - load)
    return waiting / (sum(offered**k / factorial(k) for k in range(servers)) + waiting)


def test_erlang_c_of_one_server_is_the_load() -> None:
    assert erlang_c(1, 0.7) == pytest.approx(0.7)
    assert erlang_c(2, 0.5) == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("servers", "load"), [(1, 0.6), pytest.param(3, 0.6, marks=pytest.mark.slow), (8, 0.7)]
)
def test_m_m_c(servers: int, load: float) -> None:
    rng = np.random.default_rng(servers)
    workload = simulate(rng.exponential(MEAN_SERVICE, JOBS), load, servers, rng)
    wait = erlang_c(servers, load) * MEAN_SERVICE / (servers * (1 - load))
    check_mean_wait(workload, wait)


def test_m_m_c_waits_as_often_as_it_should() -> None:
    rng = np.random.default_rng(11)
    result = Simulation(simulate(rng.exponential(MEAN_SERVICE, JOBS), 0.75, 4, rng), Pipeline()).run()
    mean, half = interval_of_mean((result.wait_time[WARMUP:] > 0).astype(float))
    assert half < 0.03
    assert abs(mean - erlang_c(4, 0.75)) < half


SERVICES = {
    "constant": (lambda rng, jobs: np.full(jobs, MEAN_SERVICE), 0.0),
    "uniform": (lambda rng, jobs: rng.uniform(0, 2 * MEAN_SERVICE, jobs), 1 / 3),
    "gamma": (lambda rng, jobs: rng.gamma(0.5, 2 * MEAN_SERVICE, jobs), 2.0),
}
"""Service times and their squared coefficients of variation."""


@pytest.mark.parametrize("name", ["constant", pytest.param("uniform", marks=pytest.mark.slow), "gamma"])
def test_m_g_1(name: str) -> None:
    """Pollaczek and Khinchine: load / (1 - load) x mean x (1 + variation^2) / 2."""
    draw, variation = SERVICES[name]
    load = 0.6
    rng = np.random.default_rng(7)
    workload = simulate(draw(rng, JOBS), load, 1, rng)
    check_mean_wait(workload, load / (1 - load) * MEAN_SERVICE * (1 + variation) / 2)


def test_one_server_is_lindleys_recursion() -> None:
    rng = np.random.default_rng(5)
    workload = simulate(rng.gamma(0.3, MEAN_SERVICE, 5000), 0.9, 1, rng)
    waits, wait = [], 0
    gaps = np.diff(workload.submit_time, append=0).tolist()
    for run_time, gap in zip(workload.run_time.tolist(), gaps, strict=True):
        waits.append(wait)
        wait = max(0, wait + run_time - gap)
    assert Simulation(workload, Pipeline()).run().wait_time.tolist() == waits


def test_busy_share_and_littles_law() -> None:
    """Utilisation tends to the load; mean queue length is the arrival rate times the mean wait, exactly."""
    rng = np.random.default_rng(2)
    result = Simulation(simulate(rng.exponential(MEAN_SERVICE, JOBS), 0.8, 5, rng), Pipeline()).run()
    assert measure(result)["utilisation"] == pytest.approx(0.8, rel=0.02)
    steps = result.timeline()
    area = np.dot(steps.waiting[:-1], np.diff(steps.time))
    assert area == result.wait_time.sum()


# --- failures and repairs --------------------------------------------------------------------------------


def jobs_in_repairable_system(
    arrivals: float, service: float, failure: float, repair: float, servers: int
) -> float:
    """The mean number of jobs in M/M/c whose servers fail and are repaired, from its Markov chain.

    A state is a number of jobs and a number of servers that are there. A job whose server fails goes on elsewhere,
    or waits; since service is memoryless, it does not matter which one waits.
    """
    most = 400
    states = [(jobs, up) for jobs in range(most + 1) for up in range(servers + 1)]
    place = {state: number for number, state in enumerate(states)}
    rates = sparse.lil_matrix((len(states), len(states)))
    for (jobs, up), row in place.items():
        for state, rate in (
            ((jobs + 1, up), arrivals),
            ((jobs - 1, up), min(jobs, up) * service),
            ((jobs, up - 1), up * failure),
            ((jobs, up + 1), (servers - up) * repair),
        ):
            if rate and state in place:
                rates[row, place[state]] += rate
                rates[row, row] -= rate
    balance = rates.T.tocsc().tolil()
    balance[-1, :] = 1.0  # probabilities add up
    right = np.zeros(len(states))
    right[-1] = 1.0
    probability = linalg.spsolve(balance.tocsc(), right)
    assert probability.min() > -1e-9 and probability[-1 - servers :].sum() < 1e-9
    return float(sum(p * jobs for p, (jobs, _) in zip(probability, states, strict=True)))


@pytest.mark.parametrize("servers", [1, 3])
def test_servers_that_fail(servers: int) -> None:
    """Servers fail every 20 000 s, for 4 000 s; services take 1 000 s; the load is 70 % of what is there."""
    up = 20_000 / 24_000
    interval = 1_000 / (0.7 * servers * up)
    expected = jobs_in_repairable_system(1 / interval, 1e-3, 1 / 20_000, 1 / 4_000, servers)
    rng = np.random.default_rng(5)
    count = 48_000
    jobs = Workload(
        {
            "submit_time": np.rint(np.cumsum(rng.exponential(interval, count))),
            "run_time": np.maximum(np.rint(rng.exponential(1_000, count)), 1),
            "nodes": np.ones(count),
        },
        machine_size=servers,
    )
    lossless = Restart(checkpoint=1)
    result = Simulation(jobs, Pipeline(), outages=Failures(20_000, 4_000), restart=lossless).run()
    mean, half = interval_of_mean(result.response_time[1_000:])
    assert half < 0.2 * expected * interval
    assert abs(mean - expected * interval) < half  # Little's law


def test_dalys_interval_is_the_optimum() -> None:
    """Of five intervals, each twice the one before, for a job of 100 h on a node that fails every 10 h."""
    job = Workload({"submit_time": [0], "run_time": [360_000], "nodes": [1]}, machine_size=1)
    mtbf, cost, repair = 36_000, 600, 60
    best = daly(cost, mtbf)
    took = {}
    for interval in (best // 4, best // 2, best, 2 * best, 4 * best):
        restart = Restart(checkpoint=interval, checkpoint_cost=cost)
        ends = [
            Simulation(job, Pipeline(), outages=Failures(mtbf, repair), restart=restart, seed=seed)
            .run()
            .makespan
            for seed in range(40)
        ]
        took[interval] = np.mean(ends)
    assert min(took, key=took.__getitem__) == best
    assert took[best // 4] > 1.05 * took[best] and took[4 * best] > 1.05 * took[best]
