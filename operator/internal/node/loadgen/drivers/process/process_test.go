package process

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/node/loadgen"
)

// behaviourEnv makes this test program a driver. Its value names the behaviour.
const behaviourEnv = "ASSAY_TEST_DRIVER"

func TestMain(m *testing.M) {
	if behaviour := os.Getenv(behaviourEnv); behaviour != "" {
		drive(behaviour)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// drive is a driver. It commits every request, unless its behaviour or the request's sequence
// demands another outcome.
func drive(behaviour string) {
	in := bufio.NewScanner(os.Stdin)
	ended, late := 0, int64(-1)
	for in.Scan() {
		var m struct {
			Type                     string
			ID, Sequence, Seed       int64
			Client, Attempt, Clients int32
			RequestTimeoutMicros     int64
			Version, FirstClient     int
		}
		if err := json.Unmarshal(in.Bytes(), &m); err != nil {
			fmt.Fprintln(os.Stderr, "driver: bad line", in.Text())
			os.Exit(9)
		}
		switch {
		case m.Type == "hello" && behaviour == "never ready":
			time.Sleep(time.Hour)
		case m.Type == "hello" && behaviour == "exit at hello":
			os.Exit(4)
		case m.Type == "hello" && behaviour == "error":
			fmt.Println(`{"type":"error","message":"no such table"}`)
		case m.Type == "hello" && behaviour == "noise":
			fmt.Println(`connected to 10.0.0.1`)
		case m.Type == "hello" && behaviour == "unknown type":
			fmt.Println(`{"type":"start"}`)
		case m.Type == "hello":
			fmt.Fprintf(os.Stderr, "hello version %d clients %d+%d seed %d timeout %d\n", m.Version, m.FirstClient, m.Clients, m.Seed, m.RequestTimeoutMicros)
			fmt.Println(`{"type":"ready"}`)
		case m.Type == "begin" && behaviour == "silent":
		case m.Type == "begin" && behaviour == "crash" && ended == 3:
			os.Exit(3)
		case m.Type == "begin" && behaviour == "close output":
			_ = os.Stdout.Close()
		case m.Type == "begin" && behaviour == "unknown outcome":
			fmt.Printf(`{"type":"end","id":%d,"outcome":"committed"}`+"\n", m.ID)
		case m.Type == "begin" && behaviour == "unknown id":
			fmt.Println(`{"type":"end","id":0,"outcome":"commit"}`)
		case m.Type == "begin" && behaviour == "late" && m.Sequence == 0:
			late = m.ID
		case m.Type == "begin" && late >= 0:
			fmt.Printf(`{"type":"end","id":%d,"outcome":"abort"}`+"\n"+`{"type":"end","id":%d,"outcome":"commit"}`+"\n", late, m.ID)
			late = -1
		case m.Type == "begin" && behaviour == "twice":
			fmt.Printf(`{"type":"end","id":%d,"outcome":"commit"}`+"\n"+`{"type":"end","id":%d,"outcome":"abort"}`+"\n", m.ID, m.ID)
		case m.Type == "begin":
			ended++
			outcome := []string{"commit", "abort", "error", "timeout"}[m.Sequence%4]
			fmt.Printf(`{"type": "end", "id": %d, "outcome": %q, "detail": "client %d attempt %d", "operation": "read", "node": "r%d"}`+"\n", m.ID, outcome, m.Client, m.Attempt, m.Client)
		case m.Type == "bye" && behaviour == "no stats":
			return
		case m.Type == "bye" && behaviour == "never exits":
			fmt.Println(`{"type":"stats","counters":{"ended":1}}`)
			time.Sleep(time.Hour)
		case m.Type == "bye" && behaviour == "ignores bye":
			time.Sleep(time.Hour)
		case m.Type == "bye":
			fmt.Printf(`{"type":"stats","counters":{"ended":%d}}`+"\n", ended)
			return
		}
	}
}

func options(t *testing.T, behaviour string, stderr *bytes.Buffer) Options {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(behaviourEnv, behaviour)
	return Options{Command: []string{self}, Stderr: stderr, FirstClient: 10, Clients: 3, Seed: 42, Timeout: 10 * time.Second,
		ExitTimeout: time.Minute, Log: slog.New(slog.DiscardHandler)}
}

func start(t *testing.T, behaviour string, change func(*Options)) (*Driver, *bytes.Buffer) {
	t.Helper()
	var stderr bytes.Buffer
	o := options(t, behaviour, &stderr)
	if change != nil {
		change(&o)
	}
	d, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	return d, &stderr
}

func open(t *testing.T, d *Driver, client int32) loadgen.Session {
	t.Helper()
	s, err := d.Session(client)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestConversation(t *testing.T) {
	d, stderr := start(t, "normal", nil)
	got := make([][]loadgen.Result, 3)
	var wg sync.WaitGroup
	for client := range int32(3) {
		s := open(t, d, 10+client)
		wg.Go(func() {
			for sequence := range int64(4) {
				got[client] = append(got[client], s.Do(loadgen.Request{Sequence: sequence, Attempt: int32(sequence) + 1}))
			}
		})
	}
	wg.Wait()
	for client := range 3 {
		var want []loadgen.Result
		for o := loadgen.Commit; o <= loadgen.Timeout; o++ {
			want = append(want, loadgen.Result{Outcome: o, Detail: fmt.Sprintf("client %d attempt %d", 10+client, o+1), Operation: "read", Node: fmt.Sprintf("r%d", 10+client)})
		}
		if diff := cmp.Diff(want, got[client]); diff != "" {
			t.Errorf("client %d (-want +got):\n%s", client, diff)
		}
	}
	counters, err := d.Close()
	if diff := cmp.Diff(map[string]int64{"ended": 12}, counters); err != nil || diff != "" {
		t.Errorf("error %v, counters (-want +got):\n%s", err, diff)
	}
	if got, want := stderr.String(), "hello version 1 clients 10+3 seed 42 timeout 10000000\n"; got != want {
		t.Errorf("standard error has %q, want %q", got, want)
	}
	if r := open(t, d, 10).Do(loadgen.Request{Attempt: 1}); r.Outcome != loadgen.Error {
		t.Errorf("a request after Close ends with %v, want error", r.Outcome)
	}
}

func TestStartFails(t *testing.T) {
	tests := map[string]string{
		"never ready":   "was not ready within 300ms",
		"exit at hello": "exit status 4",
		"error":         "no such table",
		"noise":         `printed "connected to 10.0.0.1" on its standard output`,
		"unknown type":  `a line of type "start"; it must be ready, error, end or stats`,
	}
	for behaviour, want := range tests {
		t.Run(behaviour, func(t *testing.T) {
			var stderr bytes.Buffer
			o := options(t, behaviour, &stderr)
			if behaviour == "never ready" {
				o.ReadyTimeout = 300 * time.Millisecond
			}
			_, err := Start(o)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("Start() error = %v, want one with %q", err, want)
			}
		})
	}
	if _, err := Start(Options{Command: []string{"/does/not/exist"}, Log: slog.New(slog.DiscardHandler)}); err == nil {
		t.Error("a program that does not exist starts")
	}
}

// When a driver cannot go on, the run fails, and so do the current and all later requests.
func TestDeathInTheRun(t *testing.T) {
	tests := map[string]string{
		"crash":           "exit status 3",
		"close output":    "closed its standard output",
		"unknown outcome": `outcome "committed"; it must be commit, abort, error or timeout`,
		"unknown id":      "ended request 0, which does not exist",
	}
	for behaviour, want := range tests {
		t.Run(behaviour, func(t *testing.T) {
			// The driver must report a dead program as dead within a second of the end of its
			// output.
			d, _ := start(t, behaviour, nil)
			s := open(t, d, 10)
			var r loadgen.Result
			for range 4 {
				r = s.Do(loadgen.Request{Sequence: 0, Attempt: 1})
			}
			err := d.Err()
			_, closeErr := d.Close()
			if r.Outcome != loadgen.Error || !strings.Contains(r.Detail, want) {
				t.Fatalf("the last request ends with %v, %q; want an error with %q", r.Outcome, r.Detail, want)
			}
			for name, err := range map[string]error{"Err()": err, "Close()": closeErr} {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Fatalf("%s = %v, want %q", name, err, want)
				}
			}
		})
	}
}

func TestSilenceTimesOut(t *testing.T) {
	d, _ := start(t, "silent", func(o *Options) { o.Timeout = 50 * time.Millisecond })
	s := open(t, d, 11)
	for range 3 {
		began := time.Now()
		if r := s.Do(loadgen.Request{Attempt: 1}); r.Outcome != loadgen.Timeout || time.Since(began) < 50*time.Millisecond {
			t.Errorf("a request without answer ends with %v after %v", r.Outcome, time.Since(began))
		}
	}
	if _, err := d.Close(); err != nil {
		t.Error(err)
	}
}

// An answer that comes after the timeout must not count as the answer to the client's next request.
func TestLateAnswerIsDropped(t *testing.T) {
	d, _ := start(t, "late", func(o *Options) { o.Timeout = 30 * time.Millisecond })
	s := open(t, d, 12)
	if r := s.Do(loadgen.Request{Sequence: 0, Attempt: 1}); r.Outcome != loadgen.Timeout {
		t.Fatalf("the first request ends with %v, want a timeout", r.Outcome)
	}
	d.sessions[2].timeout = time.Minute // the late abort arrives before the next request's answer
	for range 5 {
		if r := s.Do(loadgen.Request{Sequence: 4, Attempt: 1}); r.Outcome != loadgen.Commit {
			t.Errorf("a later request ends with %v, want its own commit", r.Outcome)
		}
	}
	if _, err := d.Close(); err != nil {
		t.Error(err)
	}
}

func TestSecondAnswerIsDropped(t *testing.T) {
	d, _ := start(t, "twice", nil)
	s := open(t, d, 10)
	for range 50 {
		if r := s.Do(loadgen.Request{Attempt: 1}); r.Outcome != loadgen.Commit {
			t.Fatalf("a request ends with %v, the second answer to the one before", r.Outcome)
		}
	}
	if _, err := d.Close(); err != nil {
		t.Error(err)
	}
}

func TestClose(t *testing.T) {
	tests := map[string]struct {
		wantErr      string
		wantCounters map[string]int64
		killed       bool
	}{
		"normal":      {"", map[string]int64{"ended": 0}, false},
		"no stats":    {"did not answer bye with a line of type stats", nil, false},
		"never exits": {"", map[string]int64{"ended": 1}, true},
		"ignores bye": {"did not answer bye with a line of type stats", nil, true},
	}
	for behaviour, tc := range tests {
		t.Run(behaviour, func(t *testing.T) {
			d, _ := start(t, behaviour, func(o *Options) {
				if tc.killed {
					o.ExitTimeout = 300 * time.Millisecond
				}
			})
			counters, err := d.Close()
			if killed := !d.cmd.ProcessState.Exited(); killed != tc.killed {
				t.Errorf("the process was killed: %v, want %v (%v)", killed, tc.killed, d.cmd.ProcessState)
			}
			if (err == nil) != (tc.wantErr == "") || err != nil && !strings.Contains(err.Error(), tc.wantErr) {
				t.Fatalf("Close() error = %v, want %q", err, tc.wantErr)
			}
			if diff := cmp.Diff(tc.wantCounters, counters); diff != "" {
				t.Fatalf("counters (-want +got):\n%s", diff)
			}
		})
	}
}

// Close must free the clients at once, even if the program takes long.
func TestCloseEndsRunningRequests(t *testing.T) {
	d, _ := start(t, "silent", nil)
	done := make(chan loadgen.Result)
	go func() { done <- open(t, d, 10).Do(loadgen.Request{Attempt: 1}) }()
	for d.sessions[0].waiting.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	if _, err := d.Close(); err != nil {
		t.Error(err)
	}
	select {
	case r := <-done:
		if r.Outcome != loadgen.Error {
			t.Errorf("the request ends with %v, want error", r.Outcome)
		}
	case <-time.After(time.Minute):
		t.Error("the request has not ended")
	}
}
