package archive

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/report/archive"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/manager/coordinator"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/store"
	"assay.dev/assay/operator/internal/store/s3"
	"assay.dev/assay/operator/internal/testkit/builders"
	"assay.dev/assay/operator/internal/testkit/testcluster"
	"assay.dev/assay/operator/internal/testkit/tests3"
)

// stage is an experiment with a complete trial on a real API server, and a store on a real S3
// server.
type stage struct {
	t      *testing.T
	client client.Client
	server *tests3.Server
	stores *store.Registry
	clock  *clocktesting.FakeClock
	exp    *v1alpha1.Experiment
	trial  *v1alpha1.Trial
}

func newStage(t *testing.T) *stage {
	t.Helper()
	return newStageWith(t, tests3.Options{})
}

func newStageWith(t *testing.T, o tests3.Options) *stage {
	t.Helper()
	env := testcluster.InProcess(t)
	s := &stage{t: t, client: env.Client, server: tests3.Start(t, o), clock: clocktesting.NewFakeClock(time.Now())}
	s.stores = s.server.Registry(t)
	ns := env.Namespace(t)
	system := builders.System("echo").Obj()
	s.exp = builders.Experiment("e").Namespace(ns).System("echo").Obj()
	p, errs := plan.Expand(s.exp, map[string]v1alpha1.SystemSpec{"echo": system.Spec})
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	s.create(s.exp)
	s.exp.Status.Archive = &v1alpha1.ResultsArchive{Store: "archive"}
	s.exp.Status.Trials = v1alpha1.TrialCounts{Planned: 1}
	s.status(s.exp)
	s.trial = &v1alpha1.Trial{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "e-0", Labels: map[string]string{v1alpha1.LabelExperiment: "e"}}, Spec: p.Points[0].Template}
	s.trial.Spec.System.Revision, s.trial.Spec.ResultsStore = "e-echo", "archive"
	if err := controllerutil.SetControllerReference(s.exp, s.trial, env.Scheme); err != nil {
		t.Fatal(err)
	}
	s.create(s.trial)
	return s
}

func (s *stage) create(o client.Object) {
	s.t.Helper()
	if err := s.client.Create(s.t.Context(), o); err != nil {
		s.t.Fatalf("create %T: %v", o, err)
	}
}

func (s *stage) status(o client.Object) {
	s.t.Helper()
	if err := s.client.Status().Update(s.t.Context(), o); err != nil {
		s.t.Fatalf("update the status of %T: %v", o, err)
	}
}

// complete ends the trial, with results in a ConfigMap as the trial controller stores them.
func (s *stage) complete() {
	s.t.Helper()
	h := results.NewHistogram()
	h.Record(time.Millisecond)
	latency, err := h.Encode()
	if err != nil {
		s.t.Fatal(err)
	}
	raw, err := results.EncodeTrial(results.Trial{
		Name: s.trial.Name, Experiment: "e", Outcome: "Succeeded", Latency: latency, Timeline: &results.Timeline{IntervalMillis: 100, Committed: []int64{1}, Aborted: []int64{0},
			Failed: []int64{0}, LatencySumMicros: []int64{1000}}, Faults: []results.FaultRecord{{ID: "crash/1/kill/p-0", Fault: "crash", Pod: "p-0", Kind: "Kill"}},
		Pods: []results.Pod{{Name: "p-0", Part: "replica"}, {Name: "c-0", Part: "client"}},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.trial.Namespace, Name: "e-0-results"}, Data: map[string]string{"trial.json": string(raw)}})
	s.trial.Status.ResultsConfigMap, s.trial.Status.ResultsDigest = "e-0-results", store.Describe("", raw).SHA256
	s.set(&s.trial.Status.Conditions, v1alpha1.TrialComplete, v1alpha1.ReasonSucceeded)
	s.status(s.trial)
}

func (s *stage) set(conditions *[]metav1.Condition, condition, reason string) {
	meta.SetStatusCondition(conditions, metav1.Condition{Type: condition, Status: metav1.ConditionTrue, Reason: reason, Message: "x", LastTransitionTime: metav1.NewTime(s.clock.Now())})
}

// trials returns a manager that has just started.
func (s *stage) trials() *Trials {
	return &Trials{Client: s.client, Reader: s.client, Clock: s.clock, Recorder: events.NewFakeRecorder(100), Stores: s.stores, Gates: &Gates{Clock: s.clock}}
}

