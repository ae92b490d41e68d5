"""The header of an SWF file: comment lines of the form ``; Key: value``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from hpcsimkit.io.units import is_whole_number
from hpcsimkit.jobs.workload import Workload

__all__ = [
    "SIZE_KEYS",
    "former_steps",
    "header_number",
    "header_text",
    "header_to_write",
    "machine_size_of",
    "read_header",
    "unclear_number",
]

SIZE = re.compile(
    r"\s*(?:(\d{1,3}(?:[,'_ \u00a0\u2009\u202f]\d{3})+)|0*(\d{1,12})(?:\.0*)?)(?=[,;:.]?(?:\s|$)|\s*\(|\))"
)
"""A number with or without separators of thousands, at the beginning of a value."""

KEY = re.compile(r";+[ \t]{0,2}([A-Za-z][\w ./-]{0,60}?)[ \t]*:(?!//)[ \t]*(.*)")
FREE_TEXT = "Comment"
PROVENANCE = "Provenance"
SIZE_KEYS = ("MaxProcs", "MaxNodes")
"""Keys of the machine size, by precedence: fields 5 and 8 are numbers of processors."""


def read_header(comments: Iterable[bytes]) -> dict[str, str]:
    """Return the header in comment lines; repeated keys and continuation lines are joined by newlines.

    >>> read_header([b"; Queue: 1 short", b";Queue: 2 long", b";        (at night)", b"; Note: \\xe5"])
    {'Queue': '1 short\\n2 long\\n(at night)', 'Note': 'å'}
    """
    values: dict[str, list[str]] = {}
    key = FREE_TEXT
    for comment in comments:
        text = _decode(comment)
        match = KEY.fullmatch(text)
        if match:
            key = match[1]
            values.setdefault(key, []).append(match[2].strip())
        elif text.strip("; \t"):
            values.setdefault(key, []).append(text.lstrip(";").strip())
    return {key: "\n".join(parts) for key, parts in values.items()}


def header_text(header: Mapping[str, str]) -> str:
    """Return the comment lines of a header; each line of a value is written with its key."""
    lines = (f"; {key}: {line}".rstrip() for key, value in header.items() for line in value.split("\n"))
    return "".join(f"{line}\n" for line in lines)


def machine_size_of(header: Mapping[str, str]) -> int | None:
    """Return the number at the beginning of ``MaxProcs``, else of ``MaxNodes``, else None.

    If ``MaxProcs`` has a number that is not understood, the size is unknown.

    >>> machine_size_of({"MaxNodes": "338 (batch partition; 512 total)"})
    338
    >>> machine_size_of({"MaxProcs": "1,024", "MaxNodes": "64"}), machine_size_of({"MaxProcs": "1k"})
    (1024, None)
    """
    for key in SIZE_KEYS:
        if (size := header_number(header, key)) is not None or unclear_number(header, key):
            return size
    return None


def header_number(header: Mapping[str, str], key: str) -> int | None:
    """Return the number with which a value begins if it is a valid number of processors, 1 to 2^31 - 1.

    It may have separators of thousands; a number is never read by a part of it.

    >>> [header_number({"MaxProcs": text}, "MaxProcs") for text in ("1 024", "128.0", "1.5k", "0x40", "-1")]
    [1024, 128, None, None, None]
    """
    found = SIZE.match(_values(header).get(key.lower(), ""))
    digits = re.sub(r"\D", "", found[1] or found[2]) if found else ""
    return int(digits) if is_whole_number(digits) and 0 < int(digits) < 2**31 else None


def unclear_number(header: Mapping[str, str], key: str) -> str:
    """Return a value that has a digit, but no number that is understood; else, or if unset, an empty text.

    >>> [unclear_number({"MaxProcs": text}, "MaxProcs") for text in ("~1024", "1,024", "-1", "0", "unknown")]
    ['~1024', '', '', '', '']
    """
    text = _values(header).get(key.lower(), "").strip()
    known = re.fullmatch(r"(0+|-1)(\.0*)?", text) or header_number(header, key) is not None
    return text if re.search(r"\d", text) and not known else ""


def header_to_write(workload: Workload) -> dict[str, str]:
    """Return a workload's header with updated numbers of jobs, machine size and provenance."""
    jobs = str(len(workload))
    header = {"Version": "2.2", **workload.header, "MaxJobs": jobs, "MaxRecords": jobs}
    if machine_size_of(header) != workload.machine_size:
        sizes = [key.lower() for key in SIZE_KEYS]
        header = {key: value for key, value in header.items() if key.lower() not in sizes}
        if workload.machine_size:
            header |= dict.fromkeys(reversed(SIZE_KEYS), str(workload.machine_size))
    if workload.provenance:
        header[PROVENANCE] = "\n".join(workload.provenance)
    return header


def former_steps(header: Mapping[str, str]) -> list[str]:
    """Return the provenance that :func:`header_to_write` recorded in a header."""
    return header[PROVENANCE].split("\n") if PROVENANCE in header else []


def _values(header: Mapping[str, str]) -> dict[str, str]:
    return {key.lower(): value for key, value in header.items()}


def _decode(text: bytes) -> str:
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError:
        return text.decode("latin-1")
