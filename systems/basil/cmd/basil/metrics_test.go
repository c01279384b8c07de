package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// freeAddresses are different addresses on loopback that were free a moment ago.
func freeAddresses(t *testing.T, n int) (all []string) {
	t.Helper()
	var listeners []net.Listener
	defer func() { // closes all at the end, so that no port is returned twice
		for _, ln := range listeners {
			ln.Close()
		}
	}()
	for range n {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listeners = append(listeners, ln)
		all = append(all, ln.Addr().String())
	}
	return all
}

// A replica exports its work and its process's resources to Prometheus.
func TestMetrics(t *testing.T) {
	free := freeAddresses(t, 2)
	_, port, err := net.SplitHostPort(free[0])
	if err != nil {
		t.Fatal(err)
	}
	metrics := free[1]
	config := filepath.Join(t.TempDir(), "cluster.json")
	text := fmt.Sprintf(`{"f":0,"shards":[{"replicas":[{"host":"localhost","port":%s}]}]}`, port)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := basil("replica", "--index", "0", "--crypto=false", "--config", config, "--metrics", metrics)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Process.Kill(); c.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "basil: replica 0 ready\n" {
		t.Fatalf("got %q, %v", line, err)
	}
	answer, err := (&http.Client{Timeout: time.Minute}).Get("http://" + metrics + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"process_cpu_seconds_total ", "go_goroutines ", `basil_transactions_total{decision="commit"} 0`, `basil_votes_total{vote="abort"} 0`, "basil_fallbacks_total 0"} {
		if !strings.Contains(string(body), "\n"+want) {
			t.Errorf("there is no %s among\n%s", want, body)
		}
	}
}
