"""The report of a results folder: what it says, that it stands alone, and what it says of damaged folders."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpcsimkit.errors import UsageError, WorkloadError
from hpcsimkit.experiments.comparison.campaign import Campaign
from hpcsimkit.experiments.comparison.experiment import Experiment
from hpcsimkit.experiments.comparison.policy_run import write_tables
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.reservation import EASY
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.kernel.system import System
from hpcsimkit.reports import report
from hpcsimkit.reports.figures import inline_svg
from hpcsimkit.reports.gallery import draw_pictures
from hpcsimkit.reports.report import draw_overview, plot_results, write_report
from hpcsimkit.reports.saved_results import SavedResults
from hpcsimkit.results.metrics import METRICS, measure
from hpcsimkit.results.result import Result

POLICIES = ["fcfs", "fcfs+easy", "sjf+easy"]
VOID = {"meta", "path", "use", "br", "wbr", "link", "img"}


class Page(HTMLParser):
    """Tags opened and not closed, identifiers, texts by row of tables."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.identifiers: list[str] = []
        self.references: list[str] = []
        self.rows: list[list[tuple[str, dict[str, str | None]]]] = []
        self._cell: dict[str, str | None] | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag not in VOID:
            self.open.append(tag)
        self.identifiers += [values["id"]] if values.get("id") else []
        self.references += [values["href"]] if values.get("href") else []
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self._cell = values
            self.rows[-1].append(("", values))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        assert self.open.pop() == tag, self.getpos()
        if tag in ("td", "th"):
            self._cell = None

    def handle_data(self, data: str) -> None:
        if self._cell is not None:
            text, values = self.rows[-1][-1]
            self.rows[-1][-1] = (text + data.strip(), values)

    def row(self, first: str) -> list[tuple[str, dict[str, str | None]]]:
        """The first row that begins so."""
        return next(row for row in self.rows if row and row[0][0] == first)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results folder, not to be changed."""
    place = tmp_path_factory.mktemp("results") / "small"
    experiment = Experiment(jobs=300, policies=POLICIES, report=False)
    Campaign(experiment, experiment.workload(), place, command=["python", "-m", "hpcsimkit.run"]).run()
    return place


@pytest.fixture(scope="module")
def written(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of the folder as it is, not to be changed."""
    return write_report(Path(shutil.copytree(made, tmp_path_factory.mktemp("written") / "results")))


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(made, tmp_path / "results"))


def change(file: Path, edit: Callable[[Any], None]) -> None:
    """Edit a JSON file."""
    value = json.loads(file.read_text())
    edit(value)
    file.write_text(json.dumps(value))


# --- the page ------------------------------------------------------------------------------------------


def test_page_stands_alone(written: Path) -> None:
    text = written.read_text(encoding="utf-8")
    assert not re.search(r"https?:|src=|@import|<link|url\((?!#)", text)
    scripts = ['<script type="application/json" id="zoom-data">', "<script>"]
    assert re.findall("<script[^>]*>", text) == scripts
    assert len(text) < 1_500_000
    assert "prefers-color-scheme: dark" in text
    assert "@media print" in text


def test_page_is_well_formed(written: Path) -> None:
    page = Page(written.read_text(encoding="utf-8"))
    assert page.open == []
    assert len(set(page.identifiers)) == len(page.identifiers)
    assert {reference.removeprefix("#") for reference in page.references} <= set(page.identifiers)


def test_page_shows_every_picture_and_policy(written: Path) -> None:
    text = written.read_text(encoding="utf-8")
    for picture in draw_pictures(SavedResults.read(written.parent).results):
        assert f'<section id="{picture.name}"' in text
        assert f'aria-label="{picture.title}"' in text
    for policy in POLICIES:
        assert text.count(f">{policy}<") >= 8


def test_colours_are_defined_for_light_and_dark(written: Path) -> None:
    text = written.read_text(encoding="utf-8")
    light, dark = text.split("prefers-color-scheme: dark", 1)
    used = set(re.findall(r"var\(--([a-z0-9-]+)\)", text)) - {"font", "width"}
    for name in used:
        assert f" --{name}: " in light, name
        assert f" --{name}: " in dark, name


