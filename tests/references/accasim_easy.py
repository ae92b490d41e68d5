"""Share of the starts of AccaSim's EASY that are those of EASY, on the workload `lublin_256`, and its speed.

    peers/bin/python tests/references/accasim_easy.py

in the environment of `schedules.py`. The starts of EASY are the column that pybatsim computed. Not run by the tests.
"""

from __future__ import annotations

import csv
import gzip
import time

import schedules
from accasim.base.scheduler_class import EASYBackfilling


def main() -> None:
    with gzip.open(schedules.FOLDER / "lublin_256.csv.gz", "rt", newline="") as file:
        expected = {int(row["job"]): int(row["fcfs+easy.kill"]) for row in csv.DictReader(file)}
    rows = schedules.read("lublin_256")
    for row in rows:
        row["run"] = min(row["run"], row["requested"])  # mode `kill`
    began = time.process_time()
    starts = schedules.accasim(rows, {"all": {"nodes": 256}}, EASYBackfilling)
    seconds = time.process_time() - began
    equal = sum(starts[job] == start for job, start in expected.items())
    print(f"{equal} of {len(rows)} starts are equal; {len(rows) / seconds:.0f} jobs/s")


if __name__ == "__main__":
    main()
