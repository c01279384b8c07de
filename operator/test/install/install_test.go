package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
)

// What the chart makes of three sets of values is taken by the API server: defaults, an owner with little trust, everything for which there are kinds.
func TestServerTakesWhatIsRendered(t *testing.T) {
	o := newOwner(t)
	for _, ns := range []string{"papers", "lab"} {
		if err := o.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}); err == nil {
			t.Cleanup(func() { o.removeNamespace(t, ns) })
		} else if !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	for name, flags := range map[string][]string{
		"default":    nil,
		"hardened":   {"--values=" + chart + "/testdata/hardened.yaml"},
		"everything": append([]string{"--values=" + chart + "/testdata/everything.yaml", "--set=dashboard.namespace="}, o.kinds(t)...),
	} {
		t.Run(name, func(t *testing.T) {
			// Hooks are made in an order: a pod whose account is not there yet would be refused. helm test makes them for real.
			text := o.run(t, "helm", append([]string{"template", release, chart, "-n", namespace, "--no-hooks"}, flags...)...)
			file := filepath.Join(t.TempDir(), "rendered.yaml")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			out := o.run(t, "kubectl", "apply", "--server-side", "--force-conflicts", "--dry-run=server", "-f", file)
			if n := strings.Count(out, "serverside-applied"); n < 17 {
				t.Errorf("only %d objects were taken:\n%s", n, out)
			}
		})
	}
}

// kinds are the flags of helm template that say which kinds of others this cluster has, and turn off what needs those that it has not.
func (o *owner) kinds(t *testing.T) []string {
	t.Helper()
	var flags []string
	for _, k := range []struct{ group, resource, kind, value string }{
		{"monitoring.coreos.com/v1", "servicemonitors", "ServiceMonitor", "metrics.serviceMonitor.enabled"},
		{"monitoring.coreos.com/v1", "prometheusrules", "PrometheusRule", "metrics.rules.enabled"},
		{"cert-manager.io/v1", "certificates", "Certificate", "certificates.certManager.enabled"},
	} {
		list, err := o.clientset.Discovery().ServerResourcesForGroupVersion(k.group)
		if err == nil && slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == k.resource }) {
			flags = append(flags, "--api-versions="+k.group+"/"+k.kind)
			continue
		}
		t.Logf("this cluster has no %s: without %s", k.kind, k.value)
		flags = append(flags, "--set="+k.value+"=false")
	}
	return flags
}

func TestHelmTest(t *testing.T) {
	o := newOwner(t)
	if out := o.run(t, "helm", "test", release, "-n", namespace, "--timeout", "2m"); !strings.Contains(out, "Succeeded") {
		t.Errorf("helm test printed\n%s", out)
	}
}

// In the middle of an experiment the release is upgraded to another version whose certificates live for seconds, these and their authority are renewed,
// and all is rolled back. Each trial runs once; no call to a webhook is refused for want of a manager or of trust.
func TestUpgradeAndRollback(t *testing.T) {
	o := newOwner(t)
	t.Cleanup(func() { o.restore(t) })
	o.makeNamespace(t, "install-upgrade")
	exp := o.apply(t, "install-upgrade", nil)
	calls := o.callWebhooks(t, "install-upgrade")
	o.trialRuns(t, exp)
	before := o.authorities(t)
	if len(before) != 1 {
		t.Fatalf("%d authorities are trusted before, want one", len(before))
	}

	o.upgrade(t, nextVersion(t), "--set=certificates.lifetime=40s,certificates.authorityLifetime=3m")
	if d := o.deployedVersion(t); d != "9.9.9" {
		t.Errorf("managers are of version %s after the upgrade", d)
	}
	eventually(t, 2*time.Minute, "another authority signs", func(context.Context) (bool, error) {
		now := o.authorities(t)
		return now[0] != before[0], fmt.Errorf("%d authorities", len(now))
	})
	o.trialRuns(t, exp)
	o.run(t, "helm", "rollback", release, "-n", namespace, "--wait", "--timeout", "3m")
	if d := o.deployedVersion(t); d == "9.9.9" {
		t.Error("managers are of the next version after the rollback")
	}
	o.complete(t, exp, 8, 4*time.Minute)
	calls(t)
}

