"""hpcsimkit: simulate how jobs are scheduled on HPC clusters.

What most scripts need is here; everything is loaded when it is first used.

>>> from hpcsimkit import Simulation, Workload, make
>>> w = Workload({"submit_time": [0, 1, 2], "run_time": [10, 10, 5], "nodes": [2, 4, 1]}, machine_size=4)
>>> Simulation(w, make("fcfs+easy")).run().start_time.tolist()
[0, 10, 2]
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hpcsimkit.allocation import Allocation
    from hpcsimkit.checks import check_policy
    from hpcsimkit.cluster import Cluster, Nodes
    from hpcsimkit.decision import Decision, External
    from hpcsimkit.errors import HpcsimkitError
    from hpcsimkit.job import Job, Request
    from hpcsimkit.machines import Machines
    from hpcsimkit.metrics import METRICS, evaluate
    from hpcsimkit.observers import Observer
    from hpcsimkit.pipeline import Pipeline
    from hpcsimkit.policy import Backfiller, Estimator, Inspector, Order, Placement, Policy
    from hpcsimkit.registry import make
    from hpcsimkit.result import Result
    from hpcsimkit.service_time import ServiceTime
    from hpcsimkit.simulation import Simulation
    from hpcsimkit.system import System
    from hpcsimkit.workload import Workload
    from hpcsimkit.workloads import default_workload, read_swf, write_swf

__version__ = "0.1.0"

_HOMES = {
    "allocation": ("Allocation",),
    "checks": ("check_policy",),
    "cluster": ("Cluster", "Nodes"),
    "decision": ("Decision", "External"),
    "errors": ("HpcsimkitError",),
    "job": ("Job", "Request"),
    "machines": ("Machines",),
    "metrics": ("METRICS", "evaluate"),
    "observers": ("Observer",),
    "pipeline": ("Pipeline",),
    "policy": ("Backfiller", "Estimator", "Inspector", "Order", "Placement", "Policy"),
    "registry": ("make",),
    "result": ("Result",),
    "service_time": ("ServiceTime",),
    "simulation": ("Simulation",),
    "system": ("System",),
    "workload": ("Workload",),
    "workloads": ("default_workload", "read_swf", "write_swf"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "METRICS",
    "Allocation",
    "Backfiller",
    "Cluster",
    "Decision",
    "Estimator",
    "External",
    "HpcsimkitError",
    "Inspector",
    "Job",
    "Machines",
    "Nodes",
    "Observer",
    "Order",
    "Pipeline",
    "Placement",
    "Policy",
    "Request",
    "Result",
    "ServiceTime",
    "Simulation",
    "System",
    "Workload",
    "check_policy",
    "default_workload",
    "evaluate",
    "make",
    "read_swf",
    "write_swf",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'hpcsimkit' has no attribute {name!r}")
    return getattr(import_module(f"hpcsimkit.{_HOME_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
