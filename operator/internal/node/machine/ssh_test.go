package machine

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// world is one machine that answers SSH, and a home for OpenSSH's own client.
type world struct {
	dir    string // the client's folder: keys, configuration
	home   string // the machine's home
	port   string
	record string

	recorder *Recorder

	// control is the socket of a connection that sessions share. forward is the address of a port
	// that leads to a program behind the server.
	control, forward string
}

// need skips the test if a program is missing.
func need(t testing.TB, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("there is no %s: apt-get install openssh-client rsync openssh-server", p)
		}
	}
}

func newWorld(t testing.TB, env ...string) *world {
	t.Helper()
	need(t, "ssh", "scp", "bash")
	w := &world{dir: t.TempDir(), home: t.TempDir()}
	if err := MakeKeys(w.dir); err != nil {
		t.Fatal(err)
	}
	keys, err := ReadKeys(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	w.record = filepath.Join(w.dir, "record")
	file, err := openRecord(w.record)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, w.port, _ = net.SplitHostPort(listener.Addr().String())
	w.recorder = NewRecorder("node-1", map[string]string{"127.0.0.1": "node-0"}, file)
	server := NewServer(ServerOptions{
		HostKey: keys.Host, AuthorizedKey: keys.User.PublicKey(), User: "author", Home: w.home, Shell: "/bin/bash",
		Env: append([]string{"PATH=" + os.Getenv("PATH")}, env...), Recorder: w.recorder,
	})
	served := make(chan error, 1)
	go func() { served <- server.Serve(t.Context(), listener) }()
	w.configure(t, "config", filepath.Join(w.dir, userKeyFile), keys)
	return w
}

// configure writes a client's configuration.
func (w *world) configure(t testing.TB, name, identity string, keys Keys) {
	t.Helper()
	host := strings.TrimSpace(authorized(keys.Host.PublicKey()))
	files := map[string]string{
		"known_hosts": fmt.Sprintf("[127.0.0.1]:%s %s\nnode-1 %s\n", w.port, host, host),
		name: fmt.Sprintf("Host node-1\n HostName 127.0.0.1\n Port %s\nHost *\n HostKeyAlias node-1\n User author\n IdentityFile %s\n IdentitiesOnly yes\n UserKnownHostsFile %s\n BatchMode yes\n%s",
			w.port, identity, filepath.Join(w.dir, "known_hosts"), ciphersOf("")),
	}
	for file, text := range files {
		if err := os.WriteFile(filepath.Join(w.dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// client runs a program of OpenSSH's client, or one that calls it.
func (w *world) client(t testing.TB, program string, args ...string) (out string, code int) {
	t.Helper()
	config := filepath.Join(w.dir, "config")
	switch program {
	case "ssh", "scp", "sftp":
		args = append([]string{"-F", config}, args...)
	case "rsync":
		args = append([]string{"-e", "ssh -F " + config}, args...)
	}
	c := exec.CommandContext(t.Context(), program, args...)
	c.WaitDelay = time.Second
	var output bytes.Buffer
	c.Stdout, c.Stderr = &output, &output
	timer := time.AfterFunc(time.Minute, func() { c.Process.Kill() })
	defer timer.Stop()
	err := c.Run()
	if c.ProcessState == nil {
		t.Fatalf("%s: %v", program, err)
	}
	return output.String(), c.ProcessState.ExitCode()
}

// do runs a command on the machine, and fails the test unless it exits with 0.
func (w *world) do(t testing.TB, command string) string {
	t.Helper()
	out, code := w.client(t, "ssh", "node-1", command)
	if code != 0 {
		t.Fatalf("ssh node-1 %q exited with %d: %s", command, code, out)
	}
	return out
}

func TestCommandsOverSSH(t *testing.T) {
	w := newWorld(t, "JAVA_HOME=/opt/java")
	for name, tc := range map[string]struct {
		args     []string
		want     string
		wantCode int
	}{
		"output and exit code 0":            {args: []string{"node-1", "echo hello"}, want: "hello\n"},
		"another exit code":                 {args: []string{"node-1", "exit 3"}, wantCode: 3},
		"a command that is not there":       {args: []string{"node-1", "no-such-program 2>/dev/null"}, wantCode: 127},
		"both streams":                      {args: []string{"node-1", "echo out; sleep 0.3; echo err >&2"}, want: "out\nerr\n"},
		"a signal ends it":                  {args: []string{"node-1", "kill -9 $$"}, wantCode: 255},
		"home is the directory":             {args: []string{"node-1", "pwd"}, want: w.home + "\n"},
		"the user's variables":              {args: []string{"node-1", "echo $HOME $USER $LOGNAME $SHELL"}, want: w.home + " author author /bin/bash\n"},
		"the image's variables":             {args: []string{"node-1", "echo $JAVA_HOME"}, want: "/opt/java\n"},
		"variables of the client":           {args: []string{"-o", "SetEnv=THREADS=4", "node-1", "echo $THREADS"}, want: "4\n"},
		"who connects":                      {args: []string{"node-1", "set -- $SSH_CONNECTION; echo $1 $3 $4; set -- $SSH_CLIENT; echo $1 $3"}, want: "127.0.0.1 127.0.0.1 " + w.port + "\n127.0.0.1 " + w.port + "\n"},
		"quotes are the shell's":            {args: []string{"node-1", `for i in 1 2; do echo "a  $i"; done`}, want: "a  1\na  2\n"},
		"a terminal":                        {args: []string{"-tt", "node-1", "test -t 0 && test -t 1 && echo $TERM && tty | cut -c1-8"}, want: "\r\n/dev/pts\r\n"},
		"an exit code with a terminal":      {args: []string{"-tt", "node-1", "exit 4"}, wantCode: 4},
		"a user who is not there":           {args: []string{"root@node-1", "true"}, wantCode: 255},
		"in the background, no output held": {args: []string{"node-1", "nohup sleep 30 > /dev/null 2>&1 &"}},
	} {
		t.Run(name, func(t *testing.T) {
			out, code := w.client(t, "ssh", tc.args...)
			if code != tc.wantCode {
				t.Errorf("exited with %d, want %d; it printed %q", code, tc.wantCode, out)
			}
			if tc.want != "" && !strings.Contains(out, tc.want) {
				t.Errorf("printed %q, want %q", out, tc.want)
			}
		})
	}
}

func TestInputReachesACommand(t *testing.T) {
	w := newWorld(t)
	c := exec.CommandContext(t.Context(), "ssh", "-F", filepath.Join(w.dir, "config"), "node-1", "cat; echo end")
	c.Stdin = strings.NewReader(strings.Repeat("line\n", 100_000))
	out, err := c.Output()
	if err != nil || string(out) != strings.Repeat("line\n", 100_000)+"end\n" {
		t.Errorf("cat printed %d bytes, error %v; want all of the input and the end", len(out), err)
	}
}

func TestASignalReachesACommand(t *testing.T) {
	w := newWorld(t)
	// The protocol has signals, but OpenSSH's client sends none. So the test uses a terminal's ^C.
	c := exec.CommandContext(t.Context(), "ssh", "-tt", "-F", filepath.Join(w.dir, "config"), "node-1", "trap 'echo caught; exit 7' INT; echo ready; sleep 30")
	c.Stdin = nil
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out syncBuffer
	c.Stdout = &out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, "the command is ready", func() bool { return strings.Contains(out.String(), "ready") })
	if _, err := in.Write([]byte{3}); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	if code := c.ProcessState.ExitCode(); code != 7 || !strings.Contains(out.String(), "caught") {
		t.Errorf("exited with %d and printed %q, want 7 and that the signal was caught", code, out.String())
	}
}

// When a client is killed, the processes of its terminal end. Processes without a terminal live on,
// as with sshd.
func TestAClientThatDies(t *testing.T) {
	for name, tc := range map[string]struct {
		terminal string
		lives    bool
	}{"without a terminal": {"-T", true}, "with a terminal": {"-tt", false}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			file := filepath.Join(w.home, "pid")
			c := exec.CommandContext(t.Context(), "ssh", tc.terminal, "-F", filepath.Join(w.dir, "config"), "node-1", "echo $$ > "+file+"; exec sleep 60")
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			pid := awaitPID(t, file)
			c.Process.Kill()
			c.Wait()
			if tc.lives {
				time.Sleep(300 * time.Millisecond)
				if !runs(pid) {
					t.Error("the command ended with its client")
				}
				end(pid)
				return
			}
			await(t, "the command ends with its terminal", func() bool { return !runs(pid) })
		})
	}
}

func TestDaemonsOutliveTheirSession(t *testing.T) {
	for name, command := range map[string]string{
		"nohup":     "nohup sleep 60 > log 2>&1 & echo $! > pid",
		"setsid":    "setsid bash -c 'echo $$ > pid; exec sleep 60' > log 2>&1 < /dev/null &",
		"twice":     "(bash -c 'echo $$ > pid; exec sleep 60' > log 2>&1 &) &",
		"disown":    "sleep 60 > log 2>&1 & echo $! > pid; disown",
		"tmux":      "tmux -L assay-test new-session -d 'echo $$ > pid; exec sleep 60'",
		"ssh -f":    "",
		"terminal":  "",
		"screenful": "nohup bash -c 'echo $$ > pid; exec sleep 60' </dev/null >log 2>&1 &",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			file := filepath.Join(w.home, "pid")
			began := time.Now()
			switch name {
			case "ssh -f":
				if out, code := w.client(t, "ssh", "-f", "node-1", "echo $$ > pid; exec sleep 60 > log 2>&1"); code != 0 {
					t.Fatalf("ssh -f exited with %d: %s", code, out)
				}
			case "terminal":
				if out, code := w.client(t, "ssh", "-tt", "node-1", "nohup sleep 60 > log 2>&1 & echo $! > pid; sleep 0.2"); code != 0 {
					t.Fatalf("ssh -tt exited with %d: %s", code, out)
				}
			case "tmux":
				need(t, "tmux")
				fallthrough
			default:
				w.do(t, command)
			}
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("ssh came back after %v; the session must not wait for the daemon", took)
			}
			pid := awaitPID(t, file)
			time.Sleep(200 * time.Millisecond)
			if !runs(pid) {
				t.Errorf("the daemon ended with its session")
			}
			end(pid)
			if name == "tmux" {
				_ = exec.Command("tmux", "-L", "assay-test", "kill-server").Run()
			}
		})
	}
}

