package dataset_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/render"
	"assay.dev/assay/operator/internal/manager/controller/dataset"
	"assay.dev/assay/operator/internal/testkit/builders"
	"assay.dev/assay/operator/internal/testkit/testcluster"
	"assay.dev/assay/operator/internal/testkit/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Run(m, testenv.Options{})) }

// stage is a namespace with nodes of its own. The test plays the cluster's Job controller and the
// kubelets.
type stage struct {
	t     *testing.T
	c     client.Client
	ns    string
	nodes []string
	clock *testclock.FakePassiveClock
	r     *dataset.Reconciler
	desk  *dataset.Requester
	told  *events.FakeRecorder
	// change the data set of the System, unless nil.
	change func(*v1alpha1.DatasetSource)
}

func newStage(t *testing.T, nodes int) *stage {
	t.Helper()
	return newStageIn(t, testcluster.InProcess(t), nodes)
}

// newStageIn uses another API.
func newStageIn(t *testing.T, env *testcluster.Env, nodes int) *stage {
	t.Helper()
	s := &stage{t: t, c: env.Client, ns: env.Namespace(t), clock: testclock.NewFakePassiveClock(time.Now().Truncate(time.Second)), told: events.NewFakeRecorder(100)}
	for i := range nodes {
		name := fmt.Sprintf("%s-node-%d", s.ns, i)
		testcluster.Node(t, s.c, name, s.ns)
		s.nodes = append(s.nodes, name)
	}
	s.r = &dataset.Reconciler{Client: s.c, Reader: s.c, Clock: s.clock, Recorder: s.told, Environment: render.Environment{AgentImage: "agent:1"}, Keep: 24 * time.Hour}
	s.desk = &dataset.Requester{Client: s.c, Reader: s.c, Clock: s.clock}
	return s
}

// claim makes the claim, as the owner of the cluster does.
func (s *stage) claim() *stage {
	s.t.Helper()
	s.create(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: render.DatasetClaim}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Ti")}},
	}})
	return s
}

func (s *stage) create(o client.Object) {
	s.t.Helper()
	if err := s.c.Create(s.t.Context(), o); err != nil {
		s.t.Fatalf("create %T %s: %v", o, o.GetName(), err)
	}
}

// ask asks for the data of a trial of the pool.
func (s *stage) ask() *dataset.Status {
	s.t.Helper()
	a, err := s.desk.Ensure(s.t.Context(), s.ns, s.trial(), s.system())
	if err != nil {
		s.t.Fatal(err)
	}
	return a
}

func (s *stage) trial() *v1alpha1.TrialSpec {
	return &v1alpha1.TrialSpec{System: v1alpha1.SystemSnapshot{Name: "kv", Revision: "r"}, Placement: v1alpha1.Placement{Replicas: s.ns}}
}

func (s *stage) system() *v1alpha1.SystemSpec {
	return &builders.System("kv").Set(func(spec *v1alpha1.SystemSpec) {
		spec.Datasets = []v1alpha1.DatasetSource{{
			Name: "rows", OutputPath: "/made", MountPath: "/rows", Size: resource.MustParse("1Gi"), Timeout: "10m",
			Container: v1alpha1.Container{Name: "load", Image: "load:1", Command: []string{"/load", "/made"}},
		}}
		if s.change != nil {
			s.change(&spec.Datasets[0])
		}
	}).Obj().Spec
}

func (s *stage) dataset() *v1alpha1.Dataset {
	s.t.Helper()
	list := &v1alpha1.DatasetList{}
	if err := s.c.List(s.t.Context(), list, client.InNamespace(s.ns)); err != nil {
		s.t.Fatal(err)
	}
	if len(list.Items) != 1 {
		return nil
	}
	return &list.Items[0]
}

