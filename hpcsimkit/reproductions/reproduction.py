"""Base class of reproductions of published experiments."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, NamedTuple

from hpcsimkit.engine.store import Store
from hpcsimkit.engine.task import Task
from hpcsimkit.reproductions.rivals import RIVALS, Field
from hpcsimkit.reproductions.targets import Target

__all__ = ["Conclusion", "Reproduction"]


class Conclusion(NamedTuple):
    """Results of a reproduction.

    Parameters
    ----------
    targets : sequence of Target
        Targets of the reproduction.
    text : str
        Report in Markdown. (The run of the reproduction appends targets and provenance.)
    """

    targets: Sequence[Target]
    text: str


class Reproduction(ABC):
    """Reproduction of a published experiment.

    Parameters
    ----------
    logs : sequence of Path
        Paths of the logs.
    quick : bool
        Whether a small version is run. Default: False.
    seed : int
        Random seed. Default: 0.
    chosen : collection of str
        Given flags among `flags`. Default: none.

    Attributes
    ----------
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

    title: ClassVar[str]
    needs_logs: ClassVar[bool] = True
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

    @abstractmethod
    def prepare(self) -> Iterator[str]:
        """Read the logs and sample the data; yield lines that describe the work.

        Raises
        ------
        HpcsimkitError
            The logs are unsuitable.
        """

    @abstractmethod
    def stages(self) -> Sequence[Sequence[Task]]:
        """Return the tasks in stages; tasks of a stage depend only on those of earlier stages."""

    def fields(self) -> Sequence[Field]:
        """Return the sets of baselines, both the paper's and further ones; by default none."""
        return ()

    @abstractmethod
    def conclude(self, store: Store, pictures: Path) -> Conclusion:
        """Return the conclusion from the outcomes, and write figures to a folder."""
