package wire

func (*ReadReq) kind() uint8   { return kindReadReq }
func (*ReadReply) kind() uint8 { return kindReadReply }
func (*ST1) kind() uint8       { return kindST1 }
func (*ST1R) kind() uint8      { return kindST1R }
func (*ST2) kind() uint8       { return kindST2 }
func (*ST2R) kind() uint8      { return kindST2R }
func (*Writeback) kind() uint8 { return kindWriteback }
func (*InvokeFB) kind() uint8  { return kindInvokeFB }
func (*ElectFB) kind() uint8   { return kindElectFB }
func (*DecFB) kind() uint8     { return kindDecFB }
func (*Fetch) kind() uint8     { return kindFetch }
func (*Body) kind() uint8      { return kindBody }
func (*Pull) kind() uint8      { return kindPull }
func (*PullReply) kind() uint8 { return kindPullReply }
func (*Ping) kind() uint8      { return kindPing }
func (*Pong) kind() uint8      { return kindPong }
func (*Seen) kind() uint8      { return kindSeen }

func (m *ReadReq) encode(e *Encoder) {
	e.U64(m.Req)
	e.Time(m.TS)
	// Keys of a scan are consecutive: differences take one byte each.
	prev := Key(0)
	putList(e, m.Keys, func(e *Encoder, k *Key) { e.U64(uint64(*k - prev)); prev = *k })
}

func (m *ReadReq) decode(d *Decoder) {
	m.Req, m.TS = d.U64(), d.Time()
	prev := Key(0)
	m.Keys = getList(d, func(d *Decoder, k *Key) { prev += Key(d.U64()); *k = prev })
}

// Seal encodes the signed part of the reply into Statement.
func (m *ReadReply) Seal() {
	e := Encoder{}
	e.U8(kindReadReply)
	e.U64(m.Req)
	e.U8(uint8(m.Status))
	putList(&e, m.Rows, func(e *Encoder, r *Row) {
		e.U8(uint8(r.Kind))
		if r.Kind != Genesis {
			e.Time(r.Version)
			e.Blob(r.Value)
		}
		if r.Kind == Certified {
			e.Hash(r.Writer)
		}
		if r.Prepared == nil {
			e.U8(0)
			return
		}
		e.U8(1)
		e.Time(r.Prepared.Version)
		e.Blob(r.Prepared.Value)
		e.Hash(r.Prepared.Writer)
	})
	m.Statement = e.Bytes()
}

func (m *ReadReply) unseal() bool {
	d := NewDecoder(m.Statement)
	if d.U8() != kindReadReply {
		return false
	}
	m.Req, m.Status = d.U64(), ReadStatus(d.U8())
	m.Rows = getList(d, func(d *Decoder, r *Row) {
		r.Kind = VersionKind(d.U8())
		d.bad = d.bad || r.Kind > Certified
		if r.Kind != Genesis {
			r.Version, r.Value = d.Time(), d.Blob()
		}
		if r.Kind == Certified {
			r.Writer = d.Hash()
		}
		switch d.U8() {
		case 0:
		case 1:
			r.Prepared = &PreparedRow{Version: d.Time(), Value: d.Blob(), Writer: d.Hash()}
		default:
			d.bad = true
		}
	})
	return d.End() == nil && m.Status <= ReadTooOld
}

func (m *ReadReply) encode(e *Encoder) {
	e.Blob(m.Statement)
	putProof(e, &m.Proof)
	putList(e, m.Attached, func(e *Encoder, c *Conflict) { putTx(e, c.Tx); putCert(e, c.Cert) })
}

func (m *ReadReply) decode(d *Decoder) {
	m.Statement = d.Blob()
	getProof(d, &m.Proof)
	m.Attached = getList(d, func(d *Decoder, c *Conflict) { c.Tx = getTx(d); c.Cert = getCert(d, 1) })
	d.bad = d.bad || !m.unseal()
}

func (m *ST1) encode(e *Encoder) { putTx(e, m.Tx) }
func (m *ST1) decode(d *Decoder) { m.Tx = getTx(d) }

func (m *ST1R) encode(e *Encoder) {
	e.Hash(m.ID)
	e.U8(uint8(m.Vote))
	putProof(e, &m.Proof)
	putConflict(e, m.Conflict)
	if m.Blocker == nil {
		e.U8(0)
		return
	}
	e.U8(1)
	e.Hash(m.Blocker.ID)
	e.U64(uint64(m.Blocker.Key))
	e.Time(m.Blocker.Version)
}

func (m *ST1R) decode(d *Decoder) {
	m.ID, m.Vote = d.Hash(), d.Decision()
	getProof(d, &m.Proof)
	m.Conflict = getConflict(d, 0)
	switch d.U8() {
	case 0:
	case 1:
		m.Blocker = &Dep{ID: d.Hash(), Key: Key(d.U64()), Version: d.Time()}
	default:
		d.bad = true
	}
}

func (m *ST2) encode(e *Encoder) {
	putTx(e, m.Tx)
	e.U8(uint8(m.Decision))
	putList(e, m.Votes, putShardVotes)
}

func (m *ST2) decode(d *Decoder) {
	m.Tx, m.Decision = getTx(d), d.Decision()
	m.Votes = getList(d, getShardVotes)
}

func putST2R(e *Encoder, m *ST2R) { m.encode(e) }
func getST2R(d *Decoder, m *ST2R) { m.decode(d) }

func (m *ST2R) encode(e *Encoder) {
	e.Hash(m.ID)
	e.U8(uint8(m.Decision))
	e.U64(uint64(m.ViewDecision))
	e.U64(uint64(m.ViewCurrent))
	putProof(e, &m.Proof)
}

