"""Pages of reports from the templates of this package: self-contained HTML, and Markdown."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING, Any

from hpcsimkit.reports.figures import PALETTE, Line, inline_svg
from hpcsimkit.reports.picture import Picture

if TYPE_CHECKING:
    from markupsafe import Markup


def rendered_page(template: str, **values: Any) -> str:
    """Return a page rendered from a template; in HTML, texts are escaped, unless they are markup."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("hpcsimkit.reports"),
        autoescape=template.endswith(".html.jinja"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["breakable"] = breakable
    return environment.get_template(template).render(palette=PALETTE, **values)


def breakable(name: str) -> Markup:
    """Return the name of a policy as markup that wraps after the signs between its parts, not within numbers.

    >>> str(breakable("xfactor+easy")), str(breakable("bounded(slack=2,size=<1)")), str(breakable("28,475"))
    ('xfactor+<wbr>easy', 'bounded(<wbr>slack=2,<wbr>size=&lt;1)', '28,475')
    """
    from markupsafe import Markup

    return Markup("<wbr>").join(re.split(r"(?<=[+(:/])|(?<=,)(?!\d{3}(?!\d))", name))


def shown_picture(picture: Picture) -> dict[str, Any]:
    """Return the texts of a picture and its figure as markup, for a template."""
    from markupsafe import Markup

    return {**picture._asdict(), "svg": Markup(inline_svg(picture.figure, picture.name, picture.title))}


def swatch(line: Line) -> Markup:
    """Return a short line in the style of a policy."""
    from markupsafe import Markup

    dashes = " ".join(f"{2 * length:g}" for length in line.dash[1]) if line.dash != "solid" else "none"
    return Markup(
        f'<svg class="swatch" viewBox="0 0 24 10" aria-hidden="true"><path d="M0 5H24" fill="none" '
        f'stroke="var(--{escape(line.variable)})" stroke-width="4" stroke-dasharray="{dashes}"/></svg>'
    )
