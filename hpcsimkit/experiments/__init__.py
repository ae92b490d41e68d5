"""Experiments, trainings and evaluations: their settings, their runs, and their results folders.

``experiment`` has the settings, a ``checked_table`` read from flags or TOML; ``on_machines`` constructs the
objects that depend on machines. ``campaign`` simulates the policies (``runs``), optionally in worker
``processes``, and writes a ``results_folder``; ``console`` formats the output on the terminal.
"""
