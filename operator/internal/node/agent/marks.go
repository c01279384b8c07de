package agent

import (
	"context"
	"encoding/json"
	"path/filepath"
	"time"

	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/protocol"
)

// markPoll is how often the marks are looked for. A look that finds nothing is one system call.
const markPoll = 2 * time.Millisecond

// markReader reads the marks that the program of a machine finds.
type markReader struct {
	*state
	clock *runClock
}

// doMarks reads the marks from the file in which the machine's program writes them. It reports each
// at once, since faults may count from it.
func (m *markReader) doMarks(ctx context.Context) {
	if m.await(ctx, func() bool { return m.directiveLocked().Marks }) != nil {
		return
	}
	run, err := m.clock.awaitRun(ctx)
	if err != nil {
		return
	}
	file := &logTailer{path: m.inRunDir(filepath.Base(protocol.MarksFile))}
	defer file.close()
	m.mu.Lock()
	known := len(m.journal.Marks) // known to an agent before this one
	m.mu.Unlock()
	for read := 0; read < protocol.MaxMarks && pause(ctx, markPoll); {
		var found []timeline.Mark
		err := file.lines(func(line []byte) bool {
			var l protocol.MarkLine
			if json.Unmarshal(line, &l) != nil {
				return false // not of our program
			}
			if read++; read > known {
				found = append(found, timeline.Mark{Name: l.Name, Groups: l.Groups, Line: l.Line, At: m.clock.clock.since(run.ZeroUnixNanos, l.MonotonicNanos)})
			}
			return read == protocol.MaxMarks
		})
		if len(found) > 0 {
			m.record(func(j *journal) { j.Marks = append(j.Marks, found...) })
		}
		if err != nil {
			m.failUnlessDone(ctx, err)
			return
		}
	}
}
