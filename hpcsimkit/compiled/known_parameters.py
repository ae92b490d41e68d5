"""Parameters of policies and stages that the compiled simulator knows; it refuses all others by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hpcsimkit.kernel.decision import External
from hpcsimkit.kernel.parameters import Parameters, defaults, given, parts
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.reservation import EASY
from hpcsimkit.policies.backfill.backfilling import Reservations
from hpcsimkit.policies.backfill.testing import HoleTests
from hpcsimkit.policies.dirlab.backfilling import FittingCandidates, PublishedEASY
from hpcsimkit.policies.one_seat.dispatch import Dispatch
from hpcsimkit.policies.oracles import Actual
from hpcsimkit.policies.portfolio.guarded import Remembered
from hpcsimkit.policies.predicting.bounded import KeyColumn
from hpcsimkit.policies.predictions import LastTwo, Noisy
from hpcsimkit.policies.preempting.preemptors import PreemptLowerTiers
from hpcsimkit.policies.preempting.replanning import LAS, SRTF, Gittins
from hpcsimkit.policies.slurm import SlurmMultifactor
from hpcsimkit.slurm.scheduler import SlurmScheduler

KNOWN_PARAMETERS: dict[type[Parameters], frozenset[str]] = {
    kind: frozenset(names.split())
    for kind, names in {
        Pipeline: "order inspector placement backfiller estimates preemptor tester commit fitting window "
        "max_candidates max_interval max_rejections",
        Dispatch: "seat slots order distinct",
        External: "base decline skip",
        EASY: "candidates",
        PublishedEASY: "candidates relax skips_after_start",
        FittingCandidates: "guarded relax slots",
        Reservations: "count",
        HoleTests: "seconds users largest restartable",
        Actual: "reservations",
        Noisy: "noise",
        LastTwo: "predictor reservations",
        Remembered: "estimates predictions",
        KeyColumn: "keys",
        PreemptLowerTiers: "by tiers first exempt_time mode grace_time",
        SRTF: "area",
        LAS: "thresholds by promote demotion",
        Gittins: "quantum by least interval",
        SlurmScheduler: "profile",
        SlurmMultifactor: "age fair_share size attribute partition qos max_age shares shares_by half_life "
        "usage billing partition_priority qos_priority",
    }.items()
}
"""Names of the known parameters and public attributes, by class; other classes have none."""


def unknown_parameters(policy: Parameters) -> Iterator[str]:
    """Yield the parameters and attributes of a policy and its stages that this simulator does not know.

    So one that is added to a class of the kit is refused until it is compiled, unless at its default value.
    """
    for part in parts(policy):
        kind: Any = type(part)
        known = KNOWN_PARAMETERS.get(kind, frozenset())
        for name, value in given(part, known).items():
            yield f"it knows no {name} of {kind.__name__}, found {value}"
        for name, value in vars(part).items():
            if not (name in known or name.startswith("_") or name in defaults(kind)):
                yield f"it knows no {name} of {kind.__name__}, found {value!r}"
