// Command kubectl-assay plans, runs, watches, reports and compares experiments. On the PATH it is
// also "kubectl assay".
package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"assay.dev/assay/operator/internal/cli/artifact"
	"assay.dev/assay/operator/internal/cli/bundle"
	"assay.dev/assay/operator/internal/cli/checkimage"
	"assay.dev/assay/operator/internal/cli/compare"
	"assay.dev/assay/operator/internal/cli/fetch"
	"assay.dev/assay/operator/internal/cli/history"
	"assay.dev/assay/operator/internal/cli/hosts"
	"assay.dev/assay/operator/internal/cli/importer"
	"assay.dev/assay/operator/internal/cli/judge"
	"assay.dev/assay/operator/internal/cli/list"
	"assay.dev/assay/operator/internal/cli/logs"
	"assay.dev/assay/operator/internal/cli/parse"
	"assay.dev/assay/operator/internal/cli/plan"
	"assay.dev/assay/operator/internal/cli/pool"
	"assay.dev/assay/operator/internal/cli/queue"
	"assay.dev/assay/operator/internal/cli/report"
	"assay.dev/assay/operator/internal/cli/run"
	"assay.dev/assay/operator/internal/cli/scaffold"
	"assay.dev/assay/operator/internal/cli/schema"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/cli/ssh"
	"assay.dev/assay/operator/internal/cli/steer"
	"assay.dev/assay/operator/internal/cli/try"
	"assay.dev/assay/operator/internal/cli/ui"
	"assay.dev/assay/operator/internal/cli/verify"
	"assay.dev/assay/operator/internal/cli/version"
	"assay.dev/assay/operator/internal/cli/wait"
	"assay.dev/assay/operator/internal/cli/watch"
	"assay.dev/assay/operator/internal/local/rootless"
	"assay.dev/assay/operator/internal/text/printable"
)

