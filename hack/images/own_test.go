package main

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"assay.dev/assay/hack/images/imagetar"
)

// own runs own.sh, which writes below .work of this repository, and loads nothing.
func own(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command("./own.sh", append([]string{"--only-build"}, args...)...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// An image of a program that is linked with the machine's libraries holds all of them: the program
// runs with the image as its root.
func TestAnImageOfOwnPrograms(t *testing.T) {
	for _, tool := range []string{"ldd", "bash"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Fatalf("%s is not there: %v", tool, err)
		}
	}
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "etc/kv"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "etc/kv/kv.conf"), []byte("port 7000\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	const name = "assaytest/own"
	folder := filepath.Join("..", "..", ".work", "own", name)
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	if out, err := own(t, name, "/bin/ls", dir); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	root := filepath.Join(folder, "root")
	for _, file := range []string{"bin/sh", "usr/local/bin/ls", "etc/kv/kv.conf", "etc/nsswitch.conf"} {
		if _, err := os.Stat(filepath.Join(root, file)); err != nil {
			t.Error(err)
		}
	}
	if os.Getuid() == 0 {
		out, err := exec.Command("chroot", root, "/bin/sh", "-c", "/usr/local/bin/ls /etc/kv").CombinedOutput()
		if err != nil || strings.TrimSpace(string(out)) != "kv.conf" {
			t.Errorf("ls in the image: %v: %s", err, out)
		}
	}
	archive, err := os.Open(filepath.Join(folder, "assaytest-own.tar"))
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	index := false
	for r := tar.NewReader(archive); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		index = index || h.Name == "index.json"
	}
	if !index {
		t.Error("the archive has no index.json, which container runtimes read")
	}
}

// A library that is found by LD_LIBRARY_PATH only is found in the image, where that is not set.
func TestALibraryFromElsewhereIsFoundInTheImage(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("chroot needs root")
	}
	out, err := exec.Command("ldd", "/bin/ls").Output()
	if err != nil {
		t.Fatal(err)
	}
	elsewhere, moved := t.TempDir(), ""
	for _, field := range strings.Fields(string(out)) {
		if strings.HasPrefix(field, "/") && strings.Contains(field, "/libselinux.so") {
			moved = field
		}
	}
	content, err := os.ReadFile(moved)
	if err != nil {
		t.Fatalf("ls has another library than on Debian: %v\n%s", err, out)
	}
	if err := os.WriteFile(filepath.Join(elsewhere, filepath.Base(moved)), content, 0o755); err != nil {
		t.Fatal(err)
	}
	const name = "assaytest/elsewhere"
	folder := filepath.Join("..", "..", ".work", "own", name)
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	t.Setenv("LD_LIBRARY_PATH", elsewhere)
	if out, err := own(t, name, "/bin/ls"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	run := exec.Command("chroot", filepath.Join(folder, "root"), "/usr/local/bin/ls", "/usr/local/bin")
	run.Env = []string{}
	if out, err := run.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != "ls" {
		t.Errorf("ls in the image: %v: %s", err, out)
	}
}

// A directory may be the root of a Debian, as debootstrap makes it. Its links, empty and closed
// directories and special modes are in the image. The downloads of its package manager are not.
func TestAnImageOfADebianRoot(t *testing.T) {
	dir := t.TempDir()
	for _, below := range []string{"usr/bin", "usr/share", "var/lib/dpkg/info", "var/lib/dpkg/updates", "var/cache/apt/archives", "srv", "var/tmp"} {
		if err := os.MkdirAll(filepath.Join(dir, below), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	status := "Package: tool\nStatus: install ok installed\nVersion: 1.2\nArchitecture: all\nMaintainer: us\nDescription: a tool\n"
	for file, text := range map[string]string{"var/lib/dpkg/status": status, "usr/bin/sh": "x", "usr/bin/su": "x", "var/cache/apt/archives/tool.deb": "x"} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink("usr/bin", filepath.Join(dir, "bin")), os.Chmod(filepath.Join(dir, "usr/bin/su"), 0o755|os.ModeSetuid),
		os.Chmod(filepath.Join(dir, "var/tmp"), 0o777|os.ModeSticky)); err != nil {
		t.Fatal(err)
	}
	const name = "assaytest/debian"
	folder := filepath.Join("..", "..", ".work", "own", name)
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	if out, err := own(t, name, dir); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	l, err := layer("/", filepath.Join(folder, "root"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "image.tar")
	if err := imagetar.WriteFile(file, imagetar.Image{Names: []string{"docker.io/assaytest/debian:dev"}, Arch: "amd64", Layers: []imagetar.Layer{l}}); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, h := range headersOfLayers(t, file) {
		got[h.Name] = fmt.Sprintf("%c %o %s", h.Typeflag, h.Mode, h.Linkname)
	}
	for path, want := range map[string]string{"bin": "2 777 usr/bin", "srv": "5 755 ", "var/tmp": "5 1777 ", "usr/bin/su": "0 4755 ", "var/cache/apt/archives": "5 755 "} {
		if got[path] != want {
			t.Errorf("%s is %q, want %q", path, got[path], want)
		}
	}
	if _, there := got["var/cache/apt/archives/tool.deb"]; there {
		t.Error("a downloaded package is in the image")
	}
	if packages, err := os.ReadFile(filepath.Join(folder, "root/usr/share/assay/packages")); err != nil || !strings.Contains(string(packages), "tool=1.2\n") {
		t.Errorf("the list of packages is %q, %v", packages, err)
	}
}

// headersOfLayers are all files of an archive of one layer.
func headersOfLayers(t *testing.T, file string) (all []*tar.Header) {
	t.Helper()
	archive, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	for r := tar.NewReader(archive); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(h.Name, "blobs/") {
			continue
		}
		for inner := tar.NewReader(r); ; {
			h, err := inner.Next()
			if err != nil { // the end, or no layer
				break
			}
			all = append(all, h)
		}
	}
}

func TestWrongOwnImagesAreRefused(t *testing.T) {
	plain := filepath.Join(t.TempDir(), "kv.conf")
	if err := os.WriteFile(plain, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no file":            {[]string{"lab/kv"}, "usage: own.sh"},
		"a tag":              {[]string{"lab/kv:1", "/bin/ls"}, `NAME is "lab/kv:1"; it must be the name of an image without a tag`},
		"no slash":           {[]string{"kv", "/bin/ls"}, "with a slash: lab/kv"},
		"the repository's":   {[]string{"assay/agent", "/bin/ls"}, "use another, such as lab/agent"},
		"a file not there":   {[]string{"lab/kv", "/nowhere/kv"}, `FILE "/nowhere/kv" does not exist`},
		"a file, no program": {[]string{"lab/kv", plain}, "is neither a directory nor a program"},
	} {
		t.Run(name, func(t *testing.T) {
			if out, err := own(t, tc.args...); err == nil || !strings.Contains(out, tc.want) {
				t.Errorf("%v: %s; want %q", err, out, tc.want)
			}
		})
	}
}
