"""RLScheduler (Zhang et al., SC 2020): an agent that chooses the next job from the queue.

:func:`~hpcsimkit.agents.rlscheduler.seat.scheduling_seat` opens the seat by the published rules. The encoder
is :class:`~hpcsimkit.agents.rlscheduler.encoder.WaitingJobs`, and ``settings.PUBLISHED`` has the training
settings.
"""
