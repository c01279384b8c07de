package agent_test

import (
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"assay.dev/assay/operator/internal/protocol"
)

// In a pod the agent is root without any capability but NET_ADMIN, so not root at all where files are concerned; the system is another user, whose
// image may have any umask. They meet in volumes that belong to the group of the pod.
const (
	systemUser = 65532
	podGroup   = 65532
)

func init() {
	roles["humble"] = func() { becomeAgentWithout(func(capability uintptr) bool { return capability != unix.CAP_NET_ADMIN }) }
}

// newPodOfTwoUsers is a pod as the kubelet makes it.
func newPodOfTwoUsers(t *testing.T) (*fakeCoordinator, *pod) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("two users need root")
	}
	c := newFakeCoordinator(t, "127.0.0.1:0")
	p := newPod(t, c)
	must(t, os.Chmod(p.dir, 0o755))
	for _, volume := range []string{p.run, p.out, p.config} {
		must(t, os.Chown(volume, 0, podGroup))
		must(t, os.Chmod(volume, 0o777|os.ModeSetgid))
	}
	// The test's own binary lies where only root can run it.
	p.binary = p.dir + "/binary"
	source, err := os.Open(self(t))
	must(t, err)
	defer source.Close()
	target, err := os.OpenFile(p.binary, os.O_CREATE|os.O_WRONLY, 0o755)
	must(t, err)
	_, err = io.Copy(target, source)
	must(t, err)
	must(t, target.Close())
	p.users = map[string]*syscall.Credential{
		"launcher": {Uid: systemUser, Gid: podGroup, Groups: []uint32{podGroup}},
		"humble":   {Uid: 0, Gid: podGroup, Groups: []uint32{podGroup}},
	}
	p.play("launcher", "NAME=system", "STRICT_UMASK=1")
	p.agentProcess = p.play("humble")
	return c, p
}

func TestAClientOfAnotherUserIsServedByAnAgentWithoutPrivileges(t *testing.T) {
	c, p := newPodOfTwoUsers(t)
	c.files = []protocol.File{
		{Path: p.config + "/keys/0.priv", Mode: 0o400, Content: []byte("secret\n")},
		{Path: p.config + "/client.conf", Mode: 0o600, Content: []byte("a=1\n")},
	}
	c.direct(func(d *protocol.Directive) {
		d.FilesDigest = "x"
		// The client reads its key, changes its configuration, adds a file beside them, and then does its work.
		d.Containers = []protocol.Container{{Name: "system",
			Command: shell(`cat $CONFIG/keys/0.priv && echo b=2 >> $CONFIG/client.conf && touch $CONFIG/keys/mine && cat $CONFIG/client.conf && exec ` + p.binary),
			Env:     []string{roleVariable + "=loadgen"}}}
		d.Client = &protocol.Client{WaitReady: true, Format: "Assay", Source: "File", Path: p.out + "/result.json", Index: 1, FirstClient: 4, Clients: 2}
		d.Start = true
	})
	c.await("is at the barrier", func(r protocol.Report) bool { return r.AtBarrier })
	if got, want := p.read("out/system.stdout"), "secret\na=1\nb=2\n"; got != want {
		t.Errorf("the client printed %q, want %q", got, want)
	}
	runSoon(c, 300*time.Millisecond)
	if client := sentResults(t, c); client.Clients != 2 {
		t.Errorf("the results are of %d clients, want 2", client.Clients)
	}
	c.direct(func(d *protocol.Directive) { d.Finish = true })
	if end := c.await("is finished", func(r protocol.Report) bool { return r.Finished }); end.Failure != "" {
		t.Errorf("the agent failed: %s", end.Failure)
	}
}

func TestAPrepareStepOfAnotherUserIsPackedForAnAgentWithoutPrivileges(t *testing.T) {
	c, p := newPodOfTwoUsers(t)
	c.direct(func(d *protocol.Directive) {
		d.Containers = []protocol.Container{{Name: "system", Command: shell("mkdir $OUT/keys && echo k > $OUT/keys/0.priv && stat -c '%a %u' $OUT/keys/0.priv")}}
		d.Prepare = &protocol.Prepare{OutputPath: p.out + "/keys", Timeout: time.Minute}
		d.Start = true
	})
	report := c.await("is over", func(r protocol.Report) bool { return r.Over })
	if !report.Sent || report.Failure != "" {
		t.Errorf("sent is %v, failure %q", report.Sent, report.Failure)
	}
	if got := p.read("out/system.stdout"); !strings.HasPrefix(got, "600 65532") {
		t.Errorf("the key's mode and owner were %q; the test wants one that only its user can read", got)
	}
}
