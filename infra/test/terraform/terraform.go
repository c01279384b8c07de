// Package terraform runs the terraform command for tests of infra/, each on a copy of the tree:
// neither lock files nor states come into the checkout.
package terraform

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// timeout of one command, unless a Dir has another.
const timeout = 3 * time.Minute

// Dir is one root, or one module used as a root, in a copy of infra/.
type Dir struct {
	// Path of the folder.
	Path string
	// Timeout of each command; default: 3 minutes, which is for commands without machines.
	Timeout time.Duration
	// Watch gets what the commands print while they run. Nil: no caller.
	Watch io.Writer
	env   []string
	stdin string
}

// Program finds terraform, or skips the test.
func Program(t *testing.T) string {
	t.Helper()
	program, err := exec.LookPath("terraform")
	if err != nil {
		t.Skip("terraform is not installed")
	}
	return program
}

// Infra is the folder infra/ of the repository, found from a test's own folder.
func Infra(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for dir != filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, "infra")
		}
		dir = filepath.Dir(dir)
	}
	t.Fatal("no go.mod above the test")
	return ""
}

// Copy copies infra/ and returns the folder at path in it, not yet initialised. State, downloads
// and the user's own variables stay behind.
func Copy(t *testing.T, path string) *Dir {
	t.Helper()
	return copyTo(t, t.TempDir(), path)
}

func copyTo(t *testing.T, scratch, path string) *Dir {
	t.Helper()
	Program(t)
	from, to := Infra(t), filepath.Join(scratch, "infra")
	err := filepath.WalkDir(from, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(from, p)
		if err != nil {
			return err
		}
		target := filepath.Join(to, below)
		switch {
		case d.IsDir() && (d.Name() == ".terraform" || below == "test"):
			return fs.SkipDir
		case d.IsDir():
			return os.MkdirAll(target, 0o755)
		case !own(d.Name()):
			return nil
		}
		text, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return os.WriteFile(target, text, info.Mode().Perm())
	})
	if err != nil {
		t.Fatalf("copy infra: %v", err)
	}
	// Modules read this of the rest of the repository, for instance the chart.
	for _, name := range []string{"hack", "charts"} {
		if err := os.Symlink(filepath.Join(filepath.Dir(from), name), filepath.Join(filepath.Dir(to), name)); err != nil {
			t.Fatal(err)
		}
	}
	env := append(os.Environ(), "TF_IN_AUTOMATION=1", "TF_INPUT=0", "CHECKPOINT_DISABLE=1")
	if _, err := os.Stat(os.Getenv("TF_CLI_CONFIG_FILE")); err != nil {
		env = append(env, "TF_CLI_CONFIG_FILE=") // a file that is not there is warned of in every output
	}
	return &Dir{Path: filepath.Join(to, path), Timeout: timeout, env: env}
}

// own is false for what a user's runs leave in the tree.
func own(name string) bool {
	return !strings.Contains(name, ".tfstate") && name != "terraform.tfvars" && !strings.HasSuffix(name, ".auto.tfvars") && !strings.HasSuffix(name, ".auto.tfvars.json") &&
		name != "kubeconfig"
}

// Env adds to the environment of the commands.
func (d *Dir) Env(vars ...string) { d.env = append(d.env, vars...) }

// Init initialises. Providers come from a mirror on this machine, see
// hack/without-registry/terraform/providers.sh: one that is missing there fails the test.
func (d *Dir) Init(t *testing.T) {
	t.Helper()
	if out, err := d.Run(t, "init", "-backend=false", "-no-color"); err != nil {
		t.Fatalf("terraform init: %v (hack/without-registry/terraform/providers.sh builds the providers)\n%s", err, out)
	}
}

// once initialises a folder for all tests of a process.
type once struct {
	sync.Once
	dir *Dir
}

// templates are the folders that were initialised, by path.
var templates = struct {
	sync.Mutex
	of map[string]*once
}{of: map[string]*once{}}

// template is a copy of infra/ whose folder at path is initialised once, and is only read then.
func template(t *testing.T, path string) *Dir {
	t.Helper()
	Program(t)
	templates.Lock()
	o := templates.of[path]
	if o == nil {
		o = &once{}
		templates.of[path] = o
	}
	templates.Unlock()
	o.Do(func() {
		scratch, err := os.MkdirTemp("", "assay-infra-") // longer than this test
		if err != nil {
			t.Fatal(err)
		}
		d := copyTo(t, scratch, path)
		d.Init(t)
		o.dir = d
	})
	if o.dir == nil {
		t.Fatalf("infra/%s could not be initialised, see the first test that wanted it", path)
	}
	return o.dir
}

