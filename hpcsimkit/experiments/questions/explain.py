"""Why does an inspector reject? The features of its decisions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hpcsimkit.agents.agent import Agent
from hpcsimkit.cluster.opaque import AnyCluster
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.console import grouped, plain_table
from hpcsimkit.experiments.evaluation.explanation import HEADINGS, Explanation, explained
from hpcsimkit.experiments.questions.question import Answer, Asked, Case
from hpcsimkit.kernel.policy import Policy

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

__all__ = ["Explained", "explain"]

MODEL = ".hpcsim"


@dataclass(frozen=True)
class Explained(Answer):
    """Distributions of the features of an inspector's decisions."""

    stem = "explanation"
    names = ("explanation",)
    has_trace = False
    number_format = "%.6g"

    explanation: Explanation
    name: str
    heading: str

    @property
    def tables(self) -> Mapping[str, pandas.DataFrame]:
        """Shares of all and of rejected decisions up to each value of a feature, ``explanation``."""
        return {"explanation": self.explanation.table()}

    def plot(self) -> Figure:
        """Return a figure with the distributions of each feature."""
        from hpcsimkit.reports.answers import draw_explanation

        return draw_explanation(self.explanation, self.heading)

    def lines(self) -> Iterator[str]:
        """Yield a row for each feature, and the share of rejections."""
        found = self.explanation
        yield plain_table(HEADINGS, found.rows())
        yield f"{self.name}: {grouped(len(found.rejected))} decisions, {100 * found.ratio:.1f} % rejected"


def explain(
    workload: Asked | Case,
    inspector: str | Policy,
    cluster: AnyCluster | int | None = None,
    *,
    within: str | None = None,
    **options: Any,
) -> Explained:
    """Show which selections an inspector rejects.

    Parameters
    ----------
    workload, cluster, **options
        As in :meth:`~hpcsimkit.experiments.questions.question.Case.of`, or a case.
    inspector : str or Policy
        Path of a trained agent (.hpcsim), name of a policy with an inspector, or the policy.
    within : str, optional
        Policy whose selections the agent inspects; by default that of its training.

    Raises
    ------
    UsageError
        A name or an option is invalid, or there is no inspector.

    Examples
    --------
    >>> from hpcsimkit import Workload
    >>> columns = {"submit_time": [0, 1], "run_time": [9, 9], "nodes": [3, 2]}
    >>> explain(Workload(columns, machine_size=4), "sjf+hold-unfit").explanation.ratio > 0
    True
    """
    if isinstance(workload, Case):
        case = workload
    else:
        policy = inspecting(inspector, within) if isinstance(inspector, str) else inspector
        case = Case.of(workload, policy, cluster, **options)
    found = explained(case.policy, Scenario(case.jobs, case.setup), case.name)
    shown = inspector if isinstance(inspector, str) else case.name
    return Explained(found, case.name, f"{shown} on {case.jobs.name}")


def inspecting(inspector: str, within: str | None) -> str:
    """Return the name of the policy with an inspector.

    Raises
    ------
    UsageError
        A trained agent has another seat, or a policy is given for another inspector.
    """
    if not inspector.endswith(MODEL):
        if within is not None:
            raise UsageError(f"--within needs a trained agent ({MODEL}), found {inspector!r}")
        return inspector
    agent = Agent.load(inspector)
    if agent.stage != "inspector":
        raise UsageError(f"{inspector}: an inspector is needed, its seat is {agent.stage}")
    return f"{within or agent.trained.get('policy', 'fcfs+easy')}+agent:{inspector}"