func (s *stage) reconcile() time.Duration {
	s.t.Helper()
	var after time.Duration
	for range 3 { // the finalizer, the work, and the step after it
		d := s.dataset()
		if d == nil {
			return 0
		}
		result, err := s.r.Reconcile(s.t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(d)})
		if err != nil {
			s.t.Fatalf("reconcile: %v", err)
		}
		after = result.RequeueAfter
	}
	return after
}

// jobs returns the existing Jobs, by their node.
func (s *stage) jobs(task string) map[string]*batchv1.Job {
	s.t.Helper()
	list := &batchv1.JobList{}
	if err := s.c.List(s.t.Context(), list, client.InNamespace(s.ns)); err != nil {
		s.t.Fatal(err)
	}
	jobs := map[string]*batchv1.Job{}
	for i := range list.Items {
		job := &list.Items[i]
		if strings.HasPrefix(job.Name, task+"-") && job.DeletionTimestamp == nil {
			jobs[job.Spec.Template.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0].Values[0]] = job
		}
	}
	return jobs
}

// collect plays the garbage collector, which removes Jobs that are deleted in the foreground.
func (s *stage) collect() {
	s.t.Helper()
	list := &batchv1.JobList{}
	if err := s.c.List(s.t.Context(), list, client.InNamespace(s.ns)); err != nil {
		s.t.Fatal(err)
	}
	for i := range list.Items {
		if job := &list.Items[i]; job.DeletionTimestamp != nil {
			job.Finalizers = nil
			if err := s.c.Update(s.t.Context(), job); err != nil {
				s.t.Fatal(err)
			}
		}
	}
}

const kept = `{"digest":"sha256:%s","bytes":1073741824,"files":17,"method":"Copy","milliseconds":4200}`

// over plays a Job's pod: its recipe ran for 90 seconds, and then its output was kept.
func (s *stage) over(job *batchv1.Job, message string) {
	s.t.Helper()
	began := s.clock.Now()
	testcluster.PodOf(s.t, s.c, job, corev1.PodStatus{
		InitContainerStatuses: []corev1.ContainerStatus{{Name: render.DatasetRecipeContainer, State: terminated(0, "", began, began.Add(90*time.Second))}},
		ContainerStatuses:     []corev1.ContainerStatus{{Name: render.DatasetKeepContainer, State: terminated(0, message, began, began.Add(95*time.Second))}},
	})
	testcluster.EndJob(s.t, s.c, job, batchv1.JobComplete, "", s.clock.Now())
}

func terminated(code int32, message string, began, ended time.Time) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: code, Reason: map[bool]string{true: "Completed", false: "Error"}[code == 0], Message: message, StartedAt: metav1.NewTime(began), FinishedAt: metav1.NewTime(ended),
	}}
}

func (s *stage) expect(status metav1.ConditionStatus, reason string, words ...string) {
	s.t.Helper()
	c := meta.FindStatusCondition(s.dataset().Status.Conditions, v1alpha1.DatasetReady)
	if c == nil || c.Status != status || c.Reason != reason {
		s.t.Fatalf("Ready is %+v, want %s %s", c, status, reason)
	}
	for _, w := range words {
		if !strings.Contains(c.Message, w) {
			s.t.Errorf("the message is %q, want it to say %q", c.Message, w)
		}
	}
}

