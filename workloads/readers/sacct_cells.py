"""Parsers for the cells of Slurm accounting data: counts, memory, trackable resources, limits, states.

As in :mod:`~hpcsimkit.workloads.readers.cells`, a cell that cannot be parsed raises :class:`UsageError` with
a one-line message. Slurm's units are powers of 1024, also for plain counts (``1K`` nodes are 1024). The
formats are described in the manual page of ``sacct``, https://slurm.schedmd.com/sacct.html.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from fractions import Fraction

from hpcsimkit.errors import UsageError
from hpcsimkit.io.units import is_whole_number
from hpcsimkit.jobs.columns import AMOUNT_LIMIT
from hpcsimkit.jobs.constraint import bare, counted
from hpcsimkit.jobs.job import UNKNOWN
from hpcsimkit.workloads.readers.cells import decimal, duration, whole
from hpcsimkit.workloads.readers.tables import MISSING

__all__ = [
    "PER_CPU",
    "PER_NODE",
    "condition",
    "conjunction",
    "count",
    "elapsed",
    "gpu_type",
    "gres_list",
    "memory_scope",
    "minutes",
    "requested_memory",
    "state",
    "status",
    "time_limit",
    "tres",
]

POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}
AMOUNT = re.compile(r"(\d{1,18}(?:\.\d{1,9})?)([KMGTPE]?)")
GPUS_OF_GRES = re.compile(
    r"(?:^|,)(?:PER_NODE:|gres[:/])?gpu(?::([A-Za-z][\w.-]*|\d+g\.\w+))?(?:[:=](\d{1,6}))?(?=$|[,(])",
    re.IGNORECASE,
)
LISTED = re.compile(r"[^=,]+=[^=,]+(?:,[^=,]+=[^=,]+)*")
MEGABYTE = 1024**2

WORDS = r"\s*[^\s&|,()\[\]*]+\s*(?:[&|,]\s*[^\s&|,()\[\]*]+\s*)*"
IN_BRACKETS = re.compile(rf"\({WORDS}\)|\[{WORDS}\]")

PER_NODE, PER_CPU = 1, 2

NO_LIMIT = MISSING | {"unlimited", "partition_limit", "invalid"}
"""Cells of jobs without a time limit of their own (in lower case)."""

STATUS = {"COMPLETED": 1, "CANCELLED": 5} | dict.fromkeys(
    (
        "FAILED",
        "TIMEOUT",
        "OUT_OF_MEMORY",
        "NODE_FAIL",
        "BOOT_FAIL",
        "DEADLINE",
        "PREEMPTED",
        "LAUNCH_FAILED",
        "RECONFIG_FAIL",
        "REQUEUED",
        "REVOKED",
        "SPECIAL_EXIT",
    ),
    0,
)
"""Slurm's states in the codes of SWF field 11: completed 1, cancelled 5, else failed 0."""


def count(text: str) -> int:
    """Return a number of CPUs or nodes, -1 if empty.

    >>> count("36"), count("1K"), count("")
    (36, 1024, -1)
    """
    return UNKNOWN if text.lower() in MISSING else _amount(text, "a number")


def _amount(text: str, what: str, unit: int = 1) -> int:
    """Return an amount in whole units, rounded up; `unit` is that of a number without a letter."""
    if is_whole_number(text := decimal(text), 9):
        return int(text) * unit
    match = AMOUNT.fullmatch(text)
    if match is None or not text.isascii():
        raise UsageError(f"{what} such as 16, 4K or 1.50G needed, found {text!r}")
    size = 1024 ** POWERS[match[2]] if match[2] else unit
    return min(math.ceil(Fraction(match[1]) * size), AMOUNT_LIMIT + 1)


def requested_memory(text: str) -> int:
    """Return the amount in ``ReqMem`` [bytes], -1 if empty; an amount without a unit is in megabytes.

    >>> requested_memory("4000Mc"), requested_memory("1.50Gn"), requested_memory("0")
    (4194304000, 1610612736, 0)
    """
    if text.lower() in MISSING:
        return UNKNOWN
    number = text.rstrip("cn?")
    return _amount(number, "memory", MEGABYTE) if number else UNKNOWN


