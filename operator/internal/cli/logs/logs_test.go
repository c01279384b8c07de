package logs_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli/logs"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/results"
)

func trial(conditions ...metav1.Condition) *v1alpha1.Trial {
	return &v1alpha1.Trial{ObjectMeta: metav1.ObjectMeta{Name: "e-0", Namespace: "lab"}, Status: v1alpha1.TrialStatus{Conditions: conditions}}
}

var invalid = metav1.Condition{Type: v1alpha1.TrialComplete, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonInvalid, Message: "ReplicaExited: Replica e-0-local-0 exited with 139."}

// script is a trial whose run is a script on machines.
func script() *v1alpha1.Trial {
	t := trial()
	t.Spec.Script = &v1alpha1.TrialScript{}
	return t
}

// folder is a machine without a cluster that keeps its results in a folder.
type folder struct{ session.Host }

func (folder) Where(string) string { return "out" }

func pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "lab", Labels: map[string]string{v1alpha1.LabelTrial: "e-0"}},
		Spec: corev1.PodSpec{InitContainers: []corev1.Container{{Name: "agent"}}, Containers: []corev1.Container{{Name: "server"}}}}
}

// stored is what a trial's results keep.
func stored(t *testing.T, of results.Trial) *corev1.ConfigMap {
	t.Helper()
	of.Format, of.Name = results.TrialFormat, "e-0"
	b, err := results.EncodeTrial(of)
	if err != nil {
		t.Fatal(err)
	}
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "e-0-results", Namespace: "lab", Labels: map[string]string{v1alpha1.LabelResults: "trial", v1alpha1.LabelTrial: "e-0"}},
		Data: map[string]string{"trial.json": string(b)}}
}

func TestLogs(t *testing.T) {
	archived := metav1.Condition{Type: v1alpha1.TrialResultsStored, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonStored, Message: "s3://b/v1/lab/e/1/trials/e-0/"}
	withLogs := stored(t, results.Trial{Outcome: "Invalid", Reason: "ReplicaExited", Logs: map[string]string{"e-0-local-1/server": "one\ntwo\nthree\n", "e-0-local-0/server": "SIGSEGV"}})
	for name, tc := range map[string]struct {
		objects []client.Object
		options logs.Options
		host    session.Host
		out     string
		told    []string // on stderr or in the error
		code    int
	}{
		"pods": {
			objects: []client.Object{trial(), pod("e-0-local-1"), pod("e-0-local-0")}, options: logs.Options{Tail: -1},
			out:  "[e-0-local-0/server] e-0-local-0 server 1\n[e-0-local-0/server] and no end\n[e-0-local-1/server] e-0-local-1 server 1\n[e-0-local-1/server] and no end\n",
			told: []string{"Trial e-0 is not over."},
		},
		"one container, its last line": {
			objects: []client.Object{trial(), pod("e-0-local-0"), pod("e-0-local-1")}, options: logs.Options{Pod: "e-0-local-1", Container: "agent", Tail: 1, Follow: true},
			out: "[e-0-local-1/agent] and no end\n",
		},
		"with agents": {
			objects: []client.Object{trial(), pod("e-0-local-0")}, options: logs.Options{Tail: 1, Agents: true},
			out: "[e-0-local-0/agent] and no end\n[e-0-local-0/server] and no end\n",
		},
		"follow several": {
			objects: []client.Object{trial(), pod("e-0-local-0"), pod("e-0-local-1")}, options: logs.Options{Tail: -1, Follow: true},
			told: []string{"--follow is for one container, and there are 2"}, code: session.ExitUsage,
		},
		"no such pod": {
			objects: []client.Object{trial(), pod("e-0-local-0")}, options: logs.Options{Tail: -1, Pod: "e-0-local-9"},
			told: []string{"has no such pod or container; it has e-0-local-0/server"}, code: session.ExitUsage,
		},
		"one that has not started": {
			objects: []client.Object{trial(), pod("e-0-local-0"), pod("e-0-waiting")}, options: logs.Options{Tail: 1},
			out: "[e-0-local-0/server] and no end\n", told: []string{"read the log of e-0-waiting/server: it is waiting to start"}, code: session.ExitError,
		},
		"kept": {
			objects: []client.Object{trial(invalid), withLogs}, options: logs.Options{Tail: 2},
			out:  "[e-0-local-0/server] SIGSEGV\n[e-0-local-1/server] two\n[e-0-local-1/server] three\n",
			told: []string{"Trial e-0: Invalid. ReplicaExited: Replica e-0-local-0 exited with 139.", "The pods are gone: this is the end of what is kept"},
		},
		"kept of a trial that is gone": {
			objects: []client.Object{withLogs}, options: logs.Options{Tail: -1, Pod: "e-0-local-0"},
			out: "[e-0-local-0/server] SIGSEGV\n", told: []string{"Trial e-0, which is gone: Invalid. ReplicaExited"},
		},
		"kept of others only": {
			objects: []client.Object{trial(invalid), withLogs}, options: logs.Options{Tail: -1, Pod: "e-0-client-0"},
			told: []string{"its results have that of other processes only: e-0-local-0/server, e-0-local-1/server"}, code: session.ExitError,
		},
		"in a store": {
			objects: []client.Object{trial(invalid, archived), stored(t, results.Trial{Outcome: "Invalid"})}, options: logs.Options{Tail: -1},
			told: []string{"its results keep the output of processes that failed only", "The result store has all output (Stored: s3://b/v1/lab/e/1/trials/e-0/)"}, code: session.ExitError,
		},
		"the ends of all logs": {
			objects: []client.Object{trial(invalid), withLogs, filesOfPods(t)}, options: logs.Options{Tail: -1, Container: "server"},
			out:  "[e-0-local-0/server] SIGSEGV\n[e-0-local-1/server] zero\n[e-0-local-1/server] one\n[e-0-local-1/server:stderr] and more\n",
			told: []string{"2 files of its pods are kept: e-0-local-1/left-out.txt, e-0-local-1/out/stats.json", "kubectl assay logs e-0 -n lab --files DIRECTORY"},
		},
		"not yet": {objects: []client.Object{trial()}, told: []string{"Trial e-0 is not over.", "of trial e-0 no output can be read yet: it has no pods now"}, code: session.ExitError},
		"not yet on one machine": {
			objects: []client.Object{script()}, host: folder{},
			told: []string{"of trial e-0 no output can be read yet: without a cluster, output is read when the trial is over; kubectl assay ssh e-0 MACHINE --local=out opens a shell"}, code: session.ExitError,
		},
		"no room":  {objects: []client.Object{trial(invalid), stored(t, results.Trial{LeftOut: []string{"logs"}})}, told: []string{"its results had no room for it"}, code: session.ExitError},
		"no trial": {told: []string{"trial e-0 is not in namespace lab, nor are results of it"}, code: session.ExitError},
	} {
		t.Run(name, func(t *testing.T) {
			scheme, err := session.NewScheme()
			if err != nil {
				t.Fatal(err)
			}
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(tc.objects...).Build()
			s := &session.Session{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}, Connect: func() (session.Cluster, error) {
				return session.Cluster{Client: c, Namespace: "lab", Logs: readLog, Host: tc.host}, nil
			}}
			tc.options.Trial = "e-0"
			err = logs.Run(t.Context(), s, tc.options)
			told := s.Err.(*bytes.Buffer).String()
			if err != nil {
				told += err.Error()
			}
			if session.ExitCode(err) != tc.code {
				t.Errorf("exit code %d, want %d: %v", session.ExitCode(err), tc.code, err)
			}
			if got := s.Out.(*bytes.Buffer).String(); got != tc.out {
				t.Errorf("printed\n%s\nwant\n%s", got, tc.out)
			}
			for _, want := range tc.told {
				if !strings.Contains(told, want) {
					t.Errorf("told\n%s\nwant\n%s", told, want)
				}
			}
		})
	}
}

