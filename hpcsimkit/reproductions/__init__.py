"""Reproductions of published experiments, from the logs to the tables: ``run reproduce SYSTEM LOG ...``.

``reproduction`` is the base class, ``contests`` that of reproductions that train agents and compare them with
baselines, and ``reproduction_run`` performs their tasks. ``learners`` define agents and their training,
``sequences`` the job sequences for comparisons, and ``logs`` the input; ``cells`` and ``targets`` format the
output. Each system has a folder, listed in ``catalogue``, with its report as a template, ``report.md.jinja``;
``run.md.jinja`` completes it with targets and provenance.
"""