func (s *stage) reconcile(r *Trials) (ctrl.Result, *metav1.Condition) {
	s.t.Helper()
	result, err := r.Reconcile(s.t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(s.trial)})
	if err != nil {
		s.t.Fatalf("reconcile: %v", err)
	}
	if err := s.client.Get(s.t.Context(), client.ObjectKeyFromObject(s.trial), s.trial); err != nil {
		s.t.Fatal(err)
	}
	return result, meta.FindStatusCondition(s.trial.Status.Conditions, v1alpha1.TrialResultsStored)
}

func (s *stage) bucket() store.Remote {
	s.t.Helper()
	got, err := s.stores.Get("archive")
	if err != nil {
		s.t.Fatal(err)
	}
	return got
}

func (s *stage) folder() store.Folder {
	s.t.Helper()
	f, err := store.TrialFolder(s.trial)
	if err != nil {
		s.t.Fatal(err)
	}
	return f
}

func (s *stage) desk() *UploadHandler {
	return &UploadHandler{Client: s.client, Reader: s.client, Stores: s.stores}
}

func (s *stage) pod(name string) coordinator.Pod {
	return coordinator.Pod{Trial: client.ObjectKeyFromObject(s.trial), Name: name}
}

// keep makes the manager keep a pod's file.
func (s *stage) keep(pod, name string, content []byte) {
	s.t.Helper()
	o := store.Describe("", content)
	for i := 0; i*protocol.PartLimit < len(content); i++ {
		part := content[i*protocol.PartLimit : min(len(content), (i+1)*protocol.PartLimit)]
		if err := s.desk().Keep(s.t.Context(), s.pod(pod), protocol.Upload{Name: name, Size: o.Size, SHA256: o.SHA256}, i, part); err != nil {
			s.t.Fatal(err)
		}
	}
}

// upload puts a pod's file into the store, as its agent does.
func (s *stage) upload(pod, name string, content []byte) {
	s.t.Helper()
	o := store.Describe("", content)
	s.put(s.ticket(pod, name, o), content)
}

// ticket allows a pod to put a file into the store.
func (s *stage) ticket(pod, name string, o store.Object) protocol.Ticket {
	s.t.Helper()
	ticket, err := s.desk().Ticket(s.t.Context(), s.pod(pod), protocol.Upload{Name: name, Size: o.Size, SHA256: o.SHA256})
	if err != nil {
		s.t.Fatal(err)
	}
	return ticket
}

// put uses a ticket.
func (s *stage) put(ticket protocol.Ticket, content []byte) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), ticket.Method, ticket.URL, bytes.NewReader(content))
	if err != nil {
		s.t.Fatal(err)
	}
	for k, v := range ticket.Header {
		request.Header.Set(k, v)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		s.t.Fatalf("the store answers %s", answer.Status)
	}
}

// keys returns the keys in a manifest, relative to its folder.
func (s *stage) keys(f store.Folder) (keys, missing []string) {
	s.t.Helper()
	m, _, err := store.ReadManifest(s.t.Context(), s.bucket(), f)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, o := range m.Objects {
		keys = append(keys, strings.TrimPrefix(o.Key, string(f)))
	}
	return keys, m.Missing
}

func (s *stage) keptConfigMaps() int {
	s.t.Helper()
	list := &corev1.ConfigMapList{}
	if err := s.client.List(s.t.Context(), list, client.InNamespace(s.trial.Namespace), client.MatchingLabels{v1alpha1.LabelResults: v1alpha1.ResultsKept}); err != nil {
		s.t.Fatal(err)
	}
	return len(list.Items)
}

