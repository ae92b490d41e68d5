"""Compare the kernel with a naive simulator of all features together, on any number of random small cases.

    $ python -m tests.kernel.together --seed 5 --cases 10000

Each cluster (nodes, machines, partitions, counted partitions) has as many cases. The number that agrees is printed
every 500 cases; the first case that differs is made smaller, and printed with its difference.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.kernel.test_together import KINDS, cases, check

STEP = 500


def compare(kind: str, number: int, count: int) -> None:
    """Compare both simulators on some cases of a kind of cluster; raise an AssertionError if they differ."""
    agreed = 0

    @seed(number)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        derandomize=False,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(data=st.data())
    def run(data: st.DataObject) -> None:
        nonlocal agreed
        check(data.draw(cases(kind)))
        agreed += 1
        if agreed % STEP == 0:
            print(f"{kind}: {agreed} cases agree", flush=True)

    try:
        run()
    finally:
        print(f"{kind}: seed {number}, {agreed} cases agreed", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Compare on each kind of cluster."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", type=int, default=10_000, help="number of cases of each kind of cluster")
    parser.add_argument("--kind", choices=KINDS, action="append", help="kinds of clusters; default: all")
    given_ = parser.parse_args(arguments)
    for kind in given_.kind or KINDS:
        compare(kind, given_.seed, given_.cases)


if __name__ == "__main__":
    main()
