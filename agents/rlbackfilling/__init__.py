"""RLBackfilling (Kolker-Hicks, Zhang & Dai, PMBS 2023): an agent that backfills behind a blocked job.

:func:`~hpcsimkit.agents.rlbackfilling.seat.backfilling_seat` opens the seat in one of three modes. The
encoder is :class:`~hpcsimkit.agents.rlbackfilling.encoder.Candidates`, the reward
:class:`~hpcsimkit.agents.rlbackfilling.reward.TimelyImprovement`, and ``settings.PUBLISHED`` has the training
settings.
"""