// nextVersion is a copy of the chart with a higher version.
func nextVersion(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "assay")
	if err := os.CopyFS(dir, os.DirFS(chart)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "Chart.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"version", "appVersion"} {
		text = regexp.MustCompile(`(?m)^`+key+`: .*$`).ReplaceAll(text, []byte(key+": 9.9.9"))
	}
	if err := os.WriteFile(file, text, 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func (o *owner) deployedVersion(t *testing.T) string {
	t.Helper()
	d, err := o.clientset.AppsV1().Deployments(namespace).Get(t.Context(), "assay-manager", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if d.Status.UpdatedReplicas != *d.Spec.Replicas || d.Status.ReadyReplicas != *d.Spec.Replicas {
		t.Errorf("managers: %+v", d.Status)
	}
	return d.Spec.Template.Labels["app.kubernetes.io/version"]
}

// authorities that the API server trusts, as PEM.
func (o *owner) authorities(t *testing.T) []string {
	t.Helper()
	w := &admissionv1.ValidatingWebhookConfiguration{}
	if err := o.Get(t.Context(), client.ObjectKey{Name: "assay"}, w); err != nil {
		t.Fatal(err)
	}
	const end = "-----END CERTIFICATE-----\n"
	all := strings.SplitAfter(string(w.Webhooks[0].ClientConfig.CABundle), end)
	return all[:len(all)-1]
}

// trialRuns waits until a trial is between its release and its end.
func (o *owner) trialRuns(t *testing.T, exp *v1alpha1.Experiment) {
	t.Helper()
	eventually(t, 2*time.Minute, "a trial runs", func(ctx context.Context) (bool, error) {
		list := &v1alpha1.TrialList{}
		if err := o.List(ctx, list, client.InNamespace(exp.Namespace)); err != nil {
			return false, err
		}
		return slices.ContainsFunc(list.Items, func(trial v1alpha1.Trial) bool {
			return trial.Status.ZeroUnixNanos != 0 && !meta.IsStatusConditionTrue(trial.Status.Conditions, v1alpha1.TrialComplete)
		}), errors.New("none")
	})
}

// callWebhooks offers the API server a System that only the webhook can refuse, five times a second. The function that it returns stops that and fails
// the test if any answer was not the webhook's.
func (o *owner) callWebhooks(t *testing.T, ns string) func(*testing.T) {
	t.Helper()
	wrong := &v1alpha1.System{}
	read(t, filepath.Join(root, "experiments", "systems", "etcd.yaml"), wrong)
	wrong.Namespace, wrong.Name = ns, "wrong"
	wrong.Spec.Replicas.Containers[0].Command = []string{"{{"}
	ctx, stop := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	var calls int
	var refused []string
	wait.Go(func() {
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case at := <-tick.C:
				err := o.Create(ctx, wrong.DeepCopy(), client.DryRunAll)
				if ctx.Err() != nil {
					return
				}
				calls++
				if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "command[0]") {
					refused = append(refused, fmt.Sprintf("%s: %v", at.Format(time.TimeOnly), err))
				}
			}
		}
	})
	end := sync.OnceFunc(func() { stop(); wait.Wait() })
	t.Cleanup(end)
	return func(t *testing.T) {
		t.Helper()
		end()
		t.Logf("%d calls of webhooks", calls)
		if calls < 100 || len(refused) > 0 {
			t.Errorf("of %d calls of webhooks %d were not answered by one:\n%s", calls, len(refused), strings.Join(refused[:min(len(refused), 5)], "\n"))
		}
	}
}

