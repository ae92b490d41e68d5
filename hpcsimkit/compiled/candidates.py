"""The order of the candidates of backfilling, where it is another than that of the queue."""

from __future__ import annotations

from hpcsimkit.compiled.compilation import machine_code
from hpcsimkit.compiled.fair_shares import Shares, minus_priority, value_usage
from hpcsimkit.compiled.listing import Listing, sort
from hpcsimkit.compiled.machines import Machines
from hpcsimkit.compiled.scores import score
from hpcsimkit.compiled.state import Jobs, Rules, Run


@machine_code
def sort_candidates(
    jobs: Jobs,
    run: Run,
    rules: Rules,
    machines: Machines | None,
    listing: Listing,
    shares: Shares | None,
    count: int,
    now: int,
) -> None:
    """Sort the first `count` listed jobs in the order of the candidates; mirrors ``Order.sort``.

    `shares` are those of the listing, an argument of their own so that numba drops what they do not need.
    """
    if shares is not None and count:
        value_usage(shares, run, machines, now)
    for position in range(count):
        row = listing.rows[position]
        if shares is not None:
            listing.scores[position] = minus_priority(shares, jobs, row, now)
        else:
            listing.scores[position] = score(
                jobs, run.estimate[row], rules.candidates, row, now, jobs.weight[1]
            )
    sort(listing, count)
