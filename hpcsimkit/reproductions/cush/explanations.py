"""Texts of the page on policies, measurements and results."""

from __future__ import annotations

from hpcsimkit.agents.cush.problem import CushProblem
from hpcsimkit.agents.cush.taught import TaughtSettings
from hpcsimkit.agents.cush.trainer import CushSettings
from hpcsimkit.experiments.console import grouped
from hpcsimkit.reproductions.cush.data import Scale, title_of
from hpcsimkit.reproductions.cush.learners import FARTHER, FASTER, Learners
from hpcsimkit.reproductions.cush.measured import Measured
from hpcsimkit.reproductions.cush.methods import (
    BEST_ALLOCATION,
    CUSH,
    EVOLVED,
    EVOLVED_IN_SIGHT,
    EVOLVED_ON_ALL,
    FRESH,
    IN_SIGHT,
    RAND,
    TAUGHT,
)
from hpcsimkit.reproductions.cush.published_numbers import GAINS

__all__ = [
    "CURVES",
    "GIVEN",
    "HORIZONS",
    "IN_SHORT",
    "LENGTHS",
    "ON_LEARNED",
    "ON_UNSEEN",
    "PENALTIES",
    "PLACEMENTS",
    "QUICK",
    "SIZES",
    "TRAININGS",
    "WAYS",
    "differences",
    "in_short",
    "method",
]

QUICK = (
    "**The quick version** (`--quick`): Sierra only, one agent of each kind, few epochs on few job sets. It "
    "shows that everything works. **Its agents have hardly learned anything**: no number of theirs is to be "
    "cited."
)

ON_LEARNED = (
    f"**On the job sets that {CUSH} was trained on**, which is probably what the paper's table is about: it "
    "has ten, and speaks of no others. Here each seed has its own; its agent is measured on those, all "
    "others on those of all seeds, whatever they have learned from. *Rewards* is the mean of what "
    "decisions were worth to a job selector, whoever takes them. Rows in italics are not in the paper. Of "
    "agents of several seeds there are the mean, and the least and the most in parentheses."
)

ON_UNSEEN = (
    "**On job sets that nobody was trained on**: does it hold for others? Every agent is measured on all of "
    "them. Below the table those who have learned are compared, set by set and in the mean of all seeds, "
    f"with the best heuristic row of the paper, with {BEST_ALLOCATION}, which places each job as suits it "
    "and learns nothing, and with the best of the kit's other heuristics."
)

IN_SHORT = (
    "Of all who learn the NTAT, and by how much it is above or below that of the best heuristic of the "
    f"paper, that of {BEST_ALLOCATION} and that of the best other heuristic of the kit on the same job sets; "
    "* below for sure, by both tests that are described below."
)

WAYS = (
    "CuSH's two selectors draw what they do while they learn (those who are taught, what the teacher leaves "
    "to them). Afterwards they may go on to draw, or take "
    "what is most probable. Both were tried on job sets that are in no other table; the way with the lower "
    "mean NTAT is the one that all tables and pictures are about."
)

CURVES = (
    "Means of each epoch's simulations, in which actions are drawn; lines are means over seeds and short "
    "stretches of epochs, bands reach from the least to the most. Horizontal: heuristics on the job sets "
    f"that {CUSH} learns from. {FRESH} and {TAUGHT} play others in each epoch: their lines are not "
    "about the same jobs. In the first fifth of the epochs a teacher takes part of the decisions of "
    f"{TAUGHT}, which is not paid rewards."
)

LENGTHS = (
    "Jobs by requested time: short 1 to 5 steps, medium short to 10, medium long to 15, long to 20. Of the "
    "heuristics means of depth- and breadth-first"
)

PLACEMENTS = "Which share of the jobs of each kind is placed how while CuSH learns (drawn)"

PENALTIES = (
    "Locality penalty on unseen job sets, by the larger of a job's shares of all CPUs and all GPUs: small to "
    "25 %, medium small to 50 %, medium large to 75 %, large above"
)

