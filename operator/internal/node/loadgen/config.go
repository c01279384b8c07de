package loadgen

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"assay.dev/assay/operator/internal/model/timeline"
)

// The kinds of loop.
const (
	// LoopClosed: every client sends its next request when the last one has ended.
	LoopClosed = "Closed"
	// LoopOpen: requests arrive at a rate that does not depend on the replies.
	LoopOpen = "Open"
)

// The arrivals of an open loop.
const (
	// ArrivalsConstant: equal gaps.
	ArrivalsConstant = "Constant"
	// ArrivalsPoisson: exponentially distributed gaps.
	ArrivalsPoisson = "Poisson"
)

// The protocols of drivers.
const (
	// ProtocolProcess: a child process speaks the driver protocol
	// (docs/reference/driver-protocol.md).
	ProtocolProcess = "Process"
	// ProtocolEcho: messages are sent to a TCP echo server.
	ProtocolEcho = "Echo"
)

// Bounds of a Config.
const (
	MaxClients = 100_000
	MaxRate    = 100_000_000
	MinTimeout = time.Millisecond
	MaxTimeout = 10 * time.Minute
)

// Config describes the whole work of one load generator. It is the content of the file of `loadgen
// run --config`, as JSON.
type Config struct {
	// Index of this generator among those of the trial, from 0.
	Index int32 `json:"index"`
	// FirstClient is the global index of the first client of this generator.
	FirstClient int32 `json:"firstClient"`
	// Clients of this generator, 1 to 100000. In a closed loop each has one request outstanding. In
	// an open loop it is the maximum of outstanding requests.
	Clients int32 `json:"clients"`
	// AllClients is the number of clients of all generators of the trial. These clients share the
	// phases of a closed loop, and a trace. Default: the clients of this generator.
	AllClients int32 `json:"allClients,omitempty"`
	// Loop: Closed or Open.
	Loop string `json:"loop"`
	// Rate offered by this generator, in requests per second, 100 million at most. Open loop only.
	Rate float64 `json:"rate,omitempty"`
	// Arrivals of an open loop: Constant or Poisson.
	Arrivals string `json:"arrivals,omitempty"`
	// Phase shifts constant arrivals by this part of a gap, from 0 up to but not including 1, so
	// that several generators take turns.
	Phase float64 `json:"phase,omitempty"`
	// Phases of the load, one after the other from t = 0 on. Without phases the load does not
	// change.
	Phases []Phase `json:"phases,omitempty"`
	// Trace of arrivals, in place of rate and arrivals. Open loop only, and without phases.
	Trace *Trace `json:"trace,omitempty"`
	// Session makes an open loop semi-open. Nil: each arrival is one request.
	Session *UserSession `json:"session,omitempty"`
	// ThinkTime is how long a client of a closed loop, or a session, waits after a transaction
	// before the next, 0s to 10m. In a closed loop the first wait is a random part of the think
	// time.
	ThinkTime Duration `json:"thinkTime,omitempty"`
	// Timeout of one attempt, 1ms to 10m.
	Timeout Duration `json:"timeout"`
	// Retry of aborted transactions.
	Retry Retry `json:"retry"`
	// Seed of arrivals and waits. Drivers get the same seed.
	Seed int64 `json:"seed"`
	// Windows of the run. The windows of a start file replace them.
	Windows Windows `json:"windows"`
	// Driver reaches the system.
	Driver DriverConfig `json:"driver"`
	// Misbehaving clients of this generator. Nil: there are none.
	Misbehaving *Misbehaving `json:"misbehaving,omitempty"`
	// Files to read and write.
	Files Files `json:"files"`
}

// Retry says how aborted transactions are tried again.
type Retry struct {
	// Attempts is the maximum, with the first attempt. 0: no limit.
	Attempts int32 `json:"attempts"`
	// Backoff before the second attempt. Each further wait is twice as long. Each wait is drawn
	// uniformly between half of its length and its whole length.
	Backoff Duration `json:"backoff"`
	// MaxBackoff is the longest wait.
	MaxBackoff Duration `json:"maxBackoff"`
}

// Windows divide a run, as timeline.Windows does.
type Windows struct {
	WarmUp   Duration `json:"warmUp"`
	Measure  Duration `json:"measure"`
	CoolDown Duration `json:"coolDown"`
	Drain    Duration `json:"drain"`
}

