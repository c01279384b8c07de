package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for name, tc := range map[string]struct{ in, wantErr string }{
		"list":                      {"# c\n\na/b /x ./cmd/x # c\na/b /y ./cmd/y\n", ""},
		"two fields":                {"a/b /x\n", "line 1"},
		"relative path":             {"\na/b x ./cmd/x\n", "line 2"},
		"built for the cluster":     {"a/b /etcd hack/without-registry/node-image:etcd\n", ""},
		"a file of the machine":     {"a/b / /srv/kv\n", ""},
		"neither":                   {"a/b /etcd node-image:etcd\n", "neither"},
		"no program":                {"a/b /etcd hack/without-registry/node-image:\n", "neither"},
		"a System's program":        {"a/b /x systems/any-name:x\n", ""},
		"same base":                 {"a/b /x ./one/x\na/c /x ./two/x\n", "same base name"},
		"one package in two images": {"a/b /x ./cmd/x\na/c /x ./cmd/x\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse(strings.NewReader(tc.in), map[string]string{})
			if got := err != nil; got != (tc.wantErr != "") || got && !strings.Contains(err.Error(), tc.wantErr) {
				t.Errorf("parse: error %v, want %q", err, tc.wantErr)
			}
		})
	}
}

func TestTheListsParse(t *testing.T) {
	all, err := read([]string{"images.txt", "../../systems/*/images*.txt"})
	if err != nil {
		t.Fatal(err)
	}
	if got := names(all); !slices.Contains(got, "assay/agent") || !slices.Contains(got, "assay/basil") || len(got) < 8 {
		t.Errorf("the lists have the images %v; those of the project and of its Systems are missing", got)
	}
}

// `make images IMAGES=assay/cassandra` ended with 0 and built nothing: another list has that image.
func TestChoose(t *testing.T) {
	all := []binary{{"one", "/a", "./a"}, {"one", "/b", "./b"}, {"two", "/b", "./b"}}
	for name, tc := range map[string]struct {
		only []string
		want int
		err  string
	}{
		"all":     {nil, 3, ""},
		"one":     {[]string{"one"}, 2, ""},
		"both":    {[]string{"two", "one"}, 3, ""},
		"unknown": {[]string{"one", "cassandra"}, 0, "no list has the image cassandra; they have one, two"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := choose(slices.Clone(all), tc.only)
			if len(got) != tc.want || (err != nil) != (tc.err != "") || err != nil && err.Error() != tc.err {
				t.Errorf("choose(%v) = %v, %v; want %d lines, error %q", tc.only, got, err, tc.want, tc.err)
			}
		})
	}
}

// Programs that are built for the cluster are asked for by name and architecture; packages are in
// the directory of binaries.
func TestLocate(t *testing.T) {
	root := t.TempDir()
	script := filepath.Join(root, "hack", "images", "program.sh")
	if err := os.MkdirAll(filepath.Dir(script), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(script, []byte("#!/bin/sh\n[ $1 = hack/without-registry/node-image:etcd ] && echo /cache/$GOARCH/etcd\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	files, err := locate(root, "out/bin", "arm64", []binary{{"one", "/etcd", "hack/without-registry/node-image:etcd"}, {"one", "/d", "./cmd/d"}})
	if err != nil || files["hack/without-registry/node-image:etcd"] != "/cache/arm64/etcd" || files["./cmd/d"] != "out/bin/d" {
		t.Errorf("locate = %v, %v", files, err)
	}
	if _, err := locate(root, "out/bin", "arm64", []binary{{"one", "/x", "hack/without-registry/node-image:x"}}); err == nil || !strings.Contains(err.Error(), "x") || !strings.Contains(err.Error(), "exit status 1") {
		t.Errorf("a program that cannot be built: error = %v, want one that names it and how its script ended", err)
	}
}
