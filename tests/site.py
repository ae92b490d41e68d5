"""Ask the search index of the built documentation: ``python -m tests.site FOLDER``.

Ranks pages as Sphinx's ``searchtools.js`` does for the matches that count most: entries of the index, titles, and
names of objects. A match of a word in a text scores less than each of them, and entries of the index that are not
main ones, such as terms of the glossary, come after all others.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

WANTED = {
    "backfiller": "tutorials/write_a_backfiller",
    "fair share": "reference/slurm",
    "sacct": "guides/slurm_log",
    "jupyter": "notebooks/index",
    "reward": "tutorials/own_observation_and_reward",
    "gantt": "guides/paper_figures",
    "gymnasium": "guides/other_libraries",
    "swf": "guides/own_log",
}
"""The page that a query should find first."""

INTERNALS = "_generated/api/"
OBJECT, PRIORITY = 11, {0: 15, 1: 5, 2: -5}


class Index:
    """Search index of a built site.

    Parameters
    ----------
    site : path
        Folder with ``searchindex.js``.
    """

    def __init__(self, site: Path) -> None:
        text = (site / "searchindex.js").read_text(encoding="utf-8")
        self.known: dict[str, Any] = json.loads(text.removeprefix("Search.setIndex(").removesuffix(")"))

    def found(self, query: str) -> list[str]:
        """Return the pages that match a query, best first."""
        scores: dict[str, float] = {}
        names = self.known["docnames"]
        for table, most in (("indexentries", 100), ("alltitles", 15)):
            for text, places in self.known[table].items():
                if query in text.lower() and len(query) >= len(text) / 2:
                    for page, _, *main in places:
                        score = -1 if main == [False] else round(most * len(query) / len(text))
                        scores[names[page]] = max(scores.get(names[page], 0), score)
        for page, priority, name in self.objects():
            if query == name.lower():
                scores[page] = max(scores.get(page, 0), OBJECT + PRIORITY[priority])
        return sorted(scores, key=lambda page: (-scores[page], page))

    def objects(self) -> list[tuple[str, int, str]]:
        """Return page, priority and name of all objects."""
        return [
            (self.known["docnames"][page], priority, name)
            for group in self.known["objects"].values()
            for page, _, priority, _, name in group
        ]

    def pages_of_words(self) -> set[str]:
        """Return the pages with words of their texts and titles in the index."""
        numbers: set[int] = set()
        for table in ("terms", "titleterms"):
            for places in self.known[table].values():
                numbers.update(places if isinstance(places, list) else [places])
        return {self.known["docnames"][number] for number in numbers}


def complaints(site: Path) -> list[str]:
    """Return what is wrong with the search of a built site, a line each."""
    index = Index(site)
    first = {query: (index.found(query) or ["nothing"])[0] for query in WANTED}
    wrong = [
        f"{query}: {first[query]} instead of {page}" for query, page in WANTED.items() if first[query] != page
    ]
    inside = {page for page, *_ in index.objects()} | index.pages_of_words()
    return wrong + [
        f"{page}: a page of the internals" for page in sorted(inside) if page.startswith(INTERNALS)
    ]


if __name__ == "__main__":
    sys.exit("\n".join(complaints(Path(sys.argv[1]))) or None)
