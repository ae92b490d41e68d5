"""Use of slots by agents: greedy and sampled actions, compared with random and constant choices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from hpcsimkit.reports.figures import DAY, HOUR
from hpcsimkit.reproductions.cells import Table, number
from hpcsimkit.reproductions.dras.habits import ENTROPY, LARGEST, OFTEN, SLOT_0
from hpcsimkit.reproductions.dras.measured import Family, Measured
from hpcsimkit.reproductions.dras.methods import CHANCE, DRAS, DRAWING, FCFS, SLOTS, drawn
from hpcsimkit.reproductions.dras.runs import REWARD
from hpcsimkit.reproductions.dras.tables import name_of
from hpcsimkit.reproductions.spread import spread_cell

__all__ = ["BEHAVING", "Watched", "behaviour_table", "best_constant", "has_learned", "verdict"]

BEHAVING = (FCFS, CHANCE, *SLOTS, *DRAS, *map(drawn, DRAWING))
"""Rows of the comparison, in the order of tables."""

Watched = Mapping[str, Sequence[Mapping[str, float]]]
"""Choices of a group's agents on the validation month, seed by seed."""


def best_constant(log: Measured) -> str:
    """Return the row of the constant slot with the highest reward on the validation month."""
    slots = [row for row in (FCFS, *SLOTS) if row in log.rewards]
    return max(slots, key=lambda row: log.rewards[row])


def has_learned(log: Measured, family: Family) -> bool:
    """Return whether every seed's test reward exceeds those of random and best constant slots."""
    bounds = (float(log.families[row].spread(REWARD).mean) for row in (CHANCE, best_constant(log)))
    return bool((family.over_seeds(REWARD) > max(bounds)).all())


def behaviour_table(log: Measured, watched: Watched) -> Table:
    """Return a row per policy: rewards and waits, then its choices in decisions with several options."""
    headings = [
        "",
        "reward on the month to choose by",
        "reward",
        "mean wait [h]",
        "maximum wait [d]",
        "learned",
        "slot 0 [%]",
        "slot taken most often",
        "largest probability",
        "entropy / that of chance",
    ]
    lines = []
    for name in BEHAVING:
        if name not in log.families:
            continue
        family = log.families[name]
        chosen_by = log.rewards.get(name, family.validation if family.validations else float("nan"))
        lines.append(
            [
                name_of(family),
                "" if name in map(drawn, DRAWING) else f"{chosen_by:.1f}",
                spread_cell(family.spread(REWARD), form=lambda value: f"{value:.1f}"),
                spread_cell(family.spread("mean_wait_time"), 1 / HOUR),
                spread_cell(family.spread("max_wait_time"), 1 / DAY),
                ("yes" if has_learned(log, family) else "no") if family.validations else "",
                *_habits(watched.get(name, ())),
            ]
        )
    return Table(headings, lines)


def _habits(seeds: Sequence[Mapping[str, float]]) -> list[str]:
    if not seeds:
        return [""] * 4
    cells = [number(100 * _mean(seeds, SLOT_0)), ", ".join(f"{each[OFTEN]:.0f}" for each in seeds)]
    return cells + [number(_mean(seeds, key)) if key in seeds[0] else "" for key in (LARGEST, ENTROPY)]


def _mean(seeds: Sequence[Mapping[str, float]], key: str) -> float:
    return float(np.mean([each[key] for each in seeds]))


def verdict(log: Measured) -> str:
    """Return the sentence on the learners that pass the test of the table."""
    agents = [family for name, family in log.families.items() if name in BEHAVING and family.validations]
    learned = [family.name for family in agents if has_learned(log, family)]
    constant = best_constant(log)
    slot = "slot 0 (FCFS/EASY)" if constant == FCFS else f"slot {SLOTS[constant]}"
    bound = f"than chance and than {slot}, the constant slot with the highest return on the validation month"
    if not learned:
        return f"No learner has a higher return with each seed {bound}."
    return f"Learners with a higher return with each seed {bound}: {', '.join(learned)}."
