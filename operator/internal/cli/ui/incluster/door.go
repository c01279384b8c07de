package incluster

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"

	"assay.dev/assay/operator/api/v1alpha1"
)

const (
	// answersKept is how long the page uses an answer of the API server about a visitor again. For
	// so long a visitor may go on after losing a token or a right.
	answersKept = 10 * time.Second
	// reviewPatience is how long the API server may take to answer about a token.
	reviewPatience = 10 * time.Second
	// reviewsPerSecond is how many requests the page sends at most: a flood of unknown tokens must
	// cost the API server little.
	reviewsPerSecond = 20
	// pagesKept is how many visitors' pages are kept at most, each for pageKept after it was made.
	pagesKept = 64
	pageKept  = 10 * time.Minute
)

// errNoToken says that the visitor has not signed in.
var errNoToken = errors.New("no token")

// door asks the API server who a visitor is, and what the visitor may see. It decides nothing
// itself.
type door struct {
	authenticator authenticator.Request
	authorizer    authorizer.Authorizer
	pages         *cache.LRUExpireCache // by the SHA-256 of the token
}

// newDoor makes the checks by TokenReview and SubjectAccessReview, as an aggregated API server
// does.
func newDoor(config *rest.Config) (*door, error) {
	few := rest.CopyConfig(config)
	few.QPS, few.Burst = reviewsPerSecond, 2*reviewsPerSecond
	authentication, err := authenticationclient.NewForConfig(few)
	if err != nil {
		return nil, fmt.Errorf("make a client of TokenReview: %w", err)
	}
	authorization, err := authorizationclient.NewForConfig(few)
	if err != nil {
		return nil, fmt.Errorf("make a client of SubjectAccessReview: %w", err)
	}
	backoff := wait.Backoff{Duration: 500 * time.Millisecond, Factor: 1.5, Jitter: 0.2, Steps: 3}
	d := &door{pages: cache.NewLRUExpireCache(pagesKept)}
	tokens := authenticatorfactory.DelegatingAuthenticatorConfig{
		Anonymous: &apiserver.AnonymousAuthConfig{Enabled: false}, CacheTTL: answersKept,
		TokenAccessReviewClient: authentication, TokenAccessReviewTimeout: reviewPatience, WebhookRetryBackoff: &backoff,
	}
	if d.authenticator, _, err = tokens.New(); err != nil {
		return nil, fmt.Errorf("make the check of tokens: %w", err)
	}
	rights := authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: authorization, AllowCacheTTL: answersKept, DenyCacheTTL: answersKept, WebhookRetryBackoff: &backoff,
	}
	if d.authorizer, err = rights.New(); err != nil {
		return nil, fmt.Errorf("make the check of rights: %w", err)
	}
	return d, nil
}

// token returns the token of a request: from a header that a proxy sets, or from the cookie of a
// browser that signed in here.
func token(r *http.Request) string {
	if given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		return strings.TrimSpace(given)
	}
	if c, err := r.Cookie(cookie); err == nil {
		return c.Value
	}
	return ""
}

// who returns the user of a token.
func (d *door) who(ctx context.Context, token string) (user.Info, error) {
	if token == "" {
		return nil, errNoToken
	}
	asked := (&http.Request{Header: http.Header{"Authorization": {"Bearer " + token}}}).WithContext(ctx)
	answer, ok, err := d.authenticator.AuthenticateRequest(asked)
	if err != nil {
		return nil, fmt.Errorf("the cluster did not accept the token: %w", err)
	}
	if !ok {
		return nil, errors.New("the cluster did not accept the token")
	}
	return answer.User, nil
}

// maySee reports whether a user may list experiments and trials in a namespace, or in all
// namespaces if it is empty. If the API server does not answer, it returns false.
func (d *door) maySee(ctx context.Context, u user.Info, namespace string) bool {
	for _, resource := range []string{"experiments", "trials"} {
		decision, _, err := d.authorizer.Authorize(ctx, authorizer.AttributesRecord{
			User: u, Verb: "list", Namespace: namespace, APIGroup: v1alpha1.GroupVersion.Group, APIVersion: v1alpha1.GroupVersion.Version, Resource: resource, ResourceRequest: true,
		})
		if err != nil || decision != authorizer.DecisionAllow {
			return false
		}
	}
	return true
}

// keyOf returns the key under which the page of a token is kept.
func keyOf(token string) [sha256.Size]byte { return sha256.Sum256([]byte(token)) }
