"""Published experiments, done again from the logs to the tables: ``run reproduce SYSTEM LOG ...``.

``tasks`` are pieces of work whose outcomes are kept, ``pace`` says how long they will take, ``learners`` are
agents and how they are trained; ``reproduction`` is what each system fills in, ``reproduction_run`` does it;
``targets`` and ``page`` are what comes out. A folder a system, listed in ``catalogue``.
"""