@pytest.mark.usefixtures("blank_pictures")
def test_metrics_are_those_of_the_file(folder: Path) -> None:
    names = list(json.loads((folder / "metrics.json").read_text())["fcfs"])

    def set_values(metrics: dict[str, dict[str, float | None]]) -> None:
        for policy, wait, share, bad in (
            ("fcfs", 12345.6, 0.801, 7.0), ("fcfs+easy", 90.5, 0.9, 7.0), ("sjf+easy", 90.5, 0.75, None),
        ):  # fmt: skip
            metrics[policy] |= {"mean_wait_time": wait, "utilisation": share, "max_wait_time": bad}

    change(folder / "metrics.json", set_values)
    page = Page(write_report(folder).read_text(encoding="utf-8"))
    header = [text for text, _ in page.rows[0]]
    column = {
        name: place for place, text in enumerate(header) for name in names if name.replace("_", " ") in text
    }
    shown = {policy: page.row(policy) for policy in POLICIES}
    mean = [shown[policy][column["mean_wait_time"]] for policy in POLICIES]
    assert [text for text, _ in mean] == ["12,350", "90.50", "90.50"]
    assert [values.get("class") for _, values in mean] == [None, "best", "best"]
    assert mean[0][1]["title"] == "12,345.6 s = 3.43 h"
    share = [shown[policy][column["utilisation"]] for policy in POLICIES]
    assert [text for text, _ in share] == ["0.8010", "0.9000", "0.7500"]
    assert [values.get("class") for _, values in share] == [None, "best", None]
    equal = [shown[policy][column["max_wait_time"]] for policy in POLICIES]
    assert [(text, values.get("class")) for text, values in equal] == [("7", None), ("7", None), ("-", None)]


def test_headings_carry_direction_unit_and_formula(written: Path) -> None:
    page = Page(written.read_text(encoding="utf-8"))
    headings = {text: values.get("title") for text, values in page.rows[0]}
    assert headings["mean wait time\xa0↓s"] == (
        f"{METRICS['mean_wait_time'].summary}: {METRICS['mean_wait_time'].formula}"
    )
    assert "utilisation\xa0↑" in headings


@pytest.mark.usefixtures("blank_pictures")
def test_provenance_is_shown(folder: Path) -> None:
    def add(provenance: dict[str, Any]) -> None:
        provenance["workload"]["skipped"] = {"no <processors>": 1234}
        provenance["options"] |= {"warmup": 7200.0}

    change(folder / "provenance.json", add)
    text = write_report(folder).read_text(encoding="utf-8")
    provenance = json.loads((folder / "provenance.json").read_text())
    for shown in (
        "python -m hpcsimkit.run", provenance["version"], provenance["workload"]["hash"], "warmup = 7200.0",
        "<dt>1,234</dt><dd>no &lt;processors&gt;</dd>", "policies = [&#34;fcfs&#34;",
        "leave out the first 2 h and the last 0 s", provenance["policies"]["fcfs"]["schedule_sha256"],
    ):  # fmt: skip
        assert shown in text, shown


def test_no_skipped_job_is_said_too(written: Path) -> None:
    assert "<dt>0</dt><dd>no job was skipped</dd>" in written.read_text(encoding="utf-8")


def test_names_are_never_markup(folder: Path) -> None:
    name = "<b>my:Policy</b>&"

    def rename(value: dict[str, Any]) -> None:
        table = value.get("policies", value)
        renamed = {name if policy == "fcfs" else policy: about for policy, about in table.items()}
        table.clear()
        table.update(renamed)

    change(folder / "provenance.json", rename)
    change(folder / "metrics.json", rename)
    text = write_report(folder).read_text(encoding="utf-8")
    assert "<b>my" not in text
    assert "&lt;b&gt;my:Policy&lt;/b&gt;&amp;" in text


def test_same_folder_same_page(folder: Path, written: Path) -> None:
    shutil.copytree(written.parent, folder, dirs_exist_ok=True)
    page = write_report(folder)
    assert page == folder / "report.html"
    assert page.read_bytes() == written.read_bytes()


# --- machines ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def on_machines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results folder of machines, not to be changed."""
    place = tmp_path_factory.mktemp("machines")
    rng = np.random.default_rng(5)
    lines = ["JobName,ReqMem,ReqCPUs,ReqGPUs,ReqDuration,ActualDuration,Submit"]
    for job in range(200):
        gpus = int(rng.random() < 0.2)
        cpus, seconds = int(rng.integers(1, 5)), int(rng.integers(1, 900))
        lines.append(f"job{job},1000000,{cpus},{gpus},{2 * seconds},{seconds},{40 * job}")
    (place / "day.csv").write_text("\n".join(lines))
    machines = [
        {"count": 2, "name": "big", "cpus": 8, "memory": "64 GB"},
        {"name": "gpu", "cpus": 4, "gpus": 2, "memory": "32 GB"},
    ]
    experiment = Experiment(
        log=str(place / "day.csv"), machines=machines, policies=["fcfs", "fcfs+easy"], report=False
    )
    Campaign(experiment, experiment.workload(), place / "results", command=["x"]).run()
    return place / "results"


