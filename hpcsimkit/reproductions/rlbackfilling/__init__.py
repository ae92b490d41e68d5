"""Reproduction of RLBackfilling (Kolker-Hicks, Zhang and Dai, PMBS 2023), with additional baselines.

``data`` holds logs and sequences, ``learners`` the trained agents, ``rivals`` the baselines without training,
``contest`` the policies under test on each set of sequences, ``draws`` repeated runs of stochastic policies,
``noise`` the effect of inaccurate estimates (figure 1), and ``published_numbers`` the paper's numbers.
``tables``, ``figures``, ``targets``, ``explanations`` and ``conclusions`` write the results.
"""
