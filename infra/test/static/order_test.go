package static

import (
	"regexp"
	"strings"
	"testing"

	"assay.dev/assay/infra/test/terraform"
)

// The rules that let SSH in were no resource's dependency. Destroy deleted them first, and then
// gave machines up as dead that it could not reach any more.
func TestTheWayToMachinesStaysUntilTheyAreGivenBack(t *testing.T) {
	for root, made := range map[string]string{"openstack": "module.instances.openstack_", "libvirt": "module.vms.libvirt_"} {
		t.Run(root, func(t *testing.T) {
			t.Parallel()
			d := terraform.Initialised(t, root)
			graph := d.Must(t, "graph")
			needs := map[string][]string{}
			for _, m := range regexp.MustCompile(`"(\S+)" -> "(\S+)"`).FindAllStringSubmatch(graph, -1) {
				needs[m[1]] = append(needs[m[1]], m[2])
			}
			kept := map[string]bool{}
			next := []string{"module.machines.terraform_data.machine"}
			for len(next) > 0 {
				resource := next[0]
				next = next[1:]
				if !kept[resource] {
					kept[resource] = true
					next = append(next, needs[resource]...)
				}
			}
			count := 0
			for _, m := range regexp.MustCompile(`(?m)^\s*"(\S+)" \[label`).FindAllStringSubmatch(graph, -1) {
				if !strings.HasPrefix(m[1], made) {
					continue
				}
				count++
				if !kept[m[1]] {
					t.Errorf("%s may be destroyed before machines are given back: no host depends on it", m[1])
				}
			}
			if count < 4 {
				t.Errorf("only %d resources like %s*:\n%s", count, made, graph)
			}
		})
	}
}
