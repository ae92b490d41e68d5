"""How many examples of a property are drawn, where they cost more or less than others."""

from __future__ import annotations

from hypothesis import settings

__all__ = ["examples"]


def examples(share: float) -> settings:
    """Return settings that draw this share of the examples of other properties, whatever the profile."""
    return settings(max_examples=max(1, round(share * settings.default.max_examples)))