func main() {
	if step := os.Getenv(rootless.Variable); step != "" {
		if err := rootless.Continue(step, os.Args, os.Environ(), os.Exit); err != nil {
			fmt.Fprintln(os.Stderr, "kubectl assay:", err)
			os.Exit(session.ExitError)
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	s := &session.Session{Console: &session.Console{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}, Out: os.Stdout, Err: os.Stderr, Now: time.Now, Sleep: session.Sleep, ErrTerminal: term.IsTerminal(int(os.Stderr.Fd()))}
	if fd := int(os.Stdout.Fd()); term.IsTerminal(fd) {
		s.Terminal = true
		s.Out = printable.Writer{To: os.Stdout}
		s.Color = os.Getenv("NO_COLOR") == ""
		s.Pictures = draws(os.Getenv)
		if width, _, err := term.GetSize(fd); err == nil {
			s.Width = width
		}
	}
	if s.ErrTerminal {
		s.Err = printable.Writer{To: os.Stderr}
	}
	code := execute(ctx, s, os.Stdin, os.Args[1:])
	stop()
	os.Exit(code)
}

// draws reports whether the terminal shows characters beyond ASCII, by its name and its locale. The
// first variable that is set counts, as in POSIX.
func draws(getenv func(string) string) bool {
	if getenv("TERM") == "dumb" {
		return false
	}
	locale := strings.ToUpper(cmp.Or(getenv("LC_ALL"), getenv("LC_CTYPE"), getenv("LANG")))
	return strings.Contains(locale, "UTF-8") || strings.Contains(locale, "UTF8")
}

// execute runs one command line and returns its exit code.
func execute(ctx context.Context, s *session.Session, stdin io.Reader, args []string) int {
	here := &localFlags{}
	root := command(s, here)
	started := false
	eachVerb(root, func(verb *cobra.Command) {
		run := verb.RunE
		verb.RunE = func(cmd *cobra.Command, args []string) error {
			started = true
			if here.enters(verb.Name()) {
				return here.enter(cmd.Context())
			}
			return run(cmd, args)
		}
	})
	root.SetIn(stdin)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.SetArgs(args)
	verb, err := untilInterrupted(ctx, root, here)
	if code := here.ended.Load(); code != nil {
		return *code // the other process has printed the reason
	}
	if err != nil && !started {
		err = session.Usage(err) // an error of cobra: an unknown flag, argument or verb
	}
	if err != nil {
		fmt.Fprintln(s.Err, "kubectl assay:", strings.TrimSpace(err.Error()))
	}
	if session.IsUsage(err) {
		fmt.Fprintf(s.Err, "See %s --help.\n", verb.CommandPath())
	}
	return session.ExitCode(err)
}

// interruptGrace is how long a verb may take to end after Ctrl-C, to print what continues in the
// cluster. A call to a server that does not answer cannot always be cancelled.
const interruptGrace = 500 * time.Millisecond

// untilInterrupted runs a verb. After Ctrl-C it waits for the verb no longer than here.grace. The
// interruption is the only error then, whether or not the verb has ended.
func untilInterrupted(ctx context.Context, root *cobra.Command, here *localFlags) (*cobra.Command, error) {
	type end struct {
		verb *cobra.Command
		err  error
	}
	ended := make(chan end, 1)
	go func() {
		verb, err := root.ExecuteContextC(ctx)
		ended <- end{verb, err}
	}()
	select {
	case e := <-ended:
		return e.verb, interruption(ctx, e.err, here)
	case <-ctx.Done():
	}
	select {
	case e := <-ended:
		return e.verb, interruption(ctx, e.err, here)
	case <-time.After(here.grace()):
		return root, here.interrupted()
	}
}

// interrupted is the error of verbs that do not print themselves what continues after Ctrl-C.
func (f *localFlags) interrupted() error {
	if f.dir != "" {
		return session.Interrupted(context.Canceled, "what was written before is in folder "+f.dir)
	}
	return session.Interrupted(context.Canceled, "what was sent to the cluster before goes on")
}

// interruption returns the error of a verb. It returns the error of an interruption if the verb
// ended because of Ctrl-C.
func interruption(ctx context.Context, err error, here *localFlags) error {
	if ctx.Err() != nil && (err == nil || session.ExitCode(err) == session.ExitError) {
		return here.interrupted()
	}
	return err
}

// eachVerb goes through all verbs that do something.
func eachVerb(cmd *cobra.Command, do func(*cobra.Command)) {
	if cmd.RunE != nil {
		do(cmd)
	}
	for _, sub := range cmd.Commands() {
		eachVerb(sub, do)
	}
}

func command(s *session.Session, here *localFlags) *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-assay",
		Short: "Re-run the evaluation of a paper on a Kubernetes cluster",
		Long: "Re-run the evaluation of a paper on a Kubernetes cluster.\n\n" + session.ExitHelp() +
			"\n\n\"kubectl assay options\" lists the flags that choose the cluster and the user.",
		SilenceErrors: true,
		SilenceUsage:  true,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl assay"},
	}
	flags := &session.Flags{}
	flags.Bind(root.PersistentFlags())
	here.bind(root.PersistentFlags())
	s.Here = func() session.Host {
		if here.dir == "" {
			return nil
		}
		return here
	}
	if s.Connect == nil {
		s.Connect = func() (session.Cluster, error) {
			if here.dir != "" {
				return here.connect()
			}
			return flags.Connect()
		}
	}
	root.AddGroup(&cobra.Group{ID: "run", Title: "Write and run an experiment:"}, &cobra.Group{ID: "follow", Title: "Follow and steer it:"},
		&cobra.Group{ID: "results", Title: "Read its results:"}, &cobra.Group{ID: "other", Title: "Others:"})
	add := func(group string, verbs ...*cobra.Command) {
		for _, v := range verbs {
			v.GroupID = group
		}
		root.AddCommand(verbs...)
	}
	add("run", scaffold.Command(s), schema.Command(s), parse.Command(s), plan.Command(s), try.Command(s), run.Command(s))
	add("follow", list.Command(s), watch.Command(s), wait.Command(s), logs.Command(s), ssh.Command(s), queue.Command(s), ui.Command(s), steer.Suspend(s), steer.Resume(s), steer.Retry(s))
	add("results", report.Command(s), compare.Command(s), pool.Command(s), history.Command(s), bundle.Command(s), artifact.Command(s), verify.Command(s), judge.Command(s), fetch.Command(s, os.Getenv))
	add("other", checkimage.Command(s), importer.Command(s), hosts.Command(s), version.Command(s), options(s))
	root.SetHelpCommandGroupID("other")
	root.SetCompletionCommandGroupID("other")
	eachVerb(root, func(verb *cobra.Command) { verb.Long = wrap(verb.Long) })
	root.Long = wrap(root.Long)
	return root
}

// helpWidth of help texts, in characters.
const helpWidth = 98

// wrap fills the paragraphs of a help text. Lines that begin with a space stay as they are.
func wrap(text string) string {
	var out []string
	width := 0 // of the current line; 0: it is empty
	for _, line := range strings.Split(text, "\n") {
		if line == "" || line[0] == ' ' {
			out, width = append(out, line), 0
			continue
		}
		for _, word := range strings.Fields(line) {
			if n := utf8.RuneCountInString(word); width == 0 || width+1+n > helpWidth {
				out, width = append(out, word), n
			} else {
				out[len(out)-1] += " " + word
				width += 1 + n
			}
		}
	}
	return strings.Join(out, "\n")
}

// options lists the flags of all verbs, with the flags that their help leaves out.
func options(s *session.Session) *cobra.Command {
	return &cobra.Command{
		Use:   "options",
		Short: "List the flags that choose the cluster and the user, for all verbs",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all := pflag.NewFlagSet("options", pflag.ContinueOnError)
			cmd.Root().PersistentFlags().VisitAll(func(f *pflag.Flag) {
				shown := *f
				shown.Hidden = false
				all.AddFlag(&shown)
			})
			fmt.Fprintf(s.Out, "Each verb takes these flags, which are kubectl's:\n\n%s", all.FlagUsages())
			return nil
		},
	}
}