def memory_scope(text: str) -> int:
    """Return the scope of ``ReqMem``: `PER_NODE` or `PER_CPU` (Slurm before 21.08), or 0 for the job.

    >>> memory_scope("1.50Gn") == PER_NODE, memory_scope("4000Mc") == PER_CPU, memory_scope("64G")
    (True, True, 0)
    """
    return {"n": PER_NODE, "c": PER_CPU}.get(text[-1:], 0)


def tres(name: str) -> Callable[[str], int]:
    """Return a parser for one amount in a list of trackable resources; -1 if it is not listed.

    Parameters
    ----------
    name : str
        Name of the resource: ``cpu``, ``node``, ``mem`` [bytes], or ``gres/gpu`` for GPUs of all types.

    >>> [tres(name)("billing=8,cpu=8,gres/gpu:a100=2,mem=64G,node=1") for name in ("cpu", "gres/gpu")]
    [8, 2]
    >>> tres("mem")("cpu=8"), tres("mem")("mem=64G")
    (-1, 68719476736)
    """
    one = re.compile(rf"(?:^|,){re.escape(name)}=([^,]*)")
    typed = re.compile(rf"(?:^|,){re.escape(name)}:[^=,]*=([^,]*)")
    unit = MEGABYTE if name == "mem" else 1

    def read(text: str) -> int:
        if text.lower() in MISSING:
            return UNKNOWN
        if not LISTED.fullmatch(text):
            raise UsageError(f"resources such as cpu=8,mem=64G,gres/gpu=2 needed, found {text!r}")
        found = one.findall(text) or typed.findall(text)
        return sum(_amount(amount, name, unit) for amount in found) if found else UNKNOWN

    return read


def gres_list(text: str) -> str:
    """Return the GPUs in a list of generic resources of old versions as trackable resources.

    >>> gres_list("gpu:2"), gres_list("PER_NODE:gpu:v100:4,craynetwork:0"), gres_list("gpu:1(S:0),mic:2")
    ('gres/gpu=2', 'gres/gpu=4,gres/gpu:v100=4', 'gres/gpu=1')
    """
    parts: list[str] = []
    total = 0
    for model, number in GPUS_OF_GRES.findall(text):
        count = int(number or 1)
        total += count
        parts += [f"gres/gpu:{model}={count}"] if model else []
    return ",".join([f"gres/gpu={total}", *parts]) if total else ""


def gpu_type(text: str) -> str:
    """Return the GPU types in a list of trackable resources, joined by ``,``.

    >>> gpu_type("cpu=8,gres/gpu=2,gres/gpu:a100=2"), gpu_type("cpu=8,gres/gpu=2")
    ('a100', '')
    """
    return ",".join(re.findall(r"(?:^|,)gres/gpu:([^=,]+)=", text))


GPU_OPTION = re.compile(
    r"(?:^|\s)(?:--gres[=\s]\s*(?P<gres>\S+)|(?:--gpus(?:-per-(?:node|socket|task))?[=\s]\s*|-G\s*)(?P<gpus>\S+))"
)
"""Options of a command line that ask for GPUs, and what they ask for."""

TRES_SCOPES = ("job", "node", "socket", "task")
"""What ``squeue --json`` and ``scontrol show job`` list the generic resources of, beside the totals."""

NAMED = re.compile(r"(?=.*[A-Za-z])[\w.-]+")
"""A name of a model, not a number."""


def gpu_model(line: str) -> str:
    """Return the model of the GPUs for which the options of a command line ask; empty for none or several.

    >>> gpu_model("sbatch --gres=gpu:V100:2 --wrap a"), gpu_model("sbatch -G a100:1 a")
    ('v100', 'a100')
    >>> gpu_model("sbatch --gres=gpu:a100:1,gpu:v100:1 a"), gpu_model("sbatch --wrap 'b --gpus=v100:1'")
    ('', '')
    """
    found = set()
    for option in GPU_OPTION.finditer(line.partition("--wrap")[0]):
        kinds = [each.partition(":") for each in (option["gres"] or "").split(",")]
        asked = [rest for kind, _, rest in kinds if kind == "gpu"] if option["gres"] else [option["gpus"]]
        found |= {each.partition(":")[0].lower() for each in asked}
    models = {each for each in found if NAMED.fullmatch(each)}
    return models.pop() if len(models) == 1 else ""


def gres_options(texts: Iterable[str]) -> str:
    """Return what jobs that wait ask for of generic resources as options of a command line.

    >>> gres_options(["", "gres:gpu:v100:1"]), gres_options(["gres/gpu:a100:2"])
    (' --gres=gpu:v100:1', ' --gres=gpu:a100:2')
    """
    return "".join(f" --gres={re.sub('gres[:/]', '', text)}" for text in texts if text)


