"""Command that checks user-defined parts."""

from __future__ import annotations

from typing import Any

from hpcsimkit.cli.declaring import argument, examples, option, switch
from hpcsimkit.cli.flags import AllowCode, MachineFile, Seed, takes
from hpcsimkit.cli.output import say
from hpcsimkit.experiments.consent import allowed_code


@examples(
    "check mine.py:FewestNodes",
    'check "mine:QueueLength(slots=8)" --stage backfiller',
    "check agent/best.hpcsim",
)
@takes(
    name=argument(
        str,
        "NAME",
        "Part to check: file.py:Name or module:Name of a policy, a stage of one, an encoder or a reward, "
        "with parameters in parentheses; name of a policy; or path of an agent (.hpcsim).",
    ),
    kind=option(str, "KIND", "Kind: policy, encoder, reward or agent.  [auto]"),
    stage=option(str, "NAME", "Seat of an encoder or a reward, such as inspector.  [order]"),
    oracle=switch("--oracle", "Allow a policy or an encoder to read the future."),
    parts=option(str, "MODULE", "Module or file.py to import, with an agent's encoder and mask.  [none]"),
    machines=MachineFile,
    seed=Seed,
    allow_code=AllowCode,
)
def check(
    *, name: str, kind: str | None, stage: str | None, oracle: bool, parts: str | None, **options: Any
) -> None:
    """Test a policy, encoder, reward or agent against the rules.

    Runs it on small random workloads full of corner cases. Prints one line on the checks that passed; an
    error, with exit code 2, is one line, too: a wrong shape or value, a look into the future, decisions that
    differ from run to run, state kept between episodes, a broken rule of scheduling.
    """
    from hpcsimkit.experiments.checks.by_name import checked, part_named
    from hpcsimkit.experiments.source import Source
    from hpcsimkit.kernel.watchdog import Watchdog

    code = allowed_code({"name": name, "parts": parts, **options})
    source = Source.of_flags({**options, "allow_code": code})
    with Watchdog():
        part = part_named(name, source.trust, kind, parts)
        say(checked(part, stage=stage, cluster=source.cluster, seed=source.seed, oracle=oracle))
