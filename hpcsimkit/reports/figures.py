"""Style of figures: colours, line styles, number formats, and saving.

The settings of matplotlib are not changed. Figures of reports are `Figure` objects without pyplot, which
would keep them; axes that a user asks for belong to pyplot, so that a notebook and ``plt.show()`` show them.
"""

from __future__ import annotations

import io
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from hpcsimkit.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

__all__ = [
    "HEAT",
    "INK",
    "MODE_COLOURS",
    "MUTED",
    "PALETTE",
    "Line",
    "axes_of",
    "duration_axis",
    "format_duration",
    "format_number",
    "image_uri",
    "in_pyplot",
    "inline_svg",
    "legend_above",
    "line_styles",
    "new_figure",
    "panels",
    "png_of",
    "png_uri",
    "policy_rows",
    "save_figure",
    "symlog_axis",
    "time_unit",
    "title",
    "width_of",
    "wrapped",
]

INK, MUTED, GRID, PAPER, HEAT = "#1c2126", "#67707b", "#dfe3e8", "#fefefe", "#55a3e6"

POLICY_COLOURS = (
    "#2a1a17",
    "#3475e7",
    "#b3160d",
    "#2fb56e",
    "#7a1f85",
    "#c9a500",
    "#a9a1cf",
    "#6b6462",
)
"""Eight colours with CIE distances of 25 or more for each type of colour blindness."""

MODE_COLOURS = {"ready": "#a9bcd0", "reserved": "#2f4b7c", "backfilled": "#f2a93b", "tested": "#3c8d5a"}

ON_MODE = {
    "ready": ("#1c2127", INK, "#f4f6f8"),
    "reserved": ("#fdfefe", "#ffffff", "#15181c"),
    "backfilled": ("#1c2128", INK, "#15181c"),
    "tested": ("#fcfefd", "#ffffff", "#15181d"),
}
"""Text colours on these colours: in a figure (distinct, as identifiers), on light and on dark pages."""

PALETTE: dict[str, tuple[str, str, str]] = {
    "ink": (INK, INK, "#e8ebef"),
    "muted": (MUTED, MUTED, "#9aa4b0"),
    "grid": (GRID, GRID, "#2e343c"),
    "paper": (PAPER, "#ffffff", "#15181c"),
    "heat": (HEAT, HEAT, "#1d5f9e"),
    **{
        f"policy-{number}": (light, light, dark)
        for number, (light, dark) in enumerate(
            zip(
                POLICY_COLOURS,
                ("#c08a63", "#3f8cf0", "#f26a1b", "#7fec93", "#e2a0ea", "#f7e547", "#dfe9ff", "#8b7f86"),
                strict=True,
            )
        )
    },
    "ready": (MODE_COLOURS["ready"], MODE_COLOURS["ready"], "#5f7894"),
    "reserved": (MODE_COLOURS["reserved"], MODE_COLOURS["reserved"], "#a8c5ff"),
    "backfilled": (MODE_COLOURS["backfilled"], MODE_COLOURS["backfilled"], "#f2a93b"),
    "tested": (MODE_COLOURS["tested"], MODE_COLOURS["tested"], "#7cc79a"),
    **{f"on-{mode}": drawn for mode, drawn in ON_MODE.items()},
}
"""Colours of each CSS variable: in a figure, on a light page and on a dark page."""

DASHES: tuple[Any, ...] = ("solid", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (6, 1.5, 1.2, 1.5)))

STYLE: dict[str, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 8.5,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": MUTED,
    "axes.titlecolor": INK,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 6.0,
    "axes.labelsize": 8.5,
    "axes.linewidth": 0.7,
    "axes.facecolor": PAPER,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "xtick.major.size": 3,
    "ytick.major.size": 3,
    "xtick.minor.size": 0,
    "ytick.minor.size": 0,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "figure.facecolor": PAPER,
    "savefig.facecolor": PAPER,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "legend.handlelength": 2.4,
    "lines.linewidth": 1.5,
    "hatch.linewidth": 0.5,
    "svg.fonttype": "none",
    "pdf.fonttype": 42,  # TrueType, which publishers accept
    "text.parse_math": False,
}

NOTHING = "-"
"""Text for an undefined value."""

NARROW = 3.0
"""Width of axes in a column of a paper [inches], with fewer ticks."""

MINUTE, HOUR, DAY = 60, 3600, 86_400
ROUND_DURATIONS = {
    "0": 0,
    "1 s": 1,
    "10 s": 10,
    "1 min": MINUTE,
    "10 min": 10 * MINUTE,
    "1 h": HOUR,
    "1 d": DAY,
    "10 d": 10 * DAY,
    "100 d": 100 * DAY,
    "1 000 d": 1000 * DAY,
}
"""Ticks of a logarithmic axis of durations, from label to seconds."""


