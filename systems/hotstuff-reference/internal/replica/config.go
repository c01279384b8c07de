// Package replica is a replica of HotStuff as a state machine. Its input are messages and the end
// of its timer. Its output are messages, settings of the timer, and the log. It has no clock, no
// goroutine and no randomness. Chained and basic HotStuff share everything but their phases:
//
//	replica.go    what goes in; execution
//	basic.go      Algorithm 2
//	chained.go    Algorithm 3, with update of Algorithm 4
//	safety.go     safeNode; which votes a replica casts, and what certificates it accepts
//	pacemaker.go  views: how replicas leave and enter them, and who leads
//	leader.go     what a leader proposes; votes
//	fetch.go      blocks that a replica has missed
//	tree.go       blocks; commands.go: commands that wait or have been executed
//
// Algorithms and lines are those of Yin et al., arXiv:1803.05069, the full version of the paper of
// PODC 2019.
//
// # Model
//
// n = 3f+1 replicas, of which f may be Byzantine. Channels are authenticated, as in Section 3 of
// the paper: the caller of Handle names the true sender of a message. A replica keeps its state in
// memory. A replica that has lost it counts as faulty from then on.
//
// # Memory
//
// Limits bounds the waiting commands, the uncommitted data, and the kept part of the log. All other
// data is a fixed number of values for each replica of the group. Limits cannot bound empty blocks:
// there is one for each view without a commit, of some hundred bytes.
package replica

import (
	"fmt"
	"time"

	"assay.dev/assay/systems/hotstuff-reference/internal/message"
)

// Protocol is one of the two protocols.
type Protocol int

// The protocols: Algorithm 3 and Algorithm 2.
const (
	Chained Protocol = iota
	Basic
)

// Sizes of a group.
type Sizes struct {
	N, F   int
	Quorum int // votes of a certificate: n-f
}

// SizesFor n replicas, of which f = (n-1)/3 may be faulty.
func SizesFor(n int) Sizes {
	f := (n - 1) / 3
	return Sizes{N: n, F: f, Quorum: n - f}
}

// Scheme makes and checks signatures for one replica.
type Scheme interface {
	// Sign returns this replica's share (tsign).
	Sign(text []byte) []byte
	// Combine makes one signature from shares (tcombine); signers ascend. If some shares are wrong,
	// it returns their signers and no signature.
	Combine(text []byte, signers []uint16, shares [][]byte) (signature []byte, wrong []uint16)
	// Verify checks a combined signature (tverify). The caller has checked that signers are
	// distinct replicas.
	Verify(text []byte, signers []uint16, signature []byte) bool
}

// Limits of a replica's memory. Zero values stand for the defaults.
type Limits struct {
	// Waiting commands, and their bytes; further ones are rejected. Default 1,000,000 and 256 MiB.
	Commands, CommandBytes int
	// Clients whose executed commands are remembered. A replica forgets the client that has been
	// silent for longest, and executes a repeated command of that client again. Default 1,000,000.
	// All replicas must have the same value.
	Clients int
	// BlockBytes of a block at most. Default 8 MiB. All replicas must have the same value.
	BlockBytes int
	// OpenBytes of uncommitted blocks. Beyond them, replicas propose and vote for only empty
	// blocks. Default 256 MiB.
	OpenBytes int
	// LogBlocks and LogBytes of the log are kept for replicas that have missed them. A replica that
	// has missed more cannot catch up, and counts as faulty. Default 10,000 and 256 MiB.
	LogBlocks, LogBytes int
	// MessageBytes of blocks in an answer to Fetch, and of ancestors in a proposal. Default 16 MiB.
	MessageBytes int
}

func (l Limits) withDefaults() Limits {
	for _, d := range []struct {
		value     *int
		otherwise int
	}{
		{&l.Commands, 1_000_000}, {&l.CommandBytes, 256 << 20}, {&l.Clients, 1_000_000},
		{&l.BlockBytes, 8 << 20}, {&l.OpenBytes, 256 << 20}, {&l.LogBlocks, 10_000},
		{&l.LogBytes, 256 << 20}, {&l.MessageBytes, 16 << 20},
	} {
		if *d.value == 0 {
			*d.value = d.otherwise
		}
	}
	return l
}

// Config of a replica. All but ID, Scheme and the times must be the same for all of a group.
type Config struct {
	ID int // from 0
	Sizes
	Protocol Protocol
	// Tenure is for how many views in a row one replica leads; 1 is round-robin. A failed view ends
	// its leader's tenure.
	//
	// Chained HotStuff commits a block when three views in a row have certificates, and the leader
	// of the next view makes the certificate of a view. So four views in a row must have working
	// leaders. With four replicas, one silent replica and a tenure of 1 there never are four, and
	// no block is committed. A lying leader may also spoil the next one's tenure, by sending its
	// last block to only a few replicas. With a tenure of 4 or more, two working leaders in a row
	// are enough, and if n > 3f there are two.
	Tenure int
	// BatchSize is how many commands a block has at most; 0: no limit but Limits.BlockBytes.
	BatchSize int
	// Truncate leaves a block's ancestors out of the proposal. Otherwise the proposal has all kept
	// ancestors, as if the program's blocks held their parents by value. A replica that lacks some
	// fetches them.
	Truncate bool
	// Filter leaves commands out of a proposal that are in its unexecuted ancestors. Otherwise they
	// are proposed again until they are executed.
	Filter bool
	// Timeout is how long a replica waits in a view before it leaves the view. It doubles with each
	// view in a row that is left without a commit, up to MaxTimeout.
	Timeout, MaxTimeout time.Duration
	Scheme              Scheme
	// Rules of safeNode, of which at least one must hold: SafeNodeRules.
	Rules  []Rule
	Limits Limits
}

// Check rejects a configuration that cannot work.
func (c *Config) Check() error {
	switch {
	case c.N < 1 || c.N > 1000 || c.F < 0 || c.Quorum < 1 || c.Quorum > c.N:
		return fmt.Errorf("%d replicas, of which %d may be faulty; want 1 to 1000", c.N, c.F)
	case c.ID < 0 || c.ID >= c.N:
		return fmt.Errorf("replica %d; want 0 to %d", c.ID, c.N-1)
	case c.Tenure < 1:
		return fmt.Errorf("a tenure of %d views; want 1 or more", c.Tenure)
	case c.BatchSize < 0:
		return fmt.Errorf("a batch of %d commands; want 1 or more, or 0 for no limit", c.BatchSize)
	case c.Timeout <= 0 || c.MaxTimeout < c.Timeout:
		return fmt.Errorf("a timeout of %v up to %v; want more than 0, ascending", c.Timeout, c.MaxTimeout)
	}
	return nil
}

// Env has the operations of a replica. The replica calls them only within a call of one of its
// methods.
type Env interface {
	// Send a message to another replica. It may be lost.
	Send(to int, m message.Message)
	// SetTimer makes Timeout be called once, after d, and cancels the earlier setting; 0: not at
	// all.
	SetTimer(d time.Duration)
	// Commit appends a block to the log. executed has those of its commands that have not been
	// executed before, in their order.
	Commit(b *message.Block, executed []message.Command)
}

// Counters of a replica since its start.
type Counters struct {
	Blocks, EmptyBlocks uint64 // committed
	Commands            uint64 // executed
	Repeated            uint64 // commands in committed blocks that had been executed before
	Proposed            uint64 // blocks, by this replica
	ViewsLeft           uint64 // because of the timer, or because other replicas left them
	Fetched             uint64 // blocks
	Refused             uint64 // commands, because there was no room
	WrongShares         uint64 // signatures of votes
}
