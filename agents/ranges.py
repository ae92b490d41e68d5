"""Ranges of settings and parameters, written beside their types, and their checker."""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

from hpcsimkit.errors import UsageError

__all__ = ["Count", "Natural", "NonNegative", "Positive", "Range", "Share", "check_ranges", "plain_and_range"]


class Range(NamedTuple):
    """Range of a number, as metadata of its type.

    Parameters
    ----------
    least : float
        Minimum.
    most : float, optional
        Maximum; by default unlimited, but finite.
    above : bool
        Whether the minimum itself is excluded.

    Examples
    --------
    >>> str(Range(0, 1)), str(Range(0, above=True)), 0 in Range(0, above=True), float("nan") in Range(0)
    ('from 0 to 1', 'above 0', False, False)
    """

    least: float
    most: float | None = None
    above: bool = False

    def __contains__(self, value: Any) -> bool:
        most = float("inf") if self.most is None else self.most
        inside = self.least <= value <= most and value != float("inf")
        return bool(inside and not (self.above and value == self.least))

    def __str__(self) -> str:
        """Text of the range, to follow "a number"."""
        if self.most is not None:
            return f"from {self.least:g} to {self.most:g}"
        return f"above {self.least:g}" if self.above else f"of at least {self.least:g}"


Share = Annotated[float, Range(0, 1)]
NonNegative = Annotated[float, Range(0)]
Positive = Annotated[float, Range(0, above=True)]
Count = Annotated[int, Range(1)]
Natural = Annotated[int, Range(0)]


def plain_and_range(hint: Any) -> tuple[Any, Range | None]:
    """Return a type without its range, and the range; the type may be optional.

    >>> plain_and_range(Share | None), plain_and_range(str)
    ((float | None, Range(least=0, most=1, above=False)), (<class 'str'>, None))
    """
    if get_origin(hint) is Annotated:
        plain, *metadata = get_args(hint)
        return plain, next((each for each in metadata if isinstance(each, Range)), None)
    parts = get_args(hint)
    if len(parts) == 2 and parts[1] is type(None) and get_origin(parts[0]) is Annotated:
        plain, limits = plain_and_range(parts[0])
        return plain | None, limits
    return hint, None


def check_ranges(settings: Any, owner: str) -> None:
    """Check the fields of a dataclass against the ranges, and the choices, of their types.

    Parameters
    ----------
    settings : dataclass
        Values to check.
    owner : str
        Name of their owner, for messages.

    Raises
    ------
    UsageError
        A value is out of range.
    """
    hints = get_type_hints(type(settings), include_extras=True)
    for name in (field.name for field in fields(settings)):
        value, (plain, limits) = getattr(settings, name), plain_and_range(hints[name])
        if get_origin(plain) is Literal and value not in get_args(plain):
            known = ", ".join(map(str, get_args(plain)))
            raise UsageError(f"{owner}: {name} needs one of {known}, found {value!r}")
        if limits is None or (value is None and type(None) in get_args(plain)):
            continue
        is_whole = plain in (int, int | None)
        if (is_whole and not isinstance(value, int)) or value not in limits:
            number = "a whole number" if is_whole else "a number"
            raise UsageError(f"{owner}: {name} needs {number} {limits}, found {value!r}")
