package e2e

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
)

// tableBytes of the table in testdata/dataset.yaml.
const tableBytes = 1 << 30

// A table of 1 GiB is loaded once on each node. Six trials begin with it, byte by byte, though each
// of them changes its copy. For comparison, the same trials without a data set each load the table.
func TestDataset(t *testing.T) {
	e := newEnv(t)
	e.giveDatasets(t)
	e.enforce(t, "restricted")
	file := filepath.Join("testdata", "dataset.yaml")
	exp := e.apply(t, file, nil)
	after := e.complete(t, exp, 9*time.Minute)
	if len(after) < 6 {
		t.Fatalf("%d trials, want 6", len(after))
	}
	set := e.theDataset(t)
	c := meta.FindStatusCondition(set.Status.Conditions, v1alpha1.DatasetReady)
	t.Logf("Dataset %s: %s %s; %s, %d bytes in %d files", set.Name, c.Reason, c.Message, set.Status.Digest, set.Status.Bytes, set.Status.Files)
	for _, n := range set.Status.Nodes {
		t.Logf("prepared on %s: recipe %d s, hash and keeping %d ms", n.Name, n.RecipeSeconds, n.KeepMilliseconds)
	}
	if set.Status.Bytes < tableBytes || len(set.Status.Nodes) == 0 {
		t.Errorf("%d bytes on %d nodes, want at least %d on one", set.Status.Bytes, len(set.Status.Nodes), tableBytes)
	}
	if n := e.preparations(t, set); n != len(set.Status.Nodes) {
		t.Errorf("%d Jobs have prepared the data on %d nodes; want one for each", n, len(set.Status.Nodes))
	}
	for _, r := range after {
		checkCopy(t, &r, set)
	}
	before := e.withoutDataset(t, file)
	t.Logf("time per trial from its admission to loaded replicas: %.1f s when each trial loads the table (%d trials), %.1f s with the data set (%d trials)",
		untilLoaded(before), len(before), untilLoaded(after), len(after))
	e.removeDataset(t, set)
}

// A recipe whose bytes are random serves with bytes: PerNode. Each node keeps its own, and trials
// name the digests of all nodes.
func TestDatasetPerNode(t *testing.T) {
	e := newEnv(t)
	e.giveDatasets(t)
	exp := e.apply(t, filepath.Join("testdata", "dataset.yaml"), func(o client.Object) {
		switch o := o.(type) {
		case *v1alpha1.System:
			o.Spec.Steps = nil
			o.Spec.Datasets[0].Bytes = v1alpha1.DatasetBytesPerNode
			o.Spec.Datasets[0].Container.Command = []string{"/awkward", "keygen", "/made", "4"}
		case *v1alpha1.Experiment:
			o.Spec.Repetitions.Min = 2
		}
	})
	after := e.complete(t, exp, 5*time.Minute)
	set := e.theDataset(t)
	var want []results.NodeDigest
	seen := map[string]bool{}
	for _, n := range set.Status.Nodes {
		want = append(want, results.NodeDigest{Node: n.Name, Digest: n.Digest})
		seen[n.Digest] = true
	}
	slices.SortFunc(want, func(a, b results.NodeDigest) int { return strings.Compare(a.Node, b.Node) })
	if len(want) < 2 || len(seen) != len(want) || seen[""] || set.Status.Digest != "" {
		t.Errorf("the status is %+v, want a digest of its own for each of at least two nodes", set.Status)
	}
	for _, r := range after {
		if r.Outcome != v1alpha1.ReasonSucceeded || len(r.Datasets) != 1 {
			t.Fatalf("%s: %s %s %s, data sets %+v", r.Name, r.Outcome, r.Reason, r.Message, r.Datasets)
		}
		if d := r.Datasets[0]; d.Digest != "" || d.Copies != 1 || !slices.Equal(d.Digests, want) {
			t.Errorf("%s: %+v, want one copy and the digests %+v", r.Name, d, want)
		}
	}
}

// Each of four replicas copies its own directory of a set, wherever it runs, and verifies that it
// has nothing else.
func TestDatasetInParts(t *testing.T) {
	e := newEnv(t)
	e.giveDatasets(t)
	exp := e.apply(t, filepath.Join("testdata", "dataset.yaml"), func(o client.Object) {
		switch o := o.(type) {
		case *v1alpha1.System:
			set := &o.Spec.Datasets[0]
			set.SubPath, set.Container.Command = "shard-{{.Self.Index}}", []string{"/awkward", "load", "/made", "1024", "4"}
			o.Spec.Parameters = nil
			o.Spec.Steps[0].Command = append(o.Spec.Steps[0].Command, "{{.Self.Index}}")
		case *v1alpha1.Experiment:
			o.Spec.Topology.F, o.Spec.Repetitions.Min = 1, 2
		}
	})
	after := e.complete(t, exp, 5*time.Minute)
	set := e.theDataset(t)
	if len(after) < 2 {
		t.Fatalf("%d trials, want 2", len(after))
	}
	for _, r := range after {
		if r.Outcome != v1alpha1.ReasonSucceeded || len(r.Datasets) != 1 {
			t.Fatalf("%s: %s %s %s, data sets %+v", r.Name, r.Outcome, r.Reason, r.Message, r.Datasets)
		}
		if d := r.Datasets[0]; d.Copies != 4 || d.Digest != set.Status.Digest {
			t.Errorf("%s: %+v, want four copies of %s", r.Name, d, set.Status.Digest)
		}
	}
	trials := e.trials(t, exp)
	for i := range trials {
		if c := trials[i].Status.Datasets; len(c) != 1 || c[0].Bytes < 1<<20 || c[0].Bytes > set.Status.Bytes/4 {
			t.Errorf("%s: the copies are %+v, want a quarter of %d bytes in each", trials[i].Name, c, set.Status.Bytes)
		}
	}
}

