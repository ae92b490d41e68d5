"""Formats of the files that the kit reads."""

from __future__ import annotations

from enum import Enum

__all__ = ["Format"]


class Format(Enum):
    """Format of a file that the kit reads, with a description.

    All files are read through :func:`hpcsimkit.io.files.read_bytes`, which needs one of these; for each of
    them, ``tests/audit`` puts names of code into every field of such files.
    """

    SWF = "log or schedule in the Standard Workload Format (`.swf`)"
    SACCT = "output of `sacct --parsable2`"
    SLURM_JSON = "output of `sacct --json`, `squeue --json` or `scontrol show job --json`"
    SCONTROL_JOBS = "output of `scontrol show job`"
    PBS = "accounting of PBS or Torque"
    SGE = "accounting of Grid Engine"
    GWF = "log in the Grid Workloads Format (`.gwf`)"
    BATSIM = "workload of the simulator Batsim (`.json`)"
    PARQUET_LOG = "log of PM100 or F-DATA (`.parquet`)"
    JOB_TABLE = "log as a job table (`.csv`)"
    OPENB = "log of pods of Alibaba's cluster openb (`.csv`)"
    PHILLY = "log of a virtual cluster of Philly (`.csv`)"
    EAGLE = "log of the supercomputer Eagle (`.csv`)"
    JOB_SETS = "job sets of CuSH (`.csv`)"
    MACHINES = "machines: `.csv`, `.toml`, or output of `scontrol show node`"
    PARTITIONS = "partitions: `.toml`, or output of `scontrol show partition`"
    SLURM = "file of a folder with the configuration of Slurm"
    CALENDAR = "calendar of windows: `.toml`, or output of `scontrol show reservation`"
    EXPERIMENT = "experiment (`.toml`)"
    SWEEP = "sweep (`.toml`)"
    TRAINING = "training (`.toml`)"
    PLAN = "plan of a reproduction (`plan.toml`)"
    PUBLISHED = "published numbers of a reproduction (`published.toml`)"
    TEMPLATE = "template of the page of a reproduction (`report.md.jinja`)"
    MODEL = "trained agent (`.hpcsim`)"
    CHECKPOINT = "checkpoint of a training (`.hpcsim`)"
    LEARNED_POLICY = "policy written by `learn` (`policy.json`)"
    CURVE = "learning curve of a training (`curve.csv`)"
    RESULT = "saved result (`.npz`)"
    FAILURES = "failures: a table (`.csv`), output of `sacctmgr show event`, or LANL's failure data"
    SNAPSHOT = "snapshot of a run (`.npz`)"
    PROVENANCE = "record of results (`provenance.json`, `validation.json`, `reproduction.json` and others)"
    METRICS = "metrics of a comparison (`metrics.json`)"
    TABLE = "table of jobs, of placements or of cells (`.parquet` or `.csv`)"
    SWEEP_RESULTS = "description of the cells of a sweep (`sweep.json`)"
    TASK = "state or outcome of a task (`outcome.json`, `failure.json` and others)"
    TASK_ARRAYS = "arrays computed by a task (`.npz`)"
    CONSENT = "code that the user allows by folder (`allowed-code.json` in the user's settings)"
    LOCK = "number and host of the process that uses a results folder (`.lock`)"