func TestFilesByEveryProgram(t *testing.T) {
	need(t, "rsync", "sftp")
	w := newWorld(t)
	from := t.TempDir()
	write := func(name, text string, mode os.FileMode) {
		path := filepath.Join(from, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("tree/run.sh", "#!/bin/sh\n", 0o755)
	write("tree/a/b/data", strings.Repeat("0123456789abcdef", 1<<16), 0o640)
	write("tree/empty", "", 0o644)
	for name, tc := range map[string]struct {
		program  string
		put, get []string // of the tree, to and from the machine
	}{
		"scp -r":           {"scp", []string{"-r", from + "/tree", "node-1:scp"}, []string{"-r", "node-1:scp", ""}},
		"scp -O -r":        {"scp", []string{"-O", "-r", from + "/tree", "node-1:old"}, []string{"-O", "-r", "node-1:old", ""}},
		"scp -p to ~":      {"scp", []string{"-p", "-r", from + "/tree", "node-1:~/tilde"}, []string{"-p", "-r", "node-1:~/tilde", ""}},
		"scp absolute":     {"scp", []string{"-r", from + "/tree", "node-1:" + w.home + "/absolute"}, []string{"-r", "node-1:" + w.home + "/absolute", ""}},
		"rsync -a":         {"rsync", []string{"-a", from + "/tree/", "node-1:rsync"}, []string{"-a", "node-1:rsync/", ""}},
		"rsync --compress": {"rsync", []string{"-az", "--delete", from + "/tree/", "node-1:rsyncz"}, []string{"-az", "node-1:rsyncz/", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			back := filepath.Join(t.TempDir(), "back")
			tc.get[len(tc.get)-1] = back
			for _, args := range [][]string{tc.put, tc.get} {
				if out, code := w.client(t, tc.program, args...); code != 0 {
					t.Fatalf("%s %v exited with %d: %s", tc.program, args, code, out)
				}
			}
			if got, want := sums(t, back), sums(t, from+"/tree"); got != want {
				t.Errorf("came back\n%s\nwant\n%s", got, want)
			}
		})
	}
	t.Run("a pattern of several files", func(t *testing.T) {
		w.do(t, "mkdir -p logs && echo 1 > logs/a.log && echo 2 > logs/b.log")
		to := t.TempDir()
		if out, code := w.client(t, "scp", "-q", "node-1:logs/*", to+"/"); code != 0 {
			t.Fatalf("scp exited with %d: %s", code, out)
		}
		if got := sums(t, to); strings.Count(got, "\n") != 2 {
			t.Errorf("came back\n%s\nwant two files", got)
		}
	})
	t.Run("a file that is not there", func(t *testing.T) {
		if _, code := w.client(t, "scp", "node-1:nothing", t.TempDir()); code != 1 {
			t.Errorf("scp exited with %d, want 1", code)
		}
	})
	t.Run("sftp", func(t *testing.T) {
		batch := filepath.Join(t.TempDir(), "batch")
		to := filepath.Join(t.TempDir(), "back")
		if err := os.WriteFile(batch, fmt.Appendf(nil, "mkdir s\nput %s/tree/run.sh s/run.sh\nrename s/run.sh s/x.sh\nchmod 700 s/x.sh\nget s/x.sh %s\nls s\nrm s/x.sh\nrmdir s\n", from, to), 0o600); err != nil {
			t.Fatal(err)
		}
		out, code := w.client(t, "sftp", "-b", batch, "node-1")
		if content, err := os.ReadFile(to); code != 0 || err != nil || string(content) != "#!/bin/sh\n" {
			t.Errorf("sftp exited with %d; %q came back, %v: %s", code, content, err, out)
		}
	})
}

// OpenSSH's client takes the fastest cipher, unless the image's own configuration names ciphers.
func TestClientsPreferTheFastestCipher(t *testing.T) {
	if ciphersOf("Host *\n  Port 22\n") == "" {
		t.Skip("this processor has no AES")
	}
	for _, own := range []string{"Ciphers aes256-ctr\n", "Host *\n\tciphers=aes256-ctr\n"} {
		if got := ciphersOf(own); got != "" {
			t.Errorf("beside the image's own %q there is %q, want nothing", own, got)
		}
	}
	w := newWorld(t)
	for want, args := range map[string][]string{
		"aes128-gcm@openssh.com":        {"-v", "node-1", "true"},
		"chacha20-poly1305@openssh.com": {"-v", "-c", "chacha20-poly1305@openssh.com", "node-1", "true"},
		"aes128-ctr":                    {"-v", "-c", "aes128-ctr", "node-1", "true"},
	} {
		if out, code := w.client(t, "ssh", args...); code != 0 || !strings.Contains(out, "kex: client->server cipher: "+want) {
			t.Errorf("ssh %q exited with %d, want the cipher %s: %s", args, code, want, out)
		}
	}
}

func TestForwarding(t *testing.T) {
	w := newWorld(t)
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer echo.Close()
	go func() {
		for {
			conn, err := echo.Accept()
			if err != nil {
				return
			}
			go func() { // answers after the client has sent all data: the end of one way must arrive
				defer conn.Close()
				all := new(bytes.Buffer)
				_, _ = all.ReadFrom(conn)
				fmt.Fprintf(conn, "%d bytes", all.Len())
			}()
		}
	}()
	free := func() string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		_, port, _ := net.SplitHostPort(l.Addr().String())
		return port
	}
	ask := func(t *testing.T, port string) {
		t.Helper()
		var answer string
		await(t, "the forwarded port answers", func() bool {
			conn, err := net.Dial("tcp", "127.0.0.1:"+port)
			if err != nil {
				return false
			}
			defer conn.Close()
			all := new(bytes.Buffer)
			_, _ = conn.Write(make([]byte, 1<<20))
			_ = conn.(*net.TCPConn).CloseWrite()
			_, _ = all.ReadFrom(conn)
			answer = all.String()
			return true
		})
		if answer != "1048576 bytes" {
			t.Errorf("the answer was %q, want that all bytes arrived", answer)
		}
	}
	for name, flag := range map[string]string{"local": "-L", "remote": "-R"} {
		t.Run(name, func(t *testing.T) {
			port := free()
			c := exec.CommandContext(t.Context(), "ssh", "-F", filepath.Join(w.dir, "config"), "-N", "-o", "ExitOnForwardFailure=yes", flag, port+":"+echo.Addr().String(), "node-1")
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { c.Process.Kill(); c.Wait() }()
			ask(t, port)
		})
	}
	t.Run("a jump through the machine", func(t *testing.T) {
		out, code := w.client(t, "ssh", "-o", "ProxyCommand=ssh -F "+filepath.Join(w.dir, "config")+" -W 127.0.0.1:"+w.port+" node-1", "node-1", "echo jumped")
		if code != 0 || out != "jumped\n" {
			t.Errorf("exited with %d and printed %q", code, out)
		}
	})
	t.Run("sessions that share a connection", func(t *testing.T) {
		socket := filepath.Join(w.home, "mux")
		args := []string{"-o", "ControlMaster=auto", "-o", "ControlPersist=5", "-o", "ControlPath=" + socket, "node-1"}
		for range 3 {
			if out, code := w.client(t, "ssh", append(args, "echo shared")...); code != 0 || !strings.Contains(out, "shared") {
				t.Fatalf("exited with %d and printed %q", code, out)
			}
		}
		w.client(t, "ssh", "-o", "ControlPath="+socket, "-O", "exit", "node-1")
	})
}

func TestOtherKeysAreRefusedAndCounted(t *testing.T) {
	w := newWorld(t)
	stranger := t.TempDir()
	if err := MakeKeys(stranger); err != nil {
		t.Fatal(err)
	}
	keys, err := ReadKeys(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	w.do(t, "true")
	w.configure(t, "config", filepath.Join(stranger, userKeyFile), keys)
	for range 3 {
		if out, code := w.client(t, "ssh", "node-1", "true"); code != 255 || !strings.Contains(out, "Permission denied") {
			t.Errorf("exited with %d and printed %q, want 255 and that permission is denied", code, out)
		}
	}
	conn, err := net.Dial("tcp", "127.0.0.1:"+w.port) // a gate that checks whether the port is open
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	// A client may have its answer before the server counts the connection.
	var refused []Event
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		w.recorder.count()
		refused = slices.DeleteFunc(w.events(t), func(e Event) bool { return e.Kind != "refused" })
		if len(refused) > 0 && refused[0].Count >= 3 || time.Now().After(deadline) {
			break
		}
	}
	if len(refused) != 1 || refused[0].Count != 3 || refused[0].From != "node-0" || !strings.HasPrefix(refused[0].Message, "to author with the key SHA256:") {
		t.Errorf("refused are %+v, want 3 connections from node-0 and their key", refused)
	}
}

// Many refused connections do not fill the disk, and all of them are counted.
func TestManyRefusalsAreFewLines(t *testing.T) {
	var lines bytes.Buffer
	r := NewRecorder("m1", nil, &lines)
	for i := range 1000 {
		r.refused(&net.TCPAddr{IP: net.IPv4(10, 0, byte(i%100), 1), Port: 1000 + i}, "without a key")
	}
	r.count()
	if n := strings.Count(lines.String(), "\n"); n > maxStrangers*6+20 {
		t.Errorf("1000 connections from 100 addresses take %d lines", n)
	}
	events, err := ReadRecord(&lines)
	if err != nil {
		t.Fatal(err)
	}
	all, others := 0, 0
	for _, e := range events {
		all += e.Count
		if e.From == otherStrangers {
			others = e.Count
		}
	}
	if all != 1000 || others != 360 || len(events) != maxStrangers+1 {
		t.Errorf("%d events count %d connections, %d of them from addresses that are not told apart; want 65, 1000 and 360", len(events), all, others)
	}
}

func TestAHundredSessionsAtOnce(t *testing.T) {
	w := newWorld(t)
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			if out, code := w.client(t, "ssh", "node-1", fmt.Sprintf("sleep 1; echo session %d", i)); code != 0 || out != fmt.Sprintf("session %d\n", i) {
				t.Errorf("session %d exited with %d and printed %q", i, code, out)
			}
		})
	}
	all.Wait()
	ended := 0
	for _, e := range w.events(t) {
		if e.Kind == "session" && e.ExitCode != nil {
			ended++
		}
	}
	if ended != 100 {
		t.Errorf("%d sessions are recorded with their end, want 100", ended)
	}
}

