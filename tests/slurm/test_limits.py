"""Limits of QOS and associations: which job waits, and for which reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hpcsimkit import UsageError
from hpcsimkit.slurm.accounts import Association, Associations, Qos
from hpcsimkit.slurm.limits import Ask, LimitBook
from tests.slurm.small import ACCOUNTS, CONF, QOS, jobs, profile, reasons, run

LONG = {"run": 100, "limit": 300}


def test_limits_of_a_qos(tmp_path: Path) -> None:
    """E1: at most 2 jobs in all, 1 of a user, 8 CPUs of a user; the first rule in Slurm's order names the reason."""
    rows = [
        {**LONG, "qos": "limited", "cpus": 2},
        {**LONG, "at": 3, "qos": "limited", "cpus": 2},
        {**LONG, "at": 6, "qos": "limited", "cpus": 2, "user": "ben"},
        {**LONG, "at": 9, "qos": "limited", "cpus": 2, "user": "cleo"},
        {**LONG, "at": 9, "qos": "limited", "nodes": 3, "cpus": 8, "user": "dan"},
        {**LONG, "at": 9, "cpus": 1, "user": "dan"},
    ]
    result = run(profile(tmp_path), jobs(*rows))
    assert result.start_time.tolist() == [0, 100, 6, 106, -1, 9]
    assert reasons(result, 1) == ["QOSMaxJobsPerUserLimit", "QOSGrpJobsLimit"]
    assert reasons(result, 3) == ["QOSGrpJobsLimit"]
    assert reasons(result, 4) == ["QOSMaxCpuPerJobLimit"]  # more than 16 CPUs: for ever


def test_limits_count_all_cpus_of_whole_nodes(tmp_path: Path) -> None:
    """At most 8 CPUs of a user: one node with one CPU in use has 8, two have 16."""
    rows = [
        {**LONG, "qos": "limited", "nodes": 2, "exclusive": 1},
        {**LONG, "qos": "limited", "exclusive": 1},
        {**LONG, "qos": "limited", "nodes": 2, "user": "ben"},
    ]
    result = run(profile(tmp_path), jobs(*rows))
    assert result.start_time.tolist() == [-1, 0, 0]
    assert reasons(result, 0) == ["QOSMaxCpuPerUserLimit"]


def test_cpus_of_a_qos_and_its_wall_time(tmp_path: Path) -> None:
    """E2: at most 24 CPUs in use; a job with a limit of two hours is refused for ever."""
    rows = [
        {**LONG, "qos": "high", "cpus": 8, "nodes": 2},
        {**LONG, "at": 3, "qos": "high", "cpus": 16, "user": "ben"},
        {**LONG, "at": 6, "qos": "high", "cpus": 8, "user": "cleo"},
        {"at": 6, "limit": 7200, "qos": "high", "user": "cleo"},
    ]
    result = run(profile(tmp_path), jobs(*rows))
    assert result.start_time.tolist() == [0, 100, 6, -1]
    assert reasons(result, 1) == ["QOSGrpCpuLimit"]
    assert reasons(result, 3) == ["QOSMaxWallDurationPerJobLimit"]


def test_the_qos_of_a_partition_comes_first(tmp_path: Path) -> None:
    """At most 4 GPUs of a user and 6 in all, by the partition; with OverPartQOS, those of the QOS of the job."""
    rows = [
        {**LONG, "partition": "gpu", "gpus": 2, "user": "cleo"},
        {**LONG, "partition": "gpu", "gpus": 2, "user": "cleo"},
        {**LONG, "at": 3, "partition": "gpu", "gpus": 1, "user": "cleo"},
        {**LONG, "at": 6, "partition": "gpu", "gpus": 2, "user": "dan"},
        {**LONG, "at": 9, "partition": "gpu", "gpus": 1, "user": "dan"},
        {**LONG, "at": 9, "partition": "any", "gpus": 1, "user": "dan"},
    ]
    result = run(profile(tmp_path), jobs(*rows))
    assert result.start_time.tolist() == [0, 0, 100, 6, 100, 9]
    assert reasons(result, 2) == ["QOSMaxGRESPerUser", "QOSGrpGRES"] and reasons(result, 4) == ["QOSGrpGRES"]
    over = QOS.replace("normal|10||||", "normal|10|||OverPartQOS|").replace(
        "OverPartQOS|||||||", "OverPartQOS||||||gres/gpu=5|"
    )
    result = run(profile(tmp_path, qos=over), jobs(*rows))
    assert result.start_time.tolist() == [0, 0, 3, 100, 9, 9]


