"""RLBackfilling (Kolker-Hicks, Zhang and Dai, PMBS 2023), done again, with the rivals that the paper lacks.

``data`` are logs and sequences, ``learners`` agents, ``rivals`` who needs no training, ``contest`` who meets
on which sequences, ``draws`` runs of those who draw, ``noise`` what wrong estimates do (figure 1),
``published_numbers`` what the paper has; ``tables``, ``figures``, ``targets``, ``explanations`` and
``conclusions`` what comes out.
"""
