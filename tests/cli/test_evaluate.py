"""`evaluate`, and agents in `compare`, as a user types them."""

from __future__ import annotations

import csv
import json
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from hpcsimkit import Simulation, make
from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.networks.numpy_networks import Dense, SlotScores
from hpcsimkit.agents.spaces.encoders import QueueWindow, RequestsAndMachines
from hpcsimkit.agents.spaces.masks import JobMachine, Slots
from hpcsimkit.experiments.parts.trust import CALLER
from hpcsimkit.results.metrics import METRICS, measure
from hpcsimkit.workloads import read_log
from tests.waiting import until

ROW = {"weight.0": np.array([[100, -1, 0, 0, 0]]), "bias.0": np.zeros(1)}
"""Prefers the shortest requested time (column 1), and any job (column 0) to the row of the machine."""


def dense(inputs: int, outputs: int) -> Dense:
    return Dense({"weight.0": np.ones((outputs, inputs)), "bias.0": np.zeros(outputs)})


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """An agent that takes the shortest job of eight."""
    path = tmp_path / "shortest.hpcsim"
    about = {"training": {"policy": "fcfs+easy", "metric": "mean_wait_time"}}
    Agent(QueueWindow(8), Slots(8), SlotScores(ROW), "order", about=about).save(path)
    return path


@pytest.fixture
def log(cli: Any, tmp_path: Path) -> Path:
    cli("generate", "lublin", "--nodes", 16, "--jobs", 400, "--load", 1.0, "-o", "x.swf", "-q")
    return tmp_path / "x.swf"


SMALL = ["--sequences", 6, "--jobs", 50, "--seed", 3]


def rows_of(folder: Path) -> list[dict[str, str]]:
    with (folder / "evaluation.csv").open() as file:
        return list(csv.DictReader(file))


# --- what it says ----------------------------------------------------------------------------------------


def test_an_evaluation(cli, model, log, tmp_path) -> None:
    outcome = cli("evaluate", model, log, "-p", "fcfs+easy", "-p", "saf+easy", *SMALL, "--out", "e")
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert f"{model}: on the order seat of fcfs+easy, takes the best action" in lines
    assert lines[-1] == "results: e/report.html"
    assert sorted(path.name for path in (tmp_path / "e").iterdir()) == [
        "evaluation.csv", "evaluation.json", "provenance.json", "provenance.run.json", "report.html", "where.csv",
    ]  # fmt: skip

    rows = rows_of(tmp_path / "e")
    names = ["agent", "random agent", "fcfs+easy", "saf+easy"]
    assert [row["policy"] for row in rows] == names * 6
    assert [row["sequence"] for row in rows] == [str(number) for number in range(6) for _ in names]
    waits = {
        name: np.array([float(row["mean_wait_time"]) for row in rows if row["policy"] == name])
        for name in names
    }
    said = json.loads((tmp_path / "e" / "evaluation.json").read_text())
    assert list(said["metrics"]) == ["mean_wait_time"]  # what the agent was validated by
    found = said["metrics"]["mean_wait_time"]
    for name in names:
        mean, wait = found["policies"][name], waits[name]
        assert mean["mean"] == pytest.approx(wait.mean())
        bootstrap = stats.bootstrap([wait], np.mean, n_resamples=9999, rng=np.random.default_rng(0))
        low, high = bootstrap.confidence_interval  # BCa, 95 %
        assert (mean["low"], mean["high"]) == pytest.approx((low, high))
    for name in names[1:]:
        comparison = found["agent_minus"][name]
        assert comparison["difference"]["mean"] == pytest.approx((waits["agent"] - waits[name]).mean())
        assert comparison["t_test"] == pytest.approx(stats.ttest_rel(waits["agent"], waits[name]).pvalue)
        assert comparison["wilcoxon"] == pytest.approx(stats.wilcoxon(waits["agent"], waits[name]).pvalue)
        signs = np.sign(waits["agent"] - waits[name]).tolist()
        counts = [comparison[count] for count in ("wins", "ties", "losses")]
        assert counts == [signs.count(-1), signs.count(0), signs.count(1)]
        row = next(line for line in lines if line.startswith(f"{name} "))
        assert row.endswith(f"  {', '.join(map(str, counts))}")
    best = min(["fcfs+easy", "saf+easy"], key=lambda name: waits[name].mean())
    assert (said["behind"], found["best_heuristic"]) == ("fcfs+easy", best)
    assert f"best heuristic: {best}; behind the seat: fcfs+easy" in lines
    page = (tmp_path / "e" / "report.html").read_text()
    for text in (
        row.split("  ")[0],
        "Differences from saf+easy by class",
        "differs from fcfs+easy, behind its seat",
    ):
        assert text in page
    for test in ("t_test", "wilcoxon"):
        smallest, *_, largest = sorted(found["agent_minus"].values(), key=lambda comparison: comparison[test])
        assert smallest[f"{test}_holm"] == pytest.approx(min(1, 3 * smallest[test]))
        assert largest[f"{test}_holm"] >= largest[test]


