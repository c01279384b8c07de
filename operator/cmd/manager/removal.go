package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/text/few"
)

// removalTimeout bounds `manager check-removal`.
const removalTimeout = time.Minute

// removalCommand runs in a pod of its own before `helm uninstall`. Only a manager removes the
// finalizers from experiments and trials: without one their namespaces hang.
func removalCommand() *cobra.Command {
	var namespaces []string
	cmd := &cobra.Command{
		Use: "check-removal", Short: "Fail while there are experiments that only a manager can end; used by helm uninstall", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), removalTimeout)
			defer cancel()
			c, err := newClient()
			if err != nil {
				return err
			}
			return mayBeRemoved(ctx, c, namespaces)
		},
	}
	cmd.Flags().StringSliceVar(&namespaces, "namespaces", nil, "namespaces whose experiments the manager runs. Default: all")
	return cmd
}

// mayBeRemoved fails while an experiment, trial or data set has a finalizer, which only a manager
// removes. It ignores a namespace whose experiments this manager may not list: the manager could
// not end them either. The owner has deleted such a namespace, and the manager's Role with it.
func mayBeRemoved(ctx context.Context, c client.Reader, namespaces []string) error {
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	var left []string
	for _, ns := range namespaces {
		for kind, list := range map[string]client.ObjectList{"experiment": &v1alpha1.ExperimentList{}, "trial": &v1alpha1.TrialList{}, "dataset": &v1alpha1.DatasetList{}} {
			err := c.List(ctx, list, client.InNamespace(ns))
			if apierrors.IsForbidden(err) && ns != metav1.NamespaceAll {
				fmt.Fprintf(os.Stderr, "manager: namespace %s is passed over: %v\n", ns, err)
				continue
			}
			if err != nil {
				return fmt.Errorf("list %ss: %w", kind, err)
			}
			if err := meta.EachListItem(list, func(item runtime.Object) error {
				o, err := meta.Accessor(item)
				if err == nil && len(o.GetFinalizers()) > 0 {
					left = append(left, fmt.Sprintf("%s %s/%s", kind, o.GetNamespace(), o.GetName()))
				}
				return err
			}); err != nil {
				return fmt.Errorf("read the list of %ss: %w", kind, err)
			}
		}
	}
	if len(left) == 0 {
		return nil
	}
	slices.Sort(left)
	return fmt.Errorf("only a manager can end %s. Delete them first: kubectl delete experiments.assay.dev,datasets.assay.dev --all --all-namespaces", few.Names(left))
}
