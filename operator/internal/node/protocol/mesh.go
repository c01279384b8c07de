package protocol

import (
	"bytes"
	"encoding/json"
	"io"
	"iter"
)

// Mesh is what the networks of all pods of a region share: every pod of the trial, and what is
// asked of its links with the region. A list for each pod would take memory in proportion to the
// square of the pods, and as much time to encode whenever a directive changes.
type Mesh struct {
	pods []NetworkPeer
	// encoded are the pods in JSON, with a comma after each; ends is where each ends, its comma
	// included.
	encoded []byte
	ends    []int
}

// NewMesh encodes the pods once. They must not change any more.
func NewMesh(pods []NetworkPeer) (*Mesh, error) {
	m := &Mesh{pods: pods, ends: make([]int, len(pods))}
	for i := range pods {
		one, err := json.Marshal(&pods[i])
		if err != nil {
			return nil, err
		}
		m.encoded = append(append(m.encoded, one...), ',')
		m.ends[i] = len(m.encoded)
	}
	m.encoded = bytes.Clone(m.encoded) // without room to grow
	return m, nil
}

// without are all pods but one, in JSON with commas between them, in two parts.
func (m *Mesh) without(self int) (before, after []byte) {
	last := len(m.pods) - 1
	if self == last {
		return bytes.TrimSuffix(m.encoded[:m.start(self)], comma), nil
	}
	return m.encoded[:m.start(self)], bytes.TrimSuffix(m.encoded[m.ends[self]:], comma)
}

var comma = []byte{','}

func (m *Mesh) start(i int) int {
	if i == 0 {
		return 0
	}
	return m.ends[i-1]
}

// All are the peers, in the layout's order, wherever the network has them. Nil has none.
func (n *Network) All() iter.Seq[*NetworkPeer] {
	return func(yield func(*NetworkPeer) bool) {
		if n == nil {
			return
		}
		peers, self := n.Peers, -1
		if n.Mesh != nil {
			peers, self = n.Mesh.pods, n.Self
		}
		for i := range peers {
			if i != self && !yield(&peers[i]) {
				return
			}
		}
	}
}

// MarshalJSON writes all peers, wherever the network has them.
func (n *Network) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	err := n.encode(&out)
	return out.Bytes(), err
}

// encode writes the peers of a mesh as they were encoded.
func (n *Network) encode(w io.Writer) error {
	type plain Network
	rest, err := json.Marshal((*plain)(n))
	if err != nil {
		return err
	}
	if n.Mesh == nil || len(n.Mesh.pods) < 2 {
		_, err = w.Write(rest)
		return err
	}
	before, after := n.Mesh.without(n.Self)
	return write(w, []byte(`{"peers":[`), before, after, []byte("],"), rest[1:]) // of which a key and a tolerance are always there
}

// Encode writes the directive as JSON. It copies no list of pods: each directive has all pods of a
// trial, and all directives change at once.
func (d *Directive) Encode(w io.Writer) error {
	alone := *d
	alone.Network = nil
	rest, err := json.Marshal(&alone)
	if err != nil {
		return err
	}
	if d.Network == nil {
		_, err = w.Write(rest)
		return err
	}
	if err := write(w, []byte(`{"network":`)); err != nil {
		return err
	}
	if err := d.Network.encode(w); err != nil {
		return err
	}
	return write(w, comma, rest[1:]) // of which a version is always there
}

func write(w io.Writer, parts ...[]byte) error {
	for _, p := range parts {
		if _, err := w.Write(p); err != nil {
			return err
		}
	}
	return nil
}
