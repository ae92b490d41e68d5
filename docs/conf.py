"""Configuration of the documentation; ``python -m sphinx -W docs docs/_build`` builds it."""

import gc
import logging
import re
import sys
from pathlib import Path
from typing import Any, get_type_hints

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

import generate  # noqa: E402
from pages.search_words import with_words  # noqa: E402
from sphinx import addnodes  # noqa: E402
from sphinx.domains.python import PythonDomain  # noqa: E402
from sphinx.pycode.parser import Parser  # noqa: E402

from hpcsimkit import __version__  # noqa: E402

project = "hpcsimkit"
author = "the hpcsimkit authors"
copyright = "the hpcsimkit authors"
version = release = __version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
exclude_patterns = ["_build", "_generated/*.md"]  # pages of the reference include what lies in _generated
smartquotes = False  # --flags keep their two dashes
nitpicky = True
nitpick_ignore_regex = [(r"py:.*", r"(?!hpcsimkit\.).*")]  # other libraries, and words in types
suppress_warnings = ["ref.python"]  # names of attributes that several classes have

nb_execution_mode = "off"  # notebooks show what is stored in them: `python -m tests.notebooks` stores it
nb_mime_priority_overrides = [("html", "text/html", 0), ("html", "image/png", 1)]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_use_type_comments = False  # each is looked for in the source of its function; there are none
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
python_use_unqualified_type_names = True
add_module_names = False

html_theme = "furo"
html_title = f"hpcsimkit {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False

copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True

generate.write_all(HERE / "_generated")

gc.disable()  # a page is a tree of nodes that know their parents: collecting them takes a fifth of the build
logging.disable(logging.DEBUG)  # Sphinx formats sixty thousand messages that nobody sees
Parser.parse_definition = lambda self: None  # type: ignore[method-assign]  # for listings of source: there are none

INTERNALS = "_generated/api/"
"""Beginning of the names of pages that the search leaves out."""

UNUSED = {"TranslationProgressTotaliser", "AddTranslationClasses", "FootnoteDocnameUpdater", "AliasTransform"}
"""Transforms for translations, PDF, C and C++, each of which searches the nodes of all pages."""


def plain_types(app: Any, thing: Any, bound_method: bool) -> None:
    """Show the types of a command's parameters without their help texts, which are objects of typer."""
    if getattr(thing, "__module__", "").startswith("hpcsimkit.cli."):
        thing.__annotations__ = get_type_hints(thing)


def prose_types(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Show types that are prose ("array of int64, shape (jobs,)") as they are: their words are no links."""
    lines[:] = [re.sub(r"^(\s*:(?:var)?type \S+: )(.* .*)$", r"\1*\2*", line) for line in lines]


def defined_elsewhere(app: Any, env: Any, node: Any, content: Any) -> Any:
    """Resolve a name in a module that is defined in another one, such as hpcsimkit.Simulation.

    A name that a module keeps to itself (not in its ``__all__``) is no link. One that is nowhere is an error.
    """
    module, _, name = node.get("reftarget", "").rpartition(".")
    here = sys.modules.get(module) if module.startswith("hpcsimkit") else None
    if node.get("refdomain") != "py" or not hasattr(here, name):
        return None
    home = getattr(getattr(here, name), "__module__", module)
    domain, target = env.get_domain("py"), f"{home}.{name}"
    found = domain.resolve_xref(env, node["refdoc"], app.builder, node["reftype"], target, node, content)
    return content if found is None and name not in getattr(here, "__all__", ()) else found


def searched_words(app: Any, page: str, source: list[str]) -> None:
    """Add the words for the search to a page."""
    source[0] = with_words(page, source[0])


def glossary_last(app: Any, doctree: Any) -> None:
    """Let the search rank a page about a word before its term in the glossary."""
    if app.env.docname == "reference/glossary":
        for node in doctree.findall(addnodes.index):
            node["entries"] = [(kind, text, place, "", key) for kind, text, place, _, key in node["entries"]]


class QuickNames(PythonDomain):
    """The Python domain, without a search of all objects for a name in a type that none of them has."""

    def find_obj(self, env: Any, modname: str, classname: str, name: str, *type_and_mode: Any) -> Any:
        """Find an object by its name; see :class:`PythonDomain`."""
        last = name.removesuffix("()").rpartition(".")[2]
        return super().find_obj(env, modname, classname, name, *type_and_mode) if last in self.lasts else []

    def get_objects(self) -> Any:
        """Yield all objects; the search leaves out those of the internals, which have the priority -1."""
        for name, shown, kind, page, anchor, priority in super().get_objects():
            yield name, shown, kind, page, anchor, -1 if page.startswith(INTERNALS) else priority

    @property
    def lasts(self) -> set[str]:
        """The last parts of the names of all objects."""
        if getattr(self, "counted", -1) != len(self.objects):
            self.counted = len(self.objects)
            self.known = {name.rpartition(".")[2] for name in self.objects}
        return self.known


def setup(app: Any) -> None:
    """Let napoleon translate a docstring first, then correct its types."""
    for transforms in (app.registry.transforms, app.registry.post_transforms):
        transforms[:] = [each for each in transforms if each.__name__ not in UNUSED]
    app.connect("source-read", searched_words)
    app.connect("doctree-read", glossary_last)
    app.add_domain(QuickNames, override=True)
    app.connect("autodoc-before-process-signature", plain_types)
    app.connect("autodoc-process-docstring", prose_types, priority=900)
    app.connect("missing-reference", defined_elsewhere)
