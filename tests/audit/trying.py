"""Sound files in which a leaf is another text each time, and the lines that read them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

import pytest

from hpcsimkit.io.formats import Format
from tests.audit.hearing import CANARY, EVIL
from tests.audit.leaves import leaves_of
from tests.audit.lines import LINES, READERS
from tests.conftest import draw_blank_pictures

if TYPE_CHECKING:
    from tests.audit.playing import Stage

OUTSIDE = "../outside"
PAYLOADS: tuple[object, ...] = (
    f"{EVIL}:Run",
    f"{EVIL}.py:Run",
    f"agent:agent.hpcsim(parts={EVIL})",
    f"os:system('touch {CANARY}')",
    f"builtins:eval('{CANARY}')",
    "experiments.parts.registry:make",
    "hpcsimkit.io.files:write_bytes",
    f"importlib:import_module('{EVIL}')",
    f"__import__('{EVIL}')",
    f"{{{{ cycler.__init__.__globals__.os.popen('touch {CANARY}').read() }}}}",
    f"{{% for each in [].__class__.__base__.__subclasses__() %}}{{{{ each.__init__.__globals__ }}}}{{% endfor %}}{CANARY}",
    f"{{title.__class__.__init__.__globals__}}{{0.__init__.__globals__}}%({CANARY})s",
    f"{OUTSIDE}/written",
    f"{EVIL}.py",
    f"learned:{OUTSIDE}/policy.json",
    EVIL,
    {"part": "experiments.parts.registry:make", "name": f"{EVIL}.py:Run"},
    {"part": "io.files:make_folder", "path": OUTSIDE},
    {"part": f"{EVIL}.py:Run"},
    {"name": f"{EVIL}:Run"},
)  # fmt: skip
"""Texts for all leaves; tables for those of TOML and JSON files."""

NAMING = {
    Format.EXPERIMENT, Format.SWEEP, Format.TRAINING, Format.PLAN, Format.TEMPLATE, Format.MODEL, Format.LEARNED_POLICY,
}  # fmt: skip
"""Formats in which some leaves are names of parts, or expressions."""

SOME, FEW = 1, 1
"""Leaves of a file that are changed in a quick test: of formats that name parts, and of others."""

FURTHER = 3
"""Payloads for each leaf of a format that names parts, in a slow test, by other lines than the first: in turn."""

FIRST = {
    form: line
    for lines in reversed([*LINES.values(), *READERS.values()])
    for line in reversed(lines)
    if not line.slow
    for form in line.reads
}
"""The line by which a quick test tries each format, and a slow one all payloads; formats that name parts are tried by
all lines."""


def wrong(name: str, number: int, folder: Path, *, quick: bool) -> str | None:
    """Return what is wrong with a line of a command, or reader, if anything is; in a process of the audit."""
    from tests.audit.playing import Stage  # loads all that a command may load

    with pytest.MonkeyPatch.context() as patch:
        draw_blank_pictures(patch)
        line = {**LINES, **READERS}[name][number]
        try:
            assert_nothing_runs(Stage(folder, line), quick=quick)
        except AssertionError as error:
            return str(error) or repr(error)
    return None


def assert_nothing_runs(stage: Stage, *, quick: bool) -> None:
    """Check that nothing is heard while a line reads files in which another leaf is changed each time."""
    read = files_read(stage)
    listed = ", ".join(sorted(f"{form.name} {file}" for file, form in read.items()))
    assert set(read.values()) == stage.line.reads, f"formats that {stage.line.words!r} reads: {listed}"
    assert not stage.sound.forbidden, f"{stage.line.words}: {stage.sound.forbidden}"
    found = {}
    for file, form in one_of_each(read).items():
        if quick and form not in NAMING and stage.line is not FIRST[form]:
            continue
        content = (stage.kept / file).read_bytes()
        first = stage.line is FIRST[form]
        for place, payload, changed in chosen(file, content, form, quick=quick, first=first):
            heard = stage.run({file: changed})
            if heard.forbidden:
                found[f"{file}: {place} = {payload}"] = heard.forbidden
            # only opened, if its SHA-256 tells that results of another file are there
            assert file in {*heard.opened, *(path for _, path in heard.read)}, f"{file}: {heard.shown}"
    assert not found, f"{stage.line.words}: {found}"


def files_read(stage: Stage) -> dict[str, Format]:
    """Return the files that a line reads, of those that are there before; each is opened as one of a format."""
    there = {str(file.relative_to(stage.kept)) for file in stage.kept.rglob("*") if file.is_file()}
    read = {file: Format[form] for form, file in stage.sound.read if file in there}
    unknown = (there & set(stage.sound.opened)) - set(read)
    assert not unknown, f"{stage.line.words!r} opens these without a format: {unknown}"
    return read


def one_of_each(read: dict[str, Format]) -> dict[str, Format]:
    """Return one file of each name and format: cells of a sweep have files alike."""
    return {
        file: form
        for (form, _), file in {(form, Path(file).name): file for file, form in read.items()}.items()
    }


def chosen(
    file: str, content: bytes, form: Format, *, quick: bool, first: bool
) -> Iterator[tuple[str, object, bytes]]:
    """Yield places, payloads and changed files: all payloads in turn, each in formats that name parts, or a few of these."""
    leaves, tables = list(leaves_of(file, content)), file.endswith((".toml", ".json", ".hpcsim"))
    payloads = PAYLOADS if tables else tuple(each for each in PAYLOADS if isinstance(each, str))
    begin = crc32(f"{file} {form}".encode())
    if quick:
        count = SOME if form in NAMING else FEW
        tried = [
            ((begin + number * (len(leaves) // count or 1)) % len(leaves), begin + number)
            for number in range(count)
        ]
    else:
        each = 1 if form not in NAMING else len(payloads) if first else FURTHER
        tried = [
            (number, begin + number * each + more) for number in range(len(leaves)) for more in range(each)
        ]
    for number, turn in tried:
        place, changed = leaves[number]
        payload = payloads[turn % len(payloads)]
        yield place, payload, changed(payload)
