// Package run is "kubectl assay run": it sends an experiment and its Systems to the cluster and, if
// asked, waits for the verdicts.
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
	"assay.dev/assay/operator/internal/cli/manifest"
	"assay.dev/assay/operator/internal/cli/report"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/cli/watch"
	"assay.dev/assay/operator/internal/experiment/plan"
)

// fieldOwner of the objects that the command applies.
const fieldOwner = client.FieldOwner("kubectl-assay")

// Options of the verb.
type Options struct {
	Input
	// Rerun deletes the experiment of this name, if there is one, and runs it again.
	Rerun bool
	// Continue is the name of a complete experiment. Each point gets Repetitions more; 0: as many
	// as the experiment first asked for.
	Continue    string
	Repetitions int32
	Wait        bool
	Timeout     time.Duration
	Output      string
	Force       bool
}

// Input is what a call runs: files, and changes to their content.
type Input struct {
	Files []string
	// Name of the Experiment, in place of its name in the file.
	Name    string
	Profile string
	Set     []string
	Images  manifest.Images
	// Compare names two versions that alternate in each round: see manifest.Set.Compare.
	Compare string
}

// Bind adds the flags of the input to a verb.
func (in *Input) Bind(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringSliceVarP(&in.Files, "filename", "f", nil, "file, folder or URL with the Experiment, and those with its Systems; Systems in the folder systems beside the Experiment are found; -: stdin")
	f.StringVar(&in.Name, "name", "", "name of the experiment, at most 24 characters; default: the one in the file")
	f.StringVar(&in.Profile, "profile", "", "profile of the experiment to use")
	f.StringArrayVar(&in.Set, "set", nil, "set a field of the experiment's spec, as in --set network.shaping=None; it wins over the profile; may be repeated")
	f.StringArrayVar(&in.Images.Replace, "image", nil, "NAME=REF: run REF in the place of the Systems' image NAME; a REF without tag keeps the tag; may be repeated")
	f.StringVar(&in.Images.Registry, "image-registry", "", "registry, as HOST[:PORT][/PATH], of the Systems' images that name none")
	_ = cmd.MarkFlagRequired("filename") // fails only for a flag that does not exist
	_ = cmd.RegisterFlagCompletionFunc("profile", in.completeProfile)
}

// completeProfile offers the profiles of the files that the command line names so far.
func (in *Input) completeProfile(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	set, err := manifest.Read(cmd.Context(), in.Files, strings.NewReader(""))
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return set.Profiles(), cobra.ShellCompDirectiveNoFileComp
}

// Load reads the files and changes them as asked.
func (in *Input) Load(ctx context.Context, stdin io.Reader) (*manifest.Set, error) {
	set, err := manifest.Read(ctx, in.Files, stdin)
	if err != nil {
		return nil, err
	}
	if err := set.OnlyToApply(); err != nil {
		return nil, err
	}
	if err := set.Adapt(in.Name, in.Profile, in.Set); err != nil {
		return nil, session.Usage(err)
	}
	if err := set.UseImages(in.Images); err != nil || in.Compare == "" {
		return set, session.Usage(err)
	}
	return set, session.Usage(set.Compare(ctx, in.Compare))
}

