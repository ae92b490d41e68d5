"""Interruptions of a training by whoever started it from Python: what is kept, what is not waited for."""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from hpcsimkit.agents.networks.model_file import read_model
from hpcsimkit.agents.training.ppo import PPO
from hpcsimkit.agents.training.stopping import Stopping
from hpcsimkit.agents.training.trainer import CHECKPOINT
from tests.agents.test_trainers import SHORT, straight
from tests.agents.tiny_problem import env, told_by
from tests.forking import Forked
from tests.waiting import until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="sends signals")


def test_heard_once_and_then_not_waited_for() -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    for first in (signal.SIGINT, signal.SIGTERM):
        with Stopping() as stopping:
            assert not stopping.asked
            signal.raise_signal(first)
            assert stopping.asked
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_what_is_ignored_stays_so() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as of programs in the background
    try:
        with Stopping() as stopping:
            signal.raise_signal(signal.SIGINT)
        assert not stopping.asked
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_off_the_main_thread() -> None:
    told: list[str] = []
    thread = threading.Thread(target=lambda: told.extend(told_by(PPO(env(), SHORT, seed=3))))
    thread.start()
    thread.join()
    assert len(told) == 6
    # Python does not wait for the last instructions of a thread, in which MKL holds locks that are never released
    # in a process that is forked at this time.
    until(lambda: not Path(f"/proc/self/task/{thread.native_id}").exists())


def test_a_training_from_python_goes_on_where_it_was_interrupted(tmp_path: Path) -> None:
    """The signal comes in the middle of the third round, from outside: rounds begin when they are told to."""

    def slow() -> None:
        trainer = PPO(env(), SHORT, seed=3)
        play = trainer._play

        def told() -> Any:
            print("round", flush=True)
            sys.stdin.readline()
            return play()

        trainer._play = told  # type: ignore[method-assign]
        try:
            trainer.train(tmp_path)
        except KeyboardInterrupt:
            sys.exit(7)

    process = Forked(slow, tmp_path)
    for begun in (1, 2, 3):
        assert process.stdout.readline() == "round\n"
        if begun < 3:
            process.stdin.write("\n")
    process.send_signal(signal.SIGINT)
    process.stdin.close()
    process.communicate()
    assert process.returncode == 7
    assert read_model(tmp_path / CHECKPOINT)[1]["rounds"] == 3
    rest = told_by(PPO(env(), SHORT, seed=3), folder=tmp_path, resume=True)
    assert rest == straight()[3:]


def test_without_a_folder_nothing_is_waited_for() -> None:
    trainer = PPO(env(), SHORT, seed=3)
    learned = []
    trainer.learn = lambda batch: learned.append(signal.raise_signal(signal.SIGINT)) or {}  # type: ignore
    with pytest.raises(KeyboardInterrupt):
        trainer.train()
    assert learned == []
