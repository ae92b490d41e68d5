"""A study: learn an order on the past of a log, choose it on later weeks, and test it once on the last."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from hpcsimkit.cluster.partitions import Partitions
from hpcsimkit.engine.provenance import Provenance, write_json
from hpcsimkit.engine.results_folder import PROVENANCE, SETTINGS, ResultsFolder
from hpcsimkit.engine.runner import perform
from hpcsimkit.engine.store import Store
from hpcsimkit.engine.task import Task
from hpcsimkit.errors import UsageError, require_packages
from hpcsimkit.experiments.learn.goal import REFERENCE, Figures, Goal, figures_of
from hpcsimkit.experiments.learn.periods import WEEK, Periods
from hpcsimkit.experiments.learn.recipe import (
    CLAIRVOYANT,
    PERFECT,
    PREDICTOR,
    RIVALS,
    policy_of,
    with_guard,
)
from hpcsimkit.experiments.learn.records import Schedules, write_records
from hpcsimkit.experiments.learn.sensitivity import CONDITIONS
from hpcsimkit.experiments.learn.settings import Learning
from hpcsimkit.experiments.learn.tasks import Search, Simulated
from hpcsimkit.experiments.source import UNDECISIVE
from hpcsimkit.io.documents import write_record
from hpcsimkit.io.files import make_folder
from hpcsimkit.jobs.workload import Workload

TASKS, POLICY, OUTCOME = "tasks", "policy.json", "outcome.json"
"""Folder of the tasks, and files of the results."""

PAST = ("learn", "choose")
"""Parts of the past."""

PACKAGES = ("simpy", "numpy", "scipy", "cma", "numba", "pandas")
"""Packages with recorded versions."""

CHANGED = 4
"""Maximum number of policies that are simulated under changed conditions as well."""


class Study:
    """The whole way from a log to a tested policy.

    The heuristics are simulated on the first two parts, the past; the best one that keeps the limits there is
    the baseline. The parameters of the order are searched on the past, and the result is simulated online,
    predictions included. If the baseline is better, it is chosen instead. A guard, if asked for, is put
    around a learned order. The third part is simulated once, as the end of the whole log, and then under
    changed conditions.

    Raises
    ------
    UsageError
        The log is too short, the parts or the names of policies are invalid, or a guard is asked for on a
        cluster with partitions.
    """

    def __init__(
        self, settings: Learning, workload: Workload, place: Path, command: Sequence[str] = ()
    ) -> None:
        self.settings = settings
        self.workload = workload
        self.place = place
        self.command = tuple(command)
        self.periods = Periods.of(workload, settings.choose_from, settings.test_from)
        self.goal = settings.goal
        for name in settings.beside:
            settings.policy_named(name)  # an invalid name is an error before the search, not after it
        partitions = settings.scheduled
        if settings.guard and isinstance(partitions, Partitions) and not partitions.is_whole:
            raise UsageError("--guard needs a cluster without partitions, since it tries orders on one queue")
        self.folder = ResultsFolder(place, [TASKS, POLICY, OUTCOME, "*.csv", "*.md"])
        self.store = Store(place / TASKS)
        masks = self.periods.masks(workload)
        empty = next((name for name, mask in masks.items() if not mask.any()), None)
        if empty is not None:
            raise UsageError(f"{workload.name}: no job is submitted in the part {empty!r}")
        anonymous = next((name for name, mask in masks.items() if (workload.user[mask] < 0).all()), None)
        if self.goal.fairness is not None and anonymous is not None:
            raise UsageError(f"{workload.name}: fairness needs users in the part {anonymous!r}, found none")
        self._tell: Callable[[int, int, int], None] = lambda done, failed, of: None
        self._done = 0

    @cached_property
    def past(self) -> Workload:
        """The jobs of the first two parts."""
        return self.workload.window(self.periods.learn, self.periods.test)

    @property
    def steps(self) -> int:
        """Number of tasks: recordings, searches, simulations of the past, and of the whole log."""
        past = 3 + len(RIVALS) + 2 * self.settings.perfect
        tests = 1 + self.settings.guard + self.settings.perfect
        tests += len({*RIVALS, *CLAIRVOYANT, *self.settings.beside})
        return past + tests + len(CONDITIONS) * CHANGED

    def run(
        self,
        tell: Callable[[int, int, int], None] = lambda done, failed, of: None,
        *,
        overwrite: bool = False,
    ) -> dict[str, Any]:
        """Perform what is missing, write the results folder, and return the outcome.

        `tell` gets the numbers of steps (done, failed, of). A study with other settings is replaced with
        `overwrite`; otherwise the user is asked, or it is an error.
        """
        require_packages("learn", "learn", "cma")
        provenance = Provenance(self.command, PACKAGES)
        self._tell, self._done = tell, 0
        with self._session(overwrite=overwrite):
            chosen = self._choose()
            outcome = self._test(chosen)
            self._write(outcome, provenance)
        return outcome

    @contextmanager
    def _session(self, *, overwrite: bool) -> Any:
        """Hold the folder; an interruption says how to go on."""
        settings = self.settings.settings()
        with self.folder.in_place(
            settings,
            overwrite=overwrite,
            of=("a study", (TASKS, PROVENANCE)),
            kept=lambda: f"{self._done} of {self.steps} steps are finished",
        ):
            self.folder.begin(settings)
            make_folder(self.store.place)
            yield

    # --- steps -----------------------------------------------------------------------------------------

    def _perform(self, tasks: Sequence[Task]) -> None:
        """Perform tasks that may run in parallel."""
        before, over = self._done, set[str]()

        def told(name: str, done: int) -> None:
            if done >= sizes[name]:
                over.add(name)
                self._tell(before + kept + len(over), 0, self.steps)

        sizes = {task.name: task.size for task in tasks}
        missing = [task for task in tasks if not self.store.has(task)]
        kept = len(tasks) - len(missing)
        self._tell(before + kept, 0, self.steps)
        perform(missing, self.store, self.settings.engine_for(len(missing)), tell=told)
        self._done = before + len(tasks)

    def _simulated(self, policy: str, part: str, *, records: bool = False) -> Simulated:
        """Return the simulation of a policy on the past or the whole log."""
        jobs = {"past": self.past, "whole": self.workload}[part]
        return Simulated(policy, jobs, part, self.settings, records=records)

    def _choose(self) -> dict[str, Any]:
        """Return the policy that is searched and chosen on the past, with what led to it."""
        past = self._on_the_past(RIVALS)
        keeping = [rival for rival in RIVALS if past[rival]["keeps_limit"]]
        fallback = min(keeping, key=lambda rival: past[rival]["loss"])
        recording = self._recording(PREDICTOR)
        refined = self._searched(PREDICTOR, fallback)
        past |= self._on_the_past([refined])
        learned = past[refined]["loss"] < past[fallback]["loss"]
        guards = learned and self.settings.guard
        chosen = with_guard(refined, fallback, self.goal.metrics[0]) if guards else refined
        return {
            "policy": chosen if learned else fallback,
            "learned": learned,
            "guarded": guards,
            "refined": refined,
            "candidates": past,
            "rival": min(RIVALS, key=lambda rival: past[rival]["unlimited"]),
            "limited_rival": fallback,
            "perfect": self._searched(PERFECT, fallback) if self.settings.perfect else None,
            "calibration": recording.calibration(self.store, self.periods.masks(self.past)["choose"]),
        }

    def _recording(self, predictor: str) -> Simulated:
        """Return the simulation that records what a predictor predicts."""
        return self._simulated(f"{REFERENCE}+{predictor}", "past", records=True)

    def _searched(self, predictor: str, rival: str) -> str:
        """Return the policy with the parameters that a search finds for a predictor."""
        recording, masks = self._recording(predictor), self.periods.masks(self.past)
        self._perform([recording])
        search = Search(
            self.past,
            {part: masks[part] for part in PAST},
            recording,
            rival,
            self.store,
            self.goal.stricter(),
            self.settings.evaluations,
            self.settings.seed,
        )
        self._perform([search])
        return policy_of(self.store.outcome(search)["parameters"], predictor)

    def _on_the_past(self, policies: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Return the metrics of policies in the two parts of the past, and what they are worth."""
        tasks = {policy: self._simulated(policy, "past") for policy in dict.fromkeys([REFERENCE, *policies])}
        self._perform([tasks[policy] for policy in policies])
        masks = self.periods.masks(self.past)
        found = {}
        for policy, task in tasks.items():
            result = task.result(self.store)
            found[policy] = {part: figures_of(result, masks[part]) for part in PAST}
        reference = found[REFERENCE]
        return {policy: {**found[policy], **self._worth(found[policy], reference)} for policy in policies}

    def _worth(self, figures: Mapping[str, Figures], reference: Mapping[str, Figures]) -> dict[str, Any]:
        """Return the mean losses on both parts of the past, and whether the limits are kept."""
        free = self.goal._replace(severity=0.0)

        def loss(goal: Goal) -> float:
            return sum(goal.loss(figures[part], reference[part]) for part in figures) / len(figures)

        return {
            "loss": loss(self.goal),
            "unlimited": loss(free),
            "keeps_limit": all(self.goal.keeps_limit(figures[part], reference[part]) for part in figures),
        }

    def _test(self, chosen: Mapping[str, Any]) -> dict[str, Any]:
        """Return the outcome: the metrics of all policies on the third part."""
        others = [chosen["refined"]] if chosen["guarded"] else []
        others += [chosen["perfect"]] if chosen["perfect"] else []
        others += self.settings.beside
        policies = list(dict.fromkeys([chosen["policy"], *others, *RIVALS, *CLAIRVOYANT]))
        tasks = [self._simulated(policy, "whole") for policy in policies]
        self._perform(tasks)
        mask = self.periods.masks(self.workload)["test"]
        figures: dict[str, Figures] = {
            task.policy: figures_of(task.result(self.store), mask) for task in tasks
        }
        free = self.goal._replace(severity=0.0)
        changes = self.store.outcome(tasks[0]).get("followed", [])
        return {
            "log": self.workload.name,
            "seed": self.settings.seed,
            "jobs": {name: int(each.sum()) for name, each in self.periods.masks(self.workload).items()},
            "objective": list(self.goal.metrics),
            "longest_wait": self.goal.longest_wait,
            "fairness": self.goal.fairness,
            **chosen,
            "beside": self.settings.beside,
            "followed": [[(time - self.periods.learn) / WEEK, which] for time, which in changes],
            "test": figures,
            "clairvoyant": min(CLAIRVOYANT, key=lambda name: free.loss(figures[name], figures[REFERENCE])),
            "keeps_limit": self.goal.keeps_limit(figures[chosen["policy"]], figures[REFERENCE]),
            "perfect": self._perfect(chosen["perfect"], figures),
        }

    def _perfect(self, policy: str | None, figures: Mapping[str, Figures]) -> dict[str, Any] | None:
        """Return what differs in the outcome with perfect predictions, if they were asked for."""
        if policy is None:
            return None
        keeps_limit = self.goal.keeps_limit(figures[policy], figures[REFERENCE])
        return {"policy": policy, "learned": True, "keeps_limit": keeps_limit}

    def _changed(self, outcome: Mapping[str, Any]) -> dict[str, Schedules]:
        """Return the schedules of the policies that matter under each changed condition."""
        settings, test = self.settings, self.periods.masks(self.workload)["test"]
        policies = dict.fromkeys(outcome[role] for role in ("policy", "limited_rival", "rival"))
        schedules: dict[str, Schedules] = {}
        for condition, change in CONDITIONS.items():
            jobs = change(self.workload, test)
            tasks = {
                policy: Simulated(policy, jobs, condition, settings)
                for policy in [*policies, *({REFERENCE} - {*policies})]
            }
            self._perform(list(tasks.values()))
            schedules[condition] = {policy: task.result(self.store) for policy, task in tasks.items()}
        return schedules

    def _write(self, outcome: dict[str, Any], provenance: Provenance) -> None:
        """Write the policy, the outcome, the tables, the model card and the report."""
        write_json(self.place / POLICY, {"policy": outcome["policy"], "log": outcome["log"]})
        write_records(
            self.place,
            self.periods,
            lambda policy: self._simulated(policy, "whole").result(self.store),
            self._changed(outcome),
            outcome,
        )
        write_record(self.place / OUTCOME, outcome)
        options = self.settings.model_dump(exclude_unset=True, exclude={*UNDECISIVE})
        facts = {"options": options, "workload": self.workload.hash, "periods": self.periods._asdict()}
        self.folder.conclude(provenance, {**facts, SETTINGS: self.settings.settings()})
