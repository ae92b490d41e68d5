"""Papers as data: ``plan.toml`` and ``published.toml`` of a folder, made into a reproduction.

``plan`` holds the typed tables of both files, ``parts`` makes objects from them, ``logs`` splits the logs,
``comparisons`` makes the agents and the policies under test, and ``planned`` the reproduction with its
measurements, tables and targets.
"""
