package storage

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/experiment/render"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/store"
	"assay.dev/assay/operator/internal/testkit/builders"
	"assay.dev/assay/operator/internal/testkit/testcluster"
)

// storer is a manager that stores results. It stops before one of its calls.
type storer struct {
	client.WithWatch

	name    string
	logs    string
	left    int // calls until it stops
	stopped chan struct{}
	goOn    chan struct{}
	done    chan error
}

func newStorer(c client.WithWatch, name, logs string, stop int) *storer {
	s := &storer{name: name, logs: logs, left: stop, stopped: make(chan struct{}), goOn: make(chan struct{}), done: make(chan error, 1)}
	s.WithWatch = interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			s.call(false)
			return c.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			s.call(false)
			return c.List(ctx, l, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			s.call(true)
			return c.Create(ctx, o, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			s.call(true)
			return c.Update(ctx, o, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			s.call(true)
			return c.Delete(ctx, o, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			s.call(true)
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	})
	return s
}

func (s *storer) call(write bool) {
	if !write && s.logs != "" {
		return // large results take long, and a stop before a write also reveals early reads
	}
	if s.left--; s.left == 0 {
		close(s.stopped)
		<-s.goOn
	}
}

// begin runs the manager until it stops or is done, and reports whether it stopped.
func (s *storer) begin(ctx context.Context, key client.ObjectKey, layout *placement.Layout, times int) bool {
	go func() { s.done <- s.store(ctx, key, layout, times) }()
	select {
	case <-s.stopped:
		return true
	case err := <-s.done:
		s.done <- err
		return false
	}
}

// finish lets the manager go on.
func (s *storer) finish() error {
	close(s.goOn)
	return <-s.done
}

// store stores the results as the engine does, with several attempts.
func (s *storer) store(ctx context.Context, key client.ObjectKey, layout *placement.Layout, times int) (err error) {
	for range times {
		trial := &v1alpha1.Trial{}
		if err := s.Get(ctx, key, trial); err != nil {
			return err
		}
		if trial.Status.ResultsConfigMap != "" {
			return nil
		}
		before := trial.DeepCopy()
		t := &results.Trial{Name: trial.Name, Experiment: "e", Message: s.name, Logs: map[string]string{"r/c": s.logs}}
		err = Results{Client: s, Reader: s}.Put(ctx, before, trial, layout, t, Attachments{})
		if err == nil {
			trial.Status.ResultsConfigMap = layout.ResultsConfigMap()
			err = s.Status().Patch(ctx, trial, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		}
		if err == nil {
			return nil
		}
	}
	return err
}

// A stopped manager once went on when its successor already led. Both stored results of one trial.
// The status then named those that the other manager had replaced, and they never reached the
// store. Here one manager stops before each of its calls, and its successor before each of its own.
func TestTwoManagersStoreResultsOfOneTrial(t *testing.T) {
	large := strings.Repeat("long ", render.ConfigMapLimit/4)
	for name, logs := range map[string][2]string{
		"small": {"", ""}, "large": {large, large}, "large before small": {large, ""}, "small before large": {"", large},
	} {
		t.Run(name, func(t *testing.T) {
			pairs := 0
			for first, more := 1, true; more; first++ {
				for second, other := 1, true; other; second++ {
					more, other = meet(t, logs, first, second)
					pairs++
				}
			}
			if pairs < 10 {
				t.Errorf("the managers met in %d ways, fewer than they have calls", pairs)
			}
		})
	}
}

// meet lets two managers store results. It reports for each whether it stopped before it was done.
func meet(t *testing.T, logs [2]string, first, second int) (firstStopped, secondStopped bool) {
	t.Helper()
	c := testcluster.InProcess(t).Client
	key := client.ObjectKey{Namespace: testcluster.InProcess(t).Namespace(t), Name: "e-0"}
	trial := builders.Trial(key.Name).Obj()
	trial.Namespace, trial.Spec.ResultsStore = key.Namespace, "archive"
	trial.OwnerReferences = []metav1.OwnerReference{{APIVersion: "assay.dev/v1alpha1", Kind: "Experiment", Name: "e", UID: "u", Controller: new(true)}}
	if err := c.Create(t.Context(), trial); err != nil {
		t.Fatal(err)
	}
	layout := placement.Layout{Trial: key.Name}
	deposed, successor := newStorer(c, "deposed", logs[0], first), newStorer(c, "successor", logs[1], second)
	firstStopped = deposed.begin(t.Context(), key, &layout, 1)
	secondStopped = successor.begin(t.Context(), key, &layout, 3)
	if firstStopped {
		_ = deposed.finish() // it may store its results, or learn that it must not
	}
	if secondStopped {
		if err := successor.finish(); err != nil {
			t.Errorf("one stopped before call %d, its successor before call %d: the successor fails: %v", first, second, err)
		}
	}
	if err := stored(t.Context(), c, key); err != nil {
		t.Errorf("one stopped before call %d, its successor before call %d: %v", first, second, err)
	}
	return firstStopped, secondStopped
}

// stored fails unless the results that the status names exist: in the ConfigMap, or whole.
func stored(ctx context.Context, c client.Client, key client.ObjectKey) error {
	trial, m := &v1alpha1.Trial{}, &corev1.ConfigMap{}
	if err := c.Get(ctx, key, trial); err != nil {
		return err
	}
	if err := c.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: trial.Status.ResultsConfigMap}, m); err != nil {
		return err
	}
	encoded, err := results.StoredTrial(m.Data, m.BinaryData)
	if err != nil || store.Describe("", encoded).SHA256 == trial.Status.ResultsDigest {
		return err
	}
	folder, err := store.TrialFolder(trial)
	if err != nil {
		return err
	}
	_, whole, err := store.ReadAll(ctx, Results{Client: c, Reader: c}.Kept(trial), folder.Key(TrialFile), results.WholeLimit)
	if err == nil && store.Describe("", whole).SHA256 != trial.Status.ResultsDigest {
		err = errors.New("the status names results that are not there")
	}
	return err
}
