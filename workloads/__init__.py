"""Where workloads come from: logs, models, and what can be said about them.

========================  ==========================================================================
:mod:`~.logs`             any log: its form is told from its first line
:mod:`~.swf`              logs in the Standard Workload Format, in and out
:mod:`~.job_table`        job tables (CSV) with CPUs, GPUs and memory, in and out
:mod:`~.sacct`            Slurm's accounting, as ``sacct --parsable2`` prints it
:mod:`~.gpu_logs`         logs of GPU clusters: openb, Philly, Eagle
:mod:`~.beocat`           training sets and days, as the masked-PPO paper made them of Beocat's logs
:mod:`~.lublin`           the Lublin-Feitelson model
:mod:`~.estimates`        modelled user estimates
:mod:`~.default`          the built-in workload, made of both
:mod:`~.cush`             CuSH's job sets: CPUs and GPUs in any mix of nodes, two kinds of work
:mod:`~.cush_programs`    the same, of programs that are executed again and again
:mod:`~.mimic`            logs like a log
:mod:`~.job_sets`         job sets to learn from, made of a log: DRAS's three phases
:mod:`~.scaled`           the same log on a smaller machine
:mod:`~.synthetic`        queueing theory's arrivals, bursts
:mod:`~.weekly_arrivals`  when jobs come, by weekday and hour
:mod:`~.local_time`       where a log's clock stands in the calendar
:mod:`~.describe`         a workload in numbers
:mod:`~.catalogue`        logs of the Parallel Workloads Archive, known by their content
========================  ==========================================================================
"""

from __future__ import annotations

from hpcsimkit.workloads.beocat import days, training_set
from hpcsimkit.workloads.catalogue import CATALOGUE, CatalogueEntry, verify
from hpcsimkit.workloads.cush import CUSH_KINDS, CUSH_SYSTEMS, CushJobSets, CushNode, read_job_sets
from hpcsimkit.workloads.cush_programs import CushPrograms
from hpcsimkit.workloads.default import default_workload
from hpcsimkit.workloads.describe import Description, describe
from hpcsimkit.workloads.estimates import POPULAR_ESTIMATES, with_estimates
from hpcsimkit.workloads.gpu_logs import read_eagle, read_openb, read_philly
from hpcsimkit.workloads.job_sets import PHASES, JobSet, JobSets, sampled, three_phases, weeks
from hpcsimkit.workloads.job_table import JOB_TABLE_COLUMNS, read_job_table, write_job_table
from hpcsimkit.workloads.logs import LOG_FORMATS, LogFormat, read_log
from hpcsimkit.workloads.lublin import BATCH, INTERACTIVE, TYPED, UNTYPED, JobClass, LublinModel
from hpcsimkit.workloads.mimic import Mimic
from hpcsimkit.workloads.sacct import read_sacct
from hpcsimkit.workloads.scaled import scaled
from hpcsimkit.workloads.swf import SWF_FIELDS, read_swf, swf_text, write_swf
from hpcsimkit.workloads.synthetic import burst, poisson
from hpcsimkit.workloads.weekly_arrivals import WeeklyArrivals

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
    "read_eagle",
    "read_job_sets",
    "read_job_table",
    "read_log",
    "read_openb",
    "read_philly",
    "read_sacct",
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
