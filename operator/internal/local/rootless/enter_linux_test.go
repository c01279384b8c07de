package rootless

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// The error lists all missing steps at once, with their commands.
func TestWhatIsMissingWithoutRootIsListed(t *testing.T) {
	ranges := map[string]string{"/etc/subuid": "ann:100000:65536\n", "/etc/subgid": "ann:100000:65536\n", "/proc/sys/user/max_user_namespaces": "96365\n"}
	with := func(file, text string) map[string]string {
		changed := map[string]string{file: text}
		for f, is := range ranges {
			if f != file {
				changed[f] = is
			}
		}
		return changed
	}
	for name, tc := range map[string]struct {
		files    map[string]string
		programs []string
		want     []string
	}{
		"nothing":          {ranges, []string{"newuidmap", "newgidmap"}, nil},
		"the package":      {ranges, nil, []string{"newuidmap: install the package uidmap", "newgidmap: install the package uidmap"}},
		"users":            {with("/etc/subuid", ""), []string{"newuidmap", "newgidmap"}, []string{"65535 users of ann in /etc/subuid; there are 0 of 65535: usermod --add-subuids"}},
		"groups":           {with("/etc/subgid", "ann:5:99\n"), []string{"newuidmap", "newgidmap"}, []string{"65535 groups of ann in /etc/subgid; there are 99 of 65535: usermod --add-subgids"}},
		"both files":       {nil, []string{"newuidmap", "newgidmap"}, []string{"/etc/subuid", "/etc/subgid"}},
		"namespaces":       {with("/proc/sys/user/max_user_namespaces", "0\n"), []string{"newuidmap", "newgidmap"}, []string{"user.max_user_namespaces=0 denies"}},
		"Debian's switch":  {with("/proc/sys/kernel/unprivileged_userns_clone", "0\n"), []string{"newuidmap", "newgidmap"}, []string{"kernel.unprivileged_userns_clone=0 denies"}},
		"Ubuntu's profile": {with("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1\n"), []string{"newuidmap", "newgidmap"}, []string{"kernel.apparmor_restrict_unprivileged_userns=1 denies"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := machine{
				uid: 1000, gid: 1000, name: "ann", installed: func(p string) bool { return slices.Contains(tc.programs, p) },
				read: func(path string) ([]byte, error) {
					text, ok := tc.files[path]
					if !ok {
						return nil, os.ErrNotExist
					}
					return []byte(text), nil
				},
			}
			list, args := m.lacks()
			if len(list) != len(tc.want) {
				t.Fatalf("it lists %q; want %q", list, tc.want)
			}
			for i, want := range tc.want {
				if !strings.Contains(list[i], want) {
					t.Errorf("%q lacks %q", list[i], want)
				}
			}
			if tc.want == nil && (args[0] == nil || args[1] == nil) {
				t.Errorf("nothing is missing, and the arguments are %q", args)
			}
		})
	}
}
