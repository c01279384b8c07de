package coordinator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/node/protocol"
)

var trialA = types.NamespacedName{Namespace: "ns", Name: "a"}

// tokens accepts each pod's UID as its token.
type tokens struct{ err error }

func (t tokens) Claimed(token string) (types.UID, bool) {
	if token == "stranger" {
		return "u1", true // the token lies
	}
	return types.UID(token), true
}

func (t tokens) Known(string) (types.UID, bool) { return "", false }

func (t tokens) Identify(_ context.Context, token string) (types.UID, error) {
	if token == "stranger" {
		return "", &DeniedError{Reason: "unknown"}
	}
	return types.UID(token), t.err
}

type kept struct {
	mu   sync.Mutex
	got  map[string]string
	fail error
}

func (k *kept) store(kind string) storeFunc {
	return func(_ context.Context, p Pod, packed []byte, read func()) error {
		read()
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.fail != nil {
			return k.fail
		}
		k.got[kind+"/"+p.Name] = string(packed)
		return nil
	}
}

func (k *kept) StorePrepared(ctx context.Context, p Pod, b []byte, read func()) error {
	return k.store("prepared")(ctx, p, b, read)
}
func (k *kept) StoreCollected(ctx context.Context, p Pod, b []byte, read func()) error {
	return k.store("collected")(ctx, p, b, read)
}
func (k *kept) StoreResults(ctx context.Context, p Pod, b []byte, read func()) error {
	return k.store("results")(ctx, p, b, read)
}

type fixture struct {
	*Coordinator
	*httptest.Server
	kept     *kept
	leads    bool
	notified chan types.NamespacedName
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{kept: &kept{got: map[string]string{}}, leads: true, notified: make(chan types.NamespacedName, 100)}
	f.Coordinator = New(Options{
		Clock: clock.RealClock{}, Log: logr.Discard(), Identifier: tokens{}, Store: f.kept,
		Notify: func(n types.NamespacedName) { f.notified <- n }, Leading: func() bool { return f.leads },
	})
	f.Server = httptest.NewServer(f.Handler())
	t.Cleanup(f.Server.Close)
	return f
}

func (f *fixture) call(t *testing.T, method, path, token string, body any) (int, []byte) {
	t.Helper()
	raw, ok := body.([]byte)
	if !ok {
		var err error
		if raw, err = json.Marshal(body); err != nil {
			t.Fatal(err)
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), method, f.URL+path, bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, b
}

func (f *fixture) sync(t *testing.T, token string, r protocol.Report) protocol.Directive {
	t.Helper()
	status, b := f.call(t, http.MethodPost, "/v1/sync", token, r)
	if status != http.StatusOK {
		t.Fatalf("sync: status %d: %s", status, b)
	}
	var d protocol.Directive
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestWhoMayTalk(t *testing.T) {
	f := newFixture(t)
	f.Register(trialA, []Pod{{UID: "u1", Trial: trialA, Name: "r0"}})
	tests := map[string]struct {
		token string
		leads bool
		want  int
	}{
		"no token":                 {"", true, http.StatusUnauthorized},
		"an unknown token":         {"stranger", true, http.StatusUnauthorized},
		"a pod of no trial":        {"u9", true, http.StatusForbidden},
		"a pod of a trial":         {"u1", true, http.StatusOK},
		"a manager without a lead": {"u1", false, http.StatusServiceUnavailable},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f.leads = tc.leads
			if got, body := f.call(t, http.MethodPost, "/v1/sync", tc.token, protocol.Report{}); got != tc.want {
				t.Errorf("status %d (%s), want %d", got, body, tc.want)
			}
		})
	}
}

func TestAChangeReachesAHeldSyncAtOnce(t *testing.T) {
	f := newFixture(t)
	f.Register(trialA, []Pod{{UID: "u1", Trial: trialA, Name: "r0"}})
	first := f.sync(t, "u1", protocol.Report{})
	answered := make(chan protocol.Directive, 1)
	go func() { answered <- f.sync(t, "u1", protocol.Report{DirectiveVersion: first.Version}) }()
	<-f.notified // the first report
	select {
	case <-answered:
		t.Fatal("a sync was answered though nothing changed")
	case <-time.After(100 * time.Millisecond):
	}
	f.Direct(trialA, "r0", protocol.Directive{Start: true, FilesDigest: "d"}, []protocol.File{{Path: "/x", Content: []byte("y")}})
	select {
	case d := <-answered:
		if !d.Start {
			t.Errorf("directive is %+v, want start", d)
		}
	case <-time.After(protocol.MaxHold / 2):
		t.Fatal("the change did not reach the held sync")
	}
	if status, b := f.call(t, http.MethodGet, "/v1/files", "u1", nil); status != http.StatusOK || !bytes.Contains(b, []byte(`"/x"`)) {
		t.Errorf("files: status %d, %s", status, b)
	}
}

