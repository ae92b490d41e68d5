"""RLBackfilling (Kolker-Hicks, Zhang & Dai, PMBS 2023): an agent chooses what starts behind a blocked job.

:func:`~hpcsimkit.agents.rlbackfilling.seat.backfilling_seat` opens the seat in one of three modes,
:class:`~hpcsimkit.agents.rlbackfilling.encoder.Candidates` is what the agent sees,
:class:`~hpcsimkit.agents.rlbackfilling.reward.TimelyImprovement` what it is paid, and
``settings.PUBLISHED`` how it learns.
"""
