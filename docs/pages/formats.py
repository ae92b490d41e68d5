"""The table of file formats."""

from __future__ import annotations

from pages.markdown import code, table


def formats_page() -> str:
    """Return the table of the formats of files that the kit reads."""
    from hpcsimkit.io.formats import Format

    return table(("Format", "File"), [(code(form.name), form.value) for form in Format])
