"""Statistics of runs for a paper: means, paired tests and ranks of policies, over repetitions."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from hpcsimkit.reports.sweep.summaries import differences, mean_ratios, means, ranks
from hpcsimkit.reports.sweep.texts import headline_table

if TYPE_CHECKING:
    import pandas

    from hpcsimkit.reports.sweep.table import SweepTable
    from hpcsimkit.results.statistics import Ranking

__all__ = ["Statistics"]

WAIT = "mean_wait_time"


class Statistics:
    """Statistics of an object that has the table of its runs as :attr:`cells`."""

    @property
    @abstractmethod
    def cells(self) -> SweepTable:
        """The runs, with what differs between them, and what repeats them."""

    def summary(self) -> pandas.DataFrame:
        """Return a row for each policy: means with confidence intervals, or ratios under several conditions.

        Values are texts, as in reports; :meth:`means` has the numbers.
        """
        return headline_table(self.cells).shown

    def means(self, metric: str = WAIT) -> pandas.DataFrame:
        """Return the mean of a metric by policy, with its confidence interval.

        The table is that of :func:`~hpcsimkit.reports.sweep.summaries.means`.
        """
        return means(self.cells, metric)

    def tests(self, metric: str = WAIT) -> pandas.DataFrame:
        """Return the paired difference of each policy to the first one, with intervals and tests.

        Parameters
        ----------
        metric : str
            Name of the metric. Default: ``"mean_wait_time"``.

        Returns
        -------
        DataFrame
            Table of :func:`~hpcsimkit.reports.sweep.summaries.differences`. With a single repetition,
            intervals and tests are undefined.
        """
        return differences(self.cells, metric)

    def ratios(self, metric: str = WAIT) -> pandas.DataFrame:
        """Return the geometric mean of the ratios to the first policy over all conditions.

        The table is that of :func:`~hpcsimkit.reports.sweep.summaries.mean_ratios`.
        """
        return mean_ratios(self.cells, metric)

    def ranks(self, metric: str = WAIT) -> Ranking | None:
        """Return the average ranks of three or more policies, with Friedman's test; otherwise None."""
        return ranks(self.cells, metric)
