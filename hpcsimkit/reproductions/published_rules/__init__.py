"""What the rules of published simulators do to published numbers; nobody learns anything here.

``published_numbers`` is what papers and read-me files have, ``data`` the logs and the published tests,
``rules`` schedulers that differ in one rule each, ``variants`` the two parts that only these need,
``minimal_cases`` schedules small enough to be checked by hand, ``runs`` what is simulated; ``tables``,
``figures``, ``targets`` and ``conclusions`` what comes out.
"""
