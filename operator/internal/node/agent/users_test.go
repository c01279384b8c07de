package agent_test

import (
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/protocol"
)

// In a pod the agent is root with the single capability NET_ADMIN, so it has no rights of root on
// files. The system is another user, whose image may have any umask. They share volumes that belong
// to the group of the pod.
const (
	systemUser = 65532
	plainUser  = 65533
	podGroup   = 65532
)

func init() {
	roles["humble"] = func() { becomeAgentWithout(func(capability uintptr) bool { return capability != unix.CAP_NET_ADMIN }) }
	roles["plain"] = func() { becomeAgentWithout(func(uintptr) bool { return false }) } // a user other than root has no capabilities
}

// newPodOfTwoUsers is a pod like those that the kubelet makes.
func newPodOfTwoUsers(t *testing.T) (*fakeCoordinator, *pod) {
	t.Helper()
	return newPodOf(t, "humble")
}

// newPodOf is a pod of two users with an agent of the given role.
func newPodOf(t *testing.T, agent string) (*fakeCoordinator, *pod) {
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
		"plain":    {Uid: plainUser, Gid: podGroup, Groups: []uint32{podGroup}},
	}
	p.play("launcher", "NAME=system", "STRICT_UMASK=1")
	p.agentProcess = p.play(agent)
	return c, p
}

func TestAClientOfAnotherUserIsServedByAnAgentWithoutPrivileges(t *testing.T) {
	c, p := newPodOfTwoUsers(t)
	c.files = []protocol.File{
		{Path: p.config + "/keys/0.priv", Mode: 0o400, Content: []byte("secret\n")},
		{Path: p.config + "/client.conf", Mode: 0o600, Content: []byte("a=1\n")},
	}
	c.direct(func(d *protocol.Directive) {
		d.FilesDigest = protocol.FilesDigest(c.files)
		// The client reads its key, changes its configuration, adds a file beside them, and then
		// does its work.
		d.Containers = []protocol.Container{{Name: "system",
			Command: shell(`cat $CONFIG/keys/0.priv && echo b=2 >> $CONFIG/client.conf && touch $CONFIG/keys/mine && cat $CONFIG/client.conf && exec ` + p.binary),
			Env:     []string{roleVariable + "=loadgen"}}}
		d.Client = &protocol.Client{WaitReady: true, Format: "Assay", Source: "File", Path: p.out + "/result.json", Index: 1, FirstClient: 4, Clients: 2}
		d.Start = true
	})
	c.await("is at the barrier", func(r protocol.Report) bool { return r.AtBarrier })
	want := "secret\na=1\nb=2\n"
	if got := p.reads("out/system.stdout", func(content string) bool { return content == want }); got != want {
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
	if got := p.reads("out/system.stdout", func(content string) bool { return strings.HasSuffix(content, "\n") }); !strings.HasPrefix(got, "600 65532") {
		t.Errorf("the key's mode and owner were %q; the test wants one that only its user can read", got)
	}
}

// In a pod that the restricted profile admits, the agent is not root and may not change the
// network. Files, kills without silence, and the later steps work all the same.
func TestAnAgentThatIsNotRootKillsWithoutSilence(t *testing.T) {
	if err := killsWithoutSilence(t); err != nil {
		t.Error(err)
	}
}

func killsWithoutSilence(t *testing.T) error {
	t.Helper()
	c, p := newPodOf(t, "plain")
	c.files = []protocol.File{{Path: p.config + "/keys/0.priv", Mode: 0o400, Content: []byte("secret\n")}}
	must(t, os.Mkdir(p.dir+"/memory", 0o777))
	must(t, os.Chmod(p.dir+"/memory", 0o777))
	must(t, os.WriteFile(p.dir+"/memory/lost", nil, 0o666))
	c.direct(func(d *protocol.Directive) {
		d.FilesDigest = protocol.FilesDigest(c.files)
		d.Containers = []protocol.Container{{Name: "system", Command: shell(`cat $CONFIG/keys/0.priv; exec sleep 1000`)}}
		d.Volumes = []protocol.Volume{{Path: p.dir + "/memory", Memory: true}}
		d.Start = true
	})
	c.await("runs", func(r protocol.Report) bool { return r.Ready && r.ClockError > 0 })
	kill := timeline.Action{ID: "k/1/kill/p", Kind: timeline.Kill, At: 100 * time.Millisecond, WithoutSilence: true}
	runSoon(c, 200*time.Millisecond, kill, timeline.Action{ID: "k/1/revive/p", Kind: timeline.Revive, At: time.Second, Ends: kill.ID, WithoutSilence: true})
	report := c.await("is killed and revived", func(r protocol.Report) bool { return len(r.Actions) == 2 })
	var latest time.Duration
	for _, record := range report.Actions {
		late := record.Confirmed - record.Planned
		if record.Error != "" || late < -alarmEarly {
			t.Errorf("%+v", record)
		}
		latest = max(latest, late)
	}
	if k := report.Actions[0]; k.ID != kill.ID || k.Started < k.Planned-alarmEarly || k.Started > k.Confirmed {
		t.Errorf("the kill began at %v and was confirmed at %v; without silence it begins with its signal, planned for %v", k.Started, k.Confirmed, k.Planned)
	}
	if left, err := os.ReadDir(p.dir + "/memory"); err != nil || len(left) > 0 {
		t.Errorf("the volume in memory holds %v (%v)", left, err)
	}
	want := "secret\nsecret\n"
	if got := p.reads("out/system.stdout", func(content string) bool { return content == want }); got != want {
		t.Errorf("the process printed %q, want %q: once before the kill and once after the revival", got, want)
	}
	c.direct(func(d *protocol.Directive) { d.Finish = true })
	if end := c.await("is finished", func(r protocol.Report) bool { return r.Finished }); end.Failure != "" {
		t.Errorf("the agent failed: %s", end.Failure)
	}
	if latest > 5*time.Second {
		return fmt.Errorf("an action was confirmed %v after its instant", latest)
	}
	return nil
}