def test_a_row_of_the_table_by_hand(cli, model, log, tmp_path) -> None:
    """The window of a row, cut out of the log and simulated by itself."""
    flags = ["-p", "saf+easy", "--sequences", 2, "--jobs", 30, "--warmup", 20, "--out", "e", "-q"]
    assert cli("evaluate", model, log, *flags) == (0, "", "")
    workload = read_log(log)
    for row in rows_of(tmp_path / "e"):
        first = int(np.flatnonzero(workload.id[workload.arrival_order] == int(row["first_job"]))[0])
        window = workload.first(50, first - 20)
        policy = {"agent": f"fcfs+easy+agent:{model}", "saf+easy": "saf+easy"}.get(row["policy"])
        if policy is None:
            continue
        result = Simulation(window, make(policy), seed=int(row["seed"])).run()
        counted = int(workload.submit_time[first] - window.submit_time.min())
        metrics = measure(result, warmup=counted)
        assert metrics["jobs"] <= 30 + 1  # jobs that come at the same instant count, too
        for name in ("jobs", "mean_wait_time", "mean_bounded_slowdown", "utilisation"):
            assert float(row[name]) == pytest.approx(metrics[name])


def test_no_job_counts_twice_as_long_as_there_is_room(cli, model, log, tmp_path) -> None:
    """Of 400 jobs ten are left out; warm-ups, which do not count, may lie anywhere."""
    flags = ["--skip", 10, "--jobs", 30, "--warmup", 29, "-p", "fcfs+easy", "--sequences"]
    outcome = cli("evaluate", model, log, *flags, 12, "--out", "e")
    assert (outcome.code, outcome.err) == (0, "")
    assert "p-values too small" not in outcome.out
    workload = read_log(log)
    place_of = {number: place for place, number in enumerate(workload.id[workload.arrival_order].tolist())}
    firsts = sorted({place_of[int(row["first_job"])] for row in rows_of(tmp_path / "e")})
    assert len(firsts) == 12
    assert firsts[0] >= 10 + 29
    assert firsts[-1] + 30 <= 400
    assert min(np.diff(firsts)) >= 30
    said = json.loads((tmp_path / "e" / "evaluation.json").read_text())
    assert said["share_of_jobs_in_several_sequences"] == 0

    outcome = cli("evaluate", model, log, *flags, 40, "--out", "f")
    said = json.loads((tmp_path / "f" / "evaluation.json").read_text())
    share = said["share_of_jobs_in_several_sequences"]
    assert 0.5 < share <= 1
    line = next(line for line in outcome.out.splitlines() if "several" in line)
    again = 40 - len({row["first_job"] for row in rows_of(tmp_path / "f")})
    assert line == (
        f"{100 * share:.2g} % of the jobs are in several sequences, which makes p-values too small; "
        f"the log has room for 12 sequences of 30 jobs side by side; {again} of 40 were sampled before, and count once"
    )
    assert rows_of(tmp_path / "f")[: 3 * 12] == rows_of(tmp_path / "e")


