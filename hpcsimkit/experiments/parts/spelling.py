"""The two spellings of a part: ``easy-k(4)`` in a name, and a table ``{name = "QueueWindow", slots = 8}``.

Words: the *name* of a policy is the whole text, its *parts* are joined by ``+``; each part has a *key* (a
registered word, ``module:Name``, ``file.py:Name`` or ``agent:file``) and *parameters*.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from itertools import zip_longest
from typing import Any, NamedTuple

from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.parts.trust import code_in

AGENT = "agent:"
"""Prefix of names of trained-agent files."""

LONGEST = 2000
"""Maximum length of a name [characters]."""

OF_AGENTS = {"sample": bool | None, "parts": str | None}
"""Types of the parameters of agents."""


class Part(NamedTuple):
    """A part with its parameters, as read from a text or a table.

    Examples
    --------
    >>> Part.of_text("easy-k(count=4)", "sjf+easy-k(count=4)").parameters
    {'count': 4}
    >>> Part.of_table({"slots": 8}, "QueueWindow")
    Part(key='QueueWindow', parameters={'slots': 8}, positional=[], text='QueueWindow', name='QueueWindow')
    """

    key: str
    parameters: dict[str, Any]
    positional: list[Any]
    """Values of the first parameters, which only a text gives without their names."""
    text: str
    """The part as it was written, for messages."""
    name: str
    """The whole name that the part belongs to, for messages."""

    @classmethod
    def of_text(cls, text: str, name: str) -> Part:
        """Return the part of a text ``key`` or ``key(4, parameter=value)``."""
        match = re.fullmatch(r"([^()]+)(?:\((.*)\))?", text)
        if match is None:
            raise UsageError(
                f"policy {name!r} not understood: a part needs the form name or name(parameter=value)"
            )
        positional, parameters = _arguments(match[2] or "", text)
        part = cls(match[1], parameters, positional, text, name)
        if part.is_agent and (
            positional
            or not set(parameters) <= set(OF_AGENTS)
            or not all(isinstance(value, OF_AGENTS[key]) for key, value in parameters.items())
        ):
            raise UsageError(
                f"{text!r}: parameters not understood: ({match[2]}); parameters: {', '.join(OF_AGENTS)}"
            )
        return part

    @classmethod
    def of_table(cls, table: Mapping[str, Any], default: str, key: str = "name") -> Part:
        """Return the part of a table whose `key` is its name; all other keys are parameters."""
        found = table.get(key, default)
        if not isinstance(found, str):
            raise UsageError(f"a name is needed, found {found!r}")
        return cls(found, {each: table[each] for each in table if each != key}, [], found, found)

    @property
    def is_agent(self) -> bool:
        return self.key.startswith(AGENT)

    @property
    def code(self) -> str:
        """The module or file that the part imports; empty if none."""
        return self.parameters.get("parts") or "" if self.is_agent else code_in(self.key)

    def changed(self, parameter: str, value: Any, known: Iterable[str] = ()) -> str:
        """Return the text of the part with a changed parameter; `known` are the parameters in their order.

        >>> Part.of_text("easy-k(2)", "").changed("count", 4, ["count"])
        'easy-k(count=4)'
        """
        values = dict(zip(known, self.positional, strict=False)) | self.parameters | {parameter: value}
        return f"{self.key}({', '.join(f'{key}={each}' for key, each in values.items())})"


def parts_in(name: str) -> list[Part]:
    """Return the parts of a name that are joined by ``+`` outside parentheses.

    >>> [part.text for part in parts_in("sjf+easy++ +window(8)")]
    ['sjf', 'easy++', 'window(8)']
    >>> [part.text for part in parts_in("guarded(aged(scale=1e+5),fallback=sjf)+easy")]
    ['guarded(aged(scale=1e+5),fallback=sjf)', 'easy']
    >>> [part.text for part in parts_in("fcfs + agent:my agents/best.hpcsim")]
    ['fcfs', 'agent:my agents/best.hpcsim']
    """
    if len(name) > LONGEST:
        raise UsageError(f"a policy's name has at most {LONGEST} characters, found {len(name)}")
    text, texts, depth = re.sub(r"\s*([+(),=])\s*", r"\1", name.strip()), [""], 0
    for sign, after in zip_longest(text, text[1:], fillvalue=""):
        depth += (sign == "(") - (sign == ")")
        if sign == "+" and not depth and after not in "+()":  # not a sign of "easy++", nor the last one
            texts.append("")
        else:
            texts[-1] += sign
    return [Part.of_text(each, name) for each in texts]


class Call(str):
    """The text of a call: a registered order with parameters."""


def _arguments(text: str, part: str) -> tuple[list[Any], dict[str, Any]]:
    """Return the parsed arguments ``4, name=value``: numbers, true and false, and words."""
    try:
        call = ast.parse(f"f({text})", mode="eval").body
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)):
            raise ValueError("more than one pair of parentheses")
        parameters = {_keyword(each): _value(each.value) for each in call.keywords}
        return [_value(node) for node in call.args], parameters
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        raise UsageError(f"{part!r}: parameters not understood: ({text})") from None


def _keyword(node: ast.keyword) -> str:
    if node.arg is None:
        raise ValueError("** has nothing to refer to")
    return node.arg


def _value(node: ast.expr) -> Any:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        from hpcsimkit.policies.catalogue import CATALOGUE

        if node.func.id in CATALOGUE["order"]:
            return Call(ast.unparse(node))
    if isinstance(node, ast.Attribute):
        return ast.unparse(node)  # package.module, file.py
    if isinstance(node, ast.Name):
        return {"true": True, "false": False, "none": None}.get(node.id.lower(), node.id)
    return ast.literal_eval(node)
