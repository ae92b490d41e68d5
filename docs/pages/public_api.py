"""The public API: the classes and functions for common tasks, with links to their documentation."""

from __future__ import annotations

import importlib
import inspect
import re
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from hpcsimkit import __version__
from pages.markdown import code, summary, table
from pages.owner import repository

HERE = Path(__file__).resolve().parent.parent
"""Folder of the documentation."""

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
            *(
                "InTurn",
                "AnyOf",
                "Dispatch",
                "TwoLevel",
                "OrderAndTests",
                "OneJob",
                "RunningJobs",
                "JobAndHole",
                "Places",
            ),
            "Flat",
        ),
    },
    "Train and use an agent": {
        "hpcsimkit.rl": (
            *("Agent", "ModelAgent", "OnnxGraph", "agent_of", "Dense", "RandomAgent", "ConstantSlot"),
            *("PPO", "PPOSettings", "A2C", "DQL", "DQLSettings", "CrossEntropy", "CrossEntropySettings"),
            *("SB3PPO", "SB3A2C", "SB3DQN", "SB3Trainer", "SB3Settings", "Together", "Callback", "Pruning"),
            *("Training", "TrainingRun"),
        ),
        "hpcsimkit": ("check_agent",),
    },
    "Extend the kit": {
        "hpcsimkit.cluster.base": ("Room",),
        "hpcsimkit.kernel.expected": ("expected",),
        "hpcsimkit.kernel.gate": ("Gate",),
        "hpcsimkit.kernel.locality": ("KindLocality",),
        "hpcsimkit.policies.slurm": ("SlurmMultifactor",),
        "hpcsimkit.workloads.models.weekly_arrivals": ("WeeklyArrivals",),
        "hpcsimkit.workloads.models.job_sets": ("sampled", "weeks", "three_phases"),
        "hpcsimkit.workloads.models.scaled": ("scaled",),
        "hpcsimkit.workloads.readers.logs": ("LogFormat",),
        "hpcsimkit.experiments.source": ("Source",),
        "hpcsimkit.experiments.training.problem_run": ("ProblemRun",),
        "hpcsimkit.agents.networks.numpy_networks": ("Network",),
        "hpcsimkit.agents.networks.torch_networks": ("ActorCritic",),
        "hpcsimkit.agents.training.learning_curve": ("Report",),
        "hpcsimkit.agents.training.seat_trainer": ("SeatTrainer",),
        "hpcsimkit.agents.spaces.prompt_improvement": ("PromptImprovement",),
        "hpcsimkit.agents.spaces.long_waits": ("MinusLongWaits",),
        "hpcsimkit.agents.spaces.prospects": ("PairProspects",),
    },
    "Published systems in the tutorials": {
        "hpcsimkit.agents.dras.settings": ("dras_environment",),
        "hpcsimkit.agents.rlbackfilling.seat": ("backfilling_seat",),
        "hpcsimkit.agents.schedinspector.settings": ("inspector_environment",),
        "hpcsimkit.agents.schedinspector.trainer": ("PromptInspectorTrainer",),
        "hpcsimkit.workloads.models.cush": ("CushJobSets",),
    },
    "Handle errors": {
        "hpcsimkit": ("HpcsimkitError", "UsageError"),
        "hpcsimkit.errors": ("ScheduleError", "ImpossibleScheduleError"),
    },
}
"""Names by task and by the module from which they are imported."""


class PublicName(NamedTuple):
    """A name of the public API.

    Parameters
    ----------
    task : str
        Heading of the table with the name.
    module : str
        Module from which it is imported.
    name : str
        The name.
    """

    task: str
    module: str
    name: str

    @property
    def thing(self) -> Any:
        """Class or function with this name."""
        return getattr(importlib.import_module(self.module), self.name)

    @property
    def place(self) -> str:
        """Name of the module in which it is defined, and of the object in it."""
        return f"{self.thing.__module__}.{self.thing.__name__}"


