"""CuSH (Domeniconi et al., DRL4KDD 2019), done again on generated job sets, and on files of them.

``data`` are job sets, ``learners`` agents and their trainings, ``methods`` who schedules, ``contest`` who
meets on which sets, ``runs`` and ``classes`` what is measured of it; ``measured`` and ``published_numbers``
are behind ``tables``, ``figures``, ``targets``, ``explanations`` and ``conclusions``: what comes out.
"""
