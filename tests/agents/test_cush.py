"""What CuSH's agents see and may do, and their networks: pictures by hand, scores against plain torch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.cush.encoder import ClusterImage, JobKind, Sketch
from hpcsimkit.agents.cush.network import NAMES, ImageScores, shapes
from hpcsimkit.agents.cush.torch_network import ImageNetwork
from hpcsimkit.agents.networks.numpy_networks import Dense
from hpcsimkit.agents.spaces.masks import QueueSlots, Slots
from hpcsimkit.cluster.allocation import Allocation
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.decision import Decision, External
from hpcsimkit.kernel.locality import BREADTH, DEPTH
from hpcsimkit.kernel.observers import Observer
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.kernel.system import System
from hpcsimkit.policies import SJF
from hpcsimkit.policies.placing.styles import DepthOrBreadth
from tests.drawn import examples

torch.set_num_threads(1)

Picture = np.ndarray
STYLES = (DEPTH, BREADTH)


def job_set(*rows: tuple[int, ...], requested: Sequence[int] | None = None) -> Workload:
    """Jobs by when they come, how long they run, their CPUs and GPUs and, where it matters, their kind."""
    submit, run, cpus, gpus, kind = zip(*((*row, 0)[:5] for row in rows), strict=True)
    columns = {
        "submit_time": submit, "run_time": run, "requested_time": requested or run, "nodes": [1] * len(rows),
        "cpus": cpus, "gpus": gpus, "kind": kind, "spread": [1] * len(rows),
    }  # fmt: skip
    return Workload(columns, resources=("cpus", "gpus"))


def open_seats(slots: int, order: Any = None) -> Pipeline:
    return Pipeline(
        order=External(order, decline=True), placement=External(DepthOrBreadth()), fitting=True, window=slots,
        max_interval=1,
    )  # fmt: skip


# --- pictures ----------------------------------------------------------------------------------------------


class Drawn:
    """A run that is driven by hand, and looked at whenever the order seat is asked."""

    def __init__(self, jobs: Workload, cluster: Machines, image: ClusterImage, **options: Any) -> None:
        self.simulation = Simulation(jobs, open_seats(image.slots), cluster, **options)
        self.image = image
        self.encode = image.bind(self.asked("order").system)

    def asked(self, stage: str) -> Decision:
        decision = self.simulation.next_decision()
        assert decision is not None and decision.stage == stage
        return decision

    def start(self, number: int, style: str) -> None:
        """Let a job start; they are counted from 1."""
        decision = self.asked("order")
        self.simulation.answer(decision.system.jobs[number - 1])
        self.asked("placement")
        self.simulation.answer_position(STYLES.index(style))

    def wait(self, until: int) -> None:
        """Let a second pass, then the next one ..., until it is so late."""
        while (now := self.asked("order").system.now) < until:
            self.simulation.answer(None)
            assert self.asked("order").system.now == now + 1

    def picture(self) -> Picture:
        out = np.zeros(self.image.shape, dtype=np.float32)
        self.encode(self.asked("order"), out)
        return out

    def cluster(self) -> list[str]:
        """Return a line for each second to come: CPUs, then GPUs, X where a unit is busy."""
        plane = self.picture()[0]
        assert set(plane.ravel().tolist()) <= {0.0, 1.0}
        return self.lines(plane)

    def waiting(self, slot: int) -> tuple[list[str], float]:
        """Return the picture of the job in a slot, and the one number that it is drawn with."""
        plane = self.picture()[1 + slot]
        (value,) = set(plane.ravel().tolist()) - {0.0}
        return self.lines(plane), value

    def lines(self, plane: Picture) -> list[str]:
        words = ["".join("X" if value else "." for value in row) for row in plane]
        cpus = self.image.widths[0]
        return [f"{word[:cpus]} {word[cpus:]}" for word in words]


THREE = Machines.of(3, cpus=2, gpus=2)
NOBODY = ["...... ......"]


def three(*rows: tuple[int, ...], requested: Sequence[int] | None = None, **options: Any) -> Drawn:
    """Three nodes of two CPUs and two GPUs; three seconds and two jobs are seen."""
    unit = options.pop("wait_unit", 1.0)
    return Drawn(job_set(*rows, requested=requested), THREE, ClusterImage(3, (2, 2), 2, 3, unit), **options)


def test_jobs_lie_on_the_first_free_units_of_their_nodes_until_they_end() -> None:
    """A packed, B spread over what is left; as A has ended, C into the gap beside B, D spread."""
    run = three((0, 2, 3, 1), (0, 5, 2, 3), (0, 9, 1, 0), (0, 9, 2, 3), (0, 9, 1, 0))
    assert run.cluster() == NOBODY * 3
    run.start(1, DEPTH)  # the first node, but for a GPU, and a CPU of the second
    assert run.cluster() == ["XXX... X....."] * 2 + NOBODY
    run.start(2, BREADTH)  # a CPU of each of the other nodes, a GPU of every node
    assert run.cluster() == ["XXXXX. XXX.X."] * 2 + ["...XX. .XX.X."]
    run.wait(1)
    assert run.cluster() == ["XXXXX. XXX.X."] + ["...XX. .XX.X."] * 2
    run.wait(2)
    assert run.cluster() == ["...XX. .XX.X."] * 3
    run.start(3, DEPTH)  # of the fullest nodes the first: the second, whose other CPU is B's
    assert run.cluster() == ["..XXX. .XX.X."] * 3
    run.start(4, BREADTH)  # a CPU of the first node and the last of the third; a GPU of every node
    assert run.cluster() == ["X.XXXX XXXXXX"] * 3
    run.wait(4)
    assert run.cluster() == ["X.XXXX XXXXXX"] + ["X.X..X X..X.X"] * 2
    run.wait(5)
    assert run.cluster() == ["X.X..X X..X.X"] * 3


def test_waiting_jobs_are_drawn_with_what_they_asked_for_whether_they_fit_or_not() -> None:
    """B does not fit beside A. C comes at 1. Behind the two slots nobody is seen."""
    run = three((0, 9, 4, 4), (0, 2, 3, 5), (1, 7, 1, 0), (1, 1, 1, 0), (99, 1, 1, 1))
    assert run.waiting(0) == (["XXXX.. XXXX.."] * 3, 1.0)  # longer than what is seen
    assert run.waiting(1) == (["XXX... XXXXX."] * 2 + NOBODY, 1.0)
    run.start(1, DEPTH)
    assert run.asked("order").system.now == 1, "nobody fits at 0"
    assert run.waiting(0) == (["XXX... XXXXX."] * 2 + NOBODY, 2.0)
    assert run.waiting(1) == (["X..... ......"] * 3, 1.0)
    run.wait(3)
    assert [run.waiting(slot)[1] for slot in (0, 1)] == [4.0, 3.0]
    run.start(3, DEPTH)
    assert run.waiting(1) == (["X..... ......", *NOBODY * 2], 3.0), "the fourth moves up"
    run.start(4, DEPTH)
    assert run.asked("order").system.now == 9, "B fits as A has ended"
    assert run.waiting(0)[1] == 10.0
    assert not run.picture()[2].any(), "an empty slot"


def test_waiting_times_may_count_less() -> None:
    run = three((0, 1, 1, 1), (0, 1, 1, 1), (9, 1, 1, 1), wait_unit=8.0)
    assert run.waiting(0)[1] == 1.0, "who has just arrived is seen as well as anybody"
    run.wait(2)
    assert run.waiting(1)[1] == 1.25


@pytest.mark.parametrize(
    ("run_time", "requested", "rows"),
    [
        (5, 2, [2, 1, 1, 1, 1, 0]),  # it is expected to end in a second, again and again
        (1, 9, [3, 0, 0, 0, 0, 0]),  # it ends early
        (4, 4, [3, 3, 2, 1, 0, 0]),
    ],
)
def test_what_was_requested_is_what_is_expected(run_time: int, requested: int, rows: list[int]) -> None:
    run = three((0, run_time, 2, 0), (0, 1, 1, 1), (99, 1, 1, 1), requested=[requested, 1, 1])
    run.start(1, DEPTH)
    for now, count in enumerate(rows):
        run.wait(now)
        assert run.cluster() == ["XX.... ......"] * count + NOBODY * (3 - count)


@pytest.mark.parametrize(("style", "share", "rows"), [(DEPTH, 0.7, 1), (BREADTH, 0.7, 2), (BREADTH, -0.9, 1)])
def test_what_the_placement_adds_is_expected_too(style: str, share: float, rows: int) -> None:
    """A second, and 0.7 s more where it is spread: 2 s; a second less than a second is still one."""

    def penalty(job: Job, seconds: int, allocation: Allocation, cluster: Any) -> float:
        return share * seconds if allocation.style == BREADTH else 0.0

    run = three((0, 1, 1, 0), (0, 1, 1, 1), (99, 1, 1, 1), service_time=penalty)
    run.start(1, style)
    assert run.cluster() == ["X..... ......"] * rows + NOBODY * (3 - rows)
    run.wait(rows)
    assert run.cluster() == NOBODY * 3


def test_the_longest_horizon() -> None:
    """A job of a thousand seconds does not make the picture overflow."""
    image = ClusterImage(3, (2, 2), slots=2, steps=255)
    run = Drawn(job_set((0, 1000, 6, 0), (0, 1, 0, 1), (9999, 1, 1, 1)), THREE, image)
    sketch = image.sketcher([run.asked("order").system])
    assert sketch([0]).jobs[0, 0].tolist() == [6, 0, 255, 1]
    run.start(1, DEPTH)
    assert sketch([0]).busy.tolist() == [[255] * 6 + [0] * 6]
    run.wait(746)
    assert set(sketch([0]).busy[0, :6].tolist()) == {254}


class NaiveUnits(Observer):
    """Who has which unit: each job takes the lowest numbers that nobody has, node by node."""

    def __init__(self) -> None:
        self.owner: dict[tuple[int, int, int], int] = {}

    def on_start(self, job: Job, allocation: Any, system: System) -> None:
        for node, amounts in zip(allocation.machines, allocation.amounts.tolist(), strict=True):
            for resource, amount in enumerate(amounts):
                places = ((resource, node, unit) for unit in range(9))
                for place in [place for place in places if place not in self.owner][:amount]:
                    self.owner[place] = job.index

    def on_end(self, job: Job, system: System) -> None:
        self.owner = {place: owner for place, owner in self.owner.items() if owner != job.index}

    def picture(self, image: ClusterImage, system: System) -> Picture:
        """Draw it dot by dot."""
        out = np.zeros(image.shape, dtype=np.float32)
        for (resource, node, unit), row in self.owner.items():
            penalty = system.expected_penalty(system.jobs[row], system.given(row))
            expected = system.ledger.starts[row] + max(1, round(system.jobs[row].requested_time + penalty))
            column = resource * image.nodes * image.units[0] + node * image.units[resource] + unit
            for step in range(image.steps):
                out[0, step, column] = step == 0 or expected - system.now > step
        for slot, job in enumerate(list(system.queue)[: image.slots]):
            assert job.request is not None
            for resource, amount in enumerate(job.request.amounts):
                for unit in range(amount):
                    for step in range(min(job.requested_time, image.steps)):
                        column = resource * image.nodes * image.units[0] + unit
                        out[1 + slot, step, column] = 1 + system.now - job.submit_time
        return out


def any_jobs(count: int, nodes: int, units: Sequence[int], rng: np.random.Generator) -> Workload:
    columns = {
        "submit_time": rng.integers(0, 12, count), "run_time": rng.integers(0, 9, count),
        "requested_time": rng.integers(1, 9, count), "nodes": np.ones(count), "spread": np.ones(count),
        "cpus": rng.integers(1, nodes * units[0] + 1, count),
        "gpus": rng.integers(0, nodes * units[1] + 1, count),
    }  # fmt: skip
    return Workload(columns, resources=("cpus", "gpus"))


@examples(0.4)
@given(seed=st.integers(0, 2**32 - 1), nodes=st.integers(1, 5), slots=st.integers(1, 4))
def test_pictures_and_masks_of_any_run(seed: int, nodes: int, slots: int) -> None:
    """Against units noted one by one; some jobs take no time, or more or less than was requested."""
    rng = np.random.default_rng(seed)
    units = [int(rng.integers(1, 4)), int(rng.integers(0, 4))]
    jobs = any_jobs(14, nodes, units, rng)
    image, mask = ClusterImage(nodes, units, slots, int(rng.integers(2, 7))), QueueSlots(slots, decline=True)
    naive = NaiveUnits()
    simulation = Simulation(
        jobs, open_seats(slots), Machines.of(nodes, cpus=units[0], gpus=units[1]), observers=[naive],
        service_time=lambda job, seconds, allocation, cluster: 0.3 * len(allocation.machines),
    )  # fmt: skip
    encode, asked = None, 0
    while (decision := simulation.next_decision()) is not None:
        if decision.stage == "order":
            encode = encode or image.bind(decision.system)
            seen, valid = np.zeros(image.shape, np.float32), np.zeros(mask.actions, np.bool_)
            encode(decision, seen)
            assert np.array_equal(seen, naive.picture(image, decision.system))
            mask.write(decision, valid)
            waiting = list(decision.system.queue)[:slots]
            fitting = [decision.system.fits(job) for job in waiting] + [False] * (slots - len(waiting))
            assert valid.tolist() == [*fitting, decision.options[-1] is None]
            for action in np.flatnonzero(valid).tolist():
                choice = decision.options[mask.position(decision, action)]
                assert choice is None if action == slots else choice.index == waiting[action].index
                assert mask.action(decision, choice) == action
            asked += 1
        simulation.answer_position(int(rng.integers(len(decision.options))))
    assert asked >= 14


@examples(0.2)
@given(seed=st.integers(0, 2**32 - 1))
def test_runs_side_by_side_look_as_they_do_alone(seed: int) -> None:
    """Runs of different jobs, and two of the same; some are looked at, now and then, in any order."""
    rng = np.random.default_rng(seed)
    image, cluster = ClusterImage(3, (2, 3), slots=2, steps=4), Machines.of(3, cpus=2, gpus=3)
    sets = [any_jobs(int(count), 3, (2, 3), rng) for count in rng.integers(4, 12, 3)]
    naive = [NaiveUnits() for _ in range(4)]
    runs = [
        Simulation(jobs, open_seats(2), cluster, observers=[units])
        for jobs, units in zip([*sets, sets[0]], naive, strict=True)
    ]
    for run in runs:
        run.next_decision()
    sketch, going = image.sketcher([run.system for run in runs]), [0, 1, 2, 3]
    while going:
        looked_at = rng.permutation(4)[: int(rng.integers(0, 5))].tolist()
        pictures = drawn(sketch(looked_at), image).numpy()
        for number, picture in zip(looked_at, pictures, strict=True):
            assert np.array_equal(picture, naive[number].picture(image, runs[number].system))
        run = runs[int(rng.choice(going))]
        for _ in range(int(rng.integers(1, 9))):
            if (decision := run.next_decision()) is not None:
                run.answer_position(int(rng.integers(len(decision.options))))
        going = [number for number in going if runs[number].next_decision() is not None]


def test_a_run_that_is_looked_at_twice() -> None:
    run = three((0, 9, 2, 2), (0, 9, 2, 2))
    run.start(1, DEPTH)
    system = run.asked("order").system
    (first, again), _ = run.image.sketcher([system])([0, 0])
    assert first.tolist() == again.tolist() == run.image.sketcher([system])([0]).busy[0].tolist()
    assert first.sum() > 0


@pytest.mark.parametrize(
    ("image", "found"),
    [
        (ClusterImage(4, (2, 2)), "4"),
        (ClusterImage(3, (2,)), "resources"),
        (ClusterImage(3, (2, 3)), "nodes with [2, 3] units each, found Machines(3: 6 cpus, 6 gpus)"),
        (ClusterImage(3, (2, 2), steps=1), "steps needs a number from 2 to 255, found 1"),
        (ClusterImage(3, (2, 2), steps=256), "steps needs a number from 2 to 255, found 256"),
        (ClusterImage(3, (2, 2), wait_unit=0), "wait_unit needs a number above 0, found 0"),
    ],
)
def test_pictures_that_cannot_be_drawn(image: ClusterImage, found: str) -> None:
    with pytest.raises(UsageError) as caught:
        Drawn(job_set((0, 1, 1, 1), (0, 1, 1, 1)), THREE, image)
    assert found in str(caught.value) and repr(image) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_pictures_need_machines() -> None:
    jobs = Workload({"submit_time": [0], "run_time": [1], "nodes": [1]}, machine_size=3)
    decision = Simulation(jobs, Pipeline(order=External())).next_decision()
    assert decision is not None
    with pytest.raises(UsageError, match=r"ClusterImage\(.*\) needs .*found Nodes\(count=3\)"):
        ClusterImage(3, (2, 2)).bind(decision.system)


def test_the_kind_of_the_job_that_is_placed() -> None:
    run = Simulation(job_set(*((0, 1, 1, 1, kind) for kind in (0, 1, -1, 2))), open_seats(4), THREE)
    seen = []
    while (decision := run.next_decision()) is not None:
        if decision.stage == "placement":
            out = np.zeros(2, dtype=np.float32)
            JobKind().bind(decision.system)(decision, out)
            seen.append(out.tolist())
        run.answer_position(0)
    assert seen == [[1, 0], [0, 1], [0, 0], [0, 0]]
    assert JobKind(3).shape == (3,)


def test_the_kind_that_executions_have_shown() -> None:
    """Of what nobody is told: a program that takes 20 s packed and 10 s spread, and one that takes 10 and 30 s.

    The first execution of each is packed, the second spread; of the third the kind is known.
    """

    def penalty(job: Job, seconds: int, allocation: Allocation, cluster: Any) -> float:
        return {(7, DEPTH): 1.0, (8, BREADTH): 2.0}.get((job.executable, allocation.style), 0.0) * seconds

    jobs = job_set(*[(0, 10, 6, 6, -1)] * 6, requested=[10] * 6)
    columns = {**jobs.columns, "executable": np.array([7, 8] * 3)}
    jobs = Workload(columns, resources=jobs.resources)
    run, encoder, seen = (
        Simulation(jobs, open_seats(6), THREE, service_time=penalty),
        JobKind(2, "executable"),
        [],
    )
    encode = None
    while (decision := run.next_decision()) is not None:
        if decision.stage == "placement":
            encode = encode or encoder.bind(decision.system)
            out = np.zeros(2, dtype=np.float32)
            encode(decision, out)
            seen.append(out.tolist())
            run.answer_position(int(len(seen) in (3, 4)))
        else:
            run.answer_position(0)
    assert seen == [[0, 0]] * 4 + [[0, 1], [1, 0]]


# --- masks -------------------------------------------------------------------------------------------------


def valid_of(mask: QueueSlots, decision: Decision) -> list[bool]:
    out = np.zeros(mask.actions, dtype=np.bool_)
    mask.write(decision, out)
    return out.tolist()


def test_who_does_not_fit_keeps_his_place() -> None:
    run = three((0, 9, 4, 4), (0, 2, 3, 5), (1, 7, 1, 0), (99, 1, 1, 1))
    mask = QueueSlots(2, decline=True)
    decision = run.asked("order")
    assert valid_of(mask, decision) == [True, True, True]
    assert [mask.position(decision, action) for action in range(3)] == [0, 1, 2]
    run.start(1, DEPTH)
    decision = run.asked("order")
    assert valid_of(mask, decision) == [False, True, True]
    assert [mask.position(decision, action) for action in (1, 2)] == [0, 1]
    assert [mask.action(decision, option) for option in decision.options] == [1, 2]
    assert valid_of(QueueSlots(2), decision) == [False, True], "of who may not decline"


def test_places_are_those_of_the_order_behind_the_seat() -> None:
    """Shortest first: in slot 0 is the last to come, in the picture as well."""
    jobs = job_set((0, 5, 1, 0), (0, 7, 6, 6), (0, 2, 2, 0), (9, 1, 1, 1))
    simulation = Simulation(jobs, open_seats(3, order=SJF()), THREE)
    decision = simulation.next_decision()
    assert decision is not None
    mask, image = QueueSlots(3, decline=True), ClusterImage(3, (2, 2), slots=3)
    waiting = image.sketcher([decision.system])([0]).jobs[0]
    assert waiting[:, 0].tolist() == [2, 1, 6]
    assert [decision.options[mask.position(decision, action)].id for action in range(3)] == [3, 1, 2]


def test_jobs_without_a_slot_are_not_seen() -> None:
    """Where more are offered than there are slots, as of other masks, the others have no action."""
    decision = Simulation(job_set(*[(0, 1, 1, 1)] * 4, (9, 1, 1, 1)), open_seats(4), THREE).next_decision()
    assert decision is not None
    assert valid_of(QueueSlots(2, decline=True), decision) == [True, True, True]
    with pytest.raises(UsageError, match=r"QueueSlots\(.*\) has no slot for option 2"):
        QueueSlots(2, decline=True).action(decision, decision.options[2])


# --- networks ----------------------------------------------------------------------------------------------

SIERRA, SUMMIT = (ClusterImage(128, units) for units in ([2, 4], [2, 6]))


def made(image: ClusterImage, filters: int = 16, seed: int = 0) -> ImageNetwork:
    """Return a network in which nothing is 0 or 1 any more."""
    generator = torch.Generator().manual_seed(seed)
    network = ImageNetwork(
        image.nodes, image.units, image.steps, image.slots, filters=filters, generator=generator
    )
    with torch.no_grad():
        for values in (*network.parameters(), network.mean):
            values += 0.3 * torch.randn(values.shape, generator=generator)
        network.variance += torch.rand(filters, generator=generator)
    return network


def plain(network: ImageNetwork) -> nn.Sequential:
    """Return what the paper describes, of torch's own layers, with the same weights."""
    filters, channels = network.filter_weight.shape[:2]
    actions = len(network.bias)
    layers: Any = nn.Sequential(
        nn.Conv2d(channels, filters, 2), nn.ReLU(), nn.BatchNorm2d(filters), nn.Flatten(),
        nn.Linear(network.weight[0].numel(), actions),
    )  # fmt: skip
    own = (network.filter_weight, network.filter_bias, network.norm_scale, network.norm_shift)
    with torch.no_grad():
        for theirs, ours in zip(layers.parameters(), (*own, network.weight, network.bias), strict=True):
            theirs.copy_(ours.reshape(theirs.shape))
        layers[2].running_mean.copy_(network.mean)
        layers[2].running_var.copy_(network.variance)
    return layers.eval()