// giveDatasets does the same as the chart for a namespace in datasets.namespaces. It makes a folder
// on each node, and a claim for it.
func (e *env) giveDatasets(t *testing.T) {
	t.Helper()
	root := "/var/lib/assay-e2e-datasets" // TestRemovalLeavesNothing searches below /var/lib/assay
	d, err := e.clientset.AppsV1().Deployments(systemNamespace).Get(t.Context(), "assay-manager", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	image := ""
	for _, arg := range d.Spec.Template.Spec.Containers[0].Args {
		if after, found := strings.CutPrefix(arg, "--agent-image="); found {
			image = after
		}
	}
	nodes := &corev1.NodeList{}
	if err := e.List(t.Context(), nodes); err != nil {
		t.Fatal(err)
	}
	root0, group := int64(0), int64(65532)
	for i := range nodes.Items {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "folder-" + nodes.Items[i].Name},
			Spec: corev1.PodSpec{
				NodeName: nodes.Items[i].Name, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
				Containers: []corev1.Container{{
					Name: "folder", Image: image, Command: []string{"/agent", "dataset", "directories", "--root", "/datasets", e.namespace},
					SecurityContext: &corev1.SecurityContext{RunAsUser: &root0, RunAsGroup: &group, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
					VolumeMounts:    []corev1.VolumeMount{{Name: "datasets", MountPath: "/datasets"}},
				}},
				Volumes: []corev1.Volume{{Name: "datasets", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{
					Path: root, Type: new(corev1.HostPathDirectoryOrCreate),
				}}}},
			},
		}
		if err := e.Create(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
	}
	name, size := "assay-datasets-"+e.namespace, corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Ti")}
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}, Capacity: size, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
		ClaimRef: &corev1.ObjectReference{Namespace: e.namespace, Name: "assay-datasets"},
		PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{
			Path: root + "/" + e.namespace, Type: new(corev1.HostPathDirectory),
		}},
	}}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "assay-datasets"}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: volume.Spec.AccessModes, Resources: corev1.VolumeResourceRequirements{Requests: size}, StorageClassName: new(string), VolumeName: name,
	}}
	for _, o := range []client.Object{volume, claim} {
		if err := e.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if err := e.Delete(context.Background(), volume); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
	e.eventually(t, time.Minute, "every node has the folder", func(ctx context.Context) (bool, error) {
		pods := &corev1.PodList{}
		err := e.List(ctx, pods, client.InNamespace(e.namespace))
		for _, p := range pods.Items {
			if p.Status.Phase != corev1.PodRunning {
				return false, err
			}
		}
		return err == nil, err
	})
}

func (e *env) theDataset(t *testing.T) *v1alpha1.Dataset {
	t.Helper()
	list := &v1alpha1.DatasetList{}
	if err := e.List(t.Context(), list, client.InNamespace(e.namespace)); err != nil || len(list.Items) != 1 {
		t.Fatalf("%d Datasets (%v), want 1", len(list.Items), err)
	}
	return &list.Items[0]
}

// preparations counts the Jobs that have made a data set: they stay for an hour.
func (e *env) preparations(t *testing.T, set *v1alpha1.Dataset) int {
	t.Helper()
	jobs, err := e.clientset.BatchV1().Jobs(e.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: v1alpha1.LabelDataset + "=" + set.Name})
	if err != nil {
		t.Fatal(err)
	}
	return len(jobs.Items)
}

// checkCopy checks that a trial began with the data. Its agent has hashed every file of every copy.
// The system itself has hashed them, too, in a step that its results depend on.
func checkCopy(t *testing.T, r *results.Trial, set *v1alpha1.Dataset) {
	t.Helper()
	if r.Outcome != v1alpha1.ReasonSucceeded || r.Summary.Committed == 0 {
		t.Errorf("%s: %s %s %s", r.Name, r.Outcome, r.Reason, r.Message)
	}
	if len(r.Datasets) != 1 {
		t.Fatalf("%s: data sets %+v, want one", r.Name, r.Datasets)
	}
	d := r.Datasets[0]
	t.Logf("%s: %d copy of %d bytes by %s, checked by %s, in %.2f s; prepared in %.1f s", r.Name, d.Copies, d.Bytes, d.Method, d.Check, d.SlowestSeconds, d.PrepareSeconds)
	if d.Digest != set.Status.Digest || d.Copies != 1 || d.Check != string(v1alpha1.DatasetCheckContent) || d.SlowestSeconds <= 0 || d.PrepareSeconds <= 0 {
		t.Errorf("%s: %+v, want one copy of %s whose content was compared", r.Name, d, set.Status.Digest)
	}
}

