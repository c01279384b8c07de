package message

// Message is one of the types below.
type Message interface{ isMessage() }

// Proposal is a leader's: Msg(prepare, curProposal, highQC) of Algorithm 2, line 6, or
// Msg(generic, curProposal, nil) of Algorithm 3, line 11. The certificate is in the block.
type Proposal struct {
	Block *Block
	// Ancestors of the block that the sender keeps, oldest first: all of them if it does not
	// truncate, and none if it does.
	Ancestors []*Block
}

// Vote is voteMsg of Algorithm 1, lines 7 to 10.
type Vote struct {
	Phase     Phase
	View      View
	Block     Digest
	Signature []byte
}

// Announce reports a certificate. In the basic protocol those of a leader begin a phase: prepareQC
// the phase pre-commit, precommitQC commit, and commitQC decide (Algorithm 2, lines 14, 22, 30).
type Announce struct{ QC *QC }

// NewView says that its sender will not act in any view below View, and what it knows: prepareQC or
// genericQC (Algorithm 2, line 35; Algorithm 3, line 27).
type NewView struct {
	View   View
	HighQC *QC
	// CommitQC is the latest that the sender knows, in the basic protocol; or nil.
	CommitQC *QC
	// Ask has the receiver answer with its own: the sender waits.
	Ask bool
}

// Fetch asks for a block and those of its ancestors whose views are above Above.
type Fetch struct {
	Block Digest
	Above View
}

// Blocks answers Fetch: a part of a branch, oldest first. QC certifies the last one, and is nil if
// that is the block that was asked for.
type Blocks struct {
	Blocks []*Block
	QC     *QC
}

// Forward passes commands of clients on, which the sender waits for.
type Forward struct{ Commands []Command }

func (*Proposal) isMessage() {}
func (*Vote) isMessage()     {}
func (*Announce) isMessage() {}
func (*NewView) isMessage()  {}
func (*Fetch) isMessage()    {}
func (*Blocks) isMessage()   {}
func (*Forward) isMessage()  {}
