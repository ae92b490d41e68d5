"""The public API: the classes and functions for common tasks, with links to their documentation."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

from pages.markdown import code, summary, table

TASKS: dict[str, dict[str, tuple[str, ...]]] = {
    "Run a simulation": {
        "hpcsimkit": (
            *("Simulation", "Workload", "Result", "make", "Restart", "ServiceTime", "begun_at"),
            *("System", "Observer", "Promises"),
        ),
        "hpcsimkit.kernel.begun": ("BeginAt", "Begun", "begun_in"),
    },
    "Describe jobs and clusters": {
        "hpcsimkit": (
            *("Job", "Request", "Cluster", "Nodes", "Machines", "Partition", "Partitions", "Allocation"),
            *("Calendar", "Window", "Failures", "Outage", "Outages", "Slurm", "read_machines"),
        ),
    },
    "Read or generate a workload": {
        "hpcsimkit": (
            *("default_workload", "read_log", "read_swf", "read_sacct", "read_job_table", "write_swf"),
            *("write_job_table", "LublinModel", "Mimic", "with_estimates"),
        ),
    },
    "Write a policy or a stage": {
        "hpcsimkit": (
            *("Pipeline", "Policy", "Order", "Inspector", "Placement", "Backfiller", "Estimator"),
            *("Admission", "Preemptor", "Tester", "check_policy", "reserve"),
        ),
    },
    "Stages of the kit": {
        "hpcsimkit": (
            *("FCFS", "SJF", "SAF", "LargestFirst", "XFactor", "EASY", "Conservative", "FirstFit"),
            *("BestFit", "WorstFit", "BreadthFirst", "DepthFirst", "MachineOrder"),
        ),
    },
    "Compare policies, and ask other questions": {
        "hpcsimkit": (
            *("compare", "Sweep", "describe", "evaluate", "explain", "what_if", "predict", "advise"),
            *("validate", "Experiment", "Processes"),
        ),
        "hpcsimkit.experiments.comparison.case": ("Case",),
        "hpcsimkit.experiments.questions.question": ("Answer",),
        "hpcsimkit.experiments.questions.compare": ("Compared",),
        "hpcsimkit.experiments.sweep.object_sweep": ("ObjectSweep",),
        "hpcsimkit.experiments.sweep.swept": ("Swept",),
        "hpcsimkit.experiments.sweep.sweep_run": ("SweepRun",),
        "hpcsimkit.experiments.sweep.results": ("SweepResults",),
        "hpcsimkit.experiments.comparison.campaign": ("Campaign",),
        "hpcsimkit.experiments.evaluation.evaluation": ("Evaluation",),
    },
    "Statistics for a paper": {
        "hpcsimkit": ("Metric", "measure"),
        "hpcsimkit.stats": (
            *("SweepTable", "means", "differences", "ranks", "ratios", "mean_ratios", "headline"),
            *("breakdown", "compare_results", "summarize_moves", "Mean", "Comparison", "Ranking"),
            *("SavedResults", "write_report", "write_sweep_report"),
        ),
    },
    "Draw results and workloads": {
        "hpcsimkit.plots": (
            *("plot_gantt", "plot_queue", "plot_busy", "plot_wait", "plot_wait_tail", "plot_slowdown"),
            *("plot_fairness", "plot_start_modes", "plot_availability", "plot_week", "plot_changes"),
            *("plot_moves", "plot_resource", "plot_heat_map", "plot_values", "plot_means"),
            *("plot_intervals", "plot_ranks", "plot_hours", "plot_weekdays", "plot_sizes"),
            *("plot_durations", "plot_accuracy", "plot_offered_load", "ZoomChart", "busy_window"),
            *("new_figure", "save_figure", "legend_above", "line_styles"),
        ),
    },
    "Answer decisions": {
        "hpcsimkit": ("External", "Decision", "Answering"),
        "hpcsimkit.rl": ("play", "default_choice", "RandomChoice", "Replay", "with_agent"),
    },
    "Use an environment": {
        "hpcsimkit.rl": (
            *("SchedulingEnv", "SchedulingVecEnv", "SchedulingVectorEnv", "SeatsAECEnv", "TurnTaking"),
            *("Episode", "Player", "Scenario", "Setup"),
        ),
    },
    "Choose observations, masks, rewards and episodes": {
        "hpcsimkit": ("check_encoder", "check_reward"),
        "hpcsimkit.rl": (
            *("Encoder", "QueueWindow", "RequestsAndMachines", "Mask", "Slots", "QueueSlots"),
            *("AcceptReject", "JobMachine", "Reward", "MinusMeanWait", "MinusMeanBoundedSlowdown"),
            *("FinalScore", "Improvement", "Utilisation", "Episodes", "Windows", "Generated", "Fixed"),
            *("InTurn", "AnyOf", "Dispatch", "TwoLevel", "OneJob", "RunningJobs", "Places", "Flat"),
        ),
    },
    "Train and use an agent": {
        "hpcsimkit.rl": (
            *("Agent", "ModelAgent", "agent_of", "Dense", "RandomAgent", "ConstantSlot"),
            *("PPO", "PPOSettings", "A2C", "DQL", "DQLSettings", "CrossEntropy", "CrossEntropySettings"),
            *("SB3PPO", "SB3A2C", "SB3DQN", "SB3Trainer", "SB3Settings", "Together", "Callback", "Pruning"),
            *("Training", "TrainingRun"),
        ),
        "hpcsimkit": ("check_agent",),
    },
    "Handle errors": {
        "hpcsimkit": ("HpcsimkitError", "UsageError"),
        "hpcsimkit.errors": ("ScheduleError", "ImpossibleScheduleError"),
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
