"""CuSH: its two selectors, trained together by one worker or by several, or by a teacher that evolves."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from hpcsimkit.commands.flags import RESULTS, Quiet, examples

if TYPE_CHECKING:
    from hpcsimkit.agents.cush.training import GamesTrainer
    from hpcsimkit.agents.learning_curve import Report

__all__ = ["teach_cush", "train_cush"]

System = Annotated[
    Literal["sierra", "summit"], typer.Option(metavar="NAME", help="Whose nodes: sierra or summit.")
]
Nodes = Annotated[int, typer.Option(metavar="N", help="Of the cluster.")]
Horizon = Annotated[int, typer.Option(metavar="T", help="Steps that the job selector sees.")]
Epochs = Annotated[int, typer.Option(metavar="N", help="After each, the networks learn.")]
Rate = Annotated[float, typer.Option(metavar="R", help="The job selector's learning rate.")]
StyleRate = Annotated[float, typer.Option(metavar="R", help="The policy selector's.")]
Seed = Annotated[int, typer.Option(metavar="N", help="Where all randomness comes from.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with an interrupted training.")]


@examples(
    "train-cush --epochs 400 --out sierra",
    "train-cush --epochs 400 --out sierra --resume",
    "train-cush --system summit --fresh --equal-sets --rate 3e-5 --seed 1",
)
def train_cush(
    system: System = "sierra",
    nodes: Nodes = 128,
    horizon: Horizon = 5,
    epochs: Epochs = 5000,
    fresh: Annotated[bool, typer.Option("--fresh", help="Other job sets in each epoch.")] = False,
    equal_sets: Annotated[
        bool, typer.Option("--equal-sets", help="Job sets count alike, however long jobs wait in them.")
    ] = False,
    rate: Rate = 1e-4,
    style_rate: StyleRate = 1e-3,
    seed: Seed = 0,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FOLDER", help="Results folder.  [results/cush-<system>]"),
    ] = None,
    resume: Resume = False,
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
    from hpcsimkit.agents.cush.trainer import CushSettings, CushTrainer
    from hpcsimkit.agents.cush.workers import joined_workers

    problem = CushProblem(system=system, nodes=nodes, horizon=horizon)
    settings = CushSettings(
        epochs=epochs, fresh=fresh, equal_sets=equal_sets, learning_rate=rate, style_learning_rate=style_rate
    )
    with joined_workers() as workers:
        trainer = CushTrainer(problem, settings, seed=seed, workers=workers)
        _train(trainer, out or RESULTS / f"cush-{system}", resume=resume, quiet=quiet or workers.rank > 0)


@examples("teach-cush --out taught", "teach-cush --system summit --seed 1 --out taught-summit --resume")
def teach_cush(
    system: System = "sierra",
    nodes: Nodes = 128,
    horizon: Horizon = 10,
    evolve: Annotated[
        int, typer.Option(metavar="N", min=1, help="Decisions that are taken while the teacher evolves.")
    ] = 600_000,
    epochs: Epochs = 450,
    rate: Annotated[float, typer.Option(metavar="R", help="Learning rate of the dense layer.")] = 3e-5,
    filter_rate: Annotated[float, typer.Option(metavar="R", help="That of the filters.")] = 1e-3,
    style_rate: StyleRate = 0.05,
    seed: Seed = 0,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FOLDER", help="Results folder.  [results/cush-taught-<system>]"),
    ] = None,
    resume: Resume = False,
    quiet: Quiet = False,
) -> None:
    """Let an agent of seven weights evolve, and teach CuSH's job selector.

    Writes both selectors, the learning curve and a checkpoint; the teacher is in the folder teacher inside.
    It is one process's work, and ends after as many epochs as it was begun with.
    """
    from dataclasses import replace

    from hpcsimkit.campaigns.training_parts import require_packages

    require_packages()
    from hpcsimkit.agents.cush.evolved import EVOLVED
    from hpcsimkit.agents.cush.problem import CushProblem
    from hpcsimkit.agents.cush.taught import TaughtSettings, TaughtTrainer, teacher_of
    from hpcsimkit.agents.cush.training import check_settings, check_unused
    from hpcsimkit.agents.cush.workers import joined_workers
    from hpcsimkit.campaigns.training_progress import progress_bar
    from hpcsimkit.errors import UsageError

    problem = CushProblem(system=system, nodes=nodes, horizon=horizon)
    settings = TaughtSettings(
        epochs=epochs, learning_rate=rate, filter_learning_rate=filter_rate, style_learning_rate=style_rate
    )
    check_settings(problem, settings, seed)
    place = out or RESULTS / f"cush-taught-{system}"
    home = place / "teacher"
    with joined_workers() as workers:
        if workers.count > 1:
            raise UsageError(
                f"teach-cush is for one process, found {workers.count}: start it without torchrun"
            )
    if not resume:
        check_unused(place)
        if home.exists():
            raise UsageError(f"{home}: there is a teacher already: go on with it (--resume), or elsewhere")
    with progress_bar(quiet=quiet) as draw:

        def tell(report: Report) -> None:
            draw("its teacher evolves", report.steps, report.of, report.steps_per_second, "steps/s")

        evolving = replace(EVOLVED, steps=evolve)
        teacher = teacher_of(problem, evolving, seed=seed, folder=home, resume=resume, tell=tell)
    trainer = TaughtTrainer(problem, settings, teacher=teacher, seed=seed)
    _train(trainer, place, resume=resume, quiet=quiet)


def _train(trainer: GamesTrainer, place: Path, *, resume: bool, quiet: bool) -> None:
    """Train to the end; show how it goes, and what has come of it."""
    from hpcsimkit.agents.cush.training import AGENTS
    from hpcsimkit.campaigns.training_progress import progress_bar

    with progress_bar(quiet=quiet) as draw:

        def tell(report: Report) -> None:
            words = f"CuSH, NTAT {report.measures['normalised_turnaround']:.2f}"
            draw(words, report.steps, report.of, report.steps_per_second, "epochs/s")

        trainer.train(place, resume=resume, tell=tell)
    if not quiet:
        measures = trainer.curve[-1].measures.items()
        print(f"{trainer.epoch} epochs:", ", ".join(f"{name} {value:.4g}" for name, value in measures))
        print(f"agents: {', '.join(os.path.relpath(place / name) for name in AGENTS.values())}")
