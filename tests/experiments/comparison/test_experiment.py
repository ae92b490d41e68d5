"""The experiment: one model for flags, TOML files and what is saved."""

from __future__ import annotations

import hashlib
import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcsimkit.cluster.machines import Machines
from hpcsimkit.errors import UsageError, WorkloadError
from hpcsimkit.experiments.comparison.experiment import MACHINE_POLICIES, STANDARD_POLICIES, Experiment
from hpcsimkit.experiments.generate import Generate
from hpcsimkit.experiments.parts import registry
from hpcsimkit.experiments.parts.on_machines import offered_loads
from hpcsimkit.experiments.settings.toml_lines import line_of, toml_text
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.locality import LOCALITIES
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.policies.placing.placements import WorstFit
from hpcsimkit.workloads import default_workload, read_swf


def write_log(path: Path, size: int | None = 8) -> Path:
    """Ten jobs, one each 10 s, of 1 to 10 nodes."""
    header = f"; MaxProcs: {size}\n" if size else ""
    rows = [f"{job} {10 * job} -1 5 {job} -1 -1 {job} 7" + " -1" * 9 for job in range(1, 11)]
    path.write_text(header + "\n".join(rows) + "\n")
    return path


# --- the workload ----------------------------------------------------------------------------------------


def test_nothing_given_is_the_built_in_workload() -> None:
    experiment = Experiment()
    assert experiment.policies == list(STANDARD_POLICIES)
    assert experiment.workload().hash == default_workload(np.random.default_rng(0)).hash
    assert Experiment(seed=3).workload().hash == default_workload(np.random.default_rng(3)).hash


def test_sizes_of_the_built_in_workload() -> None:
    workload = Experiment(jobs=40, nodes=32).workload()
    assert (len(workload), workload.machine_size) == (40, 32)
    assert len(Experiment(jobs=40, skip=5).workload()) == 35


def test_generate_says_how_many_jobs_are_made_and_jobs_how_many_are_taken() -> None:
    workload = Experiment(generate=Generate(jobs=50, seed=2), jobs=20, skip=10).workload()
    whole = Generate(jobs=50, seed=2).workload()
    assert workload.submit_time.tolist() == whole.submit_time[10:30].tolist()


def test_log_cut_and_scaled(tmp_path) -> None:
    log = str(write_log(tmp_path / "x.swf"))
    assert Experiment(log=log).workload().id.tolist() == list(range(1, 9))  # two are larger than the machine
    workload = Experiment(log=log, skip=2, jobs=3, load_factor=2.0).workload()
    assert workload.id.tolist() == [3, 4, 5]
    assert workload.submit_time.tolist() == [30, 35, 40]
    assert dict(workload.skipped) == {"larger than the machine of 8 nodes": 2}


def test_nodes_replace_what_the_log_says(tmp_path) -> None:
    log = str(write_log(tmp_path / "x.swf"))
    assert Experiment(log=log, nodes=4).workload().nodes.max() == 4
    assert len(Experiment(log=log, nodes=100).workload()) == 10
    assert Experiment(log=str(write_log(tmp_path / "y.swf", size=None)), nodes=9).workload().machine_size == 9


def test_log_without_size_can_still_be_looked_at(tmp_path) -> None:
    experiment = Experiment(log=str(write_log(tmp_path / "x.swf", size=None)))
    assert len(experiment.part(experiment.whole())) == 10
    with pytest.raises(WorkloadError, match="names no machine size"):
        experiment.workload()


# --- machines --------------------------------------------------------------------------------------------

TWO = [{"name": "big", "cpus": 8}, {"count": 2, "name": "gpu", "cpus": 4, "gpus": 2, "memory": "32 GB"}]


def write_machines_and_jobs(folder: Path) -> dict[str, str]:
    (folder / "m.csv").write_text("MachineName,TotalCPUs,TotalGPUs\nbig,8,0\ngpu,4,2\n")
    (folder / "x.csv").write_text(
        "ReqCPUs,ReqGPUs,ActualDuration,Submit\n8,0,9,0\n9,0,9,1\n4,2,9,2\n1,3,9,3\n"
    )
    return {"log": str(folder / "x.csv"), "machines": str(folder / "m.csv")}


