"""DRAS (Fan et al., IEEE TPDS 2022) on public logs."""
