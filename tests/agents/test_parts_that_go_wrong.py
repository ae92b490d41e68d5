"""Encoders, masks, rewards and episodes of a user's own that go wrong, at once or later: one line each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hpcsimkit import External, Pipeline, Workload
from hpcsimkit.agents.spaces.encoders import QueueWindow
from hpcsimkit.agents.spaces.episodes import Fixed
from hpcsimkit.agents.spaces.masks import Slots
from hpcsimkit.agents.spaces.rewards import MinusMeanWait
from hpcsimkit.envs.environment import SchedulingEnv
from hpcsimkit.envs.interfaces import Encoder, Episodes, Mask, Reward
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.envs.vector_environment import SchedulingVecEnv
from hpcsimkit.errors import HpcsimkitError
from hpcsimkit.kernel.setup import Setup

COLUMNS = {"submit_time": [0] * 6, "run_time": [9] * 6, "nodes": [4] * 6}
LOG = Workload(COLUMNS, machine_size=4)


class Late:
    """What goes wrong at the third time."""

    count = 0

    def third(self) -> bool:
        self.count += 1
        return self.count == 3


class EncodeFails(QueueWindow):
    def __init__(self, slots: int, act: Callable[[Any], Any]) -> None:
        super().__init__(slots)
        self.act = act

    def bind(self, system: Any) -> Any:
        encode, late = super().bind(system), Late()

        def mine(decision: Any, out: Any) -> None:
            encode(decision, out)
            if late.third():
                self.act(out)

        return mine


class Binds(QueueWindow):
    def __init__(self, slots: int, act: Callable[[], Any]) -> None:
        super().__init__(slots)
        self.act = act

    def bind(self, system: Any) -> Any:
        return self.act()


class WriteFails(Slots):
    def write(self, decision: Any, out: Any) -> None:
        if decision.system.now:
            raise SystemExit(0)
        super().write(decision, out)


class WritesBeyond(Slots):
    def write(self, decision: Any, out: Any) -> None:
        out[99 if decision.system.now else 0] = True


class PositionIs(Slots):
    def __init__(self, slots: int, found: Any) -> None:
        super().__init__(slots)
        self.found = found

    def position(self, decision: Any, action: int) -> Any:
        return self.found if decision.system.now else action


class Pays(Reward):
    def __init__(self, act: Callable[[], Any]) -> None:
        self.act = act

    def take(self, system: Any) -> Any:
        return self.act() if system.now > 9 else 0.0


class Shaped(Encoder):
    def __init__(self, found: Any) -> None:
        self.found = found

    @property
    def shape(self) -> Any:
        return self.found() if callable(self.found) else self.found

    def bind(self, system: Any) -> Any:
        return lambda decision, out: None


class Acts(Mask):
    def __init__(self, found: Any) -> None:
        self.found = found

    @property
    def actions(self) -> Any:
        return self.found() if callable(self.found) else self.found

    def write(self, decision: Any, out: Any) -> None:
        out[0] = True


class Grows(Late):
    """A size that is another one later."""

    def __init__(self, before: Any, after: Any) -> None:
        self.before, self.after = before, after

    def __call__(self) -> Any:
        self.count += 1
        return self.before if self.count < 3 else self.after


class Samples(Episodes):
    def __init__(self, act: Callable[[], Any]) -> None:
        self.act = act
        self.late = Late()

    def sample(self, rng: Any) -> Any:
        return self.act() if self.late.third() else Scenario(LOG)


def stop(*_: Any) -> Any:
    raise SystemExit(3)


def broken(*_: Any) -> Any:
    return 1 / 0


HERE = r"\(.*test_parts_that_go_wrong\.py:\d+\)"
CASES: dict[str, tuple[dict[str, Any], str]] = {
    "encode raises": (
        {"encoder": EncodeFails(4, broken)},
        f"at t=9 s, in EncodeFails: ZeroDivisionError.*{HERE}",
    ),
    "encode exits": ({"encoder": EncodeFails(4, stop)}, f"at t=9 s.*SystemExit: 3 {HERE}"),
    "encode of another shape": (
        {"encoder": EncodeFails(4, lambda out: np.copyto(out, np.ones(99)))},
        "at t=9 s.*ValueError",
    ),
    "encode nan": (
        {"encoder": EncodeFails(4, lambda out: out.fill(np.nan))},
        "sees what is no finite number at .*t=9 s",
    ),
    "bind raises": ({"encoder": Binds(4, broken)}, f"at t=0 s, in Binds.*ZeroDivisionError.*{HERE}"),
    "bind nothing": ({"encoder": Binds(4, lambda: None)}, "needs to return a function, found None"),
    "mask raises": ({"mask": WriteFails(4)}, f"at t=9 s, in WriteFails.*: SystemExit: 0 {HERE}"),
    "mask beyond": ({"mask": WritesBeyond(4)}, f"at t=9 s, in WritesBeyond.*: IndexError.*{HERE}"),
    "position text": ({"mask": PositionIs(4, "x")}, "takes action 0 for option 'x' of .*t=9 s"),
    "position nothing": ({"mask": PositionIs(4, None)}, "takes action 0 for option None of .*t=9 s"),
    "position beyond": ({"mask": PositionIs(4, 77)}, "takes action 0 for option 77 of .*t=9 s"),
    "reward raises": ({"reward": Pays(broken)}, f"at t=18 s, in Pays: ZeroDivisionError.*{HERE}"),
    "reward exits": ({"reward": Pays(stop)}, f"at t=18 s, in Pays: SystemExit: 3 {HERE}"),
    "reward nothing": ({"reward": Pays(lambda: None)}, "pays None at t=18 s"),
    "reward text": ({"reward": Pays(lambda: "much")}, "pays much at t=18 s"),
    "reward array": ({"reward": Pays(lambda: np.ones(2))}, r"pays \[1\. 1\.\] at t=18 s"),
    "episodes raise": (
        {"episodes": Samples(broken)},
        f"the episodes Samples, in Samples: ZeroDivisionError.*{HERE}",
    ),
    "episodes exit": ({"episodes": Samples(stop)}, f"the episodes Samples, in Samples: SystemExit: 3 {HERE}"),
    "episodes nothing": (
        {"episodes": Samples(lambda: None)},
        "a Scenario is needed of each episode, found None",
    ),
    "episodes semantics": (
        {"episodes": Samples(lambda: Scenario(LOG, Setup(event_order="mine")))},
        "event_order needs an EventOrder",
    ),
    "episodes begin": (
        {"episodes": Samples(lambda: Scenario(LOG, learn_from="noon"))},
        "learn_from needs a whole number",
    ),
    "shape raises": (
        {"encoder": Shaped(broken)},
        f"the encoder Shaped, in Shaped: ZeroDivisionError.*{HERE}",
    ),
    "shape exits": ({"encoder": Shaped(stop)}, f"the encoder Shaped, in Shaped: SystemExit: 3 {HERE}"),
    "shape zero": ({"encoder": Shaped((0, 3))}, r"shape needs whole numbers of at least 1.*found \(0, 3\)"),
    "shape negative": ({"encoder": Shaped((-1,))}, r"shape needs .*found \(-1,\)"),
    "shape text": ({"encoder": Shaped("big")}, "shape needs .*found 'big'"),
    "shape of text": ({"encoder": Shaped(("4", 4))}, "shape needs .*found "),
    "shape nothing": ({"encoder": Shaped(())}, r"shape needs .*found \(\)"),
    "shape huge": ({"encoder": Shaped((10**9, 10**9))}, "shape needs .*100000000 in all at most"),
    "shape changes": (
        {"encoder": Shaped(Grows((4,), (5,)))},
        r"shape must stay as it is, was \(4,\), is \(5,\)",
    ),
    "actions raise": ({"mask": Acts(broken)}, f"the mask Acts, in Acts: ZeroDivisionError.*{HERE}"),
    "actions zero": ({"mask": Acts(0)}, "actions needs a whole number from 1.*found 0"),
    "actions negative": ({"mask": Acts(-4)}, "actions needs .*found -4"),
    "actions text": ({"mask": Acts("4")}, "actions needs .*found '4'"),
    "actions huge": ({"mask": Acts(10**12)}, "actions needs .*found 10{12}"),
    "actions change": ({"mask": Acts(Grows(4, 9))}, "actions must stay as it is, was 4, is 9"),
}


def play(**parts: Any) -> None:
    env = SchedulingVecEnv(SchedulingEnv(policy=Pipeline(External()), **parts), 1)
    env.reset()
    for _ in range(40):
        env.step(np.zeros(1, dtype=np.int64))


@pytest.mark.parametrize("case", CASES)
def test_one_line_with_part_and_time(case: str) -> None:
    parts, expected = CASES[case]
    given = {"episodes": Fixed(LOG), "encoder": QueueWindow(4), "mask": Slots(4), "reward": MinusMeanWait()}
    with pytest.raises(HpcsimkitError, match=expected) as caught:
        play(**(given | parts))
    assert "\n" not in str(caught.value)
