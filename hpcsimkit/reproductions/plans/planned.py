"""A reproduction from the folder of a paper."""

from __future__ import annotations

import importlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar, NamedTuple, Self

from hpcsimkit.engine.store import Store
from hpcsimkit.engine.task import Task
from hpcsimkit.errors import UsageError, nearest
from hpcsimkit.experiments.parts.trust import Trust
from hpcsimkit.io.files import is_file, single_name
from hpcsimkit.reproductions.learners import Learner, Training
from hpcsimkit.reproductions.papers import PAPERS, SYSTEMS
from hpcsimkit.reproductions.plans.catalogue import own_module
from hpcsimkit.reproductions.plans.comparisons import Comparison, Workshop, runs_by_use
from hpcsimkit.reproductions.plans.findings import PaperFindings
from hpcsimkit.reproductions.plans.logs import Logs, PaperLogs
from hpcsimkit.reproductions.plans.parts import KIT, Code
from hpcsimkit.reproductions.plans.plan import (
    PLAN,
    HeuristicsPlan,
    Plan,
    PublishedTable,
    SideStudyPlan,
    StudyPlan,
    paper_files,
)
from hpcsimkit.reproductions.rivals import RIVALS, Field, field_of
from hpcsimkit.reproductions.scores import Joined, Scores
from hpcsimkit.reproductions.targets import Conclusion


class Study(NamedTuple):
    """Figure that compares trainings: its name, valid as a file name, its subject, and agents by panel."""

    name: str
    about: str
    learners: Mapping[str, Learner]


