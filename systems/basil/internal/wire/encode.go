package wire

import "crypto/sha256"

func (t *Tx) encode(e *Encoder) {
	e.Time(t.TS)
	putList(e, t.Reads, func(e *Encoder, r *Read) { e.U64(uint64(r.Key)); e.Time(r.Version) })
	putList(e, t.Writes, func(e *Encoder, w *Write) { e.U64(uint64(w.Key)); e.Blob(w.Value) })
	putList(e, t.Deps, func(e *Encoder, p *Dep) { e.Hash(p.ID); e.U64(uint64(p.Key)); e.Time(p.Version) })
}

func putTx(e *Encoder, t *Tx) { t.encode(e) }

func getTx(d *Decoder) *Tx {
	before := d.b
	t := &Tx{TS: d.Time()}
	t.Reads = getList(d, func(d *Decoder, r *Read) { r.Key = Key(d.U64()); r.Version = d.Time() })
	t.Writes = getList(d, func(d *Decoder, w *Write) { w.Key = Key(d.U64()); w.Value = d.Blob() })
	t.Deps = getList(d, func(d *Decoder, p *Dep) { p.ID = d.Hash(); p.Key = Key(d.U64()); p.Version = d.Time() })
	if !d.bad {
		// The identity covers the received bytes: a varint has several encodings, and two encodings
		// must not share one identity.
		t.id = sha256.Sum256(before[:len(before)-len(d.b)])
	}
	return t
}

func putProof(e *Encoder, p *Proof) {
	e.U64(uint64(p.Replica))
	e.U64(uint64(p.Index))
	e.U8(uint8(len(p.Path)))
	for _, h := range p.Path {
		e.Hash(h)
	}
	e.Blob(p.Sig)
}

func getProof(d *Decoder, p *Proof) {
	p.Replica, p.Index = d.U16(), d.U16()
	n := int(d.U8())
	if n > 16 {
		d.bad = true
		return
	}
	for i := 0; i < n && !d.bad; i++ {
		p.Path = append(p.Path, d.Hash())
	}
	p.Sig = d.Blob()
}

func putShardVotes(e *Encoder, v *ShardVotes) {
	e.U64(uint64(v.Shard))
	e.U8(uint8(v.Vote))
	putList(e, v.Proofs, putProof)
}

func getShardVotes(d *Decoder, v *ShardVotes) {
	v.Shard, v.Vote = d.U16(), d.Decision()
	v.Proofs = getList(d, getProof)
}

func putCert(e *Encoder, c *Cert) {
	e.U8(uint8(c.Decision))
	putList(e, c.Votes, putShardVotes)
	e.U64(uint64(c.View))
	putList(e, c.Log, func(e *Encoder, v *LogVote) { e.U64(uint64(v.ViewCurrent)); putProof(e, &v.Proof) })
	putConflict(e, c.Conflict)
	putList(e, c.Seen, putProof)
}

// getCert reads a certificate. A conflict's own certificate carries no
// further conflict, which bounds the recursion.
func getCert(d *Decoder, depth int) *Cert {
	c := &Cert{Decision: d.Decision()}
	c.Votes = getList(d, getShardVotes)
	c.View = d.U32()
	c.Log = getList(d, func(d *Decoder, v *LogVote) { v.ViewCurrent = d.U32(); getProof(d, &v.Proof) })
	c.Conflict = getConflict(d, depth)
	c.Seen = getList(d, getProof)
	return c
}

func putConflict(e *Encoder, c *Conflict) {
	if c == nil {
		e.U8(0)
		return
	}
	e.U8(1)
	putTx(e, c.Tx)
	putCert(e, c.Cert)
}

func getConflict(d *Decoder, depth int) *Conflict {
	switch d.U8() {
	case 0:
		return nil
	case 1:
		if depth < 1 && !d.bad {
			return &Conflict{Tx: getTx(d), Cert: getCert(d, depth+1)}
		}
	}
	d.bad = true
	return nil
}