// readLog plays the API server: two lines for each container, the last without an end.
func readLog(_ context.Context, namespace, pod string, o *corev1.PodLogOptions) (io.ReadCloser, error) {
	if strings.HasSuffix(pod, "waiting") {
		return nil, errors.New("it is waiting to start")
	}
	text := pod + " " + o.Container + " 1\nand no end"
	if o.TailLines != nil && *o.TailLines == 1 {
		text = "and no end"
	}
	if namespace != "lab" {
		text = "of another namespace"
	}
	return io.NopCloser(strings.NewReader(text)), nil
}

// filesOfPods returns the ConfigMap in which the manager keeps one pod's files.
func filesOfPods(t *testing.T) *corev1.ConfigMap {
	t.Helper()
	packed, err := results.PackFiles(map[string][]byte{
		"logs/server.stdout": []byte("zero\none\n"), "logs/server.stderr": []byte("and more\n"), "out/stats.json": []byte("{}"), "left-out.txt": []byte("trace: too large\n"),
	})
	if err != nil {
		t.Fatal(err)
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "e-0-results-files", Namespace: "lab", Labels: map[string]string{v1alpha1.LabelResults: v1alpha1.ResultsFiles, v1alpha1.LabelTrial: "e-0"}},
		BinaryData: map[string][]byte{"e-0-local-1.tar.gz": packed},
	}
}

func TestFilesAreWritten(t *testing.T) {
	scheme, err := session.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		objects []client.Object
		pod     string
		told    string
		code    int
	}{
		"all":          {objects: []client.Object{trial(invalid), filesOfPods(t)}},
		"of one pod":   {objects: []client.Object{trial(invalid), filesOfPods(t)}, pod: "e-0-local-1"},
		"of another":   {objects: []client.Object{trial(invalid), filesOfPods(t)}, pod: "e-0-local-0", told: "no file of pod e-0-local-0 is kept", code: session.ExitError},
		"none":         {objects: []client.Object{trial(invalid)}, told: "of trial e-0 no file is kept", code: session.ExitError},
		"not over yet": {objects: []client.Object{trial(), pod("e-0-local-1")}, told: "files are collected when its processes have ended", code: session.ExitError},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(tc.objects...).Build()
			s := &session.Session{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}, Connect: func() (session.Cluster, error) {
				return session.Cluster{Client: c, Namespace: "lab", Logs: readLog}, nil
			}}
			err := logs.Run(t.Context(), s, logs.Options{Trial: "e-0", Pod: tc.pod, Files: dir})
			if session.ExitCode(err) != tc.code || err != nil && !strings.Contains(err.Error(), tc.told) {
				t.Fatalf("exit code %d, want %d: %v; want %q", session.ExitCode(err), tc.code, err, tc.told)
			}
			content, readErr := os.ReadFile(filepath.Join(dir, "e-0-local-1", "out", "stats.json"))
			if tc.code == 0 && (readErr != nil || string(content) != "{}") || tc.code != 0 && readErr == nil {
				t.Errorf("stats.json is %q (%v)", content, readErr)
			}
		})
	}
}
