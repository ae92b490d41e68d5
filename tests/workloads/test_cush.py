"""CuSH's job sets: the file of reference sets, and the generator against what is known of its distribution."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from hpcsimkit.errors import UsageError, WorkloadError
from hpcsimkit.jobs.job import Request
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.workloads import CUSH_KINDS, CushJobSets, read_job_sets

SETS = 2000
TOTALS = {"sierra": (256, 512), "summit": (256, 768)}


def message(call: Callable[[], object]) -> str:
    with pytest.raises((WorkloadError, UsageError)) as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text
    return text


def together(sets: list[Workload], column: str) -> np.ndarray:
    return np.concatenate([w.column(column) for w in sets])


def shares(values: np.ndarray, *borders: float) -> list[float]:
    """Shares of the values up to each border, and beyond the last."""
    return np.diff([0, *(np.mean(values <= border) for border in borders), 1]).tolist()


@pytest.fixture(scope="module")
def sierra() -> list[Workload]:
    return CushJobSets().generate(np.random.default_rng(20), SETS)


# --- the generator -----------------------------------------------------------------------------------------


def test_a_job_set(sierra: list[Workload]) -> None:
    w = sierra[3]
    assert (len(w), w.name) == (20, "cush-sierra-3")
    assert w.resources == ("cpus", "gpus")
    assert w.labels == {"kind": CUSH_KINDS} and CUSH_KINDS == ("dgemm", "daxpy")
    assert w.id.tolist() == list(range(20))
    assert w.run_time.tolist() == w.requested_time.tolist()
    assert set(w.nodes.tolist()) == {1} and set(w.column("spread").tolist()) == {1}
    job = w.jobs[0]
    assert job.request == Request(
        ("cpus", "gpus"), (int(w.column("cpus")[0]), int(w.column("gpus")[0])), spread=True
    )


def test_ranges(sierra: list[Workload]) -> None:
    for column, low, high in (
        ("submit_time", 0, 9),
        ("run_time", 1, 20),
        ("cpus", 1, 256),
        ("gpus", 1, 512),
        ("kind", 0, 1),
    ):
        values = together(sierra, column)
        assert (values.min(), values.max()) == (low, high), column


def test_c1_statistics(sierra: list[Workload]) -> None:
    """The figures of the fitted population; 40 000 jobs, so a share's standard error is at most 0.0025."""
    arrival, t, kind = (together(sierra, name) for name in ("submit_time", "run_time", "kind"))
    assert np.bincount(arrival) / len(arrival) == pytest.approx(np.full(10, 0.1), abs=0.007)
    assert t.mean() == pytest.approx(7.0, abs=0.1)
    assert (1 / t).mean() == pytest.approx(0.35, abs=0.01)
    assert shares(t, 5, 10, 15) == pytest.approx([0.50, 0.25, 0.13, 0.12], abs=0.012)
    assert np.mean(t <= 10) == pytest.approx(0.75, abs=0.008)
    assert kind.mean() == pytest.approx(0.5, abs=0.01)
    fractions = np.array(
        [together(sierra, name) / total for name, total in zip(("cpus", "gpus"), (256, 512), strict=True)]
    )
    assert fractions.mean(axis=1) == pytest.approx([0.26, 0.26], abs=0.008)
    size = fractions.max(axis=0)
    assert shares(size, 0.25, 0.5, 0.75) == pytest.approx([0.37, 0.29, 0.18, 0.16], abs=0.012)
    penalty = np.where(kind == 1, 2.0 * t * size, 0)  # depth-first on Sierra: only daxpy suffers
    classes = np.digitize(size, [0.25, 0.5, 0.75], right=True)
    means = [penalty[classes == number].mean() for number in range(4)]
    assert means == pytest.approx([1.1, 2.5, 4.4, 6.2], abs=0.2)


def test_c0_is_literal() -> None:
    sets = CushJobSets(distribution="C0").generate(np.random.default_rng(4), SETS)
    t = together(sets, "run_time")
    assert np.bincount(t)[1:] / len(t) == pytest.approx([0.075] * 10 + [0.025] * 10, abs=0.006)
    cpus, gpus = together(sets, "cpus") / 256, together(sets, "gpus") / 512
    most, least = np.maximum(cpus, gpus), np.minimum(cpus, gpus)
    assert least.max() <= 0.07 + 1 / 256
    # E[max(u^1.08, 0.07 v)]: u^1.08 has the mean 1 / 2.08, and 0.07 v is seldom more (adds about 0.001)
    assert most.mean() == pytest.approx(1 / 2.08 + 0.003, abs=0.006)


def test_other_clusters() -> None:
    sets = CushJobSets(system="summit", nodes=16, jobs=7, window=3).generate(np.random.default_rng(1), 200)
    assert len(sets) == 200 and {len(w) for w in sets} == {7}
    assert together(sets, "submit_time").max() == 2
    assert together(sets, "cpus").max() <= 32 and 90 < together(sets, "gpus").max() <= 96


