"""SchedInspector (Zhang, Dai and Xie, HPDC 2022), done again, with the rivals that the paper lacks.

``data`` are logs and sequences, ``learners`` agents and what each is for, ``contest`` who meets on which
sequences, ``published_numbers`` what the paper has; ``tables``, ``figures``, ``targets`` and ``conclusions``
what comes out.
"""
