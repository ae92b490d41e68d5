"""The learning curve of a training run: one report per round, written as CSV and for TensorBoard."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hpcsimkit.agents.training.old_names import MEASURES
from hpcsimkit.errors import UsageError
from hpcsimkit.io.units import is_whole_number

__all__ = ["Report", "TensorBoard", "curve_table"]


KEPT = ["steps", "of", "episodes", "reward", "validation"]
"""Columns of a learning curve, before those of the measures."""


class Report(NamedTuple):
    """Report of a training round, one row of the learning curve.

    Parameters
    ----------
    steps, of : int
        Number of decisions so far, and in the whole run.
    episodes : int
        Number of episodes that have ended so far.
    reward : float
        Mean return of the episodes that ended in the round; NaN if none did.
    steps_per_second : float
        Speed since the run began or was resumed [decisions/s]; not written to files, which are thus
        reproducible.
    validation : float
        Validation score, larger is better; NaN without a validation in this round.
    measures : mapping of str to float
        Measures of the algorithm in the round: losses, entropy, exploration ...
    """

    steps: int
    of: int
    episodes: int
    reward: float
    steps_per_second: float
    validation: float
    measures: Mapping[str, float]

    def row(self) -> dict[str, float]:
        """Return all values by name, the measures last."""
        plain = self._asdict()
        del plain["measures"]
        return {**plain, **self.measures}

    def kept(self) -> dict[str, float]:
        """Return the row without the speed, hence the same values in every repetition of the run."""
        return {**{name: getattr(self, name) for name in KEPT}, **self.measures}

    def words(self) -> dict[str, str]:
        """Return the kept values as strings, which JSON can represent for any number."""
        return {name: str(value) for name, value in self.kept().items()}

    @classmethod
    def of_words(cls, words: Mapping[str, str]) -> Report:
        """Return the report from the strings of :meth:`words`; its speed is unknown.

        >>> report = Report(32, 64, 1, -2.5, 1000.0, float("nan"), {"loss": 0.1})
        >>> Report.of_words(report.words()).kept().keys() == report.kept().keys()
        True
        """
        known = {MEASURES.get(name, name): word for name, word in words.items()}
        values = {name: _number(word) for name, word in {"steps_per_second": "nan", **known}.items()}
        plain = {name: values.pop(name) for name in cls._fields if name != "measures"}
        return cls(**plain, measures=values)


def _number(word: str) -> Any:
    return int(word) if is_whole_number(word.removeprefix("-")) else float(word)


def curve_table(reports: Sequence[Report]) -> bytes:
    """Return the learning curve as CSV, one row per report.

    >>> curve_table([Report(32, 64, 1, -2.5, 1000.0, 0.5, {"loss": 0.1})]).decode().splitlines()
    ['steps,of,episodes,reward,validation,loss', '32,64,1,-2.5,0.5,0.1']
    """
    rows = [report.kept() for report in reports]
    names = list(dict.fromkeys(name for row in rows for name in row)) or KEPT
    table = io.StringIO()
    writer = csv.DictWriter(table, names)
    writer.writeheader()
    writer.writerows(rows)
    return table.getvalue().encode()


class TensorBoard:
    """Writer of reports as event files for TensorBoard.

    Parameters
    ----------
    folder : Path
        Folder of the event files; pass it, or a parent folder, to ``tensorboard --logdir``.
    after : int
        Step from which the run resumes; events of later steps, from before the interruption, are hidden.

    Raises
    ------
    UsageError
        The package is not installed.
    """

    def __init__(self, folder: Path, after: int = 0) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise UsageError("TensorBoard needs its package: pip install 'hpcsimkit[rl]'") from None
        self._writer: Any = SummaryWriter(str(folder), purge_step=after + 1 if after else None)

    def add(self, report: Report) -> None:
        """Write a report, one curve per number over the steps; non-finite values are left out."""
        for name, value in report.row().items():
            if name not in ("steps", "of") and math.isfinite(value):
                self._writer.add_scalar(name, value, report.steps)
        self._writer.flush()

    def close(self) -> None:
        """Write pending events, and close the file."""
        self._writer.close()
