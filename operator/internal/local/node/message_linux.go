package node

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// mostMessage is how many bytes a container may write about its end, as with a kubelet.
const mostMessage = 4096

// messageFile is the file in which a container writes how it ended.
func (c *container) messageFile() string { return c.bundle + ".message" }

// takeMessage makes that file, to which the container's user may write, and returns its mount.
func (c *container) takeMessage(spec *corev1.Container) (specs.Mount, error) {
	file := c.messageFile()
	err := os.MkdirAll(filepath.Dir(file), 0o755) // #nosec G301 -- as for the bundle
	if err == nil {
		err = os.WriteFile(file, nil, 0o600)
	}
	if err == nil {
		err = os.Chmod(file, 0o666) // #nosec G302 -- containers have users of their own
	}
	if err != nil {
		return specs.Mount{}, fmt.Errorf("make the file for a container's last message: %w", err)
	}
	at := cmp.Or(spec.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	return specs.Mount{Destination: at, Type: "bind", Source: file, Options: []string{"bind", "rprivate", "rw"}}, nil
}

// message returns the text that the container wrote about its end. If it failed without a text,
// message returns the end of its log.
func (c *container) message() string {
	text, err := os.ReadFile(c.messageFile())
	if err == nil && len(text) > 0 {
		return string(text[:min(len(text), mostMessage)])
	}
	if c.exit.code == 0 || c.exit.oom {
		return ""
	}
	return tail(c.log)
}

// tail returns the end of a log.
func tail(log string) string {
	text, err := os.ReadFile(log)
	if err != nil {
		return ""
	}
	const most = 2048
	if len(text) > most {
		text = text[len(text)-most:]
	}
	return strings.TrimSpace(string(text))
}

func terminated(c *container, at time.Time) corev1.ContainerState {
	t := &corev1.ContainerStateTerminated{ExitCode: int32(c.exit.code), Signal: int32(c.exit.signal), StartedAt: metav1.NewTime(c.began), FinishedAt: metav1.NewTime(at), Reason: "Completed"} // #nosec G115 -- of the kernel
	switch {
	case c.exit.oom:
		t.Reason = "OOMKilled"
	case c.exit.code != 0:
		t.Reason = "Error"
	}
	t.Message = c.message()
	return corev1.ContainerState{Terminated: t}
}
