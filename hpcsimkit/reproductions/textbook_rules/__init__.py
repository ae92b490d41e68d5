"""Does learning beat the best heuristic by the textbook's rules? No paper has asked; here everybody meets.

``data`` are logs and sequences, ``seats`` schedulers and their open seats, ``learners`` agents, alone and in
pairs, ``contest`` who meets; ``verdicts`` is the statistics, ``tables``, ``figures``, ``targets`` and
``conclusions`` what comes out.
"""