def some_sketches(rng: np.random.Generator, count: int, image: ClusterImage) -> Sketch:
    """Return sketches in which jobs are often missing, equally wide, as wide as the cluster, or of no width.

    Units are busy at random, or most of them are alike.
    """
    steps, slots = image.steps, image.slots
    jobs = np.zeros((count, slots, len(image.units) + 2), dtype=np.float32)
    for resource, width in enumerate(image.widths):
        often = [0, 1, width // 2, width - 1, width]
        any_width = rng.integers(0, width + 1, (count, slots))
        jobs[..., resource] = np.where(
            rng.random((count, slots)) < 0.5, rng.choice(often, (count, slots)), any_width
        )
    jobs[..., -2] = rng.integers(1, steps + 1, (count, slots))
    jobs[..., -1] = rng.integers(1, 30, (count, slots)) / 4
    jobs[rng.random((count, slots)) < 0.3] = 0
    busy = rng.integers(0, steps + 1, (count, sum(image.widths)))
    alike = rng.random(busy.shape) < rng.choice([0.0, 0.9, 1.0], (count, 1))
    return Sketch(np.where(alike, rng.integers(0, steps + 1, (count, 1)), busy).astype(np.uint8), jobs)


def drawn(sketch: Sketch, image: ClusterImage) -> torch.Tensor:
    """Return the pictures of sketches."""
    pictures = np.zeros((len(sketch.busy), *image.shape), dtype=np.float32)
    for busy, jobs, out in zip(*sketch, pictures, strict=True):
        image.draw(Sketch(busy, jobs), out)
    return torch.from_numpy(pictures)


def test_sketches_are_drawn_dot_by_dot() -> None:
    image = ClusterImage(1, (5, 7), slots=3, steps=4)
    sketch = some_sketches(np.random.default_rng(3), 20, image)
    for busy, jobs, picture in zip(*sketch, drawn(sketch, image).numpy(), strict=True):
        for (channel, row, column), found in np.ndenumerate(picture):
            if channel == 0:
                assert found == (row < busy[column])
                continue
            cpus, gpus, rows, value = jobs[channel - 1].tolist()
            there = column < cpus if column < 5 else column - 5 < gpus
            assert found == (value if there and row < rows else 0)


@examples(0.6)
@given(
    seed=st.integers(0, 2**32 - 1), nodes=st.integers(1, 7),
    units=st.lists(st.integers(1, 4), min_size=1, max_size=3), batch=st.integers(1, 9),
    steps=st.integers(2, 8), slots=st.integers(1, 6), filters=st.integers(1, 4),
)  # fmt: skip
def test_scores_and_gradients_are_those_of_plain_torch(
    seed: int, nodes: int, units: list[int], batch: int, steps: int, slots: int, filters: int
) -> None:
    image = ClusterImage(nodes, units, slots, steps)
    if sum(image.widths) < 2:
        return  # no place for a filter
    same_as_plain(made(image, filters, seed % 1000), image, np.random.default_rng(seed), batch)


@pytest.mark.parametrize(
    "image", [SIERRA, SUMMIT, *(ClusterImage(128, [2, 4], steps=steps) for steps in (2, 20))]
)
def test_scores_and_gradients_of_the_published_networks(image: ClusterImage) -> None:
    same_as_plain(made(image), image, np.random.default_rng(1), 6)


def same_as_plain(network: ImageNetwork, image: ClusterImage, rng: np.random.Generator, batch: int) -> None:
    sketch = some_sketches(rng, batch, image)
    theirs: Any = plain(network).double()
    pictures = drawn(sketch, image)
    expected = theirs(pictures.double())
    found = network(*map(torch.from_numpy, sketch))
    scale = float(expected.detach().abs().max())
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=1e-5 * scale)
    acting = network.acting()
    for picture, scores in zip(pictures.numpy(), found.detach().numpy(), strict=True):
        np.testing.assert_allclose(acting.scores(picture), scores, rtol=0, atol=1e-5 * scale)
    pull = torch.randn(found.shape, generator=torch.Generator().manual_seed(1))
    found.backward(pull)
    expected.backward(pull.double())
    own = (network.filter_weight, network.filter_bias, network.norm_scale, network.norm_shift)
    largest = max(float(other.grad.abs().max()) for other in theirs.parameters())
    for ours, other in zip((*own, network.weight, network.bias), theirs.parameters(), strict=True):
        assert ours.grad is not None
        gradient = other.grad.reshape(ours.shape)
        torch.testing.assert_close(ours.grad.double(), gradient, rtol=0, atol=1e-5 * largest)