# --- figures -------------------------------------------------------------------------------------------


@contextmanager
def style() -> Iterator[None]:
    """Apply the style of hpcsimkit during a block, and restore that of matplotlib afterwards.

    It can be used as a decorator, ``@style()``.
    """
    from matplotlib import rcParams

    settings = cast("Any", rcParams)  # the type stubs require literal keys
    before = {key: settings[key] for key in STYLE}
    settings.update(STYLE)
    try:
        yield
    finally:
        settings.update(before)  # not all settings: pyplot may have chosen its backend in the block


_OF_PYPLOT: ContextVar[bool] = ContextVar("_OF_PYPLOT", default=False)


@contextmanager
def in_pyplot() -> Iterator[None]:
    """Let the figures that are made in a block belong to pyplot, which shows them in a notebook."""
    token = _OF_PYPLOT.set(True)
    try:
        yield
    finally:
        _OF_PYPLOT.reset(token)


@style()
def new_figure(
    width: float = 7.5, height: float = 4.0, rows: int = 1, columns: int = 1, **options: Any
) -> Figure:
    """Return a figure with a grid of axes in the style of hpcsimkit; sizes in inches.

    >>> len(new_figure(rows=2, columns=2).axes)
    4
    """
    from matplotlib.figure import Figure

    made: Any = Figure
    if _OF_PYPLOT.get():
        from matplotlib import pyplot

        made = pyplot.figure
    figure: Figure = made(figsize=(width, height), layout=options.pop("layout", "constrained"))
    figure.subplots(rows, columns, squeeze=False, **options)
    return figure


