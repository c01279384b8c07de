// Package tests3 starts a real S3 server on loopback, for tests. It is versitygw, as in
// hack/without-registry/s3, and each server has a directory of its own. Only _test files import it.
package tests3

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/store"
	"assay.dev/assay/operator/internal/store/s3"
	"assay.dev/assay/operator/internal/testkit/testenv"
)

// The server's only account, and its bucket.
const (
	AccessKey = "assay-test"
	SecretKey = "assay-test-secret"
	Bucket    = "results"
)

const (
	// patience is how long the server may take to answer, on a machine that is busy.
	patience = 2 * time.Minute
	// ports is how many ports to try: another program may take a free port before the server does.
	ports = 5
)

// Options of a server. All are optional.
type Options struct {
	// Domain under which buckets are also served as BUCKET.DOMAIN.
	Domain string
	// CertFile and KeyFile make it serve HTTPS.
	CertFile, KeyFile string
	// Data is its directory. Default: one of the test's.
	Data string
	// Checksums of the stores that use it: see s3.Config.
	Checksums string
}

// Server is one server. A test may stop it and start it again at the same address, with the same
// data.
type Server struct {
	// Address it listens on, HOST:PORT.
	Address string
	// Data is its directory: an object is the file Data/objects/BUCKET/KEY.
	Data string

	options Options
	binary  string
	cmd     *exec.Cmd
	ended   <-chan error
}

// Start starts a server and waits until it answers. The test is skipped when it is not built yet.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	s := &Server{Data: o.Data, options: o, binary: binary(t)}
	if s.Data == "" {
		s.Data = t.TempDir()
	}
	t.Cleanup(func() { s.Stop(t) })
	var err error
	for range ports {
		s.Address = freeAddress(t)
		if err = s.begin(t); err == nil {
			return s
		}
		t.Log(err)
	}
	t.Fatal(err)
	return nil
}

func freeAddress(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func binary(t testing.TB) string {
	t.Helper()
	root, err := testenv.Root()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(filepath.Join(root, "hack", "without-registry", "s3", "build.sh"), "--path").Output()
	if err != nil {
		t.Skipf("no S3 server: hack/without-registry/s3/build.sh does not say where it is: %v", err)
	}
	file := strings.TrimSpace(string(out))
	if _, err := os.Stat(file); err != nil {
		t.Skip("no S3 server: hack/without-registry/s3/build.sh builds it")
	}
	return file
}

// Restart starts the server after Stop.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	if err := s.begin(t); err != nil {
		t.Fatal(err)
	}
}

// begin starts the server and waits until it answers or has ended.
func (s *Server) begin(t testing.TB) error {
	t.Helper()
	args := []string{"-data", s.Data, "-listen", s.Address, "-bucket", Bucket}
	scheme := "http"
	if s.options.CertFile != "" {
		scheme, args = "https", append(args, "-cert", s.options.CertFile, "-key", s.options.KeyFile)
	}
	if s.options.Domain != "" {
		args = append(args, "-virtual-domain", s.options.Domain)
	}
	log, err := os.OpenFile(filepath.Join(t.TempDir(), "s3.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	s.cmd = exec.Command(s.binary, args...)
	s.cmd.Env = []string{"ROOT_ACCESS_KEY=" + AccessKey, "ROOT_SECRET_KEY=" + SecretKey, "TMPDIR=" + t.TempDir()}
	s.cmd.Stdout, s.cmd.Stderr = log, log
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.cmd.Wait() }()
	s.ended = ended
	// This check does not verify the certificate, since tests are about that.
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		// If this server did not get the address, another one may answer there.
		answers := listens(s.Address, scheme)
		select {
		case err := <-ended:
			text, _ := os.ReadFile(log.Name())
			s.cmd = nil
			return fmt.Errorf("the S3 server at %s ended at once: %w:\n%s", s.Address, err, text)
		default:
		}
		if answers {
			return nil
		}
		if time.Now().After(deadline) {
			text, _ := os.ReadFile(log.Name())
			t.Fatalf("the S3 server does not answer within %v:\n%s", patience, text)
		}
	}
}

func listens(address, scheme string) bool {
	if scheme == "http" {
		answer, err := (&http.Client{Timeout: time.Second}).Get("http://" + address + "/health")
		if err != nil {
			return false
		}
		return answer.Body.Close() == nil && answer.StatusCode == http.StatusOK
	}
	conn, err := net.DialTimeout("tcp", address, time.Second)
	return err == nil && conn.Close() == nil
}

// Stop ends the server at once, as a power failure would. Restart starts it again.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	if s.cmd == nil {
		return
	}
	if err := syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL); err != nil {
		t.Errorf("stop the S3 server: %v", err)
	}
	<-s.ended // it returns an error, since the server was killed
	s.cmd = nil
}

// Config of a store in the server's bucket.
func (s *Server) Config() s3.Config {
	c := s3.Config{Settings: store.Settings{Name: "test"}, Endpoint: "http://" + s.Address, Bucket: Bucket, PathStyle: true, Checksums: s.options.Checksums}
	if s.options.CertFile != "" {
		c.Endpoint = "https://" + s.Address
	}
	return c
}

// Keys are the server's credentials.
func Keys() s3.Credentials {
	return s3.Credentials{AccessKeyID: AccessKey, SecretAccessKey: SecretKey}
}

// Store in the server's bucket.
func (s *Server) Store(t testing.TB) *s3.Bucket {
	t.Helper()
	made, err := s3.NewWith(s.Config(), Keys(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// File of an object.
func (s *Server) File(key string) string {
	return filepath.Join(s.Data, "objects", Bucket, filepath.FromSlash(key))
}

// Registry of one store, named archive, in the server's bucket: in files, as in an installation.
func (s *Server) Registry(t testing.TB) *store.Registry {
	t.Helper()
	dir := t.TempDir()
	c := s.Config()
	files := map[string]string{
		"stores.yaml":                 fmt.Sprintf("default: archive\nstores:\n- name: archive\n  endpoint: %s\n  bucket: %s\n  pathStyle: true\n  prefix: some/where\n  checksums: %q\n", c.Endpoint, c.Bucket, c.Checksums),
		"archive/" + s3.AccessKeyFile: AccessKey + "\n", "archive/" + s3.SecretKeyFile: SecretKey,
	}
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, err := store.Load(filepath.Join(dir, "stores.yaml"), dir, map[string]store.Open{"S3": s3.Open})
	if err != nil {
		t.Fatal(err)
	}
	return r
}
