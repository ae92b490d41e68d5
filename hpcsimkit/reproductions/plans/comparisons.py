"""Agents and policies under test of a plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.parts.learner_parts import algorithm_named
from hpcsimkit.reproductions.learners import Learner
from hpcsimkit.reproductions.plans.parts import KIT, Code, Parts, attribute_of, changed
from hpcsimkit.reproductions.plans.plan import ComparisonPlan, HeuristicsPlan, Plan, RowPlan
from hpcsimkit.reproductions.sequences import Contestant, Meeting, SequenceSet


class Comparison(NamedTuple):
    """Policies under test on the same sequences of a log."""

    plan: ComparisonPlan
    protocol: str
    trace: Any
    parts: Parts
    sequences: SequenceSet
    contestants: Sequence[Contestant]
    rows: Mapping[str, RowPlan]
    apart: Mapping[str, SequenceSet] = {}

    @property
    def variables(self) -> Mapping[str, Any]:
        """Values of the variables of the plan."""
        return self.parts.variables

    @property
    def base(self) -> str:
        """Name of the base scheduler, if the plan has one."""
        return f"{self.parts.made(self.plan.base)}"

    @property
    def about(self) -> str:
        """Log and base scheduler."""
        return ", ".join(filter(None, [self.trace.name, self.base]))

    @property
    def parts_of_values(self) -> list[int]:
        """Numbers of sequences whose mean is a value of a row."""
        values, many = self.parts.made(self.plan.values), len(self.sequences.scenarios)
        return [many // values] * values if isinstance(values, int) else list(values or [1] * many)

    @property
    def label(self) -> str:
        """Name of a file on the comparison, without suffix."""
        return f"{self.parts.made(self.plan.label)}"

    @property
    def meetings(self) -> dict[str, Meeting]:
        """Runs of all policies, by row."""
        return {each.name: self._meeting(each) for each in self.contestants}

    def joined(self, others: Sequence[Comparison]) -> Comparison:
        """Return a comparison on the sequences of several ones, with the policies of all."""
        scenarios = tuple(each for other in others for each in other.sequences.scenarios)
        contestants = {each.name: each for other in others for each in other.contestants}
        rows = {name: row for other in others for name, row in other.rows.items()}
        sequences = SequenceSet(self.sequences.name, scenarios)
        return self._replace(sequences=sequences, contestants=list(contestants.values()), rows=rows)

    def family_of(self, who: Contestant) -> str:
        """Return the name of the row of tables that a policy belongs to."""
        return self.rows[who.name].family or who.name

    def families(self, group: str | None = None) -> dict[str, list[Contestant]]:
        """Return the policies of each row of tables, of all groups or of one."""
        found: dict[str, list[Contestant]] = {}
        for each in self.contestants:
            if group in (None, self.rows[each.name].group):
                found.setdefault(self.family_of(each), []).append(each)
        return found

    def _meeting(self, who: Contestant) -> Meeting:
        scenarios = self.apart.get(who.name, self.sequences).scenarios
        sequences = SequenceSet(f"{self.sequences.name}{self.parts.made(self.plan.folder)}", scenarios)
        seed, promises = self.trace.seed, self.plan.promises
        by_chance = self.rows[who.name].stochastic or (who.learner is not None and who.sample)
        runs = self.parts.made(self.plan.draws or 1) if by_chance else 1
        if self.plan.meeting is not None:
            variables = {"contestant": who, "sequences": sequences, "runs": runs}
            found: Meeting = self.parts.beside(variables).made(self.plan.meeting)
            return found
        return Meeting(who, sequences, seed, promises, runs)


def runs_by_use(met: Iterable[Comparison], plan: HeuristicsPlan) -> list[dict[str, list[Meeting]]]:
    """Return the runs of a paper's heuristics, of those of the group ``outside``, and of agents, by row."""
    found: list[dict[str, list[Meeting]]] = [{}, {}, {}]
    for each in met:
        meetings = each.meetings
        for who in each.contestants:
            table = each.rows[who.name]
            use = 2 if who.learner is not None else int(table.group == "outside")
            shown = plan.drawn or not who.sample if use == 2 else table.rival and not table.oracle
            if shown:
                row = (plan.families and table.family) or who.name
                found[use].setdefault(row, []).append(meetings[who.name])
    return found


