"""The golden cases on record: their digests, and which of them the compiled simulator runs."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

FILE = Path(__file__).with_name("record.json")


@dataclass(frozen=True)
class Record:
    """What is on record.

    Parameters
    ----------
    digests : dict of str to str
        Digest of the text of each case, by its name.
    compiled : list of str
        Names of the runs that the compiled simulator does not refuse.
    spaces : dict of str to str
        Digest of the space that some of these take, by their names.
    """

    digests: dict[str, str]
    compiled: list[str]
    spaces: dict[str, str]


def read() -> Record:
    """Return the record."""
    return Record(**json.loads(FILE.read_text(encoding="utf-8")))


def write(record: Record) -> None:
    """Replace the record."""
    FILE.write_text(json.dumps(asdict(record), indent=1) + "\n", encoding="utf-8")


def digest(text: str) -> str:
    """Return the digest of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]
