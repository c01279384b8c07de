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

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
)

func TestHelmTest(t *testing.T) {
	o := newOwner(t)
	if out := o.run(t, "helm", "test", release, "-n", namespace, helmPatience); !strings.Contains(out, "Succeeded") {
		t.Errorf("helm test printed\n%s", out)
	}
}

// "make cluster" treated a healthy cluster as broken, and replaced it with all its content: it
// waited for leases that the controllers no longer had.
func TestAHealthyClusterIsLeftAlone(t *testing.T) {
	own, err := filepath.Abs(filepath.Join(root, ".work", "kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	if other := os.Getenv(kubeconfigVariable); other != "" && other != own {
		t.Skipf("these tests use another cluster (%s=%s)", kubeconfigVariable, other)
	}
	o := newOwner(t)
	nodes := func() string {
		out, err := o.try("docker", "ps", "--all", "--no-trunc", "--filter", "label=io.x-k8s.kind.cluster", "--format", "{{.Names}} {{.ID}} {{.State}}")
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	before := nodes()
	if before == "" {
		t.Fatal("docker has no node of a kind cluster")
	}
	began := time.Now()
	if out, err := o.try(filepath.Join(root, "hack", "cluster", "cluster.sh"), "up"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Logf("looking at a healthy cluster took %v", time.Since(began).Round(time.Second))
	if diff := cmp.Diff(before, nodes()); diff != "" {
		t.Errorf("the nodes of the cluster (-before +after):\n%s", diff)
	}
}

// The earlier version is installed on a cluster without Assay. In the middle of an experiment it is
// upgraded to this version, whose certificates live for seconds. The certificates and their
// authority are renewed, and the upgrade is rolled back. Each trial runs once. No call to a webhook
// fails because a manager is missing or because trust is.
func TestUpgradeAndRollback(t *testing.T) {
	o := newOwner(t)
	t.Cleanup(func() { o.restore(t) })
	const ns, trials = "install-upgrade", 2 // of each experiment: one for each point
	image := o.installVersionBefore(t)
	o.makeNamespace(t, ns)
	exps := []*v1alpha1.Experiment{o.apply(t, ns, longer)}
	calls := o.callWebhooks(t, ns)
	exps = o.trialRuns(t, exps)
	before := o.authorities(t)

	o.upgrade(t, nextVersion(t), "--set=certificates.lifetime=40s,certificates.authorityLifetime=3m")
	if d := o.deployedVersion(t); d != "9.9.9" {
		t.Errorf("managers are of version %s after the upgrade", d)
	}
	o.has(t, ns, true)
	eventually(t, patience, "another authority signs", func(context.Context) (bool, error) {
		now := o.authorities(t)
		return now[0] != before[0], fmt.Errorf("%d authorities", len(now))
	})
	exps = o.trialRuns(t, exps)
	o.run(t, "helm", "rollback", release, "-n", namespace, "--wait", helmPatience)
	if d := o.deployedVersion(t); d == "9.9.9" || o.managerImage(t) != image {
		t.Errorf("managers are of version %s and image %s after the rollback, want %s", d, o.managerImage(t), image)
	}
	o.has(t, ns, false)
	for _, exp := range exps {
		o.complete(t, exp, trials)
	}
	calls(t)
}

// versionBeforeVariable names the folder with the version before. hack/cluster/version-before.sh
// makes it.
const versionBeforeVariable = "ASSAY_VERSION_BEFORE"

// installVersionBefore removes the release with its kinds, installs the chart and the images of the
// earlier version, and returns the image of its managers.
func (o *owner) installVersionBefore(t *testing.T) (image string) {
	t.Helper()
	before := os.Getenv(versionBeforeVariable)
	if before == "" {
		t.Skipf("there is no version to upgrade from: eval \"$(hack/cluster/version-before.sh nodes)\", as make test-owner does (%s)", versionBeforeVariable)
	}
	o.run(t, filepath.Join(root, "hack", "deploy.sh"), "remove")
	tags := map[string]string{}
	index, err := os.ReadFile(filepath.Join(before, "images", "index.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(index)) {
		f := strings.Fields(line)
		tags[f[0]] = f[1]
	}
	if tags["assay/manager"] == "" || tags["assay/agent"] == "" {
		t.Fatalf("%s has the images %v", before, tags)
	}
	o.upgrade(t, filepath.Join(before, "tree", "charts", "assay"), "--set-string=images.manager.tag="+tags["assay/manager"]+",images.agent.tag="+tags["assay/agent"])
	o.takenOver(t)
	if image = o.managerImage(t); !strings.HasSuffix(image, ":"+tags["assay/manager"]) {
		t.Fatalf("managers are of image %s, want the tag %s", image, tags["assay/manager"])
	}
	return image
}

// managerImage is the image of the managers' pods.
func (o *owner) managerImage(t *testing.T) string {
	t.Helper()
	d, err := o.clientset.AppsV1().Deployments(namespace).Get(t.Context(), "assay-manager", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return d.Spec.Template.Spec.Containers[0].Image
}

// longer makes trials as long as an upgrade takes.
func longer(e *v1alpha1.Experiment) { e.Spec.Schedule.Measure = "10s" }

// The additions of the next version: a field of a kind, and a variable in the managers' pods.
const (
	nextField    = "ofNextVersion"
	nextVariable = "OF_NEXT_VERSION"
)

// nextVersion is a copy of the chart with a higher version, another field and another pod template.
func nextVersion(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "assay")
	if err := os.CopyFS(dir, os.DirFS(chart)); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]struct{ at, becomes string }{
		"Chart.yaml":                        {`(?m)^(version|appVersion): .*$`, `$1: 9.9.9`},
		"files/crds/assay.dev_systems.yaml": {`(?m)^( +)spec:\n( +)description: spec of the system\.\n( +)properties:\n`, "$0$3  " + nextField + ":\n$3    type: string\n"},
		"templates/deployment.yaml":         {`(?m)^( +)- name: manager\n`, "$0$1  env: [{name: " + nextVariable + ", value: set}]\n"},
	} {
		file, at := filepath.Join(dir, name), regexp.MustCompile(change.at)
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !at.Match(text) {
			t.Fatalf("%s has no %s", name, change.at)
		}
		if err := os.WriteFile(file, at.ReplaceAll(text, []byte(change.becomes)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// has checks that the additions of the next version are there, or are gone. Either version can read
// and write a System with the new field.
func (o *owner) has(t *testing.T, ns string, next bool) {
	t.Helper()
	d, err := o.clientset.AppsV1().Deployments(namespace).Get(t.Context(), "assay-manager", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := slices.ContainsFunc(d.Spec.Template.Spec.Containers[0].Env, func(e corev1.EnvVar) bool { return e.Name == nextVariable }); got != next {
		t.Errorf("the managers' pods have the next version's variable: %t, want %t", got, next)
	}
	u := &unstructured.Unstructured{}
	if next {
		read(t, filepath.Join(root, "experiments", "systems", "etcd.yaml"), u)
		u.SetNamespace(ns)
		u.SetName("of-next-version")
		if err := unstructured.SetNestedField(u.Object, "kept", "spec", nextField); err != nil {
			t.Fatal(err)
		}
		o.create(t, u)
	}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("System"))
	// API servers take a moment to serve a changed kind.
	eventually(t, patience, fmt.Sprintf("the next version's field is there: %t", next), func(ctx context.Context) (bool, error) {
		if err := o.Get(ctx, client.ObjectKey{Namespace: ns, Name: "of-next-version"}, u); err != nil {
			return false, err
		}
		if next { // an object that was created before the field was served has lost it
			if err := unstructured.SetNestedField(u.Object, "kept", "spec", nextField); err != nil {
				return false, err
			}
		}
		u.SetAnnotations(map[string]string{"written-by-next-version": fmt.Sprint(next)})
		err := o.Update(ctx, u)
		_, has, _ := unstructured.NestedString(u.Object, "spec", nextField)
		return err == nil && has == next, errors.Join(err, fmt.Errorf("it is: %t", has))
	})
}

// deployedVersion is the version of the managers, once all of them have the same version and are
// ready.
func (o *owner) deployedVersion(t *testing.T) string {
	t.Helper()
	version := ""
	eventually(t, patience, "managers are of one version, and ready", func(ctx context.Context) (bool, error) {
		d, err := o.clientset.AppsV1().Deployments(namespace).Get(ctx, "assay-manager", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		version = d.Spec.Template.Labels["app.kubernetes.io/version"]
		return d.Status.UpdatedReplicas == *d.Spec.Replicas && d.Status.ReadyReplicas == *d.Spec.Replicas, fmt.Errorf("%+v", d.Status)
	})
	return version
}

// authorities that the API server trusts, as PEM. The one that signs comes first.
func (o *owner) authorities(t *testing.T) []string {
	t.Helper()
	w := &admissionv1.ValidatingWebhookConfiguration{}
	if err := o.Get(t.Context(), client.ObjectKey{Name: "assay"}, w); err != nil {
		t.Fatal(err)
	}
	const end = "-----END CERTIFICATE-----\n"
	all := strings.SplitAfter(string(w.Webhooks[0].ClientConfig.CABundle), end)
	if len(all) < 2 {
		t.Fatal("no authority is trusted")
	}
	return all[:len(all)-1]
}

// trialRuns waits until a trial of the last experiment is between its release and its end. If that
// experiment ends before, since the machine was slow, it starts another one. It returns all
// experiments.
func (o *owner) trialRuns(t *testing.T, exps []*v1alpha1.Experiment) []*v1alpha1.Experiment {
	t.Helper()
	eventually(t, patience, "a trial runs", func(ctx context.Context) (bool, error) {
		last := exps[len(exps)-1]
		if slices.ContainsFunc(o.trials(t, last), func(trial v1alpha1.Trial) bool {
			return trial.Status.ZeroUnixNanos != 0 && !meta.IsStatusConditionTrue(trial.Status.Conditions, v1alpha1.TrialComplete)
		}) {
			return true, nil
		}
		if err := o.Get(ctx, client.ObjectKeyFromObject(last), last); err != nil {
			return false, err
		}
		if meta.IsStatusConditionTrue(last.Status.Conditions, v1alpha1.ExperimentComplete) {
			t.Logf("%s is over: another one follows", last.Name)
			exps = append(exps, o.applyExperiment(t, last.Namespace, func(e *v1alpha1.Experiment) {
				e.Name = fmt.Sprintf("%s-%d", e.Name, len(exps)+1)
				longer(e)
			}))
		}
		return false, errors.New("none does")
	})
	return exps
}

// callWebhooks sends the API server a System that only the webhook can reject, five times a second.
// The returned function stops that and fails the test if any answer did not come from the webhook.
func (o *owner) callWebhooks(t *testing.T, ns string) func(*testing.T) {
	t.Helper()
	wrong := system(t, "etcd", ns)
	wrong.Name = "wrong"
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

// helm uninstall leaves the kinds, and the results in the namespaces of experiments. Then two
// installations, each for one namespace, work side by side. Neither has a right in the other's
// namespace.
func TestRemovalAndSomeNamespaces(t *testing.T) {
	o := newOwner(t)
	t.Cleanup(func() { o.restore(t) })
	for _, ns := range []string{"install-a", "install-b"} {
		o.makeNamespace(t, ns)
	}
	one := func(e *v1alpha1.Experiment) { e.Spec.Sweep = nil }
	exp := o.apply(t, "install-a", one)
	o.complete(t, exp, 1)
	results := o.results(t, "install-a")
	if len(results) == 0 {
		t.Fatal("the experiment left no results")
	}
	if _, err := o.try("helm", "uninstall", release, "-n", namespace, "--wait", helmPatience); err == nil || !strings.Contains(err.Error(), "assay-delete-experiments-first") {
		t.Errorf("with an experiment there, helm uninstall ends with %v; want that it names the hook", err)
	}
	o.insist(t, "kubectl", "get", "deployment", "assay-manager", "-n", namespace)
	o.deleted(t, exp)
	// This happens while there is a manager: the deletion of a trial needs one.
	eventually(t, patience, "its trials are gone", func(context.Context) (bool, error) {
		left := len(o.trials(t, exp))
		return left == 0, fmt.Errorf("%d are left", left)
	})

	o.run(t, "helm", "uninstall", release, "-n", namespace, "--wait", helmPatience)
	// Helm does not wait for managers to end.
	eventually(t, patience, "helm uninstall leaves nothing", func(context.Context) (bool, error) {
		left, err := o.left(t)
		return err == nil && len(left) == 0, errors.Join(err, fmt.Errorf("%v", left))
	})
	if after := o.results(t, "install-a"); !slices.Equal(after, results) {
		t.Errorf("results before %v, after %v", results, after)
	}
	for _, crd := range []string{"systems", "experiments", "trials", "datasets"} {
		o.insist(t, "kubectl", "get", "crd", crd+".assay.dev")
	}

	o.upgrade(t, chart, "--set=namespaces={install-a},replicas=1")
	t.Cleanup(func() {
		o.run(t, "helm", "uninstall", "other", "-n", "install-b-system", "--ignore-not-found", "--wait", helmPatience)
		o.removeNamespace(t, "install-b-system")
	})
	o.run(t, "helm", "install", "other", chart, "-n", "install-b-system", "--create-namespace", "--values", o.values,
		"--set=namespaces={install-b},replicas=1,crds.install=false,aggregateRoles=false", "--wait", helmPatience)
	o.run(t, "helm", "test", "other", "-n", "install-b-system", helmPatience)
	// The API server learns of changed rights a moment later.
	for ns, manager := range map[string]string{"install-a": namespace, "install-b": "install-b-system"} {
		eventually(t, time.Minute, "the manager of "+ns+" has rights there and nowhere else", func(ctx context.Context) (bool, error) {
			elsewhere := o.may(ctx, t, manager, "list", "configmaps", "default") || o.may(ctx, t, manager, "get", "secrets", "kube-system")
			here := o.may(ctx, t, manager, "list", "configmaps", ns)
			return here && !elsewhere, fmt.Errorf("there: %v, elsewhere: %v", here, elsewhere)
		})
	}
	o.deleted(t, &v1alpha1.System{ObjectMeta: metav1.ObjectMeta{Namespace: "install-a", Name: "etcd"}})
	a, b := o.apply(t, "install-a", one), o.apply(t, "install-b", one)
	o.complete(t, a, 1)
	o.complete(t, b, 1)
	// The namespaces can only be emptied while these managers run.
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

// may asks whether the manager of a namespace may do an action.
func (o *owner) may(ctx context.Context, t *testing.T, manager, verb, resource, ns string) bool {
	t.Helper()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               "system:serviceaccount:" + manager + ":assay-manager",
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: ns, Verb: verb, Resource: resource},
	}}
	for o.Create(ctx, review) != nil { // the request makes no object, so it may be repeated
		if ctx.Err() != nil {
			t.Fatalf("ask what %s may: %v", manager, ctx.Err())
		}
		time.Sleep(time.Second)
	}
	return review.Status.Allowed
}

// left lists all objects with the release's label or in its namespace, of all kinds of the cluster.
// It leaves out the kinds of Assay themselves and the default objects of every namespace.
func (o *owner) left(t *testing.T) ([]string, error) {
	t.Helper()
	d, err := dynamic.NewForConfig(o.config)
	if err != nil {
		t.Fatal(err)
	}
	lists, err := o.clientset.Discovery().ServerPreferredResources()
	if err != nil {
		return nil, err
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
			of, err := leftOf(t.Context(), d, gv.WithResource(r.Name), r.Namespaced)
			if err != nil {
				return nil, fmt.Errorf("list %s: %w", r.Name, err)
			}
			left = append(left, of...)
		}
	}
	return slices.DeleteFunc(left, func(object string) bool { // other tests made these for their store, as the owner
		return slices.ContainsFunc(archiveAccess(), func(o client.Object) bool {
			return strings.HasSuffix(object, " "+o.GetNamespace()+"/"+o.GetName())
		})
	}), nil
}

func leftOf(ctx context.Context, d dynamic.Interface, r schema.GroupVersionResource, namespaced bool) ([]string, error) {
	var left []string
	list, err := d.Resource(r).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/instance=" + release})
	if err != nil {
		return nil, err
	}
	items := list.Items
	if namespaced {
		inside, err := d.Resource(r).Namespace(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
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
	return left, nil
}
