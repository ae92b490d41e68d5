"""One seat for the order of jobs and for their test runs."""

from __future__ import annotations

from hpcsimkit.kernel.pipeline import Pipeline

__all__ = ["OrderAndTests"]


class OrderAndTests(Pipeline):
    """Pipeline whose order seat is asked about each test, too, before it starts.

    So an agent has test runs among its actions. A decision on a test has its longest time in ``seconds``, the
    job in ``job``, and the options ``True`` and ``False``; a job that is not tested may be in question again
    in the next pass. If the seat is not open, all tests start. Parameters are those of
    :class:`~hpcsimkit.kernel.pipeline.Pipeline`.

    Examples
    --------
    Of 2 nodes one is free until 100 s. Job 2 needs both; job 3 fits, but not for the 900 s that it requests:

    >>> from hpcsimkit import External, Simulation, Workload
    >>> from hpcsimkit.policies import EASY, HoleTests
    >>> columns = {"submit_time": [0, 1, 2], "run_time": [100, 50, 5], "nodes": [1, 2, 1]}
    >>> w = Workload({**columns, "requested_time": [100, 50, 900]}, machine_size=2)
    >>> policy = OrderAndTests(External(skip=True), backfiller=EASY(), tester=HoleTests(10))
    >>> simulation = Simulation(w, policy)
    >>> [job.id for job in simulation.next_decision().options]
    [2, 3]
    >>> decision = simulation.proceed(0)
    >>> decision.stage, decision.job.id, decision.seconds, decision.options
    ('order', 3, 10, (True, False))
    >>> simulation.proceed(0), simulation.result().end_time.tolist()
    (None, [100, 150, 7])
    """

    seat_of_tests = "order"