def test_an_agent_like_a_heuristic_is_no_better(cli, model, log, tmp_path) -> None:
    """Same order, same schedules: nothing differs on any sequence."""
    flags = [*SMALL, "--within", "sjf+easy", "-m", "mean_wait_time", "-m", "utilisation"]
    outcome = cli("evaluate", model, log, "-p", "sjf+easy+window(8)", *flags, "--out", "e")
    for metric in ("mean_wait_time", "utilisation"):
        found = json.loads((tmp_path / "e" / "evaluation.json").read_text())["metrics"][metric]
        assert found["agent_minus"]["sjf+easy+window(8)"]["difference"] == {"mean": 0, "low": 0, "high": 0}
        assert found["agent_minus"]["sjf+easy+window(8)"]["t_test_holm"] == 1
        assert found["agent_minus"]["sjf+easy+window(8)"]["wilcoxon_holm"] == 1
    headings = [line for line in outcome.out.splitlines() if "agent minus it" in line]
    assert [line.split("  ")[0] for line in headings] == ["mean_wait_time [s]", "utilisation"]


def test_the_same_again(cli, model, log, tmp_path) -> None:
    drawn = ["-p", "random+easy", "--jobs", 50, "-q"]
    flags = [*drawn, "--sequences", 6, "--seed", 3]
    cli("evaluate", model, log, *flags, "--out", "one")
    cli("evaluate", model, log, *flags, "--out", "two", "--workers", 2)
    cli("evaluate", model, log, *drawn, "--sequences", 6, "--seed", 4, "--out", "other")
    one, two, other = (tmp_path / name for name in ("one", "two", "other"))
    for file in ("evaluation.csv", "evaluation.json", "where.csv", "report.html"):
        assert (one / file).read_bytes() == (two / file).read_bytes() != (other / file).read_bytes()
    more = [*drawn, "--sequences", 7, "--seed", 3]
    assert cli("evaluate", model, log, *more, "--out", "one", "--overwrite") == (0, "", "")
    assert rows_of(one)[: 4 * 6] == rows_of(two)  # with fcfs+easy, behind the seat


def test_drawn_actions_differ_from_the_best(cli, model, log, tmp_path) -> None:
    for flag in ("--greedy", "--sample"):
        cli("evaluate", model, log, "-p", "fcfs+easy", *SMALL, flag, "--out", flag[2:], "-q")
    rows = [rows_of(tmp_path / name) for name in ("greedy", "sample")]
    differ = [one["policy"] for one, two in zip(*rows, strict=True) if one != two]
    assert set(differ) == {"agent"}


def test_a_single_sequence_proves_nothing(cli, model, tmp_path) -> None:
    outcome = cli("evaluate", model, "--sequences", 1, "--jobs", 50)
    assert (outcome.code, outcome.err) == (0, "")
    row = next(line for line in outcome.out.splitlines() if line.startswith("fcfs+easy"))
    assert row.split("  ")[-1].strip() in ("0, 0, 1", "0, 1, 0", "1, 0, 0")
    assert row.count("one replicate") == 2, "in place of the p-values of both tests"
    assert outcome.out.endswith("results: results/shortest-on-lublin-256/report.html\n")


def test_a_sequence_that_was_sampled_twice_counts_once(cli, model, tmp_path) -> None:
    """A log of 60 jobs has one sequence of 60: six samples are the same, and of 59 there are two."""
    cli("generate", "lublin", "--nodes", 16, "--jobs", 60, "-o", "short.swf", "-q")
    for jobs, number in ((60, 1), (59, 2)):
        out = f"of-{jobs}"
        flags = ["--sequences", 6, "--jobs", jobs, "--metric", "mean_wait_time", "--metric", "utilisation"]
        outcome = cli("evaluate", model, "short.swf", "-p", "fcfs", *flags, "--out", out)
        assert outcome.code == 0, outcome.err
        assert ("one replicate" in outcome.out) is (number == 1)
        rows = [row for row in rows_of(tmp_path / out) if row["policy"] == "fcfs"]
        waits = {row["first_job"]: float(row["mean_wait_time"]) for row in rows}
        assert (len(rows), len(waits)) == (6, number)
        found = json.loads((tmp_path / out / "evaluation.json").read_text())["metrics"]["mean_wait_time"]
        assert found["policies"]["fcfs"]["mean"] == pytest.approx(np.mean(list(waits.values())))
        against = found["agent_minus"]["fcfs"]
        assert sum(against[name] for name in ("wins", "ties", "losses")) == number
        assert (against["t_test"] is None) is (number == 1)


