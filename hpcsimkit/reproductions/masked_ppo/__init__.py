"""The masked-PPO scheduler (job and machine chosen at once, K = 10) on Beocat's logs.

``data`` draws training sets and days from the logs, ``learners`` says who is trained, ``contest`` who meets
on the days; ``scores`` and ``statistics`` are what comes out; ``conclusions``, ``tables``, ``figures`` and
``targets`` say it.
"""
