package protocol

import (
	"bytes"
	"encoding/json"
	"io"
	"iter"
)

// Mesh is the common part of the networks of all pods in a region: every pod of the trial, and the
// requested links between it and the region. A list for each pod would take memory in proportion to
// the square of the pods, and as much time to encode whenever a directive changes.
type Mesh struct {
	pods []NetworkPeer
	// encoded has the pods in JSON, with a comma after each. ends has where each pod and its comma
	// end.
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

// without returns all pods but one in two parts, in JSON with commas between them.
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

// All returns the peers in the layout's order, from Peers or from Mesh. A nil Network has none.
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

// MarshalJSON writes all peers, from Peers or from Mesh.
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
	return write(w, []byte(`{"peers":[`), before, after, []byte("],"), rest[1:]) // these always have a key and a tolerance
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
	return write(w, comma, rest[1:]) // the rest always has a version
}

func write(w io.Writer, parts ...[]byte) error {
	for _, p := range parts {
		if _, err := w.Write(p); err != nil {
			return err
		}
	}
	return nil
}
