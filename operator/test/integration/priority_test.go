package integration

import (
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/internal/testkit/testenv"
)

// Any author could jump the queue. With priority.restricted, a priority above the bound needs the
// right to the verb prioritize. A change that leaves or lowers the priority needs no right.
func TestWhoMayPrioritize(t *testing.T) {
	env := testenv.Get(t)
	ns := env.Namespace(t)
	for _, o := range chartWith(t, "priority-system", "templates/priority.yaml", "--set=priority.restricted=true,priority.max=3,namespaces={"+ns+"}") {
		if err := env.Client.Create(t.Context(), o); err != nil {
			t.Fatalf("%s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
	edit := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "edit"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"assay.dev"}, Resources: []string{"experiments"}, Verbs: []string{"create", "get", "patch"}},
	}}
	if err := env.Client.Create(t.Context(), edit); err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string]struct {
		role  rbacv1.RoleRef
		users []string
	}{
		"edit":       {rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "edit"}, []string{"ann", "owner"}},
		"prioritize": {rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "assay-priority-system-prioritize"}, []string{"owner"}},
	} {
		binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, RoleRef: b.role}
		for _, user := range b.users {
			binding.Subjects = append(binding.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user})
		}
		if err := env.Client.Create(t.Context(), binding); err != nil {
			t.Fatal(err)
		}
	}
	as := func(user string) client.Client {
		cfg := rest.CopyConfig(env.Config)
		cfg.Impersonate = rest.ImpersonationConfig{UserName: user}
		c, err := client.New(cfg, client.Options{Scheme: env.Scheme})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	create := func(user, priority string) error {
		e := sample(t, "experiment-minimal.yaml")
		e.SetNamespace(ns)
		set(t, e, "spec.priority", priority)
		return as(user).Create(t.Context(), e, client.DryRunAll)
	}
	refused := func(err error) bool {
		return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "may not prioritize experiments in namespace "+ns)
	}
	gomega.NewWithT(t).Eventually(func() bool { return refused(create("ann", "4")) }, time.Minute, 200*time.Millisecond).Should(gomega.BeTrue(), "the policy does not come into force")
	if err := create("ann", "3"); err != nil {
		t.Errorf("an author is refused the bound itself: %v", err)
	}
	if err := create("owner", "1000"); err != nil {
		t.Errorf("who may prioritize is refused: %v", err)
	}

	high := sample(t, "experiment-minimal.yaml")
	high.SetNamespace(ns)
	set(t, high, "spec.priority", "10")
	if err := env.Client.Create(t.Context(), high); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		spec    string
		refused bool
	}{
		"leaves it":       {`{"suspend":true}`, false},
		"lowers it":       {`{"priority":5}`, false},
		"raises it":       {`{"priority":11}`, true},
		"gives it up":     {`{"priority":null}`, false},
		"stays in bounds": {`{"priority":-7}`, false},
	} {
		err := as("ann").Patch(t.Context(), high.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":`+tc.spec+`}`)), client.DryRunAll)
		if tc.refused != refused(err) || !tc.refused && err != nil {
			t.Errorf("who %s: %v", name, err)
		}
	}
}
