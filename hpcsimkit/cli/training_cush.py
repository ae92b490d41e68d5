"""Commands that train CuSH's two selectors, by policy gradient or by imitation of an expert."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from hpcsimkit.cli.flags import RESULTS, Limits, Quiet, examples
from hpcsimkit.io.printable import show

if TYPE_CHECKING:
    from hpcsimkit.agents.cush.training import GamesTrainer
    from hpcsimkit.agents.training.learning_curve import Report

__all__ = ["teach_cush", "train_cush"]

System = Annotated[
    Literal["sierra", "summit"],
    typer.Option(metavar="NAME", help="System with the node type of the cluster: sierra or summit."),
]
Nodes = Annotated[int, typer.Option(metavar="N", help="Number of nodes of the cluster.")]
Horizon = Annotated[
    int, typer.Option(metavar="T", help="Time horizon of the job selector's observation [time steps].")
]
Epochs = Annotated[
    int, typer.Option(metavar="N", help="Number of epochs; the networks are updated after each.")
]
Rate = Annotated[float, typer.Option(metavar="R", help="Learning rate of the job selector.")]
StyleRate = Annotated[float, typer.Option(metavar="R", help="Learning rate of the policy selector.")]
Seed = Annotated[int, typer.Option(metavar="N", help="Random seed, 0 or more.")]
Resume = Annotated[
    bool, typer.Option("--resume", help="Resume an interrupted training in the results folder.")
]


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
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Sample new job sets in each epoch.  [the same job sets]")
    ] = False,
    equal_sets: Annotated[
        bool,
        typer.Option(
            "--equal-sets",
            help="Give all job sets equal weight.  [job sets with longer waits weigh more]",
        ),
    ] = False,
    rate: Rate = 1e-4,
    style_rate: StyleRate = 1e-3,
    seed: Seed = 0,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FOLDER", help="Results folder.  [results/cush-<system>]"),
    ] = None,
    resume: Resume = False,
    limit: Limits = None,
    quiet: Quiet = False,
) -> None:
    """Train CuSH's job selector and policy selector.

    Writes both agents, the learning curve and a checkpoint per worker. Several workers, on one host or more,
    share the simulations of each epoch if started by torchrun: torchrun --nproc-per-node 2 -m hpcsimkit.run
    train-cush ...
    """
    from hpcsimkit.experiments.training_parts import require_packages

    require_packages()
    from hpcsimkit.agents.cush.problem import CushProblem
    from hpcsimkit.agents.cush.trainer import CushSettings, CushTrainer
    from hpcsimkit.agents.training.workers import joined_workers

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
        int,
        typer.Option(
            metavar="N", min=1, help="Number of decisions (steps) to train the expert (cross-entropy method)."
        ),
    ] = 600_000,
    epochs: Epochs = 450,
    rate: Annotated[
        float, typer.Option(metavar="R", help="Learning rate of the job selector's dense layer.")
    ] = 3e-5,
    filter_rate: Annotated[
        float, typer.Option(metavar="R", help="Learning rate of the job selector's filters.")
    ] = 1e-3,
    style_rate: StyleRate = 0.05,
    seed: Seed = 0,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FOLDER", help="Results folder.  [results/cush-taught-<system>]"),
    ] = None,
    resume: Resume = False,
    limit: Limits = None,
    quiet: Quiet = False,
) -> None:
    """Train CuSH's job selector by imitation of an expert.

    The expert, an agent with seven weights, is trained first, by the cross-entropy method. Writes both
    selectors, the learning curve and a checkpoint; the expert is in the subfolder teacher. The training runs
    in one process; a resumed training keeps its number of epochs.
    """
    from dataclasses import replace

    from hpcsimkit.experiments.training_parts import require_packages

    require_packages()
    from hpcsimkit.agents.cush.evolved import EVOLVED
    from hpcsimkit.agents.cush.problem import CushProblem
    from hpcsimkit.agents.cush.taught import TaughtSettings, TaughtTrainer, teacher_of
    from hpcsimkit.agents.cush.training import check_settings
    from hpcsimkit.agents.training.checkpoints import Checkpoints
    from hpcsimkit.agents.training.workers import joined_workers
    from hpcsimkit.engine.lock import in_use
    from hpcsimkit.errors import UsageError
    from hpcsimkit.experiments.training_progress import progress_bar
    from hpcsimkit.kernel.watchdog import Watchdog

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
        if Checkpoints(place, {}).exist:
            raise UsageError(f"{place}: there is a checkpoint already: resume it, or choose another folder")
        if home.exists() and any(home.iterdir()):
            raise UsageError(f"{home}: there is a teacher already: go on with it (--resume), or elsewhere")
    with in_use(home), progress_bar(quiet=quiet) as draw:

        def tell(report: Report) -> None:
            draw("its teacher evolves", report.steps, report.of, report.steps_per_second, "steps/s")

        evolving = replace(EVOLVED, total_timesteps=evolve)
        with Watchdog():
            teacher = teacher_of(problem, evolving, seed=seed, folder=home, resume=resume, tell=tell)
    trainer = TaughtTrainer(problem, settings, teacher=teacher, seed=seed)
    _train(trainer, place, resume=resume, quiet=quiet)


def _train(trainer: GamesTrainer, place: Path, *, resume: bool, quiet: bool) -> None:
    """Run a training to its end; show its progress and its final measures."""
    from hpcsimkit.agents.cush.training import AGENTS
    from hpcsimkit.engine.lock import in_use
    from hpcsimkit.experiments.training_progress import progress_bar
    from hpcsimkit.kernel.watchdog import Watchdog

    trainer.check()
    with in_use(place, f".worker-{trainer.workers.rank}.lock"), progress_bar(quiet=quiet) as draw:

        def tell(report: Report) -> None:
            words = f"CuSH, NTAT {report.measures['normalised_turnaround']:.2f}"
            draw(words, report.steps, report.of, report.steps_per_second, "epochs/s")

        with Watchdog():
            trainer.train(place, resume=resume, tell=tell)
    if not quiet:
        measures = trainer.curve[-1].measures.items()
        shown = ", ".join(f"{name} {value:.4g}" for name, value in measures)
        show(f"{trainer.rounds} epochs: {shown}")
        show(f"agents: {', '.join(os.path.relpath(place / name) for name in AGENTS.values())}")
