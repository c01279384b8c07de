package plan_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"assay.dev/assay/operator/internal/cli/plan"
	"assay.dev/assay/operator/internal/cli/session"
)

var update = flag.Bool("update", false, "write the golden files")

const file = "testdata/pingpong.yaml"

func noCluster() (session.Cluster, error) { return session.Cluster{}, errors.New("no route to host") }

func run(t *testing.T, connect func() (session.Cluster, error), o plan.Options) (string, error) {
	t.Helper()
	var out bytes.Buffer
	if o.Files == nil {
		o.Files = []string{file}
	}
	o.Overhead = 15 * time.Second
	err := plan.Run(t.Context(), &session.Session{Out: &out, Connect: connect, Now: func() time.Time { return time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC) }}, nil, o)
	return out.String(), err
}

func TestGolden(t *testing.T) {
	for name, o := range map[string]plan.Options{
		"full":  {First: 5, Nodes: []string{"3x4x8Gi"}},
		"smoke": {First: 5, Profile: "smoke", Seed: 7, Nodes: []string{"2x2x4Gi", "1x3x4Gi"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := run(t, noCluster, o)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatalf("%v; run the test with -update", err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("(-want +got); run the test with -update if it is meant:\n%s", diff)
			}
		})
	}
}

// If repetitions end when claims are decided, their number is not fixed, and the plan states the
// expected number.
func TestExpectedRounds(t *testing.T) {
	got, err := run(t, noCluster, plan.Options{Offline: true, Set: []string{"repetitions={min: 3, max: 12, until: {claims: Decided}}"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Verdicts are looked at after each round from round 3 on, 10 times at most.", "decided: ", " rounds on average (standard error ", "if trials deviate by 3%; at most "} {
		if !strings.Contains(got, want) {
			t.Errorf("the plan does not say %q:\n%s", want, got)
		}
	}
}

func TestNextRunsAreShown(t *testing.T) {
	got, err := run(t, noCluster, plan.Options{Offline: true, Set: []string{`recurrence={cron: "0 3 * * 1-5", timeZone: Europe/Berlin}`}})
	if err != nil {
		t.Fatal(err)
	}
	want := "It recurs. The next runs are due at, in Europe/Berlin:\n  Fri 2026-11-27 03:00 CET\n  Mon 2026-11-30 03:00 CET\n  Tue 2026-12-01 03:00 CET\n"
	if !strings.Contains(got, want) {
		t.Errorf("the plan does not say %q:\n%s", want, got)
	}
}

func TestNoClusterIsNeeded(t *testing.T) {
	for name, tc := range map[string]struct {
		options plan.Options
		want    string
	}{
		"none answers": {plan.Options{}, "not checked: no cluster answers (no route to host); say what it has with --nodes"},
		"not asked":    {plan.Options{Offline: true}, "not checked: --offline"},
		"bad nodes":    {plan.Options{Nodes: []string{"3x8"}}, "not checked: --nodes 3x8 is not COUNTxCPUxMEMORY"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := run(t, noCluster, tc.options)
			if err != nil || !strings.Contains(got, tc.want) {
				t.Errorf("error %v, output:\n%s\nwant: %s", err, got, tc.want)
			}
		})
	}
}

// The plan subtracts the pods of a cluster from its nodes. Nodes that take no pods do not count.
func TestFitsCluster(t *testing.T) {
	node := func(name, cpu string, change func(*corev1.Node)) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("16Gi"), corev1.ResourcePods: resource.MustParse("110"),
		}}}
		change(n)
		return n
	}
	keep := func(*corev1.Node) {}
	pod := func(name string, phase corev1.PodPhase) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "x"}, Status: corev1.PodStatus{Phase: phase},
			Spec: corev1.PodSpec{NodeName: "a", Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}}}}},
		}
	}
	cordoned := node("b", "64", func(n *corev1.Node) { n.Spec.Unschedulable = true })
	tainted := node("c", "64", func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}} })
	forbidden := interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		if _, ok := list.(*corev1.PodList); ok {
			return errors.New("forbidden")
		}
		return c.List(ctx, list, opts...)
	}}
	inPool := func(pool string, taint bool) func(*corev1.Node) {
		return func(n *corev1.Node) {
			n.Labels = map[string]string{"assay.dev/pool": pool}
			if taint {
				n.Spec.Taints = []corev1.Taint{{Key: "assay.dev/pool", Value: pool, Effect: corev1.TaintEffectNoSchedule}}
			}
		}
	}
	pools := []string{"placement={replicas: servers, clients: loaders}"}
	inRegion := func(region string) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Labels = map[string]string{corev1.LabelTopologyRegion: region} }
	}
	regions := []string{"sweep=[{axis: clients, values: [2]}]", "topology={f: 1, regions: [{name: east, replicas: 2}, {name: west, replicas: 1}]}", "placement={byRegion: {}}", "claims=[]"}
	for name, tc := range map[string]struct { // the largest trial asks for 5 x 1.5 + 2 x 1 = 9.5 CPUs
		objects []client.Object
		funcs   interceptor.Funcs
		set     []string
		want    string
	}{
		"fits in its pools": {objects: []client.Object{node("a", "12", inPool("servers", true)), node("l", "12", inPool("loaders", false))}, set: pools, want: "fits on 2 nodes"},
		"no such pool":      {objects: []client.Object{node("a", "12", inPool("servers", true)), node("l", "12", keep)}, set: pools, want: "no room for 2 of 2 client pods in pool loaders"},
		"others' pool":      {objects: []client.Object{node("a", "12", inPool("servers", true))}, want: "does not fit on 1 node"},
		"fits":              {objects: []client.Object{node("a", "12", keep), cordoned, tainted, pod("done", corev1.PodSucceeded), pod("runs", corev1.PodRunning)}, want: "fits on 1 node of the cluster, beside what runs there now"},
		"too much runs":     {objects: []client.Object{node("a", "11", keep), pod("runs", corev1.PodRunning)}, want: "does not fit on 1 node of the cluster, beside what runs there now: no room for 1 of 2 client pods"},
		"pods not listable": {objects: []client.Object{node("a", "11", keep), pod("runs", corev1.PodRunning)}, funcs: forbidden, want: "fits on 1 node if nothing else runs there"},
		"in its regions":    {objects: []client.Object{node("a", "12", inRegion("east")), node("b", "12", inRegion("west"))}, set: regions, want: "fits on 2 nodes"},
		"one on each node":  {objects: []client.Object{node("a", "12", keep), node("b", "12", keep)}, set: []string{"placement={spread: Required}", "sweep=[{axis: clients, values: [2]}]", "claims=[]"}, want: "no room for 1 of 3 replica pods, one on each node"},
		"no such region":    {objects: []client.Object{node("a", "12", inRegion("east")), node("b", "12", keep)}, set: regions, want: "no room for 1 of 1 replica pod on nodes with topology.kubernetes.io/region=west"},
		"where pods go":     {objects: []client.Object{node("a", "12", keep)}, set: regions, want: "2 replica pods on nodes with topology.kubernetes.io/region=east each asks for CPU 1520m"},
		"no nodes":          {objects: []client.Object{cordoned}, want: "no node takes pods"},
	} {
		t.Run(name, func(t *testing.T) {
			scheme, err := session.NewScheme()
			if err != nil {
				t.Fatal(err)
			}
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(tc.objects...).WithInterceptorFuncs(tc.funcs).Build()
			got, err := run(t, func() (session.Cluster, error) { return session.Cluster{Client: c}, nil }, plan.Options{Set: tc.set})
			if err != nil || !strings.Contains(got, tc.want) {
				t.Errorf("error %v, output:\n%s\nwant: %s", err, got, tc.want)
			}
		})
	}
}

