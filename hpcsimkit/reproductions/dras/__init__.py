"""DRAS (Fan et al., IEEE TPDS 2022), done again on public logs.

``data`` are logs and their months, ``learners`` agents and what they learn from, ``methods`` who schedules,
``runs`` what is measured of it, ``operation`` an agent that keeps learning, ``overhead`` how long all of it
takes; ``statistics`` and ``published_numbers`` are behind ``tables``, ``figures``, ``targets`` and
``conclusions``, which are what comes out.
"""
