"""Reproduction of SchedInspector (Zhang, Dai and Xie, HPDC 2022), with baselines that the paper lacks.

``data`` holds logs and sequences, ``learners`` the trained agents and their figures, ``contest`` the policies
under test on each set of sequences, and ``published_numbers`` the paper's numbers. ``tables``, ``figures``,
``targets`` and ``conclusions`` write the results.
"""