@cache
def public_names() -> tuple[PublicName, ...]:
    """Return all names of the public API."""
    return tuple(
        PublicName(task, module, name)
        for task, modules in TASKS.items()
        for module, names in modules.items()
        for name in names
    )


def public_page() -> str:
    """Return a table of names for each task."""
    parts = []
    for task in TASKS:
        rows = [
            (link_to(each.thing), code(each.module), summary(each.thing))
            for each in public_names()
            if each.task == task
        ]
        parts += [f"## {task}\n", table(("Name", "Import from", "Description"), rows)]
    return "\n".join(parts)


def link_to(thing: Any) -> str:
    """Return a link to the documentation of a class or function where it is defined."""
    role = "class" if inspect.isclass(thing) else "func"
    return f"{{{role}}}`~{thing.__module__}.{thing.__name__}`"


def name_pages() -> dict[str, str]:
    """Return a page in reStructuredText for each name: import, signature, description, example and source."""
    return {f"public/{each.name}.rst": name_page(each) for each in public_names()}


def name_page(each: PublicName) -> str:
    """Return the page of one name."""
    thing = each.thing
    kind = "function" if not inspect.isclass(thing) else "class"
    if kind == "class" and issubclass(thing, BaseException):
        kind = "exception"
    options = [] if kind == "function" else ["   :members:", "   :show-inheritance:"]
    lines = [
        *(":orphan:", "", each.name, "=" * len(each.name), ""),
        *(".. code-block:: python", "", f"   from {each.module} import {each.name}", ""),
        *(f".. auto{kind}:: {each.place}", *options, ""),
    ]
    if not has_example(thing) and (found := example_of(each.name)) is not None:
        block, page = found
        lines += [*("Example", "-------", ""), f"From :doc:`/{page}`:", "", ".. code-block:: python", ""]
        lines += [*(f"   {line}".rstrip() for line in block.splitlines()), ""]
    lines += [*("Source", "------", ""), source_of(thing), ""]
    lines += [f":doc:`Public API </reference/api>`: {each.task[0].lower()}{each.task[1:]}", ""]
    return "\n".join(lines)


def has_example(thing: Any) -> bool:
    """Return whether the docstring of a class or function, or of a method of a class, has an example."""
    own = vars(thing).values() if inspect.isclass(thing) else ()
    parts = [each for each in own if isinstance(each, property) or callable(getattr(each, "__func__", each))]
    return any(">>>" in (inspect.getdoc(each) or "") for each in (thing, *parts))


@cache
def example_blocks() -> tuple[tuple[str, str], ...]:
    """Return examples in Python, which tests execute, and the names of their pages."""
    several = [page for folder in ("tutorials", "guides") for page in sorted(HERE.glob(f"{folder}/*.md"))]
    pages = [HERE / "reference" / "examples.md", HERE / "index.md", *several]
    return tuple(
        (block.strip("\n"), page.relative_to(HERE).with_suffix("").as_posix())
        for page in pages
        for block in re.findall(r"^```python\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    )


def example_of(name: str) -> tuple[str, str] | None:
    """Return the shortest example that calls or extends a name, and its page; None if there is none."""
    use = re.compile(rf"^(?!\s*(?:from|import)\b).*\b{name}\b", re.MULTILINE)  # more than an import
    found = [each for each in example_blocks() if use.search(each[0])]
    return min(found, key=lambda each: len(each[0]), default=None)


def source_of(thing: Any) -> str:
    """Return file and line of the definition of a class or function; a link if the repository is known."""
    thing = inspect.unwrap(thing)
    path = Path(inspect.getsourcefile(thing) or "").resolve().relative_to(HERE.parent).as_posix()
    line = inspect.getsourcelines(thing)[1]
    url = repository()
    text = f"{path}, line {line}"
    return f"`{text} <{url}/blob/v{__version__}/{path}#L{line}>`__" if url else f"``{path}``, line {line}"
