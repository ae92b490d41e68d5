"""Runs of sweeps: cells on the store, and one table of all cells."""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcsimkit.engine.engines import Engine
from hpcsimkit.engine.identity import digest
from hpcsimkit.engine.provenance import Provenance
from hpcsimkit.engine.results_folder import PROVENANCE, WHOLE, ResultsFolder, head_of_toml
from hpcsimkit.engine.runner import perform
from hpcsimkit.engine.store import Store
from hpcsimkit.engine.task import Task
from hpcsimkit.errors import PartlyFailedError, StorageError, UsageError
from hpcsimkit.experiments.comparison.policy_run import arrow_table, load_writers, write_tables
from hpcsimkit.experiments.console import grouped
from hpcsimkit.experiments.source import UNDECISIVE
from hpcsimkit.experiments.sweep.axes import PERIOD
from hpcsimkit.experiments.sweep.cell import Cell, Cells
from hpcsimkit.experiments.sweep.results import CELLS, DESCRIPTION, SweepResults, state_lines
from hpcsimkit.io.documents import json_record, write_record
from hpcsimkit.io.files import make_folder, sha256_of_content, write_bytes
from hpcsimkit.io.formats import Format
from hpcsimkit.io.own_code import hash_of_kit

if TYPE_CHECKING:
    import pandas

__all__ = ["WHOLE", "SweepRun", "shard_of"]

SETTINGS = "sweep.toml"
"""File that repeats the sweep."""

PACKAGES = ("simpy", "numpy", "pandas", "pyarrow", "scipy", "pydantic", "matplotlib")
"""Packages with recorded versions."""

REPORT = "report.html"

FINGERPRINT = "fingerprint"
"""Key of the provenance with the identity of everything that the table and the report depend on."""

AT_ONCE = 1000
"""Number of rows that are read before they become a part of the table, which takes far less memory."""

MANY = 20_000
"""Number of cells from which on a sweep needs confirmation."""


def shard_of(text: str | None) -> tuple[int, int]:
    """Return the number of a shard and the number of shards.

    Raises
    ------
    UsageError
        The text is no shard.

    Examples
    --------
    >>> shard_of("3/8"), shard_of(None)
    ((3, 8), (1, 1))
    """
    if text is None:
        return WHOLE
    match = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise UsageError(f"--shard: I/N with I from 1 to N is needed, found {text!r}")
    return int(match[1]), int(match[2])


