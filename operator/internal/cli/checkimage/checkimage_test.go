package checkimage

import (
	"bytes"
	"compress/gzip"
	"debug/elf"
	"errors"
	"io"
	"log"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"assay.dev/assay/operator/internal/cli/session"
)

// systemText is a System with a command of each kind.
const systemText = `apiVersion: assay.dev/v1alpha1
kind: System
metadata: {name: made-up}
spec:
  description: For a test.
  parameters:
  - {name: program, type: String, default: server, doc: Which.}
  workloads: [{name: w}]
  prepare:
    outputPath: /keys
    container: {name: keys, image: example.org/made-up:v1, command: [/bin/sh, -c, 'make-keys /keys && /usr/bin/server --once']}
  replicas:
    count: "1"
    ports: [{name: peer, port: 7000}]
    containers:
    - {name: server, image: 'example.org/made-up:v1', command: ['/usr/bin/{{.Parameters.program}}', '{{.Self.Index}}'], workingDir: /srv}
    files: [{mountPath: /config, files: [{name: a, template: a}]}]
    ready: [{command: [probe]}]
  steps: [{name: load, runsOn: FirstReplica, command: [/usr/share/load]}]
  clients:
    containers: [{name: client, image: 'example.org/made-up:v1', command: [/usr/bin/client], env: [{name: LD_LIBRARY_PATH, value: /opt/lib}]}]
    results: {format: TransactionLines, source: Stdout}
  checks: [{name: right, runsOn: EveryReplica, command: [/usr/bin/server, check]}]
  roles: [{name: leader, command: [probe, leader]}]
`

const loader = "/lib64/ld-linux-x86-64.so.2"

// good has all that the System starts. /bin and /lib are links, as in Debian.
func good() map[string]member {
	return map[string]member{
		"bin": {link: "usr/bin"}, "lib": {link: "usr/lib"}, "lib64": {link: "/usr/lib64"}, "srv/": {},
		"usr/lib64/ld-linux-x86-64.so.2": {text: program(object{})},
		"usr/bin/sh":                     {text: program(object{loader: loader, needed: []string{"libc.so.6"}})},
		"usr/bin/server":                 {text: program(object{loader: loader, needed: []string{"libserver.so.1", "libc.so.6"}, run: "$ORIGIN/../lib/server"})},
		"usr/bin/client":                 {text: program(object{loader: loader, needed: []string{"libclient.so", "libcached.so.3"}})},
		"usr/bin/make-keys":              {text: "#!/bin/sh\n"}, "usr/local/bin/probe": {text: "#!/usr/bin/env -S server\n"},
		"usr/bin/env": {text: program(object{loader: loader})}, "usr/share/load": {text: "#! /bin/sh -e\nexit 0\n"},
		"usr/lib/x86_64-linux-gnu/libc.so.6": {text: program(object{needed: []string{"ld-linux-x86-64.so.2"}}), mode: 0o644},
		"usr/lib/server/libserver.so.1":      {link: "libserver.so.1.2"}, "usr/lib/server/libserver.so.1.2": {text: program(object{needed: []string{"libc.so.6"}}), mode: 0o644},
		"opt/lib/libclient.so":        {text: program(object{needed: []string{"libc.so.6"}}), mode: 0o644},
		"opt/cached/libcached.so.3.1": {text: program(object{}), mode: 0o644},
		"etc/ld.so.cache":             {text: cacheOf(map[string]string{"libcached.so.3": "/opt/cached/libcached.so.3.1"}), mode: 0o644},
	}
}

func systemFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "system.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// checked runs the verb without starting a loader.
func checked(t *testing.T, system string, o Options) (out string, err error) {
	t.Helper()
	var b bytes.Buffer
	s := &session.Session{Out: &b, Err: io.Discard, Connect: func() (session.Cluster, error) { return session.Cluster{}, errors.New("no cluster here") }}
	o.System = system
	if o.Start == "" {
		o.Start = startNever
	}
	if o.Platform == "" {
		o.Platform = "linux/amd64"
	}
	err = Run(t.Context(), s, o)
	return b.String(), err
}

