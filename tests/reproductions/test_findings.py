"""Tables, pictures and targets of a plan, from measured and published values, by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hpcsimkit.errors import UsageError
from hpcsimkit.reproductions.pictures import draw_bars, draw_curves
from hpcsimkit.reproductions.plans.comparisons import Comparison
from hpcsimkit.reproductions.plans.findings import PaperFindings
from hpcsimkit.reproductions.plans.parts import Parts
from hpcsimkit.reproductions.plans.plan import ComparisonPlan, Plan, PublishedTable
from hpcsimkit.reproductions.plans.quantities import Quantities
from hpcsimkit.reproductions.scores import Scores
from hpcsimkit.reproductions.sequences import BSLD, OF_PROMISES, SequenceSet
from hpcsimkit.reproductions.targets import Target

PLAN = """
title = "x"
rates = {}
rows = {}

[logs]
needed = "a log"
code = "swf"

[sizes.full]

[comparisons.rest]
sequences = "rest"
test = "unseen jobs"
rows = []
"""
PUBLISHED = {"table": PublishedTable(source="", columns=["SJF", "agent"], rows={"one": [4.0, 3.0]})}


class Log(SimpleNamespace):
    """A log by its name."""

    def __format__(self, format_spec: str) -> str:
        return format(self.name, format_spec)


def scores(log: str, values: Mapping[str, Sequence[float]], **variables: Any) -> Scores:
    """Values of rows; those called `agent 1`, `agent 2` are of one family."""
    found = {row: {BSLD: np.array(each, dtype=float)} for row, each in values.items()}
    families = {row: "agent" if row.startswith("agent ") else "" for row in values}
    contestants: Any = [SimpleNamespace(name=row, learner=families[row] or None) for row in values]
    rows: Any = {row: SimpleNamespace(family=families[row], group=families[row] or "paper") for row in values}
    trace, sequences = LOGS.setdefault(log, Log(name=log)), SequenceSet("x", [None] * 2)  # type: ignore[list-item]
    plan = ComparisonPlan(
        sequences="rest", test="unseen jobs", rows=[], label="x", each={key: [] for key in variables}
    )
    parts = Parts({"log": trace, **variables})
    return Scores(Comparison(plan, "rest", trace, parts, sequences, contestants, rows), found)


LOGS: dict[str, Any] = {}
ONE = {"SJF": [3.0, 5.0], "FCFS": [8.0, 8.0], "agent 1": [1.0, 3.0], "agent 2": [2.0, 4.0]}


def findings(text: str, *found: Scores, **plan: Any) -> PaperFindings:
    with TemporaryDirectory() as place:
        file = Path(place) / "plan.toml"
        file.write_text(PLAN + text, encoding="utf-8")
        values = Plan.of_toml(file)
    made: Any = SimpleNamespace(
        paper=values,
        published=PUBLISHED,
        traces=SimpleNamespace(first=None, scale=SimpleNamespace()),
        side_study=None,
        **plan,
    )
    findings = PaperFindings(made, SimpleNamespace(seconds=lambda task: task.learner.took))  # type: ignore[arg-type]
    vars(findings)["scores"] = list(found)
    return findings


# --- tables --------------------------------------------------------------------------------------------------

TABLE = """
[tables.all]
comparison = "rest"
each = { row = "{rows}" }
given = "row != 'FCFS'"
let = { base = "mean('SJF')", half = "base / 2" }
columns = [
    { name = "", value = "row" },
    { name = "mean", value = "mean(row)", paper = "published('table', log.name, row)", best = "lowest" },
    { name = "{kind}", each = { kind = ["cell", "odd"] }, when = { kind = ["cell"] }, value = "cell(row)" },
    { name = "half of {half}", value = "half" },
]

[tables.logs]
comparison = "rest"
each = { row = ["SJF", "agent"] }
columns = [
    { name = "", value = "row" },
    { name = "{log}", each_log = true, value = "below(mean(row), mean('FCFS'))", best = "highest" },
]
"""


def test_a_table_has_a_line_for_each_value_and_columns_with_conditions() -> None:
    headings, lines = findings(TABLE, scores("one", ONE)).tabulated("all")
    assert headings == ["", "*mean*", "mean", "cell", "half of 2.0"]
    assert lines == [
        ["SJF", "4.00", "4.00", "4.00", "2.00"],
        ["agent", "3.00", "**2.50**", "2.50 (2.00 to 3.00)", "2.00"],
    ]


def test_comparisons_are_columns() -> None:
    other = scores("other", {"SJF": [2.0, 2.0], "FCFS": [8.0, 8.0], "agent 1": [6.0, 6.0]})
    headings, lines = findings(TABLE, scores("one", ONE), other).tabulated("logs")
    assert headings == ["", "one", "other"]
    assert lines == [["SJF", "50.00", "**75.00**"], ["agent", "**68.75**", "25.00"]]
    assert findings(TABLE, scores("one", ONE), other).tabulated("logs", [other]).headings == ["", "other"]
    assert findings(TABLE).tabulated("all").rows == []


def test_equal_numbers_are_not_bold() -> None:
    same = scores("one", {"SJF": [2.0, 2.0], "agent 1": [2.0, 2.0]})
    assert [line[2] for line in findings(TABLE, same).tabulated("all").rows] == ["2.00", "2.00"]


def test_a_table_of_the_plan_is_a_file(tmp_path: Any) -> None:
    text = TABLE.replace("[tables.all]\n", '[tables.all]\nfile = "all.csv"\n')
    found = findings(text, scores("one", ONE), folder=tmp_path, title="x", quick=False, studies=[], own=None)
    found.plan.traces = SimpleNamespace(first=LOGS["one"], scale=SimpleNamespace(), lines=list)
    object.__setattr__(found, "figures", lambda: iter(()))
    found.conclusion(tmp_path)
    assert (tmp_path / "all.csv").read_text().splitlines()[1] == "SJF,4.00,4.00,4.00,2.00"
    assert not (tmp_path / "logs.csv").exists()


# --- targets -------------------------------------------------------------------------------------------------


def targets(text: str, *found: Scores, **plan: Any) -> list[Target]:
    return list(findings(text, *found, **plan).targets())


def test_targets_by_expressions() -> None:
    text = """