def test_a_limit_of_the_partition_takes_the_place_of_that_of_the_job(tmp_path: Path) -> None:
    """One GPU of a user by the QOS of the job, four by that of the partition: two jobs of two run at once."""
    rows = [{**LONG, "partition": "gpu", "gpus": 2, "user": "cleo"}] * 2
    one = QOS.replace("normal|10||||||||||", "normal|10|||||||||gres/gpu=1|")
    assert run(profile(tmp_path, qos=one), jobs(*rows)).start_time.tolist() == [0, 0]
    over = one.replace("normal|10|||||", "normal|10|||OverPartQOS||")
    assert run(profile(tmp_path, qos=over), jobs(*rows)).start_time.tolist() == [-1, -1]


def test_limits_of_associations_hold_up_to_the_root(tmp_path: Path) -> None:
    """E3: of a user, of an account, in CPU minutes that are left, and of the whole cluster."""
    accounts = (
        ACCOUNTS.replace("User - 'ben':", "User - 'ben':MaxJobs=1:")
        .replace("Account - 'red':", "Account - 'red':GrpTRES=cpu=12:")
        .replace("User - 'cleo':", "User - 'cleo':GrpTRESRunMins=cpu=20:")
        .replace("Account - 'blue':", "Account - 'blue':GrpJobs=2:")
    )
    rows = [
        {**LONG, "cpus": 2, "user": "ben"},
        {**LONG, "at": 3, "cpus": 2, "user": "ben"},
        {**LONG, "at": 3, "cpus": 8, "user": "ada"},
        {**LONG, "at": 6, "cpus": 4, "user": "ada"},
        {**LONG, "at": 6, "cpus": 3, "user": "cleo"},
        {**LONG, "at": 9, "cpus": 2, "user": "cleo"},
        {**LONG, "at": 12, "user": "dan"},
        {**LONG, "at": 15, "user": "dan"},
    ]
    result = run(profile(tmp_path, accounts=accounts), jobs(*rows))
    assert reasons(result, 1) == ["AssocMaxJobsLimit"]
    assert reasons(result, 3) == ["AssocGrpCpuLimit"]
    # 3 CPUs x 5 minutes and 2 x 5 exceed 20 at 9 s, not any more when 3 x 3.33 minutes are left, after 100 s.
    assert reasons(result, 5)[0] == "AssocGrpCPURunMinutesLimit"
    assert reasons(result, 7) == ["AssocGrpJobsLimit"]
    assert result.start_time.tolist() == [0, 100, 3, 103, 6, 106, 12, 112]


def test_without_enforcement_there_are_no_limits(tmp_path: Path) -> None:
    from tests.slurm.small import CONF

    conf = CONF.replace("AccountingStorageEnforce=associations,limits,qos\n", "")
    rows = [{**LONG, "qos": "limited"}, {**LONG, "at": 3, "qos": "limited"}]
    assert run(profile(tmp_path, conf=conf), jobs(*rows)).start_time.tolist() == [0, 3]


# --- each limit by itself -------------------------------------------------------------------------------------

TREE = Associations((Association("root", parent=-1), Association("red"), Association("red", "ada", 1)))


def ask(row: int, qos: Qos, **other: Any) -> Ask:
    """Return what a job of two CPUs on one node for ten minutes asks for."""
    values: dict[str, Any] = {"user": "ada", "amounts": {"cpus": 2.0, "nodes": 1.0}, "nodes": 1.0}
    values |= other
    return Ask(row, values["user"], "red", 2, (qos,), values["amounts"], values["nodes"], 600)


