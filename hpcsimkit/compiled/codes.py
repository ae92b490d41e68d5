"""Codes of rules that compiled functions share."""

from __future__ import annotations

from typing import cast

import numpy as np

NONE, GREEDY, FITTING, EASY, PLANNED = range(5)
"""Codes of backfilling, from `EASY` on with reservations.

`FITTING` is greedy, but every job counts as started in its turn. `PLANNED` reserves slots in a profile: if
there is a plan, for each job on its arrival (conservative backfilling), else for several jobs at each pass.
"""

READY, RESERVED, BACKFILLED = cast(tuple[int, ...], tuple(map(np.int64, (1, 2, 3))))
"""Start modes, as in :class:`~hpcsimkit.kernel.system.Mode`; no literals, see :mod:`.compilation`."""

ZERO = cast(int, np.int64(0))
"""Zero with the type of a variable."""

NO_LIMIT = cast(int, np.int64(2**62))
"""A time that no estimate exceeds [s]."""