func TestOnlyWhatMattersWakesTheController(t *testing.T) {
	f := newFixture(t)
	f.Register(trialA, []Pod{{UID: "u1", Trial: trialA, Name: "r0"}})
	f.sync(t, "u1", protocol.Report{})
	<-f.notified
	f.sync(t, "u1", protocol.Report{ClockOffset: time.Second, Progress: &protocol.Progress{Committed: 3}, TCPResets: 1})
	if len(f.notified) != 0 {
		t.Error("clock, progress and resets woke the controller up")
	}
	if r, _ := f.Report(trialA, "r0"); r.ClockOffset != time.Second {
		t.Errorf("the last report is %+v, want the clock offset in it", r)
	}
	f.sync(t, "u1", protocol.Report{Ready: true})
	if len(f.notified) != 1 {
		t.Error("being ready did not wake the controller up")
	}
	<-f.notified
	measured := protocol.Report{Ready: true, Network: &protocol.NetworkReport{Baseline: true}}
	f.sync(t, "u1", measured)
	<-f.notified
	measured.Network = &protocol.NetworkReport{Baseline: true, Late: time.Millisecond, Links: []protocol.LinkReport{{Peer: "r1", CanarySent: 7}}}
	f.sync(t, "u1", measured)
	if len(f.notified) != 0 {
		t.Error("canaries woke the controller up")
	}
	measured.Network = &protocol.NetworkReport{Baseline: true, Lost: "the map is empty"}
	f.sync(t, "u1", measured)
	if len(f.notified) != 1 {
		t.Error("the loss of links did not wake the controller up")
	}
}

// An agent hangs up on a report to send a newer one. On a busy manager the older one may arrive
// later. The manager once believed it, and heard nothing newer for the ten seconds until the
// agent's next report.
func TestAnOvertakenReportIsIgnored(t *testing.T) {
	f := newFixture(t)
	f.Register(trialA, []Pod{{UID: "u1", Trial: trialA, Name: "r0"}})
	f.sync(t, "u1", protocol.Report{Incarnation: "a", Sequence: 2, Ready: true})
	f.sync(t, "u1", protocol.Report{Incarnation: "a", Sequence: 1})
	if r, _ := f.Report(trialA, "r0"); !r.Ready {
		t.Error("the older report replaced the newer one")
	}
	f.sync(t, "u1", protocol.Report{Incarnation: "b", Sequence: 1})
	if r, _ := f.Report(trialA, "r0"); r.Incarnation != "b" {
		t.Error("the first report of a restarted agent was taken for an old one")
	}
}

func TestWhatIsSentIsStoredBeforeItIsAcknowledged(t *testing.T) {
	f := newFixture(t)
	f.Register(trialA, []Pod{{UID: "u1", Trial: trialA, Name: "c0", Part: v1alpha1.PodTypeClient}, {UID: "u2", Trial: trialA, Name: "p", Part: v1alpha1.PodTypePrepare}})
	f.kept.fail = errors.New("the API server is away")
	if status, _ := f.call(t, http.MethodPost, "/v1/results", "u1", []byte("r")); status != http.StatusServiceUnavailable {
		t.Errorf("status %d while nothing can be stored, want 503", status)
	}
	f.kept.fail = nil
	if status, _ := f.call(t, http.MethodPost, "/v1/results", "u1", []byte("r")); status != http.StatusNoContent || f.kept.got["results/c0"] != "r" {
		t.Errorf("status %d and stored %v, want 204 and the results", status, f.kept.got)
	}
	if status, body := f.call(t, http.MethodPost, "/v1/prepared", "u2", make([]byte, protocol.PreparedLimit+1)); status != http.StatusRequestEntityTooLarge {
		t.Errorf("status %d (%s) for too large an output, want 413", status, body)
	}
}

// A pod that is made again under the same name is another pod. The token of its predecessor opens
// nothing, and the predecessor's report is forgotten.
func TestAPodMadeAgainIsAnother(t *testing.T) {
	f := newFixture(t)
	f.Register(trialA, []Pod{{UID: "u1", Trial: trialA, Name: "r0"}})
	f.sync(t, "u1", protocol.Report{Ready: true})
	f.Register(trialA, []Pod{{UID: "u2", Trial: trialA, Name: "r0"}})
	if r, _ := f.Report(trialA, "r0"); r != nil {
		t.Errorf("the new pod has the report %+v of the old", r)
	}
	if status, _ := f.call(t, http.MethodPost, "/v1/sync", "u1", protocol.Report{}); status != http.StatusForbidden {
		t.Errorf("the old pod's sync has status %d, want 403", status)
	}
	f.Forget(trialA)
	if status, _ := f.call(t, http.MethodPost, "/v1/sync", "u2", protocol.Report{}); status != http.StatusForbidden {
		t.Errorf("a forgotten pod's sync has status %d, want 403", status)
	}
}

func TestTheSameDirectiveHasTheSameVersion(t *testing.T) {
	a, b, c := protocol.Directive{Start: true}, protocol.Directive{Start: true, Version: "x"}, protocol.Directive{Finish: true}
	setVersion(&a)
	setVersion(&b)
	setVersion(&c)
	if a.Version != b.Version || a.Version == c.Version {
		t.Errorf("versions %q %q %q: want the first two equal and the third not", a.Version, b.Version, c.Version)
	}
}

