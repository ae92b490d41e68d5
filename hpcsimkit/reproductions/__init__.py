"""Published experiments, done again from the logs to the tables: ``run reproduce SYSTEM LOG ...``.

``tasks`` are pieces of work whose outcomes are kept as long as their ``identity`` is the same, ``pace`` says
how long they will take, ``learners`` are agents and how they are trained, ``sequences`` are what everybody
meets on; ``reproduction`` is what each system fills in, ``contests`` what those have in common that train
agents and let them meet their rivals, ``reproduction_run`` does it; ``logs`` is about what goes in,
``cells``, ``targets`` and ``page`` about what comes out. A folder a system, listed in ``catalogue``.
"""
