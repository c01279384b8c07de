// Command runc-bounded is an OCI runtime for machines whose root user does not
// have every capability. It removes from the container's specification what
// this machine cannot grant, then becomes the real runc:
//
//   - capabilities outside the bounding set,
//   - without CAP_SYS_RESOURCE: resource limits above the present hard limits,
//     and an oom_score_adj below the present one.
//
// It is needed because `docker run --privileged` (which is how kind starts its
// nodes) asks for every capability the kernel knows, and runc fails if one is
// missing. Where none is missing it changes nothing. What it removes is missing
// inside the containers too: a node cannot lower oom_score_adj, for example.
//
// Docker calls it as its runtime (see hack/cluster/docker.sh), with the command
// line of runc; only create, run and exec carry a specification.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// capNames has the names of the capabilities at their number in linux/capability.h.
var capNames = strings.Fields(`CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP
LINUX_IMMUTABLE NET_BIND_SERVICE NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO
SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE
AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON
BPF CHECKPOINT_RESTORE`)

// rlimits has the numbers of linux/resource.h (the same on amd64 and arm64).
var rlimits = map[string]int{
	"RLIMIT_CPU": 0, "RLIMIT_FSIZE": 1, "RLIMIT_DATA": 2, "RLIMIT_STACK": 3, "RLIMIT_CORE": 4, "RLIMIT_RSS": 5,
	"RLIMIT_NPROC": 6, "RLIMIT_NOFILE": 7, "RLIMIT_MEMLOCK": 8, "RLIMIT_AS": 9, "RLIMIT_LOCKS": 10,
	"RLIMIT_SIGPENDING": 11, "RLIMIT_MSGQUEUE": 12, "RLIMIT_NICE": 13, "RLIMIT_RTPRIO": 14, "RLIMIT_RTTIME": 15,
}

// limits is what this machine can grant.
type limits struct {
	caps     map[string]bool
	rlimit   func(resource int) (max uint64, err error)
	oomScore int64
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "runc-bounded:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	runc, err := exec.LookPath("runc")
	if err != nil {
		return err
	}
	if file, field := specification(args); file != "" {
		l, err := current()
		if err != nil {
			return err
		}
		if err := rewrite(file, field, l); err != nil {
			return fmt.Errorf("bound %s: %w", file, err)
		}
	}
	return syscall.Exec(runc, append([]string{runc}, args...), os.Environ())
}

// specification returns the file that the command reads and the field of it
// that is the process ("" for the whole file); no file for other commands.
func specification(args []string) (file, field string) {
	command := ""
	for i, a := range args {
		switch {
		case command == "" && (a == "create" || a == "run" || a == "exec"):
			command = a
		case command == "exec":
			if v, ok := option(args[i:], "--process", "-p"); ok {
				return v, ""
			}
		case command != "":
			if v, ok := option(args[i:], "--bundle", "-b"); ok {
				return filepath.Join(v, "config.json"), "process"
			}
		}
	}
	if command == "create" || command == "run" {
		return "config.json", "process" // runc's default bundle is the working directory
	}
	return "", ""
}

func option(args []string, names ...string) (string, bool) {
	for _, n := range names {
		if args[0] == n && len(args) > 1 {
			return args[1], true
		}
		if v, ok := strings.CutPrefix(args[0], n+"="); ok {
			return v, true
		}
	}
	return "", false
}

func current() (limits, error) {
	l := limits{caps: map[string]bool{}, rlimit: func(r int) (uint64, error) {
		var cur syscall.Rlimit
		err := syscall.Getrlimit(r, &cur)
		return cur.Max, err
	}}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return l, err
	}
	_, after, _ := strings.Cut(string(status), "CapBnd:")
	mask, _, _ := strings.Cut(after, "\n")
	set, err := strconv.ParseUint(strings.TrimSpace(mask), 16, 64)
	if err != nil {
		return l, fmt.Errorf("read the bounding set: %w", err)
	}
	for i, name := range capNames {
		l.caps["CAP_"+name] = set&(1<<i) != 0
	}
	score, err := os.ReadFile("/proc/self/oom_score_adj")
	if err != nil {
		return l, err
	}
	l.oomScore, err = strconv.ParseInt(strings.TrimSpace(string(score)), 10, 64)
	return l, err
}

// rewrite keeps every field it does not know, and numbers as they were written.
func rewrite(file, field string, l limits) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var spec map[string]any
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&spec); err != nil {
		return err
	}
	process := spec
	if field != "" {
		process, _ = spec[field].(map[string]any)
	}
	l.bound(process)
	if b, err = json.Marshal(spec); err != nil {
		return err
	}
	return os.WriteFile(file, b, 0o600)
}

func (l limits) bound(process map[string]any) {
	sets, _ := process["capabilities"].(map[string]any)
	for set, v := range sets {
		asked, _ := v.([]any)
		kept := []any{}
		for _, c := range asked {
			if name, _ := c.(string); l.caps[name] {
				kept = append(kept, c)
			}
		}
		sets[set] = kept
	}
	if l.caps["CAP_SYS_RESOURCE"] {
		return
	}
	wanted, _ := process["rlimits"].([]any)
	for _, w := range wanted {
		limit, _ := w.(map[string]any)
		resource, known := rlimits[fmt.Sprint(limit["type"])]
		if !known {
			continue
		}
		ceiling, err := l.rlimit(resource)
		if err != nil {
			continue
		}
		for _, k := range []string{"hard", "soft"} {
			n, _ := limit[k].(json.Number)
			if v, err := strconv.ParseUint(n.String(), 10, 64); err == nil && v > ceiling {
				limit[k] = json.Number(strconv.FormatUint(ceiling, 10))
			}
		}
	}
	if n, ok := process["oomScoreAdj"].(json.Number); ok {
		if v, err := n.Int64(); err == nil && v < l.oomScore {
			process["oomScoreAdj"] = l.oomScore
		}
	}
}
