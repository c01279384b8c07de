package archive

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/manager/coordinator"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/store"
)

// A store that accepts connections and never answers counts as failed. The condition says so, and
// the data stays in the cluster.
func TestAStoreThatHangs(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.keep("p-0", "replica.stdout.gz", []byte("printed"))
	s.complete()
	s.server.Freeze(t)
	// The store has half a minute to answer. A busy machine gets more.
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	began := time.Now()
	result, err := s.trials().Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(s.trial)})
	if err != nil {
		t.Fatalf("nothing is told after %v: %v", time.Since(began), err)
	}
	if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(s.trial), s.trial); err != nil {
		t.Fatal(err)
	}
	c := meta.FindStatusCondition(s.trial.Status.Conditions, v1alpha1.TrialResultsStored)
	t.Logf("noticed after %v", time.Since(began).Round(time.Second))
	if c == nil || c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonStoreUnreachable || result.RequeueAfter != retryFirst {
		t.Fatalf("condition %+v, %+v", c, result)
	}
	// Agents still get tickets, for which the store is not asked.
	began = time.Now()
	if _, err := s.desk().Ticket(t.Context(), s.pod("p-0"), protocol.Upload{Name: "a.gz", Size: 1, SHA256: strings.Repeat("0", 64)}); err != nil || time.Since(began) > 10*time.Second {
		t.Errorf("a ticket after %v: %v", time.Since(began), err)
	}
	s.server.Thaw(t)
	if _, c := s.reconcile(s.trials()); c.Status != metav1.ConditionTrue || c.Reason != v1alpha1.ReasonStored {
		t.Errorf("condition %+v", c)
	}
}

// While one trial waits for a hanging store, other trials of that store do not occupy the workers,
// so that trials of other stores go on.
func TestOneAsksAStoreThatHangs(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	g := &Gates{Clock: clock}
	down := &store.Problem{Reason: v1alpha1.ReasonStoreUnreachable}
	g.done("s", down)
	clock.Step(time.Minute)
	if g.closed("s") != 0 {
		t.Fatal("nobody may ask")
	}
	clock.Step(time.Minute)
	if g.closed("s") == 0 {
		t.Error("two wait for the same store")
	}
	g.done("s", errors.New("a trial's own"))
	if g.closed("s") != 0 {
		t.Error("nobody may ask after the first has gone")
	}
}

// Without a store for a ticket, an agent is told to hand over to the manager.
func TestNoTicketWithoutAStore(t *testing.T) {
	s := newStage(t)
	u := protocol.Upload{Name: "a.gz", Size: 1, SHA256: strings.Repeat("0", 64)}
	gone := &UploadHandler{Client: s.client, Reader: s.client}
	if _, err := gone.Ticket(t.Context(), s.pod("p-0"), u); !errors.Is(err, coordinator.ErrNoTicket) {
		t.Errorf("a store that the installation has no more: %v", err)
	}
	if err := gone.Keep(t.Context(), s.pod("p-0"), u, 0, []byte("x")); err != nil {
		t.Errorf("and what is kept for it: %v", err)
	}
}

// The store is down, and the namespace is full of logs. Results still find room. The trial's
// condition, an event and the manifest name the files that do not.
func TestWhatFoundNoRoomIsNamed(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	full := &store.Cluster{Client: s.client, Reader: s.client, Trial: s.trial}
	log := store.Object{Key: s.folder().PodFile("p-9", "replica.stdout.gz"), Size: 48 << 20, SHA256: "x"} // only its first part arrives
	if err := full.PutPart(t.Context(), log, 0, make([]byte, store.PartLimit)); err != nil {
		t.Fatal(err)
	}
	keep := func(name string) error {
		o := store.Describe("", []byte("x"))
		return s.desk().Keep(t.Context(), s.pod("p-0"), protocol.Upload{Name: name, Size: o.Size, SHA256: o.SHA256}, 0, []byte("x"))
	}
	for _, name := range []string{"replica.stderr.gz", "agent.log.gz", "replica.stderr.gz"} {
		if err := keep(name); !errors.Is(err, coordinator.ErrNoRoom) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := keep(protocol.ClientResultFile); err != nil {
		t.Errorf("a result: %v", err)
	}
	s.server.Stop(t)
	if _, c := s.reconcile(s.trials()); c != nil {
		t.Errorf("a trial that runs: %+v", c) // also reads the trial again
	}
	s.complete()
	const names = "no room for them in the cluster either: p-0/agent.log.gz, p-0/replica.stderr.gz."
	if _, c := s.reconcile(s.trials()); c == nil || c.Reason != v1alpha1.ReasonStoreUnreachable || !strings.HasSuffix(c.Message, names) {
		t.Errorf("while the store is down: %+v", c)
	}
	s.server.Restart(t)
	r := s.trials()
	_, c := s.reconcile(r)
	if c.Status != metav1.ConditionTrue || c.Reason != v1alpha1.ReasonPartlyStored || !strings.HasSuffix(c.Message, names) {
		t.Errorf("in the end: %+v", c)
	}
	select {
	case e := <-r.Recorder.(*events.FakeRecorder).Events:
		if !strings.Contains(e, "Warning "+v1alpha1.ReasonPartlyStored) || !strings.Contains(e, names) {
			t.Errorf("the event is %s", e)
		}
	default:
		t.Error("there is no event")
	}
	m, _, err := store.ReadManifest(t.Context(), s.bucket(), s.folder())
	if err != nil || !slices.Equal(m.LeftOut, []string{"p-0/agent.log.gz", "p-0/replica.stderr.gz"}) {
		t.Errorf("the manifest lists %q (%v)", m.LeftOut, err)
	}
	if !slices.ContainsFunc(m.Objects, func(o store.Object) bool { return strings.HasSuffix(o.Key, "p-0/"+protocol.ClientResultFile) }) {
		t.Errorf("the result is not stored: %+v", m.Objects)
	}
}
