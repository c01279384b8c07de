package queue

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/testkit/builders"
)

var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func experiment(namespace, name string, priority int32, minutesAgo int) *v1alpha1.Experiment {
	exp := builders.Experiment(name).Namespace(namespace).System("s").Set(func(s *v1alpha1.ExperimentSpec) { s.Priority = priority }).Obj()
	exp.CreationTimestamp = metav1.NewTime(now.Add(-time.Duration(minutesAgo) * time.Minute))
	return exp
}

// trial makes a trial of an experiment in pools. The trial was admitted so many seconds ago, or
// waits for a reason.
func trial(exp *v1alpha1.Experiment, pools string, admitted int, reason, message string) *v1alpha1.Trial {
	t := builders.Trial(exp.Name + "-0").Obj()
	t.Namespace, t.Spec.Experiment = exp.Namespace, exp.Name
	t.Spec.Placement.Replicas, t.Spec.Placement.Clients, _ = strings.Cut(pools, ",")
	c := metav1.Condition{Type: v1alpha1.TrialAdmitted, Status: metav1.ConditionFalse, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(now)}
	if admitted > 0 {
		at := metav1.NewMicroTime(now.Add(-time.Duration(admitted) * time.Second))
		c.Status, t.Status.Times.Admitted = metav1.ConditionTrue, &at
	}
	if reason != "" {
		t.Status.Conditions = []metav1.Condition{c}
	}
	return t
}

func node(name, pool string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.LabelPool: pool}}}
}

func run(t *testing.T, funcs interceptor.Funcs) string {
	t.Helper()
	scheme, err := session.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	holder, first, second, never := experiment("team-a", "failover", 0, 9), experiment("team-b", "urgent", 5, 1), experiment("team-b", "scaling", 0, 5), experiment("team-b", "large", 0, 3)
	done := trial(experiment("team-a", "old", 0, 99), "servers,servers", 60, v1alpha1.ReasonAdmitted, "")
	done.Status.Conditions = append(done.Status.Conditions, metav1.Condition{Type: v1alpha1.TrialComplete, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonSucceeded})
	c := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(funcs).WithObjects(holder, first, second, never, done,
		trial(holder, "servers,loaders", 72, v1alpha1.ReasonAdmitted, "It has."),
		trial(first, "servers,servers", 0, "", ""),
		trial(second, "loaders,servers", 0, v1alpha1.ReasonQueued, "Waiting for trial team-a/failover-0."),
		trial(never, ",", 0, v1alpha1.ReasonUnschedulable, "Too large."),
		node("a", "servers"), node("b", "servers"), node("c", "loaders"), node("d", ""), node("e", "spare"),
	).Build()
	var out bytes.Buffer
	s := &session.Session{Out: &out, Now: func() time.Time { return now }, Connect: func() (session.Cluster, error) {
		return session.Cluster{Client: c, Namespace: "team-b"}, nil
	}}
	if err := Run(t.Context(), s, Options{}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestQueue(t *testing.T) {
	want := `POOL      NODES  HELD BY            SINCE  WAITING
loaders   1      team-a/failover-0  1m12s  2
servers   2      team-a/failover-0  1m12s  3
spare     1      -                  -      1
any node  5      -                  -      1

#  WAITING           PRIORITY  POOLS             WHY
1  team-b/urgent-0   5         servers           The manager has not looked at it yet.
2  team-b/scaling-0  0         loaders, servers  Queued: Waiting for trial team-a/failover-0.
3  team-b/large-0    0         any node          Unschedulable: Too large.
`
	if diff := cmp.Diff(want, run(t, interceptor.Funcs{})); diff != "" {
		t.Errorf("shown (-want +got):\n%s", diff)
	}
}

// A user with rights in one namespace gets the entries of that namespace, and a note that there may
// be more.
func TestQueueOfOneNamespace(t *testing.T) {
	got := run(t, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		o := client.ListOptions{}
		if o.ApplyOptions(opts); o.Namespace == "" {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, "", nil)
		}
		return c.List(ctx, list, opts...)
	}})
	for _, want := range []string{"servers   ?      -", "1  team-b/urgent-0", "Only trials of namespace team-b are shown"} {
		if !strings.Contains(got, want) {
			t.Errorf("shown without %q:\n%s", want, got)
		}
	}
	if strings.Contains(strings.ReplaceAll(got, "Waiting for trial team-a", ""), "team-a") {
		t.Errorf("another namespace is shown:\n%s", got)
	}
}
