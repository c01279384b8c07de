package quorum

import (
	"slices"

	"assay.dev/assay/systems/basil/internal/auth"
	"assay.dev/assay/systems/basil/internal/wire"
)

// Checker validates votes and certificates.
type Checker struct {
	Layout
	*auth.Verifier
}

// votes counts the distinct replicas of a shard with a signed vote in v. It stops after need votes,
// because signatures are the most expensive part of the protocol.
func (c *Checker) votes(id wire.TxID, v *wire.ShardVotes, need int) bool {
	statement := wire.VoteStatement(id, v.Vote)
	seen := make(map[uint16]bool, len(v.Proofs))
	for i := range v.Proofs {
		p := &v.Proofs[i]
		if int(p.Replica)/c.N != int(v.Shard) || seen[p.Replica] || !c.Verify(p, statement) {
			continue
		}
		seen[p.Replica] = true
		if len(seen) >= need {
			return true
		}
	}
	return false
}

// justifies reports whether votes support decision for tx: every participating
// shard with at least commit commit votes, or one with abort abort votes.
func (c *Checker) justifies(tx *wire.Tx, d wire.Decision, votes []wire.ShardVotes, commit, abort int) bool {
	shards := tx.Shards(c.ShardOf)
	switch d {
	case wire.Commit:
		for _, s := range shards {
			ok := false
			for i := range votes {
				ok = ok || int(votes[i].Shard) == s && votes[i].Vote == wire.Commit &&
					c.votes(tx.ID(), &votes[i], commit)
			}
			if !ok {
				return false
			}
		}
		return len(shards) > 0
	case wire.Abort:
		for _, s := range shards {
			for i := range votes {
				if int(votes[i].Shard) == s && votes[i].Vote == wire.Abort && c.votes(tx.ID(), &votes[i], abort) {
					return true
				}
			}
		}
	}
	return false
}

// Loggable reports whether the votes of an ST2 allow its decision (slow path).
func (c *Checker) Loggable(m *wire.ST2) bool {
	return c.justifies(m.Tx, m.Decision, m.Votes, c.CommitSlow, c.AbortSlow)
}

// ValidConflict reports whether k proves that tx cannot commit.
func (c *Checker) ValidConflict(tx *wire.Tx, k *wire.Conflict) bool {
	return k != nil && k.Cert.Conflict == nil && k.Cert.Decision == wire.Commit &&
		conflicts(tx, k.Tx) && c.ValidCert(k.Tx, k.Cert)
}

// ValidCert reports whether cert decides tx.
func (c *Checker) ValidCert(tx *wire.Tx, cert *wire.Cert) bool {
	switch {
	case cert.Conflict != nil:
		return cert.Decision == wire.Abort && c.ValidConflict(tx, cert.Conflict)
	case len(cert.Votes) > 0:
		return c.justifies(tx, cert.Decision, cert.Votes, c.CommitFast, c.AbortFast)
	case len(tx.Shards(c.ShardOf)) == 0:
		return false
	case len(cert.Seen) > 0:
		return c.validSeen(tx, cert)
	}
	shard := c.Logging(tx)
	seen := make(map[uint16]bool, len(cert.Log))
	for i := range cert.Log {
		v := &cert.Log[i]
		r := wire.ST2R{ID: tx.ID(), Decision: cert.Decision, ViewDecision: cert.View, ViewCurrent: v.ViewCurrent}
		if c.ShardOfReplica(int(v.Proof.Replica)) == shard && !seen[v.Proof.Replica] && c.Verify(&v.Proof, r.Statement()) {
			seen[v.Proof.Replica] = true
		}
	}
	return len(seen) >= c.Log
}

// validSeen reports whether f+1 replicas of one participating shard, hence a correct one, have seen
// a certificate for the decision.
func (c *Checker) validSeen(tx *wire.Tx, cert *wire.Cert) bool {
	shard := c.ShardOfReplica(int(cert.Seen[0].Replica))
	if !slices.Contains(tx.Shards(c.ShardOf), shard) {
		return false
	}
	statement := wire.SeenStatement(tx.ID(), cert.Decision)
	seen := make(map[uint16]bool, len(cert.Seen))
	for i := range cert.Seen {
		p := &cert.Seen[i]
		if c.ShardOfReplica(int(p.Replica)) == shard && !seen[p.Replica] && c.Verify(p, statement) {
			seen[p.Replica] = true
		}
	}
	return len(seen) >= c.Vouch
}

// Claims collects Seen statements about one transaction.
type Claims struct{ proofs map[claim][]wire.Proof }

type claim struct {
	shard    int
	decision wire.Decision
}

// Add returns a certificate once f+1 replicas of a shard have made the same claim.
func (k *Claims) Add(c *Checker, m *wire.Seen) *wire.Cert {
	key := claim{c.ShardOfReplica(int(m.Proof.Replica)), m.Decision}
	for i := range k.proofs[key] {
		if k.proofs[key][i].Replica == m.Proof.Replica {
			return nil
		}
	}
	if !c.Verify(&m.Proof, wire.SeenStatement(m.ID, m.Decision)) {
		return nil
	}
	if k.proofs == nil {
		k.proofs = map[claim][]wire.Proof{}
	}
	k.proofs[key] = append(k.proofs[key], m.Proof)
	if len(k.proofs[key]) < c.Vouch {
		return nil
	}
	return &wire.Cert{Decision: m.Decision, Seen: k.proofs[key]}
}

// ValidElection reports whether the votes in m make its leader the leader of m.View. The majority
// of the electors must have logged m.Decision.
func (c *Checker) ValidElection(shard int, m *wire.DecFB) bool {
	if int(m.Proof.Replica) != c.Leader(shard, m.ID, m.View) || !c.Verify(&m.Proof, m.Statement()) {
		return false
	}
	seen := make(map[uint16]bool, len(m.Elects))
	commits := 0
	for i := range m.Elects {
		e := &m.Elects[i]
		if e.ID != m.ID || e.View != m.View || seen[e.Proof.Replica] ||
			c.ShardOfReplica(int(e.Proof.Replica)) != shard || !c.Verify(&e.Proof, e.Statement()) {
			return false
		}
		seen[e.Proof.Replica] = true
		if e.Decision == wire.Commit {
			commits++
		}
	}
	return len(seen) >= c.Elect && Majority(commits, len(seen)) == m.Decision
}

// Majority returns the decision of more than half of voters. An even number of voters can tie. Then
// no decision has a log quorum, so both are safe, and Majority returns an abort.
func Majority(commits, voters int) wire.Decision {
	if 2*commits > voters {
		return wire.Commit
	}
	return wire.Abort
}

// Warm verifies the signatures in m that its receiver is sure to need, ahead of the state machine
// and from any goroutine. Only the cache remembers the outcome.
func (c *Checker) Warm(m wire.Message) {
	switch m := m.(type) {
	case *wire.ReadReply:
		c.Verify(&m.Proof, m.Statement)
	case *wire.ST1R:
		c.Verify(&m.Proof, m.Statement())
	case *wire.ST2R:
		c.Verify(&m.Proof, m.Statement())
	case *wire.ElectFB:
		c.Verify(&m.Proof, m.Statement())
	case *wire.ST2:
		c.Loggable(m)
	case *wire.Writeback:
		c.ValidCert(m.Tx, m.Cert)
	}
}
