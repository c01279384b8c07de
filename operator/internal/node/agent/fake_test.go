package agent_test

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/node/agent"
	"assay.dev/assay/operator/internal/node/launcher"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/parsers"
)

// The test binary also plays the other programs: this variable makes it a process of its own with a
// role.
const roleVariable = "ASSAY_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "":
		os.Exit(m.Run())
	case "launcher":
		playLauncher()
	case "agent":
		playAgent()
	default:
		if play := roles[os.Getenv(roleVariable)]; play != nil {
			play()
			return
		}
		fmt.Fprintln(os.Stderr, "unknown role")
		os.Exit(2)
	}
}

// roles of single tests.
var roles = map[string]func(){}

func playLauncher() {
	ctx, stop := signalContext()
	defer stop()
	// A role that its child would inherit must not be played twice.
	os.Unsetenv(roleVariable)
	if os.Getpid() == 1 {
		// As in a container, /proc shows the launcher's own PID namespace.
		err := errors.Join(syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""), syscall.Mount("proc", "/proc", "proc", 0, ""))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	if os.Getenv("STRICT_UMASK") != "" {
		syscall.Umask(0o077)
	}
	err := launcher.Serve(ctx, launcher.Options{
		Name: os.Getenv("NAME"), RunDir: os.Getenv("RUN"), OutDir: os.Getenv("OUT"), OutputLimit: 1 << 20, Stdout: os.Stdout, Stderr: os.Stderr,
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func playAgent() {
	ctx, stop := signalContext()
	defer stop()
	var offset time.Duration
	if text := os.Getenv("OFFSET"); text != "" {
		var err error
		if offset, err = time.ParseDuration(text); err != nil {
			panic(err)
		}
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	var backends []agent.Backend
	if os.Getenv("BACKENDS") != "" {
		backends = agent.Backends(log)
	}
	a, err := agent.New(agent.Config{
		Backends:    backends,
		Coordinator: os.Getenv("COORDINATOR"), CAFile: os.Getenv("CA"), TokenFile: os.Getenv("TOKEN"),
		PodUID: os.Getenv("POD_UID"),
		RunDir: os.Getenv("RUN"), OutDir: os.Getenv("OUT"), FileRoots: []string{os.Getenv("RUN"), os.Getenv("OUT"), os.Getenv("CONFIG")},
		Wall: func() time.Time { return time.Now().Add(offset) },
		Parse: func(format string, report io.Reader, about agent.ReportFacts) (results.Client, error) {
			return parsers.Parse(format, report, parsers.Options{
				ZeroMonotonicNanos: about.ZeroMonotonicNanos, ZeroUnixNanos: about.ZeroUnixNanos, StartNanos: about.StartNanos, Windows: about.Windows,
				Index: about.Index, FirstClient: about.FirstClient, Clients: about.Clients, Misbehaving: about.Misbehaving,
				Records: about.Records, Histograms: about.Histograms, Summary: about.Summary, Whole: about.Whole, Arrivals: about.Arrivals,
			})
		},
		Random: mathrand.New(mathrand.NewPCG(1, 2)),
		Log:    log,
	})
	if err == nil {
		err = a.Run(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
		os.Exit(1)
	}
}

// fakeCoordinator serves one pod, as package protocol says.
type fakeCoordinator struct {
	t       *testing.T
	server  *httptest.Server
	address string

	certificate tls.Certificate

	mu        sync.Mutex
	changed   chan struct{}
	directive protocol.Directive
	files     []protocol.File
	// filesBefore are answers to the first requests for files.
	filesBefore [][]protocol.File
	report      *protocol.Report
	reports     int
	maxHold     time.Duration // of an answer; 0: protocol.MaxHold
	results     [][]byte
	prepared    [][]byte
	collected   [][]byte
	tokens      map[string]bool
	status      int          // the status of every answer, if not 0
	refusals    int          // how many results to refuse with 503
	slowClocks  int          // how many readings of the clock take 60 ms
	handOver    http.Handler // takes the files that are handed over
}

const token = "the-token-of-the-pod"

// alarmEarly is how early the kernel may send a signal (docs/design/0028): a launcher accepts that
// much in its rehearsal.
const alarmEarly = 50 * time.Microsecond

// patience is how long an expected event may take on a machine that is busy with other tests.
const patience = time.Minute

func newFakeCoordinator(t *testing.T, address string) *fakeCoordinator {
	t.Helper()
	f := &fakeCoordinator{t: t, changed: make(chan struct{}), tokens: map[string]bool{token: true}}
	f.certificate = newCertificate(t, address)
	f.listen(address)
	t.Cleanup(func() { f.die() })
	return f
}

// newCertificate signs itself for the host of an address.
func newCertificate(t *testing.T, address string) tls.Certificate {
	t.Helper()
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.ParseIP(host)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	content, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{content}, PrivateKey: key}
}

func (f *fakeCoordinator) listen(address string) {
	f.t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		f.t.Fatalf("listen: %v", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/clock", func(w http.ResponseWriter, _ *http.Request) {
		f.mu.Lock()
		f.slowClocks--
		slow := f.slowClocks >= 0
		f.mu.Unlock()
		if slow {
			time.Sleep(60 * time.Millisecond)
		}
		json.NewEncoder(w).Encode(protocol.Clock{UnixNanos: time.Now().UnixNano()})
	})
	mux.HandleFunc("GET /v1/files", func(w http.ResponseWriter, _ *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		files := f.files
		if len(f.filesBefore) > 0 {
			files, f.filesBefore = f.filesBefore[0], f.filesBefore[1:]
		}
		json.NewEncoder(w).Encode(files)
	})
	mux.HandleFunc("POST /v1/sync", f.sync)
	mux.HandleFunc("POST /v1/results", f.take(&f.results))
	mux.HandleFunc("POST /v1/prepared", f.take(&f.prepared))
	mux.HandleFunc("POST /v1/collected", f.take(&f.collected))
	for _, path := range []string{"/v1/upload", "/v1/keep"} {
		mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) { f.handOver.ServeHTTP(w, r) })
	}
	f.server = &httptest.Server{Listener: listener, EnableHTTP2: true, Config: &http.Server{
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			f.mu.Lock()
			known, status := f.tokens[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")], f.status
			f.mu.Unlock()
			switch {
			case status != 0:
				http.Error(w, "not now", status)
			case !known:
				http.Error(w, "unknown token", http.StatusUnauthorized)
			default:
				mux.ServeHTTP(w, r)
			}
		}),
	}}
	f.server.TLS = &tls.Config{Certificates: []tls.Certificate{f.certificate}}
	f.server.StartTLS()
	f.address = listener.Addr().String()
}