SIZES = (
    f"Sierra with fewer nodes, or more, and {CUSH} trained on each for less long than above, with one seed. "
    "Selectors are shown with the allocation that is better for them. Below 1 they are better than CuSH, "
    "which the paper says of SJF on 16 nodes only."
)

HORIZONS = (
    f"On Sierra, {CUSH} trained for less long than above, with one seed. The heuristic knows all that was "
    "requested: it is the same in all rows, and shows what is due to the job sets. "
    f"*{EVOLVED_IN_SIGHT}* sees as far as CuSH does."
)

TRAININGS = (
    "One process each. NTAT is the mean of all simulations in the first and in the last tenth of the epochs, "
    "on the job sets learned from. Of who evolves, decisions stand in place of epochs. "
    f"The time of {TAUGHT} includes the evolution of the teacher, who takes most of the decisions of the "
    "first tenth."
)

GIVEN = (
    "The job sets of a file, beside table 1. **Sets may have been selected to match the table** (as those "
    "that this kit is tested with were): then nearness shows that schedules and metrics are what they should "
    f"be, and not that the paper's demands are known. {RAND} draws anew at each decision; its numbers are "
    "means over several runs. Agents have not learned from these sets."
)

DIFFERENCES = """\
- **Job sets and penalties.** The paper says neither what jobs ask for nor what penalties are, in numbers.
  Those used here were fitted to the heuristics' rows of its table 1: **a substitute, not the authors' data**.
  What CuSH can gain over heuristics depends on them.
- **Epochs.** The paper trains for {published} epochs on 12 GPUs; here it is {epochs}, in one process. So that
  the policy selector gets as far, it learns with {faster} times the paper's rate.
- **Waiting jobs** are drawn with 1 and their waiting time, {unit:g} steps of which count as one, and not with
  their waiting time alone: a job that has just arrived would look like an empty slot.
- **The policy selector** is paid minus the penalty; by the paper's text it would be paid the penalty.
- **The baseline** of a step is the mean over all simulations of a job set at that step, as the text has it;
  by algorithm 1 it would be the mean over the steps of one simulation.
- **Batch normalisation** goes by what was seen in epochs before (with a teacher, in steps before), alike
  while playing and while learning."""


def differences(scale: Scale) -> str:
    """Return the differences from the paper."""
    return DIFFERENCES.format(
        published=grouped(CushSettings().epochs),
        epochs=grouped(scale.epochs),
        faster=FASTER,
        unit=CushProblem.wait_unit,
    )


