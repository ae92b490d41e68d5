"""hpcsimkit: simulation of job scheduling on HPC clusters.

The most important names are available here; each is loaded on first use.

>>> from hpcsimkit import Simulation, Workload
>>> w = Workload({"submit_time": [0, 1, 2], "run_time": [10, 10, 5], "nodes": [2, 4, 1]}, machine_size=4)
>>> Simulation(w, "fcfs+easy").run().start_time.tolist()
[0, 10, 2]
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hpcsimkit._version import __version__
from hpcsimkit.envs.gymnasium_names import register
from hpcsimkit.jobs.views import LOADERS_OF_VIEWS
from hpcsimkit.kernel.simulators import LOADERS, LOADERS_OF_SEATS, MAKERS

if TYPE_CHECKING:
    from hpcsimkit.cluster.allocation import Allocation
    from hpcsimkit.cluster.base import Cluster, Nodes
    from hpcsimkit.cluster.machines import Machines
    from hpcsimkit.errors import HpcsimkitError
    from hpcsimkit.experiments.checks.learner_parts import check_agent, check_encoder, check_reward
    from hpcsimkit.experiments.checks.policies import check_policy
    from hpcsimkit.experiments.parts.registry import make
    from hpcsimkit.experiments.questions.advise import advise
    from hpcsimkit.experiments.questions.compare import compare
    from hpcsimkit.experiments.questions.describe import describe
    from hpcsimkit.experiments.questions.evaluate import evaluate
    from hpcsimkit.experiments.questions.explain import explain
    from hpcsimkit.experiments.questions.predict import predict
    from hpcsimkit.experiments.questions.validate import validate
    from hpcsimkit.experiments.questions.what_if import what_if
    from hpcsimkit.experiments.sweep.sweep import Sweep
    from hpcsimkit.jobs.job import Job, Request
    from hpcsimkit.jobs.workload import Workload
    from hpcsimkit.kernel.decision import Decision, External
    from hpcsimkit.kernel.observers import Observer
    from hpcsimkit.kernel.pipeline import Pipeline
    from hpcsimkit.kernel.policy import Backfiller, Estimator, Inspector, Order, Placement, Policy
    from hpcsimkit.kernel.service_time import ServiceTime
    from hpcsimkit.kernel.simulation import Simulation
    from hpcsimkit.kernel.system import System
    from hpcsimkit.results.metrics import METRICS, measure
    from hpcsimkit.results.result import Result
    from hpcsimkit.workloads import default_workload, read_swf, write_swf

_HOMES = {
    "cluster.allocation": ("Allocation",),
    "cluster.base": ("Cluster", "Nodes"),
    "cluster.machines": ("Machines",),
    "errors": ("HpcsimkitError",),
    "experiments.checks.policies": ("check_policy",),
    "experiments.checks.learner_parts": ("check_agent", "check_encoder", "check_reward"),
    "experiments.parts.registry": ("make",),
    "experiments.questions.compare": ("compare",),
    "experiments.questions.describe": ("describe",),
    "experiments.questions.evaluate": ("evaluate",),
    "experiments.questions.explain": ("explain",),
    "experiments.questions.advise": ("advise",),
    "experiments.questions.predict": ("predict",),
    "experiments.questions.validate": ("validate",),
    "experiments.questions.what_if": ("what_if",),
    "experiments.sweep.sweep": ("Sweep",),
    "jobs.job": ("Job", "Request"),
    "jobs.workload": ("Workload",),
    "kernel.decision": ("Decision", "External"),
    "kernel.observers": ("Observer",),
    "kernel.pipeline": ("Pipeline",),
    "kernel.policy": ("Backfiller", "Estimator", "Inspector", "Order", "Placement", "Policy"),
    "kernel.service_time": ("ServiceTime",),
    "kernel.simulation": ("Simulation",),
    "kernel.system": ("System",),
    "results.metrics": ("METRICS", "measure"),
    "results.result": ("Result",),
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
    "Sweep",
    "System",
    "Workload",
    "__version__",
    "advise",
    "check_agent",
    "check_encoder",
    "check_policy",
    "check_reward",
    "compare",
    "default_workload",
    "describe",
    "evaluate",
    "explain",
    "make",
    "measure",
    "predict",
    "read_swf",
    "validate",
    "what_if",
    "write_swf",
]


register()
LOADERS.append(lambda: import_module("hpcsimkit.compiled.support"))
LOADERS_OF_SEATS.append(lambda: import_module("hpcsimkit.compiled.open_seats"))
LOADERS_OF_VIEWS.append(lambda: import_module("hpcsimkit.reports.views"))
MAKERS.append(lambda name: import_module("hpcsimkit.experiments.parts.registry").make(name))


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'hpcsimkit' has no attribute {name!r}")
    return getattr(import_module(f"hpcsimkit.{_HOME_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