@pytest.mark.parametrize(("image", "dense"), [(SIERRA, 294_534), (SUMMIT, 392_838)])
def test_parameters_are_those_of_the_paper(image: ClusterImage, dense: int) -> None:
    """400 of the convolution, 32 of the normalisation, and a dense layer with its biases."""
    network = made(image)
    counts = {name: values.numel() for name, values in network.named_parameters()}
    assert counts["filter_weight"] + counts["filter_bias"] == 400
    assert counts["norm_scale"] + counts["norm_shift"] == 32
    assert counts["weight"] + counts["bias"] == dense
    assert sum(counts.values()) == network.acting().parameters == 432 + dense
    assert network.acting().image == image.shape


def test_first_weights_come_from_the_generator_alone() -> None:
    networks = [
        ImageNetwork(6, [1, 1], 5, 5, generator=torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)
    ]
    first, same, other = (network.acting() for network in networks)
    assert first == same != other
    reach = {"filter_weight": (6 * 4) ** -0.5, "weight": (16 * 4 * 11) ** -0.5}
    for name, values in networks[0].named_parameters():
        if name in reach:
            assert 0.8 * reach[name] < float(values.detach().abs().max()) <= reach[name]
        else:
            assert set(values.tolist()) == {1.0 if name == "norm_scale" else 0.0}


