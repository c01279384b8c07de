package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/node/protocol"
)

func TestAFileStaysInItsVolumeAndIsReadableByTheGroup(t *testing.T) {
	volume, outside := t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, volume+"/link"); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		path     string
		mode     uint32
		wantMode os.FileMode
		wantErr  string
	}{
		"a file in the volume":           {volume + "/peers", 0o644, 0o664, ""},
		"a file in folders to be made":   {volume + "/a/b/key", 0o400, 0o440, ""},
		"a file that is there already":   {volume + "/a/b/key", 0o600, 0o660, ""},
		"a program":                      {volume + "/run.sh", 0o700, 0o770, ""},
		"a path upwards":                 {volume + "/../x", 0o644, 0, "none of the pod's shared volumes"},
		"a path up and down":             {volume + "/a/../../x", 0o644, 0, "none of the pod's shared volumes"},
		"a folder that begins the same":  {volume + "2/x", 0o644, 0, "none of the pod's shared volumes"},
		"the volume itself":              {volume, 0o644, 0, "none of the pod's shared volumes"},
		"a relative path":                {"peers", 0o644, 0, "must be absolute"},
		"a symbolic link to the outside": {volume + "/link/x", 0o644, 0, "escapes"},
	}
	for _, name := range []string{ // in order, as one case overwrites the file of another
		"a file in the volume", "a file in folders to be made", "a file that is there already", "a program", "a path upwards", "a path up and down",
		"a folder that begins the same", "the volume itself", "a relative path", "a symbolic link to the outside",
	} {
		tc := cases[name]
		t.Run(name, func(t *testing.T) {
			err := writeFile([]string{"/nowhere", volume}, protocol.File{Path: tc.path, Mode: tc.mode, Content: []byte(name)})
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Errorf("the error is %v, want %q in it", err, tc.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			content, err := os.ReadFile(tc.path)
			if err != nil || string(content) != name {
				t.Errorf("the file holds %q (%v), want %q", content, err, name)
			}
			if info, err := os.Stat(tc.path); err != nil || info.Mode().Perm() != tc.wantMode {
				t.Errorf("the file's mode is %v (%v), want %v", info.Mode(), err, tc.wantMode)
			}
		})
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
		t.Errorf("outside there is now %v (%v)", entries, err)
	}
}

func TestSharedVolumesAreTheDirectoriesMountedForWriting(t *testing.T) {
	dir := t.TempDir()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, folder := range []string{"run", "token", "conf"} {
		must(os.Mkdir(filepath.Join(dir, folder), 0o755))
	}
	must(os.WriteFile(dir+"/hosts", nil, 0o644))
	mounts := strings.ReplaceAll(`600 500 0:50 / / ro,relatime - overlay overlay rw
601 600 0:51 / /proc rw,nosuid - proc proc rw
602 600 0:52 / /dev rw - tmpfs tmpfs rw
603 602 0:53 / /dev/shm rw - tmpfs shm rw
604 600 0:54 / DIR/run rw,relatime - tmpfs tmpfs rw
605 600 0:55 / DIR/token ro,relatime - tmpfs tmpfs rw
606 600 0:56 /x DIR/hosts rw - ext4 /dev/vda rw
607 600 0:57 /y DIR/conf rw - ext4 /dev/vda rw
`, "DIR", dir)
	if diff := cmp.Diff([]string{dir + "/run", dir + "/conf"}, SharedVolumes(mounts)); diff != "" {
		t.Errorf("the volumes (-want +got):\n%s", diff)
	}
}
