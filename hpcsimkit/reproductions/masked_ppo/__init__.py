"""Reproduction of the masked-PPO scheduler (joint choice of job and machine, K = 10) on Beocat's logs.

``data`` draws training sets and test days from the logs, ``learners`` defines the trained agents, and
``contest`` the policies under test. ``scores`` holds the measurements and their tests, ``findings`` the
tables, figures and targets; the paper's numbers are in ``published.toml``.
"""
