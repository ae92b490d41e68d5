"""CuSH: its two selectors, trained together by one worker or by several."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

import typer

from hpcsimkit.commands.flags import RESULTS, Quiet, examples

__all__ = ["train_cush"]


@examples(
    "train-cush --epochs 400 --out sierra",
    "train-cush --epochs 400 --out sierra --resume",
    "train-cush --system summit --fresh --equal-sets --rate 3e-5 --seed 1",
)
def train_cush(
    system: Annotated[
        Literal["sierra", "summit"], typer.Option(metavar="NAME", help="Whose nodes: sierra or summit.")
    ] = "sierra",
    nodes: Annotated[int, typer.Option(metavar="N", help="Of the cluster.")] = 128,
    horizon: Annotated[int, typer.Option(metavar="T", help="Steps that the job selector sees.")] = 5,
    epochs: Annotated[int, typer.Option(metavar="N", help="After each, the networks learn.")] = 5000,
    fresh: Annotated[bool, typer.Option("--fresh", help="Other job sets in each epoch.")] = False,
    equal_sets: Annotated[
        bool, typer.Option("--equal-sets", help="Job sets count alike, however long jobs wait in them.")
    ] = False,
    rate: Annotated[float, typer.Option(metavar="R", help="The job selector's learning rate.")] = 1e-4,
    style_rate: Annotated[float, typer.Option(metavar="R", help="The policy selector's.")] = 1e-3,
    seed: Annotated[int, typer.Option(metavar="N", help="Where all randomness comes from.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FOLDER", help="Results folder.  [results/cush-<system>]"),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with an interrupted training.")] = False,
    quiet: Quiet = False,
) -> None:
    """Train CuSH's job selector and policy selector.

    Writes both agents, the learning curve and a checkpoint a worker. Several workers, on one
    host or more, share the simulations of each epoch if torchrun starts them: torchrun --nproc-per-node 2
    -m hpcsimkit.run train-cush ...
    """
    from hpcsimkit.campaigns.training_parts import require_packages

    require_packages()
    from hpcsimkit.agents.cush.problem import CushProblem
    from hpcsimkit.agents.cush.trainer import AGENTS, CushSettings, CushTrainer
    from hpcsimkit.agents.cush.workers import joined_workers
    from hpcsimkit.agents.learning_curve import Report
    from hpcsimkit.campaigns.training_progress import progress_bar

    problem = CushProblem(system=system, nodes=nodes, horizon=horizon)
    settings = CushSettings(
        epochs=epochs, fresh=fresh, equal_sets=equal_sets, learning_rate=rate, style_learning_rate=style_rate
    )
    place = out or RESULTS / f"cush-{system}"
    with joined_workers() as workers:
        quiet = quiet or workers.rank > 0
        trainer = CushTrainer(problem, settings, seed=seed, workers=workers)
        with progress_bar(quiet=quiet) as draw:

            def tell(report: Report) -> None:
                words = f"CuSH, NTAT {report.measures['normalised_turnaround']:.2f}"
                draw(words, report.steps, report.of, report.steps_per_second, "epochs/s")

            trainer.train(place, resume=resume, tell=tell)
    if not quiet:
        measures = trainer.curve[-1].measures.items()
        print(f"{trainer.epoch} epochs:", ", ".join(f"{name} {value:.4g}" for name, value in measures))
        print(f"agents: {', '.join(os.path.relpath(place / name) for name in AGENTS.values())}")
