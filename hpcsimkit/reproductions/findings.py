"""Base class of the measurements behind a report."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcsimkit.engine.store import Store
from hpcsimkit.reports.figures import save_figure
from hpcsimkit.reproductions.reproduction import Conclusion
from hpcsimkit.reproductions.targets import Target
from hpcsimkit.reproductions.templates import rendered

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Findings"]


@dataclass(frozen=True)
class Findings(ABC):
    """Measurements of a finished reproduction: the values of its report, its figures and its targets.

    The report is the template ``report.md.jinja`` in the folder of the reproduction, which knows the
    measurements as `found` and the reproduction as `plan`.

    Parameters
    ----------
    plan : Reproduction
        The reproduction.
    store : Store
        Store of the tasks' outcomes.
    """

    plan: Any  # a reproduction, which imports its report: the other way would be a circle
    store: Store

    @property
    def template(self) -> str | Path:
        """Template of the report."""
        return f"{type(self).__module__.split('.')[-2]}/report.md.jinja"

    @abstractmethod
    def values(self) -> Mapping[str, Any]:
        """Return further values of the template, by name."""

    @abstractmethod
    def figures(self) -> Iterable[tuple[str, Figure]]:
        """Return the figures with their names."""

    @abstractmethod
    def targets(self) -> Iterator[Target]:
        """Yield the targets."""

    def conclusion(self, pictures: Path) -> Conclusion:
        """Return the targets and the report; figures are written to a folder."""
        for name, figure in self.figures():
            save_figure(figure, pictures / f"{name}.png")
        report = rendered(self.template, title=self.plan.title, found=self, plan=self.plan, **self.values())
        return Conclusion(list(self.targets()), report)
