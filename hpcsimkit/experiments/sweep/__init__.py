"""Sweeps: all combinations of policies, logs, seeds, loads and other settings, on one store.

An axis is a setting with several values (:mod:`~hpcsimkit.experiments.sweep.axes`). A cell is one policy with
one combination of values (:mod:`~hpcsimkit.experiments.sweep.cell`). A run of a sweep performs the cells
without an outcome and writes one table of all (:mod:`~hpcsimkit.experiments.sweep.sweep_run`).
"""
