package wire

import (
	"encoding/binary"
	"errors"
)

// ErrMalformed is returned for any input that no encoder produces.
var ErrMalformed = errors.New("malformed message")

// maxItems bounds every list in a message, so that a forged length cannot
// make a decoder allocate without bound.
const maxItems = 1 << 16

// Encoder appends to a buffer. The zero value is ready for use.
type Encoder struct{ b []byte }

// Bytes returns what was encoded so far.
func (e *Encoder) Bytes() []byte { return e.b }

// U8 appends one byte.
func (e *Encoder) U8(v uint8) { e.b = append(e.b, v) }

// U64 appends an unsigned number of variable length.
func (e *Encoder) U64(v uint64) { e.b = binary.AppendUvarint(e.b, v) }

// Blob appends a length and the bytes.
func (e *Encoder) Blob(v []byte) {
	e.U64(uint64(len(v)))
	e.b = append(e.b, v...)
}

// Hash appends 32 bytes.
func (e *Encoder) Hash(v [32]byte) { e.b = append(e.b, v[:]...) }

// Time appends a timestamp.
func (e *Encoder) Time(t Timestamp) {
	e.b = binary.AppendVarint(e.b, t.Time)
	e.U64(uint64(t.Client))
}

// Decoder reads the output of an Encoder. After the first error every read returns a zero value;
// Err returns the error.
type Decoder struct {
	b   []byte
	bad bool
}

// NewDecoder reads from b. The byte slices that it returns are parts of b.
func NewDecoder(b []byte) *Decoder { return &Decoder{b: b} }

// Err returns ErrMalformed after any failed read.
func (d *Decoder) Err() error {
	if d.bad {
		return ErrMalformed
	}
	return nil
}

// End returns an error unless the whole input was read without one.
func (d *Decoder) End() error {
	if len(d.b) > 0 {
		d.bad = true
	}
	return d.Err()
}

func (d *Decoder) take(n int) []byte {
	if d.bad || n < 0 || n > len(d.b) {
		d.bad = true
		return nil
	}
	out := d.b[:n:n]
	d.b = d.b[n:]
	return out
}

// U8 reads one byte.
func (d *Decoder) U8() uint8 {
	if b := d.take(1); b != nil {
		return b[0]
	}
	return 0
}

// U64 reads a number.
func (d *Decoder) U64() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.bad = true
		return 0
	}
	d.take(n)
	return v
}

// U32 reads a number that must fit 32 bits.
func (d *Decoder) U32() uint32 {
	v := d.U64()
	d.bad = d.bad || v > 1<<32-1
	return uint32(v)
}

// U16 reads a number that must fit 16 bits.
func (d *Decoder) U16() uint16 {
	v := d.U64()
	d.bad = d.bad || v > 1<<16-1
	return uint16(v)
}

// Len reads a list length. Every item takes at least one byte, so Len rejects a length beyond the
// rest of the input before any allocation.
func (d *Decoder) Len() int {
	v := d.U64()
	if v > maxItems || v > uint64(len(d.b)) {
		d.bad = true
		return 0
	}
	return int(v)
}

// Blob reads a byte slice; nil when it is empty.
func (d *Decoder) Blob() []byte {
	n := d.U64()
	if n > uint64(len(d.b)) {
		d.bad = true
		return nil
	}
	if n == 0 {
		return nil
	}
	return d.take(int(n))
}

// Hash reads 32 bytes.
func (d *Decoder) Hash() (h [32]byte) {
	copy(h[:], d.take(32))
	return h
}

// Time reads a timestamp.
func (d *Decoder) Time() Timestamp {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.bad = true
		return Timestamp{}
	}
	d.take(n)
	return Timestamp{Time: v, Client: d.U32()}
}

// Decision reads Commit or Abort and rejects all other values.
func (d *Decoder) Decision() Decision {
	v := Decision(d.U8())
	d.bad = d.bad || v != Commit && v != Abort
	return v
}

func putList[T any](e *Encoder, items []T, put func(*Encoder, *T)) {
	e.U64(uint64(len(items)))
	for i := range items {
		put(e, &items[i])
	}
}

func getList[T any](d *Decoder, get func(*Decoder, *T)) []T {
	n := d.Len()
	if n == 0 {
		return nil
	}
	// The slice grows with the items that really arrive: n bytes of input can claim n items, and
	// each item is much larger in memory than on the wire.
	out := make([]T, 0, min(n, 64))
	for i := 0; i < n && !d.bad; i++ {
		var v T
		get(d, &v)
		out = append(out, v)
	}
	return out
}
