"""Texts of the page on policies, measurements and results."""

from __future__ import annotations

from hpcsimkit.agents.dras.settings import TRAINED, WINDOW
from hpcsimkit.experiments.console import grouped
from hpcsimkit.reports.figures import HOUR
from hpcsimkit.reproductions.dras import behaviour
from hpcsimkit.reproductions.dras.data import DAY, MONTH, Scale
from hpcsimkit.reproductions.dras.measured import Family, Measured
from hpcsimkit.reproductions.dras.methods import FCFS, OPTIMIZATION, OUTSIDE, SLOTS, family_of
from hpcsimkit.reproductions.dras.runs import REWARD
from hpcsimkit.reproductions.dras.statistics import LARGE

__all__ = [
    "BOXES",
    "CURVES",
    "DOTS",
    "GAIN",
    "KIVIAT",
    "LARGEST",
    "MODES",
    "ORDERED",
    "OVERHEAD",
    "QUICK",
    "TABLE_4",
    "TRAININGS",
    "WEEKS",
    "differences",
    "in_operation",
    "in_short",
    "like_fcfs",
    "method",
    "who_earns_most",
]

QUICK = (
    "**The quick version** (`--quick`): few agents that learn little. It shows that everything works; what "
    "it says about learning is not to be cited."
)

KIVIAT = (
    "Means over seeds, scaled by the best (1, at the rim) and the worst (0) of all methods on the log. "
    "Solid: with reservations and backfilling; dashed: without"
)

LARGEST = (
    f"The largest jobs are those that ask for {100 * LARGE:g} % of the nodes or more. The longest wait is "
    "one number of one job: read it together with the pictures."
)

DOTS = "A dot a job: its wait over its size, by how it started. Each panel has its own scale of waits"

BOXES = "Waits by how jobs started: quartiles, 5th and 95th percentile, mean (diamond) and longest (cross)"

MODES = (
    "*Ready*: it fitted when it was chosen. *Reserved*: it got the reservation first. *Backfilled*: it "
    "started behind a reserved one. Shares in per cent."
)

TABLE_4 = "The paper's shares are in italics beside ours. They are of Theta in 2018 and 2019."

CURVES = (
    "What agents earn in all on the month that nobody learns from, after each episode, taking the best "
    "action each time. Lines are means over seeds, bands reach from the least to the most. Horizontal: what "
    "others earn by the same reward, for each job when it is chosen."
)

ORDERED = (
    "DRAS-PG on the same job sets in other orders; *real only* plays the same weeks again and again, for as "
    "many decisions. In the paper the first order is the best. Here each has one seed: trainings differ as "
    "much by chance, as figure 6 shows."
)

TRAININGS = (
    "The paper: less than 3 hours to a model that is used. Rewards are what each agent is paid: equation 1 "
    "or 2, or minus the mean of a power of the wait. A round is an episode, but for agents that evolve."
)

WEEKS = "By week of submission: what is submitted, as a share of what the machine can do, and its waits"

OVERHEAD = (
    "Networks with random weights on random observations, one core: a decision among a full window, and an "
    "update from ten decisions. Medians of processor time. Sizes of layers are in proportion to the nodes, "
    "and the paper's on 4 360."
)

GAIN = (
    "The paper: DRAS is better than existing methods by up to 50 %, FCFS/EASY (its FCFS/B) has the lowest "
    "maximum wait but a high mean, DRAS-PPO is best overall."
)

DIFFERENCES = """\
- **Logs.** The paper's Theta log (2018 and 2019) and its Cori log are not public. Here: Theta in 2022, and
  HPC2N in the place of Cori, as a machine that runs many small jobs.
- **Size.** Theta's jobs and nodes are divided by ten and rounded up, and the networks with them, unless
  `--full` is given.
- **Learning.** Where the paper is silent, or its learners get nowhere, these are set otherwise: {otherwise}.
- **Equation 2** does not say what *t* is; here it is the requested time. Rewards of it are multiplied for
  learning by a number that makes them about 1.
- **Optimization** maximises the sum over the jobs that it starts, which is what a knapsack can do; the
  paper's averages would favour a single job. It, BinPacking and Random choose among the same 50 jobs as DRAS.
- **Decima-PG** may choose only jobs that fit, and stops when none does.
- **Best action.** The paper draws actions when it tests, too; here the best is taken, and rows *drawn* stand
  beside.
- **Which snapshot.** The paper tests the agent of the 50th episode; here that of the episode after which
  it earned most on the month to choose by."""