class SweepRun:
    """Run of a sweep, and its results folder.

    The folder keeps the outcome of every cell under its fingerprint: the same command resumes an interrupted
    sweep, and a changed sweep performs only its new cells.

    Parameters
    ----------
    sweep : Sweep or TrainingSweep
        Sweep to run.
    place : path
        Path of the results folder: new, empty, or one of a sweep.
    command : sequence of str
        Command line, for the records.
    engine : Engine, optional
        Engine that executes the cells; by default that of the sweep.
    shard : tuple of int
        Number of the part of the cells to perform, from 1, and number of parts. Default: (1, 1).
    confirmed : bool
        Whether more than 20 000 cells are accepted. Default: False.

    Attributes
    ----------
    unchanged : bool
        Whether the last run found the table and the report as they would be written.

    Raises
    ------
    UsageError
        There are too many cells, the folder is unsuitable, or the shard does not exist.

    Examples
    --------
    >>> import tempfile
    >>> from hpcsimkit import Sweep
    >>> sweep = Sweep(jobs=50, policies=["fcfs", "fcfs+easy"], sweep={"seed": [0, 1]}, report=False)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     frame = SweepRun(sweep, folder).run()
    >>> frame[["policy", "seed", "status"]].values.tolist()[:2]
    [['fcfs', 0, 'done'], ['fcfs+easy', 0, 'done']]
    """

    def __init__(
        self,
        sweep: Cells,
        place: str | os.PathLike[str],
        command: Sequence[str] = (),
        engine: Engine | None = None,
        *,
        shard: tuple[int, int] = WHOLE,
        confirmed: bool = False,
    ) -> None:
        if not 1 <= shard[0] <= shard[1]:
            raise UsageError(f"a shard i of n needs i from 1 to n, found {shard[0]} of {shard[1]}")
        if len(sweep) > MANY and not confirmed:
            raise UsageError(f"the sweep has {grouped(len(sweep))} cells; with --yes they run")
        self.sweep = sweep
        self.place = Path(place)
        self.command = tuple(command)
        self.engine = engine
        self.shard = shard
        self.confirmed = confirmed
        drawn = (f"{folder}{files}" for folder in ("pictures", "tables") for files in ("", "/*"))
        files = [CELLS, f"{CELLS}.csv", f"{CELLS}.parquet", DESCRIPTION, SETTINGS, REPORT, *drawn]
        self.folder = ResultsFolder(place, files)
        self.store = Store(self.place / CELLS)
        self.unchanged = False
        self._performed = 0

    def run(
        self,
        *,
        retry: bool = False,
        tell: Callable[[int, int, int], None] = lambda done, failed, of: None,
    ) -> pandas.DataFrame:
        """Perform the cells without an outcome, write the table, and return it.

        A failed cell does not stop the others; it is a row with the reason. A shard writes no table.

        Parameters
        ----------
        retry : bool
            Whether cells that failed before are performed again. Default: False.
        tell : callable
            Callback ``tell(done, failed, of)`` with numbers of cells.

        Raises
        ------
        UsageError
            Another process is working on the folder.
        StorageError
            A file cannot be written; finished cells are kept.
        Stopped
            Ctrl-C or SIGTERM was received; finished cells are kept.
        """
        provenance = Provenance(self.command, PACKAGES)
        cells = self._plan()
        own = cells[self.shard[0] - 1 :: self.shard[1]]
        with self._open(own):
            self._describe(cells)
            frame = self._perform(own, retry, tell)
            if self.shard == WHOLE:
                self._conclude(cells, frame, provenance)
        return frame

    def lines(self, frame: pandas.DataFrame, *, collected: bool = False) -> Iterator[str]:
        """Yield what the cells show if the report is new, remarks on them, and where the results are.

        Parameters
        ----------
        frame : pandas.DataFrame
            Table of the cells, as returned by :meth:`run` or :meth:`collect`.
        collected : bool
            Whether it has the cells of all shards. Default: False.
        """
        results, report = SweepResults(self.place), self.sweep.report
        if self.shard != WHOLE and not collected:
            if len(frame):
                yield from state_lines(results.state())
            else:
                yield f"shard {self.shard[0]}/{self.shard[1]} has no cells: the sweep has {len(self.sweep)}"
            return
        if self.unchanged:
            yield f"all {grouped(len(frame))} cells were finished, and nothing has changed"
        elif report:
            from hpcsimkit.reports.sweep.table import SweepTable
            from hpcsimkit.reports.sweep.texts import headline

            if text := headline(SweepTable.read(self.place)):
                yield text
        yield from results.remarks()
        yield f"results: {os.path.relpath(self.place)}/{REPORT if report else f'{CELLS}.csv'}"

    def refuse_failed(self, frame: pandas.DataFrame) -> None:
        """Raise an error if cells of a table failed.

        Raises
        ------
        PartlyFailedError
            Some cells or all of them failed.
        """
        if failed := int((frame["status"] == "failed").sum()):
            count = f"all {failed}" if failed == len(frame) else f"{failed} of {len(frame)}"
            raise PartlyFailedError(f"{count} cells failed; reasons are in {os.path.relpath(self.place)}")

    def _plan(self) -> list[Cell]:
        """Return all cells.

        Raises
        ------
        UsageError
            There are too many cells: how many windows a log has is known only now.
        """
        cells: list[Cell] = list(islice(self.sweep.cells(), None if self.confirmed else MANY + 1))
        if len(cells) > MANY and not self.confirmed:
            windows = " (windows of a log count one by one)" * (PERIOD in cells[0].values)
            raise UsageError(f"the sweep has more than {grouped(MANY)} cells{windows}; with --yes they run")
        return cells

    def collect(self) -> pandas.DataFrame:
        """Write the table of all cells with an outcome, after shards, and return it.

        Raises
        ------
        UsageError
            Some cell has neither an outcome nor failed, or the folder is not that of a sweep.
        """
        provenance = Provenance(self.command, PACKAGES)
        SweepResults(self.place)  # an error if there is none
        cells = self._plan()
        with self._open(cells):
            frame = self._table(cells)
            missing = int((frame["status"] == "missing").sum())
            if missing:
                found = f"{missing} of {len(cells)} cells are missing"
                raise UsageError(f"{self.place}: {found}; run their shards")
            self._describe(cells)
            self._conclude(cells, frame, provenance)
        return frame

    @contextmanager
    def _open(self, cells: Sequence[Cell]) -> Iterator[None]:
        """Hold the folder; only shards of the same number may run at the same time."""

        def kept() -> str:
            return f"{sum(map(self.store.has, cells))} of {len(cells)} cells are finished"

        with self.folder.in_place(of=("a sweep", (CELLS, DESCRIPTION)), shard=self.shard, kept=kept):
            make_folder(self.store.place)
            yield

    def _perform(
        self, cells: Sequence[Cell], retry: bool, tell: Callable[[int, int, int], None]
    ) -> pandas.DataFrame:
        """Perform the cells whose outcome does not count, and return the table of all cells."""
        table = self._table(cells)
        kept = table["status"].isin(["done"] if retry else ["done", "failed"])
        missing = [cell for cell, keep in zip(cells, kept, strict=True) if not keep]
        states = Counter(table.loc[kept, "status"])
        over: set[str] = set()
        tell(states["done"], states["failed"], len(cells))
        self._performed = len(missing)
        if not missing:
            return table

        def count(name: str, state: str) -> None:
            if name in over:  # its worker died after its end
                return
            over.add(name)
            states[state] += 1
            tell(states["done"], states["failed"], len(cells))

        def fail(task: Task, error: Exception) -> None:
            if isinstance(error, StorageError):  # other cells cannot be written either
                raise error
            count(task.name, "failed")

        def told(name: str, done: int) -> None:
            if done:
                count(name, "done")

        load_writers()
        engine = self.engine or self.sweep.engine_for(len(missing))
        perform(missing, self.store, engine, tell=told, failed=fail)
        return self._table(cells)

    # --- records ---------------------------------------------------------------------------------------

    def _describe(self, cells: Sequence[Cell]) -> None:
        """Write the axes and the settings of the sweep."""
        sweep = self.sweep
        description = {**sweep.described(cells), "cells": [cell.name for cell in cells]}
        write_record(self.place / DESCRIPTION, description)
        head = head_of_toml("python -m hpcsimkit.run sweep sweep.toml --out FOLDER", sweep.code)
        write_bytes(self.place / SETTINGS, (head + sweep.saved()).encode())

    def _conclude(self, cells: Sequence[Cell], frame: pandas.DataFrame, provenance: Provenance) -> None:
        """Write the table, the provenance and the report, unless they are there."""
        mark = self._fingerprint(frame, provenance)
        self.unchanged = not self._performed and self._is_written(mark)
        if self.unchanged:
            return
        self.folder.begin({})  # else a killed run leaves the fingerprint of other tables
        write_tables(arrow_table(frame), self.place, CELLS)
        facts = {
            "code": self.sweep.code,
            "cells": frame["status"].value_counts().to_dict(),
            "remarks": list(SweepResults(self.place).remarks()),
            "options": self.sweep.model_dump(exclude_unset=True, exclude={*UNDECISIVE}),
        }
        if self.sweep.report:
            from hpcsimkit.reports.sweep.report import write_sweep_report

            write_sweep_report(self.place)
        spent = {cell.name: self.store.spent(cell) for cell in cells}
        self.folder.conclude(provenance, {**facts, FINGERPRINT: mark}, {"cells": spent})

    def _fingerprint(self, frame: pandas.DataFrame, provenance: Provenance) -> str:
        """Return the identity of everything that the table and the report depend on."""
        columns = frame.reindex(columns=["cell", "status", "reason"]).astype(str)
        files = [sha256_of_content(self.place / file) for file in (DESCRIPTION, SETTINGS)]
        versions = provenance.record()["packages"]
        return digest([self.sweep.report, files, columns.to_csv(), versions, hash_of_kit()])

    def _is_written(self, mark: str) -> bool:
        """Return whether a former run wrote the table and the report with a fingerprint."""
        names = [PROVENANCE, f"{CELLS}.csv", f"{CELLS}.parquet", *[REPORT] * self.sweep.report]
        if not all((self.place / name).is_file() for name in names):
            return False
        return json_record(self.place / PROVENANCE, Format.PROVENANCE).get(FINGERPRINT) == mark

    def _table(self, cells: Sequence[Cell]) -> pandas.DataFrame:
        """Return a row for each cell; an axis hides the metric of its name (the number of jobs)."""
        import pandas

        columns = ["cell", "status", "reason", *self.sweep.columns]
        begins = range(0, len(cells), AT_ONCE) or [0]  # a shard may have no cells
        parts = (cells[first : first + AT_ONCE] for first in begins)
        frames = [pandas.DataFrame(map(self._row, part), columns=columns) for part in parts]
        return pandas.concat(frames, ignore_index=True).infer_objects()

    def _row(self, cell: Cell) -> dict[str, Any]:
        """Return the columns of a cell that have a value, and others of its outcome."""
        outcome = self.store.found(cell)
        if outcome is not None:
            metrics = {
                name: math.nan if value is None else value for name, value in outcome["metrics"].items()
            }
            return {**outcome, **metrics, "cell": cell.name, "status": "done", "reason": "", **cell.values}
        reason = self.store.failure(cell)
        status = "missing" if reason is None else "failed"
        return {"cell": cell.name, "status": status, "reason": reason or "", **cell.values}