// Timeline returns the windows as a timeline.Windows.
func (w Windows) Timeline() timeline.Windows {
	return timeline.Windows{WarmUp: time.Duration(w.WarmUp), Measure: time.Duration(w.Measure),
		CoolDown: time.Duration(w.CoolDown), Drain: time.Duration(w.Drain)}
}

// DriverConfig chooses how the system is reached.
type DriverConfig struct {
	// Protocol: Process or Echo.
	Protocol string `json:"protocol"`
	// Command of a process driver and its arguments.
	Command []string `json:"command,omitempty"`
	// Address of the echo server, host:port.
	Address string `json:"address,omitempty"`
}

// Misbehaving clients load the system through a driver of their own, which gets other parameters.
// They behave like all other clients, but no counter, histogram or timeline has their requests.
type Misbehaving struct {
	// Clients by their global index, ascending. Each belongs to this generator: from firstClient to
	// before firstClient + clients. There is at least one, and all clients may be listed.
	Clients []int32 `json:"clients"`
	// Driver of these clients.
	Driver DriverConfig `json:"driver"`
}

// Files that a run reads and writes. An empty path: not used.
type Files struct {
	// Ready is made when the driver is ready. Default: the environment's ASSAY_READY_FILE.
	Ready string `json:"ready,omitempty"`
	// Start is the file that the run waits for: a protocol.StartSignal. Without a file the run
	// starts at once. Default: the environment's ASSAY_START_FILE.
	Start string `json:"start,omitempty"`
	// Result is where the results.Client is written.
	Result string `json:"result,omitempty"`
	// Progress is the file for the progress, written once a second: a protocol.Progress.
	Progress string `json:"progress,omitempty"`
}

// Duration is a time.Duration. In JSON it is text: "1.5s".
type Duration time.Duration

// MarshalText writes the duration as Go does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads a duration as Go writes it.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err != nil {
		return fmt.Errorf("%q is not a duration such as 500ms or 20s", b)
	}
	*d = Duration(v)
	return nil
}

// ReadConfig reads and validates a configuration file.
func ReadConfig(path string) (Config, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return Config{}, fmt.Errorf("read the configuration: %w", err)
	}
	var c Config
	dec := json.NewDecoder(strings.NewReader(string(b)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&c); err != nil {
		return Config{}, fmt.Errorf("read the configuration %s: %w", path, err)
	}
	if err := c.Validate(); err != nil {
		return Config{}, fmt.Errorf("configuration %s: %w", path, err)
	}
	return c, nil
}

// Validate returns all errors of the configuration. Each message names the field and its valid
// values.
func (c Config) Validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(c.Index >= 0, "index is %d; it must be 0 or more", c.Index)
	check(c.FirstClient >= 0, "firstClient is %d; it must be 0 or more", c.FirstClient)
	check(c.Clients >= 1 && c.Clients <= MaxClients, "clients is %d; it must be from 1 to %d", c.Clients, MaxClients)
	check(c.Timeout >= Duration(MinTimeout) && c.Timeout <= Duration(MaxTimeout),
		"timeout is %v; it must be from %v to %v", time.Duration(c.Timeout), MinTimeout, MaxTimeout)
	check(c.AllClients == 0 || int64(c.AllClients) >= int64(c.FirstClient)+int64(c.Clients),
		"allClients is %d; this generator's clients end at %d", c.AllClients, int64(c.FirstClient)+int64(c.Clients))
	check(c.ThinkTime >= 0 && c.ThinkTime <= Duration(MaxTimeout), "thinkTime is %v; it must be from 0s to %v", time.Duration(c.ThinkTime), MaxTimeout)
	check(c.Retry.Attempts >= 0, "retry.attempts is %d; it must be 0 (no limit) or more", c.Retry.Attempts)
	check(c.Retry.Backoff >= 0, "retry.backoff is %v; it must be 0s or more", time.Duration(c.Retry.Backoff))
	check(c.Retry.MaxBackoff >= c.Retry.Backoff, "retry.maxBackoff is %v; it must be at least retry.backoff, %v",
		time.Duration(c.Retry.MaxBackoff), time.Duration(c.Retry.Backoff))
	errs = append(errs, c.validateLoop()...)
	if err := validateWindows(c.Windows.Timeline()); err != nil {
		errs = append(errs, err)
	}
	errs = append(errs, c.Driver.validate("driver")...)
	errs = append(errs, c.validateMisbehaving()...)
	return errors.Join(errs...)
}

