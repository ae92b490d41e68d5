"""Commands of the command line, one function each.

The commands parse their arguments and call the other packages. Slow imports are inside the command that needs
them. :mod:`hpcsimkit.run` registers the commands.
"""
