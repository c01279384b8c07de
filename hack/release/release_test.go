//go:build release

package main

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// The release that hack/release/dryrun.sh made.
func files(t *testing.T) (dir, version, registry string) {
	t.Helper()
	dir, version, registry = os.Getenv("ASSAY_RELEASE"), os.Getenv("ASSAY_RELEASE_VERSION"), os.Getenv("ASSAY_RELEASE_REGISTRY")
	if dir == "" || version == "" || registry == "" {
		t.Fatal("ASSAY_RELEASE names no release: run make release-dry-run")
	}
	return dir, version, registry
}

func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, errs.String())
	}
	return string(out)
}

// plugin is the program in an archive.
func plugin(t *testing.T, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	var program []byte
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
		if h.Uid != 0 || h.Gid != 0 {
			t.Errorf("%s: %s belongs to %d:%d", path, h.Name, h.Uid, h.Gid)
		}
		if filepath.Base(h.Name) == "kubectl-assay" {
			if h.FileInfo().Mode().Perm()&0o111 == 0 {
				t.Errorf("%s: the program is not executable", path)
			}
			if program, err = io.ReadAll(r); err != nil {
				t.Fatal(err)
			}
		}
	}
	if program == nil || !slices.Contains(names, "./LICENSE") {
		t.Fatalf("%s has %v", path, names)
	}
	return program
}

var platforms = []archive{{OS: "linux", Arch: "amd64"}, {OS: "linux", Arch: "arm64"}, {OS: "darwin", Arch: "amd64"}, {OS: "darwin", Arch: "arm64"}}

// Each archive has the program of its platform, and the bill of materials lists the program's
// modules.
func TestReleaseHasThePluginForEachPlatform(t *testing.T) {
	dir, version, _ := files(t)
	for _, p := range platforms {
		name := "kubectl-assay-" + p.OS + "-" + p.Arch
		program := plugin(t, filepath.Join(dir, name+".tar.gz"))
		info, err := buildinfo.Read(bytes.NewReader(program))
		if err != nil {
			t.Fatal(err)
		}
		got := archive{}
		for _, s := range info.Settings {
			switch s.Key {
			case "GOOS":
				got.OS = s.Value
			case "GOARCH":
				got.Arch = s.Value
			}
		}
		if got != p {
			t.Errorf("%s holds a program for %+v", name, got)
		}
		text, err := os.ReadFile(filepath.Join(dir, name+".cdx.json"))
		if err != nil {
			t.Fatal(err)
		}
		var bom struct {
			BomFormat  string
			Components []struct{ Name, Version string }
		}
		if err := json.Unmarshal(text, &bom); err != nil {
			t.Fatal(err)
		}
		listed := map[string]string{}
		for _, c := range bom.Components {
			listed[c.Name] = c.Version
		}
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			if listed[m.Path] != m.Version {
				t.Errorf("%s: the program has %s %s, the bill of materials %q", name, m.Path, m.Version, listed[m.Path])
			}
		}
		if bom.BomFormat != "CycloneDX" || len(info.Deps) < 20 {
			t.Errorf("%s: %s, %d modules", name, bom.BomFormat, len(info.Deps))
		}
		if p.OS == runtime.GOOS && p.Arch == runtime.GOARCH {
			path := filepath.Join(t.TempDir(), "kubectl-assay")
			if err := os.WriteFile(path, program, 0o755); err != nil {
				t.Fatal(err)
			}
			if out := output(t, path, "version", "--client"); !strings.Contains(out, version) {
				t.Errorf("the program says that it is %s", out)
			}
			bundle := filepath.Join("..", "..", "experiments", "pesto", "evidence", "failure-fp.tar.zst")
			const verdicts = "6 claims: 1 Consistent, 1 Holds, 4 NotEvaluated."
			if out := output(t, path, "report", "--file", bundle); !strings.Contains(out, verdicts) {
				t.Errorf("the program reports of %s:\n%s", bundle, out)
			}
			page := filepath.Join(t.TempDir(), "report.html") // the last step of make demo
			output(t, path, "report", "--file", bundle, "-o", page)
			if text, err := os.ReadFile(page); err != nil || !bytes.Contains(text, []byte(verdicts)) || !bytes.Contains(text, []byte("<svg")) {
				t.Errorf("the page of %s has %d bytes and not both verdicts and plots: %v", bundle, len(text), err)
			}
		}
	}
}

