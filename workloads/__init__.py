"""Workloads from logs and models, and their description.

========================  ==========================================================================
:mod:`~.logs`             reader for any log, with detection of the format from the first line
:mod:`~.swf`              reader and writer for the Standard Workload Format
:mod:`~.job_table`        reader and writer for job tables (CSV) with CPUs, GPUs and memory
:mod:`~.sacct`            reader for Slurm accounting data from ``sacct --parsable2``
:mod:`~.gpu_logs`         readers for logs of GPU clusters: openb, Philly, Eagle
:mod:`~.beocat`           training sets and test days of the masked-PPO paper, from Beocat's logs
:mod:`~.lublin`           Lublin-Feitelson model
:mod:`~.estimates`        model of user run-time estimates
:mod:`~.default`          built-in workload: the Lublin-Feitelson model with modelled estimates
:mod:`~.cush`             CuSH's job sets, with pooled CPUs and GPUs and two job types
:mod:`~.cush_programs`    logs of CuSH's job sets with repeated executions of programs
:mod:`~.mimic`            statistical clones of a log
:mod:`~.job_sets`         job sets for training, from a log: DRAS's three phases
:mod:`~.scaled`           logs scaled to a smaller machine
:mod:`~.synthetic`        Poisson arrivals of queueing theory, and bursts
:mod:`~.weekly_arrivals`  Poisson arrivals with weekly and daily cycles
:mod:`~.local_time`       calendar time of a log's clock
:mod:`~.describe`         descriptive statistics of a workload
:mod:`~.catalogue`        logs of the Parallel Workloads Archive, identified by checksum
========================  ==========================================================================
"""

from __future__ import annotations

from hpcsimkit.workloads.catalogue import CATALOGUE, CatalogueEntry, verify
from hpcsimkit.workloads.describe import Description, describe
from hpcsimkit.workloads.models.cush import CUSH_KINDS, CUSH_SYSTEMS, CushJobSets, CushNode, read_job_sets
from hpcsimkit.workloads.models.cush_programs import CushPrograms
from hpcsimkit.workloads.models.default import default_workload
from hpcsimkit.workloads.models.estimates import POPULAR_ESTIMATES, with_estimates
from hpcsimkit.workloads.models.job_sets import PHASES, JobSet, JobSets, sampled, three_phases, weeks
from hpcsimkit.workloads.models.lublin import BATCH, INTERACTIVE, TYPED, UNTYPED, JobClass, LublinModel
from hpcsimkit.workloads.models.mimic import Mimic
from hpcsimkit.workloads.models.scaled import scaled
from hpcsimkit.workloads.models.synthetic import burst, poisson
from hpcsimkit.workloads.models.weekly_arrivals import WeeklyArrivals
from hpcsimkit.workloads.readers.batsim import read_batsim
from hpcsimkit.workloads.readers.beocat import days, training_set
from hpcsimkit.workloads.readers.gpu_logs import read_eagle, read_openb, read_philly
from hpcsimkit.workloads.readers.gwf import read_gwf
from hpcsimkit.workloads.readers.job_table import JOB_TABLE_COLUMNS, read_job_table, write_job_table
from hpcsimkit.workloads.readers.logs import LOG_FORMATS, LogFormat, read_log
from hpcsimkit.workloads.readers.parquet_logs import read_fdata, read_pm100
from hpcsimkit.workloads.readers.pbs import read_pbs
from hpcsimkit.workloads.readers.sacct import read_sacct
from hpcsimkit.workloads.readers.sge import read_sge
from hpcsimkit.workloads.readers.slurm_json import read_slurm_json
from hpcsimkit.workloads.readers.swf import SWF_FIELDS, read_swf, swf_text, write_swf

__all__ = [
    "BATCH",
    "CATALOGUE",
    "CUSH_KINDS",
    "CUSH_SYSTEMS",
    "INTERACTIVE",
    "JOB_TABLE_COLUMNS",
    "LOG_FORMATS",
    "PHASES",
    "POPULAR_ESTIMATES",
    "SWF_FIELDS",
    "TYPED",
    "UNTYPED",
    "CatalogueEntry",
    "CushJobSets",
    "CushNode",
    "CushPrograms",
    "Description",
    "JobClass",
    "JobSet",
    "JobSets",
    "LogFormat",
    "LublinModel",
    "Mimic",
    "WeeklyArrivals",
    "burst",
    "days",
    "default_workload",
    "describe",
    "poisson",
    "read_batsim",
    "read_eagle",
    "read_fdata",
    "read_gwf",
    "read_job_sets",
    "read_job_table",
    "read_log",
    "read_openb",
    "read_pbs",
    "read_philly",
    "read_pm100",
    "read_sacct",
    "read_sge",
    "read_slurm_json",
    "read_swf",
    "sampled",
    "scaled",
    "swf_text",
    "three_phases",
    "training_set",
    "verify",
    "weeks",
    "with_estimates",
    "write_job_table",
    "write_swf",
]
