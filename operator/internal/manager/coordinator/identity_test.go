package coordinator

import (
	"context"
	"encoding/base64"
	"errors"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"assay.dev/assay/operator/internal/node/protocol"
)

// reviewer answers every TokenReview with a status.
func reviewer(status authenticationv1.TokenReviewStatus) *TokenReviewer {
	c := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			o.(*authenticationv1.TokenReview).Status = status
			return nil
		},
	})
	return NewTokenReviewer(c, clock.RealClock{})
}

func TestIdentify(t *testing.T) {
	pod := authenticationv1.UserInfo{Extra: map[string]authenticationv1.ExtraValue{podUIDKey: {"u1"}}}
	tests := map[string]struct {
		status authenticationv1.TokenReviewStatus
		want   string // empty: denied
	}{
		"a pod's token":           {authenticationv1.TokenReviewStatus{Authenticated: true, User: pod, Audiences: []string{protocol.Audience}}, "u1"},
		"not known":               {authenticationv1.TokenReviewStatus{User: pod, Audiences: []string{protocol.Audience}}, ""},
		"audiences are not known": {authenticationv1.TokenReviewStatus{Authenticated: true, User: pod}, ""},
		"for another audience":    {authenticationv1.TokenReviewStatus{Authenticated: true, User: pod, Audiences: []string{"api"}}, ""},
		"a user that is no pod":   {authenticationv1.TokenReviewStatus{Authenticated: true, Audiences: []string{protocol.Audience}}, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			uid, err := reviewer(tc.status).Identify(t.Context(), "token")
			var denied *DeniedError
			if string(uid) != tc.want || (tc.want == "") != errors.As(err, &denied) {
				t.Errorf("%q, %v; want %q", uid, err, tc.want)
			}
		})
	}
}

func TestClaimed(t *testing.T) {
	token := func(claims string) string {
		return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".sig"
	}
	for name, tc := range map[string]struct{ token, want string }{
		"a projected token": {token(`{"sub":"x","kubernetes.io":{"namespace":"n","pod":{"name":"p","uid":"u1"}}}`), "u1"},
		"of no pod":         {token(`{"sub":"x"}`), ""},
		"no claims":         {token(`[`), ""},
		"no base64":         {"a.?.c", ""},
		"no JSON Web Token": {"secret", ""},
		"an enormous one":   {token(`{"kubernetes.io":{"pod":{"uid":"u1"}},"x":"` + string(make([]byte, maxToken)) + `"}`), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if uid, ok := reviewer(authenticationv1.TokenReviewStatus{}).Claimed(tc.token); string(uid) != tc.want || ok != (tc.want != "") {
				t.Errorf("%q, %v; want %q", uid, ok, tc.want)
			}
		})
	}
}
