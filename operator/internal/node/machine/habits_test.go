package machine

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// habitsVariable names a Python environment with the tools that authors install from PyPI. The
// lane's preparation makes it: hack/test/prepare.sh.
const habitsVariable = "ASSAY_HABITS"

// habit is a way in which authors reach other machines from a script.
type habit struct {
	// script for bash in the home directory of m0; it must print want.
	script, want string
	// pypi: it needs the Python environment, at /mnt.
	pypi bool
	// programs that it runs on this machine.
	programs []string
}

var habits = map[string]habit{
	"tmux": {script: `ssh m1 "tmux new-session -d -s work 'echo up > ~/tmux.out; sleep 100'"
		until ssh m1 test -s tmux.out; do sleep 0.1; done
		ssh m1 'cat tmux.out; tmux ls | cut -d: -f1; tmux kill-session -t work'`, want: "up\nwork\n", programs: []string{"tmux"}},
	"ssh -f": {script: `ssh -f m1 'sleep 0.3; echo later > f.out'
		until ssh m1 test -s f.out; do sleep 0.1; done; ssh m1 cat f.out`, want: "later\n"},
	"rsync": {script: `mkdir -p tree/a && echo one > tree/a/1 && ln -sfn a tree/b
		rsync -a tree/ m1:copy/ && rsync -a --delete m1:copy/ back/ && diff -r tree back && echo same`, want: "same\n", programs: []string{"rsync"}},
	"scp -r": {script: `mkdir -p many/a && echo one > many/a/1 && echo two > many/2
		scp -qr many m2: && scp -qr m2:many again && diff -r many again && echo same`, want: "same\n"},
	"a jump through the control machine": {script: `ssh m1 "ssh -J m0 m2 'echo \$HOSTNAME'"; ssh m1 "ssh m2 'echo \$HOSTNAME'"`, want: "m2\nm2\n"},
	"hosts by IP":                        {script: `for ip in 10.213.7.2 10.213.7.3; do ssh $ip 'echo $HOSTNAME'; done`, want: "m1\nm2\n"},
	"daemons that stay": {script: `ssh m1 'nohup sleep 321 > /dev/null 2>&1 & setsid sleep 322 > /dev/null 2>&1 < /dev/null &'
		sleep 0.3; ssh m1 'pgrep -c -f "^sleep 32[12]"; pkill -f "^sleep 32[12]"'`, want: "2\n", programs: []string{"pgrep"}},
	"a script by standard input": {script: `ssh m1 bash -s -- two <<'S'
echo "$1 on $HOSTNAME"
S`, want: "two on m1\n"},
	"a loop over a file of hosts": {script: `printf 'm1\nm2\n' > list; while read -r h; do ssh -n "$h" 'echo $HOSTNAME'; done < list`, want: "m1\nm2\n"},
	"many at once, and wait":      {script: `for m in m1 m2 m1 m2; do ssh $m 'sleep 0.2; echo $HOSTNAME' >> out & done; wait; sort out`, want: "m1\nm1\nm2\nm2\n"},
	"tar by a pipe": {script: `mkdir -p some && echo one > some/1 && tar cf - some | ssh m1 'mkdir -p there && tar xf - -C there' && ssh m1 'cat there/some/1'`,
		want: "one\n", programs: []string{"tar"}},
	"a connection that commands share": {script: `o="-o ControlPath=$PWD/s-%h"; ssh $o -o ControlMaster=yes -Nf m1 && ssh $o m1 'echo one' && scp -q $o out.txt m1:in.txt 2>/dev/null; ssh $o m1 'echo two'; ssh $o -O exit m1 2>/dev/null`,
		want: "one\ntwo\n"},
	"sftp with a batch":         {script: `echo text > a; printf 'put a b\nget b c\n' | sftp -q -b - m1 > /dev/null && cat c`, want: "text\n", programs: []string{"sftp"}},
	"parallel-ssh, the program": {script: `printf 'm1\nm2\n' > list && parallel-ssh -h list -i 'echo at $HOSTNAME' | grep '^at' | sort`, want: "at m1\nat m2\n", programs: []string{"parallel-ssh"}},
	"parallel-ssh, the library": {pypi: true, script: `/mnt/bin/python3 - <<'P'
import os
from pssh.clients import ParallelSSHClient
c = ParallelSSHClient(['m1', 'm2'], user=os.environ['USER'], pkey='~/.ssh/id_ed25519')
out = c.run_command('echo at $HOSTNAME', stop_on_errors=True)
c.join(out)
for o in out: print(*o.stdout, o.exit_code)
P`, want: "at m1 0\nat m2 0\n"},
	"paramiko": {pypi: true, script: `echo hello > p.txt; /mnt/bin/python3 - <<'P'
import os, paramiko
c = paramiko.SSHClient()
c.load_system_host_keys()
c.connect('m1', username=os.environ['USER'])
_, out, err = c.exec_command('cat; echo oops >&2; exit 3')
out.channel.shutdown_write()
print(out.read(), err.read(), out.channel.recv_exit_status())
s = c.open_sftp(); s.put('p.txt', 'q.txt'); print(s.open('q.txt').read(), s.stat('q.txt').st_size); s.close()
ch = c.invoke_shell(); ch.send(b'exit 4\n'); print(ch.recv_exit_status())
P`, want: "b'' b'oops\\n' 3\nb'hello\\n' 6\n4\n"},
	"fabric": {pypi: true, script: `echo hello > f.txt; /mnt/bin/python3 - <<'P'
from fabric import Connection, ThreadingGroup
c = Connection('m1')
c.put('f.txt', 'g.txt')
print(c.run('cat g.txt; echo $THREADS', hide=True, env={'THREADS': '4'}).stdout.split())
print(c.run('exit 5', warn=True, hide=True).exited)
print(sorted(r.stdout.strip() for r in ThreadingGroup('m1', 'm2').run('echo $HOSTNAME', hide=True).values()))
P`, want: "['hello', '4']\n5\n['m1', 'm2']\n"},
	"Ansible": {pypi: true, script: `export ANSIBLE_LOCALHOST_WARNING=0 ANSIBLE_NOCOLOR=1
		printf 'm1\nm2\n[all:vars]\nansible_python_interpreter=/usr/bin/python3\n' > inventory
		printf '#!/bin/bash\nsetsid nohup sleep 323 > /dev/null 2>&1 < /dev/null &\nsleep 0.3\necho started\n' > service.sh; echo text > a.txt
		run() { /mnt/bin/python3 /mnt/bin/ansible -i inventory all "$@" 2>&1; }
		run -m ping | grep -c '"ping": "pong"'
		run -m copy -a "src=a.txt dest=b.txt" | grep -c CHANGED
		run -m shell -a 'cat b.txt | tr a-z A-Z' | grep -c TEXT
		run -m script -a service.sh | grep -c '"stdout": "started'
		ssh m1 'pkill -f "^sleep 323" && echo ran'`, want: "2\n2\n2\n2\nran\n", programs: []string{"pkill"}},
}

