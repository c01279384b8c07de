package static

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/infra/test/terraform"
)

type object = map[string]any

// inventory is a list that is accepted: two regions, two pools.
func inventory() object {
	return object{
		"hosts": object{
			"control":     object{"address": "control.example.org", "role": "control-plane", "region": "us-east-1", "internal_address": "192.0.2.10"},
			"us-east-1-0": object{"address": "192.0.2.11", "pool": "servers", "region": "us-east-1", "labels": object{"example.org/rack": "a", "example.org/spare": ""}},
			"eu-west-1-0": object{"address": "192.0.2.12", "pool": "servers", "region": "eu-west-1", "zone": "eu-west-1b", "user": "ops", "port": 2222},
			"client-0":    object{"address": "192.0.2.13", "pool": "clients", "region": "us-east-1"},
		},
		"pools":   object{"servers": object{"labels": object{"example.org/disk": "nvme"}}, "clients": object{"taint": false}},
		"regions": []string{"us-east-1", "eu-west-1"},
	}
}

// with returns the list with one host's fields changed; a nil value removes the field, a nil change
// the host.
func with(name string, change object) object {
	vars := inventory()
	hosts := vars["hosts"].(object)
	if change == nil {
		delete(hosts, name)
		return vars
	}
	host, ok := hosts[name].(object)
	if !ok {
		host = object{}
	}
	maps.Copy(host, change)
	maps.DeleteFunc(host, func(_ string, v any) bool { return v == nil })
	hosts[name] = host
	return vars
}

// but returns the list with other variables changed.
func but(change object) object {
	vars := inventory()
	maps.Copy(vars, change)
	return vars
}

// refused are lists of hosts that no root may accept, and the sentence that says why.
var refused = map[string]struct {
	variables object
	want      string
}{
	"a range that is none":         {but(object{"pod_cidr": "10.244.0.0"}), `pod_cidr is "10.244.0.0"; it must be the first address of an IPv4 range and its prefix length, as in 10.244.0.0/16.`},
	"a range with a host's bits":   {but(object{"pod_cidr": "10.244.0.1/16"}), `pod_cidr is "10.244.0.1/16"; it must be the first address`},
	"a range of IPv6":              {but(object{"service_cidr": "fd00::/108"}), `service_cidr is "fd00::/108"; it must be the first address of an IPv4 range`},
	"pods without room":            {but(object{"pod_cidr": "10.244.0.0/23"}), "pod_cidr 10.244.0.0/23 is too small: each of the 4 nodes needs a /24, so that the prefix length may be at most 22."},
	"too many services":            {but(object{"service_cidr": "10.0.0.0/8"}), "service_cidr 10.0.0.0/8: the API server wants a prefix length from 12 to 24."},
	"ranges that overlap":          {but(object{"service_cidr": "10.244.128.0/20"}), "service_cidr 10.244.128.0/20 and pod_cidr 10.244.0.0/16 overlap."},
	"a range with a host in it":    {but(object{"service_cidr": "192.0.2.0/24"}), "must not contain the address of a host: client-0 is in 192.0.2.0/24, control is in 192.0.2.0/24, eu-west-1-0 is in 192.0.2.0/24, us-east-1-0 is in"},
	"a host twice":                 {with("client-0", object{"address": "192.0.2.11"}), "hosts: the same machine is there twice: client-0 and us-east-1-0 have address 192.0.2.11:22."},
	"an inner address twice":       {with("client-0", object{"internal_address": "192.0.2.10"}), "hosts: the same internal_address is there twice: client-0 and control have 192.0.2.10."},
	"a pool that is not known":     {with("client-0", object{"pool": "observers"}), `hosts: unknown pool: client-0 is in "observers"; pools has clients, servers.`},
	"a worker in no pool":          {with("client-0", object{"pool": nil}), "hosts: client-0 needs a pool."},
	"a control plane in a pool":    {with("control", object{"pool": "servers"}), "hosts: control is the control plane and has no pool."},
	"a pool without hosts":         {with("client-0", nil), "pools: no host is in clients; remove the pool, or give it a host."},
	"a region without hosts":       {but(object{"regions": []string{"us-east-1", "eu-west-1", "ap-northeast-1"}}), "regions: no worker is in ap-northeast-1; remove the region, or give it a host."},
	"a region that is not known":   {but(object{"regions": []string{"us-east-1"}}), `hosts: unknown region: eu-west-1-0 is in "eu-west-1"; regions has us-east-1.`},
	"no control plane":             {with("control", nil), "hosts: 0 have the role control-plane; exactly one must."},
	"two control planes":           {with("client-0", object{"role": "control-plane", "pool": nil}), "hosts: 2 have the role control-plane; exactly one must."},
	"a role that is not known":     {with("client-0", object{"role": "master"}), `hosts: role of client-0 is "master"; it is control-plane or worker.`},
	"a name that is no DNS label":  {with("Client_1", object{"address": "192.0.2.14", "pool": "clients", "region": "us-east-1"}), `hosts: "Client_1": the key is the node's name and must be a DNS label`},
	"a user in the address":        {with("client-0", object{"address": "ops@192.0.2.13"}), "hosts: address of client-0 must be a host name or an IPv4 address, without a user or a port"},
	"an inner address that is not": {with("client-0", object{"internal_address": "10.0.0.256"}), "hosts: internal_address of client-0 must be an IPv4 address"},
	"a port that is none":          {with("client-0", object{"port": 65536}), "hosts: port of client-0 must be between 1 and 65535."},
	"a region that is no label":    {with("client-0", object{"region": "US East"}), "hosts: region and zone of client-0 must be DNS labels"},
	"a label that is none":         {with("client-0", object{"labels": object{"bad key!": "x", "example.org/rack": "a"}}), `hosts: labels: client-0 has "bad key!", which is no label's key: at most 63 letters, digits, -, _ and ., with a letter or digit at both ends, and perhaps a DNS name and / before it.`},
	"a label's value that is none": {with("client-0", object{"labels": object{"example.org/rack": "row 7"}}), `hosts: labels: client-0 has example.org/rack = "row 7", which is no label's value: at most 63 letters, digits, -, _ and ., with a letter or digit at both ends, or nothing.`},
	"a label of a pool":            {but(object{"pools": object{"servers": object{"labels": object{"example.org/": "x"}}, "clients": object{}}}), `pools: labels: servers has "example.org/", which is no label's key`},
	"a pool's label's value":       {but(object{"pools": object{"servers": object{}, "clients": object{"labels": object{"example.org/disk": "-nvme"}}}}), `pools: labels: clients has example.org/disk = "-nvme", which is no label's value`},
	"a label that is too long":     {with("client-0", object{"labels": object{"example.org/rack": strings.Repeat("a", 64)}}), "which is no label's value: at most 63"},
	"Kubernetes too old":           {but(object{"kubernetes_version": "1.33.1"}), "kubernetes_version 1.33.1 is not supported; take a patch of 1.34, 1.35, 1.36."},
	"Kubernetes with a v":          {but(object{"kubernetes_version": "v1.36.3"}), `kubernetes_version is "v1.36.3"; it must have three numbers and no v, as in 1.36.3.`},
	"a name that is none":          {but(object{"name": "My Cluster"}), `name is "My Cluster"; it must be a DNS label`},
}

