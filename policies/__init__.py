"""Heuristic policies: orders, backfilling, predictions, and ready-made pipelines."""

from hpcsimkit.pipeline import Pipeline
from hpcsimkit.policies.backfilling import EASY, Greedy, Reservations
from hpcsimkit.policies.conservative import Conservative
from hpcsimkit.policies.inspectors import HoldUnfit
from hpcsimkit.policies.kinds import KindsByExecution, KindsInRun, LearnedKinds
from hpcsimkit.policies.optimization import Optimization
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
from hpcsimkit.policies.packing import BestFitBinPacking, DominantShare
from hpcsimkit.policies.placements import (
    BestFit,
    BreadthFirst,
    DepthFirst,
    FirstFit,
    MachineOrder,
    RandomPlacement,
    RoundRobin,
    WorstFit,
)
from hpcsimkit.policies.predictions import LastTwo, Noisy, ShortestPredicted
from hpcsimkit.policies.slurm import SlurmMultifactor
from hpcsimkit.policies.styles import DepthOrBreadth, SuitsKind

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
    "BestFit",
    "BestFitBinPacking",
    "BreadthFirst",
    "Conservative",
    "DepthFirst",
    "DepthOrBreadth",
    "DominantShare",
    "FCFSShortest",
    "FirstFit",
    "Greedy",
    "HoldUnfit",
    "KindsByExecution",
    "KindsInRun",
    "LargestFirst",
    "LastTwo",
    "LearnedKinds",
    "MachineOrder",
    "Noisy",
    "Optimization",
    "OracleSAF",
    "OracleSJF",
    "Pipeline",
    "RandomOrder",
    "RandomPlacement",
    "Reservations",
    "RoundRobin",
    "ShortestPredicted",
    "SlurmMultifactor",
    "SuitsKind",
    "WorstFit",
    "XFactor",
]
