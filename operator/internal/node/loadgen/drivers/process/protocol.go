package process

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"assay.dev/assay/operator/internal/node/loadgen"
)

// Version of the driver protocol.
const Version = 1

// Lines from the driver have these types.
const (
	typeReady = "ready"
	typeError = "error"
	typeEnd   = "end"
	typeStats = "stats"
)

// maxLine is the longest line that a driver may print; maxCounters the most counters that it may
// report.
const (
	maxLine     = 1 << 20
	maxCounters = 256
)

type hello struct {
	Type                 string `json:"type"`
	Version              int    `json:"version"`
	FirstClient          int32  `json:"firstClient"`
	Clients              int32  `json:"clients"`
	Seed                 int64  `json:"seed"`
	RequestTimeoutMicros int64  `json:"requestTimeoutMicros"`
}

// message is any line from the driver.
type message struct {
	Type      string           `json:"type"`
	Message   string           `json:"message"`
	ID        int64            `json:"id"`
	Outcome   string           `json:"outcome"`
	Detail    string           `json:"detail"`
	Operation string           `json:"operation"`
	Node      string           `json:"node"`
	Counters  map[string]int64 `json:"counters"`
}

// appendBegin writes the line for an attempt, without the allocations of encoding/json. It is the
// only line that is sent for every attempt.
func appendBegin(b []byte, id int64, client int32, r loadgen.Request) []byte {
	b = append(b, `{"type":"begin","id":`...)
	b = strconv.AppendInt(b, id, 10)
	b = append(b, `,"client":`...)
	b = strconv.AppendInt(b, int64(client), 10)
	b = append(b, `,"sequence":`...)
	b = strconv.AppendInt(b, r.Sequence, 10)
	b = append(b, `,"attempt":`...)
	b = strconv.AppendInt(b, int64(r.Attempt), 10)
	return append(b, "}\n"...)
}

// parseLine reads a line from the driver. It has a fast path for the most frequent line, the answer
// to an attempt. That line must have no spaces and the order of the documentation.
func parseLine(line []byte) (message, error) {
	if m, ok := parseCommit(line); ok {
		return m, nil
	}
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		return m, fmt.Errorf("the driver printed %q on its standard output, which is for the protocol only; print other things to standard error",
			line[:min(len(line), 200)])
	}
	if len(m.Counters) > maxCounters {
		return m, fmt.Errorf("the driver reported %d counters; %d are allowed", len(m.Counters), maxCounters)
	}
	return m, nil
}

var (
	endPrefix    = []byte(`{"type":"end","id":`)
	commitSuffix = []byte(`,"outcome":"commit"}`)
)

func parseCommit(line []byte) (message, bool) {
	rest, ok := bytes.CutPrefix(line, endPrefix)
	if !ok {
		return message{}, false
	}
	digits, ok := bytes.CutSuffix(rest, commitSuffix)
	if !ok || len(digits) == 0 || len(digits) > 18 {
		return message{}, false
	}
	var id int64
	for _, d := range digits {
		if d < '0' || d > '9' {
			return message{}, false
		}
		id = id*10 + int64(d-'0')
	}
	return message{Type: typeEnd, ID: id, Outcome: "commit"}, true
}

func (m message) result() (loadgen.Result, error) {
	for o := loadgen.Commit; o <= loadgen.Timeout; o++ {
		if m.Outcome == o.String() {
			return loadgen.Result{Outcome: o, Detail: m.Detail, Operation: m.Operation, Node: m.Node}, nil
		}
	}
	return loadgen.Result{}, fmt.Errorf("the driver ended request %d with outcome %q; it must be commit, abort, error or timeout", m.ID, m.Outcome)
}

var (
	errNoStats = errors.New("the driver did not answer bye with a line of type stats")
	errOver    = errors.New("the run is over")
)