func TestInventoryRefuses(t *testing.T) {
	t.Parallel()
	d := terraform.Initialised(t, "modules/inventory")
	if out, err := d.Run(t, "plan", "-no-color", d.Variables(t, inventory())); err != nil {
		t.Fatalf("the list that all cases change: %v\n%s", err, out)
	}
	for name, tc := range refused {
		t.Run(name, func(t *testing.T) {
			out, err := d.Run(t, "plan", "-no-color", d.Variables(t, tc.variables))
			if message := terraform.Message(out); err == nil || !strings.Contains(message, tc.want) {
				t.Errorf("error %v, want one with %q:\n%s", err, tc.want, out)
			}
		})
	}
}

// The root that takes a list of hosts passes it through the same checks, with nothing planned
// before.
func TestRootsRefuse(t *testing.T) {
	d := terraform.Initialised(t, "bare-metal")
	for _, name := range []string{"a range that is none", "a host twice", "a pool that is not known", "a region without hosts", "Kubernetes too old"} {
		t.Run(name, func(t *testing.T) {
			out, err := d.Run(t, "plan", "-no-color", d.Variables(t, refused[name].variables))
			if message := terraform.Message(out); err == nil || !strings.Contains(message, refused[name].want) {
				t.Errorf("error %v, want one with %q:\n%s", err, refused[name].want, out)
			}
		})
	}
}

// misspelt are fields that nothing knows, beside others that are known. Terraform drops such a
// field when it makes the object that a module wants, so that a plan looked as if it had been
// obeyed.
var misspelt = object{
	"preparation": object{"governors": "performance", "Smt": "off", "turbo": "off"},
	"ssh":         object{"wait_second": 5},
	"kubeadm":     object{"drain": 5},
	"pools":       object{"servers": object{"tain": false}, "clients": object{"labels": object{}}},
	"hosts": object{
		"r1": object{"address": "192.0.2.11", "pool": "servers", "region": "a", "hostkey": "ssh-ed25519 AAAA", "prot": 2222},
		"r2": object{"address": "192.0.2.12", "pool": "servers", "region": "a", "labels": object{"a": "b"}},
	},
	"network": object{"cidr": "10.17.3.0/24", "brige": "br0"},
	"workers": []object{{"pool": "servers", "region": "a"}, {"pool": "servers", "region": "a", "zon": "a1"}},
}

