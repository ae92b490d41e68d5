"""The public API: the classes and functions for common tasks, with links to their documentation."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

from pages.markdown import code, summary, table

TASKS: dict[str, dict[str, tuple[str, ...]]] = {
    "Run a simulation": {
        "hpcsimkit": ("Simulation", "make", "System", "Observer", "ServiceTime"),
        "hpcsimkit.kernel.begun": ("BeginAt", "Begun", "begun_at", "begun_in"),
        "hpcsimkit.kernel.observers": ("Promises",),
    },
    "Describe jobs and clusters": {
        "hpcsimkit": ("Job", "Request", "Workload", "Cluster", "Nodes", "Machines", "Allocation"),
        "hpcsimkit.cluster.files": ("read_machines",),
        "hpcsimkit.slurm.profile": ("Slurm",),
    },
    "Read or generate a workload": {
        "hpcsimkit": ("default_workload", "read_swf", "write_swf"),
        "hpcsimkit.workloads": (
            "read_log",
            "read_sacct",
            "read_job_table",
            "LublinModel",
            "Mimic",
            "with_estimates",
            "describe",
        ),
    },
    "Write a policy or a stage": {
        "hpcsimkit": (
            "Pipeline",
            "Order",
            "Inspector",
            "Placement",
            "Backfiller",
            "Estimator",
            "Policy",
            "check_policy",
        ),
        "hpcsimkit.policies": ("EASY", "Conservative", "MachineOrder"),
        "hpcsimkit.kernel.reservation": ("reserve",),
    },
    "Answer decisions": {
        "hpcsimkit": ("External", "Decision"),
    },
    "Evaluate results": {
        "hpcsimkit": ("Result", "measure"),
        "hpcsimkit.results.breakdown": ("breakdown",),
        "hpcsimkit.results.difference": ("compare_results", "summarize_moves"),
        "hpcsimkit.reports.report": ("write_report",),
        "hpcsimkit.reports.sweep.report": ("write_sweep_report",),
    },
    "Ask a question about a workload": {
        "hpcsimkit": (
            "describe",
            "compare",
            "validate",
            "what_if",
            "predict",
            "advise",
            "explain",
            "evaluate",
        ),
        "hpcsimkit.experiments.comparison.case": ("Case",),
        "hpcsimkit.experiments.questions.question": ("Answer",),
    },
    "Run experiments from settings": {
        "hpcsimkit": ("Sweep",),
        "hpcsimkit.experiments.sweep.sweep_run": ("SweepRun",),
        "hpcsimkit.experiments.sweep.results": ("SweepResults",),
        "hpcsimkit.experiments.comparison.experiment": ("Experiment",),
        "hpcsimkit.experiments.comparison.campaign": ("Campaign",),
        "hpcsimkit.experiments.training.training": ("Training",),
        "hpcsimkit.experiments.training.training_run": ("TrainingRun",),
        "hpcsimkit.experiments.evaluation.evaluation": ("Evaluation",),
    },
    "Use an environment": {
        "hpcsimkit.envs.environment": ("SchedulingEnv",),
        "hpcsimkit.envs.gymnasium_vector": ("SchedulingVectorEnv",),
        "hpcsimkit.envs.vector_environment": ("SchedulingVecEnv",),
        "hpcsimkit.envs.scenario": ("Scenario",),
        "hpcsimkit.envs.interfaces": ("Encoder", "Mask", "Reward"),
    },
    "Choose observations, masks, rewards and episodes": {
        "hpcsimkit": ("check_encoder", "check_reward"),
        "hpcsimkit.agents.spaces.encoders": ("QueueWindow",),
        "hpcsimkit.agents.spaces.masks": ("QueueSlots",),
        "hpcsimkit.agents.spaces.rewards": ("FinalScore", "Improvement"),
        "hpcsimkit.agents.spaces.episodes": ("Windows", "Generated"),
    },
    "Train and use an agent": {
        "hpcsimkit.agents.training.ppo": ("PPO",),
        "hpcsimkit.agents.training.dql": ("DQL",),
        "hpcsimkit.agents.training.sb3": ("SB3PPO",),
        "hpcsimkit.agents.agent": ("Agent",),
        "hpcsimkit": ("check_agent",),
    },
    "Handle errors": {
        "hpcsimkit": ("HpcsimkitError",),
        "hpcsimkit.errors": ("UsageError", "ScheduleError", "ImpossibleScheduleError"),
    },
}
"""Names by task and by the module from which they are imported."""


def public_page() -> str:
    """Return a table of names for each task."""
    parts = []
    for task, modules in TASKS.items():
        rows = [row_of(module, name) for module, names in modules.items() for name in names]
        parts += [f"## {task}\n", table(("Name", "Import from", "Description"), rows)]
    return "\n".join(parts)


def row_of(module: str, name: str) -> tuple[str, str, str]:
    """Return the table row of one name."""
    thing = getattr(importlib.import_module(module), name)
    return link_to(thing), code(module), summary(thing)


def link_to(thing: Any) -> str:
    """Return a link to the documentation of a class or function where it is defined."""
    role = "class" if inspect.isclass(thing) else "func"
    return f"{{{role}}}`~{thing.__module__}.{thing.__name__}`"
