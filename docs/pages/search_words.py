"""Words that people search for, by the page that they want: index entries, which the search ranks first."""

from __future__ import annotations

WORDS: dict[str, tuple[str, ...]] = {
    "notebooks/index": ("jupyter", "notebook", "notebooks", "colab", "binder", "ipython"),
    "tutorials/first_simulation": ("quickstart", "getting started", "first steps"),
    "tutorials/own_scheduler": ("own scheduler", "own policy", "write a policy", "priority function"),
    "tutorials/pipeline": ("pipeline", "stages"),
    "tutorials/write_a_backfiller": ("backfiller", "write a backfiller", "backfilling"),
    "tutorials/gpu_cluster": ("gpu", "gpus", "heterogeneous", "memory"),
    "tutorials/placement_matters": ("locality", "topology"),
    "tutorials/train_a_scheduler": ("train", "reinforcement learning", "ppo", "agent"),
    "tutorials/own_observation_and_reward": ("reward", "rewards", "observation", "encoder", "own reward"),
    "tutorials/masked_ppo": ("action mask", "masking"),
    "tutorials/a_week_with_failures": ("checkpoint", "checkpoints"),
    "guides/own_log": ("swf", "log", "logs", "trace", "traces", "validate"),
    "guides/slurm_log": ("sacct", "slurm log", "accounting"),
    "guides/your_cluster_in_an_afternoon": ("own cluster", "slurm", "scontrol"),
    "guides/when_will_my_job_start": ("start time", "squeue", "queue time", "advise"),
    "guides/is_the_difference_real": ("significance", "p-value", "confidence interval", "wilcoxon"),
    "guides/paper_figures": ("figures", "latex", "gantt", "plot", "plots"),
    "guides/sweeps": ("sweep", "sweeps", "grid", "parameter study"),
    "guides/from_a_laptop_to_a_cluster": ("dask", "parallel", "workers"),
    "guides/open_seats": ("seat", "seats", "open seat", "decision"),
    "guides/parts_of_your_own": ("plug-in", "plugin", "entry points"),
    "guides/failures_and_preemption": ("failures", "preemption", "failure log"),
    "guides/dependencies_and_licences": ("dependencies", "licences", "licenses", "job array"),
    "guides/maintenance_and_reservations": ("maintenance", "calendar", "reservation"),
    "guides/other_libraries": (
        "gymnasium",
        "stable-baselines3",
        "cleanrl",
        "rllib",
        "tianshou",
        "pettingzoo",
    ),
    "guides/track_trainings": ("tensorboard", "wandb", "mlflow", "optuna"),
    "guides/experiment_files": ("toml", "experiment file"),
    "guides/results_folder": ("results folder", "provenance", "csv", "parquet"),
    "reference/slurm": ("fair share", "fairshare", "multifactor", "qos", "slurm.conf", "priority"),
    "reference/semantics": ("semantics", "tie", "easy backfilling", "conservative backfilling"),
    "reference/metrics": ("bounded slowdown", "slowdown", "utilisation", "utilization", "wait time"),
    "reference/cli": ("command line", "options", "exit code"),
    "reference/trust": ("security", "untrusted", "allow-code"),
    "reference/limits": ("limits", "maximum size"),
    "reference/policies": ("policies", "sjf", "fcfs", "heuristics"),
    "background/speed": ("speed", "performance", "numba", "compiled"),
    "background/other_simulators": ("accasim", "batsim", "alea", "other simulators"),
    "faq": ("faq", "questions"),
}


def with_words(page: str, source: str) -> str:
    """Return the source of a page of Markdown with its index entries below the heading."""
    words = WORDS.get(page, ())
    if not words:
        return source
    heading, _, rest = source.partition("\n")
    entries = "\n".join(f"   ! single: {word}" for word in words)
    return f"{heading}\n\n```{{eval-rst}}\n.. index::\n{entries}\n```\n{rest}"