// Each way in which authors reach their machines works, for an ordinary user and for root.
func TestHabitsOfArtifacts(t *testing.T) {
	for user, uid := range map[string]int{"author": 65532, "root": 0} {
		t.Run(user, func(t *testing.T) {
			l := newLab(t, 3, nil)
			root := image(t)
			for _, b := range l.machines {
				b.config.User, b.uid, b.mount = user, uid, os.Getenv(habitsVariable)
				b.boot(root)
			}
			for name, h := range habits {
				t.Run(name, func(t *testing.T) {
					if h.pypi && os.Getenv(habitsVariable) == "" {
						t.Skipf("the tools of PyPI are not here: %s names no Python environment", habitsVariable)
					}
					for _, p := range h.programs {
						if _, err := exec.LookPath(p); err != nil {
							t.Skipf("there is no %s on this machine: %v", p, err)
						}
					}
					dir := "habit-" + strings.NewReplacer(" ", "-", ",", "").Replace(name)
					out, code := l.machines[0].do("mkdir -p " + dir + " && cd " + dir + " && export USER=" + user + "\n" + h.script)
					if code != 0 || out != h.want {
						t.Errorf("it exits with %d and prints\n%s\nwant\n%s", code, out, h.want)
					}
				})
			}
		})
	}
}