func TestATrialIsStored(t *testing.T) {
	s := newStage(t)
	if _, c := s.reconcile(s.trials()); c != nil {
		t.Errorf("a trial that runs: %+v", c)
	}
	s.upload("p-0", "replica.stdout.gz", []byte("printed"))
	s.keep("p-0", "replica.stderr.gz", bytes.Repeat([]byte("long "), protocol.PartLimit/4))
	s.complete()
	result, c := s.reconcile(s.trials())
	if c == nil || c.Status != metav1.ConditionTrue || c.Reason != v1alpha1.ReasonStored || result.RequeueAfter != 0 || !strings.Contains(c.Message, "s3://results/some/where/v1/") {
		t.Fatalf("condition %+v, result %+v", c, result)
	}
	keys, missing := s.keys(s.folder())
	want := []string{"faults.json", "latency.hdr.base64", "pods/p-0/replica.stderr.gz", "pods/p-0/replica.stdout.gz", "timeline.csv", "trial.json"}
	if diff := cmp.Diff(want, keys); diff != "" || !cmp.Equal(missing, []string{"c-0"}) {
		t.Errorf("missing %v, objects (-want +got):\n%s", missing, diff)
	}
	if n, err := store.Verify(t.Context(), s.bucket(), s.folder()); n != 7 || err != nil {
		t.Errorf("%d objects are right: %v", n, err)
	}
	if n := s.keptConfigMaps(); n > 0 {
		t.Errorf("%d ConfigMaps are left of what was kept", n)
	}
	_, faults, err := store.ReadAll(t.Context(), s.bucket(), s.folder().Key("faults.json"), 1<<20)
	var records []results.FaultRecord
	if err := errors.Join(err, json.Unmarshal(faults, &records)); err != nil || len(records) != 1 || records[0].Fault != "crash" {
		t.Errorf("faults %s: %v", faults, err)
	}
}

// The manifest of a deleted trial was once taken for that of the next trial with its name. The kept
// data of the new trial was then deleted as stored.
func TestTheManifestOfAnotherTrialOfTheName(t *testing.T) {
	s := newStage(t)
	before := store.Manifest{Kind: "Trial", Namespace: s.trial.Namespace, Name: s.trial.Name, UID: "of the one before", Experiment: "e"}
	if err := store.WriteManifest(t.Context(), s.bucket(), s.folder(), before); err != nil {
		t.Fatal(err)
	}
	s.keep("p-0", "replica.stdout.gz", []byte("printed"))
	s.complete()
	if _, c := s.reconcile(s.trials()); c == nil || c.Status != metav1.ConditionTrue {
		t.Fatalf("condition %+v", c)
	}
	m, _, err := store.ReadManifest(t.Context(), s.bucket(), s.folder())
	if err != nil || m.UID != string(s.trial.UID) {
		t.Errorf("the manifest is of %q, want %s: %v", m.UID, s.trial.UID, err)
	}
	_, printed, err := store.ReadAll(t.Context(), s.bucket(), s.folder().PodFile("p-0", "replica.stdout.gz"), 1<<20)
	if err != nil || string(printed) != "printed" {
		t.Errorf("what the pod printed is stored as %q: %v", printed, err)
	}
	if n := s.keptConfigMaps(); n > 0 {
		t.Errorf("%d ConfigMaps are left of what was kept", n)
	}
}

// While a store is down, nothing is lost and the condition says so. The store is asked less and
// less often. When it is back, it is used again, also by another manager.
func TestAStoreThatIsDown(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.keep("p-0", "replica.stdout.gz", []byte("printed"))
	s.complete()
	s.server.Stop(t)
	r := s.trials()
	var waits []time.Duration
	for range 4 {
		result, c := s.reconcile(r)
		if c == nil || c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonStoreUnreachable || !strings.Contains(c.Message, "kept in the cluster") {
			t.Fatalf("condition %+v", c)
		}
		again, _ := s.reconcile(r)
		if again.RequeueAfter != result.RequeueAfter {
			t.Errorf("asked again before its time: %v, %v", result, again)
		}
		waits = append(waits, result.RequeueAfter)
		s.clock.Step(result.RequeueAfter)
	}
	if diff := cmp.Diff([]time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second}, waits); diff != "" {
		t.Errorf("waits (-want +got):\n%s", diff)
	}
	if n := s.keptConfigMaps(); n != 1 {
		t.Errorf("%d ConfigMaps are kept", n)
	}
	s.server.Restart(t)
	if _, c := s.reconcile(s.trials()); c.Status != metav1.ConditionTrue {
		t.Errorf("condition %+v", c)
	}
	if n, err := store.Verify(t.Context(), s.bucket(), s.folder()); n != 6 || err != nil || s.keptConfigMaps() != 0 {
		t.Errorf("%d objects are right, %d are kept: %v", n, s.keptConfigMaps(), err)
	}
}

