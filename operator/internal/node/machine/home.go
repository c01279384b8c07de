package machine

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/cpu"

	"assay.dev/assay/operator/internal/node/protocol"
)

// The files of a machine's home that ssh reads. Our settings are in files with names of our own, so
// that the files of an image stay.
const (
	clientKeyFile    = "assay_ed25519"
	clientConfigFile = "assay_config"
)

// SetUp prepares the files of a machine's user, from inside the machine's own image and before the
// machine starts. It copies the image's home directory to a volume that the user may write to. It
// also writes the files of /etc that name the user.
type SetUp struct {
	// User and Home of the machine; UID and GID of its processes.
	User, Home string
	UID, GID   int
	// HomeVolume is the path of the volume that will be the home directory. Etc is the directory
	// for passwd, group and a hosts file that the machine fills.
	HomeVolume, Etc string
	// Root of the image: / except in tests.
	Root string
}

// Run sets up.
func (s SetUp) Run() error {
	from := filepath.Join(s.Root, s.Home)
	switch info, err := os.Stat(from); {
	case errors.Is(err, fs.ErrNotExist): // the image has no such home
	case err != nil:
		return fmt.Errorf("look at %s in the image: %w", s.Home, err)
	case !info.IsDir():
		return fmt.Errorf("%s is no directory in the image", s.Home)
	default:
		if err := copyTree(from, s.HomeVolume); err != nil {
			return fmt.Errorf("copy %s from the image: %w", s.Home, err)
		}
	}
	passwd, err := s.known("passwd", fmt.Sprintf("%s:x:%d:%d::%s:%s", s.User, s.UID, s.GID, s.Home, ShellIn(s.Root)), s.User)
	if err != nil {
		return err
	}
	group, err := s.known("group", fmt.Sprintf("%s:x:%d:", s.User, s.GID), s.User)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.Etc, 0o755); err != nil {
		return fmt.Errorf("make %s: %w", s.Etc, err)
	}
	for name, content := range map[string][]byte{"passwd": passwd, "group": group, "hosts": hostsFile(nil)} {
		if err := overwrite(filepath.Join(s.Etc, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// EmptyDirectories removes the content of directories.
func EmptyDirectories(dirs ...string) error {
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return fmt.Errorf("empty the shared directory %s: %w", dir, err)
		}
		for _, e := range entries {
			if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
				return fmt.Errorf("empty the shared directory %s: %w", dir, err)
			}
		}
	}
	return nil
}

// known is a file of /etc with one more line at its beginning, so that look-ups of the number find
// that line first. It leaves out the image's own line of the same name.
func (s SetUp) known(file, line, name string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(s.Root, "etc", file))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read /etc/%s in the image: %w", file, err)
	}
	out := bytes.NewBufferString(line + "\n")
	for old := range strings.Lines(string(text)) {
		if !strings.HasPrefix(old, name+":") {
			out.WriteString(strings.TrimSuffix(old, "\n") + "\n")
		}
	}
	return out.Bytes(), nil
}

// ShellIn is the shell of commands in an image: bash if the image has it.
func ShellIn(root string) string {
	for _, shell := range []string{"/bin/bash", "/usr/bin/bash"} {
		if info, err := os.Stat(filepath.Join(root, shell)); err == nil && info.Mode()&0o111 != 0 {
			return shell
		}
	}
	return "/bin/sh"
}

// copyTree copies directories, files, symbolic links, and modes. Files and directories keep their
// times, so that make does not rebuild the results of set-up.
func copyTree(from, to string) error {
	var dirs []func() error // inner directories last: a new entry changes the time of its directory
	err := filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, below)
		info, err := entry.Info()
		if err != nil {
			return err
		}
		switch {
		case entry.IsDir():
			if err := os.Mkdir(target, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
			dirs = append(dirs, func() error { return os.Chtimes(target, time.Time{}, info.ModTime()) })
			if below == "." {
				dirs = nil // the volume may belong to another user, and its mode is right already
				return nil
			}
			return os.Chmod(target, info.Mode().Perm()|0o700)
		case entry.Type() == fs.ModeSymlink:
			link, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(link, target)
		case entry.Type().IsRegular():
			return errors.Join(copyFile(path, target, info.Mode().Perm()|0o600), os.Chtimes(target, time.Time{}, info.ModTime()))
		}
		return nil // sockets, devices
	})
	for _, setTime := range slices.Backward(dirs) {
		err = errors.Join(err, setTime())
	}
	return err
}

func copyFile(from, to string, mode fs.FileMode) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Chmod(mode), target.Close())
}

// overwrite writes a file in place: a mounted file cannot be replaced by a rename.
func overwrite(path string, content []byte, mode fs.FileMode) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, mode)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = file.Write(content)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// hostsFile is /etc/hosts with all machines.
func hostsFile(hosts []protocol.MachineHost) []byte {
	out := bytes.NewBufferString("127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n")
	for _, h := range hosts {
		fmt.Fprintf(out, "%s\t%s\n", h.IP, strings.Join(h.Names, " "))
	}
	return out.Bytes()
}

