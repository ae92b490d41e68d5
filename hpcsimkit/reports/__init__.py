"""Figures of results and workloads, and HTML reports.

``plots``, ``time_plots`` and ``workload_plots`` draw on axes; ``gallery`` combines them into figures with
captions; ``report`` reads a results folder (``saved_results``) and writes one page; ``figures`` defines the
style. ``sweep`` reports the cells of a sweep.
"""