// die breaks every connection and stops listening.
func (f *fakeCoordinator) die() {
	f.server.CloseClientConnections()
	f.server.Close()
}

// rise listens again at the same address.
func (f *fakeCoordinator) rise() { f.listen(f.address) }

func (f *fakeCoordinator) take(to *[][]byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.refusals > 0 || err != nil {
			f.refusals--
			http.Error(w, "it cannot be stored now", http.StatusServiceUnavailable)
			return
		}
		*to = append(*to, body)
		w.WriteHeader(http.StatusNoContent)
	}
}

func (f *fakeCoordinator) sync(w http.ResponseWriter, r *http.Request) {
	var report protocol.Report
	if err := json.NewDecoder(r.Body).Decode(&report); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	f.mu.Lock()
	f.report = &report
	f.reports++
	f.mu.Unlock()
	hold := time.After(cmp.Or(f.maxHold, protocol.MaxHold))
	for {
		f.mu.Lock()
		directive, changed := f.directive, f.changed
		f.mu.Unlock()
		if directive.Version != report.DirectiveVersion {
			json.NewEncoder(w).Encode(directive)
			return
		}
		select {
		case <-changed:
		case <-hold:
			json.NewEncoder(w).Encode(directive)
			return
		case <-r.Context().Done():
			return
		}
	}
}

// direct changes the directive.
func (f *fakeCoordinator) direct(change func(*protocol.Directive)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(&f.directive)
	f.directive.Version = ""
	content, err := json.Marshal(f.directive)
	if err != nil {
		f.t.Fatalf("encode the directive: %v", err)
	}
	sum := sha256.Sum256(content)
	f.directive.Version = hex.EncodeToString(sum[:8])
	close(f.changed)
	f.changed = make(chan struct{})
}

