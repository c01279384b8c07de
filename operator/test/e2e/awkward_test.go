package e2e

import (
	"bufio"
	"context"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
)

// Systems that start, end and report like real artifacts give right results through System objects
// alone. The test compares the results with the systems' own logs, which the platform does not
// write.
func TestAwkward(t *testing.T) {
	const (
		clients   = 4
		serviceMs = 2.0 // of one operation, at each replica
		warmUp    = 2.0 // seconds
		window    = 5.0 // seconds
	)
	for name, tc := range map[string]struct {
		file string
		run  float64 // seconds for which the clients work
		all  bool    // all of the client's output is within the timeline
	}{
		"Client": {file: "awkward.yaml", run: 8, all: true},
		"Stress": {file: "awkward-stress.yaml", run: 9},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			logs := e.followLogs(t)
			exp := e.apply(t, filepath.Join("testdata", tc.file), func(o client.Object) {
				if x, ok := o.(*v1alpha1.Experiment); ok {
					x.Spec.Tolerances.StartSpread = "100ms"
				}
			})
			trials := e.complete(t, exp, 3*time.Minute)
			r := lastValid(t, trials)
			truth := logs.stop()
			t.Logf("servers served %v; clients committed %d and printed %d", truth.served, truth.committed, truth.printed)

			s := r.Summary
			if s.MeanMillis < serviceMs || s.P50Millis < serviceMs || float64(s.Committed) > clients*window*1000/serviceMs {
				t.Errorf("%d committed, mean %.2f ms, median %.2f ms: faster than the servers can", s.Committed, s.MeanMillis, s.P50Millis)
			}
			// In a closed loop, all clients wait all the time. If the machine stalls at the end of
			// the window, a client's wait moves out of the window.
			busy := float64(s.Committed) * s.MeanMillis / 1000 / window
			t.Logf("%d committed at %.2f ms are %.2f clients at work", s.Committed, s.MeanMillis, busy)
			if busy < 0.6*clients || busy > 1.2*clients {
				t.Errorf("%d committed at %.2f ms are %.2f clients at work, want %d", s.Committed, s.MeanMillis, busy, clients)
			}
			if truth.committed == 0 || truth.printed == 0 || truth.printed > truth.committed {
				t.Fatalf("the clients' own count is committed %d, printed %d", truth.committed, truth.printed)
			}
			near(t, "committed in the window, against the clients' own count", s.Committed, float64(truth.committed)*window/tc.run, 0.5)
			sum := int64(0)
			for _, committed := range r.Timeline.Committed {
				sum += committed
			}
			if tc.all {
				// A client that starts late works as long as others. So a part of its work lies
				// after the timeline, which ends with the cool-down.
				late := 0.1
				for _, p := range r.Pods {
					if p.ClientRun != nil {
						late = max(late, p.ClientRun.EndedMillis/1000-(tc.run-warmUp))
					}
				}
				near(t, "committed over the timeline, against what the clients printed", sum, float64(truth.printed), 0.01+min(late, 0.5)/tc.run)
			}
			if len(truth.served) != 4 {
				t.Errorf("%d servers told what they served, want 4", len(truth.served))
			}
			for pod, served := range truth.served {
				near(t, "served by "+pod, served, float64(truth.committed), 0.03)
			}
		})
	}
}

func near(t *testing.T, what string, got int64, want, tolerance float64) {
	t.Helper()
	if math.Abs(float64(got)-want) > tolerance*want {
		t.Errorf("%s: %d, want %.0f within %.0f%%", what, got, want, tolerance*100)
	}
}

// truth is the output of the awkward system's own processes.
type truth struct {
	served             map[string]int64 // by pod
	committed, printed int64            // by all clients
}

// follower reads the logs of all system containers in the test's namespace while they exist.
type follower struct {
	cancel context.CancelFunc
	wait   sync.WaitGroup

	mu    sync.Mutex
	truth truth // guarded by mu
}

func (e *env) followLogs(t *testing.T) *follower {
	ctx, cancel := context.WithCancel(context.Background())
	f := &follower{cancel: cancel, truth: truth{served: map[string]int64{}}}
	t.Cleanup(cancel)
	f.wait.Go(func() {
		seen := map[string]bool{}
		for ctx.Err() == nil {
			pods := &corev1.PodList{}
			if err := e.List(ctx, pods, client.InNamespace(e.namespace)); err == nil {
				for _, p := range pods.Items {
					if part := p.Labels[v1alpha1.LabelPodType]; p.Status.Phase == corev1.PodRunning && !seen[p.Name] && part != v1alpha1.PodTypePrepare {
						seen[p.Name] = true
						f.wait.Go(func() { f.follow(ctx, t, e, p.Name, container(p)) })
					}
				}
			}
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
	})
	return f
}

// container is the system's own container in the pod.
func container(p corev1.Pod) string {
	for _, c := range p.Spec.Containers {
		if c.Name == "server" || c.Name == "client" {
			return c.Name
		}
	}
	return ""
}

func (f *follower) follow(ctx context.Context, t *testing.T, e *env, pod, container string) {
	stream, err := e.clientset.CoreV1().Pods(e.namespace).GetLogs(pod, &corev1.PodLogOptions{Container: container, Follow: true}).Stream(ctx)
	if err != nil {
		t.Logf("logs of %s: %v", pod, err)
		return
	}
	defer stream.Close()
	lines := bufio.NewScanner(stream)
	for lines.Scan() {
		f.line(pod, strings.TrimSpace(lines.Text()))
	}
}

func (f *follower) line(pod, line string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var n, m int64
	if _, err := fmt.Sscanf(line, "served %d", &n); err == nil {
		f.truth.served[pod] = n
	}
	if _, err := fmt.Sscanf(line, "committed %d, printed %d", &n, &m); err == nil {
		f.truth.committed += n
		f.truth.printed += m
	}
}

// stop ends following and returns the truth so far.
func (f *follower) stop() truth {
	f.cancel()
	f.wait.Wait()
	return f.truth
}