// If the token of a replica's agent leaks, it must not be accepted for a client's results: the
// first results to arrive are kept.
func TestAPodSendsItsOwnPartOnly(t *testing.T) {
	f := newFixture(t)
	f.Register(trialA, []Pod{
		{UID: "replica", Trial: trialA, Name: "r0", Part: v1alpha1.PodTypeReplica},
		{UID: "client", Trial: trialA, Name: "c0", Part: v1alpha1.PodTypeClient},
		{UID: "prepare", Trial: trialA, Name: "p", Part: v1alpha1.PodTypePrepare},
		{UID: "machine", Trial: trialA, Name: "m"},
	})
	for pod, path := range map[string]string{"client": "/v1/results", "prepare": "/v1/prepared"} {
		for _, uid := range []string{"replica", "client", "prepare", "machine"} {
			want := http.StatusForbidden
			if uid == pod {
				want = http.StatusNoContent
			}
			if got, body := f.call(t, http.MethodPost, path, uid, []byte("x")); got != want {
				t.Errorf("%s of %s: status %d (%s), want %d", path, uid, got, body, want)
			}
		}
	}
}

// If the store rejects a file, the agent does not send it again and again.
func TestWhatIsRejectedIsFinal(t *testing.T) {
	f := newFixture(t)
	f.Register(trialA, []Pod{{UID: "u1", Trial: trialA, Name: "c0", Part: v1alpha1.PodTypeClient}})
	f.kept.fail = &RejectedError{Reason: "it is no gzip"}
	if got, body := f.call(t, http.MethodPost, "/v1/results", "u1", []byte("x")); got != http.StatusBadRequest || !strings.Contains(string(body), "it is no gzip") {
		t.Errorf("status %d (%s), want 400", got, body)
	}
}

// counting counts the questions to the API server.
type counting struct {
	tokens
	asked int
}

func (c *counting) Identify(ctx context.Context, token string) (types.UID, error) {
	c.asked++
	return c.tokens.Identify(ctx, token)
}

// Anyone who reached the port could once make the API server review any number of tokens, and the
// agents' tokens waited in the same queue.
func TestUnknownTokensAreCheap(t *testing.T) {
	f := newFixture(t)
	asked := &counting{}
	f.Identifier = asked
	f.Register(trialA, []Pod{{UID: "u1", Trial: trialA, Name: "r0"}})
	for range 50 {
		if got, _ := f.call(t, http.MethodPost, "/v1/sync", "of-no-pod", protocol.Report{}); got != http.StatusForbidden {
			t.Fatalf("status %d for a token of no pod, want 403", got)
		}
	}
	if asked.asked != 0 {
		t.Errorf("the API server was asked %d times about pods of no trial", asked.asked)
	}
	var last int
	for range 50 { // the tokens name a pod that exists
		last, _ = f.call(t, http.MethodPost, "/v1/sync", "stranger", protocol.Report{})
	}
	if asked.asked > refusedBurst || last != http.StatusServiceUnavailable {
		t.Errorf("the API server was asked %d times about 50 forged tokens, the last of which got status %d", asked.asked, last)
	}
}

func TestRefusalsAreForgotten(t *testing.T) {
	var r refusals
	now := time.Unix(1000, 0)
	for range refusedBurst {
		if !r.allow("10.0.0.1:99", "u1", now) {
			t.Fatal("refused before the burst is over")
		}
		r.note("10.0.0.1:99", "u1", now)
	}
	if r.allow("10.0.0.1:17", "u1", now) {
		t.Error("the sender need not wait")
	}
	if !r.allow("10.0.0.2:17", "u1", now) || !r.allow("10.0.0.1:17", "u2", now) {
		t.Error("another address, or another pod behind the same one, must wait")
	}
	if !r.allow("10.0.0.1:17", "u1", now.Add(refusedEvery)) {
		t.Error("the sender must wait for more than one interval")
	}
}

func TestSendersByAddress(t *testing.T) {
	for name, tc := range map[string]struct {
		a, b string
		same bool
	}{
		"another port":           {"10.0.0.1:1", "10.0.0.1:2", true},
		"IPv4":                   {"10.0.0.1:1", "10.0.0.2:1", false},
		"IPv4 in IPv6":           {"10.0.0.1:1", "[::ffff:10.0.0.1]:1", true},
		"IPv6 of one machine":    {"[fd00:1:2:3::1]:1", "[fd00:1:2:3:9::2]:1", true},
		"IPv6 of another":        {"[fd00:1:2:3::1]:1", "[fd00:1:2:4::1]:1", false},
		"IPv6 with a zone":       {"[fe80::1%eth0]:1", "[fe80::2%eth1]:1", true},
		"what is not an address": {"somewhere", "elsewhere", true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := senderOf(tc.a, "u") == senderOf(tc.b, "u"); got != tc.same {
				t.Errorf("%s and %s are one sender: %v, want %v", tc.a, tc.b, got, tc.same)
			}
		})
	}
}
