"""From the rows of a table to jobs: which become some, and why the others do not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcsimkit.columns import AMOUNT_LIMIT, TIME_LIMIT, Column
from hpcsimkit.errors import WorkloadError
from hpcsimkit.job import UNKNOWN
from hpcsimkit.workload import Workload
from hpcsimkit.workloads.cells import has_fraction
from hpcsimkit.workloads.swf import NO_ESTIMATE
from hpcsimkit.workloads.tables import Cells, Parser, Table, labelled, numbered, parse, shown

__all__ = ["Mask", "Sieve", "per_node"]

Mask = NDArray[np.bool_]

LINES_SHOWN = 3


class Sieve:
    """Which rows of a table become jobs: what is left out is counted with its reason, or refused if strict.

    Parameters
    ----------
    table : Table
        The rows; malformed ones are counted at once.
    strict : bool
        Let :meth:`workload` refuse what is otherwise left out, by the first line of the file concerned.
    """

    def __init__(self, table: Table, strict: bool) -> None:
        if not table.malformed:
            table.check_well_formed()
        self.table = table
        self.strict = strict
        self.kept = np.ones(len(table), dtype=bool)
        self.skipped: dict[str, int] = {}
        self._notes: list[tuple[str, Mask]] = []
        self._problems: list[tuple[int, str]] = []
        if table.malformed:
            line, found = table.malformed[0]
            self.skipped[f"malformed line (first: line {line}: {found})"] = len(table.malformed)
            self._problems.append((line, f"{table.width} cells needed, found {found}"))
        if not len(table):
            self._check()

    def parse(self, name: str, parser: Parser, cells: Cells | None = None) -> Column:
        """Return what a column's cells stand for; rows with one that cannot be read are left out.

        Parameters
        ----------
        name : str
            Of the column.
        parser : callable
            Takes the text of a cell.
        cells : sequence of str, optional
            Take these, one a row, for the column's.

        Returns
        -------
        array of int64, shape (rows,)
            -1 for rows that are left out.
        """
        cells = self.table.columns[name] if cells is None else cells
        left = np.flatnonzero(self.kept)
        here = cells if len(left) == len(cells) else [cells[row] for row in left.tolist()]
        values = np.full(len(cells), UNKNOWN)
        values[left], wrong = parse(here, parser)
        if wrong:
            broken = left[np.fromiter((cell in wrong for cell in here), dtype=bool, count=len(here))]
            cell, line = cells[broken[0]], int(self.table.line[broken[0]])
            self._problems.append((line, f"{name}: {wrong[cell]}"))
            self.skipped[f"{name} not understood (first: line {line}: {shown(cell)})"] = len(broken)
            self.kept[broken] = False
        return values

    def leave_out(self, broken: Mask, reason: str, needed: str = "", found: Any = None) -> None:
        """Leave rows out. If there is something `needed`, strict readers refuse the first of them.

        Parameters
        ----------
        broken : array of bool, shape (rows,)
            Which rows; those left out before are not counted again.
        reason : str
            What :attr:`Workload.skipped` says.
        needed : str
            What strict readers miss; if empty, the rows are none of a job and never refused.
        found : sequence
            What stands there, one a row.
        """
        broken = broken & self.kept
        if not broken.any():
            return
        lines = self.table.line[broken]
        if needed:
            value = found[int(np.argmax(broken))]
            text = shown(value) if isinstance(value, str) else str(value)
            self._problems.append((int(lines[0]), f"{needed} needed, found {text}"))
            where = ", ".join(map(str, lines[:LINES_SHOWN]))
            reason = f"{reason} (first: line{'s' * (len(lines) > 1)} {where})"
        self.skipped[reason] = len(lines)
        self.kept &= ~broken

    def note(self, text: str, rows: Mask) -> None:
        """Count rows in :attr:`Workload.notes`, those of jobs only."""
        self._notes.append((text, rows))

    def ids(self, name: str) -> tuple[Column, str, tuple[str, ...]]:
        """Return what :func:`numbered` makes of a column's cells, of the rows that are left only."""
        cells = self.table.columns[name]
        ids = np.full(len(cells), UNKNOWN)
        ids[self.kept], word, names = numbered([cells[row] for row in np.flatnonzero(self.kept).tolist()])
        return ids, word, names

    def note_rounding(self, names: Iterable[str]) -> None:
        """Count rows where a fraction of a second is rounded away."""
        parts = [parse(self.table.columns[name], has_fraction)[0] > 0 for name in names]
        if parts:
            self.note("times rounded to whole seconds", np.logical_or.reduce(parts))

    def times(self, submit: Column, run: Column, limit: Column) -> dict[str, ArrayLike]:
        """Return the three columns of times [s]; -1 or 0 for a limit that is not known.

        Left out are rows without a submit time, without a run time, and with a time above `TIME_LIMIT`. Where
        no limit is known, the run time is taken.
        """
        self.leave_out(submit < 0, "submit time unknown or negative", "a submit time of 0 s or more", submit)
        self.leave_out(run < 0, "run time unknown", "a run time of 0 s or more", run)
        longest = np.maximum.reduce([submit, run, limit])
        self.leave_out(longest > TIME_LIMIT, "time beyond 10^11 s", "times up to 10^11 s", longest)
        known = limit > 0
        requested = np.maximum(np.where(known, limit, run), 1)
        self.note(NO_ESTIMATE, ~known)
        self.note("run time 0", run == 0)
        self.note("run time longer than requested", known & (run > limit))
        return {"submit_time": submit, "run_time": run, "requested_time": requested}

    def amounts(self, columns: Mapping[str, Column]) -> None:
        """Leave out rows that ask for negative or unbelievable amounts, or for nothing at all."""
        values = np.array(list(columns.values()))
        least, most = values.min(axis=0), values.max(axis=0)
        self.leave_out(least < 0, "negative amount", "amounts of 0 or more", least)
        self.leave_out(most > AMOUNT_LIMIT, "amount beyond 10^16", "amounts up to 10^16", most)
        asked = " or ".join(columns)
        self.leave_out(most == 0, "asks for nothing", f"an amount above 0 of {asked}", most)

    def labelled(self, cells: Cells, *, numbers: bool = True) -> tuple[Column, tuple[str, ...]]:
        """Return numbers for the names in a column, and the names, of the rows that are left only."""
        here = [cell if kept else "" for cell, kept in zip(cells, self.kept.tolist(), strict=True)]
        return labelled(here, numbers=numbers)

    def used_before(self, names: Cells, what: str = "job name") -> None:
        """Note jobs whose name stood in an earlier row; strict readers refuse them."""
        if len(set(names)) == len(names):
            return
        numbers = labelled(names, numbers=False)[0]
        jobs = np.flatnonzero(self.kept)
        again = self.kept.copy()
        again[jobs[np.unique(numbers[jobs], return_index=True)[1]]] = False
        self.note(f"{what} used before", again)
        if again.any():
            row = int(np.argmax(again))
            text = f"a {what} of its own needed, found {shown(names[row])} again"
            self._problems.append((int(self.table.line[row]), text))

    def workload(self, columns: Mapping[str, ArrayLike], **rest: Any) -> Workload:
        """Return the workload of the rows that are left.

        Parameters
        ----------
        columns : mapping of str to array, shape (rows,)
            Of all rows of the table; such as are -1 throughout are left out.
        **rest
            ``resources, labels, header`` of the :class:`Workload`.

        Raises
        ------
        WorkloadError
            There is no row left; or, if strict, rows were left out.
        """
        self._check()
        chosen = {name: np.asarray(values)[self.kept] for name, values in columns.items()}
        used = {name: values for name, values in chosen.items() if (values != UNKNOWN).any()}
        submit = used["submit_time"]
        notes = {text: int(np.count_nonzero(rows[self.kept])) for text, rows in self._notes}
        notes["out of order of submission"] = int(np.count_nonzero(np.diff(submit) < 0))
        labels = {name: names for name, names in rest.pop("labels", {}).items() if names and name in used}
        step = f"read {self.table.file_name}: {len(submit)} jobs, {sum(self.skipped.values())} skipped"
        return Workload(
            used,
            name=self.table.log_name,
            skipped=self.skipped,
            notes={text: count for text, count in notes.items() if count},
            provenance=(step,),
            labels=labels,
            **rest,
        )

    def _check(self) -> None:
        if self.strict and self._problems:
            line, text = min(self._problems, key=lambda problem: problem[0])
            raise WorkloadError(f"{self.table.path}:{line}: {text}")
        if not self.kept.any():
            counts = ", ".join(f"{count} {reason}" for reason, count in self.skipped.items())
            raise WorkloadError(f"{self.table.path}: no usable job; skipped: {counts}")


def per_node(total: Column, nodes: Column) -> Column:
    """Return what each node must give so that all of a job's nodes together give at least its total.

    >>> per_node(np.array([10, 12]), np.array([4, 4])).tolist()
    [3, 3]
    """
    return -(-total // nodes)
