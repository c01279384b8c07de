----------------------------- MODULE Succession -----------------------------
\* Which pods may have a name in a run whose faults replace pods, as ADR 29 has it.
\*
\* Pods come and go as they like. A manager that sees one that is not in the record
\* writes it there, if a fault plans one more, and only then lets its agent speak.
\* Fenced = FALSE lets it write without the version that it has read.
EXTENDS Naturals, FiniteSets

CONSTANTS Managers, Planned, Pods, Fenced

VARIABLES
  pod,      \* that has the name now; 1 was there at t = 0
  record,   \* on the API server: version, and the pods that have had the name
  read,     \* the record as each manager has read it
  served    \* pods whose agents were let in since t = 0

vars == <<pod, record, read, served>>

Init ==
  /\ pod = 1
  /\ record = [version |-> 0, pods |-> {1}]
  /\ read = [m \in Managers |-> [version |-> 0, pods |-> {1}]]
  /\ served = {1}

\* Somebody deletes the pod, and its StatefulSet makes another.
Replace ==
  /\ pod < Pods
  /\ pod' = pod + 1
  /\ UNCHANGED <<record, read, served>>

\* A manager reads the record, as one does that takes over, too.
Read(m) ==
  /\ read' = [read EXCEPT ![m] = record]
  /\ UNCHANGED <<pod, record, served>>

\* It accepts the pod that it sees, if a fault plans one more.
Accept(m) ==
  /\ pod \notin read[m].pods
  /\ Cardinality(read[m].pods) <= Planned
  /\ ~Fenced \/ read[m].version = record.version
  /\ record' = [version |-> record.version + 1, pods |-> read[m].pods \cup {pod}]
  /\ read' = [read EXCEPT ![m] = record']
  /\ UNCHANGED <<pod, served>>

\* It lets the agent of a pod speak that is in the record which it has read or written.
Serve(m) ==
  /\ pod \in read[m].pods
  /\ served' = served \cup {pod}
  /\ UNCHANGED <<pod, record, read>>

Next == Replace \/ \E m \in Managers : Read(m) \/ Accept(m) \/ Serve(m)

Spec == Init /\ [][Next]_vars

\* No more pods have a name than faults plan, and none speaks that is not written down.
Places == Cardinality(served) <= 1 + Planned
Written == served \subseteq record.pods
Bounded == record.version <= 4
=============================================================================
