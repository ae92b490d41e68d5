"""Heuristic policies: orders, backfillers, run-time estimators, placements and ready-made pipelines."""

from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.policies.backfill.backfilling import EASY, Greedy, Reservations
from hpcsimkit.policies.backfill.conservative import Conservative
from hpcsimkit.policies.backfill.testing import HoleTests
from hpcsimkit.policies.inspectors import HoldUnfit
from hpcsimkit.policies.oracles import Actual, OracleSAF, OracleSJF
from hpcsimkit.policies.orders import (
    F1,
    F2,
    F3,
    F4,
    FCFS,
    LAF,
    LCFS,
    LJF,
    SAF,
    SJF,
    SQF,
    SRF,
    UNICEF,
    WFP3,
    FCFSShortest,
    LargestFirst,
    RandomOrder,
    XFactor,
)
from hpcsimkit.policies.placing.kinds import KindsByExecution, KindsInRun, LearnedKinds
from hpcsimkit.policies.placing.optimization import Optimization
from hpcsimkit.policies.placing.packing import BestFitBinPacking, DominantShare
from hpcsimkit.policies.placing.placements import (
    BestFit,
    BreadthFirst,
    DepthFirst,
    FirstFit,
    MachineOrder,
    RandomPlacement,
    RoundRobin,
    WorstFit,
)
from hpcsimkit.policies.placing.styles import DepthOrBreadth, SuitsKind
from hpcsimkit.policies.portfolio.guarded_wait import GuardedWait
from hpcsimkit.policies.predicting.aged import Aged
from hpcsimkit.policies.predicting.bounded import Bounded, KeyColumn, Weighted
from hpcsimkit.policies.predicting.history import History
from hpcsimkit.policies.predicting.live import Live
from hpcsimkit.policies.predicting.predicted import Predicted
from hpcsimkit.policies.predicting.predictor import Predictor
from hpcsimkit.policies.predictions import LastTwo, Noisy, ShortestPredicted
from hpcsimkit.policies.slurm import SlurmMultifactor

__all__ = [
    "EASY",
    "F1",
    "F2",
    "F3",
    "F4",
    "FCFS",
    "LAF",
    "LCFS",
    "LJF",
    "SAF",
    "SJF",
    "SQF",
    "SRF",
    "UNICEF",
    "WFP3",
    "Actual",
    "Aged",
    "BestFit",
    "BestFitBinPacking",
    "Bounded",
    "BreadthFirst",
    "Conservative",
    "DepthFirst",
    "DepthOrBreadth",
    "DominantShare",
    "FCFSShortest",
    "FirstFit",
    "Greedy",
    "GuardedWait",
    "History",
    "HoldUnfit",
    "HoleTests",
    "KeyColumn",
    "KindsByExecution",
    "KindsInRun",
    "LargestFirst",
    "LastTwo",
    "LearnedKinds",
    "Live",
    "MachineOrder",
    "Noisy",
    "Optimization",
    "OracleSAF",
    "OracleSJF",
    "Pipeline",
    "Predicted",
    "Predictor",
    "RandomOrder",
    "RandomPlacement",
    "Reservations",
    "RoundRobin",
    "ShortestPredicted",
    "SlurmMultifactor",
    "SuitsKind",
    "Weighted",
    "WorstFit",
    "XFactor",
]
