"""Schema of the metadata of a model file, checked before anything is built from it."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Mapping
from typing import Annotated, Any, Self, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError

from hpcsimkit.errors import UsageError

Name = Annotated[str, Field(min_length=1, max_length=2000)]

LARGEST = 2**53
"""Maximum absolute value of an integer in a file; JSON readers disagree beyond it."""


class Strict(BaseModel):
    """A table of a model file, without type conversion and without unknown keys."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class NamedPart(Strict):
    """An encoder or a mask: class name and literal parameters."""

    name: Name
    parameters: dict[str, JsonValue]

    def check_parameters(self, kind: type[Any]) -> None:
        """Check the parameters against the signature and the types of a class of the kit."""
        try:
            inspect.signature(kind).bind(**self.parameters)
        except TypeError as error:
            raise UsageError(f"{self.name}: {error}") from None
        hints = get_type_hints(kind.__init__)
        for name, value in self.parameters.items():
            if not _fits(value, hints.get(name, Any)):
                raise UsageError(f"{self.name}: {name} does not take {str(value)[:80]}")


class NetworkPart(Strict):
    """A network: type and activation."""

    kind: Name
    activation: Name = "tanh"


class Trained(BaseModel):
    """Facts of the training run that affect the use of the agent; others are allowed."""

    model_config = ConfigDict(strict=True, extra="allow")

    policy: Name = "fcfs"
    slots: int | None = Field(default=None, ge=1, le=2**20)
    metric: Name = "mean_bounded_slowdown"


class About(BaseModel):
    """Origin of an agent: its training run, and any other facts."""

    model_config = ConfigDict(strict=True, extra="allow")

    training: Trained = Trained()


class Metadata(Strict):
    """All metadata of a model file."""

    format: str
    kit: str
    stage: Name
    sample: bool
    encoder: NamedPart
    mask: NamedPart
    network: NetworkPart
    about: About

    @classmethod
    def checked(cls, values: Mapping[str, Any], path: str | os.PathLike[str]) -> Self:
        """Return the metadata of a file."""
        try:
            return cls(**values)
        except ValidationError as error:
            found = error.errors()[0]
            place = ".".join(map(str, found["loc"]))
            raise UsageError(f"{path}: the model lacks or misuses {place!r}: {found['msg']}") from None


def _fits(value: JsonValue, hint: Any) -> bool:
    """Return whether a JSON value has a given type, and no integer in it is too large."""
    try:
        TypeAdapter(hint).validate_json(json.dumps(value), strict=True)
    except ValidationError:
        return False
    except PydanticUserError:  # a type unknown to pydantic
        pass
    return all(abs(number) <= LARGEST for number in _numbers(value))


def _numbers(value: JsonValue) -> list[float]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [number for entry in value for number in _numbers(entry)]
    return [value] if isinstance(value, int | float) else []