@pytest.mark.parametrize(
    ("limits", "beyond", "reason", "alone"),
    [
        ({"GrpJobs": 2}, {"GrpJobs": 1}, "QOSGrpJobsLimit", False),
        ({"MaxJobsPA": 2}, {"MaxJobsPA": 1}, "MaxJobsPerAccount", False),
        ({"MaxJobsPU": 1}, {}, "", False),  # of another user
        ({"MaxWall": 600}, {"MaxWall": 599}, "QOSMaxWallDurationPerJobLimit", True),
        ({"GrpTRES": {"cpus": 8}}, {"GrpTRES": {"cpus": 7}}, "QOSGrpCpuLimit", False),
        ({"GrpTRES": {"nodes": 2}}, {"GrpTRES": {"nodes": 1}}, "QOSGrpNodeLimit", False),
        (
            {"GrpTRESRunMins": {"cpus": 80}},
            {"GrpTRESRunMins": {"cpus": 79}},
            "QOSGrpCPURunMinutesLimit",
            False,
        ),
        ({"MaxTRESMins": {"cpus": 20}}, {"MaxTRESMins": {"cpus": 19}}, "QOSMaxCpuMinutesPerJobLimit", True),
        ({"MaxTRES": {"cpus": 2}}, {"MaxTRES": {"cpus": 1}}, "QOSMaxCpuPerJobLimit", True),
        ({"MaxTRESPerNode": {"cpus": 2}}, {"MaxTRESPerNode": {"cpus": 1}}, "QOSMaxCpuPerNode", True),
        ({"MaxTRESPA": {"cpus": 8}}, {"MaxTRESPA": {"cpus": 7}}, "MaxCpuPerAccount", False),
        ({"MaxTRESPU": {"cpus": 2}}, {"MaxTRESPU": {"cpus": 1}}, "QOSMaxCpuPerUserLimit", True),
        ({"MinTRES": {"cpus": 2}}, {"MinTRES": {"cpus": 3}}, "QOSMinCpuNotSatisfied", True),
    ],
)
def test_each_limit_of_a_qos(
    limits: dict[str, Any], beyond: dict[str, Any], reason: str, alone: bool
) -> None:
    """A job of six CPUs of another user of the account runs, with ten minutes left."""
    for given, expected in ((limits, ""), (beyond, reason)):
        qos = Qos("q", limits=given)
        book = LimitBook(TREE)
        book.start(ask(0, qos, user="ben", amounts={"cpus": 6.0, "nodes": 1.0}), now=0)
        assert book.reason(ask(1, qos), now=0) == expected
        assert book.never(ask(1, qos)) == (expected if alone else "")
        book.end(0, now=0)
        assert book.reason(ask(1, qos), now=0) == (expected if alone else "")


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ({"MaxJobs": 1}, "AssocMaxJobsLimit"),
        ({"MaxWall": 599}, "AssocMaxWallDurationPerJobLimit"),
        ({"MaxTRESMins": {"cpus": 19}}, "AssocMaxCpuMinutesPerJobLimit"),
        ({"MaxTRES": {"cpus": 1}}, "AssocMaxCpuPerJobLimit"),
        ({"MaxTRESPerNode": {"cpus": 1}}, "AssocMaxCpuPerNode"),
        ({"GrpJobs": 1}, "AssocGrpJobsLimit"),
        ({"GrpTRES": {"cpus": 3}}, "AssocGrpCpuLimit"),
        ({"GrpTRESRunMins": {"cpus": 39}}, "AssocGrpCPURunMinutesLimit"),
    ],
)
def test_each_limit_of_an_association_above(limits: dict[str, Any], reason: str) -> None:
    """Limits of the root hold for a user of an account; a job of the user runs."""
    book = LimitBook(Associations((Association("root", parent=-1, limits=limits), *TREE.each[1:])))
    none = Qos("q")
    book.start(ask(0, none), now=0)
    assert book.reason(ask(1, none), now=0) == reason
    assert LimitBook(TREE).reason(ask(1, none), now=0) == ""


def test_resources_on_a_node_are_those_of_a_job_by_its_nodes() -> None:
    qos = Qos("q", limits={"MaxTRESPerNode": {"cpus": 2}})
    assert LimitBook(TREE).reason(ask(0, qos, amounts={"cpus": 6.0}, nodes=3.0), now=0) == ""
    assert LimitBook(TREE).reason(ask(0, qos, amounts={"cpus": 6.0}, nodes=2.0), now=0) == "QOSMaxCpuPerNode"


def test_the_qos_of_a_job_may_be_that_of_its_partition(tmp_path: Path) -> None:
    """It counts once."""
    qos = QOS.replace("ofgpu|0|||||gres/gpu=6||||gres/gpu=4|", "ofgpu|0|||||gres/gpu=6|||||")
    made = profile(tmp_path, qos=qos)
    rows = [
        {"partition": "gpu", "user": "cleo", "qos": "ofgpu", "gpus": 2, "run": 9, "at": at} for at in range(4)
    ]
    assert run(made, jobs(*rows)).start_time.tolist() == [0, 3, 3, 9]