func TestSessionsAreRecorded(t *testing.T) {
	w := newWorld(t)
	before := time.Now()
	w.do(t, "sleep 0.3")
	w.client(t, "ssh", "node-1", "exit 5")
	w.client(t, "scp", filepath.Join(w.dir, "known_hosts"), "node-1:")
	events := w.events(t)
	if len(events) != 3 {
		t.Fatalf("%d events are recorded, want 3: %+v", len(events), events)
	}
	for i, want := range []struct {
		what, command string
		code          int
	}{{"exec", "sleep 0.3", 0}, {"exec", "exit 5", 5}, {"sftp", "", 0}} {
		e := events[i]
		if e.What != want.what || e.Command != want.command || e.ExitCode == nil || *e.ExitCode != want.code || e.Machine != "node-1" || e.From != "node-0" {
			t.Errorf("event %d is %+v, want %+v from node-0 on node-1", i, e, want)
		}
		if e.BeginUnixNanos < before.UnixNano() || e.EndUnixNanos < e.BeginUnixNanos {
			t.Errorf("event %d lasts from %d to %d", i, e.BeginUnixNanos, e.EndUnixNanos)
		}
	}
	if took := time.Duration(events[0].EndUnixNanos - events[0].BeginUnixNanos); took < 300*time.Millisecond || took > 5*time.Second {
		t.Errorf("the first session took %v, want its 0.3 s and a little more", took)
	}
}

func (w *world) events(t testing.TB) []Event {
	t.Helper()
	time.Sleep(100 * time.Millisecond) // the client gets the answer first
	file, err := os.Open(w.record)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	events, err := ReadRecord(file)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// sums lists the files of a tree with their modes and contents.
func sums(t testing.TB, root string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.Walk(root, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		fmt.Fprintf(&all, "%s %v %x\n", strings.TrimPrefix(path, root), info.Mode()&0o111 != 0, sha256.Sum256(content))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

func await(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(15 * time.Second); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after 15 s it still does not hold that %s", what)
		}
	}
}

func awaitPID(t testing.TB, file string) (pid string) {
	t.Helper()
	await(t, "the process wrote its number", func() bool {
		text, _ := os.ReadFile(file)
		pid = strings.TrimSpace(string(text))
		return pid != ""
	})
	return pid
}

// end kills a process that a test has left behind.
func end(pid string) {
	if n, err := strconv.Atoi(pid); err == nil {
		_ = syscall.Kill(n, syscall.SIGKILL)
	}
}

// runs reports whether a process exists and is not a zombie.
func runs(pid string) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
