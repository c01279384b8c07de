// Package run is "kubectl assay run": it sends an experiment and its Systems to the cluster and, if asked, waits for the verdicts.
package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/claims"
	"assay.dev/assay/operator/internal/cli/manifest"
	"assay.dev/assay/operator/internal/cli/report"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/cli/watch"
	"assay.dev/assay/operator/internal/monitoring"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/render"
)

// fieldOwner of what the command applies.
const fieldOwner = client.FieldOwner("kubectl-assay")

// Options of the verb.
type Options struct {
	Files   []string
	Profile string
	Set     []string
	Wait    bool
	Timeout time.Duration
	Output  string
	Force   bool
}

// Command is the verb.
func Command(s *session.Session) *cobra.Command {
	var o Options
	cmd := &cobra.Command{
		Use:   "run -f FILE",
		Short: "Run an experiment, and wait for its verdicts with --wait",
		Long: "Run an experiment: apply its Systems and the Experiment to the cluster. With --wait, show progress until it is over, then the report.\n\n" +
			"Exit codes with --wait:\n" +
			"  0  every claim that the profile judges is Reproduced\n" +
			"  1  something went wrong, or it was not over in time\n" +
			"  3  some claim is NotReproduced\n" +
			"  4  none is NotReproduced, and some is Inconclusive or NotEvaluated\n" +
			"  5  some repetition has no valid trial and its retries are used up",
		Example: "  kubectl assay run -f experiments/failure-fp.yaml --profile smoke --wait",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return Run(cmd.Context(), s, cmd.InOrStdin(), o) },
	}
	f := cmd.Flags()
	f.StringSliceVarP(&o.Files, "filename", "f", nil, "file with the Experiment, and files with its Systems; those in the folder systems beside it are found; -: stdin")
	f.StringVar(&o.Profile, "profile", "", "profile of the experiment to use")
	f.StringArrayVar(&o.Set, "set", nil, "set a field of the experiment's spec, as in --set network.shaping=None; may be repeated")
	f.BoolVar(&o.Wait, "wait", false, "show progress until it is over, then the report")
	f.DurationVar(&o.Timeout, "timeout", 2*time.Hour, "with --wait: give up waiting after so long; the experiment goes on; 0: never")
	f.StringVarP(&o.Output, "output", "o", "text", "with --wait: form of the report, or its file, as for the verb report")
	f.BoolVar(&o.Force, "force-conflicts", false, "take over fields that another tool has set")
	_ = cmd.MarkFlagRequired("filename") // fails only for a flag that does not exist
	return cmd
}

// Run applies and, with Wait, waits and reports. Its error carries the exit code.
func Run(ctx context.Context, s *session.Session, stdin io.Reader, o Options) error {
	if o.Wait {
		if err := report.CheckOutput(o.Output); err != nil {
			return err
		}
	}
	set, err := manifest.Read(o.Files, stdin)
	if err != nil {
		return err
	}
	if err := set.Change(o.Set); err != nil {
		return err
	}
	if o.Profile != "" {
		if err := set.UseProfile(o.Profile); err != nil {
			return err
		}
	}
	cluster, err := s.Connect()
	if err != nil {
		return err
	}
	if cluster.Namespace, err = namespace(set, cluster); err != nil {
		return err
	}
	if err := check(ctx, set, cluster); err != nil {
		return err
	}
	for _, u := range set.ToApply() {
		if err := apply(ctx, cluster, u, o.Force); err != nil {
			return err
		}
		fmt.Fprintf(s.Err, "%s %s applied in namespace %s\n", u.GetKind(), u.GetName(), cluster.Namespace)
	}
	name := set.Experiment.Name
	if !o.Wait {
		fmt.Fprintf(s.Err, "Follow it with: kubectl assay watch %s -n %s\n", name, cluster.Namespace)
		return nil
	}
	exp, err := watch.Until(ctx, aside(s), cluster, watch.Options{Name: name, Timeout: o.Timeout})
	if err != nil {
		return err
	}
	here := *s
	here.Connect = func() (session.Cluster, error) { return cluster, nil }
	if err := report.Run(ctx, &here, report.Options{Name: name, Output: o.Output}); err != nil {
		return err
	}
	return Outcome(exp)
}

// aside is the session whose output goes to stderr, so that stdout holds the report alone.
func aside(s *session.Session) *session.Session {
	progress := *s
	progress.Out, progress.Terminal = s.Err, s.ErrTerminal
	return &progress
}

