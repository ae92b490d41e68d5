"""The tables of policies and stages by name, with their parameters, papers and classes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

from pages.markdown import code, parameters_in, table, without_roles

KINDS = {
    "order": "Orders: priority of the waiting jobs",
    "inspector": "Inspectors: acceptance or rejection of the selected job",
    "placement": "Placements: selection of the machines of a job",
    "backfilling": "Backfilling: jobs that may start ahead of a blocked job",
    "estimates": "Estimates: expected run times of jobs",
    "preemptor": "Preemptors: running jobs to stop for a job that does not fit",
    "tester": "Tests: waiting jobs that run for a short time",
    "gate": "Gates: jobs that are skipped until the next pass",
    "pipeline": "Predefined pipelines",
    "policy": "Complete policies, which cannot be combined with others",
    "option": "Options of the pipeline",
    "plug-in": "Plug-ins found in this environment",
}
CITATION = re.compile(r"\(([^()]*(?:\b(?:19|20)\d\d\b|\bpaper\b)[^()]*)\.\)")


def policies_page() -> str:
    """Return the tables of each kind of component."""
    from hpcsimkit.experiments.parts.catalogue import entries

    found = entries()
    assert {entry.kind for entry in found} <= set(KINDS), "a kind of policies has no heading here"
    parts = []
    for kind, heading in KINDS.items():
        of_kind = [entry for entry in found if entry.kind == kind]
        if of_kind:
            header = ("Name", "Description", "Class", "Paper", "Other names")
            parts.append(f"## {heading}\n\n" + table(header, map(policy_row, of_kind)))
        rows = [row for entry in of_kind for row in parameter_rows(entry)]
        if rows:
            parts.append(table(("Name", "Parameter", "Default", "Description"), rows))
    return "\n".join(parts)


def policy_row(entry: Any) -> tuple[str, str, str, str, str]:
    """Return the table row of a policy or stage."""
    factory = factory_of(entry)
    links = ", ".join(f"{{class}}`~{each.__module__}.{each.__name__}`" for each in classes_of(factory))
    papers = "; ".join(dict.fromkeys(papers_in(factory)))
    aliases = ", ".join(map(code, entry.aliases))
    return code(entry.name), without_roles(entry.summary), links, papers, aliases


def parameter_rows(entry: Any) -> Iterator[tuple[str, str, str, str]]:
    """Yield a table row for each parameter of a policy or stage."""
    factory = factory_of(entry)
    texts = {name: text for each in classes_of(factory) for name, text in parameters_in(each).items()}
    if not inspect.isclass(factory) and factory is not None:
        texts |= texts_of_options(factory, texts)
    parameters = inspect.signature(factory).parameters if factory is not None else {}
    for name, parameter in parameters.items():
        yield code(entry.name), code(name), code(default_text(parameter.default)), texts.get(name, "")


def texts_of_options(factory: Any, texts: dict[str, str]) -> dict[str, str]:
    """Return the descriptions of parameters that are passed to the pipeline under another name."""
    return {
        name: texts[option]
        for name, parameter in inspect.signature(factory).parameters.items()
        for option, value in factory().items()
        if value == parameter.default and option in texts
    }


def factory_of(entry: Any) -> Any:
    """Return the class or function behind a name; None for a plug-in."""
    from hpcsimkit.policies.catalogue import CATALOGUE

    return CATALOGUE.get(entry.kind, {}).get(entry.name)


def classes_of(factory: Any) -> list[type]:
    """Return the classes behind a name: that of the stage, of all parts of a pipeline, or `Pipeline` itself.

    >>> from hpcsimkit.policies.catalogue import easy_sjf, window
    >>> [each.__name__ for each in classes_of(easy_sjf)], [each.__name__ for each in classes_of(window)]
    (['EASY', 'SJF'], ['Pipeline'])
    """
    from hpcsimkit import Pipeline

    if factory is None or inspect.isclass(factory):
        return [factory] if factory else []
    made = factory()
    stages = [
        part for part in (made.values() if isinstance(made, dict) else [made]) if hasattr(part, "reset")
    ]
    inner = [getattr(stage, name, None) for stage in stages for name in ("candidates", "predictor")]
    return [type(each) for each in (*stages, *filter(None, inner))] or [Pipeline]


def papers_in(factory: Any) -> Iterator[str]:
    """Yield the citations in the docstrings of a factory and its classes: sentences in parentheses."""
    for thing in dict.fromkeys((factory, *classes_of(factory))):
        yield from (" ".join(found.split()) for found in CITATION.findall(inspect.getdoc(thing) or ""))


def default_text(default: Any) -> str:
    """Return a default as it is written in a name.

    >>> default_text(0.2), default_text(False), default_text("equal"), default_text(""), default_text(1 / 3)
    ('0.2', 'false', 'equal', '""', '0.3333')
    """
    if isinstance(default, float):
        return f"{default:.4g}"
    if default is None or isinstance(default, bool):
        return str(default).lower()
    return str(default) or '""'
