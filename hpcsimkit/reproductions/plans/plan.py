"""Typed tables of a paper's files: ``plan.toml``, and ``published.toml`` with its published numbers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import BaseModel, Field, model_validator

from hpcsimkit.errors import nearest
from hpcsimkit.experiments.settings.checked_table import Table
from hpcsimkit.io.formats import Format
from hpcsimkit.reproductions.rivals import RIVALS

PLAN, PUBLISHED = "plan.toml", "published.toml"

BY_FILE = {
    r"sdsc-sp2": "SDSC-SP2",
    r"ctc-sp2": "CTC-SP2",
    r"hpc2n": "HPC2N",
    r"kth-sp2": "KTH-SP2",
    r"lublin[-_]?(1|256)(\.|$)": "Lublin-1",
    r"lublin[-_]?(2|256_new2)(\.|$)": "Lublin-2",
    r"alcf-theta-2022": "Theta-2022",
    r"alcf-theta-2023": "Theta-2023",
}
"""Names of logs in papers, by patterns that match the beginning of the file name."""

Part = Any
"""Value with parts; see :class:`~hpcsimkit.reproductions.plans.parts.Parts`."""

Each = Mapping[str, Any]
"""Values of each variable of a loop, the first variable outermost."""

When = dict[str, list[Any]]
"""Values of variables for which something is included."""


class LogsPlan(Table):
    """Table ``[logs]``: the reading of logs, and their split into training jobs and test sequences.

    `code` is the published code that reads the logs, or ``swf`` for unmodified ones. `kind` names a subclass
    of :class:`~hpcsimkit.reproductions.plans.logs.PaperLog`, if the logs need one. Sequences of the
    published test begin in the first `test_slice` jobs, if it is given. Without trainings, `split` is false.
    """

    needed: str
    code: Literal["rlscheduler", "schedinspector", "rlbackfilling", "swf"]
    kind: str = ""
    jobs: int = Field(default=1, gt=0)
    least_jobs: int = Field(default=1, gt=0)
    slice: int = Field(default=10_000, gt=0)
    test_slice: int | None = Field(default=None, gt=0)
    split: bool = True
    seeds: dict[str, int] = Field(default_factory=dict)
    seed: int | None = None
    drawn: str = "published"
    sequences: str = "sequences"
    names: dict[str, str] = Field(default_factory=lambda: dict(BY_FILE))


class SourcePlan(Table):
    """Table ``[source]`` in place of ``[logs]``: the class of other test data, such as job sets or days.

    `part` names a subclass of :class:`~hpcsimkit.reproductions.plans.logs.Logs`. Its data have a name, and
    the attributes `seed` and `variables` of a :class:`~hpcsimkit.reproductions.plans.logs.PaperLog`.
    """

    needed: str
    part: str
    required: bool = True


class SideStudyPlan(Table):
    """Table ``[side_studies.OPTION]``: what the flag OPTION replaces, of a study beside those of the paper.

    `template` is its report, a file of the folder, and `part` the class of its test data as in
    :class:`SourcePlan`, by default that of the paper. It has none of the `studies` of the plan.
    """

    template: str
    part: str = ""


class AgentPlan(Table):
    """Table ``[agents.NAME]``: the environment, the algorithm and the settings of a training.

    `learner` names a class in place of :class:`~hpcsimkit.reproductions.learners.Learner`, if it needs
    one. The variable `number`, 0 by default, is added to the seed; `changes` know the variable `learner`.
    """

    name: str
    environment: Part
    trainer: str
    settings: Part
    total_timesteps: Part = None
    learner: str = ""
    seed: Part = "{seed}"
    defaults: dict[str, Part] = Field(default_factory=dict)
    changes: dict[str, Part] = Field(default_factory=dict)


class RowPlan(Table):
    """Table ``[rows.NAME]``: a policy under test, with or without an agent.

    `family` is the row of tables that several agents share, `group` its use in the paper's own tables.
    `sequences` replaces those of the comparison, by the same jobs with other requested times for instance.
    Policies that know the future (`oracle`), and those that are no `rival`, are not among the heuristics
    beside which those of the kit are shown.
    """

    name: str
    family: str = ""
    group: str = ""
    policy: Part = None
    rules: Literal["dirlab", "textbook"] = "dirlab"
    agent: Part = None
    sample: list[bool] = Field(default_factory=lambda: [True])
    suffix: str = ", greedy"
    logs: Literal["own", "others", "first"] = "own"
    changes: dict[str, Part] = Field(default_factory=dict)
    stochastic: bool = False
    oracle: bool = False
    rival: bool = True
    sequences: Part = None
    each: Each = Field(default_factory=dict)
    when: When = Field(default_factory=dict)


class RowsPlan(Table):
    """Entry of ``rows`` of a comparison: names of rows, for each value of some variables."""

    rows: list[str]
    each: Each = Field(default_factory=dict)
    when: When = Field(default_factory=dict)


class ComparisonPlan(Table):
    """Table ``[comparisons.NAME]``: policies on the same sequences of each log.

    `sequences` is the name of an attribute of the log (in the published test of another `paper`, if one is
    named), or a value with parts. `words` describe them in headings, `test` in targets. The heuristics of the
    kit run beside the rows if there are `rivals`. `draws` is the number of runs of stochastic policies. A row
    has `values` values, each the mean over as many sequences, or over the numbers of a list; by default one
    for each sequence. With `joined`, the sequences of all values of its variables are one set in tables.
    `meeting` is the task that runs a policy, if it is not a usual one; it knows the variables `contestant`,
    `sequences` and `runs`, their number.
    """

    sequences: Part
    words: str = ""
    test: str = ""
    rows: list[RowsPlan]
    label: str = ""
    paper: str = ""
    rivals: bool = True
    folder: str = ""
    base: str = ""
    each: Each = Field(default_factory=dict)
    when: When = Field(default_factory=dict)
    known_logs: bool = False
    size: str = ""
    draws: Part = None
    values: Part = None
    joined: bool = False
    promises: bool = False
    meeting: Part = None

    inner: ClassVar[Mapping[str, type[BaseModel]]] = {"rows": RowsPlan}


class MeasurePlan(Table):
    """Column of a table of heuristics: its name, and a measure with the number by which it is divided."""

    name: str
    measure: str
    by: float = 1.0


class HeuristicsPlan(Table):
    """Table ``[heuristics]``: how the rows of the group ``outside`` are shown beside those of the paper.

    The first one of the `columns` decides which is best. The `name` of each set of sequences, by default the
    log and their words, knows the variable `words`. A row is a policy, or with `families` all agents of a
    family; without `drawn`, those with sampled actions are left out. Without this table, the heuristics of
    :data:`~hpcsimkit.reproductions.rivals.RULES` run beside all rows.
    """

    columns: list[MeasurePlan]
    name: str = ""
    families: bool = False
    drawn: bool = True

    inner: ClassVar[Mapping[str, type[BaseModel]]] = {"columns": MeasurePlan}


class StudyPlan(Table):
    """Entry of ``studies``: a figure of the learning curves of some agents."""

    name: str
    about: str
    agents: list[dict[str, Part]]
    size: str = ""


def comparisons_of(value: str | list[str]) -> list[str]:
    """Return the names of the comparisons that a table, a picture or a target is about."""
    return value if isinstance(value, list) else [value] * bool(value)


class ColumnPlan(Table):
    """Column of a table: the expression of its cells, and optionally of published numbers beside them.

    There is a column for each value of some variables. Published numbers are in a column of their own before
    it, in italics; the `best` numbers of a column are bold. With `each_log`, the cells are those of the other
    comparisons of the table, a column for each.
    """

    name: str
    value: str
    paper: str = ""
    best: Literal["", "lowest", "highest"] = ""
    each: Each = Field(default_factory=dict)
    when: When = Field(default_factory=dict)
    each_log: bool = False


class TablePlan(Table):
    """Table ``[tables.NAME]``: a line for each comparison and each value of some variables.

    If all comparisons are columns, there is only one line for each value. Lines for which the expression
    `given` is false are left out. `let` has further variables, as expressions. A table with a `file` is also
    written as CSV.
    """

    comparison: str | list[str]
    file: str = ""
    given: str = "true"
    let: dict[str, str] = Field(default_factory=dict)
    columns: list[ColumnPlan]
    each: Each = Field(default_factory=dict)
    when: When = Field(default_factory=dict)

    inner: ClassVar[Mapping[str, type[BaseModel]]] = {"columns": ColumnPlan}


class PicturePlan(Table):
    """Entry of ``pictures``: boxes of comparisons, curves of trainings, or bars of a table.

    Boxes have a figure for each comparison; their `rows` is an expression, as is `over`, the row whose values
    theirs are divided by. Curves show columns of the
    learning curves of a study, of all studies, of all agents if they have a `name`, or of a comparison with
    a panel for each family of agents.
    Bars show the numbers of a table.
    """

    kind: Literal["boxes", "curves", "bars"]
    name: str = ""
    comparison: str | list[str] = ""
    table: str = ""
    study: str = ""
    label: str = ""
    rows: str = "rows"
    over: str = "none"
    let: dict[str, str] = Field(default_factory=dict)
    measure: str = "mean_bounded_slowdown"
    by: float = 1.0
    columns: list[str] = Field(default_factory=lambda: ["reward"])
    logarithmic: bool = True
    each: Each = Field(default_factory=dict)
    when: When = Field(default_factory=dict)


class TimePlan(Table):
    """Entry of ``times``: the longest training of some trainers, or of all.

    It is of all agents, or of those of the comparisons; `at_most` and the published `paper` are in its unit.
    The words know the variables `agent` and `decisions`.
    """

    what: str
    trainers: list[str] = Field(default_factory=list)
    compared: bool = False
    at_most: float | None = None
    paper: float | None = None
    unit: Literal["min", "h"] = "min"


class TargetPlan(Table):
    """Entry of ``targets``: a value to reach, on each comparison and for each value of some variables.

    `ours` is the expression of the value, `paper` of a published one, `spread` of its standard deviation,
    and `met` whether it is reached (it knows `ours` and `paper`). Those for which `given` is false are left
    out. The values of a `total` are sums over all targets of the same words. `let` has further variables, as
    expressions. In place of expressions there may be `rows` with `published` numbers, or rows that must be
    `below` others.
    """

    comparison: str | list[str]
    rows: list[str] = Field(default_factory=list)
    published: str = ""
    sequences: int = 0
    below: list[str] = Field(default_factory=list)
    what: str = ""
    ours: str = ""
    paper: str = "none"
    spread: str = "none"
    met: str = "none"
    given: str = "true"
    total: bool = False
    let: dict[str, str] = Field(default_factory=dict)
    each: Each = Field(default_factory=dict)
    when: When = Field(default_factory=dict)


class Plan(Table):
    """Contents of ``plan.toml``."""

    file_format: ClassVar = Format.PLAN

    title: str
    logs: LogsPlan = Field(default=None)  # type: ignore[assignment]  # absent if there is a source
    source: SourcePlan | None = None
    rates: dict[str, float]
    options: list[str] = Field(default_factory=lambda: [RIVALS])
    side_studies: dict[str, SideStudyPlan] = Field(default_factory=dict)
    sizes: dict[Literal["full", "quick"], dict[str, Any]]
    agents: dict[str, AgentPlan] = Field(default_factory=dict)
    rows: dict[str, RowPlan]
    comparisons: dict[str, ComparisonPlan]
    heuristics: HeuristicsPlan | None = None
    logs_first: bool = False
    studies: list[StudyPlan] = Field(default_factory=list)
    targets: list[TargetPlan] = Field(default_factory=list)
    tasks: dict[str, Part] = Field(default_factory=dict)
    minutes: float | None = None
    times: list[TimePlan] = Field(default_factory=list)
    tables: dict[str, TablePlan] = Field(default_factory=dict)
    pictures: list[PicturePlan] = Field(default_factory=list)

    inner: ClassVar[Mapping[str, type[BaseModel]]] = {"logs": LogsPlan, "source": SourcePlan}

    @model_validator(mode="after")
    def _names_are_known(self) -> Self:
        """Check that there are test data, and that rows, agents and comparisons have a table."""
        if (self.logs is None) == (self.source is None):
            raise ValueError("either the table logs or the table source is needed")
        rows = [row for each in self.comparisons.values() for rows in each.rows for row in rows.rows]
        agents = [row.agent["agent"] for row in self.rows.values() if row.agent is not None]
        agents += [panel["agent"]["agent"] for study in self.studies for panel in study.agents]
        for kind, used, known in (
            ("row", rows, self.rows),
            ("agent", agents, self.agents),
            ("comparison", self._compared(), self.comparisons),
            ("table", [each.table for each in self.pictures if each.table], self.tables),
            (
                "study",
                [each.study for each in self.pictures if each.study],
                [each.name for each in self.studies],
            ),
            ("option", self.side_studies, self.options),
        ):
            for name in used:
                if name not in known:
                    raise ValueError(f"unknown {kind} {name!r}{nearest(name, list(known))}")
        return self

    def _compared(self) -> list[str]:
        """Return the comparisons that tables, pictures and targets are about."""
        lists = (self.targets, self.tables.values(), self.pictures)
        return [name for of in lists for each in of for name in comparisons_of(each.comparison)]

    def _drawn(self) -> list[str]:
        return [each.study for each in self.pictures if each.study]

    def size(self, *, quick: bool) -> dict[str, Any]:
        """Return the size preset: ``quick`` overrides ``full``."""
        return {**self.sizes["full"], **(self.sizes.get("quick", {}) if quick else {})}


class PublishedTable(Table):
    """Published table: its place in the source, and its numbers by row and column; NaN where it has none."""

    source: str
    page: int | None = None
    columns: list[str]
    rows: dict[str, list[float]]

    def of(self, row: str) -> dict[str, float]:
        """Return the numbers of a row by column, NaN for an unknown row."""
        numbers = self.rows.get(row, [float("nan")] * len(self.columns))
        return dict(zip(self.columns, numbers, strict=True))

    def number(self, row: str, column: str) -> float:
        """Return a number, or NaN."""
        return self.of(row).get(column, float("nan"))


class Published(Table):
    """Contents of ``published.toml``: tables by name."""

    file_format: ClassVar = Format.PUBLISHED

    tables: dict[str, PublishedTable] = Field(default_factory=dict)


@cache
def paper_files(folder: Path) -> tuple[Plan, dict[str, PublishedTable]]:
    """Return the plan of a paper, and its published tables by name."""
    numbers = folder / PUBLISHED
    return (
        Plan.of_toml(folder / PLAN),
        Published.of_toml(numbers).tables if numbers.exists() else {},
    )
