"""CuSH with as many epochs as published, one seed (section 4.1, figure 4)."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from hpcsimkit.agents.cush.problem import CushProblem
from hpcsimkit.agents.cush.trainer import CushSettings, CushTrainer

SETTINGS = CushSettings(epochs=5000, style_learning_rate=2e-3)
"""Settings of the reproduction, but for the number of epochs: as published, with a faster policy selector."""

FOLDER = Path(tempfile.gettempdir()) / "hpcsimkit-cush-long"
"""Folder of the checkpoints: an interrupted training resumes."""

SEED = 0
"""Seed of the reproduction's first agent."""

UNSEEN = 500
DRAWS = 30
"""Number of unseen job sets, and of runs of the agent that draws its actions on each set learned from."""

EPOCHS = (300, 1000, 2000, 3000, 4000, 5000)
"""Ends of the parts of the training whose mean NTAT is shown."""

HEADINGS = (
    "system",
    *(f"to {end}" for end in EPOCHS),
    "learned from",
    "unseen",
    "SJF, learned from",
    "SJF, unseen",
)


def trained(system: str) -> CushTrainer:
    """Return the trainer at the end of a training, which resumes where it was interrupted."""
    trainer = CushTrainer(CushProblem(system=system), SETTINGS, seed=SEED)
    trainer.train(FOLDER / system, resume=True, progress=True)
    return trainer


if __name__ == "__main__":
    trained(sys.argv[1])
