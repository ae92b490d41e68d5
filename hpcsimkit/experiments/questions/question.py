"""Questions: tasks, and the answer that their outcomes give, as tables, a picture and text."""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from hpcsimkit.engine.engines import Engine, InProcess
from hpcsimkit.engine.lock import writing
from hpcsimkit.engine.provenance import Provenance
from hpcsimkit.engine.results_folder import SETTINGS, ResultsFolder, next_free
from hpcsimkit.engine.runner import finish, finished
from hpcsimkit.engine.store import OUTCOME, Store
from hpcsimkit.engine.task import Task, Tell
from hpcsimkit.errors import HpcsimkitError, StorageError, UsageError
from hpcsimkit.experiments.comparison.case import Case, Ended
from hpcsimkit.experiments.comparison.experiment import Experiment
from hpcsimkit.io.files import read_bytes, write_bytes
from hpcsimkit.io.formats import Format
from hpcsimkit.io.npz import arrays_in, write_arrays

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

__all__ = ["Answer", "OfCases", "Question", "ask"]

PACKAGES = ("simpy", "numpy", "pandas", "scipy", "matplotlib")
"""Packages with recorded versions."""

TRACE, ARRAYS = "trace.jsonl", "seen.npz"
"""Files in the folder of a run: all of its events, and what was seen in it."""


class Answer(ABC):
    """Answer to a question: tables, a picture, and text for a terminal."""

    stem: ClassVar[str]
    """Name of the record and of the picture, without suffix."""

    names: ClassVar[tuple[str, ...]]
    """Names of the tables."""

    measured: ClassVar[tuple[str, ...]] = ()
    """Names of the numbers that sum up the answer; by default there are none."""

    number_format: ClassVar[str | None] = None
    """Format of numbers in files."""

    @property
    @abstractmethod
    def tables(self) -> Mapping[str, pandas.DataFrame]:
        """Tables by name."""

    @abstractmethod
    def figure(self) -> Figure | None:
        """Return the picture for a file; None if there is none."""

    def plot(self) -> Any:
        """Draw the picture, which a notebook shows, and return its axes."""
        from hpcsimkit.reports.figures import in_pyplot

        with in_pyplot():
            drawn = self.figure()
        return np.array([] if drawn is None else drawn.axes, dtype=object)

    @abstractmethod
    def lines(self) -> Iterator[str]:
        """Yield the answer as lines of text."""

    def __repr__(self) -> str:
        return "\n".join(self.lines())

    def _repr_html_(self) -> str:
        """Return the tables and the picture, for notebooks."""
        from hpcsimkit.reports.views import answer_html

        return answer_html(type(self).__name__, self.tables, self.figure)

    @property
    def measures(self) -> Mapping[str, float]:
        """Numbers that sum up the answer, by name: columns of a sweep."""
        return {}

    @classmethod
    def files(cls) -> list[str]:
        """Return the names of the files, the one to look at last."""
        return [*(f"{name}.csv" for name in cls.names), f"{cls.stem}.png"]

    def save(self, folder: Path) -> None:
        """Write the tables as CSV files, and the picture.

        Raises
        ------
        StorageError
            A file cannot be written.
        """
        from hpcsimkit.reports.figures import save_figure

        self.save_tables(folder)
        if (drawn := self.figure()) is not None:
            save_figure(drawn, folder / f"{self.stem}.png")

    def save_tables(self, folder: Path) -> None:
        """Write the tables as CSV files.

        Raises
        ------
        StorageError
            A file cannot be written.
        """
        for name, table in self.tables.items():
            text = table.to_csv(index=False, lineterminator="\n", float_format=self.number_format)
            write_bytes(folder / f"{name}.csv", text.encode())


class Question(ABC):
    """Question about workloads: its tasks run on any engine, and their outcomes give the answer."""

    answers: ClassVar[type[Answer]]
    """Class of the answer."""

    @property
    @abstractmethod
    def tasks(self) -> Sequence[Task]:
        """Tasks of the question."""

    @abstractmethod
    def answer(self, store: Store) -> Answer:
        """Return the answer that the outcomes of the tasks in a store give."""


def ask(
    question: Question,
    engine: Engine | None = None,
    tell: Callable[[str, int], None] = lambda name, done: None,
) -> Any:
    """Return the answer to a question; nothing is kept.

    Parameters
    ----------
    question : Question
        The question.
    engine : Engine, optional
        Engine that executes the tasks; by default this process.
    tell : callable
        Callback ``tell(name, done)`` with the progress of a task. Default: none.

    Raises
    ------
    HpcsimkitError
        There is no answer.
    """
    with TemporaryDirectory() as place:
        store = Store(Path(place), durable=False)
        finish(question.tasks, store, lambda tasks: engine or InProcess(), tell=tell)
        return question.answer(store)


def answer_here(question: Question) -> Answer:
    """Return the answer to a question that is itself a part of a task."""
    with TemporaryDirectory() as place:
        store = Store(Path(place), durable=False)
        for task in question.tasks:
            store.perform(task, lambda done: None)
        return question.answer(store)


# --- questions about cases -------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class OfCases(Question):
    """Question whose tasks simulate cases.

    Parameters
    ----------
    case : Case
        The case.
    settings : mapping, optional
        Settings that decide the answer, for one whose runs are resumed. Default: none are.
    """

    has_trace: ClassVar[bool] = True
    """Whether the events of its run may be written, if an experiment asks for it."""

    case: Case
    settings: Mapping[str, Any] | None = None

    @property
    @abstractmethod
    def own(self) -> dict[str, Any]:
        """Settings of the question, in plain values."""

    @property
    def cases(self) -> Mapping[str, Case]:
        """Cases to simulate, by the name of the task."""
        return {"run": self.case}

    @abstractmethod
    def look(self, case: Case, folder: Path) -> None:
        """Simulate a case, and write what the answer needs to know to a folder."""

    @property
    def tasks(self) -> Sequence[Task]:
        """A task for each case."""
        return [CaseRun(self, name, case) for name, case in self.cases.items()]


