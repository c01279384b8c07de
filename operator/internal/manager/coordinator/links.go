package coordinator

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"

	"assay.dev/assay/operator/internal/node/protocol"
)

// linksRead is the links of a pod's last report. A report has one for each other pod of the trial,
// so that all reports together grow with the square of the pods. The links change twice in a trial,
// and reports come all the time.
type linksRead struct {
	digest [sha256.Size]byte
	links  []protocol.LinkReport // not to be changed: earlier reports have them, too
}

// mostPeers bounds what is set aside for links before they are read.
const mostPeers = 1024

// withoutLinks decodes to a report whose links are left as they are.
type withoutLinks struct {
	*protocol.Report
	Network *struct {
		*protocol.NetworkReport
		Links json.RawMessage `json:"links"`
	} `json:"network"`
}

// decode reads a report of a pod with that network. Links that are the last ones are not read
// again.
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

// readLinks takes no more memory than the links need: their names are those of the peers, which
// agents list in the same order.
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