// A manager ends after it wrote the manifest and before it wrote the condition. The next one
// changes nothing in the store.
func TestAManagerEndsInBetween(t *testing.T) {
	s := newStage(t)
	s.complete()
	s.reconcile(s.trials())
	s.keep("p-0", "replica.stdout.gz", []byte("left over"))
	before, err := s.bucket().List(t.Context(), string(s.folder()))
	if err != nil {
		t.Fatal(err)
	}
	meta.RemoveStatusCondition(&s.trial.Status.Conditions, v1alpha1.TrialResultsStored)
	s.status(s.trial)
	if _, c := s.reconcile(s.trials()); c == nil || c.Status != metav1.ConditionTrue {
		t.Errorf("condition %+v", c)
	}
	after, err := s.bucket().List(t.Context(), string(s.folder()))
	if diff := cmp.Diff(before, after); diff != "" || err != nil || s.keptConfigMaps() != 0 {
		t.Errorf("%d are kept, %v, (-before +after):\n%s", s.keptConfigMaps(), err, diff)
	}
}

// If the ConfigMap has only a part of the results, the whole results are stored.
func TestTheWholeResults(t *testing.T) {
	s := newStage(t)
	whole, err := results.EncodeTrial(results.Trial{Name: "e-0", Message: "the whole", Logs: map[string]string{"p-0/replica": strings.Repeat("x", 2*store.PartLimit)}})
	if err != nil {
		t.Fatal(err)
	}
	kept := &store.Cluster{Client: s.client, Reader: s.client, Trial: s.trial}
	if err := kept.Put(t.Context(), store.Describe(s.folder().Key("trial.json"), whole), bytes.NewReader(whole)); err != nil {
		t.Fatal(err)
	}
	s.complete()
	s.trial.Status.ResultsDigest = store.Describe("", whole).SHA256
	s.status(s.trial)
	s.reconcile(s.trials())
	_, got, err := store.ReadAll(t.Context(), s.bucket(), s.folder().Key("trial.json"), 1<<30)
	if err != nil || !bytes.Equal(got, whole) {
		t.Errorf("%d bytes are stored (%v), want %d", len(got), err, len(whole))
	}
}

// A stopped manager kept its own whole results after its successor's results, which fitted the
// ConfigMap, were stored. The store must get the results that the status names.
func TestTheWholeResultsOfAnotherManager(t *testing.T) {
	s := newStage(t)
	kept := &store.Cluster{Client: s.client, Reader: s.client, Trial: s.trial}
	others := []byte(`{"name": "e-0", "message": "of another manager"}`)
	if err := kept.Put(t.Context(), store.Describe(s.folder().Key("trial.json"), others), bytes.NewReader(others)); err != nil {
		t.Fatal(err)
	}
	s.complete()
	if _, c := s.reconcile(s.trials()); c == nil || c.Status != metav1.ConditionTrue {
		t.Errorf("condition %+v", c)
	}
	o, _, err := store.ReadAll(t.Context(), s.bucket(), s.folder().Key("trial.json"), 1<<30)
	if err != nil || o.SHA256 != s.trial.Status.ResultsDigest || s.keptConfigMaps() != 0 {
		t.Errorf("%s is stored (%v), want %s; %d are kept", o.SHA256, err, s.trial.Status.ResultsDigest, s.keptConfigMaps())
	}
}

func TestWhatAStoreSaysIsInTheCondition(t *testing.T) {
	s := newStage(t)
	s.complete()
	for name, tc := range map[string]struct{ list, access, want string }{
		"another key":    {"bucket: results", "nobody", v1alpha1.ReasonStoreDenied},
		"another bucket": {"bucket: nowhere", tests3.AccessKey, v1alpha1.ReasonStoreBucketMissing},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			list := fmt.Sprintf("stores: [{name: archive, endpoint: 'http://%s', pathStyle: true, %s}]", s.server.Address, tc.list)
			if err := errors.Join(os.Mkdir(dir+"/archive", 0o700), os.WriteFile(dir+"/l", []byte(list), 0o600),
				os.WriteFile(dir+"/archive/accessKeyID", []byte(tc.access), 0o600), os.WriteFile(dir+"/archive/secretAccessKey", []byte(tests3.SecretKey), 0o600)); err != nil {
				t.Fatal(err)
			}
			r := s.trials()
			var err error
			if r.Stores, err = store.Load(dir+"/l", dir, map[string]store.Open{"S3": s3.Open}); err != nil {
				t.Fatal(err)
			}
			if _, c := s.reconcile(r); c == nil || c.Reason != tc.want || strings.Contains(c.Message, tests3.SecretKey) || strings.Contains(c.Message, tc.access) {
				t.Errorf("condition %+v, want %s", c, tc.want)
			}
		})
	}
	r := s.trials()
	r.Stores = nil
	if _, c := s.reconcile(r); c.Reason != v1alpha1.ReasonStoreNotConfigured {
		t.Errorf("condition %+v", c)
	}
}

