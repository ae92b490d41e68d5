"""SchedInspector: features as its code computes them, networks of its size, and an inspector that learns."""

from __future__ import annotations

import csv
import gzip
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpcsimkit import External, Pipeline, Simulation, Workload, make
from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.networks.numpy_networks import Dense
from hpcsimkit.agents.networks.torch_networks import ActorCritic
from hpcsimkit.agents.schedinspector.features import FEATURES, InspectorFeatures
from hpcsimkit.agents.schedinspector.settings import METRICS, PUBLISHED, inspector_environment
from hpcsimkit.agents.schedinspector.whole_state import WholeState
from hpcsimkit.agents.spaces.episodes import Fixed
from hpcsimkit.agents.spaces.masks import AcceptReject, Slots
from hpcsimkit.agents.spaces.rewards import Improvement
from hpcsimkit.envs.environment import SchedulingEnv
from hpcsimkit.envs.interfaces import Encoder
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.errors import UsageError
from hpcsimkit.kernel.reservation import EASY
from hpcsimkit.policies.dirlab import published
from hpcsimkit.policies.predicting.predicted import Predicted
from hpcsimkit.results.metrics import METRICS as KNOWN
from hpcsimkit.workloads import default_workload
from hpcsimkit.workloads.dirlab import read_published
from tests.agents.predictors import HalfOfRequest
from tests.kernel.dirlab_cases import INSPECTORS, held, load

COLUMNS = ("o_wait", "o_est", "o_procs", "o_free", "o_runnable", "o_skip", "o_qdelay")
LIMIT = 72 * 600

JOBS = Workload(
    {
        "submit_time": [0, 60, 120, 180],
        "run_time": [1000, 500, 5, 2000],
        "requested_time": [1200, 600, 5, 2400],
        "nodes": [3, 4, 1, 1],
    },
    machine_size=4,
)
"""At 180 s job 1 runs on three of four nodes, job 2 does not fit, job 3 would have ended by its shadow time."""


# --- features ---------------------------------------------------------------------------------------------


def test_features_are_those_of_the_published_code(shared: Path) -> None:
    log = load(shared, "lublin256", "insp")
    encoder = InspectorFeatures(longest_time=int(log.run_time.max()))
    episodes, compared = defaultdict(list), 0
    with gzip.open(shared / "refs" / "dirlab" / "insp_env_steps.csv.gz", "rt") as file:
        for row in csv.DictReader(file):
            if int(row["skip_time"]) < LIMIT:  # there nobody is asked
                key = row["base"], row["bf"], row["policy"], int(row["start_index"])
                episodes[key].append((int(row["step"]), [float(row[name]) for name in COLUMNS]))
    for (order, backfilling, inspector, begin), expected in episodes.items():
        policy = published("schedinspector", order, backfilling=backfilling == "1", inspector=External())
        simulation = Scenario.sequence(log, begin, 64).simulation(policy)
        found = []
        encode, out = None, np.zeros(encoder.shape, dtype=np.float32)
        while (decision := simulation.next_decision()) is not None:
            encode = encode or encoder.bind(simulation.system)
            encode(decision, out)
            found.append(out.copy())
            step = expected[len(found) - 1][0]
            simulation.answer(INSPECTORS[inspector](step, decision))
        np.testing.assert_allclose(found, [features for _, features in expected], rtol=0, atol=1e-6)
        compared += len(found)
    assert (len(episodes), compared) == (104, 46_365)


def features_of(encoder: Encoder, policy: Pipeline, answers: list[bool]) -> np.ndarray[Any, Any]:
    """Answer some decisions; returns what is seen at the next."""
    simulation = Simulation(JOBS, policy)
    for answer in answers:
        assert simulation.next_decision() is not None
        simulation.answer(answer)
    out = np.zeros(encoder.shape, dtype=np.float32)
    decision = simulation.next_decision()
    assert decision is not None
    encoder.bind(simulation.system)(decision, out)
    return out


def fcfs(**options: Any) -> Pipeline:
    return Pipeline(inspector=External(), max_interval=600, max_rejections=72, **options)