class PaperReproduction:
    """Reproduction of a paper from its folder; see :func:`reproduction_of`.

    Attributes
    ----------
    folder : Path
        Folder of the paper.
    paper : Plan
        Contents of its ``plan.toml``.
    published : mapping of str to PublishedTable
        Contents of its ``published.toml``.
    findings : type
        Class of its measurements.
    code : Code
        Code that names in the plan may refer to.
    own : module or None
        Module of the paper with its own code.
    title : str
        Heading of the page.
    needs_logs : bool
        Whether logs are required.
    logs_needed : str
        Description of the logs and their sources, for the message if none are given.
    rates : mapping of str to float
        Approximate rate of one process for each kind of task [decisions/s].
    flags : set of str
        Flags of the command line, without dashes, that the reproduction supports.
    allow_code : tuple of str
        Modules, files and folders from which its plan may import code.
    """

    folder: ClassVar[Path]
    paper: ClassVar[Plan]
    published: ClassVar[Mapping[str, PublishedTable]]
    findings: ClassVar[type[PaperFindings]]
    code: ClassVar[Code]
    own: ClassVar[ModuleType | None]
    title: ClassVar[str]
    needs_logs: ClassVar[bool]
    logs_needed: ClassVar[str]
    rates: ClassVar[Mapping[str, float]]
    flags: ClassVar[frozenset[str]] = frozenset({RIVALS})
    allow_code: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self, logs: Sequence[Path], *, quick: bool = False, seed: int = 0, chosen: Collection[str] = ()
    ) -> None:
        self.logs = tuple(logs)
        self.quick = quick
        self.seed = seed
        self.chosen = frozenset(chosen)

    @classmethod
    def asked(
        cls, system: str, logs: Sequence[Path], chosen: Collection[str], *, quick: bool, seed: int
    ) -> Self:
        """Return the reproduction of a command line, by its name and with the chosen flags.

        Raises
        ------
        UsageError
            There are no logs, or a flag or the seed is not valid.
        """
        if seed < 0:
            raise UsageError(f"--seed must be greater than or equal to 0, found {seed}")
        if not logs and cls.needs_logs:
            raise UsageError(f"{system} needs {cls.logs_needed}")
        for flag in chosen:
            if flag not in cls.flags:
                raise UsageError(f"{system} knows no --{flag}")
        return cls(logs, quick=quick, seed=seed, chosen=chosen)

    @cached_property
    def traces(self) -> Any:
        """Logs of the experiment, or other test data; their size preset holds the flags, too."""
        flags = {flag: flag in self.chosen for flag in self.flags}
        scale, source = SimpleNamespace(**self.paper.size(quick=self.quick), **flags), self.paper.source
        part = (self.side_study and self.side_study.part) or (source and source.part)
        if not part:
            return PaperLogs(self.logs, scale, self.seed, self.paper.logs, self.code)
        return self.code.kind(part, Logs)(self.logs, scale, self.seed)

    @property
    def side_study(self) -> SideStudyPlan | None:
        """The study chosen by a flag in place of those of the paper, if any."""
        chosen = (study for flag, study in self.paper.side_studies.items() if flag in self.chosen)
        return next(chosen, None)

    @cached_property
    def workshop(self) -> Workshop:
        """Agents and comparisons of the plan."""
        return Workshop(self.paper, self.traces, self.code)

    @cached_property
    def contests(self) -> list[Comparison]:
        """Comparisons of policies, one for each set of sequences."""
        return list(self.workshop.comparisons())

    @cached_property
    def studies(self) -> list[Study]:
        """Figures of trainings."""
        if self.side_study is not None:
            return []
        scale = vars(self.traces.scale)
        return [self._study(each) for each in self.paper.studies if not each.size or scale[each.size]]

    @cached_property
    def tasks(self) -> dict[str, Any]:
        """Tasks of the plan beside trainings and comparisons, or objects with `tasks`, by name."""
        parts = self.workshop.parts()
        return {name: parts.made(part) for name, part in self.paper.tasks.items()}

    def prepare(self) -> Iterator[str]:
        """Read the logs and draw the sequences; yield lines on the planned work."""
        yield from self.traces.lines()
        sets = f"{len(self.contests)} set{'s' * (len(self.contests) != 1)} of sequences"
        if RIVALS in self.chosen:
            yield f"{sets} with heuristics only"
        else:
            agents = len(self.trained)
            yield f"{agents} agent{'s' * (agents != 1)}, " * bool(agents) + f"{sets} with all their baselines"

    @property
    def compared(self) -> list[Learner]:
        """Agents of the comparisons, each once."""
        rows = [each for contest in self.contests for each in contest.contestants]
        return list({row.learner.name: row.learner for row in rows if row.learner is not None}.values())

    def further_learners(self) -> Iterator[Learner]:
        """Yield the agents of the figures of trainings."""
        for study in self.studies:
            yield from study.learners.values()

    @property
    def trained(self) -> list[Learner]:
        """All agents to train, each once."""
        return list({each.name: each for each in [*self.compared, *self.further_learners()]}.values())

    def further_runs(self) -> Iterator[Task]:
        """Yield the tasks beside trainings and comparisons."""
        for each in self.tasks.values():
            yield from [each] if isinstance(each, Task) else each.tasks

    def stages(self) -> Sequence[Sequence[Task]]:
        """Return the trainings, then those that need other agents, if any, and the runs.

        Tasks depend only on those of earlier stages. Longer trainings are first. Those by a trainer with a
        rate of its own are a kind of their own.
        """
        trainings = [self._training(learner) for learner in self.trained]
        trainings.sort(key=lambda task: task.size / self.rates[task.kind], reverse=True)
        runs = [run for contest in self.contests for run in contest.meetings.values()]
        stages: list[list[Task]] = [
            [task for task in trainings if bool(task.requires) is later] for later in (False, True)
        ]
        return [*filter(None, stages), [*self.further_runs(), *runs]]

    def _training(self, learner: Learner) -> Training:
        kind = f"training by {learner.trainer}"
        return Training(learner, kind) if kind in self.rates else Training(learner)

    def fields(self) -> list[Field]:
        """Return the heuristics of the kit on each set of sequences, beside the rows of all comparisons."""
        plan, found = self.paper.heuristics, dict[str, list[Comparison]]()
        for each in self.contests:
            if each.plan.rivals:
                found.setdefault(self._heading(each, plan), []).append(each)
        return [
            self._beside_all(name, met) if plan is None else self._beside(name, met, plan)
            for name, met in found.items()
        ]

    def _heading(self, contest: Comparison, plan: HeuristicsPlan | None) -> str:
        """Return the heading of a set of sequences; by default it is the log and words on the sequences."""
        words = contest.plan.words
        if plan is None or not plan.name:
            return ", ".join(filter(None, [contest.trace.name, words]))
        return f"{contest.parts.beside({'words': words}).made(plan.name)}"

    def _beside(self, name: str, met: Sequence[Comparison], plan: HeuristicsPlan) -> Field:
        known, rules, learned = runs_by_use(met, plan)
        columns = {each.name: (each.measure, 1 / each.by) for each in plan.columns}
        parts = () if met[0].plan.values is None else met[0].parts_of_values
        return Field(name, known, rules, learned, columns, parts)

    def _beside_all(self, name: str, met: Sequence[Comparison]) -> Field:
        rows = {
            f"{each.base}: {row}" if each.base else row: task
            for each in met
            for row, task in each.meetings.items()
            if each.rows[row].rival and not each.rows[row].oracle
        }
        return field_of(name, met[0].sequences, met[0].trace.seed, rows)

    def scores(self, store: Store) -> list[Scores]:
        """Return the measured values of all comparisons, joined ones as one."""
        found: dict[object, list[Scores]] = {}
        for number, contest in enumerate(self.contests):
            key = (contest.protocol, id(contest.trace)) if contest.plan.joined else number
            found.setdefault(key, []).append(self.kept(contest, store))
        return [Joined.of_parts(each) if each[0].contest.plan.joined else each[0] for each in found.values()]

    def kept(self, contest: Comparison, store: Store) -> Scores:
        """Return the measured values of a comparison."""
        return Scores.kept(contest, store)

    def conclude(self, store: Store, pictures: Path) -> Conclusion:
        """Return tables, significance tests and targets; draw figures."""
        return self.findings(self, store).conclusion(pictures)

    def _study(self, plan: StudyPlan) -> Study:
        agents: dict[str, Learner] = {}
        for panel in plan.agents:
            logs = self.traces.all if panel.get("logs") == "all" else [self.traces.first]
            for parts in self.workshop.parts().each({**panel.get("each", {}), "log": list(logs)}):
                inner = parts.beside(parts.variables["log"].variables)
                agents[f"{inner.made(panel['name'])}"] = inner.made(panel["agent"])
        return Study(plan.name, self.workshop.parts().made(plan.about), agents)


