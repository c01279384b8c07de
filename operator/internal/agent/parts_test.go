package agent

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/launcher"
	"assay.dev/assay/operator/internal/protocol"
)

func TestAFileStaysInItsVolumeAndIsReadableByTheGroup(t *testing.T) {
	volume, outside := t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, volume+"/link"); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		path     string
		mode     uint32
		wantMode os.FileMode
		wantErr  string
	}{
		"a file in the volume":           {volume + "/peers", 0o644, 0o664, ""},
		"a file in folders to be made":   {volume + "/a/b/key", 0o400, 0o440, ""},
		"a file that is there already":   {volume + "/a/b/key", 0o600, 0o660, ""},
		"a program":                      {volume + "/run.sh", 0o700, 0o770, ""},
		"a path upwards":                 {volume + "/../x", 0o644, 0, "none of the pod's shared volumes"},
		"a path up and down":             {volume + "/a/../../x", 0o644, 0, "none of the pod's shared volumes"},
		"a folder that begins the same":  {volume + "2/x", 0o644, 0, "none of the pod's shared volumes"},
		"the volume itself":              {volume, 0o644, 0, "none of the pod's shared volumes"},
		"a relative path":                {"peers", 0o644, 0, "must be absolute"},
		"a symbolic link to the outside": {volume + "/link/x", 0o644, 0, "escapes"},
	}
	for _, name := range []string{ // in order, as one case overwrites the file of another
		"a file in the volume", "a file in folders to be made", "a file that is there already", "a program", "a path upwards", "a path up and down",
		"a folder that begins the same", "the volume itself", "a relative path", "a symbolic link to the outside",
	} {
		tc := cases[name]
		t.Run(name, func(t *testing.T) {
			err := writeFile([]string{"/nowhere", volume}, protocol.File{Path: tc.path, Mode: tc.mode, Content: []byte(name)})
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Errorf("the error is %v, want %q in it", err, tc.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			content, err := os.ReadFile(tc.path)
			if err != nil || string(content) != name {
				t.Errorf("the file holds %q (%v), want %q", content, err, name)
			}
			if info, err := os.Stat(tc.path); err != nil || info.Mode().Perm() != tc.wantMode {
				t.Errorf("the file's mode is %v (%v), want %v", info.Mode(), err, tc.wantMode)
			}
		})
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
		t.Errorf("outside there is now %v (%v)", entries, err)
	}
}

func TestSharedVolumesAreTheDirectoriesMountedForWriting(t *testing.T) {
	dir := t.TempDir()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, folder := range []string{"run", "token", "conf"} {
		must(os.Mkdir(filepath.Join(dir, folder), 0o755))
	}
	must(os.WriteFile(dir+"/hosts", nil, 0o644))
	mounts := strings.ReplaceAll(`600 500 0:50 / / ro,relatime - overlay overlay rw
601 600 0:51 / /proc rw,nosuid - proc proc rw
602 600 0:52 / /dev rw - tmpfs tmpfs rw
603 602 0:53 / /dev/shm rw - tmpfs shm rw
604 600 0:54 / DIR/run rw,relatime - tmpfs tmpfs rw
605 600 0:55 / DIR/token ro,relatime - tmpfs tmpfs rw
606 600 0:56 /x DIR/hosts rw - ext4 /dev/vda rw
607 600 0:57 /y DIR/conf rw - ext4 /dev/vda rw
`, "DIR", dir)
	if diff := cmp.Diff([]string{dir + "/run", dir + "/conf"}, SharedVolumes(mounts)); diff != "" {
		t.Errorf("the volumes (-want +got):\n%s", diff)
	}
}

