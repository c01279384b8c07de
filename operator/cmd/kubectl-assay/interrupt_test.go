package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/cli/session"
)

const sample = "../../../config/samples/experiment-minimal.yaml"

// kubeconfig of a server.
func kubeconfig(t *testing.T, address string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: 'http://%s'}}]\n"+
		"contexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {}}]\n", address)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// call runs a command line to its exit code.
func call(ctx context.Context, args ...string) (code int, said string) {
	var out, errs bytes.Buffer
	s := &session.Session{Out: &out, Err: &errs, Now: time.Now, Sleep: session.Sleep}
	return execute(ctx, s, strings.NewReader(""), args), errs.String()
}

// Ctrl-C took eight seconds against a server that accepts and never answers, and ended with 1 or 0.
func TestCtrlCEndsEveryVerb(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	config := kubeconfig(t, listener.Addr().String())
	for _, args := range [][]string{
		{"list"}, {"run", "-f", sample}, {"try", "-f", sample}, {"plan", "-f", sample}, {"report", "x"}, {"wait", "x"}, {"watch", "x"}, {"queue"},
		{"bundle", "x", "-o", filepath.Join(t.TempDir(), "x.tar.gz")}, {"suspend", "x"}, {"resume", "x"}, {"logs", "x"}, {"compare", "x", "y"},
	} {
		t.Run(args[0], func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			time.AfterFunc(300*time.Millisecond, stop)
			begin := time.Now()
			code, said := call(ctx, append(args, "--kubeconfig", config)...)
			if code != session.ExitInterrupted {
				t.Errorf("exit code %d: %s", code, said)
			}
			if took := time.Since(begin); took > 10*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// A mistake on the command line ends with exit code 2. A cluster that cannot be reached ends with 1
// and in kubectl's words.
func TestExitCodesOfWrongCommandLines(t *testing.T) {
	refusing, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := refusing.Addr().String()
	if err := refusing.Close(); err != nil {
		t.Fatal(err)
	}
	closed, nowhere := kubeconfig(t, address), filepath.Join(t.TempDir(), "none")
	for name, tc := range map[string]struct {
		args []string
		code int
		want string
	}{
		"unknown form":            {[]string{"report", "x", "-o", "pfd"}, 2, "choose one of"},
		"unknown profile":         {[]string{"plan", "-f", sample, "--profile", "smok"}, 2, `has no profile "smok"`},
		"unknown field of set":    {[]string{"plan", "-f", sample, "--set", "schedule.measur=3s"}, 2, `did you mean "measure"?`},
		"file that is not there":  {[]string{"plan", "-f", "nope.yaml"}, 2, "no such file"},
		"another scheme":          {[]string{"plan", "-f", "ftp://x/x.yaml"}, 2, "of URLs, http and https can be read"},
		"results not there":       {[]string{"report", "--file", "nope.json"}, 2, "no such file"},
		"bundle not there":        {[]string{"verify", "nope.tar.gz"}, 2, "no such file"},
		"neither name nor file":   {[]string{"report"}, 2, "give the NAME"},
		"server that refuses":     {[]string{"list", "--kubeconfig", closed}, 1, "the connection to the server " + address + " was refused - did you specify the right host or port?"},
		"run on it":               {[]string{"run", "-f", sample, "--kubeconfig", closed}, 1, "was refused - did you specify"},
		"no such kubeconfig":      {[]string{"list", "--kubeconfig", nowhere}, 2, "there is no such file"},
		"no such context":         {[]string{"list", "--kubeconfig", closed, "--context", "prod"}, 2, "--context prod: the kubeconfig has no such context"},
		"unknown form of compare": {[]string{"compare", "x", "-o", "pfd"}, 2, "choose text, markdown, csv, json or yaml"},
		"unknown form of pool":    {[]string{"pool", "x", "y", "-o", "pfd"}, 2, "choose text, json, yaml or html"},
		"wrong file":              {[]string{"plan", "-f", "main.go"}, 1, "for which a cluster would refuse this"},
	} {
		t.Run(name, func(t *testing.T) {
			code, said := call(t.Context(), tc.args...)
			if code != tc.code || !strings.Contains(said, tc.want) {
				t.Errorf("exit code %d, want %d; it says %q, want %q", code, tc.code, said, tc.want)
			}
		})
	}
	t.Run("no kubeconfig at all", func(t *testing.T) {
		t.Setenv("KUBECONFIG", nowhere)
		t.Setenv("HOME", t.TempDir())
		if code, said := call(t.Context(), "list"); code != 1 || !strings.Contains(said, "there is no kubeconfig, so no cluster is known") {
			t.Errorf("exit code %d: %s", code, said)
		}
	})
}
