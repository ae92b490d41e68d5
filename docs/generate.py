"""Pages of the reference that are made from the code: metrics, policies, command line, modules."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import hpcsimkit

COMMAND = "python -m hpcsimkit.run"
ROOMS = ("workloads", "policies", "agents", "pictures", "campaigns", "commands")
PACKAGES = tuple(f"hpcsimkit.{room}" for room in ROOMS)
KINDS = {
    "order": "Orders: which waiting job is first",
    "inspector": "Inspectors: may the selected job go on",
    "placement": "Placements: on which machines a job runs",
    "backfilling": "Backfilling: what may start although a job before it does not fit",
    "estimates": "Estimates: how long jobs are believed to take",
    "pipeline": "Ready-made pipelines",
    "policy": "Whole policies, which are not joined with others",
    "option": "Options of the pipeline",
    "plug-in": "Plug-ins found in this environment",
}


def write_all(folder: Path) -> None:
    """Write every generated page into a folder; files that would not change are left alone."""
    pages = {
        "metrics.md": metrics_page(),
        "policies.md": policies_page(),
        "cli.md": cli_page(),
        **{f"api/{name}.md": module_page(name) for name in modules()},
        "api/index.md": modules_page(),
    }
    for name, text in pages.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    for old in set(folder.glob("api/*.md")) - {folder / name for name in pages}:
        old.unlink()


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cell(text) for text in line) + " |" for line in lines) + "\n"


def cell(text: str) -> str:
    """Return text that stays within its cell."""
    return " ".join(text.split()).replace("|", "\\|")


def code(text: str) -> str:
    """Return text in the typeface of code."""
    return f"`{text}`" if text else ""


def plain(text: str) -> str:
    """Return text in which ``<name>`` is not taken for a tag."""
    return text.replace("<", "\\<")


def summary(thing: object) -> str:
    """Return the first paragraph of a docstring as plain text."""
    return without_roles((inspect.getdoc(thing) or "").split("\n\n")[0].replace("\n", " "))


def without_roles(text: str) -> str:
    """Return a docstring's text in Markdown.

    >>> without_roles("see :class:`~a.b.F1` and ``x``")
    'see `F1` and `x`'
    """
    return re.sub(r":\w+:`(?:~[\w.]*\.)?([^`]*)`", r"`\1`", text).replace("``", "`")


# --- metrics ---------------------------------------------------------------------------------------------


def metrics_page() -> str:
    """Return the table of metrics."""
    from hpcsimkit.metrics import METRICS

    better = {"lower": "lower", "higher": "higher", "none": "neither"}
    return table(
        ("Name", "Unit", "What it is", "Formula", "Better"),
        [
            (code(m.name), m.unit, m.summary, code(m.formula), better[m.direction])
            for m in METRICS.values()
        ],
    )  # fmt: skip


# --- policies --------------------------------------------------------------------------------------------


def policies_page() -> str:
    """Return a table of names for each kind of part."""
    from hpcsimkit.registry import entries

    found = entries()
    assert {entry.kind for entry in found} <= set(KINDS), "a kind of policies has no heading here"
    return "\n".join(
        f"## {heading}\n\n" + table(("Name", "What it is", "Other names"), rows)
        for kind, heading in KINDS.items()
        if (rows := [policy_row(entry) for entry in found if entry.kind == kind])
    )


def policy_row(entry: Any) -> tuple[str, str, str]:
    """Return one line of a table of policies."""
    return code(entry.name), without_roles(entry.summary), ", ".join(map(code, entry.aliases))


# --- command line ----------------------------------------------------------------------------------------


def cli_page() -> str:
    """Return usage, description, arguments and options of every command."""
    import typer

    from hpcsimkit.run import app

    program = typer.main.get_command(app)
    context = program.make_context(COMMAND, [], resilient_parsing=True)
    parts = [command_section(program, context, "Without a command"), *sub_commands(program, context)]
    return "\n".join(parts)


def sub_commands(group: Any, context: Any, prefix: str = "") -> Iterator[str]:
    """Yield the sections of the commands of a group, and of the groups in it."""
    for name, command in group.commands.items():
        own = type(context)(command, info_name=name, parent=context)
        yield command_section(command, own, f"`{prefix}{name}`")
        if hasattr(command, "commands"):
            yield from sub_commands(command, own, f"{prefix}{name} ")


def command_section(command: Any, context: Any, heading: str) -> str:
    """Return one command's section."""
    usage = command.get_usage(context).removeprefix("Usage: ")
    parts = [f"## {heading}\n", f"```text\n{usage}\n```\n", help_text(command.help or "")]
    parts.append(help_text(command.epilog or ""))
    for kind, title in (("argument", "Argument"), ("option", "Option")):
        of_kind = [p for p in command.get_params(context) if p.param_type_name == kind]
        records = [parameter.get_help_record(context) for parameter in of_kind]
        rows = [(code(declaration), plain(help_)) for declaration, help_ in filter(None, records)]
        if rows:
            parts.append(table((title, "What it does"), rows))
    return "\n".join(parts)


