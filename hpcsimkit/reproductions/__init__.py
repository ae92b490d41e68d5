"""Reproductions of published experiments, from the logs to the tables: ``run reproduce SYSTEM LOG ...``.

Each paper has a folder, listed in ``papers``: its plan, its published numbers, its report as a template, and
at most two modules, ``figures`` and ``own``. ``plans`` make a reproduction from the folder, and
``reproduction_run`` performs its tasks. ``learners`` define agents and their training, ``sequences`` the
policies under test, ``scores`` the measured values, and ``rivals`` further baselines; ``cells``
and ``targets`` format the output. ``run.md.jinja`` completes a report with targets and provenance.
"""