def method(scale: Scale) -> list[str]:
    """Return the list items on the method."""
    problem, learners = CushProblem(), Learners(scale, seed=0)
    published = learners.published
    jobs = (
        f"**The problem**: {problem.jobs} jobs a set, all submitted within 10 steps, and {problem.nodes} "
        f"nodes, any of which together may run a job. Of the {problem.slots} that have waited longest one "
        "that fits now is selected, and placed on as few nodes as possible (DF) or on as many (BF); nobody "
        "blocks anybody. Heuristics select among the same jobs."
    )
    cush = (
        f"**{CUSH}**: {scale.epochs} epochs, each of {scale.simulations} simulations of {scale.job_sets} job "
        f"sets, the same ones all the time; learning rates {published.learning_rate:g} and "
        f"{published.style_learning_rate:g}, discount {published.gamma:g}. Seeds: {scale.seeds}."
    )
    fresh = (
        f"*{FRESH}*: a network that sees {FARTHER} steps instead of {problem.horizon}, with other job sets "
        "in each epoch, all of which count alike (what a decision was worth above the expected is divided by "
        f"the root mean square of that in its job set). Seeds: {scale.fresh_seeds}."
    )
    taught = TaughtSettings(epochs=scale.taught_epochs)
    by_teacher = (
        f"*{TAUGHT}*: the same network, seeing as far, with {taught.job_sets} other job sets in each of "
        f"{taught.epochs} epochs. First an agent evolves for it, like *{EVOLVED_IN_SIGHT}* but with "
        f"{FARTHER} steps in sight; that teacher says in each state by how much it scores each action lower "
        f"than the best, and the job selector learns to lose less of it. Seeds: {scale.taught_seeds}."
    )
    evolved = (
        f"*{EVOLVED}*: a few weights on the job selector's seat, found by the cross-entropy method; each job "
        f"is placed as suits it. Seeds: {scale.evolved_seeds}."
    )
    best = (
        f"*{BEST_ALLOCATION}*: compute-bound jobs depth-first, network-bound ones breadth-first. What is "
        "below it was gained by selecting jobs."
    )
    in_sight = (
        f"*{IN_SIGHT}*: the same, but all jobs of more than {problem.horizon} steps are alike, as they are "
        "in the picture that CuSH sees. Who selects by the length of jobs can know no more."
    )
    evolved_in_sight = (
        f"*{EVOLVED_IN_SIGHT}*: the same agent, for whom whatever takes more than {problem.horizon} steps, "
        "of waiting and of running jobs, takes as many: how far it gets with what CuSH sees. "
        f"Seeds: {scale.evolved_seeds}."
    )
    outside = (
        f"*Rivals that the paper leaves out*: SJF that selects among ten jobs or all of them, instead of "
        f"{problem.slots}; EASY, which reserves for the first job that does not fit and lets none behind it "
        f"delay it, behind an order of the {problem.slots} oldest jobs or of all; and conservative "
        "backfilling. EASY and conservative backfilling look at the whole queue, which CuSH does not see."
    )
    on_all = (
        f"*{EVOLVED_ON_ALL}*: like *{EVOLVED}*, with all {problem.jobs} jobs in slots; "
        f"{grouped(scale.whole_queue_steps)} decisions. Seeds: {scale.whole_queue_seeds}."
    )
    ntat = (
        "**NTAT** is (wait + service) / service, the penalty of the placement being part of the service. "
        "Waits are in steps."
    )
    return [jobs, cush, fresh, by_teacher, evolved, evolved_in_sight, on_all, best, in_sight, outside, ntat]


def in_short(learned: Measured, unseen: Measured) -> str:
    """Return the sentences on the baselines of a system."""
    system = unseen.problem.system
    return (
        f"**{title_of(system)}** (the paper: CuSH {GAINS[system]:g} % below the best heuristic). On "
        f"{learned.sets} job sets that {CUSH} was trained on, {_rivals(learned)}; on {unseen.sets} others, "
        f"{_rivals(unseen)}. {outside_the_box(unseen)}"
    )


def outside_the_box(unseen: Measured) -> str:
    """Return the comparison of agents with the best heuristic with access to the whole queue, by means."""
    rival = unseen.best_outside
    below = [family for family in unseen.learned if unseen.mean(family) < unseen.mean(rival)]
    inside = [family for family in below if family != EVOLVED_ON_ALL]
    slots = unseen.problem.slots
    if not inside:
        said = f"No agent that selects among {slots} jobs is below {rival}"
    else:
        said = f"Of the agents that select among {slots} jobs, {' and '.join(inside)} are below {rival}"
    if EVOLVED_ON_ALL not in unseen.learned:
        return f"{said}."
    beside = "is below it" if EVOLVED_ON_ALL in below else "is not below it either"
    return f"{said}; {EVOLVED_ON_ALL}, with {unseen.mean(EVOLVED_ON_ALL):.2f}, {beside}."


def _rivals(measured: Measured) -> str:
    best, allocation = measured.mean(measured.best), measured.mean(BEST_ALLOCATION)
    return (
        f"the best heuristic of the paper is {measured.best} with an NTAT of {best:.2f}, {BEST_ALLOCATION} "
        f"has {allocation:.2f}, and {measured.best_outside} has {measured.mean(measured.best_outside):.2f}"
    )
