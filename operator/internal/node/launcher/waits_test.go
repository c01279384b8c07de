package launcher

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestWaits(t *testing.T) {
	const self = "proc/self/schedstat"
	for name, tc := range map[string]struct {
		readings []map[string]string // files at each reading, in addition to the earlier ones
		gone     []string            // files removed before the last reading
		all      bool                // read all processes of /proc, without a control group
		want     int64
		err      error
	}{
		"threads of all processes": {
			readings: []map[string]string{{"group/cgroup.procs": "1\n7\n", "proc/1/task/1/schedstat": "90 100 1\n", "proc/7/task/7/schedstat": "9 20 1\n", "proc/7/task/8/schedstat": "9 3 1\n"}},
			want:     123,
		},
		"what rose is added": {
			readings: []map[string]string{
				{"group/cgroup.procs": "1\n", "proc/1/task/1/schedstat": "90 100 1\n"},
				{"proc/1/task/1/schedstat": "95 150 2\n", "proc/1/task/2/schedstat": "1 7 1\n"},
			},
			want: 157,
		},
		"a thread that has ended keeps its part": {
			readings: []map[string]string{{"group/cgroup.procs": "1\n", "proc/1/task/1/schedstat": "90 100 1\n", "proc/1/task/2/schedstat": "1 7 1\n"}, {}},
			gone:     []string{"proc/1/task/2"},
			want:     107,
		},
		"an ID that another thread got": {
			readings: []map[string]string{
				{"group/cgroup.procs": "1\n", "proc/1/task/2/schedstat": "90 100 1\n"}, {"proc/1/task/2/schedstat": "1 30 1\n"},
			},
			want: 130,
		},
		"processes that have ended, or are not seen": {
			readings: []map[string]string{{"group/cgroup.procs": "0\n1\n9\n", "proc/1/task/1/schedstat": "90 100 1\n"}},
			want:     100,
		},
		"a kernel that does not count": {readings: []map[string]string{{self: "0 0 0\n", "group/cgroup.procs": "1\n"}}, err: errNoWaits},
		"a sandbox without the file":   {readings: []map[string]string{{}}, gone: []string{self}, err: errNoWaits},
		"no control group, but processes": {
			readings: []map[string]string{{"proc/1/task/1/schedstat": "90 100 1\n", "proc/7/task/7/schedstat": "9 20 1\n"}}, all: true, want: 120,
		},
		"no control group": {readings: []map[string]string{{}}, err: os.ErrNotExist},
	} {
		t.Run(name, func(t *testing.T) {
			root := lay(t, map[string]string{self: "5 5 5\n"})
			var w waits
			var got int64
			var err error
			for i, files := range tc.readings {
				for file, content := range files {
					write(t, root, file, content)
				}
				if i == len(tc.readings)-1 {
					for _, path := range tc.gone {
						if err := os.RemoveAll(root + "/" + path); err != nil {
							t.Fatal(err)
						}
					}
				}
				group := root + "/group"
				if tc.all {
					group = ""
				}
				got, err = w.read(root+"/proc", group)
			}
			if got != tc.want || !errors.Is(err, tc.err) {
				t.Errorf("waited %d, %v; want %d, %v", got, err, tc.want, tc.err)
			}
		})
	}
}

// write writes one file below a directory.
func write(t *testing.T, root, file, content string) {
	t.Helper()
	path := filepath.Join(root, file)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