def test_moments_are_those_of_a_batch() -> None:
    image = ClusterImage(3, [2, 3], slots=3, steps=4)
    network = made(image, filters=3)
    sketch = some_sketches(np.random.default_rng(5), 10, image)
    theirs: Any = plain(network).train()
    theirs[2].momentum = 1.0
    theirs[:3](drawn(sketch, image))
    count = 10 * 3 * (15 - 1)
    mean, variance = theirs[2].running_mean, theirs[2].running_var * (count - 1) / count
    before = network.mean.clone(), network.variance.clone()
    with torch.no_grad():
        moments = network.moments(network.found(*map(torch.from_numpy, sketch)), batch=10).mean(dim=0)
        network.renew(moments, 0.25)
        torch.testing.assert_close(network.mean, 0.75 * before[0] + 0.25 * mean)
        torch.testing.assert_close(network.variance, 0.75 * before[1] + 0.25 * variance)
        network.renew(moments)
        torch.testing.assert_close(network.mean, mean)
        torch.testing.assert_close(network.variance, variance)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"bias": None}, f"a network of images needs {', '.join(NAMES)}, found"),
        ({"more": np.ones(1)}, "a network of images needs"),
        ({"weight": np.zeros((2, 5, 3, 8))}, r"^weight .* has the wrong shape \(2, 5, 3, 8\)"),
        ({"bias": np.zeros(5)}, r"^bias of a network of images has the wrong shape \(5,\)"),
        ({"filter.weight": np.zeros((2, 3))}, r"filter.weight .* has the wrong shape \(2, 3\)"),
        ({"norm.scale": np.zeros(3)}, r"norm.scale .* has the wrong shape \(3,\)"),
        ({"norm.shift": np.full(2, np.nan)}, "norm.shift holds what is no finite number"),
    ],
)
def test_tensors_that_make_no_network(change: dict[str, Any], words: str) -> None:
    tensors = {name: np.ones(shape) for name, shape in shapes((3, 4, 9), 2, filters=2).items()}
    ImageScores(tensors)
    with pytest.raises(UsageError, match=words):
        ImageScores({name: values for name, values in (tensors | change).items() if values is not None})


