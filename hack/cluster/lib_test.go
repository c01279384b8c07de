package cluster

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// A new machine has neither a cache nor the packages. The first command of a newcomer needs both.
func TestPackagesAreInstalledWhereNoCacheExists(t *testing.T) {
	dir := t.TempDir()
	said := filepath.Join(dir, "said")
	for name, text := range map[string]string{
		"apt-get": "#!/bin/sh\necho \"$@\" >>" + said + "\n",
		"id":      "#!/bin/sh\necho 0\n", // the script checks the user, and installs only as root
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}

	cmd := exec.Command("bash", "-c", ". ./lib.sh && packages a-command-that-is-missing=its-package")
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "ASSAY_CACHE="+filepath.Join(dir, "cache", "assay"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("the packages are not installed: %v\n%s", err, out)
	}

	got, err := os.ReadFile(said)
	if err != nil {
		t.Fatal(err)
	}
	want := "-o DPkg::Lock::Timeout=900 update\n-o DPkg::Lock::Timeout=900 install -y --no-install-recommends its-package\n"
	if string(got) != want {
		t.Errorf("apt-get was called with\n%s\nwant\n%s", got, want)
	}
}
