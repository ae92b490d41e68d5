"""The recorded schedule: starts as in the log, and all that differs from it counted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hpcsimkit.cluster.machines import Machines
from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.comparison.campaign import Campaign
from hpcsimkit.experiments.comparison.experiment import Experiment
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.policies.recorded import Recorded
from hpcsimkit.reports.report import write_report
from hpcsimkit.results.metrics import measure
from hpcsimkit.results.result import Result
from hpcsimkit.workloads.describe import load_remark


def log(wait: list[int], nodes: list[int], submit: list[int] | None = None) -> Workload:
    """Jobs of 10 s on a machine of 4 nodes."""
    columns = {
        "submit_time": submit or [0] * len(wait),
        "run_time": [10] * len(wait),
        "nodes": nodes,
        "recorded_wait_time": wait,
    }
    return Workload(columns, machine_size=4, name="log")


def run(workload: Workload) -> Result:
    return Simulation(workload, Recorded()).run()


def test_jobs_start_as_recorded() -> None:
    # the second job leaves nodes idle, the third passes it; the fourth starts when the first ends
    workload = log([0, 50, 5, 8], [4, 2, 1, 3], submit=[0, 0, 20, 2])
    result = run(workload)
    assert result.start_time.tolist() == [0, 50, 25, 10]
    assert result.wait_time.tolist() == [0, 50, 5, 8]
    assert Recorded().remarks_on(result) == []
    assert measure(result, warmup=1)["mean_wait_time"] == 6.5


def test_a_full_machine_and_missing_waits_are_counted() -> None:
    workload = log([0, 3, -1, 4, 6], [3, 2, 1, 1, 2])
    result = run(workload)
    assert result.start_time.tolist() == [
        0,
        10,
        -1,
        4,
        14,
    ]  # the second waits for the first, the last for the fourth
    assert Recorded().remarks_on(result) == [
        "1 jobs without a recorded wait: rejected",
        "2 of 4 jobs start later than recorded, as the machine is full: by 8 s on average, 8 s at most",
    ]
    assert measure(result)["rejected"] == 1


def test_on_machines() -> None:
    columns = {
        "submit_time": [0, 0, 0],
        "run_time": [10, 10, 10],
        "nodes": [1, 1, 1],
        "cpus": [2, 2, 2],
        "recorded_wait_time": [7, 7, 7],
    }
    machines = Machines(["a", "b"], ["cpus"], [[2], [2]])
    result = Simulation(Workload(columns, resources=("cpus",)), Recorded(), machines).run()
    assert result.start_time.tolist() == [7, 7, 17]
    assert result.placements is not None
    assert result.placements.words() == ["a", "b", "a"]


@pytest.mark.parametrize(
    ("workload", "message"),
    [
        (Workload({"submit_time": [0], "run_time": [1], "nodes": [1]}, machine_size=1, name="x"), "x has no"),
        (log([-1, -1], [1, 1]), "recorded: log has no recorded waits$"),
        (log([0, 5], [1, 1], [0, 9]).scale_load(2.0), "not those of a scaled load"),
    ],
)
def test_refused_in_one_line(workload: Workload, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Simulation(workload, Recorded())


def test_a_load_that_says_nothing_is_told() -> None:
    assert load_remark(log([0, 0], [1, 1])).startswith("every recorded wait is 0")
    assert load_remark(log([0, 1], [1, 1])) == ""
    assert load_remark(log([-1, 0], [1, 1])).startswith("every recorded wait is 0")
    assert load_remark(log([-1, -1], [1, 1])) == ""  # not a log of a machine, as far as is known
    dated = Workload(log([-1], [1]).columns, header={"UnixStartTime": "843480031"})
    assert load_remark(dated).startswith("no waits are recorded")


def test_recorded_beside_others(tmp_path: Path) -> None:
    fields = "{} {} {} 60 3 -1 -1 3 90 -1 1 1 1 1 1 -1 -1 -1"
    rows = [fields.format(job + 1, 10 * job, 50 * job) for job in range(20)]
    (tmp_path / "log.swf").write_text("; MaxProcs: 4\n" + "\n".join(rows) + "\n")
    experiment = Experiment(log=str(tmp_path / "log.swf"), policies=["recorded", "fcfs"], report=False)
    runs = Campaign(experiment, experiment.workload(), tmp_path / "out").run()
    assert runs[0].metrics["mean_wait_time"] == 50 * 9.5
    assert list(runs[0].notes) == []
    experiment = experiment.model_copy(update={"nodes": 3, "walltime": "kill"})
    crowded = "\n".join(fields.format(job + 1, 10 * job, 0) for job in range(20))
    (tmp_path / "log.swf").write_text("; MaxProcs: 4\n" + crowded + "\n")
    campaign = Campaign(experiment, experiment.workload(), tmp_path / "crowded")
    assert "19 of 20 jobs start later than recorded" in campaign.run()[0].notes[0]
    provenance = json.loads((tmp_path / "crowded" / "provenance.json").read_text())
    assert provenance["workload"]["load_remark"].startswith("every recorded wait is 0")
    page = write_report(tmp_path / "crowded").read_text()
    assert "<b>recorded</b>: 19 of 20 jobs start later than recorded" in page
    assert "<dt>load</dt><dd>every recorded wait is 0" in page


def test_refused_before_anything_is_simulated(tmp_path: Path) -> None:
    experiment = Experiment(jobs=20, policies=["fcfs", "recorded"], report=False)
    with pytest.raises(UsageError, match=r"recorded: lublin-256 has no recorded waits$"):
        Campaign(experiment, experiment.workload(), tmp_path / "out").run()
    assert not (tmp_path / "out.partial").exists()
