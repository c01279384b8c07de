package local

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/local/folder"
)

// giveUpInterrupted marks trials as interrupted that an earlier process began and did not end.
// Their pods ended with that process, or are removed now. Only this process knows the reason: the
// engine would find the pods gone, blame the environment, and count the hours in which nothing ran.
// The engine then does the rest of their clean-up.
func giveUpInterrupted(objects *folder.Store, now time.Time) error {
	all, _ := objects.List(folder.Trials, folder.Namespace, nil)
	for _, object := range all {
		trial := &v1alpha1.Trial{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, trial); err != nil {
			return fmt.Errorf("read trial %s: %w", object.GetName(), err)
		}
		valid := meta.FindStatusCondition(trial.Status.Conditions, v1alpha1.TrialValid)
		if trial.Status.Times.Admitted == nil || valid != nil && valid.Status != metav1.ConditionUnknown {
			continue
		}
		meta.SetStatusCondition(&trial.Status.Conditions, metav1.Condition{
			Type: v1alpha1.TrialValid, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonInterrupted, LastTransitionTime: metav1.NewTime(now),
			ObservedGeneration: trial.Generation, Message: "The command that carried the trial out ended in its middle. The trial is repeated.",
		})
		status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&trial.Status)
		if err != nil {
			return fmt.Errorf("write trial %s: %w", trial.Name, err)
		}
		if _, err := objects.Change(folder.Trials, trial.Namespace, trial.Name, "", true, func(o *unstructured.Unstructured) error {
			o.Object["status"] = status
			return nil
		}); err != nil {
			return fmt.Errorf("give up trial %s, which was interrupted: %w", trial.Name, err)
		}
	}
	return nil
}
