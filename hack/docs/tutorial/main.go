// Command tutorial carries out the steps of docs/tutorial.md, and compares the commands' output
// with the output in the page. It ignores numbers.
//
//	go run ./hack/docs/tutorial         # here as root, and on the cluster of make deploy or KUBECONFIG
//	go run ./hack/docs/tutorial -list   # only say what it would do
//
// It works on copies of the folder experiments and of the kubeconfig, with the images in
// .work/images. It leaves out blocks that make or remove the images or the cluster: the caller does
// that. If the namespace lesson exists, it is deleted first.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

// namespace of the tutorial.
const namespace = "lesson"

func main() {
	root := flag.String("root", ".", "folder of the repository")
	list := flag.Bool("list", false, "list the steps and do nothing")
	within := flag.Duration("timeout", 30*time.Minute, "time for all steps")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), *within)
	defer cancel()
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, *root, *list); err != nil {
		fmt.Fprintln(os.Stderr, "tutorial:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, root string, list bool) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "tutorial.md"))
	if err != nil {
		return err
	}
	all, err := steps(string(page))
	if err != nil {
		return fmt.Errorf("docs/tutorial.md: %w", err)
	}
	if list {
		for _, s := range all {
			fmt.Fprintf(out, "%4d  %s\n", s.line, s)
		}
		return nil
	}
	r, err := prepare(ctx, root)
	if err != nil {
		return err
	}
	defer os.RemoveAll(r.dir)
	began := time.Now()
	var wrong []error
	for _, s := range all {
		if s.setup {
			continue
		}
		fmt.Fprintf(out, "\n== line %d: %s\n", s.line, s)
		if err := r.do(ctx, out, s); err != nil {
			err = fmt.Errorf("docs/tutorial.md:%d: %w", s.line, err)
			fmt.Fprintln(out, "FAIL", err)
			wrong = append(wrong, err)
		}
	}
	fmt.Fprintf(out, "\n%d steps in %s, %d differ from the page\n", len(all), time.Since(began).Round(time.Second), len(wrong))
	return errors.Join(wrong...)
}

func (s step) String() string {
	switch {
	case s.commands != "":
		return strings.ReplaceAll(s.commands, "\n", "\n          ")
	case s.content != "":
		return "write " + s.file
	default:
		return fmt.Sprintf("change %q to %q in %s", s.old, s.new, s.file)
	}
}

// runner plays a reader at a shell.
type runner struct {
	dir string // where commands run
	env []string
}

// prepare makes a folder with the experiments, a kubeconfig and the command line.
func prepare(ctx context.Context, root string) (*runner, error) {
	config := os.Getenv("KUBECONFIG")
	if config == "" {
		config = filepath.Join(root, ".work", "kubeconfig")
	}
	text, err := os.ReadFile(config)
	if err != nil {
		return nil, fmt.Errorf("no cluster: run make deploy, or set KUBECONFIG: %w", err)
	}
	dir, err := os.MkdirTemp("", "tutorial-")
	if err != nil {
		return nil, err
	}
	r := &runner{dir: dir}
	own := filepath.Join(dir, ".kubeconfig")
	tools := exec.CommandContext(ctx, filepath.Join(root, "hack/cluster/tools.sh"), "kubectl")
	tools.Stderr = os.Stderr
	path, err := tools.Output()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("hack/cluster/tools.sh: %w", err), os.RemoveAll(dir))
	}
	r.env = append(os.Environ(), "KUBECONFIG="+own, "NO_COLOR=1")
	err = errors.Join(
		os.Mkdir(filepath.Join(dir, ".work"), 0o750),
		os.Symlink(filepath.Join(root, ".work", "images"), filepath.Join(dir, ".work", "images")),
		os.WriteFile(own, text, 0o600),
		os.CopyFS(filepath.Join(dir, "experiments"), os.DirFS(filepath.Join(root, "experiments"))),
		os.WriteFile(filepath.Join(dir, ".profile"), fmt.Appendf(path, "\nexport PATH=%s/bin:$PATH\n", dir), 0o600),
	)
	build := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(dir, "bin", "kubectl-assay"), "./operator/cmd/kubectl-assay")
	build.Dir, build.Stderr = root, os.Stderr
	if err = errors.Join(err, build.Run()); err == nil {
		var b bytes.Buffer
		_, err = r.bash(ctx, &b, "kubectl delete namespace "+namespace+" --ignore-not-found --wait")
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return r, nil
}

// bash runs commands and returns the code of the last.
func (r *runner) bash(ctx context.Context, out io.Writer, commands string) (int, error) {
	c := exec.CommandContext(ctx, "bash", "-c", ". ./.profile\nset -o pipefail\n"+commands)
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = 10 * time.Second
	c.Dir, c.Env, c.Stdout, c.Stderr = r.dir, r.env, out, out
	err := c.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && ctx.Err() == nil {
		return exit.ExitCode(), nil
	}
	return 0, err
}

func (r *runner) do(ctx context.Context, out io.Writer, s step) error {
	path := filepath.Join(r.dir, filepath.FromSlash(s.file))
	switch {
	case s.content != "":
		return os.WriteFile(path, []byte(s.content), 0o600)
	case s.file != "":
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if n := strings.Count(string(text), s.old); n != 1 {
			return fmt.Errorf("%s has %q %d times, want once", s.file, s.old, n)
		}
		return os.WriteFile(path, []byte(strings.Replace(string(text), s.old, s.new, 1)), 0o600)
	}
	var printed bytes.Buffer
	code, err := r.bash(ctx, io.MultiWriter(out, &printed), s.commands)
	switch {
	case err != nil:
		return err
	case code != s.code:
		return fmt.Errorf("exit code %d, want %d", code, s.code)
	case s.output != "":
		if d := differs(s.output, printed.String()); d != "" {
			return errors.New(d)
		}
	}
	return nil
}