func (m *ST2R) decode(d *Decoder) {
	m.ID, m.Decision = d.Hash(), d.Decision()
	m.ViewDecision, m.ViewCurrent = d.U32(), d.U32()
	getProof(d, &m.Proof)
}

func (m *Writeback) encode(e *Encoder) { putTx(e, m.Tx); putCert(e, m.Cert) }
func (m *Writeback) decode(d *Decoder) { m.Tx, m.Cert = getTx(d), getCert(d, 0) }

func (m *InvokeFB) encode(e *Encoder) {
	e.Hash(m.ID)
	putList(e, m.Views, putST2R)
}

func (m *InvokeFB) decode(d *Decoder) {
	m.ID = d.Hash()
	m.Views = getList(d, getST2R)
}

func putElect(e *Encoder, m *ElectFB) { m.encode(e) }
func getElect(d *Decoder, m *ElectFB) { m.decode(d) }

func (m *ElectFB) encode(e *Encoder) {
	e.Hash(m.ID)
	e.U8(uint8(m.Decision))
	e.U64(uint64(m.View))
	putProof(e, &m.Proof)
}

func (m *ElectFB) decode(d *Decoder) {
	m.ID, m.Decision, m.View = d.Hash(), d.Decision(), d.U32()
	getProof(d, &m.Proof)
}

func (m *DecFB) encode(e *Encoder) {
	e.Hash(m.ID)
	e.U8(uint8(m.Decision))
	e.U64(uint64(m.View))
	putProof(e, &m.Proof)
	putList(e, m.Elects, putElect)
}

func (m *DecFB) decode(d *Decoder) {
	m.ID, m.Decision, m.View = d.Hash(), d.Decision(), d.U32()
	getProof(d, &m.Proof)
	m.Elects = getList(d, getElect)
}

func (m *Fetch) encode(e *Encoder) {
	putList(e, m.IDs, func(e *Encoder, id *TxID) { e.Hash(*id) })
}

func (m *Fetch) decode(d *Decoder) {
	m.IDs = getList(d, func(d *Decoder, id *TxID) { *id = d.Hash() })
}

func (m *Body) encode(e *Encoder) { putTx(e, m.Tx) }
func (m *Body) decode(d *Decoder) { m.Tx = getTx(d) }

func (m *Pull) encode(e *Encoder) {
	e.U64(m.Epoch)
	e.U64(m.Since)
	putProof(e, &m.Proof)
}

func (m *Pull) decode(d *Decoder) {
	m.Epoch, m.Since = d.U64(), d.U64()
	getProof(d, &m.Proof)
}

func (m *Seen) encode(e *Encoder) {
	e.Hash(m.ID)
	e.U8(uint8(m.Decision))
	putProof(e, &m.Proof)
}

func (m *Seen) decode(d *Decoder) {
	m.ID, m.Decision = d.Hash(), d.Decision()
	getProof(d, &m.Proof)
}

func (m *PullReply) encode(e *Encoder) {
	e.U64(m.Epoch)
	e.U64(m.Next)
	putList(e, m.Entries, func(e *Encoder, x *Decided) { e.Hash(x.ID); e.Time(x.TS) })
}

func (m *PullReply) decode(d *Decoder) {
	m.Epoch, m.Next = d.U64(), d.U64()
	m.Entries = getList(d, func(d *Decoder, x *Decided) { x.ID = d.Hash(); x.TS = d.Time() })
}

func (*Ping) encode(*Encoder) {}
func (*Ping) decode(*Decoder) {}
func (*Pong) encode(*Encoder) {}
func (*Pong) decode(*Decoder) {}

// Statement returns the bytes that a replica signs for a vote.
func (m *ST1R) Statement() []byte { return VoteStatement(m.ID, m.Vote) }

// VoteStatement returns the signed content of an ST1R. Certificates are checked with it and need
// not carry it.
func VoteStatement(id TxID, vote Decision) []byte {
	e := Encoder{b: make([]byte, 0, 34)}
	e.U8(kindST1R)
	e.Hash(id)
	e.U8(uint8(vote))
	return e.b
}

// Statement returns the bytes that a replica signs for a logged decision.
func (m *ST2R) Statement() []byte {
	e := Encoder{b: make([]byte, 0, 48)}
	e.U8(kindST2R)
	e.Hash(m.ID)
	e.U8(uint8(m.Decision))
	e.U64(uint64(m.ViewDecision))
	e.U64(uint64(m.ViewCurrent))
	return e.b
}

// Statement returns the bytes that a replica signs to elect a leader.
func (m *ElectFB) Statement() []byte { return viewStatement(kindElectFB, m.ID, m.Decision, m.View) }

// Statement returns the bytes that a fallback leader signs.
func (m *DecFB) Statement() []byte { return viewStatement(kindDecFB, m.ID, m.Decision, m.View) }

// Statement returns the bytes that a replica signs with its position.
func (m *Pull) Statement() []byte {
	e := Encoder{}
	e.U8(kindPull)
	e.U64(m.Epoch)
	e.U64(m.Since)
	return e.b
}

// SeenStatement returns the signed content of a Seen.
func SeenStatement(id TxID, d Decision) []byte { return viewStatement(kindSeen, id, d, 0) }

func viewStatement(kind uint8, id TxID, dec Decision, view uint32) []byte {
	e := Encoder{b: make([]byte, 0, 40)}
	e.U8(kind)
	e.Hash(id)
	e.U8(uint8(dec))
	e.U64(uint64(view))
	return e.b
}
