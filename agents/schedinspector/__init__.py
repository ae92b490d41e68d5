"""SchedInspector: an agent that may hold the job which the order has selected.

(Zhang, Dai and Xie, HPDC 2022.) ``features`` is what it sees, ``whole_state`` what the paper compares that
with, ``settings`` how it is trained and on what.
"""
