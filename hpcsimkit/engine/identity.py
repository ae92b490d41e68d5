"""Identities of objects as JSON values: equal identities imply equal outcomes."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any

import numpy as np

from hpcsimkit.jobs.workload import Workload


def fingerprint(value: Any) -> str:
    """Return a hexadecimal hash that changes with any part of a value.

    >>> one, same, other = ({"seed": 1}, {"seed": 1}, {"seed": 2})
    >>> fingerprint(one) == fingerprint(same), fingerprint(one) == fingerprint(other)
    (True, False)
    """
    return digest(identity_of(value))


def digest(identity: Any) -> str:
    """Return the hash of a JSON value, 32 hexadecimal digits."""
    words = json.dumps(identity, sort_keys=True)
    return hashlib.sha256(words.encode()).hexdigest()[:32]


def modules_of(identity: Any) -> set[str]:
    """Return the modules of all functions and types in an identity.

    >>> sorted(modules_of([{"is": "mine:Best", "order": {"is": "hpcsimkit.policies.orders:SJF"}}]))
    ['hpcsimkit.policies.orders', 'mine']
    """
    if isinstance(identity, list):
        return set().union(*map(modules_of, identity))
    if not isinstance(identity, dict):
        return set()
    own = {str(identity["is"]).partition(":")[0]} if "is" in identity else set()
    return own.union(*map(modules_of, identity.values()))


def identity_of(value: Any) -> Any:
    """Return the identity of a value: numbers, strings, lists and dictionaries.

    Workloads and arrays are represented by their hashes. Policies, encoders, settings and similar objects are
    represented by all their parameters, defaults included: a default that changes in a later version changes
    the identity. Functions are represented by their names and defaults, not by their code.

    An object whose parameters cannot be determined is a `TypeError`.

    >>> from hpcsimkit.agents.spaces.episodes import Fixed
    >>> w = Workload({"submit_time": [0], "run_time": [9], "nodes": [1]})
    >>> found = identity_of(Fixed(w, 4))
    >>> found.pop("workload") == w.hash, found
    (True, {'is': 'hpcsimkit.agents.spaces.episodes:Fixed', 'cluster': 4, 'service_time': None, 'seed': 0})
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
    """Return all parameters of an object, which determine its behaviour."""
    if isinstance(value, partial):
        given = {"arguments": value.args, **value.keywords}
        return {**_defaults(value.func), **given}
    if inspect.ismethod(value):
        return {"of": value.__self__, **_defaults(value)}
    if inspect.isroutine(value) or isinstance(value, type):
        return _defaults(value)
    if is_dataclass(value):
        names = [field.name for field in fields(value) if field.init and field.compare]
    else:
        try:
            names = list(inspect.signature(type(value)).parameters)
        except ValueError:
            raise TypeError(f"what a {_name(value)} is made of cannot be told") from None
    return {name: getattr(value, name) for name in names if hasattr(value, name)}


def _defaults(function: Any) -> dict[str, Any]:
    """Return the default values of a function that can be inspected."""
    try:
        parameters = inspect.signature(function).parameters
    except ValueError:  # some C functions
        return {}
    return {name: each.default for name, each in parameters.items() if each.default is not each.empty}


def _name(value: Any) -> str:
    """Return the name of a function or type, or of an object's type."""
    named = value.func if isinstance(value, partial) else value
    kind = named if hasattr(named, "__qualname__") else type(named)
    return f"{kind.__module__}:{kind.__qualname__}"
