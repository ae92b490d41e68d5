"""The options of a run as keys of settings, generated from :class:`~hpcsimkit.kernel.setup.Setup`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import Field, create_model, field_validator, model_validator

from hpcsimkit.experiments.settings.checked_table import Table
from hpcsimkit.kernel.event_order import EVENT_ORDERS
from hpcsimkit.kernel.setup import OPTIONS, Option, Setup

KEYS: dict[str, Option] = {option.key: option for option in OPTIONS.values() if option.key is not None}

RUN_KEYS = tuple(KEYS)
"""Keys of the options of a run."""

DECISIVE_KEYS = tuple(key for key, option in KEYS.items() if option.decides == "schedule")
"""Keys of the options of a run that decide its schedule."""


class _Consistent(Table):
    @field_validator("licenses", mode="before", check_fields=False)
    @classmethod
    def _licenses_of_table(cls, value: Any) -> Any:
        """Take a table of numbers by name, too: ``[licenses]``."""
        return (
            ",".join(f"{name}:{number}" for name, number in value.items())
            if isinstance(value, dict)
            else value
        )

    @model_validator(mode="after")
    def _known_to_the_rules(self) -> Self:
        rules = getattr(self, "semantics")  # noqa: B009 - a generated field
        for name, option in OPTIONS.items():
            key = option.key
            if key is not None and getattr(self, key) and not EVENT_ORDERS[rules].knows(name):
                raise ValueError(f"{key!r} is not known to the rules {rules!r}")
        return self


def _field_of(name: str, option: Option) -> tuple[Any, Any]:
    """Return the type and the default of a key, as pydantic takes them."""
    if option.choices:
        kind: Any = Literal[option.choices]
    else:
        kind = option.kind or str
    default = getattr(Setup(), name) if option.kind is not None else None
    if option.kind is None and option.choices:
        default = option.unset
    return kind if default is not None else kind | None, Field(default, ge=option.least, le=option.most)


def _described() -> str:
    """Return the docstring with all keys."""
    lines = (
        f"    {key} : {(option.kind or str).__name__}\n        {option.meaning}. Default: {option.unset}."
        for key, option in KEYS.items()
    )
    return "Options of a run.\n\n    Parameters\n    ----------\n" + "\n".join(lines) + "\n"


if TYPE_CHECKING:

    class RunTable(_Consistent):
        """Options of a run; only those that are read as text are declared here."""

        seed: int = 0
        semantics: Literal["textbook", "dirlab"] = "textbook"
        locality: str | None = None
        gates: str | None = None
        licenses: str | None = None
        failures: str | None = None
        restart: str | None = None
        calendar: Any = None
        begin_at: str | None = None

else:
    fields = {option.key: _field_of(name, option) for name, option in OPTIONS.items() if option.key}
    RunTable = create_model(
        "RunTable", __base__=_Consistent, __module__=__name__, __doc__=_described(), **fields
    )