// A run went by whichever manager's clock was measured best, so that faults moved against the
// clients' window when another manager took over.
func TestTheClockOfARunIsOneManagers(t *testing.T) {
	now := launcher.Monotonic()
	ms := int64(time.Millisecond)
	of := func(manager string, offset, within int64) sample {
		return sample{Offset: offset * ms, Error: within * ms, At: now, Manager: manager}
	}
	cases := map[string]struct {
		before, after []sample // of the agreement
		offset        int64    // in milliseconds
		manager       string
		stepped       time.Duration
	}{
		"one manager":                   {[]sample{of("a", 100, 1)}, []sample{of("a", 100, 1)}, 100, "a", 0},
		"another one before":            {[]sample{of("a", 100, 1), of("b", 170, 5)}, nil, 170, "b", 0},
		"another one, nearly the same":  {[]sample{of("a", 100, 1), of("b", 100, 5)}, nil, 100, "b", 0},
		"set before":                    {[]sample{of("a", 100, 1), of("a", 400, 5)}, nil, 400, "a", 0},
		"another one after":             {[]sample{of("a", 100, 1)}, []sample{of("b", 170, 1)}, 100, "a", 68 * time.Millisecond},
		"set after":                     {[]sample{of("a", 100, 1)}, []sample{of("a", 70, 1), of("a", 100, 1)}, 100, "a", 28 * time.Millisecond},
		"another one after, much alike": {[]sample{of("a", 100, 2)}, []sample{of("b", 101, 1)}, 101, "a", 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := &clock{wall: time.Now}
			for _, s := range tc.before {
				c.add(s)
			}
			c.settle()
			for _, s := range tc.after {
				c.add(s)
			}
			best, _ := c.best()
			manager, stepped := c.base()
			if best.Offset != tc.offset*ms || manager != tc.manager {
				t.Errorf("the offset is %v by the clock of %q, want %d ms by %q", time.Duration(best.Offset), manager, tc.offset, tc.manager)
			}
			if stepped > tc.stepped || stepped < tc.stepped-time.Millisecond {
				t.Errorf("the clock stepped by %v, want %v less the drift", stepped, tc.stepped)
			}
		})
	}
}

func TestTheClockBelievesTheShortestRoundTripUntilDriftMayHaveEatenIt(t *testing.T) {
	now := launcher.Monotonic()
	minute := int64(time.Minute)
	cases := map[string]struct {
		samples    []sample
		wantOffset int64
	}{
		"the shorter of two round trips": {[]sample{{Offset: 1, Error: 500_000, At: now}, {Offset: 2, Error: 100_000, At: now}}, 2},
		"a good old one beats a bad new one": {
			[]sample{{Offset: 1, Error: 100_000, At: now - minute}, {Offset: 2, Error: 9_000_000, At: now}}, 1},
		"a good old one loses once the clocks may have parted": { // 60 s * 50 ppm = 3 ms
			[]sample{{Offset: 1, Error: 100_000, At: now - minute}, {Offset: 2, Error: 2_000_000, At: now}}, 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := &clock{wall: time.Now}
			if _, known := c.best(); known {
				t.Error("without a sample the offset is known")
			}
			for _, s := range tc.samples {
				c.add(s)
			}
			if best, known := c.best(); !known || best.Offset != tc.wantOffset {
				t.Errorf("the best is %+v (known %v), want offset %d", best, known, tc.wantOffset)
			}
			if got, want := c.monotonic(1000), 1000-tc.wantOffset; got != want {
				t.Errorf("the coordinator's instant 1000 is %d here, want %d", got, want)
			}
			if got, want := c.since(1000, 1500-tc.wantOffset), 500*time.Nanosecond; got != want {
				t.Errorf("an instant here is %v after the coordinator's, want %v", got, want)
			}
		})
	}
}