def test_jobs_that_fit_no_machine_are_left_out(tmp_path) -> None:
    files = write_machines_and_jobs(tmp_path)
    experiment = Experiment(**files)
    assert experiment.cluster == Machines(["big", "gpu"], ["cpus", "gpus"], [[8, 0], [4, 2]])
    workload = experiment.workload()
    assert workload.submit_time.tolist() == [0, 2]
    assert dict(workload.skipped) == {"fits no machine": 2}
    with pytest.raises(
        WorkloadError, match=r"x\.csv:3: job 2 needs a machine with 9 cpus; none has so much$"
    ):
        Experiment(**files, strict=True).workload()
    with pytest.raises(
        WorkloadError, match=r"x\.csv: its jobs ask for cpus, gpus, memory; say of which mach"
    ):
        Experiment(log=files["log"]).workload()
    assert len(Experiment(log=files["log"]).whole()) == 4


def test_processors_of_a_log_are_cpus_wherever_they_are(tmp_path) -> None:
    files = {**write_machines_and_jobs(tmp_path), "log": str(write_log(tmp_path / "x.swf"))}
    workload = Experiment(**files).workload()
    assert (len(workload), workload.machine_size) == (10, 12)  # the log's own machine has 8
    assert offered_loads(workload, Experiment(**files).cluster) == {"cpus": 55 * 5 / (12 * 90), "gpus": 0.0}


def test_built_in_workload_for_machines() -> None:
    workload = Experiment(jobs=20, machines=TWO).workload()
    assert workload.hash == Experiment(jobs=20, nodes=16).workload().hash


def test_policies_by_default_depend_on_the_machines(tmp_path) -> None:
    files = write_machines_and_jobs(tmp_path)
    assert Experiment(**files).policies == list(MACHINE_POLICIES)
    assert Experiment().policies == list(STANDARD_POLICIES)
    assert Experiment(**files, policies=["bfbp"]).policies == ["bfbp"]
    (tmp_path / "e.toml").write_text('log = "x.csv"\n')
    base = Experiment.read(tmp_path / "e.toml").model_dump(exclude_unset=True)
    assert Experiment.of_flags({"machines": files["machines"]}, base).policies == list(MACHINE_POLICIES)
    (tmp_path / "e.toml").write_text('log = "x.csv"\nmachines = "m.csv"\n')
    assert "policies" not in Experiment.read(tmp_path / "e.toml").model_dump(exclude_unset=True)


def test_every_policy_by_default_can_be_made_and_run(tmp_path) -> None:
    experiment = Experiment(**write_machines_and_jobs(tmp_path), placement="worst-fit")
    workload = experiment.workload()
    for name in experiment.policies:
        policy = experiment.policy_named(name)
        assert policy.placement == WorstFit()
        assert Simulation(workload, policy, experiment.cluster).run().finished.all()


def test_placement_is_given_to_pipelines_without_one(tmp_path) -> None:
    experiment = Experiment(**write_machines_and_jobs(tmp_path), placement="best-fit")
    assert experiment.policy_named("sjf+easy") == registry.make("sjf+best-fit+easy")
    assert experiment.policy_named("sjf+first-fit") == registry.make("sjf+first-fit")
    assert experiment.policy_named("bfbp") == registry.make("bfbp")
    assert Experiment().policy_named("sjf") == registry.make("sjf")


@pytest.mark.parametrize("inline", [True, False])
def test_saved_machines_are_read_back(tmp_path, monkeypatch, inline) -> None:
    files = write_machines_and_jobs(tmp_path)
    monkeypatch.chdir(tmp_path)
    machines = TWO if inline else "m.csv"
    experiment = Experiment(log="x.csv", machines=machines, placement="best-fit", locality="summit")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "e.toml").write_text(experiment.saved())
    again = Experiment.read(tmp_path / "deep" / "e.toml")
    assert again.cluster == experiment.cluster
    assert again.workload().hash == experiment.workload().hash
    assert again.saved() == experiment.saved()
    assert again.machines == (TWO if inline else files["machines"])
    assert again.service_time == LOCALITIES["summit"]
    if not inline:
        digest = hashlib.sha256((tmp_path / "m.csv").read_bytes()).hexdigest()
        assert tomllib.loads(experiment.saved())["machines_sha256"] == digest


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"placement": "best-fit"}, "'placement' needs 'machines'"),
        ({"locality": "sierra"}, "'locality' needs 'machines'"),
        ({"machines": TWO, "nodes": 4}, "one of 'nodes' and 'machines' is needed, both are given"),
    ],
)
def test_what_does_not_go_together(values, message) -> None:
    with pytest.raises(UsageError, match=message):
        Experiment.of_flags(values)


