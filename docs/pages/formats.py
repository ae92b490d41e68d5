"""The table of file formats."""

from __future__ import annotations

from pages.markdown import code, table


def formats_page() -> str:
    """Return the table of the formats of files that the kit reads."""
    from hpcsimkit.io.formats import Format

    return table(("Format", "File"), [(code(form.name), form.value) for form in Format])


def logs_page() -> str:
    """Return the table of the formats of logs that are read."""
    from hpcsimkit.workloads.readers.logs import LOG_FORMATS, READERS

    names = {reader.rpartition(":")[2]: name for name, reader in READERS.places.items()}
    rows = []
    for form in LOG_FORMATS:
        mark = form.mark or f"names a column {' or '.join(map(code, form.marks))}"
        function = form.read.__name__
        reader = f"{{func}}`~{form.read.__module__}.{function}`"
        rows.append((form.name, mark, form.requests, f"{reader}, {code(names[function])}"))
    return table(("Format", "Mark", "Requests", "Reader, `--reader`"), rows)


def named_logs_page() -> str:
    """Return the table of the formats without a reader, and what to do with them."""
    from hpcsimkit.io.known_formats import NAMED_FORMATS

    return table(
        ("Format", "Mark", "What to do"), [(form.name, form.mark, form.advice) for form in NAMED_FORMATS]
    )


OF_SLURM = ("sacct", "squeue", "sinfo", "scontrol", "Slurm (jobcomp", "UB Slurm")
"""Words in the names of formats that Slurm and its tools print."""


def slurm_page() -> str:
    """Return the table of the formats that Slurm prints."""
    from hpcsimkit.io.known_formats import NAMED_FORMATS
    from hpcsimkit.workloads.readers.logs import LOG_FORMATS

    rows = [
        (form.name, form.mark or f"names a column {' or '.join(map(code, form.marks))}", "a log")
        for form in LOG_FORMATS
        if any(word in form.name for word in OF_SLURM)
    ]
    rows += [
        (form.name, form.mark, form.advice)
        for form in NAMED_FORMATS
        if any(word in form.name for word in OF_SLURM)
    ]
    return table(("Output", "Mark", "Use"), rows)
