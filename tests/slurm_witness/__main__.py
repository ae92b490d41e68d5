"""A real Slurm as a witness: play a random day on it, 60 times faster than time, and compare.

    python -m tests.slurm_witness --seed 5 --shape mixed --out day5
    python -m tests.slurm_witness --compare day5

needs the packages of Debian `slurm-wlm slurmdbd slurm-wlm-mysql-plugin mariadb-server munge faketime`
(``apt-get install``), root, and the scripts of the cluster in ``slurm/cluster`` of the shared folder
(HPCSIMKIT_SHARED). A day of four hours takes about nine minutes on two idle cores: on busy ones, the daemons fall
behind their clock, and the day is another one.

The first line says whether they kept pace: some seconds are those of the commands themselves. Ten seconds and more
are too many: play it again, more slowly (``--speed 30``). On the fast clock, killed jobs (stopped for others, or at their
limits) keep their nodes completing for some two minutes of it, one or two seconds of the true one. The median of these
times, which slurmctld logs, is the ``completing`` of the simulation.

The mean wait of one day says little: with run times that are some seconds longer, the same rules make another day.
So the ratio is also that of replays with run times up to five seconds longer (``--replays``).

Compared are: the priority of each waiting job with ``sprio``, fair shares with ``sshare``, the reasons with
``squeue %r``, the waits of the day with those of ``as-configured``, and the windows of ``advise`` for each snapshot of
the queue with ``squeue --start`` and with what happened.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import floor
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas
import typer

from hpcsimkit import Simulation
from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.advice.futures import Futures
from hpcsimkit.experiments.advice.live import live_case, recorded_result
from hpcsimkit.experiments.comparison.case import Case
from hpcsimkit.experiments.comparison.experiment import Experiment
from hpcsimkit.experiments.questions.advise import AdviceQuestion
from hpcsimkit.experiments.questions.question import ask
from hpcsimkit.experiments.questions.validate import ValidationQuestion
from hpcsimkit.experiments.source import CONFIGURED
from hpcsimkit.slurm.profile import Slurm
from tests.slurm.snapshots import fair_shares, shares, waiting
from tests.slurm_witness.load import SHAPES

PROGRAMS = ("slurmctld", "slurmd", "slurmdbd", "munged", "mariadbd", "faketime")
PACKAGES = "slurm-wlm slurmdbd slurm-wlm-mysql-plugin mariadb-server munge faketime"
CONFIGURATION = ("slurm.conf", "gres.conf")
MUNGE = Path("/run/munge/munged.pid")
DONE = "done"
"""File that says that the day is over."""

LISTS = {
    "sacctmgr_show_qos.txt": ("sacctmgr", "--parsable2", "show", "qos"),
    "sacctmgr_show_assoc.txt": ("sacctmgr", "--parsable2", "show", "assoc"),
}
EVENTS = "sacctmgr --parsable2 show event All_Time"
FAILURES, CALENDAR = "sacctmgr_show_event.txt", "reservations.txt"
"""What happened to the nodes on the day, and the reservation that was made on it."""

COMPLETING = "completing.txt"
"""Lines of slurmctld on how long the nodes of killed jobs were completing: those that took a minute and more."""

LONGER = 5
"""Time by which run times of replays are longer at most [s]."""

BARS = {"ks": 0.08, "ratio": (0.85, 1.2), "reasons": 0.97, "priority": 1.0, "share": 5e-7, "advice": 1 / 3}


def main(
    out: Annotated[Path, typer.Option(help="Folder of the day's outputs.")] = Path("witness"),
    seed: Annotated[int, typer.Option(help="Seed of the day.")] = 1,
    shape: Annotated[str, typer.Option(help=f"Kind of day: {', '.join(SHAPES)}.")] = "mixed",
    jobs: Annotated[int, typer.Option(help="Number of submissions.")] = 240,
    hours: Annotated[float, typer.Option(help="Hours during which jobs are submitted.")] = 4,
    speed: Annotated[int, typer.Option(help="How many times faster than time; less on busy cores.")] = 60,
    futures: Annotated[int, typer.Option(help="Number of futures of each snapshot; 0 for no advice.")] = 50,
    replays: Annotated[int, typer.Option(help="Number of replays with other run times; 0 for none.")] = 10,
    compare: Annotated[Path | None, typer.Option(help="Only compare the outputs in a folder.")] = None,
) -> None:
    """Play a random day on a real Slurm, and compare the simulation with it."""
    if compare is None:
        if shape not in SHAPES:
            raise typer.BadParameter(f"a shape of {', '.join(SHAPES)} is needed, found {shape!r}")
        play(out, seed, shape, jobs, hours, speed)
    for line in lines_of(compare or out, futures, replays):
        print(line, flush=True)


# --- the day -------------------------------------------------------------------------------------------------


def play(out: Path, seed: int, shape: str, jobs: int, hours: float, speed: int = 60) -> None:
    """Start the cluster on the fast clock, submit a day, and keep what the commands print."""
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        raise SystemExit(f"missing: {', '.join(missing)}; apt-get install {PACKAGES}")
    scripts = Path(os.environ.get("HPCSIMKIT_SHARED", "../shared")) / "slurm/cluster"
    if not scripts.is_dir():
        raise SystemExit(f"the scripts of the cluster are needed, found no {scripts} (HPCSIMKIT_SHARED)")
    root = Path(tempfile.gettempdir()) / f"witness-{os.getpid()}"
    environment = {**os.environ, "ROOT": str(root), "WITNESS_SEED": str(seed), "WITNESS_SHAPE": shape}
    environment = {name: value for name, value in environment.items() if name != "PYTHONPATH"}
    root.mkdir(mode=0o755)
    try:
        subprocess.run(["bash", scripts / "setup.sh", "fast"], env=environment, check=True)
        _end_munge()  # the fast clock has one of its own
        shutil.copyfile(Path(__file__).with_name("load.py"), root / "loadf.py")
        _with_other_lengths(root / "fast.sh", jobs, hours)
        fast = ["faketime", "-f", f"+0 x{speed}", "bash", str(root / "fast.sh")]
        day = subprocess.Popen(fast, cwd=root, env=environment)
        while day.poll() is None and not (root / DONE).exists():  # faketime itself waits for the daemons, too
            time.sleep(1)
        day.terminate()
    finally:
        _collect(root, out)
        subprocess.run(["bash", scripts / "stop.sh"], env=environment)
        _end(root)
    if not (root / DONE).exists():
        raise SystemExit(f"the day has not come to its end; what there is of it: {out}, logs: {root}/log")


def _with_other_lengths(script: Path, jobs: int, hours: float) -> None:
    """Let the script submit another number of jobs, print its lists, and look back over its whole day."""
    text = script.read_text()
    text = text.replace("loadf.py 240 14400", f"loadf.py {jobs} {int(hours * 3600)}")
    text = re.sub(r"--starttime \S+", "--starttime now-3days", text)
    lists = "".join(f"{' '.join(command)} > {name}\n" for name, command in LISTS.items())
    lists += f"{EVENTS} > {FAILURES}\ngrep 'completion process took' log/slurmctld.log > {COMPLETING}\n"
    script.write_text(text + lists + f"cp /etc/slurm/slurm.conf /etc/slurm/gres.conf .\ntouch {DONE}\n")


def _collect(root: Path, out: Path) -> None:
    """Copy what the commands printed."""
    out.mkdir(parents=True, exist_ok=True)
    for name in (
        "fast.sacct",
        "fast_full.sacct",
        "loadf.out",
        FAILURES,
        CALENDAR,
        COMPLETING,
        *CONFIGURATION,
        *LISTS,
    ):
        if (root / name).is_file():
            shutil.copyfile(root / name, out / name)
    if (root / "snapf").is_dir():
        shutil.copytree(root / "snapf", out / "snapshots", dirs_exist_ok=True)


def _end(root: Path) -> None:
    """End the processes that the folder knows of."""
    for file in (root / "run").glob("*.pid"):
        _end_process(file)
    _end_munge()


def _end_munge() -> None:
    """End the service of the keys, and wait until it has left its socket."""
    _end_process(MUNGE)
    for _ in range(50):
        if not MUNGE.exists():
            return
        time.sleep(0.1)


def _end_process(file: Path) -> None:
    """End the process whose number a file holds, if it runs."""
    text = file.read_text().strip() if file.is_file() else ""
    if text.isdecimal():
        try:
            os.kill(int(text), signal.SIGTERM)
        except ProcessLookupError:
            return


# --- the comparison --------------------------------------------------------------------------------------------


def lines_of(day: Path, futures: int, replays: int = 0) -> Iterator[str]:
    """Yield the measures of a day, each with its bar."""
    profile = Slurm.read(_configuration(day))
    snapshots = sorted(path.parent for path in day.glob("snapshots/*/sprio.txt"))
    log = day / "fast_full.sacct"
    yield from _pace(log)
    yield f"nodes of killed jobs were completing for {_completing(day)} s in the median"
    yield from _priorities(profile, snapshots)
    yield from _shares(profile, snapshots)
    flags = {"log": str(log), "slurm": str(day / "conf"), "policies": [CONFIGURED], **_happened(day)}
    experiment = Experiment.of_flags(flags)
    case = Case.of(experiment, CONFIGURED)
    found = ask(ValidationQuestion(case=case))
    waits = found.validation.table.iloc[0]
    low, high = BARS["ratio"]  # type: ignore[misc]
    yield f"jobs: {waits.jobs}, mean wait {waits.recorded:.0f} s on record, {waits.simulated:.0f} s simulated"
    yield f"ratio of mean waits: {waits.ratio:.3f} (bar {low} to {high})"
    yield from _replayed(case, replays)
    yield f"KS distance of waits: {waits.ks:.3f} with a tolerance of 60 s (bar {BARS['ks']})"
    yield from found.causes.sentences()
    # Reasons and windows are those of a moment, at which failures to come are not known.
    foreseen = {name: value for name, value in flags.items() if name != "failures"}
    case = Case.of(Experiment.of_flags(foreseen), CONFIGURED)
    yield from _reasons(case, snapshots)
    tables = [_windows(case, snapshot, log, futures) for snapshot in snapshots if futures]
    for snapshot, table in zip(snapshots, tables, strict=False):
        yield from _advice(f"snapshot {snapshot.name}", table)
    if tables:
        yield from _advice("all snapshots", pandas.concat(tables))
        yield f"(bars: error {BARS['advice']:.2f} of that of squeue, 75% to 85% of the starts in the windows)"


def _replayed(case: Case, replays: int) -> Iterator[str]:
    """Yield the ratios of mean waits with run times up to `LONGER` longer."""
    recorded, rng, ratios = case.jobs.recorded_wait_time, np.random.default_rng(1), []
    for _ in range(replays):
        run_time = case.jobs.run_time + rng.integers(0, LONGER + 1, len(case.jobs))
        jobs = replace(case.jobs, columns={**case.jobs.columns, "run_time": run_time})
        found = Simulation(jobs, case.policy, setup=case.setup).run()
        known = (recorded >= 0) & (found.start_time >= 0)
        ratios.append(found.wait_time[known].mean() / recorded[known].mean())
    if ratios:
        yield (
            f"ratio in {replays} replays with run times up to {LONGER} s longer: mean {np.mean(ratios):.3f}, "
            f"from {min(ratios):.3f} to {max(ratios):.3f}"
        )


def _happened(day: Path) -> dict[str, str]:
    """Return the options for what happened to nodes: failures, and maintenance."""
    found = {}
    if (file := day / FAILURES).is_file() and re.search(r"\|(DOWN|DRAIN|FAIL)", file.read_text()):
        found["failures"] = str(file)
    if (file := day / CALENDAR).is_file():
        found["calendar"] = str(file)
    return found


def _pace(log: Path) -> Iterator[str]:
    """Yield by how much jobs ran longer than they sleep: on busy cores, the daemons fall behind their clock."""
    heading, *lines = log.read_text().splitlines()
    rows = (dict(zip(heading.split("|"), line.split("|"), strict=True)) for line in lines)
    longer = []
    for row in rows:
        asleep = re.search(r"sleep (\d+)", row.get("SubmitLine", ""))
        ended = row["State"] in ("COMPLETED", "FAILED") and int(row["ElapsedRaw"]) < 60 * int(
            row["TimelimitRaw"]
        )
        if asleep and ended:
            longer.append(int(row["ElapsedRaw"]) - int(asleep[1]))
    if longer:
        median, most = np.quantile(longer, (0.5, 0.9))
        yield f"pace: jobs ran {median:.0f} s longer than they sleep in the median, {most:.0f} s at 90 %"


def _configuration(day: Path) -> Path:
    """Return a folder with the configuration alone, and with the time for which killed jobs keep their nodes."""
    folder = day / "conf"
    folder.mkdir(exist_ok=True)
    for name in (*CONFIGURATION, *LISTS):
        if (day / name).is_file():
            shutil.copyfile(day / name, folder / name)
    if seconds := _completing(day):
        file = folder / "slurm.conf"
        given = "SchedulerParameters="
        file.write_text(file.read_text().replace(given, f"{given}completing={seconds},"))
    return folder


def _completing(day: Path) -> int:
    """Return for how long the nodes of killed jobs were completing [s]; 0 if slurmctld says nothing of it."""
    file = day / COMPLETING
    found = re.findall(r"completion process took (\d+) seconds", file.read_text()) if file.is_file() else []
    return int(np.median(list(map(int, found)))) if found else 0


def _priorities(profile: Slurm, snapshots: list[Path]) -> Iterator[str]:
    """Yield how many priorities are those of sprio, which is up to one period of calculation behind."""
    rules = profile.priority
    late = rules.age * rules.calc_period / rules.max_age
    each = [job for snapshot in snapshots for job in waiting(profile, snapshot) if not job.exclusive]
    near = [
        job
        for job in each
        if floor(job.computed - late) - BARS["priority"]
        <= job.printed
        <= floor(job.computed) + BARS["priority"]
    ]
    if each:
        yield (
            f"priorities within {BARS['priority']:g} of sprio, by the age at any time of its last period of "
            f"{rules.calc_period} s: {len(near)} of {len(each)}"
        )


def _shares(profile: Slurm, snapshots: list[Path]) -> Iterator[str]:
    equal = total = 0
    for snapshot in snapshots:
        printed = [share for share in shares(snapshot / "sshare.txt") if share.user]
        found = fair_shares(profile, {(share.account, share.user): share.norm_usage for share in printed})
        total += len(printed)
        equal += sum(
            abs(share.fair_share - found[share.account, share.user]) <= BARS["share"] for share in printed
        )
    if total:
        yield f"fair shares equal to sshare in six digits: {equal} of {total}"


def _reasons(case: Case, snapshots: list[Path]) -> Iterator[str]:
    """Yield for how many jobs of the snapshots the reason is that of ``squeue %r``, and the commonest others."""
    others: Counter[tuple[str, str]] = Counter()
    equal = given = 0
    for snapshot in snapshots:
        at = int((snapshot / "at").read_text())
        printed = _printed_reasons(snapshot / "squeue.txt")
        fair = {
            (each.account, each.user): each.fair_share
            for each in shares(snapshot / "sshare.txt")
            if each.user
        }
        found, stuck = reasons_at(case, snapshot / "squeue.json", at, fair)
        given += len({*printed} & {*stuck})
        for job in {*printed} & {*found}:
            equal += found[job] == printed[job]
            others[printed[job], found[job]] += found[job] != printed[job]
    total = equal + others.total()
    if total:
        yield (
            f"reasons equal to squeue %r: {equal} of {total} job-snapshots, {equal / total:.1%} (bar "
            f"{BARS['reasons']:.0%}); besides {given} of jobs that never start, which the queue states"
        )
    for (theirs, ours), count in others.most_common(5):
        if count:
            yield f"    {count} x {theirs[:40]} there, {ours[:40]} here"


def reasons_at(
    case: Case, queue: Path, at: int, fair: Mapping[tuple[str, str], float]
) -> tuple[dict[str, str], Mapping[str, str]]:
    """Return why the jobs of a queue wait by the rules of the simulation, and those that never start."""
    whole, live = live_case(case, str(queue), at)
    result = recorded_result(whole.jobs, live.ended, whole.cluster, whole.name)
    futures = Futures(whole, result, recorded=True, live_at=at)
    moment = futures.moment(at)
    names = [whole.jobs.label("id", number) for number in whole.jobs.id.tolist()]
    waiting = (names[row] for row in moment.waiting.tolist())
    return dict(zip(waiting, futures.reasons(moment, fair), strict=True)), live.stuck


def _printed_reasons(file: Path) -> dict[str, str]:
    """Return the reasons of the waiting jobs that squeue printed."""
    lines = (line.split("|") for line in file.read_text().splitlines()[1:])
    return {cells[0]: cells[11] for cells in lines if cells[5] == "PENDING"}


def _windows(case: Case, snapshot: Path, log: Path, futures: int) -> pandas.DataFrame:
    """Return the windows of the jobs of a snapshot that started later, with the starts that Slurm plans."""
    at = int((snapshot / "at").read_text())
    question = AdviceQuestion.of_queue(
        case, str(snapshot / "squeue.json"), at, futures=futures, calibration=0
    )
    try:
        found = ask(question).table
    except UsageError:  # no job waits
        return pandas.DataFrame(columns=["truth", "planned", "middle", "as_requested", "low", "high"])
    truth, planned = _starts(log, at), _planned(snapshot / "squeue.txt")
    table = found.assign(
        truth=[truth.get(job, -1) for job in found["job_id"]],
        planned=[planned.get(job, -1) for job in found["job_id"]],
    )
    return table[table["truth"] >= 0]


def _advice(which: str, table: pandas.DataFrame) -> Iterator[str]:
    """Yield the errors of windows, beside those of ``squeue --start``."""
    if not len(table):
        return
    both = table[table["planned"] >= 0]
    inside = table["truth"].between(table["low"], table["high"]).mean()
    yield (
        f"{which}: {len(table)} jobs, error of the middle {_error(table, 'middle'):.0f} s, as "
        f"requested {_error(table, 'as_requested'):.0f} s, {inside:.0%} of the starts in the windows; on the "
        f"{len(both)} jobs that squeue plans: {_error(both, 'middle'):.0f} s, squeue {_error(both, 'planned'):.0f} s"
    )


def _error(table: pandas.DataFrame, column: str) -> float:
    return float((table[column] - table["truth"]).abs().mean())


def _starts(log: Path, at: int) -> dict[str, int]:
    """Return the first start of each job on record from a time on [s]."""
    heading, *lines = log.read_text().splitlines()
    names = heading.split("|")
    first, start = names.index("JobID"), names.index("Start")
    found: dict[str, int] = {}
    for line in lines:
        cells = line.split("|")
        if cells[start].isdecimal() and int(cells[start]) >= at:
            found.setdefault(cells[first], int(cells[start]))
    return found


def _planned(file: Path) -> dict[str, int]:
    """Return the starts that Slurm plans for waiting jobs."""
    found = {}
    for line in file.read_text().splitlines()[1:]:
        cells = line.split("|")
        if cells[5] == "PENDING" and cells[10] != "N/A":
            found[cells[0]] = int(pandas.Timestamp(cells[10], tz="UTC").timestamp())
    return found


if __name__ == "__main__":
    sys.exit(typer.run(main))