def test_offered_load_counts_what_is_asked_for() -> None:
    columns = {"submit_time": [0, 10], "run_time": [5, 20], "nodes": [2, 3], "cpus": [4, 6], "gpus": [1, 0]}
    workload = Workload({**columns, "spread": [0, 1]}, resources=("cpus", "gpus"))
    cluster = Machines.of(2, cpus=8, memory="1 GB") + Machines.of(1, cpus=4, gpus=2)
    loads = offered_loads(workload, cluster)  # 4 CPUs on each of 2 nodes; 6 in all
    assert loads == {"cpus": (8 * 5 + 6 * 20) / (20 * 10), "gpus": 2 * 5 / (2 * 10), "memory": 0.0}
    assert offered_loads(workload.select([0]), cluster) == {}


# --- TOML ------------------------------------------------------------------------------------------------


def test_every_field_can_be_said_in_toml(tmp_path) -> None:
    log = write_log(tmp_path / "x.swf")
    values = {
        "log": "x.swf", "sha256": hashlib.sha256(log.read_bytes()).hexdigest(), "policies": ["fcfs", "sjf+easy"],
        "jobs": 5, "skip": 1, "nodes": 9, "load_factor": 1.5, "size": "allocated", "strict": True,
        "walltime": "kill", "dependencies": True, "period": 30, "warmup": 1.0, "cooldown": 2.5, "seed": 4,
        "out": "somewhere", "workers": 2, "report": False, "trace": True, "snapshots": 600, "import_from": "/nowhere", "simulator": "simpy",
        "fields": "JobID,Submit", "cluster_name": "alpha", "reader": "swf", "timezone": "Europe/Berlin", "features": ["partition"], "from_date": "2024-03-01", "to_date": "2024-04-01",
        "metrics": ["makespan"], "gates": "log", "licenses": "matlab:2",
    }  # fmt: skip
    on_machines = {
        "machines": "m.csv", "machines_sha256": "0" * 64, "placement": "best-fit", "locality": "sierra",
        "failures": "mtbf=9, repair=5", "failures_sha256": "0" * 64, "restart": "delay=5", "begin_at": "2024-03-01, fcfs",
    }  # fmt: skip
    in_partitions = {
        "calendar": "c.toml",
        "calendar_sha256": "0" * 64,
        "partitions": "p.toml",
        "partitions_sha256": "0" * 64,
        "partition_column": "queue",
    }
    configured = {"slurm": "conf", "slurm_sha256": "0" * 64}
    rules = {"semantics": "dirlab"}
    assert set(values) | set(on_machines) | set(in_partitions) | set(configured) | set(rules) == set(
        Experiment.model_fields
    ) - {
        "generate",
        "allow_code",
        "engine",
    }
    (tmp_path / "e.toml").write_text(toml_text(values))
    experiment = Experiment.read(tmp_path / "e.toml")
    assert experiment.model_dump(
        exclude={"generate", "allow_code", "engine", *on_machines, *in_partitions, *configured, *rules}
    ) == {
        **values,
        "log": str(log),
    }
    (tmp_path / "e.toml").write_text(toml_text(on_machines))
    experiment = Experiment.read(tmp_path / "e.toml")
    assert experiment.model_dump(include=set(on_machines)) == {
        **on_machines,
        "machines": str(tmp_path / "m.csv"),
    }
    (tmp_path / "e.toml").write_text(toml_text(configured))
    experiment = Experiment.read(tmp_path / "e.toml")
    assert experiment.slurm == str(tmp_path / "conf") and experiment.policies[0] == "as-configured"
    (tmp_path / "e.toml").write_text(toml_text(in_partitions))
    experiment = Experiment.read(tmp_path / "e.toml")
    assert experiment.model_dump(include=set(in_partitions)) == {
        **in_partitions,
        "calendar": str(tmp_path / "c.toml"),
        "partitions": str(tmp_path / "p.toml"),
    }
    (tmp_path / "e.toml").write_text(toml_text(rules))
    assert Experiment.read(tmp_path / "e.toml").semantics == "dirlab"


