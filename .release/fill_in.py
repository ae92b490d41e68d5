"""Write the facts of project.toml into the files that show them: ``python .release/fill_in.py``.

Each file has a section between two comments, which this program replaces. ``--check`` writes nothing, and
fails if a section is older than the facts; ``--release`` also fails while a placeholder (OWNER) is left.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

ROOT = Path(__file__).resolve().parent.parent
FACTS = ROOT / ".release" / "project.toml"
PLACEHOLDER = "OWNER"
BEGIN, END = "filled in from .release/project.toml", "end of what is filled in"
SECTION = re.compile(rf"(^[^\n]*{BEGIN}[^\n]*\n)(.*?)(^[^\n]*{END})", re.MULTILINE | re.DOTALL)

Facts = Mapping[str, Any]


def version() -> str:
    """Return the version of the product."""
    text = (ROOT / "hpcsimkit" / "_version.py").read_text(encoding="utf-8")
    return re.findall(r'^__version__ = "(.*)"$', text, re.MULTILINE)[0]


def released() -> str:
    """Return the date of the newest version in the changelog."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    dates = re.findall(r"^## \[\d+\.\d+\.\d+\] - (\d{4}-\d\d-\d\d)$", text, re.MULTILINE)
    return dates[0] if dates else ""


def authors_of_the_package(facts: Facts) -> str:
    """Return the authors in pyproject.toml."""
    names = [each.get("name") or f"{each['given-names']} {each['family-names']}" for each in facts["authors"]]
    people = [f'{{ name = "{name}", email = "{facts["contact"]}" }}' for name in names[:1]]
    people += [f'{{ name = "{name}" }}' for name in names[1:]]
    return f"authors = [{', '.join(people)}]\n"


def addresses(facts: Facts) -> str:
    """Return the table of addresses in pyproject.toml."""
    home = facts["repository"]
    rows = {
        "Documentation": facts["documentation"],
        "Repository": home,
        "Issues": f"{home}/issues",
        "Changelog": f"{home}/blob/{facts['branch']}/CHANGELOG.md",
    }
    return "[project.urls]\n" + "".join(f'{name} = "{url}"\n' for name, url in rows.items())


def citation(facts: Facts) -> str:
    """Return authors, addresses and version in CITATION.cff."""
    lines = ["authors:"]
    for each in facts["authors"]:
        lines += [
            f'  {"- " if not number else "  "}{key}: "{value}"'
            for number, (key, value) in enumerate(each.items())
        ]
    lines += [f'repository-code: "{facts["repository"]}"', f'url: "{facts["documentation"]}"']
    lines += [f"version: {version()}"]
    lines += [f"date-released: {released()}"] if released() else []
    lines += [f'doi: "{facts["doi"]}"'] if facts["doi"] else []
    return "\n".join(lines) + "\n"


def recipe(facts: Facts) -> str:
    """Return version and addresses in the conda recipe."""
    context = {
        "version": version(),
        "repository": facts["repository"],
        "documentation": facts["documentation"],
    }
    return "context:\n" + "".join(f'  {name}: "{value}"\n' for name, value in context.items())


def notebook_links(facts: Facts) -> str:
    """Return the links that open the notebooks, in Markdown."""
    owner = facts["repository"].removeprefix("https://github.com/")
    lines = ["| Notebook | Run it |", "|---|---|"]
    for path in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")):
        file = f"docs/notebooks/{path.name}"
        binder = f"https://mybinder.org/v2/gh/{owner}/{facts['branch']}?labpath={quote(file, safe='')}"
        colab = f"https://colab.research.google.com/github/{owner}/blob/{facts['branch']}/{file}"
        lines.append(f"| {path.stem.replace('_', ' ')} | [Binder]({binder}), [Colab]({colab}) |")
    return "\n" + "\n".join(lines) + "\n\n"


SECTIONS: Mapping[str, tuple[Callable[[Facts], str], ...]] = {
    "pyproject.toml": (authors_of_the_package, addresses),
    "CITATION.cff": (citation,),
    ".release/conda/recipe.yaml": (recipe,),
    "docs/notebooks/index.md": (notebook_links,),
}
"""The sections of each file, in order."""


def filled(text: str, sections: tuple[Callable[[Facts], str], ...], facts: Facts) -> str:
    """Return the text of a file with its sections filled in."""
    waiting = iter(sections)
    return SECTION.sub(lambda match: match[1] + next(waiting)(facts) + match[3], text)


def main(flags: list[str]) -> str | None:
    """Fill in all files, or check them; return a complaint."""
    facts = tomllib.loads(FACTS.read_text(encoding="utf-8"))
    if "--release" in flags and PLACEHOLDER in str(facts):
        return (
            f"{FACTS.relative_to(ROOT)}: {PLACEHOLDER} is a placeholder: the facts of the project are needed"
        )
    old = []
    for name, sections in SECTIONS.items():
        path = ROOT / name
        text = path.read_text(encoding="utf-8")
        if len(SECTION.findall(text)) != len(sections):
            return f"{name}: {len(sections)} sections '{BEGIN}' are needed"
        new = filled(text, sections, facts)
        old += [name] * (new != text)
        if not flags:
            path.write_text(new, encoding="utf-8")
    if flags and old:
        return f"older than {FACTS.relative_to(ROOT)}: {', '.join(old)}; python .release/fill_in.py"
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