// The recipe runs on one node first, then on the others. When all nodes have the data, a trial gets
// its description. The second trial finds the data.
func TestPreparedOncePerNode(t *testing.T) {
	s := newStage(t, 3).claim()
	if a := s.ask(); a.Ready || a.Failed || !strings.Contains(a.Message, "being prepared") {
		t.Errorf("the first answer is %+v", a)
	}
	s.reconcile()
	first := s.jobs("prepare")
	if len(first) != 1 {
		t.Fatalf("%d Jobs, want one on the first node", len(first))
	}
	s.expect(metav1.ConditionFalse, v1alpha1.ReasonPreparing, s.nodes[0], "10m")
	s.over(first[s.nodes[0]], fmt.Sprintf(kept, "aa"))
	s.reconcile()
	if a := s.ask(); a.Ready {
		t.Errorf("with the data on one node of three the answer is %+v", a)
	}
	jobs := s.jobs("prepare")
	if len(jobs) != 3 {
		t.Fatalf("%d Jobs, want 3", len(jobs))
	}
	for _, node := range s.nodes[1:] {
		s.over(jobs[node], fmt.Sprintf(kept, "aa"))
	}
	s.reconcile()
	s.expect(metav1.ConditionTrue, v1alpha1.ReasonPrepared, "1073741824 bytes in 17 files")
	for range 2 {
		a := s.ask()
		want := v1alpha1.TrialDataset{
			Name: "rows", Dataset: s.dataset().Name, Digest: "sha256:aa", Bytes: 1 << 30, Files: 17, PreparedNodes: 3, PrepareMilliseconds: 94200,
		}
		if d := cmp.Diff([]v1alpha1.TrialDataset{want}, a.Sets); !a.Ready || d != "" {
			t.Errorf("the answer is %+v (-want +got):\n%s", a, d)
		}
		s.reconcile()
	}
	if n := len(s.jobs("prepare")); n != 3 {
		t.Errorf("%d Jobs, want 3", n)
	}
}

// A pod that cannot start is in the condition long before the deadline, with what it waits for.
func TestWhatAPreparationWaitsFor(t *testing.T) {
	s := newStage(t, 1).claim()
	s.ask()
	s.reconcile()
	testcluster.PodOf(s.t, s.c, s.jobs("prepare")[s.nodes[0]], corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{{
		Name:  render.DatasetRecipeContainer,
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: `Back-off pulling image "load:1"`}},
	}}})
	s.reconcile()
	s.expect(metav1.ConditionFalse, v1alpha1.ReasonPreparing, "10m", "Node "+s.nodes[0]+" waits: recipe: Back-off pulling image \"load:1\".")
	if a := s.ask(); a.Failed || !strings.Contains(a.Message, "Back-off pulling image") {
		t.Errorf("the trial is told %+v; want what the pod waits for", a)
	}
}

// The condition of a failed recipe has its last lines, and the node where it failed. It is not
// tried on the others. Nothing is tried again before a user acts.
func TestAFailedRecipeIsReported(t *testing.T) {
	s := newStage(t, 2).claim()
	s.ask()
	s.reconcile()
	job := s.jobs("prepare")[s.nodes[0]]
	testcluster.PodOf(s.t, s.c, job, corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{{
		Name: render.DatasetRecipeContainer, State: terminated(3, "loading\nno space left\n", s.clock.Now(), s.clock.Now()),
	}}})
	testcluster.EndJob(s.t, s.c, job, batchv1.JobFailed, "Job has reached the specified backoff limit", s.clock.Now())
	s.reconcile()
	s.expect(metav1.ConditionFalse, v1alpha1.ReasonRecipeFailed, "Node "+s.nodes[0], "exit code 3", "loading\nno space left", "when this Dataset is deleted")
	if a := s.ask(); !a.Failed || !strings.Contains(a.Message, "no space left") {
		t.Errorf("the answer is %+v", a)
	}
	s.reconcile()
	if n := len(s.jobs("prepare")); n != 1 {
		t.Errorf("%d Jobs, want the one that failed", n)
	}
	if len(s.told.Events) != 1 {
		t.Errorf("%d events, want 1", len(s.told.Events))
	}

	// With a longer timeout it is tried again, in a new Job.
	d := s.dataset()
	d.Spec.Timeout = "20m"
	if err := s.c.Update(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	s.reconcile()
	s.collect()
	s.reconcile()
	if again := s.jobs("prepare")[s.nodes[0]]; again == nil || again.UID == job.UID || *again.Spec.Template.Spec.ActiveDeadlineSeconds != 1200 {
		t.Errorf("the Job is %+v, want another one with 1200 s", again)
	}
}

