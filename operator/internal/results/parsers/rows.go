package parsers

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"assay.dev/assay/operator/internal/results"
)

// FormatRows is the report of the machine of a script. It has the unchanged file with the script's
// numbers, and what ran on all machines by SSH. Only a reader that knows the points of the rows
// reads the file.
const FormatRows = "Rows"

// maxRowsReport is the most of such a report, in bytes.
const maxRowsReport = 6 << 20

// rowsReport has the fields of machine.Report. That package is not imported, since agents must not
// link its SSH server.
type rowsReport struct {
	Table   string               `json:"table"`
	Missing string               `json:"missing"`
	Files   []results.ScriptFile `json:"files"`
	Events  []machineEvent       `json:"events"`
}

type machineEvent struct {
	Kind, Machine, Pod, From, What, Command, Message string
	BeginUnixNanos, EndUnixNanos, ClosedUnixNanos    int64
	ExitCode                                         *int
	Count                                            int
}

func parseRows(r io.Reader, o Options) (results.Client, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxRowsReport+1))
	if err != nil {
		return results.Client{}, fmt.Errorf("read the script's results: %w", err)
	}
	if len(text) > maxRowsReport || !utf8.Valid(text) {
		return results.Client{}, fmt.Errorf("the script's results are more than %d bytes, or no UTF-8 text", maxRowsReport)
	}
	var report rowsReport
	if err := json.Unmarshal(text, &report); err != nil {
		return results.Client{}, fmt.Errorf("read the script's results: %w", err)
	}
	c := results.Client{
		Format: results.ClientFormat, Index: o.Index, FirstClient: o.FirstClient, Clients: o.Clients, NothingSent: true, MeasureNanos: int64(o.Windows.Measure),
		Unreported: []string{
			results.CounterAborted, results.CounterErrors, results.CounterGivenUp, results.CounterLateSends, results.CounterOffered,
			results.CounterRetries, results.CounterTimeouts, results.CounterUnsent,
		},
		RunSummary: &results.RunSummary{}, Table: &results.ScriptTable{Text: report.Table, Missing: report.Missing, Files: report.Files},
	}
	slices.Sort(c.Unreported)
	millis := func(unix int64) float64 { return float64(unix-o.ZeroUnixNanos) / 1e6 }
	for _, e := range report.Events {
		s := results.Session{Kind: e.Kind, Machine: e.Machine, Pod: e.Pod, From: e.From, What: e.What, Command: e.Command, Message: e.Message, BeginMillis: millis(e.BeginUnixNanos), ExitCode: e.ExitCode, Count: e.Count}
		if e.EndUnixNanos != 0 {
			end := millis(e.EndUnixNanos)
			s.EndMillis = &end
		}
		if e.ClosedUnixNanos != 0 {
			closed := millis(e.ClosedUnixNanos)
			s.ClosedMillis = &closed
		}
		c.Table.Sessions = append(c.Table.Sessions, s)
	}
	return c, nil
}
