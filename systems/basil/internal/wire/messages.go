package wire

// Message is any message between two processes.
type Message interface {
	kind() uint8
	encode(e *Encoder)
	decode(d *Decoder)
}

// Kinds on the wire. Numbers are never reused.
const (
	kindReadReq uint8 = iota + 1
	kindReadReply
	kindST1
	kindST1R
	kindST2
	kindST2R
	kindWriteback
	kindInvokeFB
	kindElectFB
	kindDecFB
	kindFetch
	kindBody
	kindPull
	kindPullReply
	kindPing
	kindPong
	kindSeen
)

func newMessage(kind uint8) Message {
	switch kind {
	case kindReadReq:
		return &ReadReq{}
	case kindReadReply:
		return &ReadReply{}
	case kindST1:
		return &ST1{}
	case kindST1R:
		return &ST1R{}
	case kindST2:
		return &ST2{}
	case kindST2R:
		return &ST2R{}
	case kindWriteback:
		return &Writeback{}
	case kindInvokeFB:
		return &InvokeFB{}
	case kindElectFB:
		return &ElectFB{}
	case kindDecFB:
		return &DecFB{}
	case kindFetch:
		return &Fetch{}
	case kindBody:
		return &Body{}
	case kindPull:
		return &Pull{}
	case kindPullReply:
		return &PullReply{}
	case kindPing:
		return &Ping{}
	case kindPong:
		return &Pong{}
	case kindSeen:
		return &Seen{}
	}
	return nil
}

// Marshal appends m to buf.
func Marshal(buf []byte, m Message) []byte {
	e := Encoder{b: buf}
	e.U8(m.kind())
	m.encode(&e)
	return e.b
}

// Unmarshal decodes exactly one message. The result has parts of b.
func Unmarshal(b []byte) (Message, error) {
	d := NewDecoder(b)
	m := newMessage(d.U8())
	if m == nil {
		return nil, ErrMalformed
	}
	m.decode(d)
	if err := d.End(); err != nil {
		return nil, err
	}
	return m, nil
}

// ReadReq asks for the versions of Keys that a transaction at TS sees
// (Section 4.1). Req lets the client match the answer.
type ReadReq struct {
	Req  uint64
	TS   Timestamp
	Keys []Key
}

// ReadStatus says whether a read was served.
type ReadStatus uint8

const (
	// ReadOK: Rows answers every key.
	ReadOK ReadStatus = iota
	// ReadTooNew: the timestamp is further in the future than the replica's bound.
	ReadTooNew
	// ReadTooOld: the versions that the timestamp needs may be truncated.
	ReadTooOld
)

// VersionKind is the kind of proof of a committed version.
type VersionKind uint8

const (
	// Genesis needs no proof: every process computes the same initial value.
	Genesis VersionKind = iota
	// Settled is older than the retention window. Its certificate is gone, and f+1 replicas must
	// vouch for it.
	Settled
	// Certified comes with its transaction and C-CERT.
	Certified
)

// Row is a replica's answer for one key: the newest committed version before the reader's
// timestamp. If a prepared version is newer, Row has it, too.
type Row struct {
	Kind     VersionKind
	Version  Timestamp
	Value    []byte
	Writer   TxID // for Certified
	Prepared *PreparedRow
}

// PreparedRow is a tentative version.
type PreparedRow struct {
	Version Timestamp
	Value   []byte
	Writer  TxID
}

// ReadReply answers a ReadReq. The replica signs Statement; the attached certificates have their
// own proofs.
type ReadReply struct {
	Statement []byte
	Proof     Proof
	Attached  []Conflict

	Req    uint64
	Status ReadStatus
	Rows   []Row
}

// ST1 carries a transaction to every replica of every participating shard. It is also the recovery
// message RP: a replica answers with the most recent step that it knows.
type ST1 struct{ Tx *Tx }

// ST1R is a vote. Conflict optionally proves an abort. Blocker names the
// undecided transaction that caused an abort; it is a hint and not signed.
type ST1R struct {
	ID       TxID
	Vote     Decision
	Proof    Proof
	Conflict *Conflict
	Blocker  *Dep
}

// ST2 asks the replicas of the logging shard to make a decision durable.
type ST2 struct {
	Tx       *Tx
	Decision Decision
	Votes    []ShardVotes
}

// ST2R is a logged decision.
type ST2R struct {
	ID           TxID
	Decision     Decision
	ViewDecision uint32
	ViewCurrent  uint32
	Proof        Proof
}

// Writeback distributes a decision. It is also the answer to a question about a decided
// transaction.
type Writeback struct {
	Tx   *Tx
	Cert *Cert
}

// InvokeFB starts the fallback: the signed views justify the change to a new view.
type InvokeFB struct {
	ID    TxID
	Views []ST2R
}

// ElectFB is a replica's vote for the leader of a view, with its decision.
type ElectFB struct {
	ID       TxID
	Decision Decision
	View     uint32
	Proof    Proof
}

// DecFB is the leader's reconciled decision with the votes that elected it.
type DecFB struct {
	ID       TxID
	Decision Decision
	View     uint32
	Proof    Proof
	Elects   []ElectFB
}

// Fetch asks for transactions by identity. The answer is a Writeback for a decided one, and a Body
// for one that is only known.
type Fetch struct{ IDs []TxID }

// Body is a transaction whose identity proves its content.
type Body struct{ Tx *Tx }

// Pull asks a peer which transactions it decided since position Since of the log that started with
// Epoch. It is signed, because it also states that its sender knows everything before Since.
type Pull struct {
	Epoch uint64
	Since uint64
	Proof Proof
}

// Seen is a replica's statement that it saw a certificate for a decision and has truncated it.
type Seen struct {
	ID       TxID
	Decision Decision
	Proof    Proof
}

// Decided is one entry of a replica's list of decided transactions.
type Decided struct {
	ID TxID
	TS Timestamp
}

// PullReply answers Pull.
type PullReply struct {
	Epoch   uint64
	Next    uint64
	Entries []Decided
}

// Ping asks the other end of a connection for a Pong: a machine that vanished
// sends no reset, so silence is the only sign.
type Ping struct{}

// Pong answers Ping.
type Pong struct{}