// writeHome writes the files in ~/.ssh that OpenSSH's client, and libraries in its place, look for.
func (c *Config) writeHome(keys Keys) error {
	dir := filepath.Join(c.Home, ".ssh")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make %s; the machine's user must be able to write to its home: %w", dir, err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return fmt.Errorf("close %s to others, as ssh wants it: %w", dir, err)
	}
	public := []byte(authorized(keys.User.PublicKey()))
	for name, content := range map[string][]byte{clientKeyFile: keys.UserPEM, clientKeyFile + ".pub": public, clientConfigFile: c.clientConfig(ownConfig(dir))} {
		if err := overwrite(filepath.Join(dir, name), content, 0o600); err != nil {
			return err
		}
	}
	// Scripts and libraries look for the usual names, unless the image has keys of its own there.
	for name, content := range map[string][]byte{"id_ed25519": keys.UserPEM, "id_ed25519.pub": public} {
		if _, err := os.Lstat(filepath.Join(dir, name)); errors.Is(err, fs.ErrNotExist) {
			if err := overwrite(filepath.Join(dir, name), content, 0o600); err != nil {
				return err
			}
		}
	}
	for _, add := range []struct {
		file  string
		lines []string
		front bool
	}{
		{"config", []string{"Include " + clientConfigFile}, true},
		{"known_hosts", c.knownHosts(keys.Host.PublicKey()), false},
		{"authorized_keys", []string{strings.TrimSpace(string(public))}, false},
	} {
		if err := addLines(filepath.Join(dir, add.file), add.lines, add.front); err != nil {
			return err
		}
	}
	return nil
}

// ownConfig is the image's configuration of ssh, for all users and for the machine's user.
func ownConfig(dir string) string {
	var all strings.Builder
	for _, path := range []string{filepath.Join(dir, "config"), "/etc/ssh/ssh_config"} {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // most images have none
		}
		all.Write(append(text, '\n'))
	}
	return all.String()
}

// preferred are the ciphers of OpenSSH since version 6.5, the fastest first. Clients before version
// 10 prefer ChaCha20, which takes most of a copy's time here, since Go has no fast code for it on
// amd64.
const preferred = "aes128-gcm@openssh.com,aes256-gcm@openssh.com,chacha20-poly1305@openssh.com,aes128-ctr,aes192-ctr,aes256-ctr"

// ciphersOf returns a line of a client's configuration with the preferred ciphers. It returns no
// line if the image's own configuration names ciphers, or if the processor has no AES.
func ciphersOf(own string) string {
	named := slices.ContainsFunc(strings.Split(own, "\n"), func(line string) bool {
		name, _, _ := strings.Cut(strings.ReplaceAll(strings.TrimSpace(line), "=", " "), " ")
		return strings.EqualFold(name, "Ciphers")
	})
	if named || !(cpu.X86.HasAES && cpu.X86.HasPCLMULQDQ) && !(cpu.ARM64.HasAES && cpu.ARM64.HasPMULL) {
		return ""
	}
	return "  Ciphers " + preferred + "\n"
}

// clientConfig makes plain "ssh node-1" reach a machine as the machine's user. own is the image's
// own configuration.
func (c *Config) clientConfig(own string) []byte {
	out := bytes.NewBufferString("# The machines of the trial. Assay writes this file.\n")
	for _, h := range c.Hosts {
		fmt.Fprintf(out, "Host %s %s\n  HostName %s\n  User %s\n  IdentityFile ~/.ssh/%s\n", strings.Join(h.Names, " "), h.IP, h.IP, c.User, clientKeyFile)
		if c.Port != defaultPort {
			fmt.Fprintf(out, "  Port %d\n", c.Port)
		}
	}
	out.WriteString("Host *\n" + ciphersOf(own))
	return out.Bytes()
}

// knownHosts are the machines by every name and address.
func (c *Config) knownHosts(key ssh.PublicKey) []string {
	var lines []string
	for _, h := range c.Hosts {
		for _, name := range append(slices.Clone(h.Names), h.IP) {
			if c.Port != defaultPort {
				name = fmt.Sprintf("[%s]:%d", name, c.Port)
			}
			lines = append(lines, name+" "+strings.TrimSpace(authorized(key)))
		}
	}
	return lines
}

// addLines adds to a file those of the lines that it does not have.
func addLines(path string, lines []string, front bool) error {
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read %s: %w", path, err)
	}
	there := map[string]bool{}
	for scan := bufio.NewScanner(bytes.NewReader(old)); scan.Scan(); {
		there[scan.Text()] = true
	}
	var added []string
	for _, line := range lines {
		if !there[line] {
			added = append(added, line+"\n")
		}
	}
	if len(added) == 0 {
		return nil
	}
	text := strings.Join(added, "")
	switch {
	case front:
		text += string(old)
	case len(old) > 0 && old[len(old)-1] != '\n':
		text = string(old) + "\n" + text
	default:
		text = string(old) + text
	}
	return overwrite(path, []byte(text), 0o600)
}
