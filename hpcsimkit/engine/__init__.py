"""Engine of all commands that simulate or train: tasks, their store, and their parallel execution.

A command is a list of tasks (:mod:`~hpcsimkit.engine.task`). The function
:func:`~hpcsimkit.engine.runner.perform` performs those without an outcome in a store
(:mod:`~hpcsimkit.engine.store`) on an engine (:mod:`~hpcsimkit.engine.engines`): in this process, in worker
processes, or on a cluster.
"""
