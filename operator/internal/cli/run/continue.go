package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/experiment/plan"
)

// continuer owns the field of additional repetitions. With another owner, a later apply of the file
// would remove the field, since apply removes what its owner set before and the file does not have.
const continuer = client.FieldOwner("kubectl-assay-continue")

// continueFinished adds repetitions to a complete experiment. The experiment keeps its trials. The
// new verdicts are about the old and the new trials.
func continueFinished(ctx context.Context, s *session.Session, cluster session.Cluster, o Options) error {
	var exp v1alpha1.Experiment
	if err := cluster.Client.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: o.Continue}, &exp); err != nil {
		return fmt.Errorf("get Experiment %s in %s: %w", o.Continue, cluster.Place(), session.Explain(err))
	}
	if !meta.IsStatusConditionTrue(exp.Status.Conditions, v1alpha1.ExperimentComplete) {
		return fmt.Errorf("experiment %s in %s is not complete: repetitions can be added when it is; follow it with kubectl assay watch %s %s",
			exp.Name, cluster.Place(), exp.Name, cluster.Flag())
	}
	more := o.Repetitions
	if more == 0 {
		more = plan.ApplyProfile(exp.Spec).Repetitions.Min
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": exp.ResourceVersion}, // a retry must not add the repetitions twice
		"spec":     map[string]any{"additionalRepetitions": exp.Spec.AdditionalRepetitions + more},
	})
	if err != nil {
		return fmt.Errorf("write the patch: %w", err)
	}
	if err := cluster.Client.Patch(ctx, &exp, client.RawPatch(types.MergePatchType, patch), continuer); err != nil {
		return fmt.Errorf("add repetitions to Experiment %s in %s: %w", exp.Name, cluster.Place(), session.Explain(err))
	}
	what := "repetitions"
	if more == 1 {
		what = "repetition"
	}
	fmt.Fprintf(s.Err, "Each of %d points of experiment %s gets %d more %s. If you continue because of what the results showed, the 5%% of its verdicts is more: 9%% for one look more\n",
		exp.Status.Points, exp.Name, more, what)
	return nil
}

// checkContinue refuses options that do not go together.
func (o Options) checkContinue() error {
	switch {
	case o.Continue == "" && o.Repetitions != 0:
		return errors.New("--repetitions goes with --continue; the repetitions of a new experiment are set with --set repetitions.min=N")
	case o.Continue == "":
		return nil
	case o.Rerun || o.Name != "" || o.Profile != "" || len(o.Set) > 0 || len(o.Images.Replace) > 0 || o.Images.Registry != "":
		return errors.New("--continue takes an experiment as it is: it goes with --repetitions, --wait, --timeout and --output alone")
	case o.Repetitions < 0 || o.Repetitions > 99:
		return fmt.Errorf("--repetitions %d: must be from 1 to 99", o.Repetitions)
	}
	return nil
}
