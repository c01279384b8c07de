package results

import "strconv"

// clientPrefix begins the names that measurements have for numbers of one client pod:
// clientP99Millis:0.
const clientPrefix = "client"

// maxClientSummaries bounds the client pods whose own summaries are kept.
const maxClientSummaries = 32

// ClientSummary is the summary that one of several client pods printed of its whole run.
// Percentiles over all clients are not known then, so each client's are kept.
type ClientSummary struct {
	Index int32 `json:"index"`
	RunSummary
}

// clientSummaries returns the clients' summaries in the order of their indices. It is nil if there
// is one client pod, if they report of the window, or if there are too many.
func clientSummaries(clients []Client) []ClientSummary {
	if len(clients) < 2 || len(clients) > maxClientSummaries {
		return nil
	}
	var all []ClientSummary
	for _, c := range clients {
		if c.RunSummary == nil {
			return nil
		}
		w := *c.RunSummary
		w.Remarks = nil // the trial's summary has them
		all = append(all, ClientSummary{c.Index, w})
	}
	return all
}

// latencies of a summary by the names of measurements.
func (w *RunSummary) latencies() map[string]float64 {
	all := map[string]float64{}
	for name, millis := range map[string]*float64{
		"Mean": w.MeanMillis, "P10": w.P10Millis, "P50": w.P50Millis, "P90": w.P90Millis, "P99": w.P99Millis, "P999": w.P999Millis, "Max": w.MaxMillis,
	} {
		if millis != nil {
			all[name+"Millis"] = *millis
		}
	}
	for name, millis := range w.Percentiles {
		all[name+"Millis"] = millis
	}
	return all
}

// byClient adds each client pod's numbers, and how much the pods differ.
func (t *Trial) byClient(to map[string]float64) {
	values := map[string][]float64{}
	for _, c := range t.ClientSummaries {
		numbers := c.latencies()
		numbers["Throughput"] = c.Throughput
		for name, value := range numbers {
			to[clientPrefix+name+":"+strconv.Itoa(int(c.Index))] = value
			values[name] = append(values[name], value)
		}
	}
	for name, of := range values {
		if cov, ok := variation(of); ok && len(of) == len(t.ClientSummaries) {
			to[clientPrefix+name+"Variation"] = cov
		}
	}
}
