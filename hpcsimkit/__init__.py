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
from hpcsimkit.io.lazy_names import LazyNames
from hpcsimkit.jobs.views import LOADERS_OF_VIEWS
from hpcsimkit.kernel.simulators import LOADERS, LOADERS_OF_SEATS, MAKERS

if TYPE_CHECKING:
    from hpcsimkit import plots, rl, stats
    from hpcsimkit.cluster.allocation import Allocation
    from hpcsimkit.cluster.base import Cluster, Nodes
    from hpcsimkit.cluster.calendar import Calendar, Window
    from hpcsimkit.cluster.files import read_machines
    from hpcsimkit.cluster.machines import Machines
    from hpcsimkit.cluster.outages import Failures, Outage, Outages
    from hpcsimkit.cluster.partitions import Partition, Partitions
    from hpcsimkit.engine.engines import Processes
    from hpcsimkit.errors import HpcsimkitError, UsageError
    from hpcsimkit.experiments.checks.learner_parts import check_agent, check_encoder, check_reward
    from hpcsimkit.experiments.checks.policies import check_policy
    from hpcsimkit.experiments.comparison.experiment import Experiment
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
    from hpcsimkit.kernel.begun import begun_at
    from hpcsimkit.kernel.decision import Answering, Decision, External
    from hpcsimkit.kernel.observers import Observer, Promises
    from hpcsimkit.kernel.pipeline import Pipeline
    from hpcsimkit.kernel.policy import (
        Admission,
        Backfiller,
        Estimator,
        Inspector,
        Order,
        Placement,
        Policy,
        Preemptor,
        Tester,
    )
    from hpcsimkit.kernel.reservation import EASY, reserve
    from hpcsimkit.kernel.restart import Restart
    from hpcsimkit.kernel.service_time import ServiceTime
    from hpcsimkit.kernel.simulation import Simulation
    from hpcsimkit.kernel.system import System
    from hpcsimkit.policies import (
        FCFS,
        SAF,
        SJF,
        BestFit,
        BreadthFirst,
        Conservative,
        DepthFirst,
        FirstFit,
        LargestFirst,
        MachineOrder,
        WorstFit,
        XFactor,
    )
    from hpcsimkit.results.metrics import METRICS, Metric, measure
    from hpcsimkit.results.result import Result
    from hpcsimkit.slurm.profile import Slurm
    from hpcsimkit.workloads import (
        LublinModel,
        Mimic,
        default_workload,
        read_job_table,
        read_log,
        read_sacct,
        read_swf,
        with_estimates,
        write_job_table,
        write_swf,
    )

_NAMES = LazyNames(
    __name__,
    {
        "cluster.allocation": ("Allocation",),
        "cluster.base": (
            "Cluster",
            "Nodes",
        ),
        "cluster.calendar": (
            "Calendar",
            "Window",
        ),
        "cluster.files": ("read_machines",),
        "cluster.machines": ("Machines",),
        "cluster.outages": (
            "Failures",
            "Outage",
            "Outages",
        ),
        "cluster.partitions": (
            "Partition",
            "Partitions",
        ),
        "engine.engines": ("Processes",),
        "errors": (
            "HpcsimkitError",
            "UsageError",
        ),
        "experiments.checks.learner_parts": (
            "check_agent",
            "check_encoder",
            "check_reward",
        ),
        "experiments.checks.policies": ("check_policy",),
        "experiments.comparison.experiment": ("Experiment",),
        "experiments.parts.registry": ("make",),
        "experiments.questions.advise": ("advise",),
        "experiments.questions.compare": ("compare",),
        "experiments.questions.describe": ("describe",),
        "experiments.questions.evaluate": ("evaluate",),
        "experiments.questions.explain": ("explain",),
        "experiments.questions.predict": ("predict",),
        "experiments.questions.validate": ("validate",),
        "experiments.questions.what_if": ("what_if",),
        "experiments.sweep.sweep": ("Sweep",),
        "jobs.job": (
            "Job",
            "Request",
        ),
        "jobs.workload": ("Workload",),
        "kernel.begun": ("begun_at",),
        "kernel.decision": (
            "Answering",
            "Decision",
            "External",
        ),
        "kernel.observers": (
            "Observer",
            "Promises",
        ),
        "kernel.pipeline": ("Pipeline",),
        "kernel.policy": (
            "Admission",
            "Backfiller",
            "Estimator",
            "Inspector",
            "Order",
            "Placement",
            "Policy",
            "Preemptor",
            "Tester",
        ),
        "kernel.reservation": (
            "EASY",
            "reserve",
        ),
        "kernel.restart": ("Restart",),
        "kernel.service_time": ("ServiceTime",),
        "kernel.simulation": ("Simulation",),
        "kernel.system": ("System",),
        "policies": (
            "FCFS",
            "SAF",
            "SJF",
            "BestFit",
            "BreadthFirst",
            "Conservative",
            "DepthFirst",
            "FirstFit",
            "LargestFirst",
            "MachineOrder",
            "WorstFit",
            "XFactor",
        ),
        "results.metrics": (
            "METRICS",
            "Metric",
            "measure",
        ),
        "results.result": ("Result",),
        "slurm.profile": ("Slurm",),
        "workloads": (
            "LublinModel",
            "Mimic",
            "default_workload",
            "read_job_table",
            "read_log",
            "read_sacct",
            "read_swf",
            "with_estimates",
            "write_job_table",
            "write_swf",
        ),
    },
)

_MODULES = ("plots", "rl", "stats")
"""Modules that are imported as attributes are."""

__all__ = [
    "EASY",
    "FCFS",
    "METRICS",
    "SAF",
    "SJF",
    "Admission",
    "Allocation",
    "Answering",
    "Backfiller",
    "BestFit",
    "BreadthFirst",
    "Calendar",
    "Cluster",
    "Conservative",
    "Decision",
    "DepthFirst",
    "Estimator",
    "Experiment",
    "External",
    "Failures",
    "FirstFit",
    "HpcsimkitError",
    "Inspector",
    "Job",
    "LargestFirst",
    "LublinModel",
    "MachineOrder",
    "Machines",
    "Metric",
    "Mimic",
    "Nodes",
    "Observer",
    "Order",
    "Outage",
    "Outages",
    "Partition",
    "Partitions",
    "Pipeline",
    "Placement",
    "Policy",
    "Preemptor",
    "Processes",
    "Promises",
    "Request",
    "Restart",
    "Result",
    "ServiceTime",
    "Simulation",
    "Slurm",
    "Sweep",
    "System",
    "Tester",
    "UsageError",
    "Window",
    "Workload",
    "WorstFit",
    "XFactor",
    "__version__",
    "advise",
    "begun_at",
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
    "plots",
    "predict",
    "read_job_table",
    "read_log",
    "read_machines",
    "read_sacct",
    "read_swf",
    "reserve",
    "rl",
    "stats",
    "validate",
    "what_if",
    "with_estimates",
    "write_job_table",
    "write_swf",
]


register()
LOADERS.append(lambda: import_module("hpcsimkit.compiled.support"))
LOADERS_OF_SEATS.append(lambda: import_module("hpcsimkit.compiled.open_seats"))
LOADERS_OF_VIEWS.append(lambda: import_module("hpcsimkit.reports.views"))
MAKERS.append(lambda name: import_module("hpcsimkit.experiments.parts.registry").make(name))


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"hpcsimkit.{name}")
    return _NAMES.load(name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
