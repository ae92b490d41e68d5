"""Results of sweeps: the table of cells, and the state of a running sweep."""

from __future__ import annotations

import io
import os
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcsimkit.engine.provenance import times_of
from hpcsimkit.engine.results_folder import PROVENANCE
from hpcsimkit.engine.store import FAILURE, INPUTS, OUTCOME
from hpcsimkit.errors import HpcsimkitError, UsageError
from hpcsimkit.experiments.console import grouped
from hpcsimkit.io.documents import json_record
from hpcsimkit.io.files import read_bytes
from hpcsimkit.io.formats import Format
from hpcsimkit.reports.sweep.remarks import of_reasons, remarks_on
from hpcsimkit.reports.sweep.table import SweepTable

if TYPE_CHECKING:
    import pandas

__all__ = ["CELLS", "DESCRIPTION", "State", "SweepResults"]

CELLS, DESCRIPTION = "cells", "sweep.json"
"""Names of the folder of cells and of the table, and of the file with the axes."""

RECENT = 100
"""Number of the last finished cells that determine the rate."""


@dataclass(frozen=True)
class State:
    """State of a sweep.

    Parameters
    ----------
    completed, failed, running, pending : int
        Numbers of cells by the state of their runs; a run that was interrupted counts as running.
    reasons : mapping of str to int
        Number of failed cells by reason.
    rate : float
        Finished cells per second, over the last 100 of them; 0 if fewer than two are finished.
    """

    completed: int
    failed: int
    running: int
    pending: int
    reasons: Counter[str]
    rate: float

    @property
    def seconds_left(self) -> float | None:
        """Estimated remaining time [s]; None if no rate is known."""
        left = self.running + self.pending
        return left / self.rate if self.rate else None if left else 0.0


class SweepResults:
    """Results folder of a sweep.

    Parameters
    ----------
    place : path
        Path of the folder.

    Raises
    ------
    UsageError
        The folder is not that of a sweep.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from hpcsimkit import Sweep
    >>> from hpcsimkit.experiments.sweep.sweep_run import SweepRun
    >>> axes = {"seed": {"first": 0, "count": 3}}
    >>> sweep = Sweep(jobs=50, policies=["fcfs", "sjf"], sweep=axes, report=False)
    >>> with TemporaryDirectory() as place:
    ...     _ = SweepRun(sweep, f"{place}/out").run()
    ...     table = SweepResults(f"{place}/out").to_frame()
    >>> table["policy"].value_counts().to_dict()
    {'fcfs': 3, 'sjf': 3}
    """

    def __init__(self, place: str | os.PathLike[str]) -> None:
        self.place = Path(place)
        self._description = json_record(self.place / DESCRIPTION, Format.SWEEP_RESULTS)
        if not isinstance(self._description.get("cells"), list):
            raise UsageError(f"{place}: a folder of a sweep is needed; {DESCRIPTION} is missing or damaged")

    @property
    def axes(self) -> dict[str, list[Any]]:
        """Values of each axis by its name, in their order."""
        return dict(self._description["axes"])

    @property
    def replicates(self) -> list[str]:
        """Names of the axes whose values are repetitions of the same experiment."""
        return list(self._description["replicates"])

    def to_frame(self) -> pandas.DataFrame:
        """Return a row for each cell: its axes, all metrics, its provenance, and its CPU time and host.

        Raises
        ------
        UsageError
            The sweep is not finished.
        HpcsimkitError
            The table cannot be read.
        """
        import pandas

        frame = self._table(self.place / f"{CELLS}.parquet")
        spent = json_record(times_of(self.place / PROVENANCE), Format.PROVENANCE).get(CELLS, {})
        times = pandas.DataFrame(
            [spent.get(cell, {}) for cell in frame["cell"]], frame.index, ["seconds", "host"]
        )
        return pandas.concat([frame, times], axis=1)

    def remarks(self) -> Iterator[str]:
        """Yield remarks on the cells: failures, waits that say nothing, seeds without effect, and copies."""
        yield from remarks_on(SweepTable.read(self.place))

    def jobs(self, cell: str) -> pandas.DataFrame:
        """Return the table of jobs of a cell, with its name from the column ``cell``.

        Raises
        ------
        UsageError
            There is no such cell, or it has no jobs.
        HpcsimkitError
            The table cannot be read.
        """
        if cell not in self._description["cells"]:
            raise UsageError(f"{self.place}: no cell {cell!r}")
        return self._table(self.place / CELLS / cell / "jobs.parquet")

    def _table(self, file: Path) -> pandas.DataFrame:
        import pandas

        if not file.is_file():
            raise UsageError(f"{file}: no such file; is the sweep finished?")
        try:
            return pandas.read_parquet(io.BytesIO(read_bytes(file, Format.TABLE)))
        except (OSError, ValueError) as error:
            raise HpcsimkitError(f"{file}: cannot be read: {error}") from None

    def state(self) -> State:
        """Return the state of the sweep, also while it runs."""
        counts: Counter[str] = Counter()
        reasons: Counter[str] = Counter()
        times: list[float] = []
        for name in self._description["cells"]:
            folder = self.place / CELLS / str(name)
            found = next((file for file in (OUTCOME, FAILURE, INPUTS) if (folder / file).is_file()), "")
            counts[found] += 1
            if found == OUTCOME:
                times.append((folder / OUTCOME).stat().st_mtime)
            elif found == FAILURE:
                reasons[str(json_record(folder / FAILURE, Format.TASK).get("reason"))] += 1
        return State(
            counts[OUTCOME], counts[FAILURE], counts[INPUTS], counts[""], reasons, _rate(sorted(times))
        )


def _rate(times: list[float]) -> float:
    """Return the rate of the last events of increasing times [1/s], up to now if none came for long."""
    recent = times[-RECENT:]
    if len(recent) < 2:
        return 0.0
    between = (recent[-1] - recent[0]) / (len(recent) - 1)
    silent = time.time() - recent[-1]
    return 1 / max(between, silent / (len(recent) - 1), 1e-6)


def state_lines(state: State) -> Iterator[str]:
    """Yield lines on the state of a sweep.

    >>> for line in state_lines(State(6, 1, 2, 1, Counter({"no jobs": 1}), 0.5)):
    ...     print(line)
    10 cells: 6 completed, 1 failed, 2 running, 1 pending
    0.5 cells/s, about 6 s left
    1 failed: no jobs
    """
    total = state.completed + state.failed + state.running + state.pending
    numbers = f"{state.completed} completed, {state.failed} failed, {state.running} running"
    yield f"{total} cells: {numbers}, {state.pending} pending"
    if state.rate and state.seconds_left:
        yield f"{state.rate:.3g} cells/s, about {grouped(state.seconds_left)} s left"
    for count, text in of_reasons(state.reasons):
        yield f"{count} failed{text}"
