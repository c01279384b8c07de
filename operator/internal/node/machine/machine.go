package machine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"assay.dev/assay/operator/internal/node/protocol"
)

// defaultPort of SSH.
const defaultPort = 22

// RecordFile is the name of a machine's record among its kept files.
const RecordFile = "machine.jsonl"

// Config of one machine.
type Config protocol.MachineConfig

// ReadConfig reads the configuration of a machine.
func ReadConfig(path string) (*Config, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the machine's configuration: %w", err)
	}
	c := &Config{}
	if err := json.Unmarshal(text, c); err != nil {
		return nil, fmt.Errorf("read the machine's configuration %s: %w", path, err)
	}
	return c, nil
}

// Run is a machine's life. It returns when ctx is done. After a script has ended, it returns the
// script's exit code. inherited is the environment of the container.
func (c *Config) Run(ctx context.Context, inherited []string, stdout, stderr io.Writer) (code int, err error) {
	keys, err := c.writeFiles()
	if err != nil {
		return 1, err
	}
	record, err := openRecord(filepath.Join(c.OutDir, RecordFile))
	if err != nil {
		return 1, fmt.Errorf("open the machine's record: %w", err)
	}
	defer record.Close()
	names := map[string]string{}
	for _, h := range c.Hosts {
		names[h.IP] = h.Names[0]
	}
	recorder := NewRecorder(c.Name, names, record)
	recorder.started(Event{Kind: "start", Pod: podOf(inherited), Message: setUpOf("/")})
	env, shell := c.environment(inherited), ShellIn("/")
	c.boot(inherited, c.userEnv(env, shell), recorder, stdout, stderr)
	server := NewServer(ServerOptions{
		HostKey: keys.Host, AuthorizedKey: keys.User.PublicKey(), User: c.User, Home: c.Home, Shell: shell, Env: env, Recorder: recorder, Record: record.Name(),
	})
	listener, err := net.Listen("tcp", ":"+strconv.Itoa(c.Port))
	if err != nil {
		return 1, fmt.Errorf("answer SSH on port %d: %w", c.Port, err)
	}
	serving, stop := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- server.Serve(serving, listener) }()
	defer func() {
		stop()
		err = errors.Join(err, <-served)
	}()
	marks, err := newMarker(c)
	if err != nil {
		return 1, err
	}
	defer marks.close()
	marks.followAll(serving)
	fmt.Fprintf(stdout, "assay: %s answers SSH on port %d\n", c.Name, c.Port)
	if c.Script == nil {
		<-ctx.Done()
		return 0, nil
	}
	return c.runScript(ctx, keys, marks, recorder, c.userEnv(env, shell), stdout, stderr)
}

// runScript runs the script to its end and hands over its results.
func (c *Config) runScript(ctx context.Context, keys Keys, marks *marker, recorder *Recorder, env []string, stdout, stderr io.Writer) (code int, err error) {
	script := (*Script)(c.Script)
	out, drained, err := marks.ofScript(stdout, stderr)
	if err != nil {
		return 1, err
	}
	connections := watchConnections(c.Port, recorder)
	code, err = script.run(ctx, c, env, recorder, out)
	drained()
	connections.close()
	err = errors.Join(err, script.handOver(c, keys, recorder))
	if err == nil && code == 0 {
		if left := EmptyDirectories(c.Shared...); left != nil { // leftovers do not affect the trial
			fmt.Fprintf(stderr, "assay: %v\n", left)
		}
	}
	return code, err
}

// writeFiles writes the files in the home directory and the names of all machines. It returns the
// trial's keys.
func (c *Config) writeFiles() (Keys, error) {
	keys, err := ReadKeys(c.Keys)
	if err != nil {
		return keys, err
	}
	if err := c.writeHome(keys); err != nil || c.HostsFile == "" {
		return keys, err
	}
	return keys, overwrite(c.HostsFile, hostsFile(c.Hosts), 0o644)
}

// podOf is the name of the machine's pod.
func podOf(inherited []string) string {
	for _, v := range inherited {
		if name, is := strings.CutPrefix(v, "ASSAY_POD="); is {
			return name
		}
	}
	return ""
}

// environment of sessions: that of the container, without the variables that name the pod.
func (c *Config) environment(inherited []string) []string {
	var env []string
	for _, v := range inherited {
		name, _, _ := strings.Cut(v, "=")
		if strings.HasPrefix(name, "ASSAY_") || name == "HOSTNAME" || name == "HOME" || name == "PWD" || name == "OLDPWD" || name == "SHLVL" || name == "_" {
			continue
		}
		env = append(env, v)
	}
	return append(append(env, "HOSTNAME="+c.Name), c.Env...)
}
