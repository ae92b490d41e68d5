"""Why does an inspector reject? The features of its decisions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcsimkit.agents.agent import Agent
from hpcsimkit.cluster.opaque import AnyCluster
from hpcsimkit.engine.engines import Engine
from hpcsimkit.engine.store import Store
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.comparison.case import Asked, Case
from hpcsimkit.experiments.console import grouped, plain_table
from hpcsimkit.experiments.evaluation.explanation import HEADINGS, Explanation, explained
from hpcsimkit.experiments.questions.question import Answer, OfCases, ask, read_seen, write_seen
from hpcsimkit.experiments.source import sha256_of
from hpcsimkit.kernel.policy import Policy

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

__all__ = ["Explained", "ExplanationQuestion", "explain"]

MODEL = ".hpcsim"


@dataclass(frozen=True, repr=False)
class Explained(Answer):
    """Distributions of the features of an inspector's decisions."""

    stem = "explanation"
    names = ("explanation",)
    measured = ("decisions", "rejected_share")
    number_format = "%.6g"

    explanation: Explanation
    name: str
    heading: str

    @property
    def tables(self) -> Mapping[str, pandas.DataFrame]:
        """Shares of all and of rejected decisions up to each value of a feature, ``explanation``."""
        return {"explanation": self.explanation.table()}

    @property
    def measures(self) -> Mapping[str, float]:
        """Number of decisions, and the share of rejections among them."""
        found = self.explanation
        return {"decisions": float(len(found.rejected)), "rejected_share": found.ratio}

    def figure(self) -> Figure:
        """Return a figure with the distributions of each feature."""
        from hpcsimkit.reports.answers import draw_explanation

        return draw_explanation(self.explanation, self.heading)

    def lines(self) -> Iterator[str]:
        """Yield a row for each feature, and the share of rejections."""
        found = self.explanation
        yield plain_table(HEADINGS, found.rows())
        yield f"{self.name}: {grouped(len(found.rejected))} decisions, {100 * found.ratio:.1f} % rejected"


@dataclass(frozen=True, kw_only=True)
class ExplanationQuestion(OfCases):
    """Which selections does an inspector reject?

    Parameters
    ----------
    case : Case
        The case, whose policy has an inspector.
    inspector : str
        Name of the inspector in the title of the picture.
    """

    answers = Explained
    has_trace = False

    inspector: str

    @property
    def own(self) -> dict[str, Any]:
        """Settings of the question, in plain values."""
        own: dict[str, Any] = {"policies": [self.case.name]}
        if self.inspector.endswith(MODEL):
            own["inspector"] = f"{Path(self.inspector).name} ({sha256_of(self.inspector)[:8]})"
        return own

    def look(self, case: Case, folder: Path) -> None:
        """Simulate, and write the decisions."""
        scenario = Scenario(case.jobs, case.setup)
        found = explained(case.policy, scenario, case.name, observers=case.observers, begin=case.begin)
        write_seen(folder, names=np.array(found.names), seen=found.seen, rejected=found.rejected)

    def answer(self, store: Store) -> Explained:
        """Return the distributions."""
        seen = read_seen(store.folder(self.tasks[0]))
        found = Explanation(seen["names"].tolist(), seen["seen"], seen["rejected"])
        return Explained(found, self.case.name, f"{self.inspector} on {self.case.jobs.name}")


def explain(
    workload: Asked | Case,
    inspector: str | Policy,
    cluster: AnyCluster | int | None = None,
    *,
    within: str | None = None,
    engine: Engine | None = None,
    **options: Any,
) -> Explained:
    """Show which selections an inspector rejects.

    Parameters
    ----------
    workload, cluster, **options
        As in :meth:`~hpcsimkit.experiments.comparison.case.Case.of`, or a case.
    inspector : str or Policy
        Path of a trained agent (.hpcsim), name of a policy with an inspector, or the policy.
    within : str, optional
        Policy whose selections the agent inspects; by default that of its training.
    engine : Engine, optional
        Engine that executes the simulation; by default this process.

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
    shown = inspector if isinstance(inspector, str) else case.name
    found: Explained = ask(ExplanationQuestion(case=case, inspector=shown), engine)
    return found


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
