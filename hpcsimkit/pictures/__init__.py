"""Pictures of results and workloads, and the page that holds them.

``plots``, ``time_plots`` and ``workload_plots`` draw on axes; ``gallery`` puts them into figures with their
captions; ``report`` reads a results folder (``saved_results``) and writes one page; ``figures`` is the style.
"""