// A message says why a preparation failed, and what to do.
func TestWhyPreparationsFail(t *testing.T) {
	for name, tc := range map[string]struct {
		status corev1.PodStatus
		pod    bool
		job    string
		reason string
		want   []string
	}{
		"deadline": {corev1.PodStatus{Phase: corev1.PodFailed, Reason: "DeadlineExceeded", Message: "Pod was active on the node longer than the specified deadline", InitContainerStatuses: []corev1.ContainerStatus{{
			Name: render.DatasetRecipeContainer, State: terminated(137, "row 17", time.Now(), time.Now()),
		}}}, true, "failed", v1alpha1.ReasonRecipeFailed, []string{"DeadlineExceeded", "longer than the specified deadline", "row 17"}},
		"too much": {corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: `Usage of EmptyDir volume "made" exceeds the limit "1Gi".`},
			true, "failed", v1alpha1.ReasonRecipeFailed, []string{"Evicted", "exceeds the limit"}},
		"no image": {corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{{Name: render.DatasetRecipeContainer, State: corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: `Back-off pulling image "load:1"`},
		}}}}, true, "Job was active longer than specified deadline", v1alpha1.ReasonRecipeFailed, []string{"longer than specified deadline", "Back-off pulling image"}},
		"no room": {corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "Insufficient memory"}}},
			true, "Job was active longer", v1alpha1.ReasonRecipeFailed, []string{"Insufficient memory"}},
		"no pod": {corev1.PodStatus{}, false, "Job was active longer", v1alpha1.ReasonRecipeFailed, []string{"there is no pod", "Job was active longer"}},
		"not kept": {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
			Name: render.DatasetKeepContainer, State: terminated(1, "agent: the recipe made nothing in its directory\n", time.Now(), time.Now()),
		}}}, true, "failed", v1alpha1.ReasonRecipeFailed, []string{"cannot be kept", "made nothing"}},
		"other bytes are there": {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
			Name: render.DatasetKeepContainer, State: terminated(1, "agent: the recipe gave other bytes than when it ran before: sha256:a, and now sha256:b\n", time.Now(), time.Now()),
		}}}, true, "failed", v1alpha1.ReasonNotIdentical, []string{"other bytes"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, 1).claim()
			s.ask()
			s.reconcile()
			job := s.jobs("prepare")[s.nodes[0]]
			if tc.pod {
				testcluster.PodOf(s.t, s.c, job, tc.status)
			}
			testcluster.EndJob(s.t, s.c, job, batchv1.JobFailed, tc.job, s.clock.Now())
			s.reconcile()
			s.expect(metav1.ConditionFalse, tc.reason, tc.want...)
		})
	}
}

// All nodes must have the same bytes. Otherwise a trial's numbers would depend on its nodes.
func TestNodesMustHaveTheSameBytes(t *testing.T) {
	s := newStage(t, 2).claim()
	s.ask()
	s.reconcile()
	s.over(s.jobs("prepare")[s.nodes[0]], fmt.Sprintf(kept, "aa"))
	s.reconcile()
	s.over(s.jobs("prepare")[s.nodes[1]], fmt.Sprintf(kept, "bb"))
	s.reconcile()
	s.expect(metav1.ConditionFalse, v1alpha1.ReasonNotIdentical, s.nodes[0], s.nodes[1], "sha256:aa", "sha256:bb", "bytes: PerNode")
	if a := s.ask(); !a.Failed {
		t.Errorf("the answer is %+v", a)
	}
}

