"""Tasks that behave well or badly, for tests of engines."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hpcsimkit.engine.lock import writing
from hpcsimkit.engine.task import Task, Tell
from hpcsimkit.errors import UsageError
from tests.waiting import PATIENCE, until

__all__ = ["Step", "order"]


@dataclass(frozen=True)
class Step(Task):
    """Writes its process; works, or does something else, such as to die or to wait for others."""

    name: str = "x"  # type: ignore[misc]
    after: tuple[str, ...] = ()
    does: str = "work"
    size: int = 3  # type: ignore[misc]
    kind = "step"

    @property
    def requires(self) -> Collection[str]:
        return self.after

    def inputs(self) -> Any:
        return self.name

    def run(self, folder: Path, tell: Tell) -> Any:
        with (folder.parent / "order.txt").open("a") as file:
            file.write(f"{self.name}\n")
        (folder / "pid").write_text(str(os.getpid()))
        getattr(self, f"_{self.does.replace(' ', '_')}")(folder, tell)
        for number in range(1, self.size + 1):
            tell(number)
        return {"pid": os.getpid()}

    def _work(self, folder: Path, tell: Tell) -> None:
        pass

    def _die(self, folder: Path, tell: Tell) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def _die_once(self, folder: Path, tell: Tell) -> None:
        if not (folder / "died").exists():
            (folder / "died").touch()
            os.kill(os.getpid(), signal.SIGKILL)

    def _hang(self, folder: Path, tell: Tell) -> None:
        tell(1)
        for _ in range(100 * PATIENCE):
            time.sleep(0.01)
        (folder / "slept").touch()

    def _halt(self, folder: Path, tell: Tell) -> None:
        tell(1)
        os.kill(os.getpid(), signal.SIGSTOP)

    def _wait(self, folder: Path, tell: Tell) -> None:
        until((folder.parent / "x" / "seen").exists)

    def _answer_late(self, folder: Path, tell: Tell) -> None:
        until(lambda: all((folder.parent / name / "outcome.json").exists() for name in "ab"))

    def _fill_the_disk(self, folder: Path, tell: Tell) -> None:
        with writing(folder):
            Path("/dev/full").write_text("x")

    def _fail_later(self, folder: Path, tell: Tell) -> None:
        until((folder.parent / "sleeps" / "pid").exists)  # a task that waits for a worker has nothing to end
        self._fail(folder, tell)

    def _fail(self, folder: Path, tell: Tell) -> None:
        raise ValueError("wrong")

    def _refuse(self, folder: Path, tell: Tell) -> None:
        raise UsageError("not understood")


def order(place: Path) -> list[str]:
    """Names of the tasks in the order in which they have begun."""
    return (place / "order.txt").read_text().split()
