"""Campaigns, runs and results folders from Python; what users see of them is tested in `tests/cli`."""

from __future__ import annotations

import csv
import pickle
import sys
from pathlib import Path

import numpy as np
import pandas
import pytest

from hpcsimkit.cluster.machines import Machines
from hpcsimkit.engine.engines import Threads
from hpcsimkit.engine.store import Store
from hpcsimkit.errors import PolicyError, UsageError
from hpcsimkit.experiments.comparison import campaign as campaign_module
from hpcsimkit.experiments.comparison import policy_run
from hpcsimkit.experiments.comparison.campaign import Campaign
from hpcsimkit.experiments.comparison.case import Case
from hpcsimkit.experiments.comparison.experiment import Experiment
from hpcsimkit.experiments.comparison.policy_run import PolicyRun, arrow_table, write_tables
from hpcsimkit.experiments.parts import registry
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.locality import LOCALITIES
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.results.metrics import measure


def campaign(folder: Path, **changes: object) -> Campaign:
    values = {"jobs": 120, "nodes": 32, "policies": ["fcfs", "random+easy"], "report": False, **changes}
    experiment = Experiment(**values)
    return Campaign(experiment, experiment.workload(), folder)


# --- campaigns -------------------------------------------------------------------------------------------


def test_a_campaign_does_what_simulations_do(tmp_path) -> None:
    job = campaign(tmp_path / "out", seed=4, walltime="kill", warmup=60.0)
    for run in job.run():
        alone = Simulation(job.workload, registry.make(run.policy), seed=4, walltime="kill").run()
        assert run.schedule_sha256 == alone.hash
        expected = measure(alone, warmup=60)
        assert {name: value for name, value in run.metrics.items() if value is not None} == {
            name: value for name, value in expected.items() if np.isfinite(value)
        }
        table = pandas.read_parquet(tmp_path / "out" / "jobs" / f"{run.policy}.parquet")
        assert table["start_time"].tolist() == alone.start_time.tolist()


@pytest.mark.parametrize("workers", [1, 2])
def test_progress_is_told_to_the_end(tmp_path, workers) -> None:
    told: list[tuple[str, int]] = []
    campaign(tmp_path / "out", jobs=2500, workers=workers).run(
        tell=lambda policy, jobs: told.append((policy, jobs))
    )
    for policy in ("fcfs", "random+easy"):
        assert [jobs for name, jobs in told if name == policy] == [0, 1000, 2000, 2500]


