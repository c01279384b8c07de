package results

import "fmt"

// FitTrial encodes a trial in limit bytes at most, for a ConfigMap. When it is too large it leaves parts out, one after the other until
// it fits, and names them in LeftOut: first the logs, then the timeline, then the latency histogram. The numbers of the
// summary always stay; FitTrial fails when not even they fit.
func FitTrial(t Trial, limit int) ([]byte, error) {
	parts := []struct {
		name string
		drop func() bool // false: there was nothing to drop
	}{
		{"", func() bool { return true }},
		{"logs", func() bool { had := len(t.Logs) > 0; t.Logs = nil; return had }},
		{"timeline", func() bool { had := t.Timeline != nil; t.Timeline = nil; return had }},
		{"latency", func() bool { had := t.Latency != ""; t.Latency = ""; return had }},
	}
	size := 0
	for _, p := range parts {
		if !p.drop() {
			continue
		}
		if p.name != "" {
			t.LeftOut = append(t.LeftOut[:len(t.LeftOut):len(t.LeftOut)], p.name)
		}
		b, err := EncodeTrial(t)
		if err != nil {
			return nil, err
		}
		if len(b) <= limit {
			return b, nil
		}
		size = len(b)
	}
	return nil, fmt.Errorf("the results of trial %s take %d bytes even without logs, timeline and histogram; %d are allowed", t.Name, size, limit)
}
