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

// Event is one line of a machine's record: what SSH and the script did there, and when.
type Event struct {
	// Kind is session, refused, script, deadline, start (the machine came up), boot (its boot
	// command) or closed (a connection to another machine ended). A report has no closed ones, and
	// unanswered in the place of those that came to no session.
	Kind string `json:"kind"`
	// ID joins the line that reports a beginning with the one that reports the end.
	ID int64 `json:"id,omitempty"`
	// Machine that wrote the line.
	Machine string `json:"machine"`
	// Pod that the machine is; where it came up.
	Pod string `json:"pod,omitempty"`
	// From is the machine that connected, or its address.
	From string `json:"from,omitempty"`
	// To is the machine that a connection that ended was made to.
	To string `json:"to,omitempty"`
	// Port of the client's end of the connection.
	Port int `json:"port,omitempty"`
	// It is what ran in a session: exec, shell or sftp.
	What string `json:"what,omitempty"`
	// Command that ran, as the client gave it; at most maxCommand bytes of it.
	Command string `json:"command,omitempty"`
	// BeginUnixNanos and EndUnixNanos by the machine's clock; 0 in the line of a beginning.
	BeginUnixNanos int64 `json:"beginUnixNanos"`
	EndUnixNanos   int64 `json:"endUnixNanos,omitempty"`
	// ClosedUnixNanos is when the connection of a session ended for the machine of the script, by
	// the clock of that; in a report alone. 0: that is not known.
	ClosedUnixNanos int64 `json:"closedUnixNanos,omitempty"`
	// ExitCode, or 128 and the number of the signal; in the line of an end.
	ExitCode *int `json:"exitCode,omitempty"`
	// Message of a deadline; of refused connections, what the last one tried; of a start, how the
	// image was set up.
	Message string `json:"message,omitempty"`
	// Count of the connections from there that were refused, or that came to no session.
	Count int `json:"count,omitempty"`
}

const (
	// maxCommand is how much of a command is recorded, in bytes.
	maxCommand = 512
	// maxStrangers is from how many addresses refused connections are told apart. Those from
	// further ones are counted together.
	maxStrangers = 64
	// otherStrangers stands for these.
	otherStrangers = "others"
)

// Recorder writes what happens on a machine to a file. A line is written when something begins, and
// another one when it ends: what a fault interrupts has a beginning and no end.
type Recorder struct {
	machine string
	names   map[string]string // of machines, by address
	next    atomic.Int64

	mu sync.Mutex
	to io.Writer

	// They count the connections that were refused, by where they came from; written says how many
	// of them the file has.
	strangers sync.Mutex
	refusals  map[string]*Event
	written   map[string]int
}

// NewRecorder writes to a writer. names are the machines of the trial by address.
func NewRecorder(machine string, names map[string]string, to io.Writer) *Recorder {
	r := &Recorder{machine: machine, names: names, to: to, refusals: map[string]*Event{}, written: map[string]int{}}
	// IDs differ from those from before the machine was started again.
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
	_, _ = r.to.Write(append(line, '\n')) // a full disk loses records and stops no session
}

// recorded is something that has begun.
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

// closed writes down that a connection from a port of this machine to another machine has ended.
func (r *Recorder) closed(to netip.Addr, port int) {
	if name := r.names[to.String()]; name != "" {
		r.started(Event{Kind: "closed", To: name, Port: port})
	}
}

// refused counts a connection that was refused. The file gets a line at the first from an address,
// and whenever their number has doubled: those who try forever do not fill the disk.
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

// count writes how many connections were refused so far. It is called before the record is read.
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

// ReadRecord reads what Recorders wrote, in the order of beginnings. A record with a line of its
// beginning and one of its end is one event. A last line that is cut off is left out: the machine
// died while it wrote it.
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

// openRecord opens the file of a machine's record to be added to: the machine may have been there
// before.
func openRecord(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
}