def test_jobs_without_a_user_belong_to_their_account_or_the_root() -> None:
    tree = Associations((Association("root", parent=-1), Association("red")))
    found = tree.with_users([("", "", ""), ("red", "", ""), ("blue", "", ""), ("", "ada", "")])
    assert [(one.account, one.user, one.parent) for one in found.each[2:]] == [
        ("blue", "", 0),
        ("", "ada", 0),
    ]
    assert [found.of(*pair) for pair in (("", ""), ("red", ""), ("", "ada"))] == [0, 1, 3]


def test_what_rounding_leaves_of_a_billing_holds_no_job() -> None:
    book = LimitBook(Associations())
    qos = (Qos("few", limits={"GrpTRES": {"billing": 0.3}}),)
    for row, billing in enumerate((0.1, 0.7, 0.2)):
        book.start(Ask(row, "ada", "", 0, qos, {"billing": billing}, 1, 60), now=0)
    for row in (1, 0, 2):
        book.end(row, now=0)
    assert book.reason(Ask(3, "ada", "", 0, qos, {"billing": 0.3}, 1, 60), now=0) == ""


ENDLESS = CONF + "PriorityDecayHalfLife=0\nPriorityCalcPeriod=5\n"
"""What has been spent never decays."""

OF_RED = ACCOUNTS.replace("Account - 'red':", "Account - 'red':GrpTRESMins=cpu=20:")


def test_minutes_that_an_account_may_spend(tmp_path: Path) -> None:
    """20 CPU minutes: 4 CPUs for 5 minutes spend them; whoever comes then waits for ever, but not other accounts."""
    rows = [
        {"run": 300, "limit": 300, "cpus": 4},
        {"at": 10, "run": 60, "limit": 60, "user": "ben"},  # nothing is spent yet
        {"at": 400, "limit": 60, "user": "ben"},
        {"at": 400, "limit": 60, "user": "cleo"},
    ]
    result = run(profile(tmp_path, conf=ENDLESS, accounts=OF_RED), jobs(*rows))
    assert result.start_time.tolist() == [0, 10, -1, 400]
    assert reasons(result, 2) == ["AssocGrpCPUMinutesLimit"]


def test_minutes_are_safe(tmp_path: Path) -> None:
    """With `safe`, 4 CPUs x 5 min of a running job and 1 x 5 of the next are too many, until the first has ended."""
    safe = ENDLESS.replace("limits,qos", "limits,qos,safe")
    rows = [
        {"run": 60, "limit": 300, "cpus": 4},  # spends 4 minutes of the 20 that it might
        {"at": 10, "run": 300, "limit": 300},
        {"at": 61, "limit": 660, "user": "ben"},  # 4 + 5 + 11 are no more than 20
        {"at": 62, "limit": 60, "user": "ben"},
        {"at": 62, "limit": 1260, "user": "ben"},  # 21: more than all
    ]
    result = run(profile(tmp_path, conf=safe, accounts=OF_RED), jobs(*rows))
    assert result.start_time.tolist() == [0, 60, 63, 123, -1]
    assert reasons(result, 1) == reasons(result, 3) == reasons(result, 4) == ["AssocGrpCPUMinutesLimit"]


def test_time_that_decays(tmp_path: Path) -> None:
    """10 minutes of all jobs of a QOS; of 1200 s count 1071 s at their end, and less than 600 s from 4212 s on."""
    qos = _with_grp_wall("00:10:00")
    conf = CONF + "PriorityDecayHalfLife=01:00:00\nPriorityCalcPeriod=5\n"
    rows = [{"run": 1200, "limit": 1200}, {"at": 1200, "limit": 60}, {"at": 1200, "limit": 60, "qos": "high"}]
    result = run(profile(tmp_path, conf=conf, qos=qos), jobs(*rows))
    assert result.start_time.tolist() == [0, 4500, 1200]  # priorities and usage are computed each 300 s
    assert reasons(result, 1) == ["QOSGrpWallLimit"]
    kept = _with_grp_wall("00:10:00", "NoDecay")
    assert run(profile(tmp_path, conf=conf, qos=kept), jobs(*rows)).start_time.tolist() == [0, -1, 1200]


