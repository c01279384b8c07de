package trial

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/node/protocol"
)

// A trial of many pods once wrote a message for each pod that came up.
func TestMessagesAreHeldBack(t *testing.T) {
	p := newPlay(t, nil)
	p.settle(false)
	p.r.MessageSpacing = time.Second
	say := func(reason, message string) time.Duration {
		t.Helper()
		trial := p.trial()
		before := trial.DeepCopy()
		meta.SetStatusCondition(&trial.Status.Conditions, metav1.Condition{Type: v1alpha1.TrialDeployed, Status: metav1.ConditionFalse, Reason: reason, Message: message})
		if equality.Semantic.DeepEqual(before.Status, trial.Status) {
			return 0
		}
		hold, err := p.r.record.Save(t.Context(), before, trial, nil)
		if err != nil {
			t.Fatal(err)
		}
		return hold
	}
	steps := []struct {
		after           time.Duration
		reason, message string
		hold            time.Duration
	}{
		{time.Minute, v1alpha1.ReasonPodsPending, "one pod", 0},
		{100 * time.Millisecond, v1alpha1.ReasonPodsPending, "two pods", 900 * time.Millisecond},
		{100 * time.Millisecond, v1alpha1.ReasonConfiguring, "two pods", 0},
		{999 * time.Millisecond, v1alpha1.ReasonConfiguring, "three pods", time.Millisecond},
		{time.Millisecond, v1alpha1.ReasonConfiguring, "three pods", 0},
		{time.Millisecond, v1alpha1.ReasonConfiguring, "three pods", 0}, // nothing to write
	}
	written := ""
	for i, step := range steps {
		p.clock.Step(step.after)
		if hold := say(step.reason, step.message); hold != step.hold {
			t.Errorf("step %d is held back for %v, want %v", i, hold, step.hold)
		}
		if step.hold == 0 {
			written = step.reason + ": " + step.message
		}
		if c := p.condition(v1alpha1.TrialDeployed); c.Reason+": "+c.Message != written {
			t.Errorf("step %d: the cluster says %s: %s; want %s", i, c.Reason, c.Message, written)
		}
	}
}

// A delayed message is written when its time has come, even if nothing else happens.
func TestHeldMessagesHaveATime(t *testing.T) {
	p := newPlay(t, nil)
	p.settle(false)
	p.r.MessageSpacing = time.Second
	p.clock.Step(time.Minute)
	up := func(n int) (pod, message string, again time.Duration) {
		t.Helper()
		pod = p.layout().Servers[n].Name
		p.pod(pod, n, map[string]string{v1alpha1.LabelPodType: v1alpha1.PodTypeReplica})
		p.agents.reports[pod] = &protocol.Report{Incarnation: "1"}
		again = p.reconcile().RequeueAfter
		return pod, p.condition(v1alpha1.TrialDeployed).Message, again
	}
	if pod, message, _ := up(0); strings.Contains(message, pod) {
		t.Errorf("%s is up; the trial says: %s", pod, message)
	}
	pod, message, again := up(1)
	if !strings.Contains(message, pod) || again <= 0 || again > time.Second {
		t.Errorf("%s has just come up; the trial says: %s, and is looked at again after %v", pod, message, again)
	}
	p.clock.Step(again)
	p.reconcile()
	if message := p.condition(v1alpha1.TrialDeployed).Message; strings.Contains(message, pod) {
		t.Errorf("%s is up, and a second is over; the trial says: %s", pod, message)
	}
}
