"""What a published experiment fills in to be done again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, NamedTuple

from hpcsimkit.reproductions.page import Page
from hpcsimkit.reproductions.targets import Target
from hpcsimkit.reproductions.tasks import Shelf, Task

__all__ = ["Conclusion", "Reproduction"]


class Conclusion(NamedTuple):
    """What came out.

    Parameters
    ----------
    targets : sequence of Target
        What was to be reached.
    page : Page
        All results in words and tables. (How they were made is written by who runs the tasks.)
    """

    targets: Sequence[Target]
    page: Page


class Reproduction(ABC):
    """A published experiment.

    Parameters
    ----------
    logs : sequence of Path
        The logs it is about.
    quick : bool
        A small version of it.
    seed : int
        Where all chance comes from.
    chosen : collection of str
        Those of its flags that were given.

    Attributes
    ----------
    title : str
        Heading of its page.
    needs_logs : bool
        It is about logs; else it can do without.
    logs_needed : str
        Which logs, and where to find them: what is said to who gives none.
    rates : mapping of str to float
        For each kind of task how many decisions/s one process takes, about.
    flags : set of str
        Flags of the command line, without dashes, that only some reproductions know.
    """

    title: ClassVar[str]
    needs_logs: ClassVar[bool] = True
    logs_needed: ClassVar[str]
    rates: ClassVar[Mapping[str, float]]
    flags: ClassVar[frozenset[str]] = frozenset()

    def __init__(
        self, logs: Sequence[Path], *, quick: bool = False, seed: int = 0, chosen: Collection[str] = ()
    ) -> None:
        self.logs = tuple(logs)
        self.quick = quick
        self.seed = seed
        self.chosen = frozenset(chosen)

    @abstractmethod
    def prepare(self) -> Iterator[str]:
        """Read the logs and draw all there is to draw; yields lines that say what will be done.

        Raises
        ------
        HpcsimkitError
            The logs are not what is needed.
        """

    @abstractmethod
    def stages(self) -> Sequence[Sequence[Task]]:
        """Return the tasks: those of a stage need only those of the stages before it."""

    @abstractmethod
    def conclude(self, shelf: Shelf, pictures: Path) -> Conclusion:
        """Return what the outcomes say, and draw pictures of it into a folder."""