// withoutDataset runs two trials of the system that load the table themselves.
func (e *env) withoutDataset(t *testing.T, file string) []results.Trial {
	t.Helper()
	exp := e.apply(t, file, func(o client.Object) {
		o.SetName("loading")
		switch o := o.(type) {
		case *v1alpha1.System:
			o.Spec.Replicas.Volumes = []v1alpha1.Volume{{Name: "table", MountPath: "/table", Medium: v1alpha1.VolumeDisk, Size: resource.MustParse("2Gi")}}
			load := v1alpha1.Step{Name: "load", RunsOn: v1alpha1.StepEveryReplica, Command: o.Spec.Datasets[0].Container.Command, Timeout: "5m"}
			load.Command[2] = "/table"
			o.Spec.Steps, o.Spec.Datasets = append([]v1alpha1.Step{load}, o.Spec.Steps...), nil
		case *v1alpha1.Experiment:
			o.Spec.Systems[0].Name, o.Spec.Repetitions.Min = "loading", 2
		}
	})
	return e.complete(t, exp, 5*time.Minute)
}

// untilLoaded is how many seconds trials take on average until their replicas have loaded and
// verified the data.
func untilLoaded(trials []results.Trial) (mean float64) {
	for _, r := range trials {
		for _, phase := range []string{"deployed", "networkVerified", "started", "loaded"} {
			mean += r.PhaseSeconds[phase] / float64(len(trials))
		}
	}
	return mean
}

// removeDataset deletes the Dataset, and checks that its bytes are gone from the nodes before the
// object is. The Jobs that delete the bytes go with the object, so a watch sees how they ended.
func (e *env) removeDataset(t *testing.T, set *v1alpha1.Dataset) {
	t.Helper()
	jobs, err := e.watching.Watch(t.Context(), &batchv1.JobList{}, client.InNamespace(e.namespace), client.MatchingLabels{v1alpha1.LabelDataset: set.Name})
	if err != nil {
		t.Fatal(err)
	}
	defer jobs.Stop()
	if err := e.Delete(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	e.eventually(t, 2*time.Minute, "the data set is gone", func(ctx context.Context) (bool, error) {
		err := e.Get(ctx, client.ObjectKeyFromObject(set), set)
		return err != nil && client.IgnoreNotFound(err) == nil, client.IgnoreNotFound(err)
	})
	removed, late := map[string]bool{}, time.After(30*time.Second)
	for len(removed) < len(set.Status.Nodes) {
		select {
		case event, open := <-jobs.ResultChan():
			if !open {
				t.Fatal("the watch of Jobs has ended")
			}
			if job, ok := event.Object.(*batchv1.Job); ok && strings.HasPrefix(job.Name, "remove-") && job.Status.Succeeded > 0 {
				removed[job.Name] = true
			}
		case <-late:
			t.Fatalf("%d nodes have removed the bytes, want %d", len(removed), len(set.Status.Nodes))
		}
	}
}

// A recipe that fails ends the experiment within seconds, and its last lines are in the
// experiment's conditions.
func TestDatasetThatFails(t *testing.T) {
	e := newEnv(t)
	e.giveDatasets(t)
	exp := e.apply(t, filepath.Join("testdata", "dataset.yaml"), func(o client.Object) {
		if s, ok := o.(*v1alpha1.System); ok {
			s.Spec.Datasets[0].Container.Command = []string{"/awkward", "load", "/made", "many rows"}
		}
	})
	e.eventually(t, 2*time.Minute, "the experiment says that its data failed", func(ctx context.Context) (bool, error) {
		err := e.Get(ctx, client.ObjectKeyFromObject(exp), exp)
		c := meta.FindStatusCondition(exp.Status.Conditions, v1alpha1.ExperimentComplete)
		return err == nil && c != nil && c.Reason == v1alpha1.ReasonDataFailed, err
	})
	c := meta.FindStatusCondition(exp.Status.Conditions, v1alpha1.ExperimentDataReady)
	t.Log(c.Message)
	if !strings.Contains(c.Message, `"many rows" is not a number of rows`) || !strings.Contains(c.Message, "exit code 2") {
		t.Errorf("the condition says %q; want the recipe's last line and its exit code", c.Message)
	}
	if trials := e.trials(t, exp); len(trials) != 0 {
		t.Errorf("%d trials were made without data", len(trials))
	}
}
