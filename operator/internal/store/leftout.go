package store

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
)

const (
	// annotationLeftOut of a Trial lists the objects that found no room, as POD/FILE, with commas
	// between them.
	annotationLeftOut = "assay.dev/results-left-out"
	// namesLeftOut is how many are listed; after them comes AndMore. A trial of hundreds of pods
	// must not get a list of all of their files, nor as many writes.
	namesLeftOut = 32
	// AndMore ends a list that is not complete.
	AndMore = "and more"
)

// LeaveOut records with the trial that an object is lost: the store did not take it, and the
// cluster had no room. So all readers of the results see the loss.
func (c *Cluster) LeaveOut(ctx context.Context, o Object) error {
	name := o.Key
	if m := inTrial.FindStringSubmatch(o.Key); m != nil {
		name = m[2]
	}
	key := client.ObjectKeyFromObject(c.Trial)
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		trial := &v1alpha1.Trial{}
		if err := c.Reader.Get(ctx, key, trial); err != nil {
			return err
		}
		names := LeftOut(trial)
		if slices.Contains(names, name) || slices.Contains(names, AndMore) {
			return nil
		}
		if len(names) == namesLeftOut {
			name = AndMore
		}
		before := trial.DeepCopy()
		if trial.Annotations == nil {
			trial.Annotations = map[string]string{}
		}
		trial.Annotations[annotationLeftOut] = strings.Join(append(names, name), ",")
		return c.Client.Patch(ctx, trial, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	})
	if err != nil {
		return fmt.Errorf("remember what is left out of trial %s: %w", key.Name, err)
	}
	return nil
}

// LeftOut lists the objects of a trial that found no room, in order; AndMore comes last where the
// list is not complete.
func LeftOut(trial *v1alpha1.Trial) []string {
	text := trial.Annotations[annotationLeftOut]
	if text == "" {
		return nil
	}
	return slices.SortedFunc(strings.SplitSeq(text, ","), func(a, b string) int {
		if (a == AndMore) != (b == AndMore) {
			if a == AndMore {
				return 1
			}
			return -1
		}
		return strings.Compare(a, b)
	})
}
