"""Numbers of a table that are checked against a limit before memory is taken for them."""

from __future__ import annotations

from pydantic import AfterValidator

from hpcsimkit.errors import WorkloadError
from hpcsimkit.io.budget import refuse_beyond

__all__ = ["limited"]


def limited(name: str) -> AfterValidator:
    """Return the check of a whole number against a limit, as metadata of its type.

    Parameters
    ----------
    name : str
        Name of the limit, one of :data:`~hpcsimkit.io.budget.LIMITS`.

    Examples
    --------
    >>> from typing import Annotated
    >>> from hpcsimkit.experiments.settings.checked_table import Table
    >>> class Sampling(Table):
    ...     sequences: Annotated[int, limited("sequences")] = 50
    >>> Sampling.checked({"sequences": 10**9})[1][1]
    ': at most 10000 sampled sequences are accepted, found 1000000000; if they are meant: --limit \
sequences=1000000000'
    """

    def check(value: int | None) -> int | None:
        try:
            refuse_beyond(name, value or 0, "")
        except WorkloadError as error:
            raise ValueError(str(error).removeprefix(": ")) from None
        return value

    return AfterValidator(check)
