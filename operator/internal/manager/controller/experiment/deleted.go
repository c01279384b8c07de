package experiment

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/text/few"
)

// deletedPage is how many results ConfigMaps are listed at a time, without their data.
const deletedPage = 500

// deletedTrials names the results of trials that are not among the experiment's results, since a
// user deleted the Trial and it was run again. That is allowed, but a reader of a verdict must see
// it: a user who deletes inconvenient trials chooses the verdict.
func (r *Reconciler) deletedTrials(ctx context.Context, s *scope) (string, error) {
	known := map[string]bool{}
	for i := range s.trials {
		known[s.trials[i].Name] = true
	}
	var deleted []string
	of := client.MatchingLabels{v1alpha1.LabelResults: "trial", v1alpha1.LabelExperiment: s.exp.Name}
	for next := ""; ; {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(configMapKind.GroupVersion().WithKind("ConfigMapList"))
		if err := r.Reader.List(ctx, list, client.InNamespace(s.exp.Namespace), of, client.Limit(deletedPage), client.Continue(next)); err != nil {
			return "", fmt.Errorf("list the results of trials: %w", err)
		}
		for i := range list.Items {
			m := &list.Items[i]
			trial := m.Labels[v1alpha1.LabelTrial]
			if !strings.HasPrefix(trial, s.exp.Name+"-"+shortUID(s.exp)+"-") {
				continue // from an earlier experiment with the name
			}
			if before := m.Annotations[v1alpha1.AnnotationReplaced]; before != "" {
				deleted = append(deleted, fmt.Sprintf("%s before (%s)", trial, strings.ReplaceAll(before, ",", ", ")))
			}
			if !known[trial] {
				deleted = append(deleted, fmt.Sprintf("%s (%s)", trial, m.Annotations[v1alpha1.AnnotationOutcome]))
			}
		}
		if next = list.Continue; next == "" {
			break
		}
	}
	if len(deleted) == 0 {
		return "", nil
	}
	slices.Sort(deleted)
	return fmt.Sprintf("trials that somebody deleted after they had ended (%d), and that were run again: %s", len(deleted), few.Names(deleted)), nil
}