// Command is the verb.
func Command(s *session.Session) *cobra.Command {
	var o Options
	cmd := &cobra.Command{
		Use:   "run -f FILE | --continue NAME",
		Short: "Run an experiment, and wait for its verdicts with --wait",
		Long: "Run an experiment: apply its Systems and the Experiment to the cluster. With --wait, show progress until it is over, then the report.\n\n" +
			"An experiment runs once. If one of the name is complete already, run changes nothing and ends with exit code 1. --rerun deletes it, keeps its results, and runs it again.\n" +
			"--name runs it beside the other. If it still runs, --wait waits for it.\n\n" +
			"--compare alternates rounds of two versions in one experiment, so that a drift of the machines is in both. At each point a claim says whether they differ.\n\n" +
			"--continue adds repetitions to an experiment that is complete. Its trials stay, and its verdicts are made again of the old and the new trials.\n\n" + session.ExitHelp(),
		Example: "  kubectl assay run -f experiments/failure-fp.yaml --profile smoke --wait\n" +
			"  kubectl assay run -f experiments/failure-fp.yaml --image-registry registry.example.org/mirror\n" +
			"  kubectl assay run -f experiments/failure-fp.yaml --image assay/basil=registry.example.org/basil:v2 --name basil-v2\n" +
			"  kubectl assay run -f experiments/etcd/capacity.yaml --compare systems/etcd.yaml,systems/etcd-next.yaml --wait\n" +
			"  kubectl assay run --continue failure-fp --repetitions 4 --wait",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return Run(cmd.Context(), s, cmd.InOrStdin(), o) },
	}
	o.Bind(cmd)
	f := cmd.Flags()
	delete(f.Lookup("filename").Annotations, cobra.BashCompOneRequiredFlag) // not required: there may be --continue
	f.StringVar(&o.Continue, "continue", "", "name of a complete experiment, to which repetitions are added")
	f.Int32Var(&o.Repetitions, "repetitions", 0, "with --continue: how many more for each point; default: as many as spec.repetitions.min")
	cmd.MarkFlagsOneRequired("filename", "continue")
	cmd.MarkFlagsMutuallyExclusive("filename", "continue")
	_ = cmd.RegisterFlagCompletionFunc("continue", session.CompleteExperiments(s))
	f.StringVar(&o.Compare, "compare", "", "two versions that alternate in each round, with a claim at each point that they differ: A.yaml,B.yaml (Systems), PARAMETER=A,B or IMAGE=REF,REF")
	f.BoolVar(&o.Rerun, "rerun", false, "delete the experiment of this name first, if there is one; its results stay")
	f.BoolVar(&o.Wait, "wait", false, "show progress until it is over, then the report")
	f.DurationVar(&o.Timeout, "timeout", 12*time.Hour, "with --wait: stop waiting after so long, with exit code 6; the experiment goes on; 0: never")
	f.StringVarP(&o.Output, "output", "o", "text", "with --wait: form of the report, as for the verb report")
	f.BoolVar(&o.Force, "force-conflicts", false, "take over fields that another tool has set")
	return cmd
}

// Run applies and, with Wait, waits and reports. Its error carries the exit code.
func Run(ctx context.Context, s *session.Session, stdin io.Reader, o Options) error {
	if o.Wait {
		if err := report.CheckOutput(o.Output); err != nil {
			return session.Usage(err)
		}
	}
	if err := o.checkContinue(); err != nil {
		return session.Usage(err)
	}
	if o.Continue != "" {
		cluster, err := s.Connect()
		if err != nil {
			return err
		}
		return Begun(ctx, cluster, o.Continue, func(cluster session.Cluster) error {
			if err := continueFinished(ctx, s, cluster, o); err != nil {
				return err
			}
			return follow(ctx, s, cluster, o.Continue, o)
		})
	}
	set, err := o.Load(ctx, stdin)
	if err != nil {
		return err
	}
	if set.Unjudged > 0 {
		fmt.Fprintf(s.Err, "%d comparisons have no claim, since an experiment may have 32: the report shows their numbers and no verdict.\n", set.Unjudged)
	}
	cluster, err := s.Connect()
	if err != nil {
		return err
	}
	if cluster.Namespace, err = namespace(set, cluster); err != nil {
		return session.Usage(err)
	}
	if _, err := Check(ctx, set, cluster); err != nil {
		return err
	}
	s.NoteHere()
	return Begun(ctx, cluster, set.Experiment.Name, func(cluster session.Cluster) error {
		if err := makeRoom(ctx, s, cluster, set.Experiment.Name, o); err != nil {
			return err
		}
		if err := Apply(ctx, s, cluster, set, o.Force); err != nil {
			return err
		}
		return follow(ctx, s, cluster, set.Experiment.Name, o)
	})
}

// Begun runs a function while an experiment is carried out.
func Begun(ctx context.Context, cluster session.Cluster, experiment string, do func(session.Cluster) error) error {
	cluster, end, err := cluster.Begin(ctx, experiment)
	if err != nil {
		return err
	}
	err = do(cluster)
	if ended := end(); err == nil {
		err = ended
	}
	return err
}

// follow waits for the end of an experiment and reports, if the user asks for it. On one machine
// the experiment ends with this process, so follow always waits.
func follow(ctx context.Context, s *session.Session, cluster session.Cluster, name string, o Options) error {
	if !o.Wait && cluster.Host == nil {
		fmt.Fprintf(s.Err, "Follow it with: kubectl assay watch %s -n %s\n", name, cluster.Namespace)
		return nil
	}
	exp, err := watch.Until(ctx, Aside(s), cluster, watch.Options{Name: name, Timeout: o.Timeout})
	if err != nil {
		return Unfinished(err, cluster, name)
	}
	here := *s
	here.Connect = func() (session.Cluster, error) { return cluster, nil }
	if err := report.Run(ctx, &here, report.Options{Name: name, Output: o.Output}); err != nil {
		return err
	}
	return Outcome(exp)
}

