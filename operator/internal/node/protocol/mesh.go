package protocol

import (
	"bytes"
	"encoding/json"
	"iter"
)

// Mesh is what the networks of all pods of a region share: every pod of the trial, and what is
// asked of its links with the region. A list for each pod would take memory in proportion to the
// square of the pods, and as much time to encode whenever a directive changes.
type Mesh struct {
	pods []NetworkPeer
	// encoded are the pods in JSON, one after the other; ends is where each ends.
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
		m.encoded = append(m.encoded, one...)
		m.ends[i] = len(m.encoded)
	}
	m.encoded = bytes.Clone(m.encoded) // without room to grow
	return m, nil
}

// pod in JSON.
func (m *Mesh) pod(i int) []byte {
	if i == 0 {
		return m.encoded[:m.ends[0]]
	}
	return m.encoded[m.ends[i-1]:m.ends[i]]
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
	type plain Network
	if n.Mesh == nil || len(n.Mesh.pods) < 2 {
		return json.Marshal((*plain)(n))
	}
	const key = `{"peers":[`
	rest, err := json.Marshal((*plain)(n))
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, len(key)+len(n.Mesh.encoded)+len(n.Mesh.pods)+len(rest)+1)
	out = append(out, key...)
	for i := range n.Mesh.pods {
		if i != n.Self {
			out = append(append(out, n.Mesh.pod(i)...), ',')
		}
	}
	out[len(out)-1] = ']'                             // in the place of the last comma
	return append(append(out, ','), rest[1:]...), nil // of which a key and a tolerance are always there
}
