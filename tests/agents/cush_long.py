"""CuSH with as many epochs as published, one seed (sections 3.5 and 4.1 of its paper)."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.cush.measurements import NTAT
from hpcsimkit.agents.cush.problem import CushProblem
from hpcsimkit.agents.cush.trainer import CushSettings, CushTrainer
from hpcsimkit.agents.cush.training import AGENTS
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.policies import SJF, BreadthFirst, SuitsKind
from hpcsimkit.reproductions.cush.own import Trial
from hpcsimkit.results.metrics import measure

SETTINGS = CushSettings(epochs=5000, style_learning_rate=2e-3)
"""Settings of the reproduction, but for the number of epochs: as published, with a faster policy selector."""

FOLDER = Path(tempfile.gettempdir()) / "hpcsimkit-cush-long"
"""Folder of the checkpoints: an interrupted training resumes."""

SCALE = SimpleNamespace(systems=["sierra", "summit"], validation=100, unseen=500)
"""Numbers of job sets of the reproduction."""

SEED = 0
DRAWS = 30
"""Runs of an agent that draws its actions on each job set that it has learned from."""

EPOCHS = (300, 1000, 2000, 3000, 4000, 5000)
LAST = 100
"""Ends of parts of the training, and the number of epochs before each whose mean is shown."""

HEADINGS = ("job sets", "SJF BF", "SJF (best allocation)", "CuSH")


def trained(system: str) -> CushTrainer:
    """Return the trainer at the end of a training, which resumes where it was interrupted."""
    trainer = CushTrainer(CushProblem(system=system), SETTINGS, seed=SEED)
    trainer.train(FOLDER / system, resume=True, progress=True)
    return trainer


def rows(system: str) -> list[list[str]]:
    """Return mean NTATs on each group of job sets: two heuristics, and CuSH in training and after it."""
    trainer = trained(system)
    trial = Trial("system", trainer.problem, SCALE, 0)
    curve = [each.measures["normalised_turnaround"] for each in trainer.curve]
    sampling = policy(trial, sample=True)
    greedy = policy(trial, sample=False)
    samples = ntat(sampling, trial.validation.scenarios) < ntat(greedy, trial.validation.scenarios)
    agent = sampling if samples else greedy
    sjf = [trial.problem.pipeline(order=SJF(), placement=each) for each in (BreadthFirst(), SuitsKind())]
    learned, unseen = trainer.job_sets(0), trial.unseen.scenarios
    found = {f"learned from, to epoch {end}": float(np.mean(curve[end - LAST : end])) for end in EPOCHS}
    way = "actions drawn" if samples else "best actions"
    found[f"learned from, after it ({way})"] = ntat(agent, learned * (DRAWS if samples else 1))
    of_learned = [ntat(each, learned) for each in sjf]
    table = [[name, *of_learned, each] for name, each in found.items()]
    table.append([f"{len(unseen)} unseen ({way})", *(ntat(each, unseen) for each in [*sjf, agent])])
    return [[name, *(f"{each:.2f}" for each in means)] for name, *means in table]


def policy(trial: Trial, *, sample: bool) -> Policy:
    """Return the scheduler with the two trained selectors."""
    files = {seat: FOLDER / trial.problem.system / name for seat, name in AGENTS.items()}
    agents: dict[str, Any] = {seat: Agent.load(path, sample=sample) for seat, path in files.items()}
    return trial.problem.pipeline(**agents)


def ntat(policy: Policy, scenarios: Sequence[Scenario]) -> float:
    """Return the mean normalised turnaround time over job sets, each with a random seed of its own."""
    runs = (each.changed(seed=seed).simulation(policy).run() for seed, each in enumerate(scenarios))
    return float(np.mean([measure(run, names=[NTAT])[NTAT] for run in runs]))


if __name__ == "__main__":
    trained(sys.argv[1])
