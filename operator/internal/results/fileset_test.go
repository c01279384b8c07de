package results_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/results"
)

func TestPackedFilesComeBack(t *testing.T) {
	files := map[string][]byte{"b.json": []byte("{}"), "a": {}}
	packed, err := results.PackFiles(files)
	if err != nil {
		t.Fatal(err)
	}
	again, err := results.UnpackFiles(packed, 2)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(files, again); diff != "" {
		t.Errorf("(-packed +unpacked):\n%s", diff)
	}
	// (cd DIR; LC_ALL=C; sha256sum * | sha256sum) of the two files.
	want := &results.FileSet{Files: 2, SHA256: "0e5cf6a8ae7938698051870d3e2b2aac24dc6cd188494d0dd00570490adb1317"}
	if diff := cmp.Diff(want, results.DescribeFiles(files)); diff != "" {
		t.Errorf("description (-want +got):\n%s", diff)
	}
	if results.DescribeFiles(nil) != nil {
		t.Error("no files are described")
	}
}

func TestPacksThatAreRefused(t *testing.T) {
	pack := func(name string) []byte {
		packed, err := results.PackFiles(map[string][]byte{name: []byte("12345")})
		if err != nil {
			t.Fatal(err)
		}
		return packed
	}
	for name, tc := range map[string]struct {
		packed []byte
		want   string
	}{
		"not a pack":    {[]byte("x"), "unpack files"},
		"too large":     {pack("a"), "larger than they may be"},
		"a folder":      {pack("a/b"), `"a/b" is not a file's name`},
		"another place": {pack(".."), `".." is not a file's name`},
		"cut off":       {pack("a")[:30], "unpack"},
	} {
		if _, err := results.UnpackFiles(tc.packed, 4); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want: %s", name, err, tc.want)
		}
	}
}

func TestTreesLeadNowhereElse(t *testing.T) {
	for name, ok := range map[string]bool{
		"out/a/b.csv": true, "left-out.txt": true, "../a": false, "/etc/passwd": false, "a/../b": false, "a\\b": false, "a\nb": false, ".": false,
	} {
		packed, err := results.PackFiles(map[string][]byte{name: []byte("x")})
		if err != nil {
			t.Fatal(err)
		}
		if files, err := results.UnpackTree(packed, 10); (err == nil) != ok || ok && string(files[name]) != "x" {
			t.Errorf("%q gives %q, %v", name, files, err)
		}
		if _, err := results.UnpackTree(packed, 0); err == nil {
			t.Errorf("%q is unpacked beyond the limit", name)
		}
	}
}
