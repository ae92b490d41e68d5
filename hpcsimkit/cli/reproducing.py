"""Command that reproduces published experiments."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hpcsimkit.cli.declaring import argument, examples, option, switch
from hpcsimkit.cli.flags import AllowCode, EngineName, Overwrite, results_in, takes
from hpcsimkit.cli.output import QUIET, RESULTS, say, say_results
from hpcsimkit.reproductions.papers import SYSTEMS


@examples(
    "reproduce masked-ppo beocat-2021-03.csv.gz beocat-2021-04.csv.gz beocat-2021-05.csv.gz --quick",
    "reproduce masked-ppo beocat-2021-0*.csv.gz --out masked-ppo --workers 2",
    "reproduce dras ALCF-Theta-2022.swf.gz HPC2N-2002-2.2-cln.swf.gz --out dras",
    "reproduce cush --quick",
    "reproduce cush --baselines",
    "reproduce cush openb_pod_list_default.csv.gz philly-muri-trace1.csv --plus",
    "reproduce dras ALCF-Theta-2022.swf.gz SDSC-SP2-1998-4.2-cln.swf.gz --plus",
)
@takes(
    system=argument(
        str,
        "SYSTEM",
        f"Name of the experiment: {', '.join(sorted(SYSTEMS))}; or path of a folder with plan.toml.",
    ),
    logs=argument(
        list[Path] | None,
        "LOG ...",
        "Paths of the logs of the experiment; cush needs none, or takes files of job sets (CSV) named "
        "...sierra... or ...summit...",
    ),
    quick=switch("--quick", "Run a small version, which takes less than 10 minutes on 2 cores."),
    full=switch(
        "--full",
        "Simulate Theta in full size instead of a tenth (dras); simulate also each new rule alone, and more "
        "rivals (winning).",
    ),
    rivals=switch(
        "--baselines",
        "Run only the heuristics, those of the paper and more, on the test jobs; train no agent.",
        "--rivals",  # the name before version 1.0
    ),
    subsamples=switch(
        "--subsamples",
        "Train only the agents for wait and utilisation, and judge them on several random subsamples of each "
        "unseen day (masked-ppo only).",
    ),
    plus=switch(
        "--plus",
        "Train only CuSH+, one network for any number of jobs, and judge it on job sets of many sizes and on "
        "jobs of the given logs of openb and Philly (cush); train only DRAS+, and judge it on the last third "
        "of each log beside UNICEF and XFactor, with and without tests (dras).",
    ),
    workers=option(int, "N", "Number of parallel tasks, 1 or more; by default one per CPU core.  [auto]"),
    engine=EngineName,
    allow_code=AllowCode,
    out=results_in("<system>"),
    overwrite=Overwrite,
    seed=option(int, "N", "Random seed, 0 or more."),
)
def reproduce(
    *,
    system: str,
    logs: list[Path] | None,
    quick: bool,
    workers: int | None,
    engine: dict[str, str] | None,
    allow_code: list[str] | None,
    seed: int = 0,
    out: str | None,
    overwrite: bool,
    **flags: Any,
) -> None:
    """Reproduce a published experiment, from the logs to its tables.

    Prints the tasks and the expected time; the same command resumes an interrupted run. Writes report.md with
    tables and figures, and targets.json with the published targets and whether each was reached. A results
    folder belongs to one seed, size preset and set of logs. Results of another version of hpcsimkit are
    computed again; the old ones are kept beside the new ones.
    """
    from hpcsimkit.errors import require_packages
    from hpcsimkit.experiments.parts.learner_parts import PACKAGES

    require_packages("training", "rl", *PACKAGES)
    from hpcsimkit.experiments.settings.engine_table import Parallel
    from hpcsimkit.reproductions.plans.planned import reproduction_named
    from hpcsimkit.reproductions.reproduction_run import REPORT, ReproductionRun
    from hpcsimkit.reproductions.targets import targets_table

    parallel = Parallel.of_flags({"workers": workers, "engine": engine})
    kind = reproduction_named(system, allow_code or ())
    system = Path(system).resolve().name if system not in SYSTEMS else system
    chosen = [flag for flag, given in flags.items() if given]
    reproduction = kind.asked(system, logs or (), chosen, quick=quick, seed=seed)
    place = Path(out or RESULTS / "-".join([system, *chosen, *["quick"] * quick]))
    named = None if engine is None else parallel.engine_for(0)
    many = workers or os.cpu_count() or 1
    run = ReproductionRun(reproduction, place, system, many if named is None else named.workers, named)
    conclusion = run.run(quiet=QUIET.get(), overwrite=overwrite, say=say)
    if conclusion.targets:
        say(targets_table(conclusion.targets))
    say_results(place / REPORT)
