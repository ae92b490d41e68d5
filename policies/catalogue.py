"""The names of all heuristics, as used on the command line and in experiment files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hpcsimkit.policies import orders
from hpcsimkit.policies.backfill.backfilling import EASY, Greedy, Reservations
from hpcsimkit.policies.backfill.conservative import Conservative
from hpcsimkit.policies.backfill.testing import HoleTests
from hpcsimkit.policies.dirlab.backfilling import PublishedEASY
from hpcsimkit.policies.dirlab.orders import InvertedUNICEF, InvertedWFP3
from hpcsimkit.policies.dirlab.pipelines import MAX_INTERVAL, MAX_REJECTIONS
from hpcsimkit.policies.inspectors import AdmitFitting, HoldUnfit, RandomAdmission
from hpcsimkit.policies.oracles import Actual, OracleSAF, OracleSJF
from hpcsimkit.policies.placing import placements
from hpcsimkit.policies.placing.kinds import LearnedKinds
from hpcsimkit.policies.placing.optimization import Optimization
from hpcsimkit.policies.placing.packing import BestFitBinPacking, DominantShare
from hpcsimkit.policies.placing.styles import DepthOrBreadth, SuitsKind
from hpcsimkit.policies.portfolio.guarded import Guarded
from hpcsimkit.policies.portfolio.guarded_wait import GuardedWait
from hpcsimkit.policies.portfolio.looking_ahead import LookingAhead
from hpcsimkit.policies.predicting.aged import Aged
from hpcsimkit.policies.predicting.boosting import Boosting
from hpcsimkit.policies.predicting.bounded import Bounded, Weighted
from hpcsimkit.policies.predicting.history import History
from hpcsimkit.policies.predicting.live import Live
from hpcsimkit.policies.predicting.mixture import Mixture
from hpcsimkit.policies.predicting.predicted import Predicted
from hpcsimkit.policies.predicting.regression import Regression
from hpcsimkit.policies.predictions import LastTwo, Noisy, ShortestPredicted
from hpcsimkit.policies.preempting.preemptors import PreemptLowerTiers
from hpcsimkit.policies.preempting.replanning import LAS, SRTF, Gittins, SmallestPreemptive
from hpcsimkit.policies.recorded import Recorded
from hpcsimkit.policies.slurm import SlurmMultifactor

__all__ = ["ALIASES", "CATALOGUE"]

Parts = dict[str, Any]
"""Keyword arguments of :class:`~hpcsimkit.kernel.pipeline.Pipeline`."""


def easy() -> Parts:
    """EASY backfilling: only the first blocked job has a reservation, and no backfilled job may delay it."""
    return {"backfiller": EASY()}


def easy_sjf() -> Parts:
    """EASY with backfill candidates in order of requested time, shortest first."""
    return {"backfiller": EASY(candidates=orders.SJF())}


def easy_saf() -> Parts:
    """EASY with backfill candidates in order of requested area, smallest first."""
    return {"backfiller": EASY(candidates=orders.SAF())}


def easy_weighted(
    mean: float = 0.0, harmonic: float = 0.0, requested: float = 0.0, size: float = 0.0
) -> Parts:
    """EASY with backfill candidates in order of a product of powers, as in the order ``weighted``."""
    return {"backfiller": EASY(candidates=Weighted(mean, harmonic, requested, size))}


def easy_bestfit() -> Parts:
    """EASY with backfill candidates in order of size, largest first, to leave the fewest nodes idle."""
    return {"backfiller": EASY(candidates=orders.LargestFirst())}


def easy_ar() -> Parts:
    """EASY with actual run times as estimates: an oracle."""
    return {"backfiller": EASY(), "estimates": Actual()}


def easy_noise(noise: float = 0.2) -> Parts:
    """EASY with actual run times overestimated by a random share of up to `noise`: an oracle."""
    return {"backfiller": EASY(), "estimates": Noisy(noise)}


def easy_plus_plus() -> Parts:
    """EASY++: last-two predictions, corrected when exceeded; candidates in order of predicted run time."""
    return {"backfiller": EASY(candidates=ShortestPredicted()), "estimates": LastTwo()}


def conservative_replan() -> Parts:
    """Conservative backfilling that replans from scratch at every pass, so reservations may be violated."""
    return {"backfiller": Reservations(count=None)}


def history(
    length: int = 12, decay: float = 0.85, shrinkage: float = 2.0, *, reservations: bool = False
) -> Parts:
    """Predictions from the last run times of the same user, request and size."""
    return {"estimates": Predicted(History(length, decay, shrinkage), reservations)}


def live_history(length: int = 12, decay: float = 0.85, shrinkage: float = 2.0) -> Parts:
    """Predictions as by ``history``, made anew while jobs wait and run; ``aged`` follows them."""
    return {"estimates": Live(History(length, decay, shrinkage))}


def predicted_aging(times: float = 30.0) -> Parts:
    """Largest wait / predicted run time first; ahead goes who waited for more than `times` the mean wait.

    Candidates of EASY are tried by predicted run time, shortest first; reservations use requested times. The
    recipe knows nothing of a log in advance.
    """
    return {
        "order": GuardedWait(Aged(mean=1.0), times),
        "backfiller": EASY(candidates=Weighted(mean=1.0)),
        "estimates": Live(History()),
    }


def regression(rate: float = 10_000.0, degree: int = 2, *, reservations: bool = False) -> Parts:
    """Predictions by an on-line regression with an asymmetric loss."""
    return {"estimates": Predicted(Regression(rate, degree), reservations)}


def boosting(
    refit: int = 2000, window: int = 10_000, iterations: int = 30, *, reservations: bool = False
) -> Parts:
    """Predictions by gradient-boosted quantiles, fitted anew as jobs end; needs scikit-learn."""
    return {"estimates": Predicted(Boosting(refit, window, iterations), reservations)}


def mixture(decay: float = 0.995, *, reservations: bool = False) -> Parts:
    """Predictions by a mixture of predictors, weighted by their recent losses."""
    return {"estimates": Predicted(Mixture(decay=decay), reservations)}


def oracle_srtf_area() -> SRTF:
    """Smallest remaining area (run time times size) first, with preemption: an oracle."""
    return SRTF(area=True)


def no_backfilling() -> Parts:
    """No backfilling: a job that does not fit blocks all jobs behind it."""
    return {}


def binpacking() -> Parts:
    """Start all jobs that fit, largest first, without reservations (DRAS's BinPacking)."""
    return {"order": orders.LargestFirst(), "backfiller": Greedy()}


def random_fit() -> Parts:
    """Start all jobs that fit, in random order, without reservations (DRAS's Random)."""
    return {"order": orders.RandomOrder(), "backfiller": Greedy()}


def commit() -> Parts:
    """Commit to the selected job until it starts, as some published simulators do."""
    return {"commit": True}


def fitting() -> Parts:
    """Select only among the jobs that fit now: greedy scheduling without head-of-line blocking."""
    return {"fitting": True}


def window(jobs: int = 50) -> Parts:
    """Select only among the jobs that have waited longest, at most `jobs` of them."""
    return {"window": jobs}


def max_interval(seconds: int = MAX_INTERVAL) -> Parts:
    """Limit the time until an inspector is asked again about a held job to `seconds` [s]."""
    return {"max_interval": seconds}


def max_rejections(times: int = MAX_REJECTIONS) -> Parts:
    """Limit the number of times that an inspector may hold a job to `times`."""
    return {"max_rejections": times}


CATALOGUE: dict[str, dict[str, Callable[..., Any]]] = {
    "order": {
        "fcfs": orders.FCFS,
        "lcfs": orders.LCFS,
        "sjf": orders.SJF,
        "ljf": orders.LJF,
        "saf": orders.SAF,
        "laf": orders.LAF,
        "sqf": orders.SQF,
        "largest": orders.LargestFirst,
        "srf": orders.SRF,
        "wfp3": orders.WFP3,
        "unicef": orders.UNICEF,
        "f1": orders.F1,
        "f2": orders.F2,
        "f3": orders.F3,
        "f4": orders.F4,
        "xfactor": orders.XFactor,
        "slurm": SlurmMultifactor,
        "random": orders.RandomOrder,
        "oracle-sjf": OracleSJF,
        "oracle-saf": OracleSAF,
        "shortest-predicted": ShortestPredicted,
        "weighted": Weighted,
        "bounded": Bounded,
        "aged": Aged,
        "fcfs-shortest": orders.FCFSShortest,
        "drf": DominantShare,
        "looking-ahead": LookingAhead,
        "guarded": Guarded,
        "guarded-wait": GuardedWait,
        "published-wfp3": InvertedWFP3,
        "published-unicef": InvertedUNICEF,
    },
    "inspector": {"hold-unfit": HoldUnfit},
    "backfilling": {
        "none": no_backfilling,
        "easy": easy,
        "easy-sjf": easy_sjf,
        "easy-saf": easy_saf,
        "easy-bestfit": easy_bestfit,
        "easy-weighted": easy_weighted,
        "easy-k": Reservations,
        "easy-ar": easy_ar,
        "easy-noise": easy_noise,
        "easy++": easy_plus_plus,
        "conservative": Conservative,
        "conservative-replan": conservative_replan,
        "greedy": Greedy,
        "published-easy": PublishedEASY,
    },
    "estimates": {
        "actual": Actual,
        "noisy": Noisy,
        "last-two": LastTwo,
        "history": history,
        "live-history": live_history,
        "regression": regression,
        "boosting": boosting,
        "mixture": mixture,
    },
    "pipeline": {
        "binpacking": binpacking,
        "random-fit": random_fit,
        "optimization": Optimization,
        "predicted-aging": predicted_aging,
    },
    "placement": {
        "first-fit": placements.FirstFit,
        "best-fit": placements.BestFit,
        "worst-fit": placements.WorstFit,
        "depth-first": placements.DepthFirst,
        "breadth-first": placements.BreadthFirst,
        "round-robin": placements.RoundRobin,
        "random-place": placements.RandomPlacement,
        "depth-or-breadth": DepthOrBreadth,
        "suits-kind": SuitsKind,
        "learned-kinds": LearnedKinds,
    },
    "preemptor": {"preempt": PreemptLowerTiers},
    "tester": {"tests": HoleTests},
    "gate": {"admit-fitting": AdmitFitting, "random-admission": RandomAdmission},
    "policy": {
        "bfbp": BestFitBinPacking,
        "recorded": Recorded,
        "oracle-srtf": SRTF,
        "oracle-srtf-area": oracle_srtf_area,
        "smallest-preemptive": SmallestPreemptive,
        "las": LAS,
        "gittins": Gittins,
    },
    "option": {
        "commit": commit,
        "fitting": fitting,
        "window": window,
        "max-interval": max_interval,
        "max-rejections": max_rejections,
    },
}
"""Factories by kind and name: a stage class, or a function that returns parts of a pipeline."""

ALIASES = {
    "smallest": "sqf",
    "spf": "sqf",
    "lpf": "largest",
    "unicep": "unicef",
    "uni": "unicef",
    "wfp": "wfp3",
    "multifactor": "slurm",
    "easypp": "easy++",
    "replan": "conservative-replan",
    "knapsack": "optimization",
}
"""Alternative names in common use."""