def differences() -> str:
    """Return the differences from the paper."""
    settings = (
        f"{family_of(algorithm)} {', '.join(f'{name} = {value}' for name, value in given.items())}"
        for algorithm, given in TRAINED.items()
    )
    return DIFFERENCES.format(otherwise="; ".join(settings))


def in_operation(update_every: int) -> str:
    """Return the text on the agents in operation; `update_every` is in scheduling instances."""
    return (
        "The best DRAS-PPO agent by the month to choose by. *Static*: it takes the best action and learns "
        "nothing more, as in all tables above. *Dynamic*: it draws its actions, as in training, and learns "
        f"from them every {update_every} scheduling instances, with an optimiser that begins anew. So that "
        "drawing is not taken for learning, *static, drawing* draws too, and learns nothing."
    )


def who_earns_most(log: Measured) -> str:
    """Return the sentences on the highest rewards and the shortest waits, which may differ."""
    rival = max(log.rewards, key=lambda name: log.rewards[name])
    waits = {name: family.spread("mean_wait_time").mean / HOUR for name, family in log.families.items()}
    earned = {name: family.spread(REWARD).mean for name, family in log.families.items()}
    most, shortest = max(earned, key=lambda name: earned[name]), min(waits, key=lambda name: waits[name])
    said = (
        f"Of the paper's learners {_leading(log)}: {log.best.validation:.1f}, each seed at its best episode; "
        f"of the others {rival}: {log.rewards[rival]:.1f}. **Is what is paid what is wanted?** On what is "
        f"tested on, {most} earns most ({earned[most]:.1f}), with a mean wait of {waits[most]:.2f} h"
    )
    if most == shortest:
        return f"{said}, which is the shortest."
    return (
        f"{said}; {shortest} has the shortest mean wait ({waits[shortest]:.2f} h), and earns "
        f"{earned[shortest]:.1f}."
    )


def in_short(log: Measured) -> str:
    """Return the summary of a log: the benefit of learning."""
    rule, optimal = log.families[FCFS], log.families[OPTIMIZATION]
    waits = {name: family.spread("mean_wait_time").mean / HOUR for name, family in log.families.items()}
    shortest = min(waits, key=lambda name: waits[name])
    return (
        f"**{log.trace.name}**: of the paper's learners {_leading(log)} on the month to choose by. With "
        f"FCFS/EASY jobs wait for {_waits(rule)}, with Optimization for {_waits(optimal)}, "
        f"{', '.join(f'with {family.name} for {_waits(family)}' for family in log.leaders)}. The shortest "
        f"mean wait of all, {waits[shortest]:.2f} h, has {shortest}."
        + "".join(f" Not the paper's: *{family.name}*, {_waits(family)}." for family in log.added_agents)
        + f" {beaten_by_rules(log)} {behaviour.verdict(log)}"
    )


def beaten_by_rules(log: Measured) -> str:
    """Return the heuristics outside the paper with both shorter mean and shorter maximum waits.

    They are compared with the agents' means over seeds.
    """
    found: dict[tuple[str, ...], list[str]] = {}
    for family in [*log.learned, *log.added_agents]:
        rules = tuple(name for name in OUTSIDE if name in log.families and _ahead(log.families[name], family))
        found.setdefault(rules, []).append(family.name)
    said = [f"with {', '.join(rules) or 'none'} than with {', '.join(who)}" for rules, who in found.items()]
    return (
        "Of the kit's heuristics that the paper leaves out, jobs wait less both in the mean and at most "
        f"{'; '.join(said)}."
    )


