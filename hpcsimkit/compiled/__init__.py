"""The compiled simulator: the rules of the kernel for plain pipelines and dispatches, as machine code.

:mod:`~hpcsimkit.compiled.support` decides which simulations it takes and runs them. Its other modules are
imported only then: they need numba (the extra ``[fast]``). SimPy remains the reference: every schedule is
equal to that of the kernel, job for job, or the simulation is not taken.
"""
