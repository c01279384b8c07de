// Package podsecurity decides whether a namespace's Pod Security profile admits a pod. It uses the
// rules of the API server.
//
// It is pure, and knows only the namespace's labels. The cluster's administrator may have set a
// default for namespaces without labels, and exemptions. These are in the API server's own
// configuration, which no client can read.
package podsecurity

import (
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// evaluator holds the API server's checks, of all versions.
var evaluator = sync.OnceValues(func() (policy.Evaluator, error) { return policy.NewEvaluator(policy.DefaultChecks(), nil) })

// Refusal is a profile that does not admit a pod.
type Refusal struct {
	// Profile that the namespace enforces: baseline or restricted.
	Profile string
	// Why is the reason in the API server's words.
	Why string
}

// Check returns why a namespace with these labels refuses a pod, or nil.
func Check(labels map[string]string, spec *corev1.PodSpec) (*Refusal, error) {
	privileged := api.LevelVersion{Level: api.LevelPrivileged, Version: api.LatestVersion()}
	// An invalid label means restricted, here as in the API server, so the error does not matter.
	enforced, _ := api.PolicyToEvaluate(labels, api.Policy{Enforce: privileged, Audit: privileged, Warn: privileged})
	if enforced.Enforce.Level == api.LevelPrivileged {
		return nil, nil
	}
	checks, err := evaluator()
	if err != nil {
		return nil, fmt.Errorf("load the rules of Pod Security: %w", err)
	}
	result := policy.AggregateCheckResults(checks.EvaluatePod(enforced.Enforce, &metav1.ObjectMeta{}, spec))
	if result.Allowed {
		return nil, nil
	}
	return &Refusal{Profile: string(enforced.Enforce.Level), Why: result.ForbiddenDetail()}, nil
}