# --- parts of the user's own ------------------------------------------------------------------------------

OWN = """
from pathlib import Path
from hpcsimkit.agents.spaces.encoders import QueueWindow
from hpcsimkit.envs.interfaces import Mask

Path("executed").touch()

class Seen(QueueWindow):
    pass

class Free(Mask):
    actions = 8

    def write(self, decision, out):
        out[: len(decision.options)] = True
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The agent of `model`, with an encoder and a mask from seen.py; the mask says nothing of slots."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "seen.py").write_text(OWN)
    parts = [CALLER.imported(f"seen.py:{name}") for name in ("Seen", "Free")]
    about = {"training": {"policy": "fcfs+easy", "metric": "mean_wait_time", "slots": 8}}
    Agent(parts[0](8), parts[1](), SlotScores(ROW), "order", about=about).save("own.hpcsim")
    (tmp_path / "executed").unlink()
    return "own.hpcsim"


def test_own_parts_are_imported_when_the_user_says_so(shell, apart, cli, own, model, log, tmp_path) -> None:
    line = shell("evaluate", own, log, *SMALL, "--out", "no").line()
    assert line == (
        "own.hpcsim: made for seen:Seen, which is not the kit's own: hand it to Agent.load, or say where it "
        "is: parts=seen, for evaluate --parts seen"
    )
    assert apart("compare", log, "-p", f"agent:{own}+easy").line().startswith(f"-p: {line}")
    assert not (tmp_path / "executed").exists()
    for parts in ("seen", "seen.py"):
        flags = ["--parts", parts, "-p", "fcfs+easy", *SMALL, "-q"]
        assert apart("evaluate", own, log, *flags, "--out", f"of {parts}") == (0, "", "")
    assert (tmp_path / "executed").exists()
    assert cli("evaluate", model, log, "-p", "fcfs+easy", *SMALL, "-q", "--out", "kit") == (0, "", "")
    assert rows_of(tmp_path / "of seen") == rows_of(tmp_path / "of seen.py") == rows_of(tmp_path / "kit")


def test_own_parts_in_names(cli, own, model, log, tmp_path) -> None:
    names = [f"fcfs+easy+agent:{own}(parts=seen)", f"agent:{own}(parts=seen.py,sample=false)+easy"]
    policies = [word for name in [*names, f"fcfs+easy+agent:{model}"] for word in ("-p", name)]
    assert cli("compare", log, *policies, "--no-report", "--out", "c", "-q") == (0, "", "")
    metrics = json.loads((tmp_path / "c" / "metrics.json").read_text())
    assert metrics[names[0]] == metrics[names[1]] == metrics[f"fcfs+easy+agent:{model}"]
    assert (
        cli("compare", "c/experiment.toml", "--out", "no", "-q")
        .line()
        .endswith(f"--allow-code seen (looked for in {tmp_path} too)")
    )
    allowed = ["--allow-code", "seen", "--allow-code", "seen.py"]
    assert cli("compare", "c/experiment.toml", *allowed, "--out", "again", "--no-report", "-q") == (0, "", "")
    assert cli("evaluate", model, log, "-p", names[0], *SMALL, "-q", "--out", "e") == (0, "", "")


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ("nosuchmodule", "--parts: 'nosuchmodule' cannot be imported: ModuleNotFoundError: No module named"),
        ("nosuch.py", "--parts: no such file: nosuch.py"),
        ("math", "own.hpcsim: made for seen:Seen; math has no Encoder 'Seen'"),
    ],
)
def test_parts_that_are_not_there(cli, own, log, parts, message) -> None:
    assert message in cli("evaluate", own, log, "--parts", parts, *SMALL, "--out", "e", "-q").line()


# --- going on --------------------------------------------------------------------------------------------

SLOW = '''
import time
from pathlib import Path
from hpcsimkit.policies import SJF

class Waits(SJF):
    """From the third run on, waits for a file to appear."""

    def reset(self, system):
        with Path("runs").open("a") as file:
            file.write("x")
        while len(Path("runs").read_text()) > 2 and not Path("go").exists():
            time.sleep(0.01)
'''


@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
def test_interrupted_and_gone_on(start, apart, model, log, tmp_path) -> None:
    (tmp_path / "waits.py").write_text(SLOW)
    flags = list(map(str, ["evaluate", model, log, "-p", "waits:Waits", *SMALL, "-q"]))
    process = start(*flags, "--out", "e")
    until(lambda: (tmp_path / "runs").exists() and (tmp_path / "runs").stat().st_size > 2, process)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 130
    assert err.startswith("hpcsimkit: stopped in waits:Waits at t=")
    assert err.endswith(
        "); 2 of 6 sequences are finished; to go on: the same command with --resume --out e\n"
    )
    (tmp_path / "go").touch()
    assert apart(*flags, "--out", "e", "--resume") == (0, "", "")
    assert (tmp_path / "runs").read_text() == "xxx" + 4 * "x"  # two sequences were not run again
    assert apart(*flags, "--out", "whole") == (0, "", "")
    for file in ("evaluation.csv", "evaluation.json"):
        assert (tmp_path / "e" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes()


# --- wrong input -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--jobs", "401"], "x: windows of 401 jobs are needed for sequences, found 400 jobs"),
        (["--jobs", "300", "--warmup", "101"], "x: windows of 401 jobs are needed for sequences, found 400 jobs"),
        (["--jobs", "50", "--skip", "390"], "x: windows of 50 jobs are needed for sequences, found 10 jobs"),
        (["--jobs", "0"], "--jobs must be greater than or equal to 1, found 0"),
        (["--sequences", "0"], "--sequences must be greater than or equal to 1, found 0"),
        (["--workers", "0"], "--workers must be greater than or equal to 1, found 0"),
        (["--nodes", "0"], "--nodes must be greater than or equal to 1, found 0"),
        (["--seed", "-1"], "--seed must be greater than or equal to 0, found -1"),
        (["-p", "fcfs+esay"], "-p: unknown policy 'esay' in 'fcfs+esay'; nearest: easy"),
        (["-p", "fcfs", "-p", "fcfs"], "-p: 'fcfs' is named twice"),
        (["-m", "mean_wait"], "--metric: unknown metric 'mean_wait'; nearest: mean_wait_time"),
        (["-m", "locality_penalty_share", "--jobs", "50"], "locality_penalty_share of agent is not defined on sequence 0"),
        (["--within", "bfbp"], "--within bfbp: BestFitBinPacking() has no order seat: a pipeline is needed"),
        (["--within", "nosuch"], "--within nosuch: unknown policy 'nosuch'"),
        (["--machines", "nosuch.csv"], "nosuch.csv: no such file"),
    ],
)  # fmt: skip
def test_flags_that_make_no_sense(cli, model, log, tmp_path, flags, message) -> None:
    assert message in cli("evaluate", model, log, *flags, "--out", "e", "-q").line()
    assert not (tmp_path / "e").exists()


def test_models_that_do_not_fit(cli, log, tmp_path) -> None:
    nine = Agent(RequestsAndMachines(4, 9), JobMachine(4, 9), dense(43, 36), "dispatch")
    agents = {
        "narrow": (Agent(QueueWindow(8), Slots(8), dense(40, 8), "order"), "reads 40 numbers; QueueWindow(slots=8) gives 45"),
        "short": (Agent(QueueWindow(8), Slots(8), dense(45, 4), "order"), "scores 4 actions; Slots(slots=8) has 8"),
        "rows": (Agent(QueueWindow(8), Slots(8), SlotScores({"weight.0": np.ones((1, 4)), "bias.0": np.zeros(1)}), "order"), "reads 4 numbers; QueueWindow(slots=8) gives 5"),
        "nine": (nine, "needs machines, found Nodes(count=16)"),
    }  # fmt: skip
    for name, (agent, message) in agents.items():
        agent.save(f"{name}.hpcsim")
        line = cli("evaluate", f"{name}.hpcsim", log, *SMALL, "-q", "--out", "e").line()
        assert line.startswith(f"{name}.hpcsim: ")
        assert message in line
    (tmp_path / "three.csv").write_text("MachineName,TotalCPUs,TotalGPUs,TotalMemory\n" + "a,8,0,64\n" * 1 + "b,8,0,64\nc,8,0,64\n")  # fmt: skip
    (tmp_path / "day.csv").write_text("ReqCPUs,ReqGPUs,ReqMem,ActualDuration,Submit\n" + "4,0,1,60,0\n" * 60)
    line = cli("evaluate", "nine.hpcsim", "day.csv", "--machines", "three.csv", *SMALL, "--out", "e").line()
    assert line.startswith("nine.hpcsim: RequestsAndMachines(slots=4, machines=9) needs 9 machines, found")
    assert not {"e", "e.partial"} & {path.name for path in tmp_path.iterdir()}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "m.hpcsim: no such file"),
        (b"x", "m.hpcsim: a model of hpcsimkit is needed, found something else or damaged"),
    ],
)
def test_files_that_are_no_models(cli, tmp_path, content, message) -> None:
    if content is not None:
        (tmp_path / "m.hpcsim").write_bytes(content)
    assert cli("evaluate", "m.hpcsim").line() == message


def test_a_damaged_model(cli, model) -> None:
    content = bytearray(model.read_bytes())
    content[-1] ^= 1
    model.write_bytes(bytes(content))
    assert (
        cli("evaluate", model).line()
        == f"{model}: the file is damaged: its content does not hash to what it says"
    )


def test_safetensors_is_not_installed(cli, model, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "safetensors", None)  # type: ignore[arg-type]
    line = cli("evaluate", model).line()
    assert line == "model files need the package safetensors: pip install 'hpcsimkit[rl]'"


def test_a_policy_that_fails(cli, model, log, tmp_path) -> None:
    (tmp_path / "fails.py").write_text(
        "from hpcsimkit.kernel.policy import Order\nclass Fails(Order):\n    def key(self, job):\n        return 1 / 0\n"
    )
    line = cli("evaluate", model, log, "-p", "fails:Fails", *SMALL, "--out", "e", "-q").line()
    assert line.startswith("fails:Fails at t=")
    assert "ZeroDivisionError: division by zero" in line
    assert not (tmp_path / "e.partial").exists()


def test_a_folder_that_holds_something_else(cli, model, tmp_path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("years of work")
    line = cli("evaluate", model, "--out", "thesis", "-q").line()
    assert line == f"{tmp_path}/thesis: a new, empty or results folder is needed; other files are in it"


# --- compare ---------------------------------------------------------------------------------------------


def test_agents_in_compare(cli, model, log, tmp_path) -> None:
    backfiller = Agent(QueueWindow(8), Slots(8, decline=True), dense(45, 9), "backfiller")
    backfiller.save("backfiller.hpcsim")
    names = [
        "agent:shortest.hpcsim+easy", "sjf+easy+agent:shortest.hpcsim", "sjf+easy+window(8)",
        "fcfs+agent:backfiller.hpcsim", "agent:shortest.hpcsim(sample=true)+easy",
    ]  # fmt: skip
    policies = [word for name in names for word in ("-p", name)]
    outcome = cli("compare", log, *policies, "--no-report", "--out", "c")
    assert (outcome.code, outcome.err) == (0, "")
    metrics = json.loads((tmp_path / "c" / "metrics.json").read_text())
    assert list(metrics) == names
    assert metrics[names[1]] == metrics[names[2]]
    again = cli("compare", "c/experiment.toml", "--out", "again", "--no-report", "-q")
    assert again == (0, "", "")
    assert (tmp_path / "c" / "metrics.csv").read_bytes() == (tmp_path / "again" / "metrics.csv").read_bytes()
    line = cli("compare", log, "-p", "fcfs+agent:nosuch.hpcsim").line()
    assert line == "-p: nosuch.hpcsim: no such file"


def test_all_metrics_are_in_the_table(cli, model, log, tmp_path) -> None:
    cli("evaluate", model, log, "--sequences", 1, "--jobs", 20, "--out", "e", "-q")
    assert list(rows_of(tmp_path / "e")[0]) == ["sequence", "first_job", "seed", "policy", *METRICS]