def test_features_by_hand() -> None:
    encoder = InspectorFeatures(longest_time=4800, jobs=8, backfilling="easy")
    found = features_of(encoder, fcfs(), [True, False, False])
    # t=180: job 2 has waited 120 s and was rejected at 60 s and 120 s; 2, 3 and 4 wait.
    delay = (10 / 600 + 1 + 10 / 2400) / 8
    expected = [120 / 43_200, 600 / 4800, 1 - 1e-5, 1 / 4, 1e-5, 2 / 72, delay, 1 / 8]
    assert found.tolist() == pytest.approx(expected, rel=1e-6)
    assert encoder.names == FEATURES


@pytest.mark.parametrize(
    ("parameters", "last"),
    [
        ({"metric": "wait"}, [2 / 72, 3 / 8]),
        ({"features": "compact"}, [1e-5, 2 / 72]),
        ({"features": "compact", "backfilling": "published"}, [2 / 72, 1 / 8]),
        ({"max_rejections": 4, "features": "compact"}, [1e-5, 2 / 4]),
    ],
)
def test_feature_sets(parameters: dict[str, Any], last: list[float]) -> None:
    encoder = InspectorFeatures(longest_time=4800, jobs=8, **parameters)
    found = features_of(encoder, fcfs(), [True, False, False])
    assert found[-2:].tolist() == pytest.approx(last, rel=1e-6)
    assert len(found) == len(encoder.names)


def test_predicted_run_time_by_hand() -> None:
    encoder = InspectorFeatures(longest_time=4800, features="compact", predicted=True)
    found = features_of(encoder, fcfs(estimates=Predicted(HalfOfRequest())), [True, False, False])
    assert encoder.names[-1] == "predicted time"
    assert found[[1, -1]].tolist() == pytest.approx([600 / 4800, 300 / 4800], rel=1e-6)
    without = features_of(encoder, fcfs(), [True, False, False])  # the requested time, as if it were certain
    assert without[[1, -1]].tolist() == pytest.approx([600 / 4800, 600 / 4800], rel=1e-6)


def test_what_could_be_backfilled_depends_on_whose_rules() -> None:
    """A job that is expected to end just at the shadow time may start by EASY, not as published."""
    jobs = JOBS.columns | {"requested_time": np.array([1200, 600, 1020, 2400])}  # ends at 180 + 1020 = 1200 s
    log = Workload(jobs, machine_size=4)
    counts = []
    for rules in ("easy", "published"):
        encoder = InspectorFeatures(backfilling=rules, jobs=1)  # type: ignore[arg-type]
        simulation = Simulation(log, fcfs())
        for answer in (True, False, False):
            simulation.next_decision()
            simulation.answer(answer)
        out = np.zeros(encoder.shape, dtype=np.float32)
        encoder.bind(simulation.system)(simulation.next_decision(), out)  # type: ignore[arg-type]
        counts.append(round(float(out[-1])))
    assert counts == [1, 0]


def test_nothing_is_counted_where_the_job_fits() -> None:
    assert features_of(InspectorFeatures(backfilling="easy"), fcfs(), [])[-1] == 0


def test_whole_nodes_count_by_their_processors(tmp_path: Path) -> None:
    """Of 2 nodes with 4 processors each, a job of 3 processors takes one; its size is 3/8 all the same."""
    path = tmp_path / "log.swf"
    jobs = "".join(
        f"{n} {n} -1 9 {p} -1 -1 {p} 9 -1 1 1 1 1 1 1 -1 -1\n" for n, p in enumerate((3, 8), start=1)
    )
    path.write_text(f"; MaxNodes: 2\n; MaxProcs: 8\n{jobs}")
    log = read_published(path, "schedinspector")
    encoder, policy = InspectorFeatures(), published("schedinspector", inspector=External())
    simulation = Scenario.sequence(log, 0, 2).simulation(policy)
    out = np.zeros(encoder.shape, dtype=np.float32)
    decision = simulation.next_decision()
    assert decision is not None
    encoder.bind(simulation.system)(decision, out)
    assert out[2] == pytest.approx(3 / 8)