// Initialised is Copy of a folder that is initialised. The result of init is made once, and all
// tests of a package share it.
func Initialised(t *testing.T, path string) *Dir {
	t.Helper()
	from, d := template(t, path), Copy(t, path)
	if err := os.Symlink(filepath.Join(from.Path, ".terraform"), filepath.Join(d.Path, ".terraform")); err != nil {
		t.Fatal(err)
	}
	lock, err := os.ReadFile(filepath.Join(from.Path, lockFile))
	if err == nil {
		err = os.WriteFile(filepath.Join(d.Path, lockFile), lock, 0o644)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // a module without providers has none
		t.Fatal(err)
	}
	return d
}

const lockFile = ".terraform.lock.hcl"

// Main runs the tests of a package and removes what they share.
func Main(m *testing.M) int {
	status := m.Run()
	for path, o := range templates.of {
		if o.dir != nil {
			_ = os.RemoveAll(strings.TrimSuffix(o.dir.Path, filepath.Join("infra", path)))
		}
	}
	return status
}

// Run runs terraform with a deadline and returns what it printed, on both streams.
func (d *Dir) Run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	return d.RunContext(t.Context(), t, args...)
}

// RunContext is Run for clean-ups, when the test's own context is over.
func (d *Dir) RunContext(ctx context.Context, t *testing.T, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, d.Timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, Program(t), args...)
	cmd.Dir, cmd.Env = d.Path, d.env
	cmd.Stdin = strings.NewReader(d.stdin)
	// Providers are its children: they go with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	var out bytes.Buffer
	cmd.Stdout = &out
	if d.Watch != nil {
		cmd.Stdout = io.MultiWriter(&out, d.Watch)
	}
	cmd.Stderr = cmd.Stdout
	err := cmd.Run()
	if ctx.Err() != nil {
		err = fmt.Errorf("terraform %s: no end after %v: %w", args[0], d.Timeout, err)
	}
	return out.String(), err
}

// Must is Run for what must succeed.
func (d *Dir) Must(t *testing.T, args ...string) string {
	t.Helper()
	out, err := d.Run(t, args...)
	if err != nil {
		t.Fatalf("terraform %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// Outputs are the values of `terraform output`, as JSON.
func (d *Dir) Outputs(t *testing.T) map[string]json.RawMessage {
	t.Helper()
	var all map[string]struct{ Value json.RawMessage }
	if err := json.Unmarshal([]byte(d.Must(t, "output", "-json")), &all); err != nil {
		t.Fatalf("terraform output: %v", err)
	}
	values := map[string]json.RawMessage{}
	for name, o := range all {
		values[name] = o.Value
	}
	return values
}

// Evaluate returns the string that an expression has, locals included, with the variables that args
// name.
func (d *Dir) Evaluate(t *testing.T, expression string, args ...string) string {
	t.Helper()
	// Twice encoded, since the console would fold a string of several lines, and once more on one
	// line.
	console := *d
	console.stdin = fmt.Sprintf("jsonencode(%s)\n", expression)
	out := strings.TrimSpace(console.Must(t, append([]string{"console"}, args...)...))
	var encoded, text string
	if err := json.Unmarshal([]byte(out), &encoded); err != nil {
		t.Fatalf("terraform console: %s: %v:\n%s", expression, err, out)
	}
	if err := json.Unmarshal([]byte(encoded), &text); err != nil {
		t.Fatalf("%s is no string: %s", expression, encoded)
	}
	return text
}

// Variables writes values into a file of variables and returns the argument that names it.
func (d *Dir) Variables(t *testing.T, values any) string {
	t.Helper()
	text, err := json.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "test.tfvars.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return "-var-file=" + file
}

// Message is Terraform's output without frames and line breaks, so that a sentence can be found in
// it.
func Message(out string) string {
	var words []string
	for line := range strings.Lines(out) {
		words = append(words, strings.Fields(strings.TrimLeft(line, "│╷╵ "))...)
	}
	return strings.Join(words, " ")
}
