package loadgen

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

// Trace is a file of arrivals that an open loop replays. It is text with a line for each arrival:
// its instant in seconds, as a decimal number. Arrivals ascend; several may have one instant. The
// reader skips the rest of a line after a comma, a blank or a tab. It also skips empty lines, and
// lines that begin with "#".
type Trace struct {
	// File of the arrivals.
	File string `json:"file"`
	// Begin is the instant of the trace that is t = 0. Arrivals before it belong to the warm-up.
	Begin Duration `json:"begin,omitempty"`
	// Speed at which the trace is replayed: 2 is twice as fast. From 0.01 to 100.
	Speed float64 `json:"speed"`
}

// MaxTraceArrivals bounds the number of arrivals in a trace.
const MaxTraceArrivals = 20_000_000

// maxTraceSeconds bounds their instants: a trace may count seconds since 1970.
const maxTraceSeconds = 1e10

func (t *Trace) validate() (errs []error) {
	if t.File == "" {
		errs = append(errs, errors.New("trace.file is empty; name the file of the arrivals"))
	}
	if !(t.Speed >= 0.01 && t.Speed <= 100) {
		errs = append(errs, fmt.Errorf("trace.speed is %v; it must be from 0.01 to 100", t.Speed))
	}
	return errs
}

// arrivals reads the arrivals of the configuration's trace for this generator, relative to t = 0.
// It rejects a trace that does not cover the window.
func (c Config) arrivals() ([]time.Duration, error) {
	f, err := os.Open(c.Trace.File)
	if err != nil {
		return nil, fmt.Errorf("read the trace: %w", err)
	}
	defer f.Close() // the file was only read
	measure := time.Duration(c.Windows.Measure)
	all := int64(max(c.AllClients, c.Clients))
	var own []time.Duration
	var last time.Duration
	inWindow := int64(0)
	err = readTrace(f, func(k int64, at float64) {
		last = seconds((at - time.Duration(c.Trace.Begin).Seconds()) / c.Trace.Speed)
		if last >= 0 && last < measure {
			inWindow++
		}
		if slot := spreadRank(k, all); slot >= int64(c.FirstClient) && slot < int64(c.FirstClient)+int64(c.Clients) {
			own = append(own, last)
		}
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the trace %s: %w", c.Trace.File, err)
	case inWindow == 0:
		return nil, fmt.Errorf("the trace %s has no arrival in the window, which is %v long; see trace.begin and trace.speed", c.Trace.File, measure)
	case last < measure:
		return nil, fmt.Errorf("the trace %s ends %v after t = 0, and the window lasts %v: measure for as long as the trace lasts; its last line may be the end of the window itself",
			c.Trace.File, last.Round(time.Millisecond), measure)
	}
	return own, nil
}

// readTrace calls arrival for each line, with its number from 0 and its instant in seconds.
func readTrace(r io.Reader, arrival func(k int64, at float64)) error {
	lines := bufio.NewScanner(r)
	k, before := int64(0), 0.0
	number := 0
	for lines.Scan() {
		number++
		text := strings.TrimSpace(lines.Text())
		if i := strings.IndexAny(text, ",; \t"); i >= 0 {
			text = text[:i]
		}
		if text == "" || text[0] == '#' {
			continue
		}
		at, err := strconv.ParseFloat(text, 64)
		switch {
		case err != nil || !(at >= 0 && at <= maxTraceSeconds):
			return fmt.Errorf("line %d: %.40q is no instant in seconds, from 0 to 1e10, such as 12.5; a line of names begins with #", number, text)
		case at < before:
			return fmt.Errorf("line %d: %g comes after %g; arrivals must ascend", number, at, before)
		case k == MaxTraceArrivals:
			return fmt.Errorf("line %d: there are more than %d arrivals", number, MaxTraceArrivals)
		}
		arrival(k, at)
		before = at
		k++
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("line %d: %w", number+1, err)
	}
	return nil
}

// tracePacer replays arrivals, which are relative to t = 0. Some of them may be before the load
// begins.
type tracePacer struct {
	arrivals []time.Duration
	warmUp   time.Duration
}

func (p *tracePacer) next() time.Duration {
	for len(p.arrivals) > 0 {
		at := p.arrivals[0] + p.warmUp
		p.arrivals = p.arrivals[1:]
		if at >= 0 {
			return at
		}
	}
	return never
}