// helm uninstall leaves the kinds, and in the namespaces of experiments their results. Then two installations for one namespace each work side by side,
// each without a right in the other's.
func TestRemovalAndSomeNamespaces(t *testing.T) {
	o := newOwner(t)
	t.Cleanup(func() { o.restore(t) })
	for _, ns := range []string{"install-a", "install-b"} {
		o.makeNamespace(t, ns)
	}
	one := func(e *v1alpha1.Experiment) { e.Spec.Sweep, e.Spec.Repetitions = nil, v1alpha1.Repetitions{Min: 1} }
	exp := o.apply(t, "install-a", one)
	o.complete(t, exp, 1, 2*time.Minute)
	results := o.results(t, "install-a")
	if len(results) == 0 {
		t.Fatal("the experiment left no results")
	}
	if err := o.Delete(t.Context(), exp); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, "the experiment is gone", func(ctx context.Context) (bool, error) {
		err := o.Get(ctx, client.ObjectKeyFromObject(exp), exp)
		return apierrors.IsNotFound(err), err
	})

	o.run(t, "helm", "uninstall", release, "-n", namespace, "--wait", "--timeout", "2m")
	// Helm does not wait for managers to end.
	eventually(t, time.Minute, "helm uninstall leaves nothing", func(context.Context) (bool, error) {
		left := o.left(t)
		return len(left) == 0, fmt.Errorf("%v", left)
	})
	if after := o.results(t, "install-a"); !slices.Equal(after, results) {
		t.Errorf("results before %v, after %v", results, after)
	}
	for _, crd := range []string{"systems", "experiments", "trials"} {
		o.run(t, "kubectl", "get", "crd", crd+".assay.dev")
	}

	o.upgrade(t, chart, "--set=namespaces={install-a},replicas=1")
	o.run(t, "helm", "install", "other", chart, "-n", "install-b-system", "--create-namespace", "--values", o.values,
		"--set=namespaces={install-b},replicas=1,crds.install=false,aggregateRoles=false", "--wait", "--timeout", "2m")
	t.Cleanup(func() {
		o.run(t, "helm", "uninstall", "other", "-n", "install-b-system", "--wait", "--timeout", "2m")
		o.removeNamespace(t, "install-b-system")
	})
	o.run(t, "helm", "test", "other", "-n", "install-b-system", "--timeout", "2m")
	for ns, manager := range map[string]string{"install-a": namespace, "install-b": "install-b-system"} {
		if o.may(t, manager, "list", "configmaps", "default") || o.may(t, manager, "get", "secrets", "kube-system") {
			t.Errorf("the manager of %s has rights elsewhere", ns)
		}
		if !o.may(t, manager, "list", "configmaps", ns) {
			t.Errorf("the manager of %s has no rights there", ns)
		}
	}
	if err := o.Delete(t.Context(), &v1alpha1.System{ObjectMeta: metav1.ObjectMeta{Namespace: "install-a", Name: "etcd"}}); err != nil {
		t.Fatal(err)
	}
	a, b := o.apply(t, "install-a", one), o.apply(t, "install-b", one)
	o.complete(t, a, 1, 2*time.Minute)
	o.complete(t, b, 1, 2*time.Minute)
	// The namespaces can only be emptied while these managers are there.
	for _, ns := range []string{"install-a", "install-b"} {
		o.removeNamespace(t, ns)
	}
}

// results are the ConfigMaps with results in a namespace.
func (o *owner) results(t *testing.T, ns string) []string {
	t.Helper()
	list := &corev1.ConfigMapList{}
	if err := o.List(t.Context(), list, client.InNamespace(ns), client.HasLabels{v1alpha1.LabelResults}); err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	slices.Sort(names)
	return names
}

// may asks whether the manager of a namespace may do something.
func (o *owner) may(t *testing.T, manager, verb, resource, ns string) bool {
	t.Helper()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               "system:serviceaccount:" + manager + ":assay-manager",
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: ns, Verb: verb, Resource: resource},
	}}
	if err := o.Create(t.Context(), review); err != nil {
		t.Fatal(err)
	}
	return review.Status.Allowed
}

// left is everything that carries the release's label or lies in its namespace, of all kinds that the cluster has, but the kinds of Assay themselves and
// what every namespace has.
func (o *owner) left(t *testing.T) []string {
	t.Helper()
	d, err := dynamic.NewForConfig(o.config)
	if err != nil {
		t.Fatal(err)
	}
	lists, err := o.clientset.Discovery().ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, l := range lists {
		gv, err := schema.ParseGroupVersion(l.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range l.APIResources {
			if !slices.Contains(r.Verbs, "list") || r.Name == "events" || r.Name == "customresourcedefinitions" || r.Name == "componentstatuses" {
				continue
			}
			left = append(left, o.leftOf(t, d, gv.WithResource(r.Name), r.Namespaced)...)
		}
	}
	return left
}

func (o *owner) leftOf(t *testing.T, d dynamic.Interface, r schema.GroupVersionResource, namespaced bool) []string {
	t.Helper()
	var left []string
	list, err := d.Resource(r).List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/instance=" + release})
	if err != nil {
		t.Fatalf("list %s: %v", r, err)
	}
	items := list.Items
	if namespaced {
		inside, err := d.Resource(r).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatalf("list %s: %v", r, err)
		}
		items = append(items, inside.Items...)
	}
	for i := range items {
		u := &items[i]
		everywhere := u.GetName() == "kube-root-ca.crt" || u.GetKind() == "ServiceAccount" && u.GetName() == "default"
		if name := fmt.Sprintf("%s %s/%s", u.GetKind(), u.GetNamespace(), u.GetName()); !everywhere && !slices.Contains(left, name) {
			left = append(left, name)
		}
	}
	return left
}
