"""SchedInspector: an agent that can reject the scheduling decisions of a base scheduler, job by job.

(Zhang, Dai and Xie, HPDC 2022.) ``features`` is its encoder, ``whole_state`` the paper's alternative without
feature engineering; ``settings`` has the published training settings and environment.
"""
