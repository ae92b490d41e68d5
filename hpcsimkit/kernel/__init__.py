"""The simulation kernel: clock, system state, policies and observers."""
