package baremetal

import (
	"encoding/base64"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// No token is left in the cluster. No token, no key, and nothing of the kubeconfig is in the state,
// in what Terraform printed (outputs among it), or in the logs and files of the machines.
func (s *site) noSecrets(t *testing.T) {
	if got := strings.TrimSpace(s.kubectl(t, "-n", "kube-system", "get", "secrets", "--field-selector=type=bootstrap.kubernetes.io/token", "-o", "name")); got != "" {
		t.Errorf("join tokens are left: %s", got)
	}
	info, err := os.Stat(filepath.Join(s.Path, "kubeconfig"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("kubeconfig: %v, %v; want mode 0600", info.Mode(), err)
	}
	s.readSecrets(t)
	states, err := filepath.Glob(filepath.Join(s.Path, "terraform.tfstate*")) // also the one before
	if err != nil || len(states) == 0 {
		t.Fatalf("no state: %v", err)
	}
	for _, file := range states {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		s.nothingLeaks(t, filepath.Base(file), string(text))
		for _, field := range []string{`"token"`, "certificate-authority-data"} {
			if strings.Contains(string(text), field) {
				t.Errorf("%s: has %s", filepath.Base(file), field)
			}
		}
	}
	if outputs := s.Must(t, "output", "-json"); !strings.Contains(outputs, `"api_server"`) {
		t.Errorf("these are no outputs:\n%s", outputs)
	}
	s.nothingLeaks(t, "what Terraform printed", s.printed.String())
	for _, machine := range slices.Sorted(maps.Keys(s.addresses)) {
		log := s.on(t, machine, "cat /var/log/assay-kubeadm.log")
		if !strings.Contains(log, "[kubelet-start]") {
			t.Errorf("%s: this is no log of kubeadm:\n%s", machine, log)
		}
		s.nothingLeaks(t, machine+"'s log of kubeadm", log)
		s.nothingLeaks(t, machine+"'s journal", s.on(t, machine, "journalctl --no-pager -o cat"))
		s.nothingLeaks(t, machine+"'s files of ours", s.on(t, machine,
			"find /etc/assay /usr/local/lib/assay /var/lib/assay /run/assay /etc/kubernetes/bootstrap-kubelet.conf -type f -exec cat {} + 2>/dev/null || true"))
	}
}

// readSecrets learns them from where they belong.
func (s *site) readSecrets(t *testing.T) {
	t.Helper()
	key, err := os.ReadFile(s.key)
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := os.ReadFile(filepath.Join(s.Path, "kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`client-key-data: (\S+)`).FindSubmatch(kubeconfig)
	if m == nil {
		t.Fatal("the kubeconfig has no client-key-data")
	}
	administrator, err := base64.StdEncoding.DecodeString(string(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	s.secrets = map[string]string{
		"the SSH key":                         private(t, string(key)),
		"the administrator's key":             private(t, string(administrator)),
		"the administrator's key, as encoded": string(m[1])[len(m[1])/2:],
	}
	for _, name := range []string{"ca", "sa", "etcd/ca", "front-proxy-ca"} {
		s.secrets["the cluster's key "+name] = private(t, s.on(t, "head", "cat /etc/kubernetes/pki/"+name+".key"))
	}
}

// private is a line of a key in PEM that no public key has: the last whole one. The part that comes
// first is public in some formats.
func private(t *testing.T, pem string) string {
	t.Helper()
	lines := strings.Fields(regexp.MustCompile(`-----[A-Z ]+-----`).ReplaceAllString(pem, ""))
	if len(lines) < 3 || !strings.Contains(pem, "PRIVATE KEY") {
		t.Fatal("this is no private key")
	}
	return lines[len(lines)-2]
}

func (s *site) nothingLeaks(t *testing.T, where, text string) {
	t.Helper()
	for _, what := range leaks(text, s.secrets) {
		t.Errorf("%s: has %s", where, what)
	}
}

// leaks says which secrets a text has: those given, and whatever looks like a token or a key of
// anybody's.
func leaks(text string, secrets map[string]string) []string {
	var found []string
	for _, what := range slices.Sorted(maps.Keys(secrets)) {
		if strings.Contains(text, secrets[what]) {
			found = append(found, what)
		}
	}
	for _, word := range []string{"PRIVATE KEY-----", "client-key-data", "client-certificate-data"} {
		if strings.Contains(text, word) {
			found = append(found, word)
		}
	}
	for _, m := range regexp.MustCompile(`\b[a-z0-9]{6}\.([a-z0-9]{16})\b`).FindAllStringSubmatch(text, -1) {
		// One in 190 texts of 16 random letters and digits has only letters, as two words with a
		// dot between them have. Hardly any is a hexadecimal number, as the names of events end:
		// worker.18ea3789415a21ce.
		if strings.ContainsAny(m[1], "0123456789") && strings.ContainsAny(m[1], "ghijklmnopqrstuvwxyz") {
			found = append(found, "the join token "+m[0])
		}
	}
	return found
}

// The search for secrets finds them: otherwise its silence would be worth nothing.
func TestLeaks(t *testing.T) {
	secrets := map[string]string{"the SSH key": "b3BlbnNzaC1rZXktdjEAAAAABG5vbmU"}
	for name, tc := range map[string]struct {
		text string
		want []string
	}{
		"nothing":                   {text: "module.cluster.terraform_data.node[\"c1\"]: Creation complete after 12.123456s [id=0a1b2c3d-4e5f-6a7b-8c9d-0e1f2a3b4c5d]"},
		"an event":                  {text: `"Server rejected event" event="client.18ea3789415a21ce"`},
		"words with a dot":          {text: "Wrote plugin.containerdservice and system.slice"},
		"a digest":                  {text: "registry.k8s.io/pause:3.10@sha256:7c38f24774e3cbd906d2d33c38354ccf787635581c122965132c9bd309754d4a"},
		"a known key":               {text: "x = b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAA", want: []string{"the SSH key"}},
		"a key of another user":     {text: "-----BEGIN EC PRIVATE KEY-----", want: []string{"PRIVATE KEY-----"}},
		"a kubeconfig":              {text: "    client-key-data: LS0t", want: []string{"client-key-data"}},
		"kubeadm's token":           {text: "[bootstrap-token] Using token: abcdef.0123456789abcxyz\n", want: []string{"the join token abcdef.0123456789abcxyz"}},
		"a token in a command":      {text: "kubeadm join 192.0.2.10:6443 --token q1w2e3.r4t5y6u7i8o9p0a1 \\", want: []string{"the join token q1w2e3.r4t5y6u7i8o9p0a1"}},
		"a token in Terraform JSON": {text: `{"TOKEN":"q1w2e3.r4t5y6u7i8o9p0a1"}`, want: []string{"the join token q1w2e3.r4t5y6u7i8o9p0a1"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, leaks(tc.text, secrets)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
