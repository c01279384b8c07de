package parsers

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"assay.dev/assay/operator/internal/results"
)

// reckonMessage is the largest message of a reckon client that is read: a result has some 200
// bytes.
const reckonMessage = 1 << 20

// reckonSuccess is the outcome of a result that is no error.
const reckonSuccess = "Success"

// counterLateReckon counts operations that were sent more than 1 ms later than reckon had planned.
const counterLateReckon = "sentLate"

// reckonResult is a message of kind result. Instants are seconds of Unix time on the client's wall
// clock, as float64: to 0.24 us.
type reckonResult struct {
	Kind      string  `json:"kind"`
	Submitted float64 `json:"t_submitted"`
	Result    float64 `json:"t_result"`
	Outcome   string  `json:"result"`
	Other     struct {
		Planned *float64 `json:"expected_start"`
	} `json:"other"`
}

// parseReckon reads the messages that a client of reckon writes to its stdout. Each is a length of
// four bytes, the lowest first, and a JSON object of that length. Their kinds are ready, result and
// finished. As in reckon, the latency of an operation begins when it was sent, not when it was to
// be sent.
//
// A killed client leaves a last message that is cut: it is dropped and counted.
func parseReckon(r io.Reader, o Options) (results.Client, error) {
	p := newLineParser(o)
	p.opts.Records = &results.Records{Outcome: &results.RecordOutcome{Errors: []string{"any but " + reckonSuccess}}}
	in := bufio.NewReader(r)
	for n := 1; ; n++ {
		m, err := nextReckon(in)
		switch {
		case errors.Is(err, io.EOF):
			return p.finish()
		case errors.Is(err, io.ErrUnexpectedEOF):
			p.driver[counterCut]++
			return p.finish()
		}
		if err == nil {
			err = p.reckon(m)
		}
		if err != nil {
			return results.Client{}, fmt.Errorf("message %d of the client's output: %w", n, err)
		}
	}
}

// nextReckon reads one message. A stream that ends in the middle of one gives io.ErrUnexpectedEOF.
func nextReckon(in io.Reader) (m reckonResult, err error) {
	var size int32
	if err := binary.Read(in, binary.LittleEndian, &size); err != nil {
		return m, err
	}
	if size <= 0 || size > reckonMessage {
		return m, fmt.Errorf("it would have %d bytes; a message has 1 to %d. Only messages may be written to the stream", size, reckonMessage)
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(in, text); err != nil {
		return m, io.ErrUnexpectedEOF
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, fmt.Errorf("%q: %w", short(text), err)
	}
	return m, nil
}

// reckon takes in one message.
func (p *lineParser) reckon(m reckonResult) error {
	switch m.Kind {
	case "ready":
		return nil
	case "finished":
		p.driver[counterEnds]++
		return nil
	case "result":
	default:
		return fmt.Errorf("the kind %q is none of ready, result and finished", m.Kind)
	}
	begin, err := reckonInstant(m.Submitted)
	if err != nil {
		return fmt.Errorf("t_submitted: %w (%s)", err, m.Outcome)
	}
	end, err := reckonInstant(m.Result)
	if err != nil {
		return fmt.Errorf("t_result: %w (%s)", err, m.Outcome)
	}
	if end < begin {
		return fmt.Errorf("the result came %v before it was asked for", begin-end)
	}
	if at := m.Other.Planned; at != nil && m.Submitted-*at > 1e-3 {
		p.driver[counterLateReckon]++
	}
	zero := time.Duration(p.opts.ZeroUnixNanos)
	if m.Outcome != reckonSuccess {
		p.operation(begin-zero, end-zero)
		if issue := begin - zero; issue >= 0 && issue < p.measure {
			p.rec.Counters.Offered++
		}
		p.rec.Fail(end-zero, false)
		return nil
	}
	p.transaction(end-begin, end-zero)
	return nil
}

// reckonInstant is nanoseconds of Unix time.
func reckonInstant(seconds float64) (time.Duration, error) {
	if !(seconds > 0) || seconds > mostNanos/1e9 {
		return 0, fmt.Errorf("%g is no instant", seconds)
	}
	whole, part := math.Modf(seconds)
	return time.Duration(int64(whole)*1e9 + int64(math.Round(part*1e9))), nil
}