// experiments plays the manager. The bundle says from which results it was made.
func (s *stage) experiments() *Experiments {
	return &Experiments{Client: s.client, Reader: s.client, Clock: s.clock, Stores: s.stores, Gates: &Gates{Clock: s.clock}, Bundle: func(_ context.Context, stored corev1.ConfigMap, w io.Writer) error {
		b, err := archive.NewWriter(w, archive.Gzip, "e", s.clock.Now())
		if err != nil {
			return err
		}
		return errors.Join(b.Add("results.json", []byte(stored.Data["results.json"])), b.Add("trials/e-0/trial.json", []byte("{}")), b.Add("report.html", []byte("<html>")), b.Close())
	}}
}

func (s *stage) reconcileExperiment(r *Experiments) (ctrl.Result, v1alpha1.ResultsArchive) {
	s.t.Helper()
	key := client.ObjectKeyFromObject(s.exp)
	result, err := r.Reconcile(s.t.Context(), ctrl.Request{NamespacedName: key})
	if err != nil {
		s.t.Fatalf("reconcile: %v", err)
	}
	if err := s.client.Get(s.t.Context(), key, s.exp); err != nil {
		s.t.Fatal(err)
	}
	return result, *s.exp.Status.Archive
}

func TestAnExperimentIsStored(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	folder := store.ExperimentFolder(s.exp.Namespace, "e", string(s.exp.UID))
	s.server.Stop(t)
	r := s.experiments()
	result, a := s.reconcileExperiment(r)
	if a.Reason != v1alpha1.ReasonStoreUnreachable || a.Message == "" || a.Location != "" || result.RequeueAfter != retryFirst {
		t.Errorf("a store that does not answer: %+v, %+v", a, result)
	}
	s.server.Restart(t)
	s.clock.Step(time.Minute)
	if _, a = s.reconcileExperiment(r); a.Reason != "" || a.Location != "s3://results/some/where/"+string(folder) {
		t.Errorf("accepted: %+v", a)
	}
	e, err := results.EncodeExperiment(results.Experiment{Name: "e", UID: string(s.exp.UID), Trials: []results.TrialLine{{Name: "e-0"}, {Name: "e-gone"}}})
	if err != nil {
		t.Fatal(err)
	}
	stored := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.exp.Namespace, Name: "e-results", Annotations: map[string]string{v1alpha1.AnnotationResultsDigest: "d1"}},
		Data: map[string]string{"results.json": string(e), "spec.json": "{}", "results.csv": "a\n"}}
	s.create(stored)
	s.exp.Status.ResultsConfigMap, s.exp.Status.ResultsDigest = "e-results", strings.Repeat("0", 64)
	s.set(&s.exp.Status.Conditions, v1alpha1.ExperimentComplete, v1alpha1.ReasonAllTrialsValid)
	s.status(s.exp)
	s.complete()
	if _, a = s.reconcileExperiment(r); a.Digest != "" {
		t.Errorf("a trial is not stored, and the experiment is: %+v", a)
	}
	s.reconcile(s.trials())
	// The manager may be between writing the results and writing their digest, so there is no
	// message yet.
	for range 2 {
		if result, a = s.reconcileExperiment(r); a.Reason != "" || a.Digest != "" || result.RequeueAfter != settling {
			t.Errorf("results that are being written: %+v, %+v", a, result)
		}
		s.clock.Step(settled / 2)
	}
	// Another program has changed the results.
	result, a = s.reconcileExperiment(r)
	if a.Reason != v1alpha1.ReasonStoreCorrupted || !strings.Contains(a.Message, "somebody has changed them") || a.Digest != "" || result.RequeueAfter != retryAlone {
		t.Errorf("results that the manager did not write: %+v, %+v", a, result)
	}
	s.exp.Status.ResultsDigest = results.Digest(stored.Data, stored.BinaryData)
	s.status(s.exp)
	if _, a = s.reconcileExperiment(r); a.Digest != "d1" || a.Reason != "" {
		t.Fatalf("complete: %+v", a)
	}
	keys, missing := s.keys(folder)
	want := []string{"bundle.tar.gz", "experiment.json", "report.html", "results.csv", "results.json", "spec.json", "trials/e-0/manifest.json"}
	// SHA256SUMS lists the files of the bundle.
	if diff := cmp.Diff(want, keys); diff != "" || !cmp.Equal(missing, []string{"e-gone"}) {
		t.Errorf("missing %v, objects (-want +got):\n%s", missing, diff)
	}
	if _, err := store.Verify(t.Context(), s.bucket(), folder); err != nil {
		t.Error(err)
	}
	if result, _ := s.reconcileExperiment(r); result.RequeueAfter != 0 {
		t.Errorf("stored, and looked at again: %+v", result)
	}
}

