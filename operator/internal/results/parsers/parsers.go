// Package parsers turns what clients report, in the formats of ClientResults, into results.Client.
//
// Parsers stream: memory does not grow with the number of transactions. They are strict where a number could get lost: a report that
// is damaged is an error with the place of the damage, not a smaller result.
package parsers

import (
	"fmt"
	"io"
	"time"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/timeline"
)

// The formats, named as v1alpha1.ResultsFormat names them.
const (
	FormatAssay            = "Assay"
	FormatTransactionLines = "TransactionLines"
)

// maxReport is the most that a client's JSON report may take: a run of 26 h has a timeline of some 20 MB.
const maxReport = 64 << 20

// Options say what a report does not.
type Options struct {
	// ZeroMonotonicNanos is t = 0 on the CLOCK_MONOTONIC of the client's node.
	ZeroMonotonicNanos int64
	// Windows of the run.
	Windows timeline.Windows
	// Index of the client pod and the clients that it runs.
	Index, FirstClient, Clients int32
}

// Parse reads a whole report in the named format.
func Parse(format string, r io.Reader, o Options) (results.Client, error) {
	switch format {
	case FormatAssay:
		return parseAssay(r, o)
	case FormatTransactionLines:
		return parseTransactionLines(r, o)
	}
	return results.Client{}, fmt.Errorf("the results format is %q; it must be %s or %s", format, FormatAssay, FormatTransactionLines)
}

func parseAssay(r io.Reader, o Options) (results.Client, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxReport+1))
	if err != nil {
		return results.Client{}, fmt.Errorf("read the client's report: %w", err)
	}
	if len(b) > maxReport {
		return results.Client{}, fmt.Errorf("the client's report is larger than %d bytes", maxReport)
	}
	c, err := results.DecodeClient(b)
	if err != nil {
		return results.Client{}, err
	}
	if c.Index != o.Index || c.FirstClient != o.FirstClient || c.Clients != o.Clients {
		return results.Client{}, fmt.Errorf("the report is of client pod %d with clients %d to %d; it should be of pod %d with clients %d to %d",
			c.Index, c.FirstClient, c.FirstClient+c.Clients-1, o.Index, o.FirstClient, o.FirstClient+o.Clients-1)
	}
	if c.MeasureNanos != int64(o.Windows.Measure) {
		return results.Client{}, fmt.Errorf("the report's window is %v long; it should be %v", time.Duration(c.MeasureNanos), o.Windows.Measure)
	}
	return c, nil
}
