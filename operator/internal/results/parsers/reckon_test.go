package parsers_test

import (
	"encoding/binary"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/parsers"
)

// reckonZero is t = 0 of the sample, 50 ms after its client was told to start.
const reckonZero = 1795414133545483200

func reckon(t *testing.T, text string) (results.Client, error) {
	t.Helper()
	return parsers.Parse(parsers.FormatReckon, strings.NewReader(text), parsers.Options{
		ZeroUnixNanos: reckonZero, Windows: timeline.Windows{WarmUp: 50 * time.Millisecond, Measure: 100 * time.Millisecond, CoolDown: time.Second}, Clients: 1,
	})
}

// The sample is what the client library of Cjen1/reckon at df17d816639e, reckon/goclient, wrote. It
// has 20 operations, one each 10 ms, on a store in memory that lets reads wait for 1 ms, and writes
// for 2. Writes of the key 5 fail.
func TestReckonsOwnClient(t *testing.T) {
	sample, err := os.ReadFile("testdata/reckon.bin")
	if err != nil {
		t.Fatal(err)
	}
	c, err := reckon(t, string(sample))
	if err != nil {
		t.Fatal(err)
	}
	sent, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	if c, err = results.DecodeClient(sent); err != nil {
		t.Fatalf("the manager refuses the report: %v", err)
	}
	// Another program counted the sample: ten operations are planned in the window, and one before
	// the window was sent late.
	if c.Counters.Committed != 9 || c.Counters.Errors != 2 || c.Counters.Offered != 11 || c.Driver["sentLate"] != 9 {
		t.Errorf("%d committed, %d errors of %d offered, %d late; want 9, 2, 11, 9", c.Counters.Committed, c.Counters.Errors, c.Counters.Offered, c.Driver["sentLate"])
	}
	h, err := results.DecodeHistogram(c.Latency)
	if err != nil {
		t.Fatal(err)
	}
	for p, want := range map[float64]time.Duration{1: 1041 * time.Microsecond, 50: 1128 * time.Microsecond, 100: 2183 * time.Microsecond} {
		if got := h.Percentile(p); got < want-3*time.Microsecond || got > want+3*time.Microsecond {
			t.Errorf("percentile %g is %v, want %v", p, got, want)
		}
	}
	if c.Driver["endLines"] != 1 || len(c.Unreported) == 0 {
		t.Errorf("driver %v, unreported %v", c.Driver, c.Unreported)
	}
}

// A client whose first operation fails has begun with it, 25 ms after t = 0 and 75 ms after the
// warm-up began.
func TestReckonStartsWithAFailure(t *testing.T) {
	text := ""
	for _, message := range []string{
		`{"kind":"result","t_submitted":1795414133.5704832,"t_result":1795414133.58,"result":"Error"}`,
		`{"kind":"result","t_submitted":1795414133.6,"t_result":1795414133.61,"result":"Success"}`,
	} {
		text += string(binary.LittleEndian.AppendUint32(nil, uint32(len(message)))) + message
	}
	c, err := reckon(t, text)
	if got := time.Duration(c.StartedNanos); err != nil || got.Round(time.Millisecond) != 75*time.Millisecond {
		t.Errorf("the first operation began at %v, %v", got, err)
	}
}

func TestReckonsMessagesThatAreWrong(t *testing.T) {
	message := func(text string) string {
		return string(binary.LittleEndian.AppendUint32(nil, uint32(len(text)))) + text
	}
	good := message(`{"kind":"result","t_submitted":1795414133.6,"t_result":1795414133.61,"result":"Success"}`)
	for name, tc := range map[string]struct{ text, want string }{
		"a line of log":         {"Starting\n", "message 1 of the client's output: it would have"},
		"no JSON":               {good + message("{"), "message 2 of the client's output"},
		"another kind":          {message(`{"kind":"start"}`), `the kind "start" is none of`},
		"what it cannot do":     {message(`{"kind":"result","t_submitted":-1,"t_result":-1,"result":"Error operation was not found"}`), "t_submitted: -1 is no instant (Error operation was not found)"},
		"ends before it begins": {message(`{"kind":"result","t_submitted":1795414133.6,"t_result":1795414133.5,"result":"Success"}`), "before it was asked for"},
	} {
		if _, err := reckon(t, tc.text); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
	}
	c, err := reckon(t, good+good[:len(good)-5])
	if err != nil || c.Counters.Committed != 1 || c.Driver["cutLines"] != 1 {
		t.Errorf("a stream that is cut gives %+v, driver %v, %v", c.Counters, c.Driver, err)
	}
}