def _with_grp_wall(wall: str, flags: str = "") -> str:
    """Return the QOS of the cluster, `normal` with a limit of the time of all jobs."""
    heading, *lines = QOS.splitlines()
    cells = [line + f"|{wall}" * line.startswith("normal") for line in lines]
    cells = [line if line.startswith("normal") else line + "|" for line in cells]
    text = "\n".join([heading + "|GrpWall", *cells]) + "\n"
    return text.replace("normal|10|||", f"normal|10|||{flags}")


def test_usage_counts_by_the_factor_of_the_qos() -> None:
    qos = Qos("cheap", limits={"GrpTRESMins": {"cpus": 10.0}}, usage_factor=0.5)
    book = LimitBook(TREE)
    book.start(ask(0, qos)._replace(factor=0.5), now=0)
    assert [book.reason(ask(1, qos), now=now) for now in (599, 600)] == ["", "QOSGrpCPUMinutesLimit"]


def test_names_of_minutes_are_those_of_slurm() -> None:
    """As a real Slurm (22.05) printed them; memory has another word in an association."""
    for kind, tree in (("QOSGrp", TREE), ("AssocGrp", Associations((Association("root", parent=-1),)))):
        limits = {"GrpTRESMins": {"memory": 1.0, "gpus": 0.0, "cpus": 0.0}}
        qos = Qos("spent", limits=limits if kind == "QOSGrp" else {})
        if kind == "AssocGrp":
            tree = Associations((Association("root", parent=-1, limits=limits), *TREE.each[1:]))
        book = LimitBook(tree)
        mine = ask(0, qos, amounts={"memory": 1.0, "nodes": 1.0})
        book.start(mine, now=0)
        word = "Memory" if kind == "QOSGrp" else "Mem"
        assert book.reason(mine._replace(row=1), now=60) == f"{kind}{word}Minutes"
        assert book.reason(ask(1, qos, amounts={"gpus": 1.0}), now=0) == f"{kind}GRESMinutes"
        assert book.reason(ask(1, qos, amounts={"cpus": 1.0}), now=0) == f"{kind}CPUMinutesLimit"


def test_safe_time(tmp_path: Path) -> None:
    """With `safe`, a job whose limit is longer than the time that is left waits: seen on a real Slurm."""
    safe = ENDLESS.replace("limits,qos", "limits,qos,safe")
    accounts = ACCOUNTS.replace("Account - 'red':", "Account - 'red':GrpWall=2:")
    rows = [
        {"run": 30, "limit": 60},
        {"at": 40, "limit": 100},
        {"at": 40, "limit": 80, "run": 9},
        {"at": 40, "limit": 121},
    ]
    result = run(profile(tmp_path, conf=safe, accounts=accounts), jobs(*rows))
    assert result.start_time.tolist() == [0, -1, 40, -1] and reasons(result, 1) == ["AssocGrpWallLimit"]


def test_the_compiled_simulator_knows_no_minutes_of_the_past(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no limits of what has been spent"):
        run(profile(tmp_path, accounts=OF_RED), jobs({}), simulator="compiled")
    of_parent = ACCOUNTS.replace("Fairshare=20", "Fairshare=2147483647")  # as sacctmgr dump prints it
    with pytest.raises(UsageError, match="no Fairshare=parent"):
        run(profile(tmp_path, accounts=of_parent), jobs({}), simulator="compiled")


@pytest.mark.parametrize("simulator", ["simpy", "compiled"])
def test_an_association_of_a_partition(tmp_path: Path, simulator: str) -> None:
    """One job of ada in `long`; a job has the association of the first partition that it names."""
    accounts = ACCOUNTS.replace(
        "User - 'ben'", "User - 'ada':Partition='long':Fairshare=1:MaxJobs=1\nUser - 'ben'"
    )
    rows = [
        {**LONG, "partition": "long"},
        {**LONG, "at": 3, "partition": "long"},
        {**LONG, "at": 3},
        {**LONG, "at": 3},
        {**LONG, "at": 3, "partition": "long", "user": "ben"},
        {**LONG, "at": 6, "partition": "long,work", "run": 7},
    ]
    result = run(profile(tmp_path, accounts=accounts), jobs(*rows), simulator=simulator)
    assert result.start_time.tolist() == [0, 107, 3, 3, 3, 100]  # the last one in work, of the higher tier
    assert reasons(result, 1) == reasons(result, 5) == ["AssocMaxJobsLimit"]
