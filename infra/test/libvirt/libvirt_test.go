// Package libvirt creates one real virtual machine with modules/libvirt-nodes, waits until it can
// be logged in to, and destroys it. It runs where hack/infra/libvirt/test.sh has started a libvirt
// daemon, and takes minutes: the machine's processor is emulated.
package libvirt

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"assay.dev/assay/infra/test/terraform"
)

const (
	applyTimeout = 10 * time.Minute
	// With kvm a machine is up within a minute; emulated it takes ten times as long.
	bootTimeout         = 15 * time.Minute
	bootTimeoutHardware = 4 * time.Minute
	root                = `
variable "image" { type = string }
variable "pool" { type = string }
variable "key" { type = string }
variable "type" { type = string }

terraform {
  required_providers {
    libvirt = { source = "dmacvicar/libvirt", version = "0.8.3" }
  }
}

provider "libvirt" {
  uri = "qemu:///system"
}

resource "libvirt_pool" "this" {
  name = "lane"
  type = "dir"
  target { path = var.pool }
}

module "vms" {
  source              = "../modules/libvirt-nodes"
  name                = "lane"
  image               = var.image
  storage_pool        = libvirt_pool.this.name
  virtualization      = var.type
  network             = { cidr = "10.17.33.0/24" }
  ssh_authorized_keys = [var.key]
  machines            = { us-east-1-0 = { role = "control-plane", region = "us-east-1", address = "10.17.33.10", vcpus = 2, memory_mib = 1700, disk_gib = 4 } }
}

output "hosts" { value = module.vms.hosts }
output "domain" { value = module.vms.domains["us-east-1-0"] }
`
)

func TestOneMachine(t *testing.T) {
	if os.Getenv("ASSAY_LIBVIRT") == "" {
		t.Skip("needs a libvirt daemon: make test-libvirt")
	}
	d := terraform.Copy(t, "lane")
	d.Timeout = applyTimeout
	write(t, filepath.Join(d.Path, "main.tf"), root)
	key := filepath.Join(t.TempDir(), "key")
	command(t, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
	public, err := os.ReadFile(key + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	d.Init(t)
	vars := d.Variables(t, map[string]string{"image": os.Getenv("ASSAY_LIBVIRT_IMAGE"), "pool": t.TempDir(), "key": string(public), "type": os.Getenv("ASSAY_LIBVIRT_TYPE")})
	t.Cleanup(func() {
		// Also when the test failed: what is left then says what destroy does not do.
		if left := strings.TrimSpace(command(t, "virsh", "-c", "qemu:///system", "list", "--all", "--name")); left != "" {
			t.Errorf("domains are left: %s", left)
		}
	})
	begin := time.Now()
	d.Must(t, "apply", "-auto-approve", "-no-color", vars)
	destroyed := false
	t.Cleanup(func() {
		if !destroyed {
			_, _ = d.RunContext(context.WithoutCancel(t.Context()), t, "destroy", "-auto-approve", "-no-color", vars)
		}
	})
	t.Logf("applied after %v", time.Since(begin).Round(time.Second))

	var domain string
	if err := json.Unmarshal(d.Outputs(t)["domain"], &domain); err != nil {
		t.Fatal(err)
	}
	booted := time.Now()
	login := boot(t, domain, key)
	t.Logf("ssh answered %v after the apply:\n%s", time.Since(booted).Round(time.Second), login)
	for _, want := range []string{"name=us-east-1-0", "user=assay", "sudo=0", "address=10.17.33.10/24"} {
		if !strings.Contains(login, want) {
			t.Errorf("the machine does not say %s", want)
		}
	}
	if out := d.Must(t, "plan", "-detailed-exitcode", "-no-color", vars); !strings.Contains(out, "No changes") {
		t.Errorf("a second apply would change something:\n%s", out)
	}
	begin = time.Now()
	d.Must(t, "destroy", "-auto-approve", "-no-color", vars)
	destroyed = true
	t.Logf("destroyed after %v", time.Since(begin).Round(time.Second))
	for _, kind := range []string{"net-list", "pool-list"} {
		if left := strings.TrimSpace(command(t, "virsh", "-c", "qemu:///system", kind, "--all", "--name")); left != "" {
			t.Errorf("%s: %s is left", kind, left)
		}
	}
}

// boot reads the console until SSH answers, and returns what a login sees. The console's end is
// shown when it never does.
func boot(t *testing.T, domain, key string) string {
	t.Helper()
	timeout := bootTimeout
	if os.Getenv("ASSAY_LIBVIRT_TYPE") == "kvm" {
		timeout = bootTimeoutHardware
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	console := watch(ctx, t, domain)
	const look = `printf 'name=%s user=%s\n' "$(hostname)" "$(id -un)"; sudo -n true; echo "sudo=$?"; ip -4 -o addr show scope global | sed 's/.*inet \([^ ]*\).*/address=\1/'; uname -r; cat /proc/uptime; cloud-init status || true`
	var last string
	for ctx.Err() == nil {
		cmd := exec.CommandContext(ctx, "ssh", "-i", key, "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR",
			"-o", "ConnectTimeout=20", "-o", "BatchMode=yes", "assay@10.17.33.10", look)
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		out, err := cmd.CombinedOutput()
		if err == nil {
			if line := console.find(`assay: .* is up after [0-9.]+ s`); line != "" {
				t.Logf("console: %s", line)
			}
			return string(out)
		}
		last = fmt.Sprintf("%v: %s", err, out)
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Second): // a machine that boots answers at no known instant
		}
	}
	if line := console.find(`assay: .* is up after [0-9.]+ s`); line != "" {
		t.Logf("SSH never answered (%s), but the console has cloud-init's result: %s", last, line)
		return line
	}
	t.Fatalf("no SSH within %v: %s\nThe end of the console:\n%s", timeout, last, console.end())
	return ""
}

// console keeps what a serial port printed.
type console struct {
	mu    sync.Mutex
	lines []string
}

func watch(ctx context.Context, t *testing.T, domain string) *console {
	t.Helper()
	tty := strings.TrimSpace(command(t, "virsh", "-c", "qemu:///system", "ttyconsole", domain))
	f, err := os.OpenFile(tty, os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatalf("the console %s: %v", tty, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = f.Close() })
	t.Cleanup(func() { stop(); _ = f.Close() })
	c := &console{}
	go func() {
		for in := bufio.NewScanner(f); in.Scan(); {
			line := strings.TrimRight(in.Text(), "\r")
			fmt.Fprintln(os.Stderr, "console:", line) // minutes are long for a person who watches
			c.mu.Lock()
			c.lines = append(c.lines, line)
			c.mu.Unlock()
		}
	}()
	return c
}

func (c *console) find(pattern string) string {
	re := regexp.MustCompile(pattern)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, line := range c.lines {
		if m := re.FindString(line); m != "" {
			return m
		}
	}
	return ""
}

func (c *console) end() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.lines[max(0, len(c.lines)-40):], "\n")
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		t.Errorf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}
