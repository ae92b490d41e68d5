"""What a real Slurm printed at one instant: the priorities of waiting jobs, and the shares of associations."""

from __future__ import annotations

import re
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hpcsimkit.slurm.priority import FairShare, standing
from hpcsimkit.slurm.profile import Slurm
from hpcsimkit.slurm.tres import NODES, tres_of

KEY = re.compile(r"(?:^|\s)([A-Za-z:/]+)=(\S*)")


def configuration(shared: Path, folder: Path, conf: str = "slurm.conf.in") -> Path:
    """Copy the configuration of the real Slurm to a folder."""
    files = [shared / "slurm/cluster" / name for name in (conf, "gres.conf.in")]
    files += sorted((shared / "slurm/day").glob("sacctmgr_*"))
    for file in files:
        shutil.copyfile(file, folder / file.name)
    return folder


class Share(NamedTuple):
    """A line of ``sshare -l``."""

    account: str
    user: str
    norm_shares: float
    norm_usage: float
    usage: float
    fair_share: float
    level: float


def shares(file: Path) -> list[Share]:
    """Return the lines of ``sshare -l``."""
    heading, *lines = file.read_text().splitlines()
    found = []
    for line in lines:
        cells = dict(zip(heading.split("|"), line.split("|"), strict=True))
        numbers = [
            float(cells[name] or "nan")
            for name in ("NormShares", "NormUsage", "EffectvUsage", "FairShare", "LevelFS")
        ]
        found.append(Share(cells["Account"].strip(), cells["User"], *numbers))
    return found


class Waiting(NamedTuple):
    """A waiting job in one of its partitions: what ``sprio -l`` printed, and the priority that was computed."""

    job: str
    partition: str
    printed: int
    computed: float
    exclusive: bool


def waiting(profile: Slurm, snapshot: Path) -> list[Waiting]:
    """Return the waiting jobs of a snapshot."""
    at = int((snapshot / "at").read_text())
    printed = {}
    for line in (snapshot / "sprio.txt").read_text().splitlines()[1:]:
        cells = line.split()
        printed[cells[0].split("_")[0], cells[1]] = int(cells[3])
    fair = {share.user: share.fair_share for share in shares(snapshot / "sshare.txt") if share.user}
    names = profile.partitions.names
    found = []
    for block in (snapshot / "jobs.txt").read_text().split("\n\n"):
        values = dict(KEY.findall(block))
        if values.get("JobState") != "PENDING":
            continue
        job = values["JobId"].split("_")[0]
        amounts = tres_of("TRES", values["TRES"])
        amounts[NODES] = amounts.pop(NODES, 1.0)
        asked = {name: np.array([amount]) for name, amount in amounts.items()}
        rules = profile.priority
        part = standing(
            rules,
            asked,
            [profile.qos[values["QOS"]]],
            np.ones(1),
            profile.partitions,
            profile.factors,
            profile.qos,
        )
        accrued = values.get("AccrueTime", "Unknown")
        age = 0.0
        if accrued != "Unknown":
            since = datetime.fromisoformat(accrued).replace(tzinfo=UTC).timestamp()
            age = min(max(at - since, 0) / rules.max_age, 1.0)
        moving = (
            rules.age * age + rules.fair_share * fair[values["UserId"].split("(")[0]] - int(values["Nice"])
        )
        for name in values["Partition"].split(","):
            if (job, name) in printed:
                computed = moving + part[names.index(name), 0]
                found.append(
                    Waiting(job, name, printed[job, name], computed, values["OverSubscribe"] == "NO")
                )
    return found


def fair_shares(profile: Slurm, usage: dict[tuple[str, str], float]) -> dict[tuple[str, str], float]:
    """Return the fair-share factors of users for a usage of each."""
    tree = profile.associations
    raw = np.zeros(len(tree.each))
    for (account, user), value in usage.items():
        for place in tree.path(tree.of(account, user)):
            raw[place] += value
    factors = FairShare(tree, profile.priority).factors(raw)
    return {(one.account, one.user): factors[place] for place, one in enumerate(tree.each) if one.user}