func TestAGoodImage(t *testing.T) {
	image := imageOf(t, "amd64", v1.Config{}, good())
	dir := asLayout(t, image)
	archive := asArchive(t, map[string]v1.Image{"example.org/made-up:v1": image})
	packed, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	zipped := filepath.Join(t.TempDir(), "image.tgz")
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(packed); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(z.Close(), os.WriteFile(zipped, b.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	pushed := strings.TrimPrefix(server.URL, "http://") + "/made-up:v1"
	ref, err := name.ParseReference(pushed)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, image); err != nil {
		t.Fatal(err)
	}
	other := imageOf(t, "arm64", v1.Config{}, map[string]member{"x": {text: "x"}})
	for from, o := range map[string]Options{
		"an OCI image layout": {Image: dir}, "an archive": {Image: archive}, "a compressed archive": {Image: zipped}, "an OCI image layout as tar": {Image: asTar(t, dir)},
		"a registry":                 {Image: pushed},
		"a layout of two platforms":  {Image: asLayout(t, other, image)},
		"an archive with two images": {Image: asArchive(t, map[string]v1.Image{"a/other:v1": other, "example.org/made-up:v1": image}), Tag: "example.org/made-up:v1"},
	} {
		t.Run(from, func(t *testing.T) {
			out, err := checked(t, systemFile(t, systemText), o)
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			for _, want := range []string{
				"ok       spec.prepare.container.command[0]: /bin/sh, ", "ok       spec.replicas.containers[0].command[0]: /usr/bin/server, ",
				"ok       spec.replicas.ready[0].command[0]: probe (/usr/local/bin/probe)", "ok       spec.steps[0].command[0]: /usr/share/load",
				"ok       spec.clients.containers[0].command[0]: /usr/bin/client", "ok       spec.checks[0].command[0]: /usr/bin/server",
				"ok       spec.roles[0].command[0]: probe", "what looks like a program in its script: /usr/bin/server, make-keys", ": 7 of 7 commands have what they need\n",
			} {
				if !strings.Contains(out, want) {
					t.Errorf("nothing says %q:\n%s", want, out)
				}
			}
		})
	}
}

func TestMissingPartsAreReported(t *testing.T) {
	for what, tc := range map[string]struct {
		change       func(map[string]member)
		config       v1.Config
		architecture string
		fields       []string // of commands that lack something
		want         []string
	}{
		"a program": {change: func(f map[string]member) { delete(f, "usr/bin/client") },
			fields: []string{"spec.clients.containers[0].command[0]"}, want: []string{"/usr/bin/client is not in the image"}},
		"a program of PATH": {change: func(f map[string]member) { delete(f, "usr/local/bin/probe") }, config: v1.Config{Env: []string{"PATH=/usr/bin:/bin"}},
			fields: []string{"spec.replicas.ready[0].command[0]", "spec.roles[0].command[0]"}, want: []string{"probe is in no directory of PATH (/usr/bin:/bin)"}},
		"a library": {change: func(f map[string]member) { delete(f, "usr/lib/server/libserver.so.1.2") },
			fields: []string{"spec.checks[0].command[0]", "spec.replicas.containers[0].command[0]", "spec.replicas.ready[0].command[0]", "spec.roles[0].command[0]"},
			want:   []string{"libserver.so.1, which /usr/bin/server needs, is not in the image"}},
		"a library of a library": {change: func(f map[string]member) {
			f["opt/lib/libclient.so"] = member{text: program(object{needed: []string{"libdeep.so"}})}
		}, fields: []string{"spec.clients.containers[0].command[0]"}, want: []string{"libdeep.so, which /opt/lib/libclient.so needs, is not in the image"}},
		"a library elsewhere": {change: func(f map[string]member) {
			f["opt/elsewhere/libclient.so"] = f["opt/lib/libclient.so"]
			delete(f, "opt/lib/libclient.so")
		}, fields: []string{"spec.clients.containers[0].command[0]"}, want: []string{"libclient.so, which /usr/bin/client needs, is at /opt/elsewhere/libclient.so, where the loader does not look"}},
		"ldconfig": {change: func(f map[string]member) {
			f["etc/ld.so.cache"] = member{text: "old"}
			f["etc/ld.so.conf"] = member{text: "include ld.so.conf.d/*.conf\n"}
			f["etc/ld.so.conf.d/x.conf"] = member{text: "# of x\n/opt/conf\n"}
			f["opt/conf/libcached.so.3"] = member{text: program(object{})}
		}, fields: []string{"spec.clients.containers[0].command[0]"}, want: []string{"libcached.so.3, which /usr/bin/client needs, is in /opt/conf, which ld.so.conf names and ld.so.cache does not: run ldconfig"}},
		"a library of another architecture": {change: func(f map[string]member) {
			f["opt/lib/libclient.so"] = member{text: program(object{machine: elf.EM_AARCH64})}
		}, fields: []string{"spec.clients.containers[0].command[0]"}, want: []string{"libclient.so, which /usr/bin/client needs, is at /opt/lib/libclient.so, and of another architecture"}},
		"the architecture of a program": {change: func(f map[string]member) {
			f["usr/bin/client"] = member{text: program(object{machine: elf.EM_AARCH64, loader: loader})}
		}, fields: []string{"spec.clients.containers[0].command[0]"}, want: []string{"/usr/bin/client is of another architecture: EM_AARCH64, and the nodes are amd64"}},
		"the right to execute": {change: func(f map[string]member) {
			f["usr/bin/client"] = member{text: f["usr/bin/client"].text, mode: 0o644}
		}, fields: []string{"spec.clients.containers[0].command[0]"}, want: []string{"/usr/bin/client cannot be executed by user 65532: its mode is 0644, its owner 0"}},
		"the right of this user": {change: func(f map[string]member) {
			f["usr/bin/client"] = member{text: f["usr/bin/client"].text, mode: 0o700}
		}, fields: []string{"spec.clients.containers[0].command[0]"}, want: []string{"cannot be executed by user 65532: its mode is 0700"}},
		"a directory that is closed": {change: func(f map[string]member) { f["usr/share/"] = member{mode: 0o700} },
			fields: []string{"spec.steps[0].command[0]"}, want: []string{"/usr/share/load cannot be reached by user 65532, who may not enter /usr/share"}},
		"the loader": {change: func(f map[string]member) { delete(f, "usr/lib64/ld-linux-x86-64.so.2") },
			fields: []string{"spec.checks[0].command[0]", "spec.clients.containers[0].command[0]", "spec.prepare.container.command[0]", "spec.replicas.containers[0].command[0]",
				"spec.replicas.ready[0].command[0]", "spec.roles[0].command[0]", "spec.steps[0].command[0]"},
			want: []string{"/lib64/ld-linux-x86-64.so.2, the dynamic loader of /usr/bin/client, is not in the image"}},
		"the interpreter of a script": {change: func(f map[string]member) { f["usr/share/load"] = member{text: "#!/usr/bin/python3\n"} },
			fields: []string{"spec.steps[0].command[0]"}, want: []string{"/usr/bin/python3, the interpreter of /usr/share/load, is not in the image"}},
		"what env starts": {change: func(f map[string]member) { f["usr/local/bin/probe"] = member{text: "#!/usr/bin/env perl\n"} },
			fields: []string{"spec.replicas.ready[0].command[0]", "spec.roles[0].command[0]"}, want: []string{"perl, which /usr/local/bin/probe starts by env, is in no directory of PATH"}},
		"line ends": {change: func(f map[string]member) { f["usr/share/load"] = member{text: "#!/bin/sh\r\nexit 0\r\n"} },
			fields: []string{"spec.steps[0].command[0]"}, want: []string{"/usr/share/load has the line ends of Windows"}},
		"any format": {change: func(f map[string]member) { f["usr/share/load"] = member{text: "exit 0\n"} },
			fields: []string{"spec.steps[0].command[0]"}, want: []string{"/usr/share/load is neither an ELF file nor a script that begins with #!"}},
		"a whole file": {change: func(f map[string]member) { f["usr/bin/client"] = member{text: f["usr/bin/client"].text[:70]} },
			fields: []string{"spec.clients.containers[0].command[0]"}, want: []string{"/usr/bin/client is a damaged ELF file"}},
		"the working directory": {change: func(f map[string]member) { delete(f, "srv/") },
			fields: []string{"spec.checks[0].command[0]", "spec.replicas.containers[0].command[0]"}[1:], want: []string{"the working directory /srv is not in the image"}},
		"room for a mount": {change: func(f map[string]member) { f["config"] = member{text: "a file"} },
			fields: []string{"spec.checks[0].command[0]", "spec.replicas.containers[0].command[0]", "spec.replicas.ready[0].command[0]", "spec.roles[0].command[0]", "spec.steps[0].command[0]"},
			want:   []string{"nothing can be mounted at /config: /config is a file"}},
		"a way out of circles": {change: func(f map[string]member) { f["usr/bin/client"] = member{link: "client"} },
			fields: []string{"spec.clients.containers[0].command[0]"}, want: []string{"/usr/bin/client leads in circles"}},
		"a file behind a link": {change: func(f map[string]member) { f["usr/bin/client"] = member{link: "/opt/none"} },
			fields: []string{"spec.clients.containers[0].command[0]"}, want: []string{"/usr/bin/client is not in the image: /opt/none, where it leads, is not there"}},
		"the architecture": {change: func(map[string]member) {}, architecture: "arm64",
			fields: []string{"spec.checks[0].command[0]", "spec.clients.containers[0].command[0]", "spec.prepare.container.command[0]", "spec.replicas.containers[0].command[0]",
				"spec.replicas.ready[0].command[0]", "spec.roles[0].command[0]", "spec.steps[0].command[0]"},
			want: []string{"the image is of linux/arm64, and the nodes of linux/amd64"}},
	} {
		t.Run(what, func(t *testing.T) {
			files := good()
			tc.change(files)
			architecture := "amd64"
			if tc.architecture != "" {
				architecture = tc.architecture
			}
			out, err := checked(t, systemFile(t, systemText), Options{Image: asLayout(t, imageOf(t, architecture, tc.config, files))})
			var verdict *session.Verdict
			if !errors.As(err, &verdict) || session.ExitCode(err) != 1 {
				t.Fatalf("error = %v, want that something is missing:\n%s", err, out)
			}
			var fields []string
			for line := range strings.Lines(out) {
				if rest, ok := strings.CutPrefix(line, "missing  "); ok {
					field, _, _ := strings.Cut(rest, ": ")
					fields = append(fields, field)
				}
			}
			slices.Sort(fields)
			want := tc.fields
			if what == "the working directory" { // that of the replicas' first container
				want = []string{"spec.checks[0].command[0]", "spec.replicas.containers[0].command[0]", "spec.replicas.ready[0].command[0]", "spec.roles[0].command[0]", "spec.steps[0].command[0]"}
			}
			if diff := cmp.Diff(want, fields); diff != "" {
				t.Errorf("fields that lack something (-want +got):\n%s\n%s", diff, out)
			}
			for _, w := range tc.want {
				if !strings.Contains(out, w) {
					t.Errorf("nothing says %q:\n%s", w, out)
				}
			}
		})
	}
}

// A later layer removes and replaces what an earlier one has.
func TestLayers(t *testing.T) {
	for what, tc := range map[string]struct {
		second map[string]member
		want   string
	}{
		"a file that is removed":      {map[string]member{"usr/bin/.wh.client": {}}, "/usr/bin/client is not in the image"},
		"a directory that is emptied": {map[string]member{"usr/share/.wh..wh..opq": {}}, "/usr/share/load is not in the image"},
		"a file that is replaced":     {map[string]member{"usr/bin/client": {text: "x"}}, "/usr/bin/client is neither"},
		"a file that is added":        {map[string]member{"opt/x": {text: "x"}}, ""},
	} {
		t.Run(what, func(t *testing.T) {
			out, err := checked(t, systemFile(t, systemText), Options{Image: asLayout(t, imageOf(t, "amd64", v1.Config{}, good(), tc.second))})
			if (err == nil) != (tc.want == "") || !strings.Contains(out, tc.want) {
				t.Errorf("error %v, want %q:\n%s", err, tc.want, out)
			}
		})
	}
}

// The check names libraries of LD_PRELOAD that are missing, although the loader starts the program
// without them.
func TestPreloads(t *testing.T) {
	text := strings.Replace(systemText, "{name: LD_LIBRARY_PATH, value: /opt/lib}", "{name: LD_LIBRARY_PATH, value: /opt/lib}, {name: LD_PRELOAD, value: /usr/lib/a.so /usr/lib/b.so}", 1)
	files := good()
	files["usr/lib/a.so"] = member{text: program(object{needed: []string{"libnone.so"}})}
	out, err := checked(t, systemFile(t, text), Options{Image: asLayout(t, imageOf(t, "amd64", v1.Config{}, files))})
	for _, want := range []string{"libnone.so, which /usr/lib/a.so needs, is not in the image", "/usr/lib/b.so, which LD_PRELOAD names, is not in the image"} {
		if err == nil || !strings.Contains(out, want) {
			t.Errorf("error %v; nothing says %q:\n%s", err, want, out)
		}
	}
}

func TestBadInputIsReported(t *testing.T) {
	image := imageOf(t, "amd64", v1.Config{}, good())
	dir := asLayout(t, image)
	empties := t.TempDir()
	text := systemFile(t, systemText)
	notes := filepath.Join(empties, "notes.txt")
	if err := os.WriteFile(notes, []byte("of no image"), 0o600); err != nil {
		t.Fatal(err)
	}
	two := strings.Replace(systemText, "name: client, image: 'example.org/made-up:v1'", "name: client, image: 'example.org/client:v2'", 1)
	for what, tc := range map[string]struct {
		system string
		o      Options
		want   string
		code   int
	}{
		"no such file of a System": {filepath.Join(empties, "none.yaml"), Options{Image: dir}, "none.yaml", 1},
		"no cluster":               {"made-up", Options{Image: dir}, "there is no file made-up, and no cluster", 1},
		"no System":                {systemFile(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"), Options{Image: dir}, "it holds no System", 1},
		"a field that is not":      {systemFile(t, strings.Replace(systemText, "workingDir", "workingDirectory", 1)), Options{Image: dir}, "workingDirectory", 1},
		"two Systems":              {systemFile(t, systemText+"---\n"+systemText), Options{Image: dir}, "several Systems", 1},
		"no such archive":          {text, Options{Image: filepath.Join(empties, "x.tar")}, "there is no such file", 1},
		"no image in a directory":  {text, Options{Image: empties}, "the directory is no OCI image layout", 1},
		"no archive":               {text, Options{Image: notes}, "the file is no archive of an image", 1},
		"no reference":             {text, Options{Image: "UPPER CASE"}, "neither a file nor a reference", 1},
		"no platform":              {text, Options{Image: dir, Platform: "amd64"}, "--platform amd64", 2},
		"no such start":            {text, Options{Image: dir, Start: "perhaps"}, "--start perhaps", 2},
		"two images":               {systemFile(t, two), Options{Image: dir}, "it names 2 images, example.org/made-up:v1, example.org/client:v2: say by --of", 2},
		"an image of none":         {text, Options{Image: dir, Of: "example.org/x"}, "--of example.org/x: it names example.org/made-up:v1", 2},
		"a platform that is not":   {text, Options{Image: asLayout(t, image, imageOf(t, "arm64", v1.Config{}, good())), Platform: "linux/s390x"}, "there is no image of linux/s390x; there are 2", 1},
		"an archive of two": {text, Options{Image: asArchive(t, map[string]v1.Image{"a/b:v1": image, "a/c:v1": imageOf(t, "arm64", v1.Config{}, good())})},
			"the archive holds 2 images: choose one by --tag: ", 1},
	} {
		t.Run(what, func(t *testing.T) {
			out, err := checked(t, tc.system, tc.o)
			if err == nil || !strings.Contains(err.Error(), tc.want) || session.ExitCode(err) != tc.code {
				t.Errorf("error = %v (exit code %d), want %q (%d)\n%s", err, session.ExitCode(err), tc.want, tc.code, out)
			}
		})
	}
	out, err := checked(t, systemFile(t, two), Options{Image: dir, Of: "example.org/made-up"})
	if err != nil || !strings.Contains(out, "note: 1 commands of the System run in other images") || strings.Contains(out, "clients.containers") {
		t.Errorf("of one of two images: error %v\n%s", err, out)
	}
}

func TestProgramsInAScript(t *testing.T) {
	for script, want := range map[string]string{
		`i=0; while [ $i -lt {{add 1 2}} ]; do /usr/bin/create_key 4 /keys/$i || exit 1; i=$((i+1)); done`: "/usr/bin/create_key",
		`exec "$0" "$@" 2>&1`: "",
		`nodetool ring | { n=0; while read -r l; do n=1; done; [ $n = 1 ]; }`: "nodetool",
		"mkdir -p /a\n# rm is not\ncp -r /b/* /a && LANG=C sort x":            "cp mkdir sort",
		`if grep -q x y; then cat z; else ! ./run; fi`:                        "./run cat grep",
		`case $a in x) echo y;; *) tar xf z;; esac`:                           "tar",
		`echo "do rm now" 'and mv'`:                                           "",
	} {
		if got := strings.Join(slices.Sorted(maps.Keys(programsIn(script))), " "); got != want {
			t.Errorf("%s: %q, want %q", script, got, want)
		}
	}
}

// Each System of this repository has commands. Assay knows the name of each command's program
// without an experiment.
func TestSystemsOfTheRepository(t *testing.T) {
	files, err := filepath.Glob("../../../../experiments/systems/*.yaml")
	if err != nil || len(files) < 15 {
		t.Fatalf("%d Systems, error %v", len(files), err)
	}
	dir := asLayout(t, imageOf(t, "amd64", v1.Config{}, map[string]member{"empty": {text: "x"}}))
	for _, file := range files {
		out, err := checked(t, file, Options{Image: dir})
		var verdict *session.Verdict
		if !errors.As(err, &verdict) || strings.Contains(out, "follows from an experiment") || !strings.Contains(out, "System ") || !strings.Contains(out, ": 0 of ") {
			t.Errorf("%s: error %v; want that an image without programs lacks all:\n%s", file, err, out)
		}
	}
}

// The loader of an image loads a program of this machine, and names a library that is gone. The
// test needs root. Without root, the command says that it starts no loader.
func TestTheLoaderIsStarted(t *testing.T) {
	files := map[string]member{}
	// The image gets a shell of this machine, its loader and its libraries, at the places where
	// they are here.
	add := func(name string) {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimPrefix(name, "/")] = member{text: string(b)}
	}
	out, err := exec.CommandContext(t.Context(), "ldd", "/bin/sh").Output()
	if err != nil {
		t.Fatalf("ldd /bin/sh: %v", err)
	}
	library := ""
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		at := slices.IndexFunc(words, filepath.IsAbs)
		if at < 0 {
			continue
		}
		add(words[at])
		if at > 0 {
			library = words[at]
		}
	}
	add("/bin/sh")
	text := `{apiVersion: assay.dev/v1alpha1, kind: System, metadata: {name: one}, spec: {description: d, workloads: [{name: w}],
		replicas: {count: "1", containers: [{name: a, image: i, command: [/bin/sh]}]},
		clients: {containers: [{name: c, image: i, command: [/bin/sh]}], results: {format: TransactionLines, source: Stdout}}}}`
	o := Options{Image: asLayout(t, imageOf(t, runtime.GOARCH, v1.Config{}, files)), Start: startAlways, Platform: "linux/" + runtime.GOARCH}
	said, err := checked(t, systemFile(t, text), o)
	if os.Geteuid() != 0 {
		if err == nil || !strings.Contains(err.Error(), "this process is not root") {
			t.Errorf("error = %v, want that it takes root", err)
		}
		return
	}
	if err != nil || !strings.Contains(said, "the image's loader loaded the programs of 2 commands") {
		t.Fatalf("error %v\n%s", err, said)
	}
	// This file has the name of a library and cannot be loaded: only the loader notices.
	broken := []byte(files[strings.TrimPrefix(library, "/")].text)
	files[strings.TrimPrefix(library, "/")] = member{text: program(object{machine: machines[runtime.GOARCH]})}
	if said, err = checked(t, systemFile(t, text), Options{Image: asLayout(t, imageOf(t, runtime.GOARCH, v1.Config{}, files)), Start: startAuto, Platform: o.Platform}); err == nil || !strings.Contains(said, "the loader") {
		t.Errorf("a library of %d bytes was replaced by an empty one: error %v\n%s", len(broken), err, said)
	}
}
