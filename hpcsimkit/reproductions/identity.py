"""What something is, in words that JSON can say: equal words, equal outcome."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import partial
from typing import Any

import numpy as np

from hpcsimkit.policy import Parameters
from hpcsimkit.workload import Workload

__all__ = ["fingerprint", "identity_of"]


def fingerprint(value: Any) -> str:
    """Return a number, in hexadecimal, that is another one if anything about a value is.

    >>> one, same, other = ({"seed": 1}, {"seed": 1}, {"seed": 2})
    >>> fingerprint(one) == fingerprint(same), fingerprint(one) == fingerprint(other)
    (True, False)
    """
    words = json.dumps(identity_of(value), sort_keys=True)
    return hashlib.sha256(words.encode()).hexdigest()[:32]


def identity_of(value: Any) -> Any:
    """Return what a value is made of: numbers, words, lists and dictionaries.

    Workloads and arrays are their hashes, policies, encoders and the like their parameters, functions their
    names (what is in them is not looked at).

    Examples
    --------
    >>> from hpcsimkit.agents.episodes import Fixed
    >>> w = Workload({"submit_time": [0], "run_time": [9], "nodes": [1]})
    >>> identity_of(Fixed(w, 4))["workload"] == w.hash
    True
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Workload):
        return value.hash
    if isinstance(value, np.ndarray):
        return hashlib.sha256(repr((value.dtype, value.shape)).encode() + value.tobytes()).hexdigest()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {str(key): identity_of(each) for key, each in value.items()}
    if isinstance(value, Sequence):
        return [identity_of(each) for each in value]
    if isinstance(value, set | frozenset):
        return sorted(map(str, value))
    return {"is": _name(value), **identity_of(_parts(value))}


def _parts(value: Any) -> dict[str, Any]:
    """Return the parts of an object that decide what it does, without those that are as by default.

    So what is done stays done where a parameter is added.
    """
    if isinstance(value, partial):
        return {"arguments": value.args, **value.keywords}
    if isinstance(value, Parameters):
        parameters = inspect.signature(type(value)).parameters
        defaults = {name: each.default for name, each in parameters.items() if hasattr(value, name)}
    elif is_dataclass(value):
        defaults = {field.name: field.default for field in fields(value) if field.init and field.compare}
    else:
        defaults = {}
    return {
        name: getattr(value, name)
        for name, default in defaults.items()
        if _is_absent(default) or identity_of(getattr(value, name)) != identity_of(default)
    }


def _is_absent(default: Any) -> bool:
    return default is inspect.Parameter.empty or default is MISSING


def _name(value: Any) -> str:
    """Return the name of a function or type, or of an object's type."""
    named = value.func if isinstance(value, partial) else value
    kind = named if hasattr(named, "__qualname__") else type(named)
    return f"{kind.__module__}:{kind.__qualname__}"
