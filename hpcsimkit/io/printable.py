"""Sanitised text output: names from files and arguments, safe for a terminal and limited in length."""

from __future__ import annotations

import re
import sys

__all__ = ["message_text", "printable", "show", "warn"]

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


def _without_middle(text: str, length: int) -> str:
    if len(text) <= length:
        return text
    gap = " ... "
    end = (length - len(gap)) // 2
    return f"{text[: length - len(gap) - end]}{gap}{text[-end:]}"


def _escaped(letter: str) -> str:
    return letter.encode("unicode_escape", "surrogatepass").decode("ascii")
