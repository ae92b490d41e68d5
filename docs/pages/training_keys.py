"""The keys of training files."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, get_args, get_origin

import hpcsimkit
from pages.markdown import code, parameters_in, summary, table


def training_page() -> str:
    """Return the tables of all keys of training files."""
    from hpcsimkit.experiments.training.training import EpisodeTable, Training, ValidationTable

    parts = ["## Top-level keys\n", key_table(top_level_keys()), "## `[generate]`\n"]
    parts += [key_table(keys_of_model(Training.inner["generate"]))]
    parts += ["## `[episodes]`\n", key_table(keys_of_model(EpisodeTable))]
    parts += [part_section(*both) for both in zip(parts_of("order"), parts_of("dispatch"), strict=True)]
    parts += ["## `[trainer]`\n", *trainer_sections()]
    parts += ["## `[seats]`\n", "Further seats for the algorithm `together`: a table of each, such as"]
    parts += [
        "`[seats.inspector]`, with tables `encoder`, `mask`, `reward` and `trainer` like those above.\n"
    ]
    parts += ["## `[validation]`\n", key_table(keys_of_model(ValidationTable))]
    return "\n".join(parts)


def parts_of(stage: str) -> Sequence[Any]:
    """Return the kinds of components of a training: encoder, mask, reward."""
    from hpcsimkit.experiments.parts.learner_parts import Kind

    return Kind.of_seat(stage)


def key_table(keys: Mapping[str, tuple[str, str, str]]) -> str:
    """Return a table of keys with their defaults, values and descriptions."""
    header = ("Key", "Default", "Values", "Description")
    return table(header, [(code(name), *facts) for name, facts in keys.items()])


def top_level_keys() -> dict[str, tuple[str, str, str]]:
    """Return the keys outside all tables: those of the training, then those of the simulation."""
    from hpcsimkit.experiments.source import Source
    from hpcsimkit.experiments.training.training import Training

    own = set(Training.__annotations__) | {"seed"}
    tables = {*Training.inner, "encoder", "mask", "reward", "trainer", "problem", "seats"}
    keys = {name: key for name, key in keys_of_model(Training).items() if name not in tables}
    first = {name: key for name, key in keys.items() if name in own}
    return first | {name: key for name, key in keys.items() if name in Source.model_fields}


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
        f"## `[{part.table}]`\n",
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
    from hpcsimkit.experiments.parts import learner_parts as training_parts

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
    from hpcsimkit.agents.training.catalogue import TRAINERS, problem_of, settings_of, trainer_named
    from hpcsimkit.agents.training.old_names import SETTINGS

    groups: dict[Any, list[str]] = {}
    for name in TRAINERS:
        groups.setdefault(settings_of(trainer_named(name)), []).append(name)
    lines = ["`algorithm` is the learning algorithm; by default `ppo`. All other keys are its settings.\n"]
    rows = [(code(name), summary(trainer_named(name))) for name in TRAINERS]
    lines.append(table(("`algorithm`", "Description"), rows))
    for settings, names in groups.items():
        lines += [f"### {', '.join(map(code, names))}\n", key_table(keys_of_maker(settings))]
    problems: dict[Any, list[str]] = {}
    for name in TRAINERS:
        problems.setdefault(problem_of(trainer_named(name)), []).append(name)
    for problem, names in problems.items():
        if problem is not None:
            lines += [
                f"### `[problem]` of {', '.join(map(code, names))}\n",
                key_table(keys_of_maker(problem)),
            ]
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
