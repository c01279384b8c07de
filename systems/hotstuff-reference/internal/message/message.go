package message

// Message is one of the types below.
type Message interface{ isMessage() }

// Proposal is the message of a leader: Msg(prepare, curProposal, highQC) of Algorithm 2, line 6, or
// Msg(generic, curProposal, nil) of Algorithm 3, line 11. The certificate is in the block.
type Proposal struct {
	Block *Block
	// Ancestors of the block that the sender keeps, oldest first. If the sender truncates, there
	// are none.
	Ancestors []*Block
}

// Vote is voteMsg of Algorithm 1, lines 7 to 10.
type Vote struct {
	Phase     Phase
	View      View
	Block     Digest
	Signature []byte
}

// Announce reports a certificate. In the basic protocol a leader's certificate begins a phase:
// prepareQC begins pre-commit, precommitQC begins commit, and commitQC begins decide (Algorithm 2,
// lines 14, 22, 30).
type Announce struct{ QC *QC }

// NewView says that its sender will not act in any view below View. It has the sender's prepareQC
// or genericQC (Algorithm 2, line 35; Algorithm 3, line 27).
type NewView struct {
	View   View
	HighQC *QC
	// CommitQC is the latest that the sender knows, in the basic protocol, or nil.
	CommitQC *QC
	// Ask makes the receiver answer with its own NewView, for which the sender waits.
	Ask bool
}

// Fetch asks for a block and for its ancestors with views above Above.
type Fetch struct {
	Block Digest
	Above View
}

// Blocks answers Fetch with a part of a branch, oldest first. QC certifies the last block. It is
// nil if that is the requested block.
type Blocks struct {
	Blocks []*Block
	QC     *QC
}

// Forward passes on commands of clients, for which the sender waits.
type Forward struct{ Commands []Command }

func (*Proposal) isMessage() {}
func (*Vote) isMessage()     {}
func (*Announce) isMessage() {}
func (*NewView) isMessage()  {}
func (*Fetch) isMessage()    {}
func (*Blocks) isMessage()   {}
func (*Forward) isMessage()  {}
