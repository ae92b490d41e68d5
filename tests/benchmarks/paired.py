"""Whether this checkout is as fast as another one: runs of both in turn, in processor time.

    git worktree add ../before REVISION
    python -m tests.benchmarks.paired ../before              # about four minutes

Each case has one process for each checkout, which simulates the same workload whenever it is its turn; the
order changes from pair to pair. What else the machine does therefore slows both alike. Printed are the median of the
ratios (this checkout to the other) and its 95 % interval, from the order of the ratios: no distribution is
assumed. Logs are read from the folder named by HPCSIMKIT_SHARED (by default ../shared beside the repository).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from tests.benchmarks.__main__ import LOGS, TRACES

HERE = Path(__file__).parents[2]

WORKLOADS = {
    **{
        log: f"read_swf({str(TRACES / file)!r})" for log, file in LOGS.items()
    },
    "lublin": "default_workload(np.random.default_rng(1), jobs=5_000)",
}  # fmt: skip
"""Expressions of the workloads, of names that old checkouts have, too."""

CASES = [
    ("KTH-SP2", "fcfs+easy", "simpy", 1),
    ("KTH-SP2", "wfp3+easy", "simpy", 1),
    ("lublin", "fcfs", "simpy", 4),
    ("lublin", "fcfs+conservative", "simpy", 1),
    ("KTH-SP2", "fcfs+easy", "compiled", 30),
    ("KTH-SP2", "wfp3+easy", "compiled", 20),
    ("lublin", "fcfs", "compiled", 100),
    ("lublin", "fcfs+conservative", "compiled", 30),
]
"""Workload, policy, simulator, and number of simulations in a turn."""

CHILD = """
import json, sys, time
import numpy as np
from hpcsimkit import Simulation
from hpcsimkit.experiments.parts.registry import make
from hpcsimkit.workloads import default_workload, read_swf
workload = {workload}
workload = workload.fitting(workload.machine_size)
def simulate():
    return Simulation(workload, make({policy!r}), simulator={simulator!r}).run()
print(json.dumps(simulate().hash), flush=True)
for _ in sys.stdin:
    began = time.process_time()
    for _ in range({times}):
        simulate()
    print(json.dumps(time.process_time() - began), flush=True)
"""


class Checkout:
    """A process that simulates one case with the code of a checkout.

    Parameters
    ----------
    path : Path
        Its folder.
    program : str
        The program of the process.
    """

    def __init__(self, path: Path, program: str) -> None:
        environment = {**os.environ, "PYTHONPATH": str(path)}
        self._process = subprocess.Popen(
            [sys.executable, "-c", program],
            cwd=path,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.hash = self._read()

    def _read(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def turn(self) -> float:
        """Return the processor time of one turn [s]."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return float(self._read())

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def ratios(here: Path, other: Path, program: str, pairs: int) -> tuple[list[float], bool]:
    """Return the ratios of the times of two checkouts, and whether their schedules are equal."""
    both = Checkout(here, program), Checkout(other, program)
    equal = both[0].hash == both[1].hash
    found = []
    for pair in range(pairs):
        turns = [0.0, 0.0]
        for place in (0, 1) if pair % 2 else (1, 0):
            turns[place] = both[place].turn()
        found.append(turns[0] / turns[1])
    for each in both:
        each.close()
    return found, equal


def interval(values: list[float]) -> tuple[float, float, float]:
    """Return the median of some values, and the order statistics that hold that of all with 95 %.

    >>> interval([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])
    (4.0, 1.0, 7.0)
    """
    ordered, count = np.sort(values), len(values)
    # The number of values below the median of all is binomial: normal, without the last half step.
    below = max(int((count - 1.96 * count**0.5) / 2), 0)
    return float(np.median(ordered)), float(ordered[below]), float(ordered[count - 1 - below])


def main() -> None:
    """Compare this checkout with another one."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.paired", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("other", type=Path, help="folder of the other checkout")
    parser.add_argument("--pairs", type=int, default=31, help="pairs of turns of each case (default: 31)")
    options = parser.parse_args()
    if not (options.other / "hpcsimkit").is_dir() or options.pairs < 7:
        parser.error("a folder with hpcsimkit in it and at least 7 pairs are needed")
    for workload, policy, simulator, times in CASES:
        program = CHILD.format(workload=WORKLOADS[workload], policy=policy, simulator=simulator, times=times)
        found, equal = ratios(HERE, options.other.resolve(), program, options.pairs)
        median, low, high = interval(found)
        same = "equal schedules" if equal else "OTHER SCHEDULES"
        print(
            f"{workload:9s} {policy:18s} {simulator:9s} {median:.3f} ({low:.3f} to {high:.3f}) of the time; {same}",
            flush=True,
        )


if __name__ == "__main__":
    main()
