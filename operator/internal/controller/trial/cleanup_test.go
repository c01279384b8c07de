package trial

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
)

// The manager cannot list Secrets. The one that a trial may have goes with it all the same; one of
// that name that is not the trial's stays.
func TestThePreparedSecretGoesWithItsTrial(t *testing.T) {
	for name, tc := range map[string]struct {
		label string // of the trial
		stays bool
	}{
		"the trial's":     {label: "trial-0"},
		"another's":       {label: "trial-1", stays: true},
		"somebody else's": {stays: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, nil)
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
				Namespace: p.ns, Name: p.layout().PreparedSecret(), Labels: map[string]string{v1alpha1.LabelTrial: tc.label},
			}}
			if err := p.env.Client.Create(t.Context(), secret); err != nil {
				t.Fatal(err)
			}
			var left string
			for range 2 { // what is being deleted may be there a while longer
				var err error
				if left, err = p.r.deleteAll(t.Context(), p.key); err != nil {
					t.Fatal(err)
				}
			}
			if left != "" {
				t.Errorf("still there: %s", left)
			}
			err := p.env.Client.Get(t.Context(), client.ObjectKeyFromObject(secret), secret)
			if tc.stays && err != nil || !tc.stays && !apierrors.IsNotFound(err) {
				t.Errorf("stays %v: reading it gives %v", tc.stays, err)
			}
		})
	}
}
