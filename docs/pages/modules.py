"""The complete reference of modules: a page for each package, with its modules in alphabetical order.

The pages are reStructuredText: in a page of Markdown, autodoc's nodes would keep a reference to the whole
environment of the build, which is then saved with each page. They are in no toctree, because furo copies the
table of contents of every page in it, with all classes and functions, to make the navigation of each page.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

import hpcsimkit
from hpcsimkit.io.catalogue import Catalogue
from pages.markdown import summary, table
from pages.public_api import public_names

CHAPTERS = (
    "jobs",
    "workloads",
    "cluster",
    "kernel",
    "policies",
    "slurm",
    "compiled",
    "results",
    "envs",
    "agents",
    "experiments",
    "engine",
    "reproductions",
    "reports",
    "cli",
    "io",
)
"""Packages of the kit, in the order in which the reference shows them."""
INTRODUCTION = """
Every module of the kit, by package. For most tasks, the [public API](../../reference/api.md) is enough.
"""


def imported_modules() -> Iterator[tuple[str, Any]]:
    """Yield every module of hpcsimkit, except those that need extras that are not installed."""
    yield "hpcsimkit", hpcsimkit
    for found in pkgutil.walk_packages(hpcsimkit.__path__, "hpcsimkit."):
        if found.name.endswith(".__main__"):
            continue
        try:
            yield found.name, importlib.import_module(found.name)
        except ModuleNotFoundError as error:
            if (error.name or "hpcsimkit").startswith("hpcsimkit"):
                raise


def packages() -> dict[str, dict[str, Any]]:
    """Return the modules of each package by name, the package itself first."""
    found: dict[str, dict[str, Any]] = {}
    for name, module in imported_modules():
        package = name if hasattr(module, "__path__") else name.rpartition(".")[0]
        found.setdefault(package, {})[name] = module
    return dict(sorted(found.items(), key=lambda item: place_of(item[0])))


def place_of(package: str) -> tuple[int, str]:
    """Return the position of a package in the reference; the root comes first."""
    chapter = package.split(".")[1:2]
    return (CHAPTERS.index(chapter[0]) + 1 if chapter else 0, package)


def package_page(modules: dict[str, Any]) -> str:
    """Return the page of one package in reStructuredText: its docstring, then its modules."""
    (package, root), *inside = modules.items()
    parts = [":orphan:\n:nosearch:\n", heading(package, "="), "A package of the :doc:`internals <index>`.\n"]
    parts.append(module_text(package, root))
    for name, module in inside:
        parts += [heading(name, "-"), module_text(name, module)]
    return "\n".join(parts)


def heading(name: str, underline: str) -> str:
    """Return a heading in reStructuredText."""
    return f"``{name}``\n{underline * (len(name) + 4)}\n"


def module_text(name: str, module: Any) -> str:
    """Return the directive for one module: its definitions in source order; public ones have own pages."""
    here = vars(module)
    apart = {each.place for each in public_names()}
    public = [
        n
        for n in here.get("__all__", ())
        if n in here and defined_in(here[n], name) and f"{name}.{n}" not in apart
    ]
    members = f"   :members: {', '.join(public)}\n" if public else ""
    return f".. automodule:: {name}\n{members}   :show-inheritance:\n"


def defined_in(thing: object, module: str) -> bool:
    """Return whether a class, function or catalogue is defined in a module, not only imported there."""
    if isinstance(thing, Catalogue):  # an attribute ``__module__`` is that of its class
        return True
    return getattr(thing, "__module__", module) == module


def index_page(found: dict[str, dict[str, Any]]) -> str:
    """Return the table of modules by package."""
    parts = ["---\norphan: true\nnosearch: true\n---\n\n# Internals", INTRODUCTION]
    for package, modules in found.items():
        rows = [(f"{{mod}}`{name}`", summary(module)) for name, module in modules.items()]
        parts += [f"## `{package}`\n", table(("Module", "Description"), rows)]
    return "\n".join(parts)
