------------------------------- MODULE Grants -------------------------------
\* Grants, release and take-over, as ADR 33 has them. All trials want one pool.
\*
\* Managers are not told apart by a lease: any number act at once, each by a cache
\* that is behind, and die at any step. What they write goes to the API server under
\* the version that they have read; Fenced = FALSE takes that away, and TLC must then
\* find two trials in one pool.
EXTENDS Naturals, FiniteSets

CONSTANTS Managers, Trials, Fenced

VARIABLES
  trial,   \* on the API server, each with its version
  grants,  \* the ConfigMap: version and names
  cache,   \* of each manager
  step,    \* of each manager's pass of admission
  read,    \* the grants that a pass has read, and what it makes of them
  told     \* the instants t = 0 that agents were told, by trial

vars == <<trial, grants, cache, step, read, told>>

New == [admitted |-> FALSE, complete |-> FALSE, zero |-> 0, version |-> 0]
Nothing == [version |-> 0, names |-> {}]

Init ==
  /\ trial = [t \in Trials |-> New]
  /\ grants = Nothing
  /\ cache = [m \in Managers |-> [t \in Trials |-> New]]
  /\ step = [m \in Managers |-> "idle"]
  /\ read = [m \in Managers |-> Nothing]
  /\ told = [t \in Trials |-> {}]

\* A manager writes a trial's status, as it has it in its cache, but for a change.
Write(m, t, new) ==
  /\ ~Fenced \/ cache[m][t].version = trial[t].version
  /\ trial' = [trial EXCEPT ![t] = [new EXCEPT !.version = trial[t].version + 1]]

\* The cache hears of a trial.
Hear(m, t) ==
  /\ cache[m][t] # trial[t]
  /\ cache' = [cache EXCEPT ![m][t] = trial[t]]
  /\ UNCHANGED <<trial, grants, step, read, told>>

\* A pass reads the grants past the cache.
Read(m) ==
  /\ step[m] = "idle"
  /\ read' = [read EXCEPT ![m] = grants]
  /\ step' = [step EXCEPT ![m] = "decide"]
  /\ UNCHANGED <<trial, grants, cache, told>>

\* Grants of trials that the cache calls complete are dropped: completion is final.
Kept(m) == {t \in read[m].names : ~cache[m][t].complete}
Holders(m) == Kept(m) \cup {t \in Trials : cache[m][t].admitted /\ ~cache[m][t].complete}

Grant(m, t) ==
  /\ step[m] = "decide"
  /\ Holders(m) = {}
  /\ ~cache[m][t].admitted /\ ~cache[m][t].complete
  /\ IF Fenced => read[m].version = grants.version
       THEN /\ grants' = [version |-> grants.version + 1, names |-> Kept(m) \cup {t}]
            /\ read' = [read EXCEPT ![m] = grants']
            /\ step' = [step EXCEPT ![m] = "tell"]
       ELSE /\ step' = [step EXCEPT ![m] = "idle"]
            /\ UNCHANGED <<grants, read>>
  /\ UNCHANGED <<trial, cache, told>>

\* Somebody has a grant: he is told, by whichever manager finds it.
Found(m) ==
  /\ step[m] = "decide"
  /\ Kept(m) # {}
  /\ step' = [step EXCEPT ![m] = "tell"]
  /\ UNCHANGED <<trial, grants, cache, read, told>>

Tell(m, t) ==
  /\ step[m] = "tell"
  /\ t \in Kept(m) /\ ~cache[m][t].admitted
  /\ Write(m, t, [cache[m][t] EXCEPT !.admitted = TRUE])
  /\ step' = [step EXCEPT ![m] = "idle"]
  /\ UNCHANGED <<grants, cache, read, told>>

Rest(m) ==
  /\ step[m] # "idle"
  /\ step' = [step EXCEPT ![m] = "idle"]
  /\ UNCHANGED <<trial, grants, cache, read, told>>

\* t = 0 is another number in each manager's attempt.
Release(m, t) ==
  /\ cache[m][t].admitted /\ cache[m][t].zero = 0 /\ ~cache[m][t].complete
  /\ \E zero \in {1, 2} : Write(m, t, [cache[m][t] EXCEPT !.zero = zero])
  /\ UNCHANGED <<grants, cache, step, read, told>>

\* Agents are told what the status says, and nothing that is not written.
Direct(m, t) ==
  /\ cache[m][t].zero # 0
  /\ told' = [told EXCEPT ![t] = @ \cup {cache[m][t].zero}]
  /\ UNCHANGED <<trial, grants, cache, step, read>>

Complete(m, t) ==
  /\ cache[m][t].zero # 0 /\ ~cache[m][t].complete
  /\ Write(m, t, [cache[m][t] EXCEPT !.complete = TRUE])
  /\ UNCHANGED <<grants, cache, step, read, told>>

\* A manager dies. Its successor begins with what is there.
TakeOver(m) ==
  /\ step' = [step EXCEPT ![m] = "idle"]
  /\ cache' = [cache EXCEPT ![m] = trial]
  /\ UNCHANGED <<trial, grants, read, told>>

Next ==
  \E m \in Managers :
    \/ Read(m) \/ Found(m) \/ Rest(m) \/ TakeOver(m)
    \/ \E t \in Trials : Hear(m, t) \/ Grant(m, t) \/ Tell(m, t) \/ Release(m, t) \/ Direct(m, t) \/ Complete(m, t)

Spec == Init /\ [][Next]_vars

\* No pool is held by two.
OnePool == Cardinality({t \in Trials : trial[t].admitted /\ ~trial[t].complete}) <= 1

\* All agents of a trial go by one t = 0.
OneZero == \A t \in Trials : Cardinality(told[t]) <= 1

\* Without versions the counters have no bound.
Bounded == \A t \in Trials : trial[t].version <= 4 /\ grants.version <= 4
=============================================================================
