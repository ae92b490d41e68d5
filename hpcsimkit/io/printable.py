"""Sanitised text output: names from files and arguments, safe for a terminal and limited in length."""

from __future__ import annotations

import logging
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

__all__ = ["message_text", "printable", "printable_warnings", "show", "warn"]

WORD_SHOWN = 240
"""Maximum length of a word in a message [characters]; longer words are shortened in the middle."""

MESSAGE_SHOWN = 1200
"""Maximum length of a message [characters]."""

LONG_WORD = re.compile(rf"\S{{{WORD_SHOWN + 1},}}")


def printable(text: str) -> str:
    r"""Return a text with escaped control characters; line ends are kept.

    Control characters and escape sequences could move the cursor, change the title of a terminal or hide
    text. Surrogates, which represent bytes of a file name that are not UTF-8, cannot be printed.

    Parameters
    ----------
    text : str
        Text that may contain names from logs, models and arguments.

    Examples
    --------
    >>> print(printable("wait \x1b[31mred\x07\n5 s"))
    wait \x1b[31mred\x07
    5 s
    """
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() or letter == "\n" else _escaped(letter) for letter in text)


def message_text(text: str) -> str:
    r"""Return a text as one printable line, shortened in the middle if it is very long.

    Parameters
    ----------
    text : str
        Text of an error.

    Examples
    --------
    >>> message_text("a\tname\nof two lines \x1b[0m")
    'a name of two lines \\x1b[0m'
    >>> len(message_text("x" * 10_000)), message_text("x" * 10_000)[100:130]
    (240, 'xxxxxxxxxxxxxxxxxx ... xxxxxxx')
    """
    line = printable(" ".join(text.split()))
    words = LONG_WORD.sub(lambda word: _without_middle(word[0], WORD_SHOWN), line)
    return _without_middle(words, MESSAGE_SHOWN)


def show(*lines: object) -> None:
    r"""Print sanitised lines on standard output.

    Parameters
    ----------
    *lines : object
        Lines or multi-line texts; each begins on a new line. Nothing is printed without any.

    Examples
    --------
    >>> show()
    >>> show("mean wait", 5)
    mean wait
    5
    """
    if lines:
        print(printable("\n".join(map(str, lines))), flush=True)


def warn(line: str) -> None:
    """Print one sanitised line on standard error, after the name of the program.

    Parameters
    ----------
    line : str
        Text of an error, or of a warning after which the command continues.
    """
    print("hpcsimkit:", message_text(line), file=sys.stderr)


@contextmanager
def printable_warnings() -> Iterator[None]:
    """Print warnings of Python and of libraries by `warn`, until the end of a block.

    Their texts may quote names from files: matplotlib names each character that a font does not have. So may
    log messages of libraries; those without a handler are printed, too.
    """
    shown, last = warnings.showwarning, logging.lastResort
    warnings.showwarning = _show_warning
    logging.lastResort = _Logged(logging.WARNING)
    try:
        yield
    finally:
        warnings.showwarning, logging.lastResort = shown, last


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print a warning in one line, with the signature of :func:`warnings.showwarning`."""
    if not issubclass(category, DeprecationWarning):  # those are for developers, whatever the filters say
        warn(f"{category.__name__}: {message} ({Path(filename).name}:{lineno})")


class _Logged(logging.Handler):
    """Handler of messages that no other one takes."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print a message in one line."""
        warn(f"{record.name}: {record.getMessage()}")


def _without_middle(text: str, length: int) -> str:
    if len(text) <= length:
        return text
    gap = " ... "
    end = (length - len(gap)) // 2
    return f"{text[: length - len(gap) - end]}{gap}{text[-end:]}"


def _escaped(letter: str) -> str:
    return letter.encode("unicode_escape", "surrogatepass").decode("ascii")