def elapsed(text: str) -> int:
    """Return an elapsed time [s]; -1 if unknown.

    >>> elapsed("1-02:03:04"), elapsed("INVALID")
    (93784, -1)
    """
    return UNKNOWN if text.lower() in MISSING | {"invalid", "unknown"} else duration(text)


def time_limit(text: str) -> int:
    """Return ``Timelimit`` [s]; -1 for none.

    >>> time_limit("02:00:00"), time_limit("UNLIMITED"), time_limit("Partition_Limit")
    (7200, -1, -1)
    """
    return UNKNOWN if text.lower() in NO_LIMIT else duration(text)


def minutes(text: str) -> int:
    """Return ``TimelimitRaw``, which is in minutes, in seconds; -1 for none.

    >>> minutes("120"), minutes("UNLIMITED")
    (7200, -1)
    """
    return UNKNOWN if text.lower() in NO_LIMIT else min(whole(text), AMOUNT_LIMIT) * 60


def status(text: str) -> int:
    """Return a state as SWF status code (1 completed, 0 failed, 5 cancelled, else -1).

    >>> status("CANCELLED by 1234"), status("TIMEOUT"), status("CANCELLED+"), status("RUNNING")
    (5, 0, 5, -1)
    """
    return STATUS.get(state(text), UNKNOWN)


def state(text: str) -> str:
    """Return the name of a state, without the user that cancelled the job."""
    return text.split(" ", 1)[0].rstrip("+").upper()


def condition(text: str, nodes: int = 1) -> str | None:
    """Return required features as a constraint; None if it is none that can be simulated.

    That are features that all nodes of a job have in common (``[rack1|rack2]``), unless it has only one node,
    counts (``a*2``) among alternatives, and counts of more than all nodes. A list (``cpu,gpu``) has
    alternatives.

    Parameters
    ----------
    text : str
        Value of ``--constraint``, or a list of partitions.
    nodes : int
        Number of nodes of the job. Default: 1.

    Examples
    --------
    >>> condition("intel & ib"), condition("ib&(a100|v100)"), condition("cpu,gpu"), condition("[a*2&b]", 8)
    ('intel&ib', '(ib&(a100|v100))', '(cpu|gpu)', 'b&a*2')
    >>> condition("[rack1|rack2]"), condition("[rack1|rack2]", nodes=4), condition("(a|b"), condition("")
    ('([rack1|rack2])', None, None, '')
    """
    if (plain := conjunction(text)) is not None:
        return plain
    if "*" in text:
        return _with_counts(text, nodes)
    text = bare(text.strip())
    rest, found = text, 1
    while found:
        rest, found = IN_BRACKETS.subn("x", rest)
    if not re.fullmatch(WORDS, rest) or ("[" in text and nodes > 1):
        return None
    return f"({''.join(text.split()).replace(',', '|')})"


def _with_counts(text: str, nodes: int) -> str | None:
    """Return a constraint with counts, which has no brackets around all of it.

    >>> _with_counts("[ib & (a|b)*2&c*1]", 4), _with_counts("a*2|b*2", 4), _with_counts("a*2&b*4", 4)
    ('ib&(a|b)*2&c*1', None, None)
    """
    try:
        everywhere, counts = counted(text)
    except UsageError:
        return None
    found = [condition(everywhere, nodes), *(condition(each, number) for each, number in counts)]
    if None in found or "" in found[1:] or sum(number for _, number in counts) > nodes:
        return None
    terms = [f"{each}*{number}" for each, (_, number) in zip(found[1:], counts, strict=True)]
    return "&".join(filter(None, [found[0], *terms]))


def conjunction(text: str) -> str | None:
    """Return required features joined by ``&``; None if the expression is not a plain conjunction.

    Alternatives (``a|b``, ``[rack1|rack2]``, lists of partitions) and counts (``a*2``) are not.

    >>> conjunction("intel & ib"), conjunction("a100|v100"), conjunction("")
    ('intel&ib', None, '')
    """
    features = [feature.strip() for feature in text.split("&")] if text.strip() else []
    if any(not feature or re.search(r"[\[\]()|*,?\s]", feature) for feature in features):
        return None
    return "&".join(dict.fromkeys(features))