def test_page_of_machines(on_machines: Path) -> None:
    text = write_report(on_machines).read_text(encoding="utf-8")
    page = Page(text)
    assert page.open == []
    assert "<b>3</b><span>machines: 20 cpus, 2 gpus, 160 GB memory</span>" in text
    assert re.search(r"<b>[\d.]+</b><span>offered load of (CPUs|GPUs|memory)</span>", text)
    headings = [heading.split("\xa0")[0] for heading, _ in page.rows[0]]
    assert headings[-4:] == ["utilisation", "gpus utilisation", "gpu fragmentation", "makespan"]
    assert "mean locality penalty" not in text  # there is no locality model
    assert "big1" in text
    for heading in ("By use of GPUs", "GPUs busy [%]", "Memory busy [%]"):
        assert heading in text


@pytest.mark.usefixtures("blank_pictures")
def test_all_columns_fit(on_machines: Path) -> None:
    """With GPUs there are nine columns: names of policies wrap beside them, headings and numbers do not."""
    page = write_report(on_machines).read_text()
    summary, everything, *_ = re.findall(r'<table class="numbers">(.*?)</table>', page, re.DOTALL)
    assert summary.count("<th title=") == 9
    assert summary.count('<th scope="row" class="name">') == everything.count('<th class="name" title=') > 1
    assert re.search(r"table\.numbers \.name {[^}]*white-space: normal; overflow-wrap: anywhere", page)


@pytest.mark.usefixtures("blank_pictures")
def test_headings_of_many_columns_stand_upright(written: Path, tmp_path: Path) -> None:
    assert "numbers many" not in written.read_text()
    names = ["fcfs", "sjf", "saf", "ljf", "laf", "sqf", "srf", "lcfs"]
    experiment = Experiment(jobs=30, policies=names, report=False)
    Campaign(experiment, experiment.workload(), tmp_path / "out").run()
    assert '<table class="numbers many">' in write_report(tmp_path / "out").read_text()


@pytest.mark.usefixtures("blank_pictures")
def test_cards_break_long_names_between_their_parts_only(tmp_path: Path) -> None:
    """A part that may break anywhere would not widen its card, which breaks numbers."""
    experiment = Experiment(
        jobs=1200, policies=["fcfs", "bounded(bound=294700,scale=4.669)+easy"], report=False
    )
    Campaign(experiment, experiment.workload(), tmp_path / "out").run()
    page = write_report(tmp_path / "out").read_text()
    parts = "bounded(<wbr>bound=294700,<wbr>scale=4.669)+<wbr>easy"
    assert page.count(f'<li class="long"><b>{parts}</b>') == 2
    assert "<li><b>1,200</b>" in page
    assert re.search(r"\.tiles b {[^}]*overflow-wrap: break-word", page)


def test_page_of_nodes_does_not_speak_of_machines(written: Path) -> None:
    text = written.read_text(encoding="utf-8")
    assert "fragmentation" not in text
    assert "cpus" not in text
    assert "<span>nodes</span>" in text


def test_metrics_of_machines_come_back(on_machines: Path) -> None:
    saved = SavedResults.read(on_machines)
    names = ("cpus_utilisation", "gpus_utilisation", "memory_utilisation", "gpu_fragmentation", "mean_ntat")
    for policy, result in saved.results.items():
        again = measure(result, names=names)
        assert again == {name: saved.metrics[policy][name] for name in names}


# --- reading a folder ----------------------------------------------------------------------------------


def test_results_come_back(folder: Path) -> None:
    experiment = Experiment(jobs=300, policies=POLICIES)
    workload = experiment.workload()
    saved = SavedResults.read(folder)
    assert list(saved.results) == POLICIES
    result = Simulation(workload, Pipeline(backfiller=EASY())).run()
    read = saved.results["fcfs+easy"]
    for column in ("submit_time", "start_time", "end_time", "mode", "killed"):
        assert (getattr(read, column) == getattr(result, column)).all(), column
    assert (read.workload.requested_time == workload.requested_time).all()
    metrics = {name: None if np.isnan(value) else value for name, value in measure(read).items()}
    assert metrics == saved.metrics["fcfs+easy"]


