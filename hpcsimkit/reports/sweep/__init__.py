"""Report of a sweep: means with intervals, paired differences and average ranks, as tables and pictures.

``table`` reads the cells of a sweep; ``summaries`` computes from them, ``texts`` formats the numbers, and
``plots`` and ``pictures`` draw them; ``report`` writes a page, pictures, and tables as CSV and LaTeX.
"""
