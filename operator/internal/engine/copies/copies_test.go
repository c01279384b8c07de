package copies

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"assay.dev/assay/operator/api/v1alpha1"
)

func pod(container, message string) *corev1.Pod {
	return &corev1.Pod{Status: corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{
		{Name: container, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: message}}}, {Name: "agent"},
	}}}
}

// The function adds up the reports of the pods' containers, and has the bytes of the largest copy.
// It ignores reports of another digest, and texts that are no reports.
func TestOf(t *testing.T) {
	spec := &v1alpha1.TrialSpec{Datasets: []v1alpha1.TrialDataset{{Name: "rows", Digest: "sha256:aa", Bytes: 12}, {Name: "log", Digest: "sha256:bb"}}}
	pods := map[string]*corev1.Pod{
		"a": pod("dataset-rows", `{"digest":"sha256:aa","bytes":7,"method":"Copy","milliseconds":1500}`),
		"b": pod("dataset-rows", `{"digest":"sha256:aa","bytes":5,"method":"Reflink","milliseconds":20}`),
		"c": pod("dataset-rows", `{"digest":"sha256:xx","method":"Copy","milliseconds":9000}`),
		"d": pod("dataset-rows", `something else`),
		"e": pod("another", `{"digest":"sha256:aa","method":"Copy","milliseconds":9000}`),
		"f": {},
	}
	at := func(node string, p *corev1.Pod) *corev1.Pod {
		p.Spec.NodeName = node
		return p
	}
	own := v1alpha1.TrialDataset{Name: "own", Bytes: 8, Digests: []v1alpha1.DatasetDigest{{Node: "n1", Digest: "sha256:cc"}, {Node: "n2", Digest: "sha256:dd"}}}
	spec.Datasets = append(spec.Datasets, own)
	for name, p := range map[string]*corev1.Pod{
		"g": at("n1", pod("dataset-own", `{"digest":"sha256:cc","bytes":6,"method":"Copy","milliseconds":3}`)),
		"h": at("n2", pod("dataset-own", `{"digest":"sha256:dd","bytes":7,"method":"Copy","milliseconds":5}`)),
		"i": at("n2", pod("dataset-own", `{"digest":"sha256:cc","method":"Copy","milliseconds":9}`)),
		"j": at("n3", pod("dataset-own", `{"digest":"sha256:cc","method":"Copy","milliseconds":9}`)),
	} {
		pods[name] = p
	}
	want := []v1alpha1.DatasetCopies{{Name: "rows", Copies: 2, Bytes: 7, Method: "Mixed", Check: v1alpha1.DatasetCheckSizes, FastestMilliseconds: 20, SlowestMilliseconds: 1500},
		{Name: "own", Copies: 2, Bytes: 7, Method: "Copy", Check: v1alpha1.DatasetCheckSizes, FastestMilliseconds: 3, SlowestMilliseconds: 5}}
	if d := cmp.Diff(want, Of(spec, pods)); d != "" {
		t.Errorf("copies (-want +got):\n%s", d)
	}
}

// A trial without data keeps its deadline. A trial with much data has more time, in which to copy
// it.
func TestLimit(t *testing.T) {
	spec := &v1alpha1.TrialSpec{Topology: v1alpha1.Topology{Shards: 2, Regions: []v1alpha1.Region{{Replicas: 2}, {Replicas: 1}}}, Clients: v1alpha1.Clients{Nodes: 1}}
	if got := Limit(spec); got != 0 {
		t.Errorf("without data %v", got)
	}
	spec.Datasets = []v1alpha1.TrialDataset{{Bytes: 1 << 30, Files: 1000}}
	if got, want := Limit(spec), 7*56*time.Second; got != want {
		t.Errorf("with 1 GiB in 7 pods %v, want %v", got, want)
	}
}

// Only a refused copy ends a trial: a full disk may have room the next time.
func TestRefused(t *testing.T) {
	spec := &v1alpha1.TrialSpec{Datasets: []v1alpha1.TrialDataset{{Name: "rows"}}}
	ended := func(container string, code int32) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: container, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: "agent: rows/1 is missing\n"}}}
	}
	again := ended("dataset-rows", 3)
	again.LastTerminationState, again.State = again.State, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	for name, tc := range map[string]struct {
		status corev1.ContainerStatus
		want   bool
	}{
		"refused":                         {ended("dataset-rows", 3), true},
		"refused, and tried again":        {again, true},
		"made":                            {ended("dataset-rows", 0), false},
		"failed for another reason":       {ended("dataset-rows", 1), false},
		"another container's code":        {ended("agent", 3), false},
		"of a data set that is not known": {ended("dataset-log", 3), false},
	} {
		t.Run(name, func(t *testing.T) {
			pods := map[string]*corev1.Pod{"a": {}, "b": {Status: corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{tc.status}}}, "c": nil}
			pod, why := Refused(spec, pods)
			if (pod == "b") != tc.want || (why == "rows/1 is missing") != tc.want {
				t.Errorf("pod %q, %q; want refused %v", pod, why, tc.want)
			}
		})
	}
}
