package coordinator

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/internal/node/protocol"
)

type storeFunc func(ctx context.Context, pod Pod, packed []byte, read func()) error

// DeniedError gives the reason why a token is not accepted.
type DeniedError struct{ Reason string }

func (e *DeniedError) Error() string { return "the token is not accepted: " + e.Reason }

// podUIDKey names the field of a TokenReview with the pod that a projected token was made for.
const podUIDKey = "authentication.kubernetes.io/pod-uid"

// identityTTL is how long an answer stays valid. A pod that is gone loses its registration long
// before that.
const identityTTL = time.Minute

// reviewTimeout bounds one question to the API server.
const reviewTimeout = 10 * time.Second

// TokenReviewer asks the API server which pod a token belongs to, and remembers the answer for a
// while.
type TokenReviewer struct {
	client client.Client
	clock  clock.PassiveClock

	mu    sync.Mutex
	known map[[sha256.Size]byte]identity
}

type identity struct {
	uid   types.UID
	until time.Time
}

// NewTokenReviewer returns an Identifier that needs the right to create TokenReviews.
func NewTokenReviewer(c client.Client, clk clock.PassiveClock) *TokenReviewer {
	return &TokenReviewer{client: c, clock: clk, known: map[[sha256.Size]byte]identity{}}
}

// maxToken bounds the size of a token. The API server's tokens take about 1.5 KiB.
const maxToken = 16 << 10

// Claimed returns the UID of the pod named in a projected token. It does not check the signature.
func (t *TokenReviewer) Claimed(token string) (types.UID, bool) {
	parts := strings.Split(token, ".")
	if len(token) > maxToken || len(parts) != 3 {
		return "", false
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return "", false
	}
	var claims struct {
		Kubernetes struct {
			Pod struct {
				UID types.UID `json:"uid"`
			} `json:"pod"`
		} `json:"kubernetes.io"`
	}
	if json.Unmarshal(raw, &claims) != nil || claims.Kubernetes.Pod.UID == "" {
		return "", false
	}
	return claims.Kubernetes.Pod.UID, true
}

// Known returns the UID of the pod of a token that the API server has accepted within the last
// minute.
func (t *TokenReviewer) Known(token string) (types.UID, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	found, ok := t.known[sha256.Sum256([]byte(token))]
	return found.uid, ok && t.clock.Now().Before(found.until)
}

// Identify returns the UID of the pod that the token was made for.
func (t *TokenReviewer) Identify(ctx context.Context, token string) (types.UID, error) {
	if uid, ok := t.Known(token); ok {
		return uid, nil
	}
	// If the agent hangs up on this request, the answer still serves its next one.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reviewTimeout)
	defer cancel()
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{protocol.Audience}}}
	if err := t.client.Create(ctx, review); err != nil {
		return "", fmt.Errorf("create a TokenReview: %w", err)
	}
	if !review.Status.Authenticated {
		return "", &DeniedError{Reason: "the API server does not know it for the audience " + protocol.Audience}
	}
	// An authenticator that does not know audiences accepts tokens that were made for other
	// audiences.
	if !slices.Contains(review.Status.Audiences, protocol.Audience) {
		return "", &DeniedError{Reason: "the API server did not check that it is for the audience " + protocol.Audience}
	}
	uids := review.Status.User.Extra[podUIDKey]
	if len(uids) != 1 {
		return "", &DeniedError{Reason: "it was not made for a pod"}
	}
	key, now := sha256.Sum256([]byte(token)), t.clock.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	for k, v := range t.known {
		if now.After(v.until) {
			delete(t.known, k)
		}
	}
	t.known[key] = identity{uid: types.UID(uids[0]), until: now.Add(identityTTL)}
	return types.UID(uids[0]), nil
}
