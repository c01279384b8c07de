package trial

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"assay.dev/assay/operator/api/v1alpha1"
)

// pendingEvent is sent only when the status that it tells about has been written.
type pendingEvent struct{ kind, reason, action, message string }

// told are the conditions whose transitions users want to hear of; the others are visible in
// status.
var told = map[string]bool{v1alpha1.TrialAdmitted: true, v1alpha1.TrialRunning: true, v1alpha1.TrialValid: true, v1alpha1.TrialComplete: true}

func (s *scope) note(condition string, status metav1.ConditionStatus, reason, message string) {
	if !told[condition] || status == metav1.ConditionFalse && condition != v1alpha1.TrialValid {
		return
	}
	kind := corev1.EventTypeNormal
	if status == metav1.ConditionFalse {
		kind = corev1.EventTypeWarning
	}
	s.events = append(s.events, pendingEvent{kind: kind, reason: reason, action: condition, message: message})
}

func (s *scope) sendEvents(to events.EventRecorder) {
	for _, e := range s.events {
		to.Eventf(s.trial, nil, e.kind, e.reason, e.action, "%s", e.message)
	}
	s.events = nil
}
