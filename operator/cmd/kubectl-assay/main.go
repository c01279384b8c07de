// Command kubectl-assay plans, runs, watches, reports and compares experiments. On the PATH it is also "kubectl assay".
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"assay.dev/assay/operator/internal/cli/bundle"
	"assay.dev/assay/operator/internal/cli/compare"
	"assay.dev/assay/operator/internal/cli/fetch"
	"assay.dev/assay/operator/internal/cli/hosts"
	"assay.dev/assay/operator/internal/cli/importer"
	"assay.dev/assay/operator/internal/cli/plan"
	"assay.dev/assay/operator/internal/cli/queue"
	"assay.dev/assay/operator/internal/cli/report"
	"assay.dev/assay/operator/internal/cli/run"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/cli/verify"
	"assay.dev/assay/operator/internal/cli/watch"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	s := &session.Session{Out: os.Stdout, Err: os.Stderr, Now: time.Now, Sleep: session.Sleep, ErrTerminal: term.IsTerminal(int(os.Stderr.Fd()))}
	if fd := int(os.Stdout.Fd()); term.IsTerminal(fd) {
		s.Terminal = true
		s.Color = os.Getenv("NO_COLOR") == ""
		if width, _, err := term.GetSize(fd); err == nil {
			s.Width = width
		}
	}
	code := execute(ctx, s, os.Stdin, os.Args[1:])
	stop()
	os.Exit(code)
}

// execute runs one command line and returns its exit code.
func execute(ctx context.Context, s *session.Session, stdin io.Reader, args []string) int {
	root := command(s)
	root.SetIn(stdin)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintln(s.Err, "kubectl assay:", strings.TrimSpace(err.Error()))
	}
	return session.ExitCode(err)
}

func command(s *session.Session) *cobra.Command {
	root := &cobra.Command{
		Use:           "kubectl-assay",
		Short:         "Re-run the evaluation of a paper on a Kubernetes cluster",
		SilenceErrors: true,
		SilenceUsage:  true,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl assay"},
	}
	flags := &session.Flags{}
	flags.Bind(root.PersistentFlags())
	if s.Connect == nil {
		s.Connect = flags.Connect
	}
	root.AddCommand(plan.Command(s), run.Command(s), watch.Command(s), queue.Command(s), report.Command(s), compare.Command(s), bundle.Command(s), verify.Command(s), fetch.Command(s, os.Getenv), importer.Command(s), hosts.Command(s))
	return root
}
