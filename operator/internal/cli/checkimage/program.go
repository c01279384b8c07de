package checkimage

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// finding is what the check knows of one command.
type finding struct {
	command
	field     string // of what is executed
	program   string // as the command names it
	path      string // where it is in the image; empty: nowhere
	loader    string // the dynamic loader that loads it, or its interpreter; empty: none
	loads     string // what the loader loads: the program, or a script's interpreter
	libraries int
	missing   []string
	notes     []string
}

func (f *finding) lacks(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(f.missing, text) {
		f.missing = append(f.missing, text)
	}
}

func (f *finding) note(format string, args ...any) {
	f.notes = append(f.notes, fmt.Sprintf(format, args...))
}

func (f *finding) summary() string {
	switch {
	case f.path == "":
		return f.program
	case f.path != f.program:
		return fmt.Sprintf("%s (%s), %d libraries", f.program, f.path, f.libraries)
	}
	return fmt.Sprintf("%s, %d libraries", f.program, f.libraries)
}

type checker struct {
	tree       *tree
	platform   *v1.Platform
	parameters map[string]any
}

// machines are the architectures of Go and of ELF files.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64, "386": elf.EM_386, "arm": elf.EM_ARM, "ppc64le": elf.EM_PPC64,
	"s390x": elf.EM_S390, "riscv64": elf.EM_RISCV, "loong64": elf.EM_LOONGARCH}

// imageNotes returns the notes about the image as a whole.
func (c *checker) imageNotes() []string {
	var out []string
	if p := c.tree.platform; p.OS != c.platform.OS || p.Architecture != c.platform.Architecture {
		out = append(out, fmt.Sprintf("the image says that it is of %s/%s; the nodes are %s/%s (--platform)", p.OS, p.Architecture, c.platform.OS, c.platform.Architecture))
	}
	return out
}

// check finds the program of a command and what it needs.
func (c *checker) check(cmd command) finding {
	f := finding{command: cmd, field: cmd.field}
	argv := make([]string, 0, len(cmd.argv))
	first := ""
	for i, word := range cmd.argv {
		text, err := rendered(word, c.parameters)
		if err != nil && first == "" {
			f.field, f.program = fmt.Sprintf("%s[%d]", cmd.field, i), word
			f.note("the name of the program follows from an experiment: it was not looked for")
			return f
		}
		if err != nil {
			text = word
		}
		if text == "" {
			continue // such an element is left out
		}
		if first == "" {
			first, f.field = text, fmt.Sprintf("%s[%d]", cmd.field, i)
		}
		argv = append(argv, text)
	}
	f.program = first
	if first == "" {
		f.lacks("every element of the command renders to nothing")
		return f
	}
	if c.tree.platform.Architecture != c.platform.Architecture || c.tree.platform.OS != c.platform.OS {
		f.lacks("the image is of %s/%s, and the nodes of %s/%s", c.tree.platform.OS, c.tree.platform.Architecture, c.platform.OS, c.platform.Architecture)
	}
	c.directories(&f)
	if at, err := c.resolve(&f, first); err != nil {
		f.lacks("%s %v", first, err)
	} else {
		f.path = at
		c.executable(&f, at, 0)
	}
	c.preloads(&f)
	c.shell(&f, argv)
	return f
}

// resolve finds a program by its path, or by PATH as the launcher does.
func (c *checker) resolve(f *finding, program string) (string, error) {
	if strings.Contains(program, "/") {
		if !path.IsAbs(program) {
			program = path.Join(c.workingDir(f), program)
		}
		return program, c.runnable(f, program)
	}
	dirs := c.searchPath(f)
	var last error
	for _, dir := range dirs {
		at := path.Join(dir, program)
		err := c.runnable(f, at)
		if err == nil {
			return at, nil
		}
		if !errors.Is(err, errMissing) {
			last = fmt.Errorf("at %s %w", at, err)
		}
	}
	if last != nil {
		return "", last
	}
	return "", fmt.Errorf("is in no directory of PATH (%s)", strings.Join(dirs, ":"))
}

// environment returns the environment of a command: the variables of the image, overridden by those
// of the System.
func (c *checker) environment(f *finding) map[string]string {
	env := map[string]string{}
	for _, e := range c.tree.config.Env {
		name, value, _ := strings.Cut(e, "=")
		env[name] = value
	}
	for name, value := range f.env {
		if text, err := rendered(value, c.parameters); err == nil {
			env[name] = text
		}
	}
	return env
}

func (c *checker) searchPath(f *finding) []string {
	value := c.environment(f)["PATH"]
	if value == "" {
		value = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" // what containerd sets
	}
	return slices.DeleteFunc(strings.Split(value, ":"), func(dir string) bool { return !path.IsAbs(dir) })
}

func (c *checker) workingDir(f *finding) string {
	for _, dir := range []string{f.workingDir, c.tree.config.WorkingDir} {
		if dir != "" {
			return clean(dir)
		}
	}
	return "/"
}

// runnable says why a user cannot execute a file.
func (c *checker) runnable(f *finding, name string) error {
	if f.mounted(name) {
		return nil
	}
	at, e, err := c.tree.find(name)
	switch {
	case err != nil:
		return err
	case e.kind == tar.TypeDir:
		return errors.New("is a directory")
	case e.kind != tar.TypeReg:
		return errors.New("is no file")
	case !e.mayExecute(f.user):
		return fmt.Errorf("cannot be executed by user %d: its mode is %04o, its owner %d", f.user, e.mode.Perm(), e.uid)
	}
	if dir := c.tree.closedDirectory(at, f.user); dir != "" {
		return fmt.Errorf("cannot be reached by user %d, who may not enter %s", f.user, dir)
	}
	return nil
}

