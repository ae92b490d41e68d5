"""A progress bar of tqdm, which is that of notebooks in a notebook."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["counting"]


@contextmanager
def counting(total: float, unit: str, *, shown: bool) -> Iterator[Callable[[float], None]]:
    """Show how much of a total is done, if it is to be shown; yields the callback ``tell(done)``.

    Parameters
    ----------
    total : float
        The total.
    unit : str
        Plural of what is counted.
    shown : bool
        Whether there is a bar.
    """
    if not shown:
        yield lambda done: None
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of widgets that are not installed: then it is the bar of terminals
        from tqdm.auto import tqdm

    with tqdm(total=total, unit=f" {unit}") as bar:
        yield lambda done: bar.update(max(done - bar.n, 0))
