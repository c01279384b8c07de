package parsers

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
)

const (
	// arrivalBytes of a launcher's record: launcher.ArrivalBytes, which a program for other systems
	// than Linux cannot import.
	arrivalBytes = 16
	// burstLines is how many operations' lines may come at once without being a burst: clients that
	// waited for the same replica print together.
	burstLines = 16
	// burstError is by how much the instant of a line of a burst may be wrong.
	burstError = 100 * time.Millisecond
	// burstShare is the share of operations whose instants may be wrong by more than burstError.
	burstShare = 0.01
)

// arrivals finds the arrival of each line without an instant, from the launcher's record of the
// pieces that it read. If a program prints each line at once, instants are late only by the time in
// the pipe and the launcher. One that collects its output prints in bursts: a piece begins within a
// line, or holds many lines. Each of them was written at some time since the piece before, which
// bounds the error.
//
//	 piece 1        piece 2                 piece 3
//	|op 1\n op 2\n|op 3\n op 4\n op 5\n op|  6\n op 7\n ...   piece 3 begins within a line:
//	0              t1                      t2                 its lines are up to t2 - t1 late
type arrivals struct {
	in           *bufio.Reader
	begin, end   int64 // of the current piece, in the output
	before, at   int64 // when the piece before came, and this one
	lines        int64 // operations whose line ended in this piece
	torn         bool  // the piece begins within an operation's line
	total, wrong int64 // operations, and those of bursts
}

// newArrivals reads a launcher's records. start is when the client was started.
func newArrivals(r io.Reader, start int64) *arrivals {
	return &arrivals{in: bufio.NewReader(r), at: start}
}

// of returns when the line at this place of the output came. The caller asks for lines in their
// order.
func (a *arrivals) of(begin, end int64) (int64, error) {
	for a.end < end {
		if err := a.next(); err != nil {
			return 0, err
		}
		a.torn = begin < a.begin
	}
	a.lines++
	a.total++
	return a.at, nil
}

func (a *arrivals) next() error {
	a.close()
	var record [arrivalBytes]byte
	if _, err := io.ReadFull(a.in, record[:]); err != nil {
		return fmt.Errorf("when the line came was not kept: %w", err)
	}
	size, at := int64(binary.LittleEndian.Uint64(record[:8])), int64(binary.LittleEndian.Uint64(record[8:]))
	if size < a.end || at < a.at && a.end > 0 {
		return errors.New("what was kept of when the output came goes back in time")
	}
	a.begin, a.end, a.before, a.at = a.end, size, a.at, at
	return nil
}

// close judges the current piece.
func (a *arrivals) close() {
	if (a.torn || a.lines > burstLines) && a.at-a.before > int64(burstError) {
		a.wrong += a.lines
	}
	a.lines, a.torn = 0, false
}

// bursts is how many operations came in bursts, or an error when they are too many for a timeline.
func (a *arrivals) bursts() (int64, error) {
	a.close()
	if float64(a.wrong) > burstShare*float64(a.total) {
		return 0, fmt.Errorf("%d of %d lines came in bursts, up to more than %v after they were written, so that their arrival says little: "+
			"have the client print each line at once (stdbuf -oL, PYTHONUNBUFFERED=1, a flush), or print an instant in it", a.wrong, a.total, burstError)
	}
	return a.wrong, nil
}