func TestQuestionsCarryTheBitsThatKeepCachesApart(t *testing.T) {
	// Header with one question and one additional record, the name "a", and the empty OPT record of
	// Go's resolver.
	message := []byte{0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1, 1, 'a', 0, 0, 1, 0, 1, 0, 0, 41, 4, 0xd0, 0, 0, 0, 0, 0, 0}
	cases := map[string]struct {
		query      dnsQuery
		wantCD, do byte
	}{
		"plain": {dnsQuery{}, 0, 0},
		"CD":    {dnsQuery{checkingDisabled: true}, 0x10, 0},
		"DO":    {dnsQuery{dnssecOK: true}, 0, 0x80},
		"both":  {dnsQuery{checkingDisabled: true, dnssecOK: true}, 0x10, 0x80},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := bytes.Clone(message)
			want[3], want[len(want)-4] = tc.wantCD, tc.do
			if diff := cmp.Diff(want, tc.query.mark(message)); diff != "" {
				t.Errorf("the message (-want +got):\n%s", diff)
			}
		})
	}
	withoutOPT := message[:len(message)-11]
	if diff := cmp.Diff(withoutOPT, dnsQuery{dnssecOK: true}.mark(withoutOPT)); diff != "" {
		t.Errorf("a message without an OPT record was changed (-want +got):\n%s", diff)
	}
}

func TestANameServerSeesTheBitsOfAQuestion(t *testing.T) {
	server, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	asked := make(chan [2]bool, 16)
	go func() {
		buffer := make([]byte, 1500)
		for {
			n, from, err := server.ReadFromUDP(buffer)
			if err != nil {
				return
			}
			asked <- [2]bool{buffer[3]&0x10 != 0, buffer[n-4]&0x80 != 0}
			reply := bytes.Clone(buffer[:n])
			reply[2], reply[3] = 0x81, 0x83 // no such name
			if _, err := server.WriteToUDP(reply, from); err != nil {
				return
			}
		}
	}()
	for _, q := range []dnsQuery{{checkingDisabled: true}, {dnssecOK: true}} {
		resolver := net.Resolver{PreferGo: true, Dial: q.dialer(server.LocalAddr().String())}
		if _, err := resolver.LookupHost(t.Context(), "replica-0.example."); err == nil {
			t.Fatal("a name that does not exist resolved")
		}
		if got, want := <-asked, [2]bool{q.checkingDisabled, q.dnssecOK}; got != want {
			t.Errorf("the server saw CD and DO as %v, want %v", got, want)
		}
		for len(asked) > 0 {
			<-asked
		}
	}
}