class CaseRun(Task):
    """Simulation of a case for a question."""

    kind = "simulation"

    def __init__(self, question: OfCases, name: str, case: Case) -> None:
        self.question = question
        self.case = case
        self._name = name

    @property
    def name(self) -> str:
        """Name of the case."""
        return self._name

    @property
    def label(self) -> str:
        """Name of the policy."""
        return self.case.name

    @property
    def size(self) -> int:
        """Number of jobs."""
        return len(self.case.jobs)

    def inputs(self) -> Any:
        """Return the settings and the case; of a question that is not resumed the names."""
        settings, case = self.question.settings, self.case
        if settings is None:
            return [type(self.question).__name__, self.name]
        setup = replace(case.setup, simulator="auto")
        return [dict(settings), {"name": case.name, "policy": case.policy, "jobs": case.jobs, "setup": setup}]

    def run(self, folder: Path, tell: Tell) -> Any:
        """Simulate; what the question needs to know is in the folder."""
        case = self.case.watched(Ended(tell))
        if self.question.has_trace and getattr(case.source, "trace", False):
            case = case.traced(folder / TRACE)
        self.question.look(case, folder)
        return {}


class Place(NamedTuple):
    """Folder of the files of an answer: that of the user, else the usual one of its settings."""

    out: str | None
    usual: Path
    command: Sequence[str] = ()
    overwrite: bool = False

    def folder(self, kind: type[Answer], settings: Mapping[str, Any]) -> ResultsFolder:
        """Return the folder for the files of a kind of answer."""
        if self.out == "":
            raise UsageError("--out must have at least 1 character, found ''")
        make = partial(ResultsFolder, files=kind.files(), record=f"{kind.stem}.json")
        suits = lambda candidate: not make(candidate).holds_others(settings)  # noqa: E731
        return make(next_free(self.usual, suits=suits) if self.out is None else self.out)


def answered(
    question: OfCases, place: Place, tell: Callable[[str, int], None] = lambda run, jobs: None
) -> tuple[Answer, Path]:
    """Ask a question, and write the files of the answer and their record.

    Complete runs of an interrupted command are not repeated. Returns the answer and the path of its folder.

    Parameters
    ----------
    question : OfCases
        The question about a case of an experiment, whose engine executes the runs.
    place : Place
        Place of the results.
    tell : callable
        Callback ``tell(run, jobs)`` with the number of ended jobs; ``tell("", 0)`` when the picture is drawn.

    Raises
    ------
    HpcsimkitError
        There is no answer, results of other settings are in the folder, or it cannot be written.
    """
    kind, experiment = question.answers, question.case.source
    assert isinstance(experiment, Experiment)
    settings = {**experiment.settings(), **question.own}
    folder = place.folder(kind, settings)
    provenance = Provenance(place.command, PACKAGES)
    tasks = replace(question, settings=settings).tasks
    store = Store(folder.path / f".{kind.stem}.tasks")
    kept = partial(finished, tasks, store, "runs")
    with folder.in_place(settings, overwrite=place.overwrite, kept=kept), _tidied(store, tasks):
        finish(tasks, store, lambda missing: experiment.engine_for(len(missing)), tell=tell)
        tell("", 0)
        answer = question.answer(store)
        folder.begin(settings)
        trace = store.folder(tasks[0]) / TRACE
        if trace.is_file():
            trace.replace(folder.path / TRACE)
        answer.save(folder.path)
        folder.conclude(provenance, {SETTINGS: settings})
    return answer, folder.path


@contextmanager
def _tidied(store: Store, tasks: Sequence[Task]) -> Iterator[None]:
    """Remove a store at the end of the work; after an interruption, complete runs are kept."""
    done = False
    try:
        yield
        done = True
    except (KeyboardInterrupt, StorageError):
        raise
    except HpcsimkitError:
        done = all(map(store.has, tasks))  # the runs give no answer, and would not the next time
        raise
    finally:
        if done or not any(map(store.has, tasks)):
            with writing(store.place):
                for task in tasks:  # first: a process killed meanwhile leaves no outcome without its files
                    (store.folder(task) / OUTCOME).unlink(missing_ok=True)
                shutil.rmtree(store.place, ignore_errors=True)


# --- what was seen in a run ------------------------------------------------------------------------------


def write_seen(folder: Path, **arrays: Any) -> None:
    """Write arrays that were made of a run."""
    write_arrays(folder / ARRAYS, **arrays)


def read_seen(folder: Path) -> dict[str, Any]:
    """Return the arrays that were made of a run."""
    file = folder / ARRAYS
    return arrays_in(read_bytes(file, Format.TASK_ARRAYS), file)


def columns_of(table: pandas.DataFrame) -> dict[str, Any]:
    """Return the columns of a table of numbers and texts as arrays, by their place."""
    kinds = {name: float if table[name].dtype.kind == "f" else str for name in table.columns}
    columns = {str(place): table[name].to_numpy(kinds[name]) for place, name in enumerate(table.columns)}
    return {"names": np.array(list(table.columns)), **columns}


def table_of(arrays: Mapping[str, Any]) -> pandas.DataFrame:
    """Return the table of the arrays of :func:`columns_of`."""
    import pandas

    columns = (arrays[str(place)] for place in range(len(arrays["names"])))
    return pandas.DataFrame(
        {str(name): column.tolist() for name, column in zip(arrays["names"], columns, strict=True)}
    )
