"""From an experiment to a results folder.

``experiment`` says what to simulate: flags, TOML and what is saved are one ``checked_table``; what it says of
machines is made ``on_machines``. ``campaign`` simulates it, policy by policy (``runs``), in worker processes
if asked (``processes``), into a ``results_folder``; ``console`` is what the terminal shows of it.
"""