def test_both_systems_draw_the_same_jobs() -> None:
    sierra, summit = (
        CushJobSets(system=name).generate(np.random.default_rng(8), 3) for name in ("sierra", "summit")
    )
    for a, b in zip(sierra, summit, strict=True):
        for column in ("submit_time", "run_time", "kind", "cpus"):
            assert a.column(column).tolist() == b.column(column).tolist()
        ratio = (b.column("gpus") - 1) / 768 - a.column("gpus") / 512
        assert (np.abs(ratio) <= 1 / 512 + 1 / 768).all()


def test_one_by_one_or_at_once() -> None:
    rng = np.random.default_rng(5)
    one_by_one = [CushJobSets().generate(rng)[0].hash for _ in range(3)]
    assert [w.hash for w in CushJobSets().generate(np.random.default_rng(5), 3)] == one_by_one
    assert len(set(one_by_one)) == 3


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"system": "frontier"}, "CushJobSets: system must be one of sierra, summit, found 'frontier'"),
        ({"distribution": "C2"}, "CushJobSets: distribution must be one of C1, C0, found 'C2'"),
        ({"nodes": 0}, "CushJobSets: nodes must be 1 or more, found 0"),
        ({"jobs": -1}, "CushJobSets: jobs must be 1 or more, found -1"),
        ({"window": 0}, "CushJobSets: window must be 1 or more, found 0"),
    ],
)
def test_parameters_out_of_range_are_refused(changes: dict[str, object], found: str) -> None:
    sets = CushJobSets(**changes)  # type: ignore[arg-type]
    assert message(lambda: sets.generate(np.random.default_rng(0))) == found


def test_no_job_set_is_refused() -> None:
    assert message(lambda: CushJobSets().generate(np.random.default_rng(0), 0)).endswith(
        "jobsets must be 1 or more, found 0"
    )


# --- files -------------------------------------------------------------------------------------------------

HEADER = "jobset,job,arrival,t,cpus,gpus,type(0=dgemm 1=daxpy),st_DF"


def test_a_file_of_job_sets(tmp_path: Path) -> None:
    path = tmp_path / "sets.csv"
    path.write_text(f"{HEADER}\n1,0,3,16,50,478,0,16\n0,0,0,4,132,146,0,4\n0,1,0,6,156,100,1,9\n")
    first, second = read_job_sets(path)
    assert (first.name, second.name, len(first), len(second)) == ("sets-0", "sets-1", 2, 1)
    assert {name: first.column(name).tolist() for name in first.columns} == {
        "id": [0, 1], "submit_time": [0, 0], "run_time": [4, 6], "requested_time": [4, 6], "nodes": [1, 1],
        "kind": [0, 1], "spread": [1, 1], "cpus": [132, 156], "gpus": [146, 100],
    }  # fmt: skip
    assert first.label("kind", 1) == "daxpy"


@pytest.mark.parametrize(
    ("row", "found"),
    [
        ("0,1,0,0,1,1,0,0", "t: at least 1 step needed, found 0"),
        ("0,1,0,5,1,1,2,0", "type(0=dgemm 1=daxpy): 0 (dgemm) or 1 (daxpy) needed, found 2"),
        ("0,1,0,5,-1,1,1,0", "cpus: a whole number from 0 to 10^9 needed, found '-1'"),
        ("0,1,0,5,1,1", "8 cells needed, found 6 cells"),
    ],
)
def test_files_that_are_malformed(tmp_path: Path, row: str, found: str) -> None:
    path = tmp_path / "sets.csv"
    path.write_text(f"{HEADER}\n0,0,0,4,132,146,0,4\n{row}\n")
    assert message(lambda: read_job_sets(path)) == f"{path}:3: {found}"


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "sets.csv"
    path.write_text("jobset,job,arrival,t,cpus,gpus\n")
    assert message(lambda: read_job_sets(path)).startswith(
        f"{path}:1: a file of job sets needs the column type"
    )
    path.write_text(f"{HEADER}\n")
    assert message(lambda: read_job_sets(path)) == f"{path}: no job in it, only a header line"


@pytest.mark.parametrize("system", TOTALS)
def test_reference_sets(shared: Path, system: str) -> None:
    sets = read_job_sets(shared / "refs" / "cush" / f"cush_jobsets_{system}.csv")
    assert [len(w) for w in sets] == [20] * 10
    first = sets[0]
    assert first.column("cpus")[:4].tolist() == [132, 50, 156, 61]
    assert first.run_time[:4].tolist() == [4, 16, 6, 5]
    cpus, gpus = TOTALS[system]
    assert together(sets, "cpus").max() <= cpus and together(sets, "gpus").max() <= gpus
    assert together(sets, "submit_time").max() == 9
