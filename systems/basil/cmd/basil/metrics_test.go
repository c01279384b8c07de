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

func freeAddress(t *testing.T) (address string, port int) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String(), ln.Addr().(*net.TCPAddr).Port
}

// A replica tells Prometheus what it does, and what its process uses.
func TestMetrics(t *testing.T) {
	_, port := freeAddress(t)
	metrics, _ := freeAddress(t)
	config := filepath.Join(t.TempDir(), "cluster.json")
	text := fmt.Sprintf(`{"f":0,"shards":[{"replicas":[{"host":"localhost","port":%d}]}]}`, port)
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
	answer, err := (&http.Client{Timeout: 10 * time.Second}).Get("http://" + metrics + "/metrics")
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
