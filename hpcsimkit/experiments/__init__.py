"""Experiments, trainings and evaluations: their settings, their runs, and their results folders.

From bottom to top: `settings` is the form of TOML files and flags, `parts` finds policies and other parts by
name, `checks` examines user-defined ones, and `source` has the jobs and machines of any run. `comparison`
simulates policies, `training` trains agents, `evaluation` compares them with baselines, `sweep` runs all
combinations of several settings, and `learn` chooses a rule on the past of a log. `console` formats the
output on the terminal.
"""
