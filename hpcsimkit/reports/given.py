"""What a plot is given: a result, several, a mapping of them, or an object that keeps some."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from hpcsimkit.errors import UsageError
from hpcsimkit.reports.figures import in_pyplot, new_figure, style, title, wrapped
from hpcsimkit.results.result import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Given", "Results", "draw_each", "legend_if_own", "only_result", "results_of"]

Results = Mapping[str, Result]
"""Results by the name of the policy."""


class Keeping(Protocol):
    """An object that keeps results, such as a comparison."""

    @property
    def results(self) -> Results:
        """Results by the name of the policy."""


Given = Result | Results | Iterable[Result] | Keeping
"""A result, several, a mapping of them by name, or an object with such a mapping as ``results``."""


def results_of(given: Given) -> dict[str, Result]:
    """Return what a plot is given as results by name, at least one.

    Results without names have those of their policies; equal names are numbered.

    Raises
    ------
    UsageError
        There is no result, or something else is given.

    Examples
    --------
    >>> from hpcsimkit import Simulation, Workload
    >>> w = Workload({"submit_time": [0, 0], "run_time": [9, 9], "nodes": [1, 1]}, machine_size=1)
    >>> result = Simulation(w, "fcfs").run()
    >>> [*results_of(result)], [*results_of([result, result])], [*results_of({"mine": result})]
    (['fcfs'], ['fcfs', 'fcfs (2)'], ['mine'])
    """
    if isinstance(given, Result):
        return {given.policy: given}
    kept = getattr(given, "results", given)
    if isinstance(kept, Mapping):
        found = {str(name): result for name, result in kept.items()}
    else:
        found = _named(kept) if isinstance(kept, Iterable) and not isinstance(kept, str) else {}
    wrong = next((each for each in found.values() if not isinstance(each, Result)), None)
    if wrong is not None or not found:
        shown = type(given).__name__ if wrong is None else repr(wrong)
        raise UsageError(f"a plot needs a Result, several, or a mapping of them by name, found {shown}")
    return found


def _named(results: Iterable[Any]) -> dict[str, Result]:
    """Return results by the names of their policies, which are numbered from their second occurrence on."""
    found: dict[str, Result] = {}
    for result in results:
        name = str(getattr(result, "policy", ""))
        number = 1
        while (text := name if number == 1 else f"{name} ({number})") in found:
            number += 1
        found[text] = result
    return found


def only_result(given: Given) -> Result:
    """Return the only result of what a plot is given.

    Raises
    ------
    UsageError
        There are several.
    """
    results = results_of(given)
    if len(results) > 1:
        raise UsageError(f"one result is needed, found {len(results)}: {', '.join(results)}")
    return next(iter(results.values()))


def legend_if_own(ax: Axes, given: Axes | None, results: Results) -> Axes:
    """Add a legend to axes that were not given, if they show several results; return the axes."""
    if given is None and len(results) > 1:
        with style():
            ax.legend()
    return ax


def draw_each(given: Given, ax: Any, draw: Callable[[Result, Axes], Any], width: float, height: float) -> Any:
    """Draw each result on axes of its own, one below the other.

    Parameters
    ----------
    given : Result, several, or mapping of str to Result
        Schedules to draw.
    ax : Axes or sequence of Axes, optional
        Axes to draw on, one per result; by default those of a new figure.
    draw : callable
        Function ``draw(result, ax)``.
    width, height : float
        Size of each axes [inches].

    Returns
    -------
    Axes or array of Axes
        The axes of one result, or those of several.
    """
    results = results_of(given)
    if ax is None:
        with in_pyplot():
            axes = new_figure(width, height * len(results), rows=len(results)).axes
    else:
        axes = list(np.atleast_1d(np.asarray(ax, dtype=object)))
    if len(axes) != len(results):
        raise UsageError(f"one axes per result is needed, found {len(axes)} for {len(results)}")
    for (name, result), each in zip(results.items(), axes, strict=True):
        draw(result, each)
        if len(results) > 1:
            title(each, wrapped(name, 90, lines=1))
    return axes[0] if len(results) == 1 else np.array(axes, dtype=object)
