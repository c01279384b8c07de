package chart

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

const rightsFile = "../../docs/reference/rights.md"

// The places where a right holds, by the words of the table in rights.md.
const (
	inCluster     = "cluster"
	inExperiments = "experiments"
	inOwn         = "own"
	inOwnCluster  = "own, whole cluster only"
	inChaosMesh   = "experiments, with Chaos Mesh"
)

// The manager's rights are in a list that owners of clusters read. It does not grow, and does not
// shrink, without the list.
func TestRightsAreListed(t *testing.T) {
	whole := render(t, "--set=crds.install=false")
	some := render(t, "--set=crds.install=false,namespaces={papers,lab}")
	cluster := rights(t, some, inCluster, "ClusterRole/assay-assay-system-manager")
	experiments := rights(t, some, inExperiments, "Role/assay-assay-system-manager")
	own := rights(t, some, inOwn, "Role/assay-own")
	all := slices.Concat(cluster, experiments, own)
	for _, r := range rights(t, whole, inOwn, "Role/assay-own") {
		if !slices.Contains(own, r) {
			all = append(all, strings.Replace(r, inOwn+" |", inOwnCluster+" |", 1))
		}
	}
	all = append(all, chaosMeshRights(t, experiments)...)
	slices.Sort(all)
	if diff := cmp.Diff(listed(t, "cluster|experiments|own"), all); diff != "" {
		t.Errorf("%s is not what the chart grants (-listed +granted). A new right is a question to every cluster's owner: is there no other way?\n%s", rightsFile, diff)
	}
	// The same rights, in one place or the other. The ValidatingWebhookConfiguration has another
	// name.
	got := rights(t, whole, "x", "ClusterRole/assay-manager")
	want := slices.Concat(rights(t, some, "x", "ClusterRole/assay-assay-system-manager"), rights(t, some, "x", "Role/assay-assay-system-manager"))
	for _, l := range [][]string{got, want} {
		for i := range l {
			l[i] = strings.ReplaceAll(l[i], "assay-assay-system", "assay")
		}
		slices.Sort(l)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("an installation for the whole cluster has other rights than one for namespaces (-namespaces +whole):\n%s", diff)
	}
}

// chaosMeshRights are those that chaosMesh.enabled adds, to the rights on experiments only and to
// none of them but its kinds.
func chaosMeshRights(t *testing.T, without []string) []string {
	t.Helper()
	var more []string
	r := render(t, "--set=crds.install=false,chaosMesh.enabled=true,namespaces={papers,lab}")
	for _, row := range rights(t, r, inExperiments, "Role/assay-assay-system-manager") {
		if !slices.Contains(without, row) {
			more = append(more, strings.Replace(row, inExperiments+" |", inChaosMesh+" |", 1))
		}
	}
	for _, row := range without {
		if strings.Contains(row, "chaos-mesh.org") {
			t.Errorf("without chaosMesh.enabled the manager may use Chaos Mesh: %s", row)
		}
	}
	return more
}

// rights are the rows of one role, each "where | group | resource | verbs".
func rights(t *testing.T, r rendered, where, name string) []string {
	t.Helper()
	var rules []rbacv1.PolicyRule
	switch role := r.objects[name].(type) {
	case *rbacv1.ClusterRole:
		rules = role.Rules
	case *rbacv1.Role:
		rules = role.Rules
	default:
		t.Fatalf("there is no %s", name)
	}
	var rows []string
	for _, rule := range rules {
		if len(rule.NonResourceURLs) > 0 || slices.Contains(rule.Verbs, "*") || slices.Contains(rule.Resources, "*") || slices.Contains(rule.APIGroups, "*") {
			t.Errorf("%s has a rule for everything: %v", name, rule)
		}
		for _, group := range rule.APIGroups {
			if group == "" {
				group = "core"
			}
			for _, resource := range rule.Resources {
				if len(rule.ResourceNames) > 0 {
					resource += " " + strings.ReplaceAll(strings.Join(rule.ResourceNames, " "), "assay-assay-system", "assay")
				}
				rows = append(rows, strings.Join([]string{where, group, resource, strings.Join(slices.Sorted(slices.Values(rule.Verbs)), ", ")}, " | "))
			}
		}
	}
	return rows
}

// listed are the rows of the table that begin with such a place; each must say what the right is
// for.
func listed(t *testing.T, where string) []string {
	t.Helper()
	text, err := os.ReadFile(rightsFile)
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, m := range regexp.MustCompile(`(?m)^\| ((?:`+where+`)[^|]*) \| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]*) \|$`).FindAllStringSubmatch(string(text), -1) {
		if len(strings.Fields(m[5])) < 2 {
			t.Errorf("%s does not say what %s of %s is for", rightsFile, m[4], m[3])
		}
		rows = append(rows, strings.ReplaceAll(strings.Join(m[1:5], " | "), "`", ""))
	}
	slices.Sort(rows)
	return rows
}

// A right to what belongs to no namespace cannot be granted in one: such a rule would grant
// nothing, and no user would notice.
func TestRightsFitTheirPlace(t *testing.T) {
	namespaced := sets.New("configmaps", "secrets", "persistentvolumeclaims", "pods", "services", "events", "controllerrevisions", "statefulsets", "jobs",
		"experiments", "experiments/finalizers", "experiments/status", "systems", "trials", "trials/finalizers", "trials/status", "datasets", "datasets/finalizers", "datasets/status", "leases",
		"resourcequotas", "limitranges", "serviceaccounts", "pods/eviction", "poddisruptionbudgets", "networkpolicies", "podmonitors", "servicemonitors")
	r := render(t, "--set=crds.install=false,namespaces={papers}")
	seen := 0
	for name, o := range r.objects {
		role, ok := o.(*rbacv1.Role)
		if !ok {
			continue
		}
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				if seen++; !namespaced.Has(resource) && !strings.Contains(strings.Join(rule.APIGroups, " "), "chaos-mesh.org") {
					t.Errorf("%s grants %s, which may belong to no namespace: if it does, add it to this list, else to $outside in _helpers.tpl", name, resource)
				}
			}
		}
	}
	if seen < 10 {
		t.Errorf("the roles grant %d resources, want at least those of a manager", seen)
	}
}