func TestLinesAreFoundAcrossChunksAndOnlyWhenWhole(t *testing.T) {
	path := t.TempDir() + "/out"
	f := &logTailer{path: path}
	defer f.close()
	pattern := regexp.MustCompile("^ready: [0-9]+$")
	grow := func(text string) {
		t.Helper()
		file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if _, err := file.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	steps := []struct {
		add  string
		want int // of at most 2
	}{
		{"", 0},
		{"not ready: 1\nrea", 0},
		{"dy: 12", 0},
		{"3\r\n", 1},
		{strings.Repeat("x", 200<<10), 0},
		{"\nready: 9\n", 1},
		{"ready: 1\nbusy\nready: 2\nready: 3\n", 2},
		{"", 1}, // the third of before
	}
	if found, err := f.find(pattern, 2); found != 0 || err != nil {
		t.Errorf("before the file exists: %v, %v", found, err)
	}
	for i, step := range steps {
		grow(step.add)
		if found, err := f.find(pattern, 2); found != step.want || err != nil {
			t.Errorf("step %d: found %d lines (%v), want %d", i, found, err, step.want)
		}
	}
}

func TestResetsAreReadByTheNameOfTheirColumn(t *testing.T) {
	const snmp = `Ip: Forwarding DefaultTTL
Ip: 1 64
Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens PassiveOpens AttemptFails EstabResets CurrEstab
Tcp: 1 200 120000 -1 94 9 23 42 12
Udp: InDatagrams
Udp: 5
`
	if count, ok := estabResets([]byte(snmp)); !ok || count != 42 {
		t.Errorf("the count is %d (%v), want 42", count, ok)
	}
	if _, ok := estabResets([]byte("Tcp: A\nTcp: 1\n")); ok {
		t.Error("a count was found where there is none")
	}
	if model := cpuModel("processor\t: 0\nmodel name\t: Some CPU @ 2GHz\nmodel name\t: x\n"); model != "Some CPU @ 2GHz" {
		t.Errorf("the CPU model is %q", model)
	}
}

func TestTroubleIsLoggedWhenItChanges(t *testing.T) {
	var log bytes.Buffer
	c := newCoordinator(Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
	reset := func(port int) error {
		return &url.Error{Op: "Get", URL: fmt.Sprint("https://c/", port), Err: &net.OpError{Op: "read", Addr: &net.TCPAddr{Port: port}, Err: syscall.ECONNRESET}}
	}
	for _, err := range []error{
		nil, reset(1), reset(2), reset(3), &statusError{code: 401}, &statusError{code: 401}, &statusError{code: 503}, nil, nil, errors.New("x"),
	} {
		c.logChange(err)
	}
	var levels []string
	for line := range strings.Lines(log.String()) {
		levels = append(levels, regexp.MustCompile(`level=(\w+)`).FindStringSubmatch(line)[1])
	}
	if diff := cmp.Diff([]string{"WARN", "WARN", "WARN", "INFO", "WARN"}, levels); diff != "" {
		t.Errorf("the log's lines (-want +got):\n%s\n%s", diff, log.String())
	}
}

func TestRetriesWaitLongerAndNotInStep(t *testing.T) {
	c := newCoordinator(Config{Random: rand.New(rand.NewPCG(1, 2)), Log: slog.New(slog.DiscardHandler)})
	for failures := range 30 {
		if wait := c.backoff(); wait < retryFirst/2 || wait > retryLater || failures > 8 && wait < retryLater/2 {
			t.Errorf("after %d failures the wait is %v", failures, wait)
		}
		c.logChange(errors.New("x"))
	}
}

func TestInstallMakesTheBinariesRunnableByEveryone(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(dir+"/shared", 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/launcher", []byte("#!/bin/true"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir+"/bin", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Install([]string{dir + "/launcher"}, dir+"/bin", []string{dir + "/shared"}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(dir + "/bin/launcher"); err != nil || info.Mode() != 0o755 || info.Size() != 11 {
		t.Errorf("the installed binary is %v (%v)", info, err)
	}
	if info, err := os.Stat(dir + "/shared"); err != nil || info.Mode().Perm() != 0o777 {
		t.Errorf("the shared directory is %v (%v), want it open to all", info.Mode(), err)
	}
	if err := Install([]string{dir + "/missing"}, dir+"/bin", nil); err == nil {
		t.Error("a binary that is missing was installed")
	}
}

// An agent's container that is restarted in the middle of a trial installs once more, beside
// containers that run what is installed.
func TestInstallLeavesWhatIsInstalled(t *testing.T) {
	dir := t.TempDir()
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Skip("there is no sleep to run")
	}
	if err := os.Mkdir(dir+"/bin", 0o755); err != nil {
		t.Fatal(err)
	}
	// An agent that was killed at its first start left half a binary.
	if err := os.WriteFile(dir+"/bin/sleep.new", []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Install([]string{sleep}, dir+"/bin", nil); err != nil {
		t.Fatal(err)
	}
	running := exec.CommandContext(t.Context(), dir+"/bin/sleep", "60")
	if err := running.Start(); err != nil {
		t.Fatalf("run what is installed: %v", err)
	}
	t.Cleanup(func() { _ = running.Wait() }) // it was killed when the test's context ended
	before, err := os.Stat(dir + "/bin/sleep")
	if err != nil {
		t.Fatal(err)
	}
	if err := Install([]string{sleep}, dir+"/bin", nil); err != nil {
		t.Errorf("install again while it runs: %v", err)
	}
	after, err := os.Stat(dir + "/bin/sleep")
	if err != nil || !os.SameFile(before, after) || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("the binary was replaced (%v)", err)
	}
	if _, err := os.Stat(dir + "/bin/sleep.new"); err == nil {
		t.Error("half a binary is left")
	}
}

func TestTheLaunchersWordsAreTheProtocols(t *testing.T) {
	got := []string{launcher.Waiting, launcher.Running, launcher.Exited, launcher.Held}
	want := []string{protocol.StateWaiting, protocol.StateRunning, protocol.StateExited, protocol.StateHeld}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the states (-protocol +launcher):\n%s", diff)
	}
}
