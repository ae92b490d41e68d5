"""A study: choose a policy on the past of a log, and test it once on the later weeks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from hpcsimkit.engine.provenance import Provenance, write_json
from hpcsimkit.engine.results_folder import PROVENANCE, SETTINGS, ResultsFolder
from hpcsimkit.engine.runner import perform
from hpcsimkit.engine.store import Store
from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.learn.candidates import candidates, front, plain
from hpcsimkit.experiments.learn.goal import COMPARED, LONGEST, REFERENCE, Figures
from hpcsimkit.experiments.learn.periods import Periods
from hpcsimkit.experiments.learn.records import write_records
from hpcsimkit.experiments.learn.settings import Learning
from hpcsimkit.experiments.learn.tasks import Simulated
from hpcsimkit.experiments.source import UNDECISIVE
from hpcsimkit.io.documents import write_record
from hpcsimkit.io.files import make_folder
from hpcsimkit.jobs.workload import Workload

TASKS, OUTCOME = "tasks", "outcome.json"
"""Folder of the tasks, and file of the numbers."""

CHOSEN = {"policy": "policy.json", "with_tests": "policy_with_tests.json"}
"""Files of the chosen policies: the best one without tests, and the best one with tests."""

LOADS = (0.9, 1.1, 1.2)
"""Factors of the offered load at which the last part is simulated as well."""

SHARES = (0.6, 0.3)
"""Shares of the users who allow tests, for which the policy with tests is simulated as well."""

PACKAGES = ("simpy", "numpy", "scipy", "numba", "pandas")
"""Packages with recorded versions."""


class Study:
    """The whole way from a log to a tested policy.

    All candidates are simulated on the past: each rule with and without a guard and tests. Of those whose
    longest wait and fairness keep the limits, the best ones without and with tests are chosen. They, the
    plain rules and the front of the past are simulated once on the whole log, of which the last part counts;
    the chosen ones at other loads, and with tests of fewer users, too.

    Raises
    ------
    UsageError
        The log is too short, or the parts or the names of policies are invalid.
    """

    def __init__(
        self, settings: Learning, workload: Workload, place: Path, command: Sequence[str] = ()
    ) -> None:
        self.settings = settings
        self.workload = workload
        self.place = place
        self.command = tuple(command)
        self.periods = Periods.of(workload, settings.test_from)
        self.goal = settings.goal
        self.candidates = candidates(settings.times, settings.seconds)
        for name in settings.beside:
            settings.policy_named(name)  # an invalid name is an error before all simulations
        self.folder = ResultsFolder(place, [TASKS, *CHOSEN.values(), OUTCOME, "*.csv", "*.md", "*.png"])
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
        self._steps = len(self.candidates)

    @cached_property
    def past(self) -> Workload:
        """The jobs of the first part."""
        return self.workload.window(self.periods.past, self.periods.test)

    def run(
        self,
        tell: Callable[[int, int, int], None] = lambda done, failed, of: None,
        *,
        overwrite: bool = False,
    ) -> dict[str, Any]:
        """Perform what is missing, write the results folder, and return the outcome.

        `tell` gets the numbers of simulations (done, failed, of); the last one grows once the past is known.
        A study with other settings is replaced with `overwrite`; otherwise the user is asked, or it is an
        error.
        """
        provenance = Provenance(self.command, PACKAGES)
        self._tell, self._done, self._steps = tell, 0, len(self.candidates)
        with self._session(overwrite=overwrite):
            outcome = self._chosen()
            tested = dict.fromkeys([*self._kept(outcome), *self.settings.beside, *plain(), *outcome["front"]])
            self._steps += len(tested) + len(self._changes(outcome))
            outcome["test"] = self._figures(list(tested), "whole")
            outcome["keeps_limit"] = {
                name: self.goal.keeps_limit(outcome["test"][name], outcome["test"][REFERENCE])
                for name in self._kept(outcome)
            }
            outcome["slurm"] = self.settings.slurm is not None
            outcome["sensitivity"] = self._sensitivity(outcome)
            self._write(outcome, provenance)
        return outcome

    @contextmanager
    def _session(self, *, overwrite: bool) -> Iterator[None]:
        """Hold the folder; an interruption says how to go on."""
        settings = self.settings.settings()
        with self.folder.in_place(
            settings,
            overwrite=overwrite,
            of=("a study", (TASKS, PROVENANCE)),
            kept=lambda: f"{self._done} of {self._steps} simulations are finished",
        ):
            self.folder.begin(settings)
            make_folder(self.store.place)
            yield

    # --- steps -----------------------------------------------------------------------------------------

    def _performed(self, tasks: Sequence[Simulated]) -> Sequence[Simulated]:
        """Perform tasks that may run in parallel, and return them."""
        before, over = self._done, set[str]()

        def told(name: str, done: int) -> None:
            if done >= sizes[name]:
                over.add(name)
                self._tell(before + kept + len(over), 0, self._steps)

        sizes = {task.name: task.size for task in tasks}
        missing = [task for task in tasks if not self.store.has(task)]
        kept = len(tasks) - len(missing)
        self._tell(before + kept, 0, self._steps)
        perform(missing, self.store, self.settings.engine_for(len(missing)), tell=told)
        self._done = before + len(tasks)
        return tasks

    def _simulated(self, policy: str, part: str) -> Simulated:
        """Return the simulation of a policy on the past, on the whole log, or at another load."""
        known = {"past": self.past, "whole": self.workload}
        jobs = known[part] if part in known else self.workload.scale_load(float(part))
        return Simulated(policy, jobs, part, self.settings)

    def _figures(self, policies: Sequence[str], part: str) -> dict[str, Figures]:
        """Return the metrics of policies on the past, or on the last part of the log."""
        tasks = self._performed([self._simulated(policy, part) for policy in policies])
        jobs, which = (self.past, "past") if part == "past" else (self.workload, "test")
        counted = self.periods.masks(jobs)[which]
        return {task.policy: task.figures(self.store, counted) for task in tasks}

    def _chosen(self) -> dict[str, Any]:
        """Return the policies that are chosen on the past, with what led to them."""
        past = self._figures(list(self.candidates), "past")
        reference = past[REFERENCE]

        def best(among: Sequence[str]) -> str:
            keeping = [name for name in among if self.goal.keeps_limit(past[name], reference)]
            return min(keeping or among, key=lambda name: self.goal.loss(past[name], reference))

        tested = [name for name, each in self.candidates.items() if each.seconds is not None]
        masks = self.periods.masks(self.workload)
        return {
            "log": self.workload.name,
            "seed": self.settings.seed,
            "jobs": {name: int(mask.sum()) for name, mask in masks.items()},
            "objective": list(self.goal.metrics),
            "longest_wait": self.goal.longest_wait,
            "fairness": self.goal.fairness,
            "policy": best([name for name in self.candidates if name not in tested]),
            "with_tests": best(tested) if tested else None,
            "rival": best(plain()),
            "beside": self.settings.beside,
            "front": [
                *_front({name: past[name] for name in past if name not in tested}),
                *_front({name: past[name] for name in tested}),
            ],
            "past": past,
        }

    @staticmethod
    def _kept(outcome: Mapping[str, Any]) -> list[str]:
        """Return the chosen policies."""
        return [outcome[role] for role in CHOSEN if outcome[role]]

    def _changes(self, outcome: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Return the policies under changed conditions: (name, part)."""
        policies = dict.fromkeys([*self._kept(outcome), outcome["rival"], REFERENCE])
        found = [(policy, f"{load:g}") for load in LOADS for policy in policies]
        return found + [(policy, "whole") for policy in self._fewer(outcome).values()]

    def _fewer(self, outcome: Mapping[str, Any]) -> dict[float, str]:
        """Return the policy with tests of fewer users, by their share."""
        with_tests = self.candidates.get(outcome["with_tests"])
        return (
            {} if with_tests is None else {share: with_tests._replace(users=share).name for share in SHARES}
        )

    def _sensitivity(self, outcome: Mapping[str, Any]) -> dict[str, Any]:
        """Return the metrics of the last part at other loads, and with tests of fewer users."""
        tasks = self._performed([self._simulated(*each) for each in self._changes(outcome)])
        test = self.periods.masks(self.workload)["test"]
        found: dict[str, dict[str, Figures]] = {}
        for task in tasks:
            found.setdefault(task.part, {})[task.policy] = task.figures(self.store, test)
        whole = found.pop("whole", {})
        return {
            "load": found,
            "users": {f"{share:g}": whole[name] for share, name in self._fewer(outcome).items()},
        }

    def _write(self, outcome: dict[str, Any], provenance: Provenance) -> None:
        """Write the policies, the outcome, the tables, the model card and the report."""
        for role, file in CHOSEN.items():
            if outcome[role]:
                write_json(self.place / file, {"policy": outcome[role], "log": outcome["log"]})
        write_records(
            self.place,
            self.periods,
            lambda policy: self._simulated(policy, "whole").result(self.store),
            outcome,
        )
        write_record(self.place / OUTCOME, outcome)
        options = self.settings.model_dump(exclude_unset=True, exclude={*UNDECISIVE})
        facts = {"options": options, "workload": self.workload.hash, "periods": self.periods._asdict()}
        self.folder.conclude(provenance, {**facts, SETTINGS: self.settings.settings()})


def _front(past: Mapping[str, Figures]) -> list[str]:
    """Return the policies that no other one beats: longest wait against slowdown, or against wait."""
    names = list(past)
    found = (front([(past[name][LONGEST], past[name][metric]) for name in names]) for metric in COMPARED)
    chosen = {names[number] for numbers in found for number in numbers}
    return sorted(chosen, key=lambda name: past[name][LONGEST])
