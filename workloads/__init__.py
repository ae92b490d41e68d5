"""Where workloads come from: logs, models, and what can be said about them.

========================  ==========================================================================
:mod:`~.swf`              logs in the Standard Workload Format, in and out
:mod:`~.lublin`           the Lublin-Feitelson model
:mod:`~.estimates`        modelled user estimates
:mod:`~.default`          the built-in workload, made of both
:mod:`~.synthetic`        queueing theory's arrivals, bursts
:mod:`~.describe`         a workload in numbers
:mod:`~.catalogue`        logs of the Parallel Workloads Archive, known by their content
========================  ==========================================================================
"""

from __future__ import annotations

from hpcsimkit.workloads.catalogue import CATALOGUE, CatalogueEntry, verify
from hpcsimkit.workloads.default import default_workload
from hpcsimkit.workloads.describe import Description, describe
from hpcsimkit.workloads.estimates import POPULAR_ESTIMATES, with_estimates
from hpcsimkit.workloads.lublin import BATCH, INTERACTIVE, TYPED, UNTYPED, JobClass, LublinModel
from hpcsimkit.workloads.swf import SWF_FIELDS, read_swf, swf_text, write_swf
from hpcsimkit.workloads.synthetic import burst, poisson

__all__ = [
    "BATCH",
    "CATALOGUE",
    "INTERACTIVE",
    "POPULAR_ESTIMATES",
    "SWF_FIELDS",
    "TYPED",
    "UNTYPED",
    "CatalogueEntry",
    "Description",
    "JobClass",
    "LublinModel",
    "burst",
    "default_workload",
    "describe",
    "poisson",
    "read_swf",
    "swf_text",
    "verify",
    "with_estimates",
    "write_swf",
]