def reproduction_named(name: str, allow_code: Sequence[str] = ()) -> type[PaperReproduction]:
    """Return the reproduction of a system, or that of a folder with ``plan.toml``.

    Examples
    --------
    >>> reproduction_named("masked-pppo")
    Traceback (most recent call last):
    hpcsimkit.errors.UsageError: unknown system 'masked-pppo'; nearest: masked-ppo
    """
    if name in SYSTEMS:
        return reproduction_of(PAPERS[name], KIT.trust)
    if is_file(Path(name) / "plan.toml"):
        return reproduction_of(Path(name).resolve(), Trust(tuple(allow_code)))
    raise UsageError(f"unknown system {name!r}{nearest(name, SYSTEMS)}")


@cache
def reproduction_of(folder: Path, trust: Trust) -> type[PaperReproduction]:
    """Return the reproduction of a paper from its folder.

    ``report.md.jinja`` is its text. If there is a module ``own`` in a folder of the kit, the classes
    ``OwnReproduction`` and ``OwnFindings`` in it replace those of this module.
    """
    plan, published = paper_files(folder)
    for study in plan.side_studies.values():
        if not is_file(folder / single_name(study.template)):
            raise UsageError(f"{folder / PLAN}: the folder has no template {study.template!r}")
    own, source = _own(folder), plan.source or plan.logs
    return type(
        f"{folder.name.title().replace('_', '')}Reproduction",
        (getattr(own, "OwnReproduction", PaperReproduction),),
        {
            "__doc__": plan.title,
            "folder": folder,
            "paper": plan,
            "published": published,
            "title": plan.title,
            "needs_logs": plan.source is None or plan.source.required,
            "logs_needed": source.needed,
            "rates": plan.rates,
            "flags": frozenset(plan.options),
            "findings": getattr(own, "OwnFindings", PaperFindings),
            "code": Code(str(folder), trust),
            "own": own,
            "allow_code": trust.allowed or (),
        },
    )


def _own(folder: Path) -> ModuleType | None:
    paper = next((name for name, place in PAPERS.items() if place == folder), None)
    name = None if paper is None else own_module(paper)
    return None if name is None else importlib.import_module(name)
