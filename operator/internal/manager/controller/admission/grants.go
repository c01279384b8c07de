package admission

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
)

// GrantsName is the name of the ConfigMap of grants; the chart makes it.
const GrantsName = "assay-grants"

// grantsKey is the key of the ConfigMap with a JSON list of grants.
const grantsKey = "trials.json"

// grant allows one trial to start.
type grant struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
}

func grantOf(t *v1alpha1.Trial) grant { return grant{t.Namespace, t.Name, t.UID} }

// grants are the grants in the ConfigMap, as read.
type grants struct {
	trials []grant
	object *corev1.ConfigMap // with the resource version that was read, or without one if it does not exist
}

// readGrants reads the grants past the cache. The ConfigMap is missing if an earlier manager did
// not write it, or if a user deleted it. Then readGrants grants all trials that the API server
// shows as Admitted.
func (r *Reconciler) readGrants(ctx context.Context) (*grants, error) {
	g := &grants{object: &corev1.ConfigMap{}}
	err := r.Reader.Get(ctx, r.Grants, g.object)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read the grants of trials, ConfigMap %s: %w", r.Grants, err)
	}
	if apierrors.IsNotFound(err) {
		g.object = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.Grants.Namespace, Name: r.Grants.Name}}
	}
	if text := g.object.Data[grantsKey]; text != "" {
		if err := json.Unmarshal([]byte(text), &g.trials); err != nil {
			return nil, fmt.Errorf("decode the grants of trials, key %s of ConfigMap %s: %w. Delete the key to have them made again", grantsKey, r.Grants, err)
		}
		return g, nil
	}
	err = eachPage(ctx, r.Reader, func() client.ObjectList { return &v1alpha1.TrialList{} }, func(list client.ObjectList) {
		for _, t := range list.(*v1alpha1.TrialList).Items {
			if isTrue(&t, v1alpha1.TrialAdmitted) && !isTrue(&t, v1alpha1.TrialComplete) {
				g.trials = append(g.trials, grantOf(&t))
			}
		}
	})
	if err != nil {
		return nil, fmt.Errorf("list the trials that run: %w", err)
	}
	return g, nil
}

// writeGrants replaces the grants that were read. It returns a Conflict if another manager has
// replaced them before.
func (r *Reconciler) writeGrants(ctx context.Context, g *grants) error {
	text, err := json.Marshal(g.trials)
	if err != nil {
		return fmt.Errorf("encode the grants of trials: %w", err)
	}
	g.object.Data = map[string]string{grantsKey: string(text)}
	if g.object.ResourceVersion != "" {
		err = r.Client.Update(ctx, g.object)
	} else if err = r.Client.Create(ctx, g.object); apierrors.IsAlreadyExists(err) {
		err = apierrors.NewConflict(corev1.Resource("configmaps"), g.object.Name, err)
	}
	if err != nil {
		return fmt.Errorf("write the grants of trials, ConfigMap %s: %w", r.Grants, err)
	}
	return nil
}