// namespace to apply in: the flag's, else the file's, else the context's. A flag and a file that disagree are an error, as with kubectl.
func namespace(set *manifest.Set, cluster session.Cluster) (string, error) {
	written := set.Experiment.Namespace
	switch {
	case written == "" || written == cluster.Namespace:
		return cluster.Namespace, nil
	case cluster.NamespaceGiven:
		return "", fmt.Errorf("experiment %s is written for namespace %s and -n says %s; make them agree", set.Experiment.Name, written, cluster.Namespace)
	}
	return written, nil
}

// check makes the checks of admission here, where all problems can be listed at once. Systems that no file holds are read from the cluster.
func check(ctx context.Context, set *manifest.Set, cluster session.Cluster) error {
	for _, name := range set.Missing() {
		var system v1alpha1.System
		err := cluster.Client.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: name}, &system)
		switch {
		case apierrors.IsNotFound(err):
			return fmt.Errorf("system %s is in none of the files, not in the folder systems beside them, and not in namespace %s; name its file with -f", name, cluster.Namespace)
		case err != nil:
			return fmt.Errorf("get System %s in namespace %s: %w", name, cluster.Namespace, explained(err))
		}
		set.Systems[name] = system.Spec
	}
	_, errs := plan.Validate(set.Experiment, set.Systems, plan.Checks{Templates: render.Check, Claim: claims.Check, Measurement: monitoring.Check})
	if len(errs) == 0 {
		return nil
	}
	lines := make([]string, len(errs))
	for i, err := range errs {
		lines[i] = "  " + err.Error()
	}
	return fmt.Errorf("experiment %s is not applied:\n%s", set.Experiment.Name, strings.Join(lines, "\n"))
}

func apply(ctx context.Context, cluster session.Cluster, u *unstructured.Unstructured, force bool) error {
	u = u.DeepCopy()
	u.SetNamespace(cluster.Namespace)
	options := []client.ApplyOption{fieldOwner}
	if force {
		options = append(options, client.ForceOwnership)
	}
	kind, name := u.GetKind(), u.GetName() // Apply replaces u by what the server has
	err := cluster.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), options...)
	switch {
	case err == nil:
		return nil
	case apierrors.IsConflict(err):
		return fmt.Errorf("apply %s %s in namespace %s: %w; --force-conflicts takes the fields over", kind, name, cluster.Namespace, err)
	case apierrors.IsInvalid(err) && kind == "Experiment":
		return fmt.Errorf("apply Experiment %s in namespace %s: %w; an experiment that has run cannot be changed: delete it (its results stay) or give it another name",
			name, cluster.Namespace, err)
	}
	return fmt.Errorf("apply %s %s in namespace %s: %w", kind, name, cluster.Namespace, explained(err))
}

// explained says what to do about a cluster that does not know the kinds.
func explained(err error) error {
	if meta.IsNoMatchError(err) {
		return fmt.Errorf("the cluster does not know Assay's kinds; install the operator with helm install assay charts/assay -n assay-system: %w", err)
	}
	return err
}

// Outcome turns the end of an experiment into the command's: nil, or a session.Verdict. Claims that the profile skips do not count.
func Outcome(exp *v1alpha1.Experiment) error {
	if c := meta.FindStatusCondition(exp.Status.Conditions, v1alpha1.ExperimentComplete); c != nil && c.Reason == v1alpha1.ReasonRetriesExhausted {
		return &session.Verdict{Code: session.ExitUntrusted, Message: c.Message}
	}
	skipped := plan.SkippedClaims(exp.Spec)
	if len(exp.Status.Claims) < len(exp.Spec.Claims) {
		return errors.New("the experiment's status does not have a verdict for each claim; read its report with kubectl assay report")
	}
	var contradicted, undecided []string
	for _, c := range exp.Status.Claims {
		_, skip := skipped[c.Name]
		switch {
		case skip || c.Verdict == v1alpha1.VerdictReproduced:
		case c.Verdict == v1alpha1.VerdictNotReproduced:
			contradicted = append(contradicted, c.Name)
		default:
			undecided = append(undecided, c.Name)
		}
	}
	switch {
	case len(contradicted) > 0:
		return &session.Verdict{Code: session.ExitNotReproduced, Message: "not reproduced: " + strings.Join(contradicted, ", ")}
	case len(undecided) > 0:
		return &session.Verdict{Code: session.ExitUndecided, Message: "inconclusive or not evaluated: " + strings.Join(undecided, ", ")}
	}
	return nil
}
