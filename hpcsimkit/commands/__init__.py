"""The commands of the command line, one function each; what they do stands in the other rooms.

What loads slowly is imported by the command that needs it. :mod:`hpcsimkit.run` puts them together.
"""
