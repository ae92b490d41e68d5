"""Reproduction of CuSH (Domeniconi et al., DRL4KDD 2019) on generated job sets, and on job sets from files.

``data`` holds the job sets, ``learners`` the agents and their trainings, ``methods`` and ``contest`` the
policies under test on each collection of job sets, and ``runs`` and ``classes`` the measurements.
``measured`` and ``published_numbers`` support ``tables``, ``figures``, ``targets``, ``explanations`` and
``conclusions``, which write the results.
"""
