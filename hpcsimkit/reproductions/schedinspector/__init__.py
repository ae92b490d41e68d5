"""Reproduction of SchedInspector (Zhang, Dai and Xie, HPDC 2022), with baselines that the paper lacks."""