// A user with the right to write a trial's ConfigMap could once make the manager decode and store
// any text. Now the status has the digest of the written results, and the manager decodes nothing
// else.
func TestResultsThatAUserChangedAreNotStored(t *testing.T) {
	s := newStage(t)
	s.complete()
	stored := &corev1.ConfigMap{}
	if err := s.client.Get(t.Context(), client.ObjectKey{Namespace: s.trial.Namespace, Name: "e-0-results"}, stored); err != nil {
		t.Fatal(err)
	}
	genuine := stored.Data["trial.json"]
	for name, forged := range map[string]string{
		"a better number":        strings.Replace(genuine, "1000", "900", 1),
		"what takes much memory": `{"format":"` + results.TrialFormat + `","pods":[{}` + strings.Repeat(",{}", 100<<10) + `]}`,
	} {
		stored.Data["trial.json"] = forged
		if err := s.client.Update(t.Context(), stored); err != nil {
			t.Fatal(err)
		}
		s.clock.Step(time.Minute)
		if _, c := s.reconcile(s.trials()); c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonStoreCorrupted || !strings.Contains(c.Message, "not those that Assay wrote") {
			t.Errorf("%s: ResultsStored is %s %s: %s", name, c.Status, c.Reason, c.Message)
		}
	}
	stored.Data["trial.json"] = genuine
	if err := s.client.Update(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	s.clock.Step(time.Minute)
	if _, c := s.reconcile(s.trials()); c.Status != metav1.ConditionTrue {
		t.Errorf("the genuine results: ResultsStored is %s %s: %s", c.Status, c.Reason, c.Message)
	}
}

func TestWhatAPodMayHandOver(t *testing.T) {
	s := newStage(t)
	good := protocol.Upload{Name: "a.gz", Size: 1, SHA256: strings.Repeat("0", 64)}
	with := func(change func(*protocol.Upload)) protocol.Upload { u := good; change(&u); return u }
	for name, u := range map[string]protocol.Upload{
		"another folder": with(func(u *protocol.Upload) { u.Name = "../x/a.gz" }), "no name": with(func(u *protocol.Upload) { u.Name = "" }),
		"empty": with(func(u *protocol.Upload) { u.Size = 0 }), "too large": with(func(u *protocol.Upload) { u.Size = protocol.UploadLimit + 1 }),
		"no checksum": with(func(u *protocol.Upload) { u.SHA256 = "x" }),
	} {
		if _, err := s.desk().Ticket(t.Context(), s.pod("p-0"), u); !errors.Is(err, coordinator.ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
		if err := s.desk().Keep(t.Context(), s.pod("p-0"), u, 0, []byte("x")); !errors.Is(err, coordinator.ErrRefused) {
			t.Errorf("keep, %s: %v", name, err)
		}
	}
	plain := s.trial.DeepCopy()
	plain.ObjectMeta = metav1.ObjectMeta{Namespace: s.trial.Namespace, Name: "e-plain"}
	plain.Spec.ResultsStore = ""
	s.create(plain)
	if _, err := s.desk().Ticket(t.Context(), coordinator.Pod{Trial: client.ObjectKeyFromObject(plain), Name: "p"}, good); !errors.Is(err, coordinator.ErrNoStore) {
		t.Errorf("a trial without a store: %v", err)
	}
}

func TestOneTrialAtATimeTriesAFailedStore(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	g := &Gates{Clock: clock}
	down := &store.Problem{Reason: v1alpha1.ReasonStoreUnreachable}
	if g.closed("s") != 0 || g.done("s", down) != 2*time.Second || g.closed("s") != 2*time.Second || g.closed("other") != 0 {
		t.Error("after one failure")
	}
	clock.Step(2 * time.Second)
	if g.closed("s") != 0 || g.closed("s") == 0 {
		t.Error("two ask at once")
	}
	for range 20 {
		g.done("s", down)
	}
	if got := g.done("s", down); got != retryLast {
		t.Errorf("waits %v, want %v at most", got, retryLast)
	}
	if g.done("s", errors.New("a trial's own")) != retryAlone || g.closed("s") == 0 {
		t.Error("a trial's own trouble opens the gate")
	}
	if g.done("s", nil) != 0 || g.closed("s") != 0 {
		t.Error("success does not open the gate")
	}
}

// Without checksums, a ticket to put an object works for any content while it is valid. An object
// that is replaced meanwhile is not stored, and the manager says so.
func TestAnObjectIsReplacedByItsTicket(t *testing.T) {
	s := newStageWith(t, tests3.Options{Checksums: s3.ChecksumsWhenRequired})
	genuine, forged := []byte("genuine"), []byte("forged!")
	ticket := s.ticket("p-0", "replica.log.gz", store.Describe("", genuine))
	s.put(ticket, genuine)
	s.complete()
	trials := s.trials()
	result, c := s.reconcile(trials)
	if c == nil || c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonStoring || result.RequeueAfter < ticketLasts || result.RequeueAfter > ticketLasts+time.Second {
		t.Fatalf("requeued after %s with %+v, want %s and %s", result.RequeueAfter, c, ticketLasts, v1alpha1.ReasonStoring)
	}
	s.put(ticket, forged)
	s.clock.Step(result.RequeueAfter)
	if _, c = s.reconcile(trials); c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonStoreCorrupted {
		t.Errorf("ResultsStored is %s %s: %s; want False %s", c.Status, c.Reason, c.Message, v1alpha1.ReasonStoreCorrupted)
	}
	s.put(ticket, genuine)
	s.clock.Step(time.Hour)
	if _, c = s.reconcile(trials); c.Status != metav1.ConditionTrue {
		t.Errorf("ResultsStored is %s %s: %s; want True", c.Status, c.Reason, c.Message)
	}
}

// A trial whose objects might still be replaced once passed the gate of a failed store and kept it.
// No trial was stored until another manager led.
func TestATrialThatWaitsKeepsNoOtherFromItsStore(t *testing.T) {
	s := newStageWith(t, tests3.Options{Checksums: s3.ChecksumsWhenRequired})
	s.complete()
	trials := s.trials()
	after := trials.Gates.done("archive", &store.Problem{Reason: v1alpha1.ReasonStoreUnreachable})
	s.clock.Step(after)
	result, c := s.reconcile(trials)
	if c == nil || c.Reason != v1alpha1.ReasonStoring || result.RequeueAfter < time.Minute {
		t.Fatalf("requeued after %s with %+v, want %s and %s", result.RequeueAfter, c, ticketLasts, v1alpha1.ReasonStoring)
	}
	if left := trials.Gates.closed("archive"); left > 0 {
		t.Errorf("the store may be asked in %v; want now", left)
	}
	trials.Gates.done("archive", nil)
	s.clock.Step(result.RequeueAfter)
	if _, c = s.reconcile(trials); c.Status != metav1.ConditionTrue {
		t.Errorf("ResultsStored is %s %s: %s; want True", c.Status, c.Reason, c.Message)
	}
}

// If a store checks no checksums, results once waited for as long as a manager's clock was behind.
// The instant in the status was of an earlier clock, or of another manager.
func TestResultsWaitForNoClockThatIsBehind(t *testing.T) {
	s := newStageWith(t, tests3.Options{Checksums: s3.ChecksumsWhenRequired})
	s.complete()
	s.clock.SetTime(s.clock.Now().Add(-3 * time.Hour))
	trials := s.trials()
	for range 2 { // the second look comes too early
		result, c := s.reconcile(trials)
		if c == nil || c.Reason != v1alpha1.ReasonStoring || result.RequeueAfter <= ticketLasts/2 || result.RequeueAfter > 2*time.Second+ticketLasts {
			t.Fatalf("requeued after %s with %+v, want about %s and %s", result.RequeueAfter, c, ticketLasts, v1alpha1.ReasonStoring)
		}
		s.clock.Step(time.Minute)
	}
	s.clock.Step(ticketLasts)
	if _, c := s.reconcile(trials); c.Status != metav1.ConditionTrue {
		t.Errorf("ResultsStored is %s %s: %s; want True", c.Status, c.Reason, c.Message)
	}
	if len(trials.looks.first) != 0 {
		t.Errorf("%d trials are still remembered", len(trials.looks.first))
	}
}
