package node

import (
	"context"
	"crypto/rand"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"assay.dev/assay/operator/internal/manager/coordinator"
)

// identities has the tokens of the pods.
type identities struct {
	mu   sync.Mutex
	pods map[string]types.UID // by token
}

var _ coordinator.Identifier = (*identities)(nil)

// issue makes a token for a pod.
func (i *identities) issue(pod types.UID) string {
	token := rand.Text()
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.pods == nil {
		i.pods = map[string]types.UID{}
	}
	i.pods[token] = pod
	return token
}

// revoke deletes the tokens of a pod.
func (i *identities) revoke(pod types.UID) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for token, of := range i.pods {
		if of == pod {
			delete(i.pods, token)
		}
	}
}

// Claimed returns the pod that a caller claims to be by its token. Only this process makes tokens,
// so Known is check enough.
func (i *identities) Claimed(token string) (types.UID, bool) { return i.Known(token) }

// Known returns the pod of a token.
func (i *identities) Known(token string) (types.UID, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	uid, ok := i.pods[token]
	return uid, ok
}

// Identify returns the pod of a token.
func (i *identities) Identify(_ context.Context, token string) (types.UID, error) {
	if uid, ok := i.Known(token); ok {
		return uid, nil
	}
	return "", &coordinator.DeniedError{Reason: "no pod of this machine was given it"}
}