// A recipe that cannot make the same bytes twice serves if the System says so. Then a trial's spec
// has the digest of each node, and sizes are those of the node with most.
func TestBytesPerNode(t *testing.T) {
	s := newStage(t, 2).claim()
	s.change = func(d *v1alpha1.DatasetSource) { d.Bytes = v1alpha1.DatasetBytesPerNode }
	s.ask()
	s.reconcile()
	s.over(s.jobs("prepare")[s.nodes[0]], fmt.Sprintf(kept, "bb"))
	s.reconcile()
	s.over(s.jobs("prepare")[s.nodes[1]], strings.NewReplacer(`"files":17`, `"files":18`, "1073741824", "1073741823").Replace(fmt.Sprintf(kept, "aa")))
	s.reconcile()
	s.expect(metav1.ConditionTrue, v1alpha1.ReasonPrepared, "1073741824 bytes", "18 files", "each node has bytes of its own")
	want := []v1alpha1.TrialDataset{{
		Name: "rows", Dataset: s.dataset().Name, Bytes: 1 << 30, Files: 18, PreparedNodes: 2, PrepareMilliseconds: 94200,
		Digests: []v1alpha1.DatasetDigest{{Node: s.nodes[0], Digest: "sha256:bb"}, {Node: s.nodes[1], Digest: "sha256:aa"}},
	}}
	if a := s.ask(); !a.Ready || cmp.Diff(want, a.Sets) != "" {
		t.Errorf("the answer is %+v (-want +got):\n%s", a, cmp.Diff(want, a.Sets))
	}
	if d := s.dataset().Status; d.Digest != "" || d.Nodes[0].Digest != "sha256:bb" || d.Nodes[1].Digest != "sha256:aa" {
		t.Errorf("the status is %+v, want a digest for each node", d)
	}
}

// Without the owner's claim there are no data sets, and the user is told. When the claim exists,
// the preparation begins by itself.
func TestWithoutAClaim(t *testing.T) {
	s := newStage(t, 1)
	s.ask()
	if after := s.reconcile(); after != 10*time.Second {
		t.Errorf("it is looked again after %v", after)
	}
	s.expect(metav1.ConditionFalse, v1alpha1.ReasonNoClaim, "no PersistentVolumeClaim assay-datasets", "docs/guide/data-sets.md")
	if a := s.ask(); !a.Failed {
		t.Errorf("the answer is %+v", a)
	}
	s.claim()
	s.reconcile()
	if len(s.jobs("prepare")) != 1 {
		t.Error("nothing prepares the data though there is a claim now")
	}
}

// Deleting a Dataset deletes its bytes: first its running Jobs are ended, then each node deletes
// them.
func TestRemoval(t *testing.T) {
	// Without garbage collection, Jobs that are deleted with their pods stay for a while.
	s := newStageIn(t, &testenv.Get(t).Env, 2).claim()
	s.ask()
	s.reconcile()
	s.over(s.jobs("prepare")[s.nodes[0]], fmt.Sprintf(kept, "aa"))
	s.reconcile()
	if err := s.c.Delete(t.Context(), s.dataset()); err != nil {
		t.Fatal(err)
	}
	s.reconcile()
	s.expect(metav1.ConditionFalse, v1alpha1.ReasonRemoving, "Waiting for what prepares it")
	if a := s.ask(); a.Ready || a.Failed || !strings.Contains(a.Message, "being removed") {
		t.Errorf("the answer is %+v", a)
	}
	s.collect()
	s.reconcile()
	jobs := s.jobs("remove")
	if len(jobs) != 2 {
		t.Fatalf("%d Jobs remove the bytes, want 2: a node that failed may have some, too", len(jobs))
	}
	testcluster.EndJob(s.t, s.c, jobs[s.nodes[0]], batchv1.JobComplete, "", s.clock.Now())
	s.reconcile()
	s.expect(metav1.ConditionFalse, v1alpha1.ReasonRemoving, s.nodes[1])
	testcluster.EndJob(s.t, s.c, jobs[s.nodes[1]], batchv1.JobFailed, "the node does not answer", s.clock.Now())
	s.reconcile()
	if s.dataset() != nil {
		t.Error("the Dataset is still there")
	}
	if told := <-s.told.Events; !strings.Contains(told, "are left on node "+s.nodes[1]) {
		t.Errorf("the event is %q", told)
	}
}

