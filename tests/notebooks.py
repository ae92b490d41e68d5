"""Cells run in a fresh kernel of Jupyter, and what they show.

``python -m tests.notebooks [NAME ...]`` runs the notebooks of the documentation, and stores what their cells show.
"""

from __future__ import annotations

import asyncio
import os
import sys
import warnings
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parent.parent


def executed(notebook: Any, folder: Path, seconds: int = 600) -> Any:
    """Return a notebook after all of its cells ran in a fresh kernel, in a folder; an error in a cell is raised."""
    python = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    before = dict(os.environ)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), before.get("PYTHONPATH")]))
    os.environ.pop("MPLBACKEND", None)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the event loop of the client
            client = NotebookClient(notebook, timeout=seconds, resources={"metadata": {"path": str(folder)}})
            client.create_kernel_manager()
            client.km.kernel_cmd = python  # this interpreter, whatever kernels are installed
            asyncio.run(client.async_execute(cleanup_kc=True))
    finally:
        os.environ.clear()
        os.environ.update(before)
    return notebook


def run_cells(cells: Iterable[str], folder: Path) -> list[list[Any]]:
    """Return the outputs of each cell, run one after the other in a fresh kernel."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return [cell.outputs for cell in executed(notebook, folder).cells]


def kinds_of(outputs: Iterable[Any]) -> set[str]:
    """The types of data that some outputs have: ``image/png``, ``text/html`` ..."""
    return {kind for output in outputs for kind in output.get("data", {})}


PLACE = ROOT / "docs" / "notebooks"
NAMES = sorted(path.stem for path in PLACE.glob("*.ipynb"))


def read(name: str) -> Any:
    """A notebook of the documentation."""
    return nbformat.read(PLACE / f"{name}.ipynb", as_version=4)


def texts_of(cell: Any) -> list[str]:
    """What a cell prints and shows as text; pictures have none, and places in memory none that is the same again."""
    shown = []
    for output in cell.get("outputs", ()):
        data = output.get("data", {})
        if "image/png" not in data and "text/plain" in data:
            shown.append(data["text/plain"])
        elif output.output_type == "stream":
            shown.append(output.text)
    return shown


def main() -> None:
    """Run notebooks and store their outputs, without times and counts of executions."""
    for name in sys.argv[1:] or NAMES:
        with TemporaryDirectory() as folder:
            notebook = executed(read(name), Path(folder))
        for cell in notebook.cells:
            cell.metadata = {}
        nbformat.write(notebook, PLACE / f"{name}.ipynb")
        print(name)


if __name__ == "__main__":
    main()