def test_a_file_with_generate(tmp_path) -> None:
    (tmp_path / "e.toml").write_text('[generate]\nmodel = "lublin"\nnodes = 64\njobs = 20\nload = 1\n')
    assert Experiment.read(tmp_path / "e.toml").generate == Generate(nodes=64, jobs=20, load=1.0)


def test_log_and_generate_exclude_each_other(tmp_path) -> None:
    (tmp_path / "e.toml").write_text('log = "x.swf"\n[generate]\njobs = 3\n')
    with pytest.raises(UsageError, match=r"e\.toml: one of 'log' and 'generate' is needed, both are given"):
        Experiment.read(tmp_path / "e.toml")


@pytest.mark.parametrize(
    "text", ["policies = []", 'policies = "fcfs"', "policies = [1]", "jobs = 1.5", "workers = true", 'log = ""',
             "load_factor = inf", "generate = 3", "load-factor = 2", "period = 0", "seed = -1"],
)  # fmt: skip
def test_wrong_values_are_refused_with_their_line(tmp_path, text) -> None:
    (tmp_path / "e.toml").write_text(f"# a comment\n\n{text}\n")
    with pytest.raises(UsageError, match=r"e\.toml:3: "):
        Experiment.read(tmp_path / "e.toml")


def test_file_that_is_no_text(tmp_path) -> None:
    (tmp_path / "e.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="found no UTF-8 text"):
        Experiment.read(tmp_path / "e.toml")


@pytest.mark.parametrize(
    "experiment",
    [
        Experiment(jobs=30, nodes=16, seed=9, policies=["fcfs"]),
        Experiment(generate=Generate(jobs=30, load=0.5), skip=3, walltime="kill", period=60),
        Experiment(jobs=30, load_factor=1.1, warmup=5.0, trace=True, report=False),
    ],
)
def test_saved_is_read_back_to_the_same_jobs(tmp_path, experiment) -> None:
    (tmp_path / "e.toml").write_text(experiment.saved())
    again = Experiment.read(tmp_path / "e.toml")
    assert again.workload().hash == experiment.workload().hash
    kept = set(Experiment.model_fields) - {"jobs", "nodes", "generate", "allow_code"}
    assert again.model_dump(include=kept) == experiment.model_dump(include=kept)
    assert again.saved() == experiment.saved()


def test_saved_log_is_named_absolutely_and_by_its_content(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    log = write_log(tmp_path / 'a "b" é.swf')
    values = tomllib.loads(Experiment(log=log.name, jobs=2).saved())
    assert values["log"] == str(log)
    assert values["sha256"] == hashlib.sha256(log.read_bytes()).hexdigest()
    assert values["jobs"] == 2
    assert read_swf(values["log"]).name == 'a "b" é'


text_without_surrogates = st.text(st.characters(exclude_categories=["Cs"]))
plain = st.one_of(
    text_without_surrogates, st.integers(-(2**63), 2**63 - 1), st.booleans(), st.floats(allow_nan=False)
)


keys = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
tables = st.dictionaries(keys, plain | st.lists(plain), max_size=3)


@given(st.dictionaries(keys, plain | st.lists(plain) | tables | st.lists(tables), max_size=5))
def test_toml_text_is_read_back(values) -> None:
    assert tomllib.loads(toml_text(values)) == values


@given(st.lists(st.sampled_from(["", "# policies = [", "\t# x"]), max_size=5), st.integers(0, 4))
def test_line_of_an_element(comments, index) -> None:
    lines = [*comments, "policies = [", *(f"  'p{number}', # ]" for number in range(5)), "]"]
    assert line_of("\n".join(lines), ("policies", index)) == len(comments) + 2 + index


def test_line_of_keys_in_tables() -> None:
    text = 'a = 1\n[generate] # first\nnodes = 4\njobs = """\n[x]\n"""\n'
    assert line_of(text, ("generate", "nodes")) == 3
    assert line_of(text, ("generate", "jobs")) == 6
    assert line_of(text, ("x",)) is None
