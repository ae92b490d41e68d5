"""Texts of the page on the semantics in force and on fair comparisons."""

from __future__ import annotations

__all__ = ["FAIR", "PROMISES", "RULES"]

RULES = """\
**EASY as published.** The simulator keeps to the job that the base scheduler has selected until that
starts, even if a better one arrives; time goes on event by event. The reservation of the blocked job is
made once and stays, whatever ends early. A job may start behind it if it is expected to end before the
reservation: not at the same second, and not on nodes that the blocked job leaves over. After a job that
is started, the next one is left out of that pass. Its WFP3 is inverted: it favours long jobs.

**The agent's rules are others.** The blocked job is selected anew at every event. Whenever two or more
waiting jobs fit the free nodes, one of them must be started: the agent says which, and is asked again
until one fits or none. An *unguarded* agent, which is the published one, may start any of them, however
long they take: nothing protects the blocked job, and the large negative reward that the paper speaks of
is not in its code. (A single job that fits is started only if it ends before the reservation, which is
made anew each time.) So the agent may do what EASY may not: delay the blocked job, put another one in its
place, and use the reservation of this moment. Whoever sits on its seat may do so, trained or not.

**Guarded** agents are offered only jobs that are expected to end before the reservation. **Penalty**
agents are offered all that fit, and pay 1 for each broken promise.

**Textbook EASY** selects the first job anew at every event and makes its reservation anew; it starts what
ends by then, or uses nodes that are left over. All events of a second are one."""

FAIR = """\
- An unguarded agent is to be compared with *shortest fitting first, unguarded* and with the *random
  agent*, who sit on its seat: what it gains over them has been learned. What they gain over published
  EASY comes from the rules.
- A guarded agent is to be compared with *shortest fitting first, guarded*, who sits on its seat, and with
  *textbook EASY, SJF candidates*, which delays no blocked job either.
- An unguarded agent that is below *textbook EASY, SJF candidates* may owe it to the promises that it
  breaks; the tables say how many.
- EASY-AR knows actual run times, and its order does too. Nobody else does."""

PROMISES = """\
**Promises.** When a job is blocked at the head of the queue for the first time, before anything is
started behind it, the start that it could have by requested times is its promise. It is broken if the job
starts later. It lapses if the order puts another job first. (As the logs are read here, no job outlives
its requested time.)"""
