package machine

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Event is one line of a machine's record: an action of SSH or of the script on the machine, with
// its time.
type Event struct {
	// Kind is session, refused, script, deadline, start (the machine came up), boot (its boot
	// command) or closed (a connection to another machine ended). A report has no events of the
	// kind closed. Instead it has the kind unanswered for connections without a session.
	Kind string `json:"kind"`
	// ID joins the line that reports a beginning with the one that reports the end.
	ID int64 `json:"id,omitempty"`
	// Machine that wrote the line.
	Machine string `json:"machine"`
	// Pod of the machine, in a line of the kind start.
	Pod string `json:"pod,omitempty"`
	// From is the machine that connected, or its address.
	From string `json:"from,omitempty"`
	// To is the machine at the other end of a connection that ended.
	To string `json:"to,omitempty"`
	// Port of the client's end of the connection.
	Port int `json:"port,omitempty"`
	// The kind of a session: exec, shell or sftp.
	What string `json:"what,omitempty"`
	// Command that ran, as the client gave it, up to maxCommand bytes.
	Command string `json:"command,omitempty"`
	// BeginUnixNanos and EndUnixNanos are on the machine's clock; EndUnixNanos is 0 in the line of
	// a beginning.
	BeginUnixNanos int64 `json:"beginUnixNanos"`
	EndUnixNanos   int64 `json:"endUnixNanos,omitempty"`
	// ClosedUnixNanos is when the connection of a session ended for the script's machine, on the
	// clock of that machine. Only reports have it. 0: it is unknown.
	ClosedUnixNanos int64 `json:"closedUnixNanos,omitempty"`
	// ExitCode, or 128 and the number of the signal; in the line of an end.
	ExitCode *int `json:"exitCode,omitempty"`
	// Message of a deadline. For refused connections it is the last login attempt, and for a start
	// the set-up of the image.
	Message string `json:"message,omitempty"`
	// Count of the connections from there that were refused, or of those to it without a session.
	Count int `json:"count,omitempty"`
}

const (
	// maxCommand is how many bytes of a command are recorded.
	maxCommand = 512
	// maxStrangers is for how many addresses refused connections are counted separately. Those from
	// further addresses have a common count.
	maxStrangers = 64
	// otherStrangers stands for all further addresses.
	otherStrangers = "others"
)

// Recorder writes the events of a machine to a file. It writes a line when an action begins, and
// another one when it ends. An action that a fault interrupts has only the first line.
type Recorder struct {
	machine string
	names   map[string]string // of machines, by address
	next    atomic.Int64

	mu sync.Mutex
	to io.Writer

	// Refused connections, by where they came from. refusals counts all of them, and written those
	// that the file has.
	strangers sync.Mutex
	refusals  map[string]*Event
	written   map[string]int
}

// NewRecorder writes to a writer. names are the machines of the trial by address.
func NewRecorder(machine string, names map[string]string, to io.Writer) *Recorder {
	r := &Recorder{machine: machine, names: names, to: to, refusals: map[string]*Event{}, written: map[string]int{}}
	// IDs differ from those before a restart of the machine.
	r.next.Store(time.Now().UnixNano())
	return r
}

func (r *Recorder) write(e Event) {
	e.Machine = r.machine
	line, err := json.Marshal(e)
	if err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	_, _ = r.to.Write(append(line, '\n')) // a full disk loses records but stops no session
}

// recorded is an action that has begun.
type recorded struct {
	recorder *Recorder
	event    Event
}

func (r *Recorder) begin(what, command string, from net.Addr) *recorded {
	e := Event{Kind: "session", What: what, Command: command[:min(len(command), maxCommand)], From: r.name(from)}
	if address, isTCP := from.(*net.TCPAddr); isTCP {
		e.Port = address.Port
	}
	if what == "subsystem" {
		e.What, e.Command = "sftp", ""
	}
	return r.started(e)
}

func (r *Recorder) started(e Event) *recorded {
	e.ID, e.BeginUnixNanos = r.next.Add(1), time.Now().UnixNano()
	r.write(e)
	return &recorded{recorder: r, event: e}
}

func (r *recorded) end(code int) {
	r.event.EndUnixNanos, r.event.ExitCode = time.Now().UnixNano(), &code
	r.recorder.write(r.event)
}

// closed records the end of a connection from a port of this machine to another machine.
func (r *Recorder) closed(to netip.Addr, port int) {
	if name := r.names[to.String()]; name != "" {
		r.started(Event{Kind: "closed", To: name, Port: port})
	}
}

// refused counts a refused connection. The file gets a line at the first one from an address, and
// whenever their number has doubled. So clients that try for ever do not fill the disk.
func (r *Recorder) refused(from net.Addr, offered string) {
	name := r.name(from)
	r.strangers.Lock()
	defer r.strangers.Unlock()
	e := r.refusals[name]
	if e == nil && len(r.refusals) >= maxStrangers {
		name = otherStrangers
		e = r.refusals[name]
	}
	if e == nil {
		e = &Event{Kind: "refused", ID: r.next.Add(1), From: name, BeginUnixNanos: time.Now().UnixNano()}
		r.refusals[name] = e
	}
	e.Count++
	e.EndUnixNanos, e.Message = time.Now().UnixNano(), offered
	if e.Count >= 2*r.written[name] {
		r.write(*e)
		r.written[name] = e.Count
	}
}

// count writes how many connections were refused so far. The caller calls it before it reads the
// record.
func (r *Recorder) count() {
	r.strangers.Lock()
	defer r.strangers.Unlock()
	for name, e := range r.refusals {
		if e.Count > r.written[name] {
			r.write(*e)
			r.written[name] = e.Count
		}
	}
}

func (r *Recorder) name(from net.Addr) string {
	host, _, err := net.SplitHostPort(from.String())
	if err != nil {
		return from.String()
	}
	return cmp.Or(r.names[host], host)
}

// ReadRecord reads the lines of Recorders, in the order of beginnings. The lines of a beginning and
// of its end are one event. It leaves out a last line that is cut off: the machine died while it
// wrote that line.
func ReadRecord(from io.Reader) ([]Event, error) {
	var events []Event
	at := map[string]int{}
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		var e Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			if lines.Scan() {
				return nil, fmt.Errorf("line %d of a machine's record cannot be read: %w", n, err)
			}
			break
		}
		key := fmt.Sprintf("%s/%d", e.Machine, e.ID)
		if i, ok := at[key]; ok && e.ID != 0 {
			events[i] = e
			continue
		}
		at[key] = len(events)
		events = append(events, e)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read a machine's record: %w", err)
	}
	slices.SortStableFunc(events, func(a, b Event) int { return cmp.Compare(a.BeginUnixNanos, b.BeginUnixNanos) })
	return events, nil
}

// openRecord opens the file of a machine's record for appending: the machine may have run before.
func openRecord(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
}
