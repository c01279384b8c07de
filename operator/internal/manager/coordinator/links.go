package coordinator

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"

	"assay.dev/assay/operator/internal/node/protocol"
)

// linksRead holds the links of a pod's last report. Each report has a link to every other pod of
// the trial, so all reports together grow with the square of the number of pods. The links change
// twice in a trial, and reports arrive all the time.
type linksRead struct {
	digest [sha256.Size]byte
	links  []protocol.LinkReport // must not be changed, since earlier reports share them
}

// mostPeers bounds the memory that is allocated for links before they are read.
const mostPeers = 1024

// withoutLinks decodes a report, and leaves its links encoded.
type withoutLinks struct {
	*protocol.Report
	Network *struct {
		*protocol.NetworkReport
		Links json.RawMessage `json:"links"`
	} `json:"network"`
}

// decode reads a report of a pod. The argument network is the network in the pod's directive. It
// does not read links again if they equal the last ones.
func (l *linksRead) decode(body []byte, network *protocol.Network) (*protocol.Report, error) {
	w := withoutLinks{Report: &protocol.Report{}}
	if err := json.Unmarshal(body, &w); err != nil {
		return nil, err
	}
	report := w.Report
	if w.Network == nil {
		return report, nil
	}
	if report.Network = w.Network.NetworkReport; report.Network == nil {
		report.Network = &protocol.NetworkReport{}
	}
	if len(w.Network.Links) == 0 {
		return report, nil
	}
	if digest := sha256.Sum256(w.Network.Links); digest != l.digest {
		links, err := readLinks(w.Network.Links, network)
		if err != nil {
			return nil, err
		}
		l.digest, l.links = digest, links
	}
	report.Network.Links = l.links
	return report, nil
}

// readLinks takes only as much memory as the links need. It shares the names of the peers in the
// directive, which agents list in the same order.
func readLinks(text []byte, network *protocol.Network) ([]protocol.LinkReport, error) {
	links := make([]protocol.LinkReport, 0, min(bytes.Count(text, []byte("{")), mostPeers))
	if err := json.Unmarshal(text, &links); err != nil {
		return nil, err
	}
	i := 0
	for p := range network.All() {
		if i < len(links) && links[i].Peer == p.Name {
			links[i].Peer = p.Name
		}
		i++
	}
	return links, nil
}
