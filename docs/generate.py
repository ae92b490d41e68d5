"""Writes the generated pages: policies, metrics, commands, keys of training files, public API, modules."""

from __future__ import annotations

from pathlib import Path

from pages.command_line import cli_page
from pages.formats import formats_page, logs_page, named_logs_page, slurm_page
from pages.metrics import metrics_page
from pages.modules import index_page, package_page, packages
from pages.policies import policies_page
from pages.public_api import name_pages, public_page
from pages.slurm_parameters import slurm_parameters_page
from pages.training_keys import training_page


def write_all(folder: Path) -> None:
    """Write all generated pages to a folder; unchanged files are not rewritten."""
    found = packages()
    pages = {
        "formats.md": formats_page(),
        "logs.md": logs_page(),
        "named_logs.md": named_logs_page(),
        "slurm_formats.md": slurm_page(),
        "metrics.md": metrics_page(),
        "policies.md": policies_page(),
        "slurm_parameters.md": slurm_parameters_page(),
        "cli.md": cli_page(),
        "training.md": training_page(),
        "public_api.md": public_page(),
        **name_pages(),
        **{f"api/{name}.rst": package_page(modules) for name, modules in found.items()},
        "api/index.md": index_page(found),
    }
    for name, text in pages.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    for old in {*folder.glob("api/*"), *folder.glob("public/*")} - {folder / name for name in pages}:
        old.unlink()
