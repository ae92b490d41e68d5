"""CuSH (Domeniconi et al., DRL4KDD 2019) done again, on generated job sets and on job sets from files."""
