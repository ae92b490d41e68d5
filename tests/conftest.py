"""What all tests share: the repository, the real logs and reference schedules, and what a run left out."""

from __future__ import annotations

import io
import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

# One thread for each worker of the tests, and for what they start: more would wait for each other. Read when
# numpy and PyTorch are loaded.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from hypothesis import HealthCheck, Phase, settings

from hpcsimkit.compiled import loading
from tests.interpreted import interpret

ROOT = Path(__file__).resolve().parent.parent

# No limit on the time of an example: it says how busy the machine is. The same examples in every run: a failure is
# that of a change. `--hypothesis-profile=thorough` has more, `search` draws new ones, and most of them; `as-found`
# does not look for a simpler example that fails as well.
settings.register_profile(
    "suite",
    max_examples=25,
    deadline=None,
    derandomize=True,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("thorough", settings.get_profile("suite"), max_examples=100)
settings.register_profile("search", settings.get_profile("suite"), max_examples=2000, derandomize=False)
settings.register_profile("as-found", settings.get_profile("suite"), phases=(Phase.explicit, Phase.generate))
settings.load_profile("suite")


@pytest.fixture(scope="session", autouse=True)
def ctrl_c() -> Iterator[None]:
    """Ctrl-C is heard, also by tests that are started in the background, and by what they start."""
    before = signal.getsignal(signal.SIGINT)
    if before == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True)
def pictures_are_closed() -> Iterator[None]:
    """Figures of pyplot, which keeps them, do not pile up."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture(scope="session", autouse=True)
def loaded_is_no_better_than_compiled() -> Iterator[None]:
    """Which simulator ``"auto"`` takes does not depend on what the tests before have loaded."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loading, "SETTING_UP", loading.LOADING)
        yield


@pytest.fixture(autouse=True)
def no_jobs_of_another_test() -> None:
    """Nor does it depend on how many jobs they have simulated."""
    loading.SEEN.clear()


@pytest.fixture(autouse=True)
def no_module_of_another_test(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A module that a test wrote is not what the next one finds by the same name: each has its own ``mine.py``."""
    path, known = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    written = str(tmp_path_factory.getbasetemp())
    for name in sys.modules.keys() - known:
        # Not `getattr`: modules that load themselves when they are asked would do so.
        if str(getattr(sys.modules[name], "__dict__", {}).get("__file__")).startswith(written):
            del sys.modules[name]


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real logs (``traces``) and reference schedules (``refs``); skips where it is absent."""
    folder = Path(os.environ.get("HPCSIMKIT_SHARED") or ROOT.parent / "shared")
    if not (folder / "traces").is_dir():
        pytest.skip(
            f"no real logs in {folder}: set HPCSIMKIT_SHARED to the folder that holds traces/ and refs/"
        )
    return folder


@pytest.fixture
def interpreted(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The functions of the compiled simulator run as the Python that they are.

    So every combination of its parts can be tried by short runs, which take milliseconds, where compiling one
    combination takes seconds. Other tests compile each part at least once. In tests of random runs, which have
    all combinations, indices are checked, too.
    """
    from numba.core.dispatcher import Dispatcher

    interpret(monkeypatch, checked="random" in request.node.name)
    yield
    assert loading.KINDS, "no run was compiled"
    assert not any(isinstance(function, Dispatcher) for function in loading.KINDS.values())


BLANK = {"png": b"\x89PNG\r\n\x1a\n", "svg": b"<svg></svg>", "pdf": b"%PDF-1.4"}


@pytest.fixture
def blank_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are made, and files written, but nothing is drawn in them, which takes most of the time."""
    draw_blank_pictures(monkeypatch)


def draw_blank_pictures(patch: pytest.MonkeyPatch) -> None:
    """See the fixture, for processes without one."""
    from hpcsimkit.reports import figures

    def blank(figure: Any, buffer: io.BytesIO, kind: str, **options: Any) -> None:
        buffer.write(BLANK[kind])

    patch.setattr(figures, "_print", blank)


# --- what a run left out ---------------------------------------------------------------------------------

SLOW = pytest.StashKey[int]()


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    """Count the slow tests that were not selected, in a worker, too."""
    slow = sum(item.get_closest_marker("slow") is not None for item in items)
    if slow:
        config = items[0].config
        config.stash[SLOW] = slow
        if hasattr(config, "workeroutput"):
            config.workeroutput["slow"] = slow


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take over the count of a worker: each has collected all tests."""
    node.config.stash[SLOW] = getattr(node, "workeroutput", {}).get("slow", 0)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say what was not run, and how to have it run."""
    skipped = [report.longrepr for report in terminalreporter.stats.get("skipped", ())]
    reasons = Counter(
        str(place[2]).removeprefix("Skipped: ") for place in skipped if isinstance(place, tuple)
    )
    lines = [f"{count:5} skipped: {reason}" for reason, count in reasons.most_common()]
    if slow := config.stash.get(SLOW, 0):
        lines.append(f"{slow:5} slow ones not selected: python -m pytest -n 2 -m slow")
    if lines:
        terminalreporter.section("left out")
        terminalreporter.write_line("\n".join(lines))
