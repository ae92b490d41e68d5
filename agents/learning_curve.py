"""How a training run goes, a report after every round: written as a table, and for TensorBoard."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hpcsimkit.errors import UsageError

__all__ = ["Report", "TensorBoard", "curve_table"]


class Report(NamedTuple):
    """How a training run goes: told after every round, one row of the learning curve.

    Parameters
    ----------
    steps, of : int
        Decisions so far, and in all.
    episodes : int
        That have ended so far.
    reward : float
        Mean sum of rewards of the episodes that ended in the round; not a number if none did.
    steps_per_second : float
        Since the run began, or was taken up again.
    validation : float
        What the validation says, larger is better; not a number where it was not asked.
    measures : mapping of str to float
        What the algorithm has to say of the round: losses, entropy, exploration ...
    """

    steps: int
    of: int
    episodes: int
    reward: float
    steps_per_second: float
    validation: float
    measures: Mapping[str, float]

    def row(self) -> dict[str, float]:
        """Return all of it by name, the measures last."""
        plain = self._asdict()
        del plain["measures"]
        return {**plain, **self.measures}

    def words(self) -> dict[str, str]:
        """Return the row in words, which JSON can say of any number."""
        return {name: str(value) for name, value in self.row().items()}

    @classmethod
    def of_words(cls, words: Mapping[str, str]) -> Report:
        """Return the report that :meth:`words` was said of.

        >>> report = Report(32, 64, 1, -2.5, 1000.0, float("nan"), {"loss": 0.1})
        >>> str(Report.of_words(report.words())) == str(report)
        True
        """
        values = {name: _number(word) for name, word in words.items()}
        plain = {name: values.pop(name) for name in cls._fields if name != "measures"}
        return cls(**plain, measures=values)


def _number(word: str) -> Any:
    return int(word) if word.lstrip("-").isdigit() else float(word)


def curve_table(reports: Sequence[Report]) -> bytes:
    """Return the learning curve as CSV, a row for each report.

    >>> curve_table([Report(32, 64, 1, -2.5, 1000.0, 0.5, {"loss": 0.1})]).decode().splitlines()
    ['steps,of,episodes,reward,steps_per_second,validation,loss', '32,64,1,-2.5,1000.0,0.5,0.1']
    """
    rows = [report.row() for report in reports]
    names = list(dict.fromkeys(name for row in rows for name in row)) or list(Report._fields[:-1])
    table = io.StringIO()
    writer = csv.DictWriter(table, names)
    writer.writeheader()
    writer.writerows(rows)
    return table.getvalue().encode()


class TensorBoard:
    """Writes reports where TensorBoard looks for them.

    Parameters
    ----------
    folder : Path
        Of its event files; ``tensorboard --logdir`` is given it, or one above.
    after : int
        The run goes on from this step: what was written of later ones, before it was stopped, is hidden.

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
        """Write a report: a curve for each number over the steps; what is not a number is left out."""
        for name, value in report.row().items():
            if name not in ("steps", "of") and math.isfinite(value):
                self._writer.add_scalar(name, value, report.steps)
        self._writer.flush()

    def close(self) -> None:
        """Write what is left."""
        self._writer.close()