// await waits for a report.
func (f *fakeCoordinator) await(what string, holds func(protocol.Report) bool) protocol.Report {
	f.t.Helper()
	return f.awaitUntil(time.Now().Add(patience), what, holds)
}

func (f *fakeCoordinator) awaitUntil(deadline time.Time, what string, holds func(protocol.Report) bool) protocol.Report {
	f.t.Helper()
	for {
		f.mu.Lock()
		report := f.report
		f.mu.Unlock()
		if report != nil && holds(*report) {
			return *report
		}
		if time.Now().After(deadline) {
			content, _ := json.MarshalIndent(report, "", " ")
			f.t.Fatalf("no report in time that %s; the last one is %s", what, content)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// pod is a pod: directories, launchers and an agent, all as processes.
type pod struct {
	t            *testing.T
	coordinator  *fakeCoordinator
	dir          string
	run, out     string
	config       string
	agentProcess *exec.Cmd
	offset       string
	binary       string                         // of all roles; default: this one
	users        map[string]*syscall.Credential // by role; default: this process's
}

func newPod(t *testing.T, coordinator *fakeCoordinator) *pod {
	t.Helper()
	// Sockets have short paths only.
	dir, err := os.MkdirTemp("", "pod")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	p := &pod{t: t, coordinator: coordinator, dir: dir, run: dir + "/run", out: dir + "/out", config: dir + "/config"}
	for _, folder := range []string{p.run, p.out, p.config} {
		if err := os.Mkdir(folder, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	p.write("ca.crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: coordinator.certificate.Certificate[0]}))
	p.write("token", []byte(token+"\n"))
	return p
}

func (p *pod) write(name string, content []byte) {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.dir, name), content, 0o644); err != nil {
		p.t.Fatal(err)
	}
}

func (p *pod) read(name string) string {
	p.t.Helper()
	content, err := os.ReadFile(filepath.Join(p.dir, name))
	if err != nil {
		p.t.Fatal(err)
	}
	return string(content)
}

// reads waits until a file has the right content, and returns it. A process or its launcher writes
// the file.
func (p *pod) reads(name string, right func(content string) bool) string {
	p.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		content, err := os.ReadFile(filepath.Join(p.dir, name))
		if err == nil && right(string(content)) || time.Now().After(deadline) {
			return string(content)
		}
	}
}

// play starts a program and ends it with the test.
func (p *pod) play(role string, env ...string) *exec.Cmd {
	p.t.Helper()
	binary := p.binary
	if binary == "" {
		binary = self(p.t)
	}
	cmd := exec.Command(binary)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.users[role]}
	if slices.Contains(env, "NEXT_ROLE=launcher") {
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWPID | syscall.CLONE_NEWNS // only root may enter a network, and then it may do this, too
	}
	cmd.Env = append(os.Environ(), roleVariable+"="+role, "RUN="+p.run, "OUT="+p.out, "CONFIG="+p.config,
		"CA="+p.dir+"/ca.crt", "TOKEN="+p.dir+"/token", "COORDINATOR="+p.coordinator.address, "OFFSET="+p.offset)
	cmd.Env = append(cmd.Env, env...)
	cmd.Stdout, cmd.Stderr = &logWriter{t: p.t, prefix: role + ": "}, &logWriter{t: p.t, prefix: role + ": "}
	if err := cmd.Start(); err != nil {
		p.t.Fatalf("start %s: %v", role, err)
	}
	p.t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		time.AfterFunc(5*time.Second, func() { cmd.Process.Kill() })
		cmd.Wait()
	})
	return cmd
}

func (p *pod) launch(name string) *exec.Cmd { return p.play("launcher", "NAME="+name) }

func (p *pod) startAgent() { p.agentProcess = p.play("agent") }

// killAgent kills the agent as an out-of-memory kill would.
func (p *pod) killAgent() {
	p.agentProcess.Process.Kill()
	p.agentProcess.Wait()
}

// logWriter shows what programs print with a failed test.
type logWriter struct {
	t      *testing.T
	prefix string
	mu     sync.Mutex
}

func (w *logWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.t.Context().Err() == nil {
		w.t.Log(w.prefix + strings.TrimRight(string(b), "\n"))
	}
	return len(b), nil
}
