"""Reproduce folders of strangers, and report what an audit hook heard and which files appeared.

A script, run in a process of its own and in an empty folder, as :mod:`trust_probe`. It prints a JSON object: the
line that each attack ends with, what was heard and what was written, by attack.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from pathlib import Path

from trust_probe import Ears

from hpcsimkit.reproductions.plans.plan import paper_files
from hpcsimkit.reproductions.plans.planned import reproduction_of
from hpcsimkit.run import main

PLAN = """
title = "Theirs"
rates = {{ "runs" = 1000.0 }}
{source}

[sizes.full]
sequences = 1

[rows.theirs]
name = "theirs"
policy = {policy}
{row}

[comparisons.rest]
sequences = {sequences}
label = "{label}"
rivals = false
rows = [{{ rows = ["theirs"] }}]

{further}
"""
LOGS = '[logs]\nneeded = "a log"\ncode = "swf"\njobs = 8\n'
USUAL = {"source": LOGS, "policy": '"fcfs"', "row": "", "further": "", "sequences": '"rest"', "label": "rest"}
NAMED = '{ part = "policies:named", name = "sjf+easy" }'
EVIL = "open('executed', 'w').close()\nfrom hpcsimkit.policies import SJF as Best\n"
PAYLOAD = "alias ls='touch executed'\n"

TARGET = '[[targets]]\ncomparison = "rest"\nwhat = "theirs"\nours = "{}"\n'
TABLE = '[tables.theirs]\ncomparison = "rest"\nfile = "{}"\ncolumns = [{{ name = "theirs", value = "{}" }}]\n'

PLANS: dict[str, dict[str, str]] = {
    "D1a": {"policy": '{ part = "experiments.parts.registry:make", name = "stranger/evil.py:Best" }'},
    "D1a, trust": {"policy": '{ part = "policies:named", name = "stranger/evil.py:Best", trust = "{none}" }'},
    "D1b": {
        "policy": '{ part = "io.files:write_bytes", path = "bashrc", '
        'content = { part = "io.files:read_bytes", path = "stranger/payload" } }'
    },
    "import": {"policy": '{ part = "run:importlib.import_module", name = "evil" }'},
    "file": {"policy": '{ part = "evil.py:Best" }'},
    "source": {"source": '[source]\nneeded = "days"\npart = "io.files:write_bytes"\n'},
    "kind": {"source": f'{LOGS}kind = "io.files:write_bytes"\n'},
    "sequences": {"policy": NAMED, "sequences": '"_read"'},
    "method": {"policy": '{ copy = "{log.log}", hash = "{log.log.first}" }'},
    "dunder": {"policy": '"{log.__init__.__globals__[Path]}"'},
    "format": {"policy": '"{seed!r:{log.__class__}}"'},
    "class": {"policy": '{ copy = "policies:SJF", scores = 1 }'},
    "expression": {"policy": NAMED, "further": TARGET.format("log.path.write_text('x')")},
    "expression, dunder": {"policy": NAMED, "further": TARGET.format("mean.__func__.__globals__")},
    "expression, kit": {"policy": NAMED, "further": TARGET.format("at('rest').others()")},
    "cell": {"policy": NAMED, "further": TABLE.format("a.csv", "log.path.parent.joinpath('PWNED').touch()")},
    "table": {"policy": NAMED, "further": TABLE.format("../../executed", "1")},
    "label": {"policy": NAMED, "label": "../../executed"},
    "names": {"source": f'{LOGS}names = {{ "log" = "../../executed" }}\n', "policy": NAMED},
    "family": {"policy": NAMED, "row": 'sequences = { part = "io.files:make_folder", path = "executed" }'},
}
TEMPLATES = {
    "D1c": "{{ cycler.__init__.__globals__.os.popen('id > PWNED').read() }}",
    "module": "one\n{{ own.sys.modules['os'].system('id > PWNED') }}",
    "path": "{{ plan.folder.joinpath('PWNED').write_text('x') }}",
}


def attacked(plan: dict[str, str], template: str | None) -> tuple[str, list[str], list[str]]:
    """Reproduce a stranger's folder: the line on standard error, what was heard, and files that appeared."""
    Path("stranger", "plan.toml").write_text(PLAN.format(**{**USUAL, **plan}))
    Path("stranger", "report.md.jinja").unlink(missing_ok=True)
    if template is not None:
        Path("stranger", "report.md.jinja").write_text(template)
    for known in (reproduction_of, paper_files):
        known.cache_clear()
    before, errors = files(), io.StringIO()
    EARS.heard.clear()
    with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
        EARS.listening = True
        try:
            main(["reproduce", "stranger", "log.swf", "--workers", "1", "-q", "--overwrite", "--out", "out"])
        except SystemExit as leaving:
            code = leaving.code
        EARS.listening = False
    return f"{code} {errors.getvalue()}", list(EARS.heard), sorted(files() - before)


def files() -> set[str]:
    return {str(path) for path in Path().rglob("*") if path.parts[0] != "out"}


EARS = Ears()

if __name__ == "__main__":
    Path("stranger").mkdir()
    Path("stranger", "evil.py").write_text(EVIL)
    Path("stranger", "payload").write_text(PAYLOAD)
    Path("log.swf").write_text(
        ";MaxProcs: 4\n"
        + "".join(f"{n} {n} -1 9 1 -1 -1 1 9 -1 1 -1 -1 -1 -1 -1 -1 -1\n" for n in range(1, 81))
    )
    harmless = attacked({"policy": NAMED}, None)  # what loads late is loaded
    sys.addaudithook(EARS)
    found = {name: attacked(plan, None) for name, plan in PLANS.items()}
    found |= {name: attacked({"policy": NAMED}, template) for name, template in TEMPLATES.items()}
    found["harmless"] = attacked({"policy": NAMED}, "# {{ title }}\n{{ found.table('rest', ['theirs']) }}")
    print(json.dumps({"first": harmless, "found": found}))