func (c Config) validateLoop() []error {
	switch c.Loop {
	case LoopClosed:
		if c.Rate != 0 || c.Arrivals != "" || c.Phase != 0 || c.Trace != nil || c.Session != nil {
			return []error{errors.New("rate, arrivals, phase, trace and session belong to an open loop; leave them out or set loop to Open")}
		}
		return c.validatePhases()
	case LoopOpen:
		if c.ThinkTime != 0 && c.Session == nil {
			return []error{errors.New("thinkTime belongs to a closed loop or to sessions; leave it out or set loop to Closed")}
		}
	default:
		return []error{fmt.Errorf("loop is %q; it must be Closed or Open", c.Loop)}
	}
	errs := c.validatePhases()
	if c.Session != nil {
		errs = append(errs, c.Session.validate()...)
	}
	if c.Trace != nil {
		if c.Rate != 0 || c.Arrivals != "" || c.Phase != 0 || len(c.Phases) > 0 {
			errs = append(errs, errors.New("a trace says when requests arrive; leave out rate, arrivals, phase and phases"))
		}
		return append(errs, c.Trace.validate()...)
	}
	if !(c.Rate > 0 && c.Rate <= MaxRate) { // also rejects NaN
		errs = append(errs, fmt.Errorf("rate is %v; an open loop needs one above 0, %d requests per second at most", c.Rate, MaxRate))
	}
	if c.Arrivals != ArrivalsConstant && c.Arrivals != ArrivalsPoisson {
		errs = append(errs, fmt.Errorf("arrivals is %q; it must be Constant or Poisson", c.Arrivals))
	}
	if !(c.Phase >= 0 && c.Phase < 1) {
		errs = append(errs, fmt.Errorf("phase is %v; it must be from 0 up to but not including 1", c.Phase))
	}
	return errs
}

// validateWindows accepts the windows that an Experiment's schedule may have, and shorter windows
// for runs by hand.
func validateWindows(w timeline.Windows) error {
	for _, x := range []struct {
		name     string
		d        time.Duration
		min, max time.Duration
	}{
		{"warmUp", w.WarmUp, 0, time.Hour},
		{"measure", w.Measure, time.Millisecond, 24 * time.Hour},
		{"coolDown", w.CoolDown, 0, time.Hour},
		{"drain", w.Drain, 0, time.Hour},
	} {
		if x.d < x.min || x.d > x.max {
			return fmt.Errorf("windows.%s is %v; it must be from %v to %v", x.name, x.d, x.min, x.max)
		}
	}
	return nil
}

func (c Config) validateMisbehaving() []error {
	m := c.Misbehaving
	if m == nil {
		return nil
	}
	var errs []error
	if len(m.Clients) == 0 {
		errs = append(errs, errors.New("misbehaving.clients is empty; name a client, or leave misbehaving out"))
	}
	for i, k := range m.Clients {
		if k < c.FirstClient || int64(k) >= int64(c.FirstClient)+int64(c.Clients) {
			errs = append(errs, fmt.Errorf("misbehaving.clients[%d] is %d; this generator's clients are %d to %d", i, k, c.FirstClient, int64(c.FirstClient)+int64(c.Clients)-1))
			break
		}
		if i > 0 && k <= m.Clients[i-1] {
			errs = append(errs, fmt.Errorf("misbehaving.clients[%d] is %d after %d; they must ascend", i, k, m.Clients[i-1]))
			break
		}
	}
	return append(errs, m.Driver.validate("misbehaving.driver")...)
}

// validate puts the given field before the names of the driver's fields.
func (d DriverConfig) validate(field string) []error {
	switch d.Protocol {
	case ProtocolProcess:
		if len(d.Command) == 0 || d.Command[0] == "" {
			return []error{fmt.Errorf("%s.command is empty; a Process driver needs the program to start", field)}
		}
		if d.Address != "" {
			return []error{fmt.Errorf("%s.address belongs to the protocol Echo; leave it out", field)}
		}
	case ProtocolEcho:
		if d.Address == "" {
			return []error{fmt.Errorf("%s.address is empty; the Echo driver needs host:port", field)}
		}
		if len(d.Command) != 0 {
			return []error{fmt.Errorf("%s.command belongs to the protocol Process; leave it out", field)}
		}
	default:
		return []error{fmt.Errorf("%s.protocol is %q; it must be Process or Echo", field, d.Protocol)}
	}
	return nil
}
