// Package baremetal applies infra/bare-metal for real: to containers that stand for the machines of
// a rack, over SSH alone, with Terraform and its real providers. The remains are looked at from
// outside, by docker.
package baremetal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/infra/test/terraform"
)

// root of the repository, from here.
const root = "../../.."

// The pod and Service networks are not those of the kind cluster, which may run beside the rack.
const (
	podCIDR     = "172.31.0.0/18"
	serviceCIDR = "172.31.240.0/20"
)

type host struct {
	Address string `json:"address"`
	Role    string `json:"role,omitempty"`
	Pool    string `json:"pool,omitempty"`
	Region  string `json:"region"`
}

// site is one rack, the root that is applied to it, and the variables.
type site struct {
	*rack
	*terraform.Dir
	variables map[string]any
	printed   bytes.Buffer      // by all commands of Terraform
	secrets   map[string]string // known since NoSecrets
	state     []byte            // before Destroyed
}

func newSite(t *testing.T) *site {
	t.Helper()
	tf := terraform.Copy(t, "bare-metal")
	tf.Timeout = 8 * time.Minute
	tf.Init(t)
	r := newRack(t, "head", "r1", "r2", "c1", "c2")
	s := &site{rack: r, Dir: tf}
	s.Watch = &s.printed
	s.variables = map[string]any{
		"name":                 "rack",
		"hosts":                s.hosts("head", "r1", "r2", "c1"),
		"pools":                map[string]any{"replicas": map[string]any{}, "clients": map[string]any{}},
		"regions":              []string{"us-east-1", "eu-west-1"},
		"pod_cidr":             podCIDR,
		"service_cidr":         serviceCIDR,
		"ssh_private_key_file": r.key,
		"ssh":                  map[string]any{"wait_seconds": 60, "dead_seconds": 30}, // five machines share two processors, which may stand still for seconds
		"pod_network":          s.podNetwork(t),
		"preparation": map[string]any{
			"software": "present",
			// A container can only be asked for these: the kernel, its clock and its processors are
			// its host's.
			"governor":       "performance",
			"time_sync":      "unchanged",
			"swap":           "unchanged",
			"image_archives": images(t),
		},
		// As kind does for nodes that are containers.
		"kubeadm": map[string]any{
			"kubelet_configuration": map[string]any{
				"cgroupRoot": "/kubelet", "imageGCHighThresholdPercent": 100,
				"evictionHard": map[string]string{"nodefs.available": "0%", "nodefs.inodesFree": "0%", "imagefs.available": "0%"},
			},
			"kube_proxy_configuration": map[string]any{"conntrack": map[string]int{"maxPerCore": 0}},
			"ignore_preflight_errors":  []string{"SystemVerification", "Mem", "NumCPU", "Swap", "FileContent--proc-sys-net-bridge-bridge-nf-call-iptables"},
			"drain_seconds":            30,
		},
		"chart_values": chartValues(t, r),
	}
	return s
}

// hosts with these names, each where and what it always is.
func (s *site) hosts(names ...string) map[string]host {
	all := map[string]host{
		"head": {Role: "control-plane", Region: "us-east-1"},
		"r1":   {Pool: "replicas", Region: "us-east-1"},
		"r2":   {Pool: "replicas", Region: "eu-west-1"},
		"c1":   {Pool: "clients", Region: "us-east-1"},
		"c2":   {Pool: "clients", Region: "eu-west-1"},
	}
	hosts := map[string]host{}
	for _, name := range names {
		h := all[name]
		h.Address = s.addresses[name]
		hosts[name] = h
	}
	return hosts
}