[[targets]]
comparison = "rest"
each = { row = ["agent", "FCFS", "nobody"] }
given = "has(row)"
what = "{log}, {test}: {row}"
paper = "published('table', log.name, row)"
ours = "mean(row)"
spread = "spread(row)"
met = "none if paper is none else ours <= paper"
"""
    agent, fcfs = targets(text, scores("one", ONE))
    assert agent == Target("one, unseen jobs: agent", 3.0, 2.5, pytest.approx(0.5**0.5), True)
    assert fcfs == Target("one, unseen jobs: FCFS", None, 8.0, None, None), "nothing published"
    (agent, _) = targets(text, scores("one", {**ONE, "agent 1": [9.0, 9.0]}))
    assert agent.met is False


def test_totals_are_of_equal_words() -> None:
    text = """
[[targets]]
comparison = "rest"
each = { row = ["SJF", "FCFS", "agent"] }
total = true
what = "rows of {log} below 5"
paper = "1"
ours = "mean(row) < 5"
met = "ours == paper"
"""
    low = scores("low", {"SJF": [1.0, 1.0], "FCFS": [2.0, 2.0], "agent 1": [3.0, 3.0]})
    found = targets(text, scores("one", ONE), low)
    assert found == [
        Target("rows of one below 5", 3.0, 2.0, None, False),
        Target("rows of low below 5", 3.0, 3.0, None, True),
    ]


def test_times_of_some_trainers() -> None:
    took = {"a": 600.0, "b": 1200.0, "c": 7200.0}
    trainers = ("ppo", "ppo", "cem")
    learners = [
        SimpleNamespace(name=name, trainer=trainer, took=of, size=4000, requires=(), settings=None)
        for (name, of), trainer in zip(took.items(), trainers, strict=True)
    ]
    text = """
[[times]]
what = "longest, {agent}, {decisions}"
trainers = ["ppo"]
at_most = 10

[[times]]
what = "hours"
unit = "h"
paper = 1.0

[[times]]
what = "of those compared"
compared = true
at_most = 10

