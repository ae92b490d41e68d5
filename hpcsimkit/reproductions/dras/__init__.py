"""Reproduction of DRAS (Fan et al., IEEE TPDS 2022) on public logs.

``data`` holds the logs and their months, ``learners`` the agents and their training data, ``methods`` the
policies under test, ``runs`` the measurements, ``operation`` an agent that continues to learn, and
``overhead`` the processor times. ``statistics`` and ``published.toml`` support ``tables``, ``figures``,
``targets`` and ``report``, which write the results.
"""