// podNetwork is the manifest of the node image's own CNI plugin.
func (s *site) podNetwork(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, "hack", "without-registry", "node-image", "manifests", "default-cni.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	version := strings.TrimSpace(s.on(t, "head", "cat /kind/version"))
	text := strings.ReplaceAll(string(b), "${KUBERNETES_VERSION}", version)
	// As kind does: the plugin must not wait for kube-proxy.
	text = strings.Replace(text, "        env:\n", "        env:\n        - {name: CONTROL_PLANE_ENDPOINT, value: \""+s.addresses["head"]+":6443\"}\n", 1)
	file := filepath.Join(t.TempDir(), "pod-network.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// index is what make images built: archives and tags by image.
func index(t *testing.T) map[string][2]string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, ".work", "images", "index.tsv"))
	if err != nil {
		t.Fatalf("%v: make images", err)
	}
	all := map[string][2]string{}
	for line := range strings.Lines(string(b)) {
		f := strings.Split(strings.TrimSpace(line), "\t") // name, tag, digest, archive
		all[f[0]] = [2]string{f[1], f[3]}
	}
	return all
}

func images(t *testing.T) []string {
	t.Helper()
	var files []string
	for _, name := range []string{"assay/manager", "assay/agent", "assay/basil"} {
		file, err := filepath.Abs(filepath.Join(root, ".work", "images", index(t)[name][1]))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

func chartValues(t *testing.T, r *rack) map[string]any {
	t.Helper()
	tag := func(image string) map[string]string { return map[string]string{"tag": index(t)["assay/"+image][0]} }
	values := map[string]any{"images": map[string]any{"manager": tag("manager"), "agent": tag("agent")}}
	// A docker before 23 does not know the capability BPF (39), so that its containers cannot pass
	// it on.
	if bits := strings.TrimSpace(r.on(t, "head", "echo $((16#$(awk '/^CapBnd:/ { print $2 }' /proc/1/status) >> 39 & 1))")); bits == "0" {
		values["agent"] = map[string]any{"bpf": false}
	}
	return values
}

func (s *site) set(t *testing.T, name string, value any) {
	t.Helper()
	s.variables[name] = value
	s.setVariables(t)
}

// kubectl with the kubeconfig that the root has written.
func (s *site) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	return command(t, 4*time.Minute, "kubectl", append([]string{"--kubeconfig", filepath.Join(s.Path, "kubeconfig"), "--request-timeout=50s"}, args...)...)
}

// node is what this test looks at in a Node.
type node struct {
	Metadata struct {
		Name, UID           string
		Labels, Annotations map[string]string
	}
	Spec struct {
		Taints []struct{ Key, Value, Effect string }
	}
	Status struct {
		Conditions []struct{ Type, Status string }
		NodeInfo   struct{ BootID string }
	}
}

func (s *site) nodes(t *testing.T) map[string]node {
	t.Helper()
	var list struct{ Items []node }
	if err := json.Unmarshal([]byte(s.kubectl(t, "get", "nodes", "-o", "json")), &list); err != nil {
		t.Fatal(err)
	}
	all := map[string]node{}
	for _, n := range list.Items {
		all[n.Metadata.Name] = n
	}
	return all
}

func TestBareMetal(t *testing.T) {
	s := newSite(t)
	before := map[string][]string{}
	for name := range s.addresses {
		before[name] = s.traces(t, name)
	}
	s.setVariables(t)

	// Each step begins where the last one ended.
	for _, step := range []struct {
		name  string
		do    func(*testing.T)
		alone bool // what comes after does not need it
	}{
		{name: "MachinesThatCannotBeTaken", do: s.machinesThatCannotBeTaken},
		{name: "SwitchedOffInTheMiddle", do: s.switchedOffInTheMiddle},
		{name: "Continued", do: s.continued},
		{name: "LabelsAndTaints", do: s.labelsAndTaints, alone: true},
		{name: "OneMachineTwice", do: s.oneMachineTwice},
		{name: "HostAdded", do: s.hostAdded},
		{name: "NoSecrets", do: s.noSecrets, alone: true},
		{name: "HostRemoved", do: func(t *testing.T) { s.hostRemoved(t, before["c2"]) }, alone: true},
		{name: "Experiment", do: s.experiment, alone: true},
		{name: "Destroyed", do: func(t *testing.T) { s.destroyed(t, before) }},
		{name: "DestroyedWithoutControlPlane", do: func(t *testing.T) { s.destroyedWithoutControlPlane(t, before) }},
	} {
		if !t.Run(step.name, step.do) {
			s.keepLogs(t)
			if !step.alone {
				return
			}
		}
	}
}

// keepLogs prints what explains a failure.
func (s *site) keepLogs(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(s.Path, "kubeconfig")); err == nil {
		t.Log(s.kubectl(t, "get", "nodes,pods", "-A", "-o", "wide"))
	}
}