class RejectsOdd(Policy):
    """Refuses every other job, and starts the others when they fit."""

    def schedule(self, system: System) -> None:
        for job in system.queue:
            if job.id % 2:
                system.reject(job)
            elif system.fits(job):
                system.start(job)


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_rejected_jobs_and_users_come_back(folder: Path, ending: str) -> None:
    columns = {
        "submit_time": [0, 1, 2, 3],
        "run_time": [9, 9, 9, 9],
        "nodes": [3, 2, 1, 4],
        "user": [5, 5, 6, -1],
    }
    workload = Workload(columns, machine_size=256)
    result = Simulation(workload, RejectsOdd(), walltime="kill").run()
    write_tables(result.to_arrow(), folder / "jobs", "fcfs")
    (folder / "jobs" / f"fcfs.{'csv' if ending == 'parquet' else 'parquet'}").unlink()
    read = SavedResults.read(folder).results["fcfs"]
    assert read.start_time.tolist() == [-1, 1, -1, 3]
    assert read.finished.tolist() == [False, True, False, True]
    assert read.mode.tolist() == result.mode.tolist()
    assert read.workload.user.tolist() == [5, 5, 6, -1]


def test_page_from_csv_is_the_page_from_parquet(folder: Path, written: Path) -> None:
    page = written.read_bytes()
    for file in (folder / "jobs").glob("*.parquet"):
        file.unlink()
    assert write_report(folder).read_bytes() == page


def _no_provenance(folder: Path) -> None:
    (folder / "provenance.json").unlink()


def _broken_json(folder: Path) -> None:
    (folder / "metrics.json").write_text('{"fcfs": ')


def _list_json(folder: Path) -> None:
    (folder / "provenance.json").write_text("[]")


def _no_machine(folder: Path) -> None:
    change(folder / "provenance.json", lambda value: value["workload"].pop("nodes"))


def _no_policy(folder: Path) -> None:
    change(folder / "provenance.json", lambda value: value["policies"].clear())


def _other_policies(folder: Path) -> None:
    change(folder / "metrics.json", lambda value: value.pop("fcfs"))


def _cut_parquet(folder: Path) -> None:
    file = folder / "jobs" / "fcfs.parquet"
    file.write_bytes(file.read_bytes()[:1000])


def _no_text_parquet(folder: Path) -> None:
    file = folder / "jobs" / "fcfs.parquet"
    file.write_bytes(file.read_bytes().replace(b"submit_time", b"submit_\xff\xfe\xff\xfe"))


def _long_name(folder: Path) -> None:
    change(folder / "provenance.json", lambda value: value["policies"]["fcfs"].update(file="f" * 300))


def _no_table(folder: Path) -> None:
    for ending in ("parquet", "csv"):
        (folder / "jobs" / f"sjf+easy.{ending}").unlink()


def _edit_csv(folder: Path, old: str, new: str) -> None:
    (folder / "jobs" / "fcfs.parquet").unlink()
    file = folder / "jobs" / "fcfs.csv"
    file.write_text(file.read_text().replace(old, new))


def _no_column(folder: Path) -> None:
    _edit_csv(folder, "requested_time", "something")


def _unknown_mode(folder: Path) -> None:
    _edit_csv(folder, "ready", "steady")


def _words(folder: Path) -> None:
    _edit_csv(folder, "\n1,", "\none,")


def _empty_csv(folder: Path) -> None:
    (folder / "jobs" / "fcfs.parquet").unlink()
    (folder / "jobs" / "fcfs.csv").write_text("")


def _no_experiment(folder: Path) -> None:
    (folder / "experiment.toml").unlink()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_no_provenance, r"results: a results folder is needed, found one without provenance\.json$"),
        (_broken_json, r"metrics\.json: not JSON: Expecting value: line 1"),
        (_list_json, r"provenance\.json: a JSON object is needed, found list$"),
        (
            _no_machine,
            r"results: provenance\.json and metrics\.json do not fit together: KeyError\('nodes'\)$",
        ),
        (_no_policy, r"results: at least one policy is needed, found none in provenance\.json$"),
        (
            _other_policies,
            r"results: provenance\.json and metrics\.json do not fit together: KeyError\('fcfs'\)$",
        ),
        (_cut_parquet, r"fcfs\.parquet: a table of jobs is needed, cannot be read: "),
        (_no_text_parquet, r"fcfs\.parquet: a table of jobs is needed, cannot be read: 'utf-8' codec"),
        (_long_name, r"f{300}\.parquet: no such file, and no \.csv in its place$"),
        (_no_table, r"sjf\+easy\.parquet: no such file, and no \.csv in its place$"),
        (_no_column, r"fcfs\.csv: column 'requested_time' is needed, found job_id, submit_time, "),
        (_unknown_mode, r"fcfs\.csv: not a table of jobs: modes are none, ready, .*, found steady$"),
        (_words, r"fcfs\.csv: not a table of jobs: "),
        (_empty_csv, r"fcfs\.csv: a table of jobs is needed, cannot be read: "),
        (_no_experiment, r"experiment\.toml: no such file$"),
    ],
)
def test_damage_is_named_in_one_line(damage: Callable[[Path], None], message: str, folder: Path) -> None:
    damage(folder)
    with pytest.raises(UsageError, match=message) as caught:
        write_report(folder)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(str(folder))
    assert not (folder / "report.html").exists()