def test_the_whole_state_by_hand() -> None:
    found = features_of(WholeState(jobs=4, longest_time=4800), fcfs(), [True, False, False])
    expected = [
        [120 / 43_200, 600 / 4800, 4 / 4],
        [60 / 43_200, 5 / 4800, 1 / 4],
        [0, 2400 / 4800, 1 / 4],
        [0, 0, 0],
        [1 / 4, 2 / 72, 1 / 4],
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_the_selected_job_is_the_first_row() -> None:
    found = features_of(WholeState(jobs=2, longest_time=4800), fcfs(), [True, False, False])
    assert found[:2, 1].tolist() == pytest.approx([600 / 4800, 5 / 4800])  # two rows of three jobs


@pytest.mark.parametrize("encoder", [InspectorFeatures(), WholeState()])
def test_other_seats_are_not_for_it(encoder: Encoder) -> None:
    env = SchedulingEnv(
        Fixed(JOBS), Pipeline(order=External(), window=2), encoder, Slots(2), Improvement(make("fcfs"))
    )
    with pytest.raises(
        UsageError, match="a decision of the seat of an inspector or a gate is needed, found Decision"
    ):
        env.reset(seed=0)


def test_parameters_out_of_range() -> None:
    with pytest.raises(UsageError, match="max_interval needs a whole number of at least 1, found 0"):
        features_of(InspectorFeatures(max_interval=0), fcfs(), [])


def test_a_long_queue_is_added_up_as_a_short_one() -> None:
    rng = np.random.default_rng(5)
    count = 260  # all but one wait
    columns = {
        "submit_time": np.arange(count), "run_time": rng.integers(5000, 90_000, count),
        "nodes": np.full(count, 4),
    }  # fmt: skip
    simulation, longest = Simulation(Workload(columns, machine_size=4), fcfs()), 0
    decision = simulation.next_decision()
    encode, out = InspectorFeatures().bind(simulation.system), np.zeros(7, dtype=np.float32)
    while decision is not None:
        encode(decision, out)
        waiting = [job.requested_time for job in simulation.system.queue]
        assert out[6] == pytest.approx(sum(10 / time for time in waiting) / 128, rel=1e-5)
        longest = max(longest, len(waiting))
        simulation.answer(True)
        decision = simulation.next_decision()
    assert longest == count - 1


# --- networks and masks -----------------------------------------------------------------------------------


def test_networks_are_of_the_published_size() -> None:
    networks = ActorCritic((7,), 2, hidden=PUBLISHED.hidden, activation=PUBLISHED.activation)
    assert (networks.network().parameters, networks.value_network().parameters) == (938, 929)
    assert repr(networks.network()).startswith("Dense(7-32-16-8-2 relu")


def test_action_1_rejects() -> None:
    mask, simulation = AcceptReject(), Simulation(JOBS, fcfs())
    decision = simulation.next_decision()
    assert decision is not None
    out = np.zeros(2, dtype=np.bool_)
    mask.write(decision, out)
    assert out.tolist() == [True, True]
    assert [decision.options[mask.position(decision, action)] for action in (0, 1)] == [True, False]
    assert (mask.action(decision, True), mask.action(decision, False)) == (0, 1)


def test_where_nothing_is_ahead_there_is_nothing_to_reject() -> None:
    simulation = Simulation(JOBS, fcfs())
    while (decision := simulation.next_decision()) is not None:
        out = np.zeros(2, dtype=np.bool_)
        AcceptReject().write(decision, out)
        assert out.tolist() == [True, simulation.system.anything_ahead]
        simulation.answer(True)


# --- agents -----------------------------------------------------------------------------------------------

RUNNABLE, REJECTED = 4, 5


def who_rejects(weights: dict[int, float], bias: float, **parameters: Any) -> Agent:
    """Return an agent that rejects where the weighted sum of features is above minus the bias."""
    weight = np.zeros((2, 7))
    for feature, value in weights.items():
        weight[1, feature] = value
    network = Dense({"weight.0": weight, "bias.0": np.array([0.0, bias])}, "relu")
    return Agent(InspectorFeatures(**parameters), AcceptReject(), network, "inspector")


LOG = default_workload(np.random.default_rng(3), jobs=300, load=1.2)


def test_an_agent_that_rejects_what_does_not_fit() -> None:
    agent = who_rejects({RUNNABLE: -2.0}, 1.0)
    found = Simulation(LOG, Pipeline(make("sjf").queue_order, agent)).run()
    expected = Simulation(LOG, make("sjf+hold-unfit")).run()
    np.testing.assert_array_equal(found.start_time, expected.start_time)


@pytest.mark.parametrize("name", ["fcfs", "lcfs", "sjf", "saf", "srf", "f1", "slurm"])
@pytest.mark.parametrize("behind", ["", "+easy"])
def test_an_agent_from_a_file_on_top_of_a_base(name: str, behind: str, tmp_path: Path) -> None:
    path = tmp_path / "once.hpcsim"
    who_rejects({REJECTED: -1000.0}, 1.0, max_interval=300, max_rejections=9).save(path)
    policy = make(f"{name}{behind}+agent:{path}")
    assert (policy.max_interval, policy.max_rejections) == (300, 9), "as the agent sees them"
    simulation = Simulation(LOG, policy)
    result = simulation.run()
    assert set(simulation.system.holds.values()) == {1}, "everybody asked about is rejected once"
    base = Simulation(LOG, make(f"{name}{behind}")).run()
    assert result.wait_time.mean() != base.wait_time.mean()


def test_its_limits_can_be_set_by_name(tmp_path: Path) -> None:
    path = tmp_path / "always.hpcsim"
    who_rejects({}, 1.0).save(path)
    policy = make(f"sjf+max-rejections(2)+max-interval(60)+agent:{path}")
    assert (policy.max_interval, policy.max_rejections) == (60, 2)
    simulation = Simulation(LOG, policy)
    simulation.run()
    assert max(simulation.system.holds.values()) == 2


def test_a_random_inspector_rejects_as_often_as_its_scores_say() -> None:
    agent = who_rejects({}, float(np.log(0.25 / 0.75)))
    agent.sample = True
    simulation = Simulation(LOG, Pipeline(inspector=agent, commit=True, max_interval=600))
    simulation.run()
    rejections = sum(simulation.system.holds.values())  # beside them each job is accepted once
    assert rejections / (rejections + len(LOG)) == pytest.approx(0.25, abs=0.05)


# --- environment and reward -------------------------------------------------------------------------------


def played(env: SchedulingEnv, reject: Any) -> tuple[float, int]:
    """Play an episode; returns what was earned, and in how many steps."""
    env.reset(seed=4)
    earned, steps, over = 0.0, 0, False
    while not over:
        assert env.episode is not None
        decision = env.episode.decision
        _, reward, over, _, _ = env.step(int(reject(decision)))
        earned += reward
        steps += 1
    return earned, steps


def test_the_environment_pays_the_published_reward() -> None:
    log = default_workload(np.random.default_rng(7), jobs=600, load=1.1)
    env = inspector_environment(log)
    earned, steps = played(env, lambda decision: not decision.system.fits(decision.job))
    assert steps > 128
    scenario = env.episodes.sample(np.random.default_rng(np.random.SeedSequence(4)))
    base = scenario.simulation(published("schedinspector", "sjf")).run()
    agent = who_rejects({RUNNABLE: -2.0}, 1.0)
    ours = scenario.simulation(published("schedinspector", "sjf", inspector=agent)).run()
    first, second = (result.bounded_slowdown().mean() for result in (base, ours))
    assert earned == pytest.approx((first - second) / max(first, second, 1))
    assert played(env, lambda decision: False) == (0.0, 128)


def test_it_learns_for_the_metrics_of_the_paper() -> None:
    assert set(METRICS.values()) <= set(KNOWN)
    log = default_workload(np.random.default_rng(7), jobs=600, load=1.1)
    for metric, name in METRICS.items():
        env = inspector_environment(log, metric=metric, kind="native", backfilling=True)
        assert isinstance(env.reward, Improvement)
        assert (env.reward.metric, env.reward.kind) == (name, "native")
        assert env.encoder.metric == ("wait" if metric == "wait" else "bounded_slowdown")  # type: ignore[attr-defined]
        assert np.isfinite(played(env, lambda decision: held(decision) == 0)[0])


def test_easy_behind_an_inspector_is_textbook_easy() -> None:
    agent = who_rejects({}, -1.0)
    found = Simulation(LOG, Pipeline(make("sjf").queue_order, agent, backfiller=EASY())).run()
    np.testing.assert_array_equal(found.start_time, Simulation(LOG, make("sjf+easy")).run().start_time)