// One machine is in another cluster, one has another system: both are named, and nothing was done
// to them.
func (s *site) machinesThatCannotBeTaken(t *testing.T) {
	s.on(t, "r1", `mkdir -p /etc/kubernetes; echo '    server: https://198.51.100.7:6443' >/etc/kubernetes/kubelet.conf`)
	s.on(t, "r2", `cp /etc/os-release /root/os-release; rm /etc/os-release; printf 'ID=alpine\nVERSION_ID=3.20\nPRETTY_NAME="Alpine Linux v3.20"\n' >/etc/os-release`)
	s.applyFails(t,
		"host r1 (root@"+s.addresses["r1"]+", port 22)", "in another cluster already (API server https://198.51.100.7:6443)", "kubeadm reset",
		"host r2 (root@"+s.addresses["r2"]+", port 22)", "the operating system is Alpine Linux v3.20 (alpine:3.20)")
	s.on(t, "r1", `rm -r /etc/kubernetes/kubelet.conf`)
	s.on(t, "r2", `rm /etc/os-release; ln -s ../usr/lib/os-release /etc/os-release; rm /root/os-release`)
}

// The machine is switched off while it joins. The others go on.
func (s *site) switchedOffInTheMiddle(t *testing.T) {
	var once sync.Once
	s.Watch = io.MultiWriter(&s.printed, &lines{see: func(line string) {
		if strings.HasSuffix(line, "c1: joining") {
			once.Do(func() { s.powerOff(t, "c1") })
		}
	}})
	s.applyFails(t, "host c1 (root@"+s.addresses["c1"]+", port 22)", "Then run terraform apply again")
	s.Watch = &s.printed
	for _, name := range []string{"head", "r1", "r2"} {
		if !s.becomesReady(t, name) {
			t.Errorf("%s is not Ready though only c1 was switched off", name)
		}
	}
}

// The machine is back, half joined. Only what is missing is done.
func (s *site) continued(t *testing.T) {
	s.powerOn(t, "c1")
	// These are the remains of a join that was cut short: how far it came before the power went is
	// chance.
	s.on(t, "c1", `mkdir -p /var/lib/assay /etc/kubernetes/pki; printf 'pods `+podCIDR+`\n' >/var/lib/assay/cluster
		echo 'half' >/etc/kubernetes/bootstrap-kubelet.conf; rm -f /etc/kubernetes/kubelet.conf`)
	nodes := s.nodes(t)
	// Labels come after all joins: Terraform knows no finer order between instances of two
	// resources.
	want := []string{
		"create module.assay.helm_release.assay",
		"create module.assay.terraform_data.cluster",
		`create module.cluster.terraform_data.labels["c1"]`,
		`create module.cluster.terraform_data.labels["head"]`,
		`create module.cluster.terraform_data.labels["r1"]`,
		`create module.cluster.terraform_data.labels["r2"]`,
		`replace module.cluster.terraform_data.node["c1"]`,
	}
	if diff := cmp.Diff(want, s.changes(t)); diff != "" {
		t.Errorf("what is left to do (-want +got):\n%s", diff)
	}
	out := s.apply(t)
	if !strings.Contains(out, "c1: has half joined: beginning again") {
		t.Errorf("the half join of c1 went unnoticed:\n%s", out)
	}
	s.unchanged(t, nodes)
	if got := s.changes(t); len(got) > 0 {
		t.Errorf("a second apply would change %q", got)
	}
}

