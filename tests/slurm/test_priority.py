"""Priority and fair share: by hand, and as a real Slurm printed them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from math import floor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpcsimkit.slurm.accounts import PARENT, Association, Associations
from hpcsimkit.slurm.priority import FairShare, Usage, billing_of, normalised, standing
from hpcsimkit.slurm.profile import Slurm
from hpcsimkit.slurm.rules import Multifactor
from tests.slurm.small import QOS, jobs, profile, run
from tests.slurm.snapshots import configuration, fair_shares, shares, waiting

CALCULATED = 20
"""Time between the last calculation of priorities and the snapshot [s]; less than PriorityCalcPeriod, a minute."""

TREE = Associations(
    (
        Association("root", parent=-1),
        Association("a", shares=3),
        Association("b", shares=1),
        Association("a", "ada", 1),
        Association("a", "ben", 1),
        Association("b", "cleo", 2),
        Association("b", "dan", 2),
    )
)


@pytest.fixture
def real(shared: Path, tmp_path: Path) -> Slurm:
    return Slurm.read(configuration(shared, tmp_path))


def test_priorities_are_those_of_sprio(real: Slurm, shared: Path) -> None:
    """All waiting jobs of a live queue to the digit."""
    found = waiting(real, shared / "slurm/day/snapshot")
    age = real.priority.age * CALCULATED / real.priority.max_age
    errors = Counter(floor(each.computed - age) - each.printed for each in found if not each.exclusive)
    assert errors == {0: 52}
    # Whole nodes count all of their CPUs: 8 each, or 16 if the last node that Slurm looked at was f1.
    exclusive = {each.job: each for each in found if each.exclusive}
    asked = {"220": 2, "292": 16, "315": 4, "336": 1, "363": 2}
    there = {"220": 8, "292": 16, "315": 16, "336": 8, "363": 8}
    more = {job: real.priority.size * (there[job] - asked[job]) / 80 / 2 for job in asked}
    assert {
        job: floor(each.computed + more[job] - age) - each.printed for job, each in exclusive.items()
    } == dict.fromkeys(asked, 0)


def test_fair_shares_are_those_of_sshare(real: Slurm, shared: Path) -> None:
    printed = [share for share in shares(shared / "slurm/day/snapshot/sshare.txt") if share.user]
    found = fair_shares(real, {(share.account, share.user): share.norm_usage for share in printed})
    assert {(share.account, share.user): share.fair_share for share in printed} == pytest.approx(
        found, abs=5e-7
    )
    assert len(printed) == 8


def factors(raw: list[float], *flags: str) -> list[float]:
    rules = Multifactor(flags=frozenset(flags))
    return FairShare(TREE, rules).factors(np.array(raw, dtype=float)).tolist()[3:]


def test_a_fair_tree_ranks_users_depth_first() -> None:
    """Account a has 3/4 of the shares and half of the usage: 1.5, b has 0.5; so all users of a come first."""
    assert factors([100, 50, 50, 40, 10, 50, 0]) == [0.75, 1.0, 0.25, 0.5]


def test_accounts_with_equal_values_are_one() -> None:
    """All have 1; of the users, ben has 2.5, cleo 1, dan 1 and ada 0.625: cleo and dan share a rank."""
    assert factors([100, 75, 25, 60, 15, 12.5, 12.5]) == [0.25, 1.0, 0.75, 0.75]
    assert factors([0, 0, 0, 0, 0, 0, 0]) == [1.0, 1.0, 1.0, 1.0]


def test_classic_fair_share() -> None:
    """Usage of a user: its own, plus the share among siblings of what the account has used besides."""
    ada = 0.4 + (0.5 - 0.4) / 2
    dan = 0.0 + (0.5 - 0.0) / 2
    found = factors([100, 50, 50, 40, 10, 50, 0], "NO_FAIR_TREE")
    assert found[0] == pytest.approx(2 ** -(ada / (3 / 8))) and found[3] == pytest.approx(
        2 ** -(dan / (1 / 8))
    )


OF_PARENTS = Associations(
    (
        Association("root", parent=-1),
        Association("root", "root", 0),
        Association("chem", parent=0, shares=20),
        Association("ml", parent=0, shares=PARENT),
        Association("physics", parent=0, shares=40),
        Association("chem", "cleo", 2),
        Association("chem", "fay", 2),
        Association("ml", "ben", 3),
        Association("ml", "dan", 3),
        Association("physics", "ada", 4),
        Association("physics", "eve", 4, shares=PARENT),
    )
)

USED = np.array([1, 0, 0.108925, 0.21785, 0.673226, 0.108925, 0, 0.21785, 0, 0.564301, 0.108925])


def test_shares_of_the_parent() -> None:
    """As a real Slurm (22.05) printed them: NormShares, EffectvUsage and, in the fair tree, FairShare.

    Users of an account without shares of its own share one level above, and such a user has those of the account.
    """
    shares, usage = normalised(OF_PARENTS, USED)
    assert shares[[1, 2, *range(4, 11)]].tolist() == pytest.approx(
        [0.015873, 0.317460, 0.634921, 0.5, 0.5, 0.015873, 0.015873, 1, 0.634921], abs=5e-7
    )
    assert usage[[2, *range(4, 11)]].tolist() == pytest.approx(
        [0.108925, 0.673226, 1, 0, 0.217850, 0, 0.838205, 0.161795], abs=2e-6
    )
    factors = FairShare(OF_PARENTS, Multifactor()).factors(USED)
    of_users = dict(
        zip(["root", "cleo", "fay", "ben", "dan", "ada", "eve"], factors[[1, *range(5, 11)]], strict=True)
    )
    assert of_users == pytest.approx(
        {
            "root": 1,
            "cleo": 0.571429,
            "fay": 0.714286,
            "ben": 0.142857,
            "dan": 1,
            "ada": 0.285714,
            "eve": 0.428571,
        },
        abs=5e-7,
    )


def test_classic_shares_of_the_parent() -> None:
    """As the same Slurm printed them with NO_FAIR_TREE: eve has the fair share of physics."""
    found = FairShare(OF_PARENTS, Multifactor(flags=frozenset({"NO_FAIR_TREE"}))).factors(USED)
    assert found[[1, 2, *range(4, 11)]].tolist() == pytest.approx(
        [1, 0.788338, 0.479522, 0.621477, 0.788338, 0.000074, 1, 0.479522, 0.479522], abs=2e-6
    )
    assert found[10] == found[4] and found[7] == pytest.approx(2 ** -(0.21785 * 63))


def test_usage_loses_half_in_each_half_life() -> None:
    usage = Usage(TREE, half_life=100, now=0)
    usage.begin(0, 3, billing=2.0, now=0)
    usage.end(0, now=100)
    whole = 2.0 * 100 / np.log(2)
    assert usage.at_time(100)[[0, 1, 3]].tolist() == pytest.approx([whole / 2] * 3)
    assert usage.at_time(300)[3] == pytest.approx(whole / 8)
    assert usage.at_time(300)[4] == 0


def test_billing() -> None:
    amounts = {"cpus": 2.0, "memory": 64 * 1024**3, "gpus": 1.0}
    weights = {"cpus": 1.0, "memory": 0.25, "gpus": 8.0}
    assert billing_of(amounts, weights) == 26.0 and billing_of(amounts, weights, largest=True) == 16.0
    assert billing_of(amounts, {}) == 2.0


def only(made: Slurm, **weights: Any) -> Slurm:
    zero = replace(made.priority, age=0, fair_share=0, size=0, partition=0, qos=0)
    return replace(made, priority=replace(zero, **weights), clocks=replace(made.clocks, bf_interval=0))


FULL = {"nodes": 5, "cpus": 8, "run": 50, "limit": 50}


@pytest.mark.parametrize(
    ("weights", "first", "second"),
    [
        ({"qos": 1000}, {"qos": "low"}, {"qos": "normal"}),
        ({"size": 1000}, {"nodes": 4}, {"nodes": 5}),
        ({"fair_share": 1000}, {"user": "ada"}, {"user": "cleo"}),  # ada has used all so far
    ],
)
def test_what_comes_first(tmp_path: Path, weights: dict[str, int], first: dict, second: dict) -> None:
    made = only(profile(tmp_path), **weights)
    whole = {**FULL, "on": "n|big"}
    made = replace(made, priority=replace(made.priority, calc_period=1))
    rows = [whole, {**whole, "at": 3, **first}, {**whole, "at": 4, **second}]
    assert run(made, jobs(*rows)).start_time.tolist() == [0, 100, 50]
    equal = [whole, {**whole, "at": 3}, {**whole, "at": 4}]
    assert run(made, jobs(*equal)).start_time.tolist() == [0, 50, 100]


def test_a_priority_is_a_whole_number(tmp_path: Path) -> None:
    """At 60 s, the second job has 10, and the third 10.5, which is as much: the number of the job decides."""
    made = only(profile(tmp_path), age=43_200)
    made = replace(made, priority=replace(made.priority, calc_period=60))
    whole = {**FULL, "run": 60, "limit": 60}
    assert run(made, jobs(whole, {**whole, "at": 40}, {**whole, "at": 39})).start_time.tolist() == [
        0,
        60,
        120,
    ]
    assert run(made, jobs(whole, {**whole, "at": 40}, {**whole, "at": 30})).start_time.tolist() == [
        0,
        120,
        60,
    ]


def test_whole_nodes_count_all_of_their_cpus(tmp_path: Path) -> None:
    made = only(profile(tmp_path), size=10_000)
    rows = [
        FULL,
        {**FULL, "at": 3, "nodes": 4, "cpus": 7, "on": "n"},
        {**FULL, "at": 4, "nodes": 4, "cpus": 1, "on": "n", "exclusive": 1},
    ]
    assert run(made, jobs(*rows)).start_time.tolist() == [0, 100, 50]
    assert run(made, jobs(*rows[:2], {**rows[2], "exclusive": -1})).start_time.tolist() == [0, 50, 50]


def test_priorities_change_only_when_they_are_computed(tmp_path: Path) -> None:
    """The usage of the first job counts after a minute, with a fair share that was equal for all before."""
    whole = {**FULL, "run": 50}
    rows = [whole, {**whole, "at": 3}, {**whole, "at": 4, "user": "cleo"}]
    made = only(profile(tmp_path), fair_share=1000)
    often = replace(made, priority=replace(made.priority, calc_period=40))
    assert run(often, jobs(*rows)).start_time.tolist() == [0, 100, 50]
    assert run(made, jobs(*rows)).start_time.tolist() == [0, 50, 100]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"size": 1000}, 1000 * (2 / 7 + 16 / 64) / 2),
        ({"size": 1000, "favor_small": True}, 1000 * (5 / 7 + 48 / 64) / 2),
        ({"size": 1000, "flags": frozenset({"SMALL_RELATIVE_TO_TIME"})}, 1000 * 16 / 10 / 64),
        (
            {"size": 1000, "favor_small": True, "flags": frozenset({"SMALL_RELATIVE_TO_TIME"})},
            1000 * (1 - 16 / 10 / 64),
        ),
        ({"partition": 1000}, 1000 * 20 / 40),
        ({"partition": 1000, "flags": frozenset({"NO_NORMAL_PART"})}, 20_000),
        ({"qos": 1000}, 1000 * 10 / 100),
        ({"qos": 1000, "flags": frozenset({"NO_NORMAL_QOS"})}, 10_000),
        ({"tres": {"cpus": 100.0, "memory": 50.0}}, 100 * 16 / 48 + 50 * 4 / (4 * 15.625 + 62.5)),
        ({"tres": {"cpus": 100.0, "gpus": 9.0}, "flags": frozenset({"NO_NORMAL_TRES"})}, 1600),
        ({"tres": {"memory": 2.0}, "flags": frozenset({"NO_NORMAL_TRES"})}, 2 * 4096),
    ],
)
def test_each_part_of_a_priority(tmp_path: Path, changes: dict[str, Any], expected: float) -> None:
    """Of a job in ``work`` on two of seven nodes, with 16 of 64 CPUs (48 of the partition) and 4 GiB for ten minutes."""
    made = only(profile(tmp_path), **changes)
    asked = {
        name: np.array([amount])
        for name, amount in {"nodes": 2.0, "cpus": 16.0, "memory": 4.0 * 1024**3}.items()
    }
    found = standing(
        made.priority, asked, [made.qos["normal"]], np.array([600.0]), made.partitions, made.factors, made.qos
    )
    assert found[0, 0] == pytest.approx(expected)


def test_dampening_divides_usage() -> None:
    rules = Multifactor(flags=frozenset({"NO_FAIR_TREE"}), dampening=2.0)
    raw = np.array([100, 50, 50, 40, 10, 50, 0], dtype=float)
    plain = FairShare(TREE, replace(rules, dampening=1.0)).factors(raw)
    assert FairShare(TREE, rules).factors(raw) == pytest.approx(np.sqrt(plain))


def test_usage_counts_by_the_factor_of_the_qos(tmp_path: Path) -> None:
    """Ada and Cleo have used as much, Ada's with a factor of 0.1: she comes first."""
    qos = QOS.replace("normal|10||||||||||", "normal|10||||0.1||||||")
    made = only(profile(tmp_path, qos=qos), fair_share=1000)
    made = replace(made, priority=replace(made.priority, calc_period=1))
    whole = {**FULL, "user": "cleo"}
    rows = [{**whole, "qos": "low"}, {**FULL, "at": 1}, {**whole, "at": 60}, {**FULL, "at": 61}]
    assert run(made, jobs(*rows)).start_time.tolist() == [0, 50, 150, 100]