def panels(count: int, width: float, height: float, columns: int = 3) -> tuple[Figure, int]:
    """Return a figure with a grid of panels of a size [inches], and its number of columns."""
    columns = min(columns, count)
    rows = -(-count // columns)
    figure = new_figure(width * columns + 0.8, 0.5 + height * rows, rows=rows, columns=columns)
    for ax in figure.axes[count:]:
        ax.set_axis_off()
    return figure, columns


def axes_of(ax: Axes | None, width: float = 7.5, height: float = 4.0) -> Axes:
    """Return the axes to draw on: the caller's, or those of a new figure of pyplot."""
    if ax is not None:
        return ax
    with in_pyplot():
        return new_figure(width, height).axes[0]


def width_of(ax: Axes) -> float:
    """Return the approximate width of axes [inches], before the layout of the figure."""
    figure = ax.get_figure(root=True)
    return ax.get_position().width * (figure.get_size_inches()[0] if figure is not None else 0)


def save_figure(figure: Figure, path: str | os.PathLike[str], dpi: int = 150) -> Path:
    """Write a figure as PNG, SVG or PDF, by the suffix of the path; the write is atomic.

    Raises
    ------
    UsageError
        The path has another suffix.
    WorkloadError
        The file cannot be written.
    """
    target = Path(path)
    kind = target.suffix.lower().lstrip(".")
    if kind not in ("png", "svg", "pdf"):
        raise UsageError(f"{path}: a picture needs the ending .png, .svg or .pdf, found {target.suffix!r}")
    from hpcsimkit.io.files import write_bytes

    buffer = io.BytesIO()
    _print(figure, buffer, kind, dpi=dpi)
    write_bytes(target, buffer.getvalue())
    return target


def image_uri(figure: Figure, dpi: int = 100) -> str:
    """Return a figure as the address of an image in a page."""
    return png_uri(png_of(figure, dpi))


def png_of(figure: Figure, dpi: int = 150) -> bytes:
    """Return a figure as an image in the format PNG."""
    buffer = io.BytesIO()
    _print(figure, buffer, "png", dpi=dpi)
    return buffer.getvalue()


def png_uri(image: bytes) -> str:
    """Return an image in the format PNG as an address in a page."""
    from base64 import b64encode

    return f"data:image/png;base64,{b64encode(image).decode()}"


def _print(figure: Figure, buffer: io.BytesIO, kind: str, **options: Any) -> None:
    from matplotlib import rc_context

    metadata = {"png": {}, "svg": {"Date": None, "Creator": None}, "pdf": {"CreationDate": None}}[kind]
    with style(), rc_context({"svg.hashsalt": "hpcsimkit"}):  # equal figures give equal files
        figure.savefig(buffer, format=kind, metadata=metadata, **options)


def inline_svg(figure: Figure, name: str, description: str) -> str:
    """Return a figure as an `<svg>` element for a page that defines the CSS variables of `PALETTE`.

    Text remains text in the font of the page; colours become variables, so that one element serves light and
    dark pages. The element is self-contained (no name spaces, no metadata).

    Parameters
    ----------
    figure : Figure
        Figure to convert.
    name : str
        Prefix of the element's identifiers, one word that is unique on the page.
    description : str
        Alternative text for screen readers.
    """
    from html import escape

    buffer = io.BytesIO()
    _print(figure, buffer, "svg", transparent=True)
    text = buffer.getvalue().decode()
    text = text[text.index("<svg") :]
    width, height = (float(size) for size in figure.get_size_inches() * 72)
    box = f"0 0 {width:g} {height:g}"
    head = f'<svg role="img" aria-label="{escape(description)}" viewBox="{box}" style="--width: {width:.0f}">'
    body = text[text.index(">") + 1 :]
    body = re.sub(r"<metadata>.*?</metadata>|<style .*?</style>|<!--.*?-->", "", body, flags=re.DOTALL)
    body = re.sub(r'<g id="[^"]*"', "<g", body)
    body = re.sub(r'(id="|url\(#|href="#)', rf"\g<1>{name}-", body).replace("xlink:href", "href")
    body = re.sub(r"px '[^;\"]*sans-serif", "px var(--font)", body)
    body = re.sub(r"<[^>]*>", _shortened, body)
    for variable, (drawn, _, _) in PALETTE.items():
        body = body.replace(drawn, f"var(--{variable})")
    return head + re.sub(r"\s*\n\s*", "\n", body).strip()


def _shortened(tag: re.Match[str]) -> str:
    """Return a tag with coordinates to 0.01 points, which is enough; the text between tags stays."""
    return re.sub(r"(\d\.\d\d)\d+", r"\1", tag[0])


# --- lines, numbers, axes ------------------------------------------------------------------------------


class Line(NamedTuple):
    """Colour, dash pattern and CSS variable of the lines of a policy, equal in all figures."""

    colour: str
    dash: Any
    variable: str


def line_styles(names: Iterable[str]) -> dict[str, Line]:
    """Return the colour and dash pattern of each policy, by its position in the list.

    Colours repeat after eight policies with other dash patterns, which gives 32 distinct styles. From the
    fifth policy on, lines are dashed, so that many crossing lines differ by more than colour.

    >>> [line.colour for line in line_styles(["fcfs", "fcfs+easy"]).values()]
    ['#2a1a17', '#3475e7']
    """
    colours = len(POLICY_COLOURS)
    return {
        name: Line(
            POLICY_COLOURS[i % colours],
            DASHES[(i // colours + i % colours // 4) % len(DASHES)],
            f"policy-{i % colours}",
        )
        for i, name in enumerate(names)
    }


def format_number(value: float | None, digits: int = 4, *, padded: bool = False) -> str:
    """Return a number with at most `digits` significant digits and commas as thousands separators.

    With `padded`, non-integers keep trailing zeros, for columns of a table.

    >>> [format_number(v) for v in (1234567, 1234.5, 0.123456, 12.0, 0, None)]
    ['1,235,000', '1,234', '0.1235', '12', '0', '-']
    >>> format_number(0.80099), format_number(0.80099, padded=True), format_number(3.0, padded=True)
    ('0.801', '0.8010', '3')
    """
    if value is None or not math.isfinite(value):
        return NOTHING
    if value == 0:
        return "0"
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    rounded = round(float(value), decimals)
    if abs(rounded) < 1e-4:
        return f"{rounded:.{digits}g}"
    text = f"{rounded:,.{max(decimals, 0)}f}"
    if "." not in text or (padded and value != int(value)):
        return text
    return text.rstrip("0").rstrip(".")


def format_duration(seconds: float | None, digits: int = 3) -> str:
    """Return a duration in a suitable unit: seconds, minutes, hours or days.

    >>> [format_duration(v) for v in (0, 42, 90, 5400, 200_000)]
    ['0 s', '42 s', '1.5 min', '1.5 h', '2.31 d']
    """
    if seconds is None or not math.isfinite(seconds):
        return NOTHING
    size = abs(seconds)
    for unit, length in (("s", 1), ("min", MINUTE), ("h", HOUR)):
        if size < {"s": MINUTE, "min": HOUR, "h": DAY}[unit]:
            return f"{format_number(seconds / length, digits)} {unit}"
    return f"{format_number(seconds / DAY, digits)} d"


def format_count(count: int, thing: str) -> str:
    """Return a count with its noun in the singular or plural.

    >>> format_count(1, "job"), format_count(5000, "job")
    ('1 job', '5,000 jobs')
    """
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"


def time_unit(span: float) -> tuple[str, int]:
    """Return a suitable unit for an axis with a time span [s], and the length of the unit [s].

    >>> time_unit(400_000), time_unit(7200)
    (('days', 86400), ('minutes', 60))
    """
    for unit, length in (("days", DAY), ("hours", HOUR), ("minutes", MINUTE)):
        if span >= 3 * length:
            return unit, length
    return "seconds", 1


def duration_axis(ax: Axes, longest: float, *, zero: bool = True) -> None:
    """Make the horizontal axis logarithmic in time from 1 s, with a separate position for zero if wanted."""
    end = max(float(longest), 10.0)
    ticks = {label: at for label, at in ROUND_DURATIONS.items() if at <= end and (zero or at)}
    if width_of(ax) < NARROW and end > HOUR:
        ticks = {label: at for label, at in ticks.items() if not label.startswith("10 ")}
    ax.set_xlim(0 if zero else 0.8, end * 1.1)
    if zero:
        ax.set_xscale("symlog", linthresh=1, linscale=0.5)
    else:
        ax.set_xscale("log")
    ax.set_xticks(list(ticks.values()), list(ticks))
    ax.set_xticks([], minor=True)


def count_axis(axis: Axis) -> None:
    """Set integer ticks with commas as thousands separators, for an axis of nodes or jobs."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_major_locator(MaxNLocator("auto", integer=True, min_n_ticks=1, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


@style()
def title(ax: Axes, text: str) -> None:
    """Set a left-aligned title of axes."""
    ax.set_title(text, loc="left", fontsize=9, fontweight="bold", pad=4)


def wrapped(name: str, letters: int = 48, lines: int | None = None) -> str:
    """Return the name of a policy with line breaks between its parts, cut after a number of lines.

    Parameters
    ----------
    name : str
        Name of a policy.
    letters : int
        Maximum number of letters of a line; a part that is longer is not broken. Default: 48.
    lines : int, optional
        Maximum number of lines; by default unlimited. Dots stand for the rest.

    Examples
    --------
    >>> wrapped("bounded(scale=5,mean=1)+easy-weighted(mean=1)+history", letters=30).splitlines()
    ['bounded(scale=5,mean=1)+', 'easy-weighted(mean=1)+history']
    >>> wrapped("bounded(scale=5,mean=1)+easy", letters=20, lines=1)
    'bounded(scale=5, ...'
    """
    broken = [""]
    for part in re.findall(r"[^+,]+[+,]?", name):
        if broken[-1] and len(broken[-1] + part) > letters:
            broken.append("")
        broken[-1] += part
    if lines is not None and len(broken) > lines:
        broken = [*broken[: lines - 1], f"{broken[lines - 1]} ..."]
    return "\n".join(broken)


def policy_rows(ax: Axes, names: Iterable[str], first: float = 0) -> None:
    """Label rows at `first`, `first` + 1 and so on with names of policies; long ones are wrapped and cut."""
    labels = [wrapped(name, 30, lines=3) for name in names]
    ax.set_yticks(np.arange(len(labels)) + first, labels)


def symlog_axis(ax: Axes, largest: float) -> None:
    """Make the vertical axis of counts logarithmic from 1, with a position for zero."""
    ticks = [0, *(10**k for k in range(1, 9) if 10**k <= largest)]
    ax.set_ylim(0, 1.15 * max(largest, 1))
    ax.set_yscale("symlog", linthresh=1, linscale=0.4)
    ax.set_yticks(ticks, [f"{tick:,}" for tick in ticks])
    ax.set_yticks([], minor=True)


def legend_columns(names: Iterable[str], width: float, most: int = 4) -> int:
    """Return the number of columns, at most `most`, in which a legend of names fits a width [inches].

    >>> legend_columns(["fcfs", "fcfs+easy"], 10.0), legend_columns(["x" * 200, "y"], 10.0)
    (2, 1)
    """
    lengths = [len(name) + 9 for name in names]  # a line and its gaps are as wide as nine letters
    for columns in range(min(most, len(lengths)), 1, -1):
        rows, longer = divmod(len(lengths), columns)  # as matplotlib does: the first columns are longer
        firsts = [column * rows + min(column, longer) for column in range(columns + 1)]
        widest = [max(lengths[first:end]) for first, end in pairwise(firsts)]
        if sum(widest) <= 14 * width:
            return columns
    return 1


@style()
def legend_above(figure: Figure, styles: Mapping[str, Line], most: int = 4) -> None:
    """Add one legend of all policies above the axes of a figure, in at most `most` columns."""
    from matplotlib.lines import Line2D

    handles: Sequence[Line2D] = [
        Line2D([], [], color=line.colour, linestyle=line.dash, linewidth=2, label=wrapped(name, 90))
        for name, line in styles.items()
    ]
    columns = legend_columns(styles, figure.get_size_inches()[0], most)
    figure.legend(handles=handles, loc="outside upper left", ncols=columns)