def test_compiled_runs_are_in_threads(tmp_path, monkeypatch) -> None:
    """If they need not be compiled first, and the user asks for no number of workers; the files are the same."""
    engines = []
    monkeypatch.setattr(
        campaign_module, "Threads", lambda workers: engines.append(workers) or Threads(workers)
    )
    monkeypatch.setattr(campaign_module.os, "cpu_count", lambda: 2)
    assert campaign(tmp_path / "one", policies=["fcfs", "fcfs+easy"]).run()
    assert not engines, "the runs are too short"
    monkeypatch.setattr(policy_run, "is_ready", lambda simulation: simulation.name != "sjf")
    assert campaign(tmp_path / "two", policies=["fcfs", "fcfs+easy"]).run()
    assert engines == [2]
    for name in ("metrics.csv", "jobs/fcfs+easy.csv", "jobs/fcfs.parquet", "schedules/fcfs+easy.swf"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    for changes in ({"workers": 1}, {"policies": ["fcfs"]}, {"policies": ["fcfs", "sjf"]}, {"trace": True}):
        assert campaign(tmp_path / "three", **changes).run(overwrite=True)
    monkeypatch.setattr(campaign_module.os, "cpu_count", lambda: 1)
    assert campaign(tmp_path / "three").run(overwrite=True)
    assert engines == [2]


def test_the_longest_runs_in_threads_are_first(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(policy_run, "is_ready", lambda simulation: True)
    monkeypatch.setattr(campaign_module.os, "cpu_count", lambda: 2)
    monkeypatch.setattr(campaign_module, "THREADS", 1)
    names, told = ["fcfs", "fcfs+easy", "fcfs+conservative", "sjf"], []
    runs = campaign(tmp_path, policies=names).run(tell=lambda policy, jobs: jobs or told.append(policy))
    assert [run.policy for run in runs] == names
    assert told == ["fcfs+conservative", "fcfs", "fcfs+easy", "sjf"]


def test_what_is_told_when_a_policy_fails(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.py").write_text(
        "from hpcsimkit.kernel.policy import Order\nclass Bad(Order):\n    def key(self, job): return 1 / 0\n"
    )
    with pytest.raises(
        PolicyError, match=r"^bad\.py:Bad at t=.*1 of 2 policies are finished; to go on: .* --out out$"
    ):
        campaign(tmp_path / "out", policies=["fcfs", "bad.py:Bad"]).run()
    assert (tmp_path / "out.partial" / "jobs" / "fcfs.csv").is_file()
    assert not (tmp_path / "out").exists()


def test_fingerprint_changes_with_whatever_decides_the_outcome(tmp_path) -> None:
    base = campaign(tmp_path / "out")

    def mark(policy: str = "fcfs", **changes: object) -> str:
        changed = campaign(tmp_path / "out", **changes)
        return PolicyRun(Case(changed.workload, policy, changed.experiment), tmp_path).fingerprint

    same = base.tasks[0].fingerprint
    assert mark() == mark(workers=3) == mark(report=True) == mark(policies=["fcfs"]) == same
    changes = [
        {"seed": 1}, {"walltime": "kill"}, {"dependencies": True}, {"period": 60}, {"warmup": 1.0}, {"cooldown": 1.0},
        {"trace": True}, {"jobs": 119}, {"nodes": 33}, {"load_factor": 1.1}, {"policy": "sjf"},
    ]  # fmt: skip
    marks = [mark(**change) for change in changes]
    assert len({same, *marks}) == len(changes) + 1


def test_fingerprint_changes_with_machines_placement_and_locality(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("slow_far.py").write_text("def far(job, seconds, allocation, cluster): return 1.0\n")
    one, other = [{"cpus": 32}], [{"cpus": 32, "features": ["fast"]}]

    def mark(policy: str = "fcfs", **changes: object) -> str:
        changed = campaign(tmp_path / "out", nodes=None, **{"machines": one, **changes})
        return PolicyRun(Case(changed.workload, policy, changed.experiment), tmp_path).fingerprint

    assert mark() == mark(workers=2)
    counted = campaign(tmp_path / "out")
    changes = [
        {"machines": other}, {"machines": [{"cpus": 16, "count": 2}]}, {"machines": [{"cpus": 32, "name": "x"}]},
        {"placement": "best-fit"}, {"locality": "sierra"}, {"locality": "summit"}, {"locality": "slow_far.py:far"},
    ]  # fmt: skip
    marks = [mark(**change) for change in changes]
    marks += [mark(), counted.tasks[0].fingerprint]
    assert len(set(marks)) == len(changes) + 2
    # a policy that has a placement of its own goes its own way
    assert mark("fcfs+first-fit", placement="best-fit") == mark("fcfs+first-fit", placement="worst-fit")
    # the same name, other code (in a process that has not imported it yet)
    Path("slow_far.py").write_text("def far(job, seconds, allocation, cluster): return 2.0\n")
    for name in [name for name in sys.modules if "slow_far" in name]:
        monkeypatch.delitem(sys.modules, name)
    assert mark(locality="slow_far.py:far") not in marks


def test_a_campaign_on_machines_does_what_simulations_do(tmp_path) -> None:
    machines = [{"cpus": 16}, {"count": 2, "name": "small", "cpus": 8}]
    flags = {"nodes": None, "machines": machines, "placement": "worst-fit", "locality": "sierra"}
    job = campaign(tmp_path / "out", **flags, seed=4, policies=["fcfs", "random+fitting"], workers=2)
    cluster = Machines.of(1, cpus=16) + Machines.of(2, "small", cpus=8)
    for run in job.run():
        policy = registry.make(f"{run.policy}+worst-fit")
        alone = Simulation(job.workload, policy, cluster, seed=4, service_time=LOCALITIES["sierra"]).run()
        assert run.schedule_sha256 == alone.hash
        assert alone.placements is not None
        table = pandas.read_parquet(tmp_path / "out" / "jobs" / f"{run.policy}.parquet")
        assert table["machines"].tolist() == alone.placements.words()
        parts = pandas.read_parquet(tmp_path / "out" / "placements" / f"{run.policy}.parquet")
        assert list(parts) == ["row", "job_id", "machine", "cpus"]
        assert parts["row"].tolist() == alone.placements.job.tolist()
        assert parts["job_id"].tolist() == job.workload.id[alone.placements.job].tolist()
        assert parts[["cpus"]].to_numpy().tolist() == alone.placements.amounts.tolist()
    assert Machines.read(tmp_path / "out" / "machines.csv") == cluster


def test_workload_can_be_pickled() -> None:
    workload = Experiment(jobs=10).workload()
    again = pickle.loads(pickle.dumps(workload))
    assert again.hash == workload.hash
    assert (again.name, again.provenance, dict(again.notes)) == (
        workload.name,
        workload.provenance,
        dict(workload.notes),
    )


def sent(job: Campaign, folder: Path) -> str:
    """Return the schedule of a pickled task of another folder."""
    task = PolicyRun(Case(job.workload, job.experiment.policies[0], job.experiment), folder / "other")
    for name in ("jobs", "schedules", "placements"):
        (folder / "other" / name).mkdir(parents=True)
    store = Store(folder / "store")
    store.perform(pickle.loads(pickle.dumps(task)), lambda jobs: None)
    return str(store.outcome(task)["schedule_sha256"])


def test_work_can_be_sent_to_a_process_that_inherits_nothing(tmp_path) -> None:
    job = campaign(tmp_path / "out", policies=["random+easy"])
    assert job.run()[0].schedule_sha256 == sent(job, tmp_path)


def test_work_on_machines_can_be_sent_to_a_process_too(tmp_path) -> None:
    job = campaign(
        tmp_path / "out", policies=["fcfs"], nodes=None, machines=[{"cpus": 32}], locality="summit"
    )
    assert job.run()[0].schedule_sha256 == sent(job, tmp_path)


def test_words_that_csv_must_quote(tmp_path) -> None:
    words = ["plain", 'with "quotes"', "a, b", "two\nlines", None]
    frame = pandas.DataFrame({"n": range(5), "word": np.array(words, dtype=object)})
    write_tables(arrow_table(frame), tmp_path, "x")
    with (tmp_path / "x.csv").open(newline="") as file:
        assert [row["word"] for row in csv.DictReader(file)] == [*words[:4], ""]
    write_tables(arrow_table(frame.head(1)), tmp_path, "y")
    assert (tmp_path / "y.csv").read_text() == "n,word\n0,plain\n"


def test_rejected_jobs_are_empty_cells(tmp_path) -> None:
    frame = pandas.DataFrame(
        {
            "job_id": [1, 2],
            "start_time": pandas.array([5, None], dtype="Int64"),
            "mode": pandas.Categorical(["ready", "none"]),
        }
    )
    write_tables(arrow_table(frame), tmp_path, "x")
    assert (tmp_path / "x.csv").read_text() == "job_id,start_time,mode\n1,5,ready\n2,,none\n"
    assert pandas.read_parquet(tmp_path / "x.parquet")["start_time"].isna().tolist() == [False, True]


# --- what a stranger stumbled over -----------------------------------------------------------------------


def test_files_of_others_in_a_results_folder_are_not_deleted(tmp_path) -> None:
    campaign(tmp_path / "out").run()
    (tmp_path / "out" / "mynote.txt").write_text("mine")
    with pytest.raises(
        UsageError, match=r"out: the results in it can be replaced, but .* files: mynote\.txt"
    ):
        campaign(tmp_path / "out").run()
    assert (tmp_path / "out" / "mynote.txt").read_text() == "mine"
    (tmp_path / "out" / "mynote.txt").unlink()
    campaign(tmp_path / "out").run()


def test_a_saved_experiment_finds_policies_of_the_user_from_anywhere(tmp_path, monkeypatch) -> None:
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    home.mkdir(), elsewhere.mkdir()
    text = "from hpcsimkit import Order\nclass Narrow(Order):\n    def key(self, job):\n        return job.nodes\n"
    (home / "narrow_first.py").write_text(text)
    monkeypatch.chdir(home)
    monkeypatch.setattr(sys, "path", list(sys.path))
    names = ["narrow_first:Narrow", "narrow_first.py:Narrow+easy"]
    first = campaign(tmp_path / "out", policies=names).run()
    monkeypatch.chdir(elsewhere)
    monkeypatch.delitem(sys.modules, "narrow_first")
    sys.path[:] = [place for place in sys.path if place not in ("", str(home))]
    again = Experiment.read(tmp_path / "out" / "experiment.toml", allow_code=[str(home)])
    second = Campaign(again, again.workload(), tmp_path / "again").run()
    assert [run.schedule_sha256 for run in first] == [run.schedule_sha256 for run in second]


def test_dependencies_that_cannot_be_kept_are_counted(tmp_path) -> None:
    log = tmp_path / "x.swf"
    rows = [(1, 0, -1), (2, 5, 1), (3, 6, 99), (4, 7, 4), (5, 8, 6), (6, 9, 2)]
    lines = [f"{job} {at} -1 9 1 -1 -1 1 9 -1 1 -1 -1 -1 -1 -1 {before} -1" for job, at, before in rows]
    log.write_text("; MaxProcs: 4\n" + "\n".join(lines) + "\n")
    experiment = Experiment(log=str(log), dependencies=True, policies=["fcfs"], report=False)
    assert experiment.workload().notes["preceding job not usable: ignored"] == 3
    assert "preceding job not usable: ignored" not in Experiment(log=str(log)).workload().notes


def test_a_link_is_not_followed(tmp_path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "out").symlink_to("disk")
    with pytest.raises(
        UsageError, match="out: a symbolic link is not followed; name the folder it points to"
    ):
        campaign(tmp_path / "out").run()
    assert list((tmp_path / "disk").iterdir()) == []
    campaign(tmp_path / "disk").run()
    (tmp_path / "way").symlink_to(tmp_path)
    campaign(tmp_path / "way" / "disk").run()  # on the way to it, links are the user's own


def test_workload_with_no_span_has_nothing_to_trim(tmp_path) -> None:
    workload = Workload({"submit_time": [5], "run_time": [1], "nodes": [1]}, machine_size=1)
    experiment = Experiment(policies=["fcfs"], warmup=1.0, report=False)
    with pytest.raises(UsageError, match="leave nothing of the 0 s"):
        Campaign(experiment, workload, tmp_path / "out").run()