class Workshop:
    """Agents and comparisons of a plan, each made once."""

    def __init__(self, plan: Plan, traces: Any, code: Code = KIT) -> None:
        self.plan = plan
        self.traces = traces
        self.code = code
        self._made: dict[str, Learner] = {}

    def parts(self, trace: Any = None) -> Parts:
        """Return parts with the size preset and a log, by default the first one, as variables."""
        chosen = self.traces.first if trace is None else trace
        sizes = vars(self.traces.scale)
        first = self.traces.first
        variables = {"none": None, **sizes, "seed": self.traces.seed, "first": first, **chosen.variables}
        return Parts(variables, self.agent, self.code)

    def agent(self, name: str, variables: Mapping[str, Any]) -> Learner:
        """Return an agent for values of the variables."""
        table, parts = self.plan.agents[name], Parts(variables, self.agent, self.code)
        for variable, value in table.defaults.items():
            if variable not in parts.variables:
                parts = parts.beside({variable: parts.made(value)})
        label = f"{parts.made(table.name)}"
        if label not in self._made:
            settings, environment = parts.made(table.settings), parts.made(table.environment)
            if table.total_timesteps is not None:
                settings = changed(settings, {"total_timesteps": parts.made(table.total_timesteps)})
            kind = self._learner(table.learner) if table.learner else Learner
            seed = parts.made(table.seed) + parts.variables.get("number", 0)
            trainer = parts.made(table.trainer)
            if ":" in trainer:
                trainer = algorithm_named(trainer, self.code.folder, self.code.trust)
            learner = kind.of(label, environment, trainer, settings, seed)
            changes = parts.beside({"learner": learner}).made(table.changes)
            self._made[label] = changed(learner, changes)
        return self._made[label]

    def _learner(self, name: str) -> Any:
        """Return the class of a learner, which need not be a subclass of that of the kit."""
        kind = self.code.kind(name, object)
        if not hasattr(kind, "of"):
            raise UsageError(f"{name!r} needs a class with the methods of {Learner.__name__}, found {kind!r}")
        return kind

    def comparisons(self) -> Iterator[Comparison]:
        """Yield all comparisons: log by log, or protocol by protocol."""
        names = [name for name, each in self.plan.comparisons.items() if self._has(each.size)]
        numbers = range(len(self.traces.all))
        pairs = [(name, number) for name in names for number in numbers]
        if self.plan.logs_first:
            pairs = [(name, number) for number in numbers for name in names]
        for name, number in pairs:
            plan = self.plan.comparisons[name]
            trace = (self.traces.test_of(plan.paper) if plan.paper else self.traces).all[number]
            if not plan.known_logs or trace.is_known:
                yield from self._comparisons(name, trace)

    def _has(self, size: str) -> bool:
        return not size or bool(vars(self.traces.scale)[size])

    def _comparisons(self, name: str, trace: Any) -> Iterator[Comparison]:
        plan = self.plan.comparisons[name]
        for parts in filter(lambda parts: parts.meet(plan.when), self.parts(trace).each(plan.each)):
            sequences = parts.made(plan.sequences)
            sequences = attribute_of(trace, sequences) if isinstance(sequences, str) else sequences
            found = [
                (each, row.model_copy(update={"family": own.made(row.family)}))
                for rows in plan.rows
                for inner in parts.each(rows.each)
                if inner.meet(rows.when)
                for row in map(self.plan.rows.__getitem__, rows.rows)
                for own in inner.each(row.each)
                if own.meet(row.when)
                for each in self._rows(row, trace, own, known=plan.known_logs)
            ]
            apart = {each.name: parts.made(row.sequences) for each, row in found if row.sequences is not None}
            rows = [each for each, _ in found]
            tables = {each.name: row for each, row in found}
            yield Comparison(plan, name, trace, parts, sequences, rows, tables, apart)

    def _rows(self, row: RowPlan, trace: Any, parts: Parts, *, known: bool) -> Iterator[Contestant]:
        """Yield the policies of a row: one for each log of its agents, and for sampled and best actions."""
        if row.agent is None:
            yield Contestant(f"{parts.made(row.name)}", parts.made(row.policy), row.rules)
            return
        for other in self._logs_of(row, trace, known=known):
            inner = parts.beside({**other.variables, "here": trace})
            learner = inner.made(row.agent)
            policy = inner.beside({"policy": learner.policy}).made(row.policy or "{policy}")
            changes = {key: inner.made(value) for key, value in row.changes.items()} or None
            for sample in row.sample:
                name = f"{inner.beside({'sample': sample}).made(row.name)}{'' if sample else row.suffix}"
                yield Contestant(name, policy, row.rules, learner, sample, changes)

    def _logs_of(self, row: RowPlan, trace: Any, *, known: bool) -> list[Any]:
        if row.logs == "own":
            return [trace]
        others = [self.traces.first] if row.logs == "first" else self.traces.all
        return [each for each in others if each is not trace and (each.is_known or not known)]
