"""The JSON object in a log."""

from __future__ import annotations

import json
import os
from typing import Any

from hpcsimkit.errors import WorkloadError
from hpcsimkit.io.documents import json_value
from hpcsimkit.io.files import BYTE_ORDER_MARK, read_bytes
from hpcsimkit.io.formats import Format

__all__ = ["json_of"]


def json_of(path: str | os.PathLike[str], form: Format) -> dict[str, Any]:
    """Return the JSON object in a file, plain or compressed.

    Raises
    ------
    WorkloadError
        The file cannot be read, exceeds a limit, or is no JSON object.
    """
    content = read_bytes(path, form).removeprefix(BYTE_ORDER_MARK)
    try:
        value = json_value(content.decode(), path)
    except UnicodeDecodeError:
        raise WorkloadError(f"{path}: JSON needed, found no UTF-8 text") from None
    except json.JSONDecodeError as error:
        raise WorkloadError(f"{path}:{error.lineno}: JSON needed: {error.msg}") from None
    except ValueError as error:
        raise WorkloadError(f"{path}: JSON needed: {error}") from None
    if not isinstance(value, dict):
        raise WorkloadError(f"{path}: a JSON object needed, found {type(value).__name__}")
    return value