@pytest.mark.parametrize(("name", "found"), [("missing", "nothing there"), ("file", "a file")])
def test_not_a_folder(name: str, found: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for use in (write_report, plot_results, lambda folder: draw_overview(folder, tmp_path / "x.png")):
        with pytest.raises(UsageError, match=f"{name}: a results folder is needed, found {found}$"):
            use(tmp_path / name)


# --- other files ---------------------------------------------------------------------------------------


def test_plot_results_writes_pictures_and_page(folder: Path, written: Path) -> None:
    files = plot_results(folder)
    assert all(file.is_file() for file in files)
    assert files[-1] == folder / "report.html"
    names = {picture.name for picture in draw_pictures(SavedResults.read(folder).results)}
    drawn = {file.name for file in (folder / "pictures").iterdir()}
    assert drawn == {f"{name}.{kind}" for name in names for kind in ("png", "svg")}
    for file in (folder / "pictures").glob("*.png"):
        assert file.read_bytes().startswith(b"\x89PNG")
    assert files[-1].read_bytes() == written.read_bytes()


def test_plot_results_says_what_is_in_the_way(folder: Path) -> None:
    (folder / "pictures").write_text("x")
    with pytest.raises(WorkloadError, match=r"pictures: cannot be written: File exists"):
        plot_results(folder)


def test_overview(folder: Path, tmp_path: Path) -> None:
    from PIL import Image

    path = draw_overview(folder, tmp_path / "overview.png")
    width, height = Image.open(path).size
    assert width > 2 * height
    assert width >= 1800
    with pytest.raises(UsageError, match="ending"):
        draw_overview(folder, tmp_path / "overview.gif")


@pytest.mark.slow
def test_page_of_a_large_log_stays_small() -> None:
    rng = np.random.default_rng(1)
    jobs, size = 200_000, 4_000
    submit = np.cumsum(rng.integers(0, 600, jobs))
    columns = {
        "submit_time": submit, "run_time": rng.integers(0, 90_000, jobs), "nodes": rng.integers(1, 5, jobs),
        "user": rng.integers(0, 3_000, jobs),
    }  # fmt: skip
    workload = Workload(columns, machine_size=size)
    results = {}
    for policy in range(8):
        start = submit + rng.integers(0, 10_000 * (policy + 1), jobs)
        end = start + workload.run_time
        mode = rng.integers(1, 4, jobs).astype(np.uint8)
        results[str(policy)] = Result(
            workload, str(policy), size, submit, start, end, mode, np.zeros(jobs, bool)
        )
    svg = [inline_svg(picture.figure, picture.name, picture.title) for picture in draw_pictures(results)]
    assert len(svg) == 9
    assert sum(map(len, svg)) < 5_000_000


ODD: list[object] = [None, 5, "text", [1], {"a": []}]


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(number, marks=pytest.mark.slow) for number in range(1, 5))]
)
def test_odd_values_are_one_line_or_shown(folder: Path, first: int) -> None:
    """Each value of the records in turn, by default some; records of another author may have right checksums."""
    step = 1 if first else 12
    for name in ("provenance.json", "metrics.json"):
        file = folder / name
        text = file.read_text()
        for number, path in [*enumerate(paths_in(json.loads(text)))][::step]:
            value = json.loads(text)
            inner = value
            for key in path[:-1]:
                inner = inner[key]
            inner[path[-1]] = ODD[(first + number) % len(ODD)]
            file.write_text(json.dumps(value))
            with contextlib.suppress(UsageError, WorkloadError):
                report._page(SavedResults.read(folder), [])
        file.write_text(text)


def paths_in(value: Any) -> Iterator[list[Any]]:
    """The paths of all values in tables and lists."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield [key]
        yield from ([key, *path] for path in paths_in(inner))