def _ahead(rule: Family, agents: Family) -> bool:
    measures = ("mean_wait_time", "max_wait_time")
    return all(rule.spread(each).mean < agents.spread(each).mean for each in measures)


def _leading(log: Measured) -> str:
    """Return the sentence on all learners with the highest validation reward."""
    *others, last = (family.name for family in log.leaders)
    return f"{', '.join(others)} and {last} earn most, all the same" if others else f"{last} earns most"


def _waits(family: Family) -> str:
    """Return the mean and maximum wait as text."""
    mean = family.spread("mean_wait_time").mean / HOUR
    longest = family.spread("max_wait_time").mean / DAY
    return f"{mean:.2f} h in the mean and {longest:.2f} d at most"


def same_starts(family: Family, rule: Family) -> list[float]:
    """Return the share of jobs that start at the same second, for each seed [%]."""
    return [
        100 * float((result.start_time == rule.shown.start_time).mean()) for result in family.results.values()
    ]


def like_fcfs(log: Measured) -> str:
    """Return the sentence on the similarity of the agents' schedules to FCFS/EASY's."""
    shares = {
        name: same_starts(family, log.families[FCFS])
        for name, family in log.families.items()
        if family.validations
    }
    words = "; ".join(
        f"{name} {', '.join(f'{share:.1f} %' for share in found)}" for name, found in shares.items()
    )
    return f"Jobs that start at the very second at which FCFS/EASY starts them, seed by seed: {words}."


def method(scale: Scale) -> list[str]:
    """Return the list items on the method."""
    parts = (
        f"**Parts of a log**, by months of {MONTH / DAY:g} days from the first submission: two to learn "
        "from, the third to choose the best agent by, all that is left to be tested on, in one run from an "
        "empty machine. Jobs are killed at the requested time."
    )
    agent = (
        f"**An agent** sees {WINDOW} jobs and all nodes. On level 1 it chooses who starts; who does not fit "
        "gets the reservation. On level 2 it chooses who is backfilled, until nobody can be. In tests it "
        "takes the best action."
    )
    learning = (
        f"**It learns** from {scale.sampled} sampled, all real and {scale.synthetic} synthetic job sets, "
        f"those that are made of {grouped(scale.jobs)} jobs each, one set an episode; the same sets for all "
        "agents of a log."
    )
    seeds = (
        f"**Seeds**: {scale.seeds} of each learner, {scale.decima_seeds} of Decima-PG. Tables have the mean, "
        "and the least and the most in parentheses."
    )
    added = (
        "*Not in the paper*, in italics: **SJF/EASY**, shortest requested time of all that wait first, with "
        "EASY that tries short jobs first; and on both levels, where the agent sits, **chance**, the "
        "**shortest** requested time, and the **largest** job (the oldest is FCFS/EASY). What an agent gains "
        "over chance has been learned; the rest comes from reservations and backfilling. **Constant slots** "
        f"({', '.join(map(str, SLOTS.values()))}, counted from 0) take the same place of the window each "
        "time; further heuristics of the kit are named order/backfilling. Learners whose scores stand for "
        "probabilities have rows in which they draw their actions."
    )
    agents = (
        "*Not in the paper* either are agents that are paid otherwise: minus the mean of a power of the "
        "wait, so that jobs wait little and none for very long. **DRAS-DQL, paid for short waits**, learns "
        "as DRAS-DQL does. The **evolved** agent has six weights for five numbers of a job, found by the "
        "cross-entropy method on the two months in one run, and the same seat on both levels. Of both the "
        "snapshot is tested that is best on all three months in one run: who starves shows there, and "
        "neither in a week nor in a quiet month. (With weeks and the quiet month one of three evolved agents "
        "let a job wait for 26 days on Theta's test part. That was seen, and the months in one run put in "
        "their place, before this page was printed.)"
    )
    paid = "**Paid** is equation 1 (age, size, use) on all logs but HPC2N, where it is equation 2."
    return [parts, agent, learning, seeds, paid, added, agents]
