"""Logs of the Parallel Workloads Archive, identified by checksum.

The archive, https://www.cs.huji.ac.il/labs/parallel/workload/, offers these logs for research, one page per
log. It asks its users to name it as the source, to cite D. G. Feitelson, D. Tsafrir and D. Krakov,
"Experience with using the Parallel Workloads Archive", Journal of Parallel and Distributed Computing 74(10),
2014, and to acknowledge the donors of each log: ``donors`` of an entry. hpcsimkit downloads nothing and
includes no log.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from hpcsimkit.errors import WorkloadError
from hpcsimkit.io.files import sha256_of_content

__all__ = ["CATALOGUE", "CatalogueEntry", "verify"]


class CatalogueEntry(NamedTuple):
    """One log of the archive.

    Parameters
    ----------
    name : str
        Short name.
    file : str
        File name in the archive, without ``.gz``.
    machine_size : int
        Number of processors of the machine, in the unit of fields 5 and 8 of the log.
    jobs : int or None
        Number of job lines, if known.
    sha256 : str
        SHA-256 checksum of the uncompressed text.
    donors : str
        People to acknowledge for the log.
    remark : str
        Peculiarities of the log.
    """

    name: str
    file: str
    machine_size: int
    jobs: int | None
    sha256: str
    donors: str
    remark: str = ""


_ENTRIES = (
    CatalogueEntry(
        "KTH-SP2",
        "KTH-SP2-1996-2.1-cln.swf",
        100,
        28_476,
        "fba36494c4e4257f72182e8b629ebb0bcb054b3b82851ef957445bd627adcc87",
        "Lars Malinowsky",
        "the standard small log; 1.7 % of the jobs overrun their estimate",
    ),
    CatalogueEntry(
        "SDSC-SP2",
        "SDSC-SP2-1998-4.2-cln.swf",
        128,
        59_715,
        "2bb635f4b5793f52bd49ccb8fd913d95f9c5be6346925162cadcaf0117e28cf2",
        "Victor Hazlewood",
        "5 671 cancelled jobs without a run time; users and queues",
    ),
    CatalogueEntry(
        "CTC-SP2",
        "CTC-SP2-1996-3.1-cln.swf",
        338,
        77_222,
        "8e33a9b597e1ddda2d2164347bac08c9444e1a2620a7947df52f0a1622ec4cde",
        "Dan Dwyer and Steve Hotovy",
        "no requested processors; batch partition of a machine of 512",
    ),
    CatalogueEntry(
        "HPC2N",
        "HPC2N-2002-2.2-cln.swf",
        240,
        202_871,
        "77b8993c73ae438385f6c0015708251f52dc316267b03ac19a406fbea2802afa",
        "Ake Sandgren",
        "memory requests in 86 % of the jobs",
    ),
    CatalogueEntry(
        "LANL-CM5",
        "LANL-CM5-1994-4.1-cln.swf",
        1_024,
        122_060,
        "4766a62dabcc7403ec0a55534aff297203e692ddbf6637bd40100a3800f6354a",
        "Curt Canada",
        "36 % of the jobs overrun their request",
    ),
    CatalogueEntry(
        "NASA-iPSC",
        "NASA-iPSC-1993-3.1-cln.swf",
        128,
        18_239,
        "9d997a2c20a7f7b0b6d81638d756ce8b2c524c4f2e9ec78da36001743ca33d76",
        "Bill Nitzberg",
        "no estimates, nearly no queue: submit times are start times",
    ),
    CatalogueEntry(
        "Sandia-Ross",
        "Sandia-Ross-2001-1.1-cln.swf",
        1_524,
        57_882,
        "acee6b96aa76f815d9a6a81ee6d3e3026f462b6e0c340f9f4ef465e05b3c22b3",
        "Jon Stearley",
        "header keys without a space after the semicolon",
    ),
    CatalogueEntry(
        "SDSC-BLUE",
        "SDSC-BLUE-2000-4.2-cln.swf",
        1_152,
        None,
        "13892839f430583231a14bb811fd50a31b5b529eb37faacdbbefb71e73390e3e",
        "Travis Earheart and Nancy Wilkins-Diehr",
    ),
    CatalogueEntry(
        "SDSC-DS",
        "SDSC-DS-2004-2.1-cln.swf",
        1_664,
        None,
        "76814a412fa415e68ffb8cc0ae801c870988e5577e60275588050332f6b1e690",
        "Victor Hazlewood",
    ),
    CatalogueEntry(
        "SDSC-Par-96",
        "SDSC-Par-1996-3.1-cln.swf",
        416,
        None,
        "fcb46fa6462b7ac460963025749f604f28b2e813101edd082a720842e80a7aa8",
        "Reagan Moore and Allen Downey",
    ),
    CatalogueEntry(
        "LLNL-Thunder",
        "LLNL-Thunder-2007-1.1-cln.swf",
        4_008,
        None,
        "aad5a3120a6adf0342d46fb4830e022121cdfbd3de9ecdd9cf10145b8864b6a5",
        "Moe Jette",
        "submit times are start times",
    ),
    CatalogueEntry(
        "LLNL-Atlas",
        "LLNL-Atlas-2006-2.1-cln.swf",
        9_216,
        None,
        "8b3aaab739fa0bda8abaccc37c207d0b19d9d147b19e7f47a1641133a56fd07f",
        "Moe Jette",
        "submit times are start times",
    ),
    CatalogueEntry(
        "LPC-EGEE",
        "LPC-EGEE-2004-1.2-cln.swf",
        140,
        None,
        "c1ddb989e9ed9a5ad8eb29c9b5d809a1db82b3271fa141e6e118e41753f8093b",
        "Emmanuel Medernach",
        "a grid site: all jobs are serial",
    ),
    CatalogueEntry(
        "CEA-Curie",
        "CEA-Curie-2011-2.1-cln.swf",
        93_312,
        None,
        "b732a04aea71e2f154c8feee580be549d0bba1462bc91ec581944cb3dd6d442d",
        "Joseph Emeras",
        "requested and allocated processors differ much (nodes against cores)",
    ),
)

CATALOGUE: dict[str, CatalogueEntry] = {entry.name: entry for entry in _ENTRIES}
"""The logs by short name."""


def verify(path: str | os.PathLike[str]) -> CatalogueEntry:
    """Return the catalogue entry with the checksum of a file, plain or gzip, independent of its name.

    Raises
    ------
    WorkloadError
        If the file cannot be read, or no entry has its checksum.
    """
    found = sha256_of_content(path)
    for entry in CATALOGUE.values():
        if entry.sha256 == found:
            return entry
    named = next((e for e in CATALOGUE.values() if Path(path).name.startswith(e.file)), None)
    needed = f"SHA-256 {named.sha256} needed for {named.name}" if named else "a log of the catalogue needed"
    raise WorkloadError(f"{path}: {needed}, found SHA-256 {found}")
