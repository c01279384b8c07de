package retention

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/testkit/builders"
)

var now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// experiment returns an experiment of namespace ns, complete or not. The archive is empty without a
// store. Otherwise it is the digest of the results in the store, or "waits".
func experiment(name string, complete bool, archive string) *v1alpha1.Experiment {
	e := builders.Experiment(name).Namespace("ns").Obj()
	if complete {
		e.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ExperimentComplete, Status: metav1.ConditionTrue, Reason: "AllTrialsValid"}}
	}
	if archive != "" {
		e.Status.Archive = &v1alpha1.ResultsArchive{Store: "archive", Digest: strings.TrimPrefix(archive, "waits")}
	}
	return e
}

// results returns a ConfigMap with results that is so many days old.
func results(namespace, experiment, name string, days int, kind string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, Labels: map[string]string{v1alpha1.LabelResults: kind, v1alpha1.LabelExperiment: experiment},
		CreationTimestamp: metav1.NewTime(now.Add(-time.Duration(days) * 24 * time.Hour)),
	}}
}

// Results once stayed in etcd for ever, even those that were in a store. Later, results were
// deleted by their age or number while they waited for a store that was down.
func TestSweep(t *testing.T) {
	all := []string{
		"ns/done-1", "ns/done-20", "ns/gone-9", "ns/kept-experiment", "ns/runs-30", "ns/stored-2", "ns/stored-8", "ns/theirs", "ns/waits-50",
		"other/x-40", "other/x-5",
	}
	const day = 24 * time.Hour
	for name, tc := range map[string]struct {
		policy Policy
		gone   []string
	}{
		"everything is kept":       {Policy{}, nil},
		"a week once stored":       {Policy{Stored: 7 * day}, []string{"ns/stored-8"}},
		"ten days":                 {Policy{Age: 10 * day}, []string{"ns/done-20", "other/x-40"}},
		"the newest of each":       {Policy{Count: 1}, []string{"ns/done-20", "ns/gone-9", "ns/stored-2", "ns/stored-8", "other/x-40"}},
		"a day once stored, or 30": {Policy{Stored: day, Age: 30 * day}, []string{"ns/stored-2", "ns/stored-8", "other/x-40"}},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
				if err := add(scheme); err != nil {
					t.Fatal(err)
				}
			}
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
				experiment("done", true, ""), experiment("stored", true, "1a2b"), experiment("runs", false, "1a2b"), experiment("waits", true, "waits"),
				results("ns", "done", "done-1", 1, "trial"), results("ns", "done", "done-20", 20, "trial"),
				results("ns", "stored", "stored-2", 2, "trial"), results("ns", "stored", "stored-8", 8, "trial"),
				results("ns", "waits", "waits-50", 50, "trial"), results("ns", "runs", "runs-30", 30, "trial"), results("ns", "gone", "gone-9", 9, "trial"),
				results("ns", "stored", "kept-experiment", 90, "experiment"), results("ns", "", "theirs", 90, "of somebody else"),
				results("other", "x", "x-40", 40, "trial"), results("other", "x", "x-5", 5, "trial"),
			).Build()
			s := &Sweeper{Client: c, Reader: c, Clock: clocktesting.NewFakeClock(now), Policy: tc.policy}
			n, err := s.Sweep(t.Context())
			if err != nil || n != len(tc.gone) {
				t.Fatalf("deleted %d, %v; want %d", n, err, len(tc.gone))
			}
			list := &corev1.ConfigMapList{}
			if err := c.List(t.Context(), list); err != nil {
				t.Fatal(err)
			}
			var got []string
			for i := range list.Items {
				got = append(got, fmt.Sprint(client.ObjectKeyFromObject(&list.Items[i])))
			}
			slices.Sort(got)
			want := slices.DeleteFunc(slices.Clone(all), func(n string) bool { return slices.Contains(tc.gone, n) })
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("kept (-want +got):\n%s", diff)
			}
		})
	}
}
