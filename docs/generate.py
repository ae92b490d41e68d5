"""Generated pages: metrics, policies, command line, keys of training files, modules."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import hpcsimkit

COMMAND = "python -m hpcsimkit.run"
PACKAGES = tuple(
    f"hpcsimkit.{name}"
    for name in (
        "jobs",
        "workloads",
        "cluster",
        "kernel",
        "policies",
        "results",
        "envs",
        "agents",
        "experiments",
        "reproductions",
        "reports",
        "cli",
        "io",
    )
)
"""Packages of the kit, in the order in which the reference shows them."""
KINDS = {
    "order": "Orders: priority of the waiting jobs",
    "inspector": "Inspectors: acceptance or rejection of the selected job",
    "placement": "Placements: selection of the machines of a job",
    "backfilling": "Backfilling: jobs that may start ahead of a blocked job",
    "estimates": "Estimates: expected run times of jobs",
    "pipeline": "Predefined pipelines",
    "policy": "Complete policies, which cannot be combined with others",
    "option": "Options of the pipeline",
    "plug-in": "Plug-ins found in this environment",
}


def write_all(folder: Path) -> None:
    """Write all generated pages to a folder; unchanged files are not rewritten."""
    pages = {
        "metrics.md": metrics_page(),
        "policies.md": policies_page(),
        "cli.md": cli_page(),
        "training.md": training_page(),
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
    """Return text for a table cell."""
    return " ".join(text.split()).replace("|", "\\|")


def code(text: str) -> str:
    """Return text as inline code."""
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
    from hpcsimkit.results.metrics import METRICS

    better = {"lower": "lower", "higher": "higher", "none": "neither"}
    return table(
        ("Name", "Unit", "Description", "Formula", "Better"),
        [
            (code(m.name), m.unit, m.summary, code(m.formula), better[m.direction])
            for m in METRICS.values()
        ],
    )  # fmt: skip


# --- policies --------------------------------------------------------------------------------------------


def policies_page() -> str:
    """Return a table of names for each kind of component."""
    from hpcsimkit.experiments.registry import entries

    found = entries()
    assert {entry.kind for entry in found} <= set(KINDS), "a kind of policies has no heading here"
    return "\n".join(
        f"## {heading}\n\n" + table(("Name", "Description", "Other names"), rows)
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
            parts.append(table((title, "Description"), rows))
    return "\n".join(parts)


def help_text(text: str) -> str:
    """Return a help text in Markdown: paragraphs are kept, command lines become one block."""
    paragraphs = inspect.cleandoc(text.replace("\b", "").replace("\f", "")).split("\n\n")
    return "\n".join(paragraph_text(paragraph.strip("\n")) for paragraph in paragraphs)


def paragraph_text(paragraph: str) -> str:
    """Return one paragraph of a help text in Markdown."""
    lines = [line.strip() for line in paragraph.splitlines()]
    commands = [line for line in lines if line.startswith(COMMAND)]
    words = plain("\n".join(line for line in lines if line not in commands))
    return words + "\n" + ("\n```text\n" + "\n".join(commands) + "\n```\n" if commands else "")


# --- keys of training files ------------------------------------------------------------------------------


def training_page() -> str:
    """Return the tables of all keys of training files."""
    from hpcsimkit.experiments.training import EpisodeTable, Training, ValidationTable

    parts = ["## Top-level keys\n", key_table(top_level_keys()), "## `[generate]`\n"]
    parts += [key_table(keys_of_model(Training.inner["generate"]))]
    parts += ["## `[episodes]`\n", key_table(keys_of_model(EpisodeTable))]
    parts += [part_section(*both) for both in zip(parts_of("order"), parts_of("dispatch"), strict=True)]
    parts += ["## `[trainer]`\n", *trainer_sections()]
    parts += ["## `[validation]`\n", key_table(keys_of_model(ValidationTable))]
    return "\n".join(parts)


def parts_of(stage: str) -> Sequence[Any]:
    """Return the kinds of components of a training: encoder, mask, reward."""
    from hpcsimkit.experiments.training_parts import Part

    return Part.all(stage)


def key_table(keys: Mapping[str, tuple[str, str, str]]) -> str:
    """Return a table of keys with their defaults, values and descriptions."""
    header = ("Key", "Default", "Values", "Description")
    return table(header, [(code(name), *facts) for name, facts in keys.items()])


def top_level_keys() -> dict[str, tuple[str, str, str]]:
    """Return the keys outside all tables: those of the training, then those of the simulation."""
    from hpcsimkit.experiments.experiment import Experiment
    from hpcsimkit.experiments.training import Training
    from hpcsimkit.experiments.training_source import Source

    own = set(Training.__annotations__) | {"seed"}
    tables = {*Training.inner, "encoder", "mask", "reward", "trainer"}
    simulated, trained = keys_of_model(Experiment), keys_of_model(Training)
    shared = {name: simulated[name] for name in Source.model_fields if name not in own | tables}
    return {name: key for name, key in trained.items() if name in own - tables} | shared


def keys_of_model(model: Any) -> dict[str, tuple[str, str, str]]:
    """Return the keys of a table checked by pydantic."""
    texts = parameters_in(model)
    return {
        name: (code(shown(field.default)), range_of(field), texts.get(name, ""))
        for name, field in model.model_fields.items()
    }


def part_section(part: Any, of_dispatch: Any) -> str:
    """Return the section of encoders, masks or rewards, with the parameters of each."""
    usual = code(part.default)
    if of_dispatch.default != part.default:
        usual += f", for the stage `dispatch`: {code(of_dispatch.default)}"
    lines = [
        f"## `[{part.kind}]`\n",
        f"`name` selects one of the following; by default {usual}. All other keys are its parameters.\n",
    ]
    for name, maker in sorted(part.known.items()):
        keys, given = keys_of_maker(maker), given_to(maker)
        lines.append(f"### `{name}`\n\n" + summary(maker).replace("`name`", name) + "\n")
        lines += [key_table(keys)] if keys else []
        if given:
            lines.append(f"{', '.join(map(code, given))}: set by the training; not keys of this table.\n")
    return "\n".join(lines)


def given_to(maker: Any) -> list[str]:
    """Return the parameters of a component that are determined by other settings of the training."""
    return [
        name for name in inspect.signature(maker).parameters if name in ("slots", "machines", "resources")
    ]


def keys_of_maker(maker: Any) -> dict[str, tuple[str, str, str]]:
    """Return the parameters of a class with the ranges checked by a training."""
    from hpcsimkit.experiments import training_parts

    hints, texts, found = training_parts._hints(maker), parameters_in(maker), {}
    for name, parameter in inspect.signature(maker).parameters.items():
        if name in given_to(maker):
            continue
        hint, default = training_parts._field(name, hints.get(name, Any), parameter.default, ours=True)
        may_be = "name of a policy" if hints.get(name) is hpcsimkit.Policy else range_of(field_of(hint))
        found[name] = ("required" if default is ... else code(shown(default)), may_be, texts.get(name, ""))
    return found


def field_of(hint: Any) -> Any:
    """Return a type with its range as a field of pydantic."""
    from pydantic.fields import FieldInfo

    return FieldInfo.from_annotation(hint)


def trainer_sections() -> list[str]:
    """Return the settings of all trainers, grouped by class of settings."""
    from hpcsimkit.agents.training.catalogue import TRAINERS, settings_of, trainer_named
    from hpcsimkit.agents.training.old_names import SETTINGS

    groups: dict[Any, list[str]] = {}
    for name in TRAINERS:
        groups.setdefault(settings_of(trainer_named(name)), []).append(name)
    lines = ["`algorithm` is the learning algorithm; by default `ppo`. All other keys are its settings.\n"]
    rows = [(code(name), summary(trainer_named(name))) for name in TRAINERS]
    lines.append(table(("`algorithm`", "Description"), rows))
    for settings, names in groups.items():
        lines += [f"### {', '.join(map(code, names))}\n", key_table(keys_of_maker(settings))]
    former = [(code(old), code(new)) for old, new in SETTINGS.items()]
    lines += ["### Former names of settings\n", table(("Former name", "Name"), former)]
    return lines


def shown(default: Any) -> str:
    """Return a default in TOML; empty if TOML has no such value.

    >>> shown((64, 64)), shown("tanh"), shown(False), shown(None)
    ('[64, 64]', '"tanh"', 'false', '')
    """
    if isinstance(default, list | tuple):
        return f"[{', '.join(map(shown, default))}]"
    if isinstance(default, str):
        return f'"{default}"'
    if isinstance(default, float):
        return str(round(default, 4))
    return str(default).lower() if isinstance(default, int) else ""


def range_of(field: Any) -> str:
    """Return a text with the type and range of a value.

    >>> from typing import Annotated, Literal
    >>> from pydantic import Field
    >>> range_of(field_of(Annotated[int, Field(ge=1)])), range_of(field_of(Literal["run", "kill"]))
    ('integer >= 1', '`"run"`, `"kill"`')
    """
    choices = get_args(field.annotation) if get_origin(field.annotation) is Literal else ()
    if choices:
        return ", ".join(code(shown(choice)) for choice in choices)
    inner = [field_of(each) for each in get_args(field.annotation) if get_origin(each) is Annotated]
    optional = inner if type(None) in get_args(field.annotation) else []
    limits = {type(limit).__name__: limit for each in (field, *optional) for limit in each.metadata}
    signs = (("Ge", "ge", ">="), ("Gt", "gt", ">"), ("Le", "le", "<="), ("Lt", "lt", "<"))
    ranges = [f"{sign} {getattr(limits[name], of)}" for name, of, sign in signs if name in limits]
    return " ".join([type_words(field.annotation), ", ".join(r for r in ranges if "None" not in r)]).strip()


def type_words(hint: Any) -> str:
    """Return the name of a type in TOML, without None.

    >>> type_words(int | None), type_words(list[str]), type_words(tuple[int, ...])
    ('integer', 'string list', 'integer list')
    """
    words: dict[Any, str] = {int: "integer", float: "number", str: "string", bool: "boolean"}
    words |= dict.fromkeys((dict, Mapping), "table")
    origin, inner = get_origin(hint), [each for each in get_args(hint) if each not in (type(None), ...)]
    if origin in (list, tuple):
        return f"{type_words(inner[0])} list"
    if origin in (dict, Mapping) or not inner:
        return words.get(origin or hint, getattr(hint, "__name__", str(hint)))
    return type_words(inner[0]) if origin is Annotated else " or ".join(map(type_words, inner))


def parameters_in(thing: Any) -> dict[str, str]:
    """Return the descriptions of parameters in docstrings, by name, including those of base classes."""
    found: dict[str, str] = {}
    for each in reversed(inspect.getmro(thing)):
        text = inspect.cleandoc(vars(each).get("__doc__") or "")
        section = re.search(r"^Parameters\n-+\n(.*?)(?=^\w[\w ]*\n-+$|\Z)", text, re.MULTILINE | re.DOTALL)
        for names, words in re.findall(
            r"^(\w[^\n]*)\n((?: +[^\n]*\n?|\n)*)", section[1] if section else "", re.MULTILINE
        ):
            for name in names.partition(":")[0].split(","):
                found[name.strip()] = without_roles(" ".join(words.split()))
    return found


# --- modules ---------------------------------------------------------------------------------------------


def modules() -> list[str]:
    """Return the names of all importable modules."""
    return [name for name, _ in imported_modules()]


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


def module_page(name: str) -> str:
    """Return the page of one module: its own definitions, in source order."""
    module = importlib.import_module(name)
    here = vars(module)
    public = [n for n in here.get("__all__", ()) if n in here and defined_in(here[n], name)]
    members = f"   :members: {', '.join(public)}\n" if public else ""
    return (
        f"# `{name}`\n\n```{{eval-rst}}\n.. automodule:: {name}\n{members}   :show-inheritance:\n```\n"
    )  # fmt: skip


def defined_in(thing: object, module: str) -> bool:
    """Return whether a class, function or constant is defined in a module, not only imported there."""
    return getattr(thing, "__module__", module) == module


def modules_page() -> str:
    """Return the table of modules by package."""
    parts = ["# Modules\n"]
    found = dict(imported_modules())
    for package in ("hpcsimkit", *PACKAGES):
        inside = [n for n in found if n.startswith(f"{package}.") and package_of(n) == package]
        rows = [(f"[`{n}`]({n}.md)", summary(found[n])) for n in (package, *inside) if n in found]
        parts += [f"## `{package}`\n", table(("Module", "Description"), rows)]
    hidden = "\n".join(found)
    return "\n".join(parts) + f"\n```{{toctree}}\n:hidden:\n\n{hidden}\n```\n"


def package_of(name: str) -> str:
    """Return the package that lists a module."""
    return next((package for package in PACKAGES if (name + ".").startswith(package + ".")), "hpcsimkit")
