package csvfile

import (
	"fmt"
	"io"
	"strconv"

	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/results"
)

// Network writes a line for each pair of regions with the same asked links: the asked, the expected
// and the measured values. Numbers are not rounded. An experiment without networks gives the header
// alone.
func Network(w io.Writer, e results.Experiment) error {
	out := NewWriter(w)
	_ = out.Write([]string{ // kept: out.Error below
		"from", "to", "backend", "trials", "pairs", "delay_out_ms", "jitter_out_ms", "loss_out", "rate_out_bit_s", "delay_in_ms", "jitter_in_ms", "loss_in", "rate_in_bit_s",
		"expected_rtt_min_ms", "expected_rtt_max_ms", "measured_rtt_min_ms", "measured_rtt_max_ms", "worst_error_ms", "worst_pair", "worst_trial",
		"canary_sent", "canary_lost", "canary_min_ms", "canary_median_ms", "canary_max_ms", "undirected_pairs", "at",
	})
	number := func(x float64) string { return Exact(x, true) }
	for _, n := range e.Networks {
		measured, answered := n.WorstPair != "", n.CanarySent > n.CanaryLost
		_ = out.Write([]string{
			n.From, n.To, n.Backend, strconv.Itoa(n.Trials), strconv.Itoa(n.Pairs),
			number(n.Out.DelayMillis), number(n.Out.JitterMillis), number(n.Out.Loss), strconv.FormatUint(n.Out.RateBits, 10),
			number(n.In.DelayMillis), number(n.In.JitterMillis), number(n.In.Loss), strconv.FormatUint(n.In.RateBits, 10),
			Exact(n.ExpectedMinMillis, measured), Exact(n.ExpectedMaxMillis, measured), Exact(n.MeasuredMinMillis, measured), Exact(n.MeasuredMaxMillis, measured),
			Exact(n.WorstErrorMillis, measured), n.WorstPair, n.WorstTrial,
			strconv.Itoa(n.CanarySent), strconv.Itoa(n.CanaryLost), Exact(n.CanaryMinMillis, answered), Exact(n.CanaryMedianMillis, answered), Exact(n.CanaryMaxMillis, answered), strconv.Itoa(n.Undirected), model.PlaceOf(e, n.Points),
		})
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("write the networks as CSV: %w", err)
	}
	return nil
}
