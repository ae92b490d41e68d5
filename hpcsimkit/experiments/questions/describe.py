"""What are the jobs like? Descriptive statistics of a workload, and a picture of it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.partitions import Partitions
from hpcsimkit.engine.store import Store
from hpcsimkit.engine.task import Task
from hpcsimkit.experiments.comparison.case import Asked, settings_of
from hpcsimkit.experiments.parts.on_machines import described
from hpcsimkit.experiments.questions.question import Answer, Question
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.workloads.describe import Description

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

__all__ = ["Described", "DescriptionQuestion", "describe"]

DAY = 86_400
"""Length of a day [s]."""


@dataclass(frozen=True, repr=False)
class Described(Answer):
    """Descriptive statistics of a workload.

    Parameters
    ----------
    description : Description
        The statistics.
    workload : Workload
        The workload.
    """

    stem = "description"
    names = ("description",)
    measured = ("jobs", "span_days", "offered_load", "mean_run_time", "mean_nodes")

    description: Description
    workload: Workload

    @property
    def table(self) -> pandas.DataFrame:
        """A row for each value: ``section, name, value``."""
        import pandas

        sections = self.description.sections.items()
        rows = [(title, name, value) for title, values in sections for name, value in values.items()]
        return pandas.DataFrame(rows, columns=["section", "name", "value"])

    @property
    def tables(self) -> Mapping[str, pandas.DataFrame]:
        """The table, by its name ``description``."""
        return {"description": self.table}

    @property
    def measures(self) -> Mapping[str, float]:
        """Number of jobs, span, offered load (NaN without a machine), and means of run time and nodes."""
        jobs = self.workload
        load = jobs.offered_load() if jobs.machine_size and jobs.span else math.nan
        values = (len(jobs), jobs.span / DAY, load, jobs.run_time.mean(), jobs.nodes.mean())
        return dict(zip(self.measured, map(float, values), strict=True))

    def figure(self) -> Figure:
        """Return a figure of arrivals, sizes, run times and estimates."""
        from hpcsimkit.reports.workload_plots import draw_workload

        return draw_workload(self.workload)

    def lines(self) -> Iterator[str]:
        """Yield the statistics."""
        yield str(self.description)


@dataclass(frozen=True)
class DescriptionQuestion(Question):
    """What are the jobs like?

    Parameters
    ----------
    workload : Workload
        The jobs.
    machines : Machines, optional
        Machines of the cluster, for the load of each resource. Default: none.
    partitions : Partitions, optional
        Partitions of the cluster, for the jobs that may not run in theirs. Default: none.
    """

    answers = Described

    workload: Workload
    machines: Machines | None = None
    partitions: Partitions | None = None

    @property
    def tasks(self) -> Sequence[Task]:
        """No tasks: nothing is simulated."""
        return ()

    def answer(self, store: Store | None = None) -> Described:
        """Return the statistics."""
        return Described(described(self.workload, self.machines, self.partitions), self.workload)


def describe(workload: Asked = None, machines: Machines | None = None) -> Described:
    """Describe a workload.

    Parameters
    ----------
    workload : Workload, path or Experiment, optional
        Jobs, also those that do not fit the cluster; path of a log or its name in the catalogue; or an
        experiment or the path of its TOML file. By default the built-in workload.
    machines : Machines, optional
        Machines of the cluster, for the load of each resource; by default those of the experiment.

    Raises
    ------
    WorkloadError
        The log cannot be used, or there is no job.

    Examples
    --------
    >>> answer = describe(Workload({"submit_time": [0, 3600], "run_time": [60, 30], "nodes": [1, 4]}))
    >>> answer.table.query("section == 'sizes [nodes]'").head(2).values.tolist()
    [['sizes [nodes]', 'min', 1], ['sizes [nodes]', '5 %', 1.15]]
    """
    source = settings_of(workload, None, {})
    jobs = workload if isinstance(workload, Workload) else source.part(source.whole())
    partitions = source.scheduled if isinstance(source.scheduled, Partitions) else None
    return DescriptionQuestion(jobs, source.cluster if machines is None else machines, partitions).answer()