// unchanged checks that these nodes are the same objects of machines that have not been restarted.
func (s *site) unchanged(t *testing.T, nodes map[string]node) {
	t.Helper()
	now := s.nodes(t)
	for name, n := range nodes {
		if is := s.becomesReady(t, name); now[name].Metadata.UID != n.Metadata.UID || !is {
			t.Errorf("%s was touched: UID %s, before %s; Ready: %v", name, now[name].Metadata.UID, n.Metadata.UID, is)
		}
	}
}

// becomesReady waits for a node: the kubelet of one that is well may be late to say so.
func (s *site) becomesReady(t *testing.T, name string) bool {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Second) {
		if n, ok := s.nodes(t)[name]; ok && ready(n) {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
	}
}

func ready(n node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == "Ready" {
			return c.Status == "True"
		}
	}
	return false
}

func (s *site) labelsAndTaints(t *testing.T) {
	nodes := s.nodes(t)
	want := map[string][3]string{ // pool, region, taint
		"head": {"", "us-east-1", "node-role.kubernetes.io/control-plane=:NoSchedule"},
		"r1":   {"replicas", "us-east-1", "assay.dev/pool=replicas:NoSchedule"},
		"r2":   {"replicas", "eu-west-1", "assay.dev/pool=replicas:NoSchedule"},
		"c1":   {"clients", "us-east-1", "assay.dev/pool=clients:NoSchedule"},
	}
	got := map[string][3]string{}
	for name, n := range nodes {
		var taints []string
		for _, x := range n.Spec.Taints {
			taints = append(taints, fmt.Sprintf("%s=%s:%s", x.Key, x.Value, x.Effect))
		}
		l := n.Metadata.Labels
		got[name] = [3]string{l["assay.dev/pool"], l["topology.kubernetes.io/region"], strings.Join(taints, " ")}
		// Asked for, and not to be had in a container: it must not look as if it were.
		if l["machine.assay.dev/governor"] == "performance" && s.governor(t, name) != "performance" {
			t.Errorf("%s claims a governor that it does not have", name)
		}
		if s.governor(t, name) == "" {
			if l["machine.assay.dev/governor"] != "unavailable" || l["machine.assay.dev/preparation"] != "incomplete" {
				t.Errorf("%s has no governor, and its labels say %v", name, l)
			}
			if not := n.Metadata.Annotations["machine.assay.dev/not-set"]; !strings.Contains(not, "governor: asked for performance") {
				t.Errorf("%s: not-set is %q", name, not)
			}
		}
		if limit := strings.Fields(s.on(t, name, "grep '^Max open files' /proc/$(systemctl show -p MainPID --value containerd)/limits"))[3]; l["machine.assay.dev/nofile"] != limit {
			t.Errorf("%s says nofile %s, containerd has %s", name, l["machine.assay.dev/nofile"], limit)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}

	var pools map[string]struct{ Nodes []string }
	var regions map[string]struct{ Nodes []string }
	s.output(t, "pools", &pools)
	s.output(t, "regions", &regions)
	if diff := cmp.Diff(map[string][]string{"replicas": {"r1", "r2"}, "clients": {"c1"}, "us-east-1": {"c1", "r1"}, "eu-west-1": {"r2"}}, map[string][]string{
		"replicas": pools["replicas"].Nodes, "clients": pools["clients"].Nodes,
		"us-east-1": regions["us-east-1"].Nodes, "eu-west-1": regions["eu-west-1"].Nodes,
	}); diff != "" {
		t.Errorf("outputs (-want +got):\n%s", diff)
	}
}

func (s *site) governor(t *testing.T, machine string) string {
	t.Helper()
	return strings.TrimSpace(s.on(t, machine, "cat /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor 2>/dev/null || true"))
}

// A machine is in the list a second time, by another address. The second host is refused, and when
// it is taken out, the first one is as it was.
func (s *site) oneMachineTwice(t *testing.T) {
	nodes := s.nodes(t)
	hosts := s.hosts("head", "r1", "r2", "c1")
	again := hosts["r1"]
	again.Address = shortened(t, again.Address)
	hosts["again"] = again
	s.set(t, "hosts", hosts)
	s.applyFails(t, "host again (root@"+again.Address+", port 22)", "this machine is the host r1 already")
	s.set(t, "hosts", s.hosts("head", "r1", "r2", "c1"))
	s.apply(t)
	s.unchanged(t, nodes)
}

// shortened is the same IPv4 address in three numbers, which Terraform takes for another one, or
// for a name: 192.0.2.11 is 192.0.523.
func shortened(t *testing.T, address string) string {
	t.Helper()
	a, err := netip.ParseAddr(address)
	if err != nil {
		t.Fatal(err)
	}
	b := a.As4()
	return fmt.Sprintf("%d.%d.%d", b[0], b[1], int(b[2])<<8|int(b[3]))
}

// A host more: it joins, and nothing else happens.
func (s *site) hostAdded(t *testing.T) {
	nodes := s.nodes(t)
	s.set(t, "hosts", s.hosts("head", "r1", "r2", "c1", "c2"))
	want := []string{
		`create module.cluster.terraform_data.labels["c2"]`,
		`create module.cluster.terraform_data.node["c2"]`,
		`create module.machines.terraform_data.machine["c2"]`,
		`create module.machines.terraform_data.prepared["c2"]`,
	}
	if diff := cmp.Diff(want, s.changes(t)); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
	s.apply(t)
	s.unchanged(t, nodes)
	if is, n := s.becomesReady(t, "c2"), s.nodes(t)["c2"]; !is || n.Metadata.Labels["assay.dev/pool"] != "clients" {
		t.Errorf("c2 is not a node of the pool clients: %+v", n)
	}
}

const onC2 = `{"spec": {"nodeSelector": {"kubernetes.io/hostname": "c2"}, "tolerations": [{"operator": "Exists"}]}}`

// A host less: its pods leave in order, it is clean, and nothing else happens.
func (s *site) hostRemoved(t *testing.T, before []string) {
	nodes := s.nodes(t)
	delete(nodes, "c2")
	s.kubectl(t, "create", "namespace", "leaving")
	s.kubectl(t, "-n", "leaving", "run", "stays", "--image=localhost/busybox:bookworm", "--image-pull-policy=Never", "--overrides="+onC2,
		"--command", "--", "sh", "-c", "trap exit TERM; sleep 600 & wait")
	s.kubectl(t, "-n", "leaving", "wait", "pod/stays", "--for=condition=Ready", "--timeout=3m")
	s.set(t, "hosts", s.hosts("head", "r1", "r2", "c1"))
	s.apply(t)
	s.unchanged(t, nodes)
	if n, ok := s.nodes(t)["c2"]; ok {
		t.Errorf("the node c2 is still there: %+v", n)
	}
	events := s.kubectl(t, "-n", "leaving", "get", "events", "-o", "jsonpath={range .items[*]}{.reason} {.involvedObject.name}{\"\\n\"}{end}")
	if !strings.Contains(events, "Killing stays") {
		t.Errorf("the pod on c2 was not asked to leave; events:\n%s", events)
	}
	s.kubectl(t, "delete", "namespace", "leaving", "--wait=false")
	s.clean(t, "c2", before)
}

// clean checks that a machine is as it was.
func (s *site) clean(t *testing.T, machine string, before []string) {
	t.Helper()
	if diff := cmp.Diff(before, s.traces(t, machine)); diff != "" {
		t.Errorf("%s is not as it was (-before +after):\n%s", machine, diff)
	}
}
