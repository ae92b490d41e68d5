"""Texts of the page on policies, training and statistics."""

from __future__ import annotations

from hpcsimkit.experiments.console import grouped
from hpcsimkit.policies.dirlab import MAX_INTERVAL, MAX_REJECTIONS
from hpcsimkit.reproductions.textbook_rules.contest import EASY_PLUS_PLUS, RIVALS, row
from hpcsimkit.reproductions.textbook_rules.data import JOBS, Scale
from hpcsimkit.reproductions.textbook_rules.seats import SLOTS
from hpcsimkit.reproductions.textbook_rules.tables import LESS, MORE

__all__ = ["COLUMNS", "CURVES", "GLANCE", "JUDGED", "PICTURE", "PROMISES", "QUICK", "TYPICAL", "method"]

QUICK = (
    "**The quick version** (`--quick`): little learning, few sequences, agents on SJF only. It shows that "
    "everything works; what it says about learning is not to be cited."
)

GLANCE = (
    "Mean bounded slowdown on jobs that nobody has learned from, relative to the better heuristic of the log "
    f"({' or '.join(RIVALS)}, *rival*). {LESS}: less than the rival for sure. {MORE}: more for sure. Without "
    "a mark it may be chance. In italics: who has learned. The last column counts the marks."
)

TYPICAL = (
    "Means of bounded slowdowns are decided by the few sequences in which jobs wait long. The geometric mean "
    "of the ratios, sequence by sequence, says what happens on a typical one (with its 95 % interval; 1 is "
    "the rival):"
)

PICTURE = (
    "A dot a sequence, left of the line: less than the better heuristic. Diamonds: geometric means with "
    "their 95 % intervals. Green and red: less and more for sure, blue: learned, grey: not"
)

JUDGED = (
    f"**Judged**: on sequences of {JOBS} jobs of the rest of the log, side by side, so that no job is in two "
    "of them; everybody meets the same ones, each on an empty machine. Differences are taken sequence by "
    "sequence. p-values are of the paired t-test and of Wilcoxon's signed-rank test, two-sided, corrected by "
    "Holm's method for all learned rows of the log (for the other rows, among themselves). *For sure* means: "
    "both are below 0.05, and mean and most sequences agree."
)

COLUMNS = (
    "*ratio*: geometric mean of the ratios to the rival. *below : above*: sequences with less than the "
    "rival, and with more; on the others both have the same. A star: p below 0.05."
)

PROMISES = (
    "When the first job of the queue is blocked, its reservation promises it a start. Broken are promises to "
    "jobs that started later. EASY keeps them as long as nobody passes the blocked job; under SJF and F1 a "
    "new job may, and an inspector that holds jobs breaks promises by its own hand."
)

CURVES = (
    "What a sequence was paid, round by round: -1 is what the heuristic of the same order has, 0 would be a "
    "bounded slowdown of 0. Over decisions, for those who learn together over sequences."
)


def method(scale: Scale) -> list[str]:
    """Return the list items on the policies under test and their training."""
    rivals = (
        f"**The rivals**: {' and '.join(RIVALS)}: jobs in the order of SJF (or F1, a formula fitted to "
        "simulations), and EASY backfilling that tries short jobs first; by requested times, which is all "
        "that a scheduler knows. The better one of a log is picked by its mean on the very sequences that "
        "all are tested on: the choice favours the rival, never an agent."
    )
    inspector = (
        "**An inspector** may hold the job that the rival is about to start: it is asked again when "
        f"something changes, {MAX_INTERVAL} s later at the latest, and {MAX_REJECTIONS} times at most. It "
        "sees the seven features of SchedInspector, and the eighth: how many jobs could be backfilled."
    )
    backfiller = (
        "**A backfiller** chooses among the jobs that EASY admits, or starts none of them: it cannot delay "
        f"the blocked job. It sees what RLBackfilling's agent sees, of {SLOTS} jobs, weighs the six columns "
        "(seven weights, found by the cross-entropy method), and begins as the rival: shortest first."
    )
    both = (
        f"**Both**, on {scale.orders[0].upper()}: *in turn*, the inspector learns while the trained "
        "backfiller sits on its seat; *together*, both learn from the sequences that they play together."
    )
    paid = (
        "Inspectors are paid while jobs wait, in sum (heuristic - agent) / max(heuristic, agent, 1) of the "
        "mean bounded slowdown, less 1; the heuristic is that of the same order. The last agent of a "
        "training is the one that is tested: no test sequence has chosen it. Agents draw their actions, or, "
        "*greedy*, take the best one."
    )
    of_orders = " or ".join(
        f"{grouped(steps)} (on {order.upper()})" for order, steps in scale.backfiller_steps.items()
    )
    learned = (
        f"**Learned from**: the first fifth of each log, in sequences of {JOBS} jobs: "
        f"{grouped(scale.inspector_steps)} decisions an inspector, {of_orders} a backfiller, "
        f"{grouped(scale.together_sequences)} sequences who learns together. Behind F1, which has the small "
        "and short jobs first, EASY seldom admits two jobs at once: there is hardly anything to choose."
    )
    settings = (
        "**Settings**: what an inspector sees and how it learns was chosen on KTH-SP2 and Lublin-2, the jobs "
        "that nobody learns from among them; a backfiller's settings on KTH-SP2. A column of one of these "
        "logs is not quite clean."
    )
    others = (
        f"For information: EASY that tries jobs in their order, {EASY_PLUS_PLUS} (first come, first served, "
        "predicted run times), and who answers by chance. The order of SJF has short jobs first already: "
        f"*{row('sjf', 'EASY')}* and *{RIVALS[0]}* are the same scheduler."
    )
    return [rivals, inspector, backfiller, both, paid, learned, settings, others]
