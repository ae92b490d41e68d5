"""The tables of Slurm's parameters, and what the simulation makes of each."""

from __future__ import annotations

from itertools import groupby

from pages.markdown import code, table


def slurm_parameters_page() -> str:
    """Return a table of each kind of parameters, and those without effect by their reason."""
    from hpcsimkit.slurm.parameters import TABLES

    parts = []
    for title, meanings in TABLES.values():
        rows = [(code(name), meaning.text) for name, meaning in meanings.items() if meaning.followed]
        parts.append(f"## {title}\n\n" + table(("Parameter", "Here"), rows))
        others = [(meaning.text, name) for name, meaning in meanings.items() if not meaning.followed]
        for text, group in groupby(others, key=lambda each: each[0]):
            names = ", ".join(code(name) for _, name in group)
            parts.append(f"Without effect ({text}): {names}.\n")
    return "\n".join(parts)