def test_only_one_activation_is_known() -> None:
    tensors = {name: np.ones(shape) for name, shape in shapes((3, 4, 9), 2, filters=2).items()}
    with pytest.raises(UsageError, match="has the activation 'relu', found 'tanh'"):
        ImageScores(tensors, "tanh")


# --- files -------------------------------------------------------------------------------------------------


def test_model_files_know_both_agents(tmp_path: Path) -> None:
    image = ClusterImage(3, [2, 4], slots=4, steps=7, wait_unit=20.0)
    about = {"algorithm": "cush", "epochs": 3}
    order = Agent(image, QueueSlots(4, decline=True), made(image).acting(), "order", about=about)
    dense = Dense({"weight.0": np.eye(2), "bias.0": np.zeros(2)}, "relu")
    placement = Agent(JobKind(), Slots(2), dense, "placement", about=about)
    for agent in (order, placement):
        agent.check()
        agent.save(tmp_path / "agent.hpcsim")
        again = Agent.load(tmp_path / "agent.hpcsim")
        assert again == agent and again.network == agent.network
        assert (again.encoder, again.mask) == (agent.encoder, agent.mask)
        assert (again.stage, again.decline, again.slots) == (agent.stage, agent.decline, agent.slots)
    assert type(again.network) is Dense and type(order.network) is ImageScores
    picture = np.random.default_rng(1).random(image.shape).astype(np.float32)
    order.save(tmp_path / "agent.hpcsim")
    again = Agent.load(tmp_path / "agent.hpcsim")
    assert np.array_equal(again.network.scores(picture), order.network.scores(picture))


def test_an_agent_that_sees_another_picture_is_refused() -> None:
    network = made(ClusterImage(3, [2, 4])).acting()
    agent = Agent(ClusterImage(3, [2, 6]), QueueSlots(5, decline=True), network, "order")
    with pytest.raises(UsageError, match=r"ImageScores.* reads 540 numbers; ClusterImage\(.* gives 720"):
        agent.check()
