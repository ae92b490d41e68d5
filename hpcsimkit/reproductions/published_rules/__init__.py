"""Effects of published simulators' semantics on published numbers; no agent is trained.

``published_numbers`` holds the numbers of papers and read-me files, ``data`` the logs and the published
tests, ``rules`` schedulers that differ in one rule each, ``variants`` two components used only there,
``minimal_cases`` schedules small enough to be checked by hand, and ``runs`` the simulations. ``tables``,
``figures``, ``targets`` and ``conclusions`` write the results.
"""