// sentences that refuse them.
var sentences = map[string]string{
	"preparation": "preparation: unknown Smt, governors; it has smt, turbo, governor, huge_pages, nofile, swap, time_sync, ntp_servers, kernel_modules, strict, software,",
	"ssh":         "ssh: unknown wait_second; it has known_hosts_file, proxy_jump, wait_seconds, dead_seconds.",
	"kubeadm":     "kubeadm: unknown drain; it has kubelet_configuration, kube_proxy_configuration, ignore_preflight_errors, drain_seconds.",
	"pools":       "pools: unknown tain of servers; a pool has labels, taint.",
	"hosts":       "hosts: unknown hostkey, prot of r1; a host has address, user, port, host_key, internal_address, role, pool, region, zone, labels, instance.",
	"machines":    "machines: unknown hostkey, prot of r1; a machine has ",
	"network":     "network: unknown brige; it has cidr, ",
	"workers":     "workers: unknown zon of 1; a worker has pool, region, zone, labels.",
}

func TestMisspeltFieldsAreRefused(t *testing.T) {
	common := []string{"preparation", "ssh", "kubeadm", "pools"}
	for root, variables := range map[string][]string{
		"bare-metal": append(common, "hosts"), "libvirt": append(common, "machines", "network"), "openstack": append(common, "machines", "network"),
		"kind": {"pools", "workers"},
	} {
		t.Run(root, func(t *testing.T) {
			t.Parallel()
			d := terraform.Initialised(t, root)
			values := object{}
			for _, v := range variables {
				values[v] = misspelt[v]
				if v == "machines" {
					values[v] = misspelt["hosts"]
				}
			}
			// No libvirt or OpenStack answers, which is an error, too: the sentences are what is
			// wanted.
			out, err := d.Run(t, "plan", "-no-color", "-var-file=example.tfvars", d.Variables(t, values))
			message := terraform.Message(out)
			for _, v := range variables {
				if err == nil || !strings.Contains(message, sentences[v]) {
					t.Errorf("error %v, want one with %q:\n%s", err, sentences[v], out)
				}
			}
		})
	}
}

// The roots know the fields that the modules take: what these learn they must learn, too.
func TestRootsKnowTheModulesFields(t *testing.T) {
	type fields struct{ list, module, variable string }
	common := []fields{
		{"preparation_fields", "modules/ssh-nodes", "preparation"}, {"ssh_fields", "modules/ssh-nodes", "ssh"}, {"pool_fields", "modules/inventory", "pools"},
	}
	for root, all := range map[string][]fields{
		"bare-metal": append(common, fields{"host_fields", "modules/inventory", "hosts"}),
		"libvirt":    append(common, fields{"machine_fields", "modules/libvirt-nodes", "machines"}, fields{"network_fields", "modules/libvirt-nodes", "network"}),
		"openstack":  append(common, fields{"machine_fields", "modules/openstack-nodes", "machines"}, fields{"network_fields", "modules/openstack-nodes", "network"}),
		"kind":       {{"pool_fields", "modules/inventory", "pools"}},
	} {
		text, err := os.ReadFile(filepath.Join(terraform.Infra(t), root, "variables.tf"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range all {
			var got []string
			if m := regexp.MustCompile(`(?s)\n  ` + f.list + ` += \[(.*?)\]`).FindSubmatch(text); m != nil {
				for _, name := range regexp.MustCompile(`"(\w+)"`).FindAllSubmatch(m[1], -1) {
					got = append(got, string(name[1]))
				}
			}
			if diff := cmp.Diff(fieldsOf(t, f.module, f.variable), got); diff != "" {
				t.Errorf("infra/%s: local.%s is not what infra/%s takes (-module +root):\n%s", root, f.list, f.module, diff)
			}
		}
	}
}

// fieldsOf are the names of the fields of an object, or of a map of objects, that a module takes,
// in their order.
func fieldsOf(t *testing.T, module, variable string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(terraform.Infra(t), module, "variables.tf"))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?s)\nvariable "` + variable + `" \{\n.*?\n  type = (?:map\()?object\(\{\n(.*?)\n  \}\)`).FindSubmatch(text)
	if m == nil {
		t.Fatalf("no variable %s with an object in infra/%s/variables.tf", variable, module)
	}
	var fields []string
	for _, f := range regexp.MustCompile(`(?m)^    (\w+) +=`).FindAllSubmatch(m[1], -1) {
		fields = append(fields, string(f[1]))
	}
	return fields
}
