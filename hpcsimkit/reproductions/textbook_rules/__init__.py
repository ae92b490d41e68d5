"""Inspectors and backfillers, alone and in pairs, against the best heuristics under textbook semantics.

``data`` holds logs and test sequences, ``seats`` the schedulers and their open seats, ``learners`` the
agents, alone and in pairs, and ``contest`` the policies under test. ``verdicts`` holds the statistics;
``tables``, ``figures``, ``targets`` and ``conclusions`` write the results.
"""