// Unfinished adds to the error of a wait that ended early. On one machine the experiment stops with
// the command, and the message says how to go on with it.
func Unfinished(err error, cluster session.Cluster, name string) error {
	if cluster.Host == nil {
		return err
	}
	message := fmt.Sprintf("experiment %s has stopped, and its pods are ended; the same command goes on with it, from %s", name, cluster.Host.Where(name))
	switch session.ExitCode(err) {
	case session.ExitInterrupted:
		return session.Interrupted(err, message)
	case session.ExitTimeout:
		return &session.Verdict{Code: session.ExitTimeout, Message: "the time to wait is over: " + message}
	}
	return err
}

// Apply sends the Systems and the Experiment to the cluster.
func Apply(ctx context.Context, s *session.Session, cluster session.Cluster, set *manifest.Set, force bool) error {
	for _, u := range set.ToApply() {
		if err := apply(ctx, cluster, u, force); err != nil {
			return err
		}
		fmt.Fprintf(s.Err, "%s %s applied in %s\n", u.GetKind(), u.GetName(), cluster.Place())
	}
	return nil
}

// Aside is the session whose output goes to stderr, so that stdout holds the report alone.
func Aside(s *session.Session) *session.Session {
	progress := *s
	progress.Out, progress.Terminal = s.Err, s.ErrTerminal
	return &progress
}

// namespace returns the namespace to apply in: that of the flag, else of the file, else of the
// context. It fails if flag and file disagree, as kubectl does.
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

// Check makes the checks of admission in the command, which can list all problems at once. It reads
// Systems that no file holds from the cluster.
func Check(ctx context.Context, set *manifest.Set, cluster session.Cluster) (*plan.Plan, error) {
	for _, name := range set.Missing() {
		var system v1alpha1.System
		err := cluster.Client.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: name}, &system)
		switch {
		case apierrors.IsNotFound(err):
			continue // Plan reports the missing System, with all other problems
		case err != nil:
			return nil, fmt.Errorf("get System %s in %s: %w", name, cluster.Place(), session.Explain(err))
		}
		set.Systems[name] = system.Spec
	}
	p, err := set.Plan(ctx, "in "+cluster.Place())
	if err != nil {
		return nil, fmt.Errorf("experiment %s is not applied: %w", set.Experiment.Name, err)
	}
	if err := cluster.Check(p.Spec, set.Systems); err != nil {
		return nil, fmt.Errorf("experiment %s is not run: %w", set.Experiment.Name, err)
	}
	return p, nil
}

func apply(ctx context.Context, cluster session.Cluster, u *unstructured.Unstructured, force bool) error {
	u = u.DeepCopy()
	u.SetNamespace(cluster.Namespace)
	options := []client.ApplyOption{fieldOwner}
	if force {
		options = append(options, client.ForceOwnership)
	}
	kind, name := u.GetKind(), u.GetName() // Apply replaces u by the object of the server
	err := cluster.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), options...)
	switch {
	case err == nil:
		return nil
	case apierrors.IsConflict(err):
		return fmt.Errorf("apply %s %s in %s: %w; --force-conflicts takes the fields over", kind, name, cluster.Place(), err)
	}
	return fmt.Errorf("apply %s %s in %s: %w", kind, name, cluster.Place(), session.Explain(err))
}

// Outcome turns the end of an experiment into the error of the command: nil, or a session.Verdict.
// Claims that the profile skips do not count. If no claim is judged, an experiment that ran out of
// budget is no success: otherwise it would look like a complete one.
func Outcome(exp *v1alpha1.Experiment) error {
	c := meta.FindStatusCondition(exp.Status.Conditions, v1alpha1.ExperimentComplete)
	if c != nil {
		switch c.Reason {
		case v1alpha1.ReasonRetriesExhausted, v1alpha1.ReasonDataFailed, v1alpha1.ReasonImagesFailed:
			return &session.Verdict{Code: session.ExitUntrusted, Message: c.Message}
		}
	}
	skipped := plan.SkippedClaims(exp.Spec)
	if len(exp.Status.Claims) < len(exp.Spec.Claims) {
		return errors.New("the experiment's status does not have a verdict for each claim; read its report with kubectl assay report")
	}
	var judged []session.Judged
	for _, c := range exp.Status.Claims {
		if _, skip := skipped[c.Name]; !skip {
			judged = append(judged, session.Judged{Claim: c.Name, Verdict: c.Verdict})
		}
	}
	if c != nil && c.Reason == v1alpha1.ReasonBudgetExhausted && len(judged) == 0 {
		return &session.Verdict{Code: session.ExitUntrusted, Message: c.Message}
	}
	return session.OfVerdicts(judged, len(skipped))
}
