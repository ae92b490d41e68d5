"""Rendering of an environment's state as a line of text or a small image."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.kernel.system import System

__all__ = ["line", "picture"]

WIDTH, HEIGHT = 480, 120
BUSY, FREE, WAITING, PAPER = (0, 114, 178), (220, 220, 220), (213, 94, 0), (255, 255, 255)
FULL_QUEUE = 100
"""Number of waiting jobs that fills half of the bar; the bar can represent any number."""


def line(system: System) -> str:
    """Return the state in a line of text."""
    busy = 1 - system.cluster.share(system.free)
    return (
        f"t={system.now} s: {len(system.queue)} jobs wait, {len(system.running)} run, "
        f"{busy:.0%} of {system.cluster.size} {system.cluster.unit} are busy"
    )


def picture(system: System) -> NDArray[np.uint8]:
    """Return the state as an image: busy share of the cluster above, number of waiting jobs below.

    Returns
    -------
    array of uint8, shape (120, 480, 3)
    """
    image = np.full((HEIGHT, WIDTH, 3), PAPER, dtype=np.uint8)
    busy = 1 - system.cluster.share(system.free)
    waiting = len(system.queue) / (len(system.queue) + FULL_QUEUE)
    for top, share, colour in ((10, busy, BUSY), (65, waiting, WAITING)):
        image[top : top + 45, 10 : WIDTH - 10] = FREE
        image[top : top + 45, 10 : 10 + round(share * (WIDTH - 20))] = colour
    return image
