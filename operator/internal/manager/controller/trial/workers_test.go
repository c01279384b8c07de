package trial

import (
	"context"
	"testing"
	"time"

	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/manager/cacheopts"
)

// Once there was a single worker. While it looked for room for a waiting trial, or for the objects
// of one trial, all other trials stood still.
func TestRunningTrialsWaitForNoOtherTrial(t *testing.T) {
	for name, blocks := range map[string]func(waiting client.ObjectKey, o any, namespace string) bool{
		"a look for room": func(_ client.ObjectKey, o any, namespace string) bool {
			_, pods := o.(*corev1.PodList)
			return pods && namespace == ""
		},
		"the snapshot of another": func(waiting client.ObjectKey, o any, namespace string) bool {
			_, revision := o.(*appsv1.ControllerRevision)
			return revision && namespace == waiting.Namespace
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, other := newPlayOf(t, nil, in("left", "left")), newPlayOf(t, nil, in("right", "right"))
			for _, pool := range []string{"left", "right"} {
				p.dropNode(pool)
				ensureNode(t, p.env, pool, pool, "64")
			}
			admittedBefore(t, p)
			if name != "a look for room" {
				admittedBefore(t, other)
			}
			blocked, open := make(chan struct{}, 100), make(chan struct{})
			wait := func(ctx context.Context, o any, namespace string) {
				if !blocks(other.key, o, namespace) {
					return
				}
				blocked <- struct{}{}
				select {
				case <-open:
				case <-ctx.Done():
				}
			}
			past := interceptor.NewClient(p.env.Client, interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					wait(ctx, o, key.Namespace)
					return c.Get(ctx, key, o, opts...)
				},
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					o := client.ListOptions{}
					o.ApplyOptions(opts)
					wait(ctx, list, o.Namespace)
					return c.List(ctx, list, opts...)
				},
			})
			p.env.Start(t, cacheopts.Options(), func(mgr ctrl.Manager) error {
				p.admits.Client, p.admits.Reader = mgr.GetClient(), past
				p.r.Client, p.r.Reader = mgr.GetClient(), past
				if err := p.admits.SetupWithManager(mgr); err != nil {
					return err
				}
				return p.r.SetupWithManager(mgr, make(chan event.GenericEvent))
			})
			t.Cleanup(func() { close(open) })
			select {
			case <-blocked:
			case <-time.After(time.Minute):
				t.Fatal("nothing was blocked")
			}
			gomega.NewWithT(t).Eventually(func() error {
				return p.env.Client.Get(t.Context(), client.ObjectKey{Namespace: p.ns, Name: p.layout().Sets[0].Name}, &appsv1.StatefulSet{})
			}, 20*time.Second, 50*time.Millisecond).Should(gomega.Succeed(), "the trial that was admitted makes no objects while another's are waited for")
		})
	}
}

// admittedBefore marks a trial as admitted before the manager began.
func admittedBefore(t *testing.T, p *play) {
	t.Helper()
	trial := p.trial()
	trial.Finalizers = []string{v1alpha1.FinalizerTrial}
	if err := p.env.Client.Update(t.Context(), trial); err != nil {
		t.Fatal(err)
	}
	now := metav1.NewMicroTime(p.clock.Now())
	trial.Status.Times.Admitted = &now
	meta.SetStatusCondition(&trial.Status.Conditions, metav1.Condition{Type: v1alpha1.TrialAdmitted, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAdmitted})
	if err := p.env.Client.Status().Update(t.Context(), trial); err != nil {
		t.Fatal(err)
	}
}
