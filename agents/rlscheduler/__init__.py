"""RLScheduler (Zhang et al., SC 2020): an agent chooses which waiting job is next.

:func:`~hpcsimkit.agents.rlscheduler.seat.scheduling_seat` opens the seat by the published rules,
:class:`~hpcsimkit.agents.rlscheduler.encoder.WaitingJobs` is what the agent sees, and
``settings.PUBLISHED`` how it learns.
"""