// plan refuses an object that admission would refuse, and prints all its errors at once.
func TestRefuses(t *testing.T) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.NewReplacer("{name: ping}\n  clients", "{name: pong}\n  clients", "throughput(clients=2, f=1)", "throughput(client=2, f=1)", "max_throughput(), expected", "max_throughput() > 1, expected").Replace(string(text))
	path := filepath.Join(t.TempDir(), "e.yaml")
	if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = run(t, noCluster, plan.Options{Files: []string{path}})
	if err == nil || !strings.Contains(err.Error(), "pong") {
		t.Errorf("a workload that does not exist: %v", err)
	}
	changed = strings.Replace(changed, "name: pong", "name: ping", 1)
	if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = run(t, noCluster, plan.Options{Files: []string{path}})
	if err == nil {
		t.Fatal("claims that cannot be judged are accepted")
	}
	for _, want := range []string{"2 problems, for which a cluster would refuse this", "spec.claims[0].expr", "1:45, at client: there is no axis client; did you mean clients?", "spec.claims[1]", "expr is a comparison"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q:\n%v", want, err)
		}
	}
}

// A sample that a user copies can be planned without an edit: plan finds its Systems.
func TestSamplesPlanAsTheyAre(t *testing.T) {
	files, err := filepath.Glob("../../../../config/samples/experiment-*.yaml")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d samples: %v", len(files), err)
	}
	for _, file := range files {
		if _, err := run(t, noCluster, plan.Options{Files: []string{file}, Offline: true}); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// plan checks files without an Experiment. It skips files of a folder that are not for Assay, and
// names them. It shows a run of a script by its rows, and without a warm-up, which a script does
// not have.
func TestScriptsAreShownByTheirRows(t *testing.T) {
	const folder = "../../../../systems/sweep/"
	out, err := run(t, noCluster, plan.Options{Files: []string{folder + "experiment.yaml", folder + "system.yaml"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"  0  round 0  4 rows, repetition 0\n", "  a run ends with its script, and after 2m at most (schedule.measure)"} {
		if !strings.Contains(out, want) {
			t.Errorf("the plan does not say %q:\n%s", want, out)
		}
	}
}

func TestSystemsAlone(t *testing.T) {
	dir := t.TempDir()
	system, err := os.ReadFile("../../../../config/samples/systems/driver.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"a.yaml": string(system), "b.yaml": "figures: [1]\n", "c.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out, said bytes.Buffer
	s := &session.Session{Out: &out, Err: &said, Connect: noCluster}
	if err := plan.Run(t.Context(), s, nil, plan.Options{Files: []string{dir}}); err != nil {
		t.Fatal(err)
	}
	if want := "1 System is right; there is no Experiment to plan.\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
	for _, want := range []string{"Note: skipped " + filepath.Join(dir, "b.yaml") + ":1: no object", "c.yaml:1: ConfigMap c of v1"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("the notes have no %q:\n%s", want, said.String())
		}
	}
	wrong := filepath.Join(dir, "wrong.yaml")
	if err := os.WriteFile(wrong, []byte(strings.Replace(string(system), "type: Integer", "type: Int", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := plan.Run(t.Context(), s, nil, plan.Options{Files: []string{wrong}}); err == nil || !strings.Contains(err.Error(), "problems, for which a cluster would refuse this") {
		t.Errorf("a wrong System: %v", err)
	}
	if err := plan.Run(t.Context(), s, nil, plan.Options{Files: []string{filepath.Join(dir, "c.yaml")}}); err == nil || !strings.Contains(err.Error(), `ConfigMap c: apiVersion: "v1" is not Assay's`) {
		t.Errorf("a file of another kind, named itself: %v", err)
	}
}