def help_text(text: str) -> str:
    """Return a help text in Markdown: paragraphs stay, lines of commands become one block."""
    paragraphs = inspect.cleandoc(text.replace("\b", "").replace("\f", "")).split("\n\n")
    return "\n".join(paragraph_text(paragraph.strip("\n")) for paragraph in paragraphs)


def paragraph_text(paragraph: str) -> str:
    """Return one paragraph of a help text in Markdown."""
    lines = [line.strip() for line in paragraph.splitlines()]
    commands = [line for line in lines if line.startswith(COMMAND)]
    words = plain("\n".join(line for line in lines if line not in commands))
    return words + "\n" + ("\n```text\n" + "\n".join(commands) + "\n```\n" if commands else "")


# --- modules ---------------------------------------------------------------------------------------------


def modules() -> list[str]:
    """Return the names of all modules that can be imported here."""
    return [name for name, _ in imported_modules()]


def imported_modules() -> Iterator[tuple[str, Any]]:
    """Yield every module of the kit; one that needs an extra that is not installed is left out."""
    yield "hpcsimkit", hpcsimkit
    for found in pkgutil.walk_packages(hpcsimkit.__path__, "hpcsimkit."):
        if found.name.endswith(".__main__"):
            continue
        try:
            yield found.name, importlib.import_module(found.name)
        except ModuleNotFoundError as error:
            if (error.name or "hpcsimkit").startswith("hpcsimkit"):
                raise


def module_page(name: str) -> str:
    """Return the page of one module: what it defines itself, in the order of its source."""
    module = importlib.import_module(name)
    here = vars(module)
    public = [n for n in here.get("__all__", ()) if n in here and defined_in(here[n], name)]
    members = f"   :members: {', '.join(public)}\n" if public else ""
    return (
        f"# `{name}`\n\n```{{eval-rst}}\n.. automodule:: {name}\n{members}   :show-inheritance:\n```\n"
    )  # fmt: skip


def defined_in(thing: object, module: str) -> bool:
    """Tell whether a class, function or constant belongs to a module, and is not just imported there."""
    return getattr(thing, "__module__", module) == module


def modules_page() -> str:
    """Return the list of modules, a line each, by package."""
    parts = ["# Modules\n"]
    found = dict(imported_modules())
    for package in ("hpcsimkit", *PACKAGES):
        inside = [n for n in found if n.startswith(f"{package}.") and package_of(n) == package]
        rows = [(f"[`{n}`]({n}.md)", summary(found[n])) for n in (package, *inside) if n in found]
        parts += [f"## `{package}`\n", table(("Module", "What it is"), rows)]
    hidden = "\n".join(found)
    return "\n".join(parts) + f"\n```{{toctree}}\n:hidden:\n\n{hidden}\n```\n"


def package_of(name: str) -> str:
    """Return the package in whose list a module stands."""
    return next((package for package in PACKAGES if (name + ".").startswith(package + ".")), "hpcsimkit")