// Every file has its checksum, and the manifest for krew has the checksums of the archives.
func TestReleaseChecksums(t *testing.T) {
	dir, version, _ := files(t)
	sums, err := sumsOf(dir)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join(dir, checksums))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	listed := map[string]string{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		sum, name, _ := strings.Cut(lines.Text(), "  ")
		listed[name] = sum
	}
	if len(listed) != len(sums) {
		t.Errorf("%d files, %d checksums", len(sums), len(listed))
	}
	for name, sum := range sums {
		if listed[name] != sum {
			t.Errorf("%s has %s, %s lists %q", name, sum, checksums, listed[name])
		}
	}
	cmd := exec.CommandContext(t.Context(), "sha256sum", "--check", "--quiet", checksums)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("sha256sum: %v\n%s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(dir, manifest))
	if err != nil {
		t.Fatal(err)
	}
	var m struct {
		Kind string
		Spec struct {
			Version   string
			Platforms []struct {
				Selector         struct{ MatchLabels struct{ OS, Arch string } }
				URI, SHA256, Bin string
			}
		}
	}
	if err := yaml.Unmarshal(text, &m); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if m.Kind != "Plugin" || m.Spec.Version != version || len(m.Spec.Platforms) != len(platforms) {
		t.Errorf("the manifest is\n%s", text)
	}
	for _, p := range m.Spec.Platforms {
		name := "kubectl-assay-" + p.Selector.MatchLabels.OS + "-" + p.Selector.MatchLabels.Arch + ".tar.gz"
		if p.SHA256 != sums[name] || !strings.HasSuffix(p.URI, "/"+name) || p.Bin != "kubectl-assay" {
			t.Errorf("the manifest has %+v, %s has %s", p, name, sums[name])
		}
	}
}

// A user installs the chart from the registry. It names images of the release, which exist for both
// architectures.
func TestReleaseInARegistry(t *testing.T) {
	_, version, registry := files(t)
	root := filepath.Join("..", "..")
	crane, helm := filepath.Join(root, ".work", "bin", "crane"), filepath.Join(root, ".work", "bin", "helm")
	if path, err := exec.LookPath("helm"); err == nil {
		helm = path
	}
	rendered := output(t, helm, "template", "assay", "oci://"+registry+"/charts/assay", "--version", strings.TrimPrefix(version, "v"), "--plain-http", "-n", "assay-system")
	for _, image := range []string{"assay/manager", "assay/agent", "assay/basil"} {
		name := registry + "/" + image + ":" + version
		if image != "assay/basil" && !strings.Contains(rendered, name) {
			t.Errorf("the chart does not name %s", name)
		}
		var index struct {
			Manifests []struct {
				Platform struct{ OS, Architecture string }
			}
		}
		if err := json.Unmarshal([]byte(output(t, crane, "manifest", "--insecure", name)), &index); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range index.Manifests {
			got = append(got, m.Platform.OS+"/"+m.Platform.Architecture)
		}
		slices.Sort(got)
		if !slices.Equal(got, []string{"linux/amd64", "linux/arm64"}) {
			t.Errorf("%s is for %v", name, got)
		}
	}
	if !strings.Contains(rendered, "--system-image-registry="+registry) || strings.Contains(rendered, ":dev") {
		t.Errorf("the chart takes images from elsewhere:\n%s", rendered)
	}
}

// kubectl apply -f install.yaml installs the chart without Helm, with the images of the release.
func TestReleaseInstallsWithoutHelm(t *testing.T) {
	dir, version, registry := files(t)
	text, err := os.ReadFile(filepath.Join(dir, "install.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, doc := range regexp.MustCompile(`(?m)^---\n`).Split(string(text), -1) {
		var o struct{ Kind string }
		if err := yaml.Unmarshal([]byte(doc), &o); err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		kinds[o.Kind]++
	}
	for kind, want := range map[string]int{"Namespace": 1, "CustomResourceDefinition": 4, "Deployment": 1, "ValidatingWebhookConfiguration": 1, "Pod": 0} {
		if kinds[kind] != want {
			t.Errorf("%d objects of kind %s, want %d", kinds[kind], kind, want)
		}
	}
	for _, image := range []string{"assay/manager", "assay/agent"} {
		if name := registry + "/" + image + ":" + version; !strings.Contains(string(text), name) {
			t.Errorf("install.yaml does not name %s", name)
		}
	}
	if at := bytes.Index(text, []byte("helm")); at >= 0 {
		t.Errorf("install.yaml speaks of Helm: %s", text[at:min(at+80, len(text))])
	}
}

// The key of the dry run has signed the checksums, and no other key.
func TestReleaseIsSigned(t *testing.T) {
	dir, _, _ := files(t)
	public := func(file string) *ecdsa.PublicKey {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		block, _ := pem.Decode(text)
		if block == nil {
			t.Fatalf("%s is no PEM file", file)
		}
		key, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		return key.(*ecdsa.PublicKey)
	}
	listed, err := os.ReadFile(filepath.Join(dir, checksums))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, signature))
	if err != nil {
		t.Fatal(err)
	}
	signed, err := base64.StdEncoding.DecodeString(string(text))
	if err != nil {
		t.Fatal(err)
	}
	key := public(os.Getenv("ASSAY_RELEASE_KEY"))
	if digest := sha256.Sum256(listed); !ecdsa.VerifyASN1(key, digest[:], signed) {
		t.Error("the signature is not that of the checksums")
	}
	if digest := sha256.Sum256(append(listed, '\n')); ecdsa.VerifyASN1(key, digest[:], signed) {
		t.Error("the signature is also that of other checksums")
	}
	other := filepath.Join(t.TempDir(), "other")
	if err := makeKey(other); err != nil {
		t.Fatal(err)
	}
	if digest := sha256.Sum256(listed); ecdsa.VerifyASN1(public(other+".pub"), digest[:], signed) {
		t.Error("the signature is also that of another key")
	}
}