// A data set that was unused for long is deleted. One that an incomplete experiment may use stays.
func TestExpiry(t *testing.T) {
	s := newStage(t, 1).claim()
	s.ask()
	s.reconcile()
	s.over(s.jobs("prepare")[s.nodes[0]], fmt.Sprintf(kept, "aa"))
	s.reconcile()
	s.ask()
	if after := s.reconcile(); after < 23*time.Hour || after > 25*time.Hour {
		t.Errorf("it is looked again after %v, want after a day", after)
	}
	exp := builders.Experiment("exp").Namespace(s.ns).System("kv").Obj()
	s.create(exp)
	s.clock.SetTime(s.clock.Now().Add(48 * time.Hour))
	s.reconcile()
	if d := s.dataset(); d == nil || d.DeletionTimestamp != nil {
		t.Fatal("a data set of an experiment that is to run was deleted")
	}
	if err := s.c.Delete(t.Context(), exp); err != nil {
		t.Fatal(err)
	}
	s.reconcile()
	if d := s.dataset(); d != nil && d.DeletionTimestamp == nil {
		t.Error("a data set that nothing has used for two days is still there")
	}
}

// A node that is tainted for others, cordoned or down cannot have pods of the trial, so that
// nothing waits for it. A node that comes later gets the data before the next trial.
func TestWhichNodes(t *testing.T) {
	s := newStage(t, 4).claim()
	for i, change := range []func(*corev1.Node){
		func(n *corev1.Node) { n.Spec.Unschedulable = true },
		func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "other", Effect: corev1.TaintEffectNoSchedule}}
		},
		func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: v1alpha1.LabelPool, Value: s.ns, Effect: corev1.TaintEffectNoSchedule}}
		},
	} {
		node := &corev1.Node{}
		if err := s.c.Get(t.Context(), client.ObjectKey{Name: s.nodes[i]}, node); err != nil {
			t.Fatal(err)
		}
		change(node)
		if err := s.c.Update(t.Context(), node); err != nil {
			t.Fatal(err)
		}
	}
	s.ask()
	if got := strings.Join(s.dataset().Spec.Nodes, " "); got != s.nodes[2]+" "+s.nodes[3] {
		t.Errorf("the nodes are %s, want the last two", got)
	}
	spec := s.trial()
	spec.Placement.Replicas = "nowhere"
	a, err := s.desk.Ensure(t.Context(), s.ns, spec, s.system())
	if err != nil || a.Ready || a.Failed || !strings.Contains(a.Message, "assay.dev/pool=nowhere") {
		t.Errorf("for a pool without nodes the answer is %+v (%v)", a, err)
	}
}

// Data of a component is made on the nodes of the component's pool.
func TestNodesOfAComponent(t *testing.T) {
	s := newStage(t, 1).claim()
	spec, system := s.trial(), s.system()
	spec.Placement = v1alpha1.Placement{Replicas: "nowhere", Components: []v1alpha1.ComponentPool{{Name: "cold", Pool: s.ns}}}
	spec.Topology.Components = []v1alpha1.ComponentRegions{{Name: "cold", Regions: []v1alpha1.Region{{Name: "local", Replicas: 1}}}}
	system.Datasets[0].UsedBy, system.Datasets[0].Components = v1alpha1.DatasetForComponents, []string{"cold"}
	if _, err := s.desk.Ensure(t.Context(), s.ns, spec, system); err != nil {
		t.Fatal(err)
	}
	if d := s.dataset(); d == nil || strings.Join(d.Spec.Nodes, " ") != s.nodes[0] {
		t.Errorf("the data set is %+v, want it on %s", d, s.nodes[0])
	}
}

// The recipe of a Dataset decides its name: it never changes.
func TestRecipesAreImmutable(t *testing.T) {
	s := newStageIn(t, &testenv.Get(t).Env, 1)
	s.ask()
	d := s.dataset()
	d.Spec.Recipe.Image = "load:2"
	if err := s.c.Update(t.Context(), d); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "another recipe makes another Dataset") {
		t.Errorf("the error is %v", err)
	}
}