// mounted reports whether a file is in a directory that the pod mounts over the image.
func (f *finding) mounted(name string) bool {
	return slices.ContainsFunc(f.mounts, func(m string) bool {
		return m != "" && (clean(name) == clean(m) || strings.HasPrefix(clean(name), clean(m)+"/"))
	})
}

// directories checks the directory in which the command starts, and those of the pod's files and
// volumes.
func (c *checker) directories(f *finding) {
	if dir := c.workingDir(f); dir != "/" && !f.mounted(dir) {
		if _, e, err := c.tree.find(dir); err != nil {
			f.lacks("the working directory %s %v", dir, err)
		} else if e.kind != tar.TypeDir {
			f.lacks("the working directory %s is no directory", dir)
		}
	}
	for _, m := range f.mounts {
		for dir := clean(m); dir != "/"; dir = path.Dir(dir) {
			if at, e, err := c.tree.find(dir); err == nil && e.kind != tar.TypeDir {
				f.lacks("nothing can be mounted at %s: %s is a file", m, at)
			}
		}
	}
}

// executable checks what the kernel needs to start a file: an interpreter, or an ELF file's loader
// and libraries.
func (c *checker) executable(f *finding, name string, depth int) {
	if f.mounted(name) {
		f.note("%s is in a directory that the pod adds: it was not looked at", name)
		return
	}
	at, e, err := c.tree.find(name)
	if err != nil {
		f.lacks("%s %v", name, err)
		return
	}
	head := make([]byte, 256)
	n, err := io.ReadFull(c.tree.reader(e), head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		f.lacks("%s cannot be read: %v", name, err)
		return
	}
	head = head[:n]
	switch {
	case bytes.HasPrefix(head, []byte("#!")):
		c.script(f, name, head[2:], depth)
	case bytes.HasPrefix(head, []byte(elf.ELFMAG)):
		f.loads = at
		c.elfProgram(f, at, e)
	default:
		f.lacks("%s is neither an ELF file nor a script that begins with #!", name)
	}
}

// maxInterpreters is how many interpreters may follow each other for one script, as in Linux.
const maxInterpreters = 4

func (c *checker) script(f *finding, name string, head []byte, depth int) {
	line, _, _ := bytes.Cut(head, []byte("\n"))
	words := strings.FieldsFunc(string(line), func(r rune) bool { return r == ' ' || r == '\t' })
	if len(words) == 0 || depth >= maxInterpreters {
		f.lacks("%s names no interpreter after #!, or too many in a row", name)
		return
	}
	interpreter := words[0]
	if strings.HasSuffix(interpreter, "\r") {
		f.lacks("%s has the line ends of Windows: the kernel looks for an interpreter whose name ends in one", name)
		return
	}
	if err := c.runnable(f, interpreter); err != nil {
		f.lacks("%s, the interpreter of %s, %v", interpreter, name, err)
		return
	}
	c.executable(f, interpreter, depth+1)
	if path.Base(interpreter) != "env" {
		return
	}
	for _, word := range words[1:] { // env finds the program that the script is for
		if strings.HasPrefix(word, "-") || strings.Contains(word, "=") {
			continue
		}
		at, err := c.resolve(f, word)
		if err != nil {
			f.lacks("%s, which %s starts by env, %v", word, name, err)
			return
		}
		c.executable(f, at, depth+1)
		return
	}
}

// preloads checks the libraries that LD_PRELOAD puts before all others. The loader ignores a
// missing one, so the program would run without it.
func (c *checker) preloads(f *finding) {
	for _, name := range strings.FieldsFunc(c.environment(f)["LD_PRELOAD"], func(r rune) bool { return r == ' ' || r == ':' }) {
		if !path.IsAbs(name) || f.mounted(name) {
			continue
		}
		at, e, err := c.tree.find(name)
		if err != nil {
			f.lacks("%s, which LD_PRELOAD names, %v", name, err)
			continue
		}
		c.libraries(f, at, e, nil)
	}
}

// shell looks at the words of a shell's command that look like programs.
func (c *checker) shell(f *finding, argv []string) {
	if !slices.Contains([]string{"sh", "bash", "dash", "ash"}, path.Base(f.program)) || len(argv) < 3 {
		return
	}
	at := slices.IndexFunc(argv[1:], func(w string) bool { return strings.HasPrefix(w, "-") && strings.HasSuffix(w, "c") })
	if at < 0 || at+2 >= len(argv) {
		return
	}
	script, given := argv[at+2], argv[at+3:]
	words := programsIn(script)
	if len(given) > 0 && path.IsAbs(given[0]) && !strings.Contains(given[0], "{{") {
		words[given[0]] = true // "$0" of the script
	}
	var found, not []string
	for _, word := range slices.Sorted(maps.Keys(words)) {
		if _, err := c.resolve(f, word); err != nil {
			not = append(not, word)
		} else {
			found = append(found, word)
		}
	}
	if len(found) > 0 {
		f.note("only the shell was checked; the image also has what looks like a program in its script: %s", strings.Join(found, ", "))
	}
	if len(not) > 0 {
		f.note("only the shell was checked; the image lacks what looks like a program in its script: %s", strings.Join(not, ", "))
	}
}