[[times]]
what = "of nobody"
trainers = ["sb3"]
"""
    found = targets(text, trained=learners, compared=learners[:1])
    assert found == [
        Target("longest, b, 4 000", None, 20.0, None, False),
        Target("hours", 1.0, 2.0, None, None),
        Target("of those compared", None, 10.0, None, True),
    ]


# --- expressions ---------------------------------------------------------------------------------------------


def test_functions_of_expressions() -> None:
    one = scores("one", ONE, order="sjf")
    for row, values in one.values.items():
        for measure, value in zip(OF_PROMISES, (10.0, 4.0, 30.0), strict=True):
            one.values[row][measure] = np.array([value, 0.0])  # type: ignore[index]
        assert len(values) == 4
    other, elsewhere = scores("one", {"SJF": [7.0, 7.0]}, order="f1"), scores("two", ONE, order="f1")
    found = Quantities(one, PUBLISHED, lambda: [elsewhere, one, other])
    values = { "best_of(['FCFS', 'agent'])": "agent",
        "best_of(['FCFS', 'agent'], highest=true)": "FCFS", "worst('agent', 'mean_bounded_slowdown')": 2.0,
        "below(3, 4)": 25.0, "has('nobody')": False, "has('agent')": True, "rank('SJF', ['FCFS', 'SJF', 'agent'])": 1,
        "at(order='f1').mean('SJF')": 7.0, "promises('SJF')": (10.0, 4.0, 30.0), "matching('.*S.*')": ["SJF", "FCFS"],
        "against('agent', 'SJF').against.lower": 2, "verdicts('SJF', ['agent'])['agent'].is_better": False,
        "interval('FCFS').low": 8.0, "published('schedinspector:table_4', 'Lublin', 'own')": 27.97,
        "same_digits(2.999, 3.0)": True, "interval('FCFS', minus='SJF').mean": 4.0, "interval('FCFS', over='SJF').mean": 2.0,
    }  # fmt: skip
    assert {expression: found.value(expression, {}) for expression in values} == values
    for expression in (
        "mean('nobody')",
        "below(3, 0)",
        "at(order='saf').mean('SJF')",
        "published('table', 'one', 'x')",
    ):
        assert np.isnan(found.value(expression, {})), expression
    assert [found.text(expression, {"x": 7}) for expression in ("mean('nobody')", "none", "x", "1 / 3")] == [
        "", "", "7", "0.33",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("mean(", "unexpected"),
        ("means('SJF')", "'means' is undefined"),
        ("mean('SJF') + row", "'row' is undefined"),
        ("published('tables', 'one', 'SJF')", "KeyError"),
        ("mean.__globals__", "unsafe"),
        ("log.name.__class__.__mro__", "unsafe"),
        ("log.open('x')", "may not call"),
        ("at('rest').others()", "may not call"),
        ("at('rest').value('1', log)", "may not call Quantities.value"),
        ("log.name.format(log)", ""),
    ],
)
def test_expressions_that_do_not_do(expression: str, words: str) -> None:
    one = scores("one", ONE)
    found = Quantities(one, PUBLISHED, lambda: [one])
    log = Log(name="{0.open}", open=open)
    if words:
        with pytest.raises(UsageError, match=words) as caught:
            found.value(expression, {"log": log})
        assert f'expression "{expression}": ' in str(caught.value)
    else:
        assert "function open" in str(found.value(expression, {"log": log})), "read, but not called"


def test_variables_do_not_hide_functions() -> None:
    with pytest.raises(UsageError, match="a variable has the name of a function of expressions: 'mean'"):
        Quantities(scores("one", ONE), PUBLISHED).value("mean('SJF')", {"mean": 1})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            '[[targets]]\ncomparison = "rst"\nwhat = "x"\nours = "1"\n',
            "unknown comparison 'rst'; nearest: rest",
        ),
        ('[tables.x]\ncomparison = "no"\ncolumns = []\n', "unknown comparison 'no'"),
        ('[[pictures]]\nkind = "bars"\ntable = "x"\n', "unknown table 'x'"),
        ('[[pictures]]\nkind = "curves"\nstudy = "x"\n', "unknown study 'x'"),
        ('[side_studies.pls]\ntemplate = "x"\n', "unknown option 'pls'"),
        ('[[pictures]]\nkind = "lines"\n', "boxes"),
        ('[tables.x]\ncomparison = "rest"\ncolumns = [{ name = "x", valu = "1" }]\n', "valu"),
    ],
)
def test_plans_that_do_not_do(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        findings(text)


# --- pictures ------------------------------------------------------------------------------------------------


def test_pictures_of_a_plan() -> None:
    text = (
        TABLE
        + """
[[pictures]]
kind = "boxes"
comparison = "rest"
name = "{log}-boxes"
rows = "['agent', 'FCFS']"
over = "best_of(['SJF', 'FCFS'])"

[[pictures]]
kind = "bars"
name = "all"
table = "logs"

[[pictures]]
kind = "curves"
comparison = "rest"
name = "{log}-learning"
columns = ["validation"]
"""
    )
    curve = {"steps": np.array([1000.0, 2000.0]), "validation": np.array([1.0, 2.0])}
    found = findings(text, scores("one", ONE), studies=[])
    for who in found.scores[0].contest.contestants:
        who.learner = SimpleNamespace(name=who.name) if who.learner else None
    object.__setattr__(found, "curve", lambda learner: curve)
    pictures = dict(found.figures())
    assert list(pictures) == ["one-boxes", "all", "one-learning"]
    boxes = pictures["one-boxes"].axes[0]
    dots = [line.get_xdata() for line in boxes.lines if line.get_marker() == "o"]
    assert sorted(dots[0]) == pytest.approx([1.5 / 3, 3.5 / 5]), "over those of SJF on the same sequences"
    (panel,) = pictures["one-learning"].axes
    assert panel.get_title(loc="left") == "agent"
    assert sum(len(line.get_xdata()) == 2 and line.get_linestyle() == "-" for line in panel.lines) == 2


def test_bars_and_curves() -> None:
    figure = draw_bars({"a": {"x": 1.0, "y": 2.0}, "b": {"x": 3.0}}, "label")
    widths = [bar.get_width() for bar in figure.axes[0].patches]
    assert widths == [1.0, 3.0, 2.0]
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == ["x", "y"]
    many = {"steps": np.arange(600.0), "reward": np.arange(600.0), "rejected": np.ones(600)}
    figure = draw_curves({"a": [many, many], "b": [many]}, ["reward", "rejected"])
    assert len(figure.axes) == 4, "two panels, each with another axis"
    assert [len(ax.lines) for ax in figure.axes] == [3, 2, 2, 1] or len(figure.axes[0].lines) == 3
    assert len(figure.axes[0].lines[0].get_xdata()) == 60
