"""When will waiting jobs start? Futures of a running cluster.

``run_times`` and ``arrivals`` draw unknown run times and submissions from the past of the log, ``futures``
simulates from a time on, and ``windows`` makes intervals of the start times and calibrates them at earlier
times of the log.
"""
