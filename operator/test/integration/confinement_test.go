package integration

import (
	"bytes"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/experiment/render"
	"assay.dev/assay/operator/internal/testkit/testenv"
)

// chartWith renders one template of the chart.
func chartWith(t *testing.T, namespace, template string, flags ...string) []*unstructured.Unstructured {
	t.Helper()
	root, err := testenv.Root()
	if err != nil {
		t.Fatal(err)
	}
	helm, err := exec.LookPath("helm")
	if err != nil {
		if helm, err = exec.LookPath(filepath.Join(root, ".work", "bin", "helm")); err != nil {
			t.Fatal("helm is not on PATH: hack/cluster/tools.sh helm builds it")
		}
	}
	cmd := exec.CommandContext(t.Context(), helm, append([]string{"template", "assay", filepath.Join(root, "charts", "assay"), "-n", namespace, "-s", template}, flags...)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("helm template: %v\n%s", err, errs.String())
	}
	var objects []*unstructured.Unstructured
	for documents := yaml.NewYAMLOrJSONDecoder(&out, 4096); ; {
		obj := &unstructured.Unstructured{}
		if err := documents.Decode(&obj.Object); errors.Is(err, io.EOF) {
			return objects
		} else if err != nil {
			t.Fatal(err)
		}
		if len(obj.Object) > 0 {
			objects = append(objects, obj)
		}
	}
}

// confined is an API server with the chart's policy, and a manager that RBAC allows every action.
type confined struct {
	env     *testenv.Env
	manager client.Client
}

func newConfined(t *testing.T) *confined {
	t.Helper()
	c := &confined{env: testenv.Get(t)}
	for name, labels := range map[string]map[string]string{
		"confined-system": nil, "confined-papers": {"assay.dev/experiments": "allowed"}, "confined-others": nil, "confined-refused": {"assay.dev/experiments": "no"},
	} {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
		if err := c.env.Client.Create(t.Context(), ns); client.IgnoreAlreadyExists(err) != nil {
			t.Fatal(err)
		}
	}
	for _, o := range chartWith(t, "confined-system", "templates/confinement.yaml", `--set=confinement.namespaceLabels.assay\.dev/experiments=allowed`, "--set=trialPods.capabilities={IPC_LOCK}") {
		if err := c.env.Client.Create(t.Context(), o); client.IgnoreAlreadyExists(err) != nil {
			t.Fatalf("%s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
	cfg := rest.CopyConfig(c.env.Config)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:confined-system:assay-manager", Groups: []string{"system:masters"}}
	var err error
	if c.manager, err = client.New(cfg, client.Options{Scheme: c.env.Scheme}); err != nil {
		t.Fatal(err)
	}
	// Each policy comes into force by itself. These break one each.
	outside := workloads(t, "systems/driver.yaml", "kube-system")[0]
	privileged := workloads(t, "systems/driver.yaml", "confined-papers")[0].(*appsv1.StatefulSet)
	privileged.Spec.Template.Spec.HostNetwork = true
	revision := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "confined-papers", Name: "of-nothing-yet"}, Data: runtime.RawExtension{Raw: []byte(`{}`)}, Revision: 1}
	for policy, o := range map[string]client.Object{"namespaces": outside, "pods": privileged, "revisions": revision} {
		gomega.NewWithT(t).Eventually(func() bool {
			return apierrors.IsForbidden(c.manager.Create(t.Context(), o.DeepCopyObject().(client.Object), client.DryRunAll))
		}, time.Minute, 200*time.Millisecond).Should(gomega.BeTrue(), "the policy of %s does not come into force", policy)
	}
	return c
}

// workloads of a trial of a sample, in a namespace.
func workloads(t *testing.T, name, namespace string) []client.Object {
	t.Helper()
	system := decodeSystem(t, sample(t, name))
	return workloadsOf(t, "experiment-minimal.yaml", system, namespace, func(spec *v1alpha1.ExperimentSpec) {
		spec.Workload.Name = system.Workloads[0].Name
		// The pods get every capability that agents may have.
		spec.Network.Shaping = v1alpha1.ShapingAllowed
		spec.Faults = []v1alpha1.Fault{{Name: "crash", At: "1s", EveryPoint: true, NodeKill: &v1alpha1.NodeKill{Target: v1alpha1.Target{Replicas: []int32{0}}}}}
	})
}

// workloadsOf a trial. Its experiment and system are changed samples.
func workloadsOf(t *testing.T, experiment string, system v1alpha1.SystemSpec, namespace string, change func(*v1alpha1.ExperimentSpec)) []client.Object {
	t.Helper()
	text, err := sample(t, experiment).MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	exp, err := plan.DecodeExperiment(text)
	if err != nil {
		t.Fatal(err)
	}
	change(&exp.Spec)
	p, errs := plan.Expand(exp, map[string]v1alpha1.SystemSpec{exp.Spec.Systems[0].Name: system})
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	trial := p.Points[0].Template
	o, err := render.NewObjects(placement.NewLayout(namespace, "e-0000-0", &trial, &system), &trial, &system, render.Environment{AgentImage: "agent", CoordinatorAddress: "m:1"})
	if err != nil {
		t.Fatal(err)
	}
	var all []client.Object
	for _, set := range o.Servers {
		all = append(all, set)
	}
	for _, job := range o.Clients {
		all = append(all, job)
	}
	all = append(all, o.Service)
	if o.Prepare != nil {
		all = append(all, o.Prepare)
	}
	return all
}

// The manager had more rights than it needs: an attacker in its place could make pods with any
// service account in any namespace. The policy of the chart allows the objects of trials, and no
// others.
func TestManagerIsConfined(t *testing.T) {
	c := newConfined(t)
	for _, name := range []string{"systems/client.yaml", "systems/driver.yaml", "systems/metrics.yaml", "systems/records.yaml", "systems/steps.yaml"} {
		for _, o := range workloads(t, name, "confined-papers") {
			if err := c.manager.Create(t.Context(), o, client.DryRunAll); err != nil {
				t.Errorf("%T of %s: %v", o, name, err)
			}
		}
	}
	machines := decodeSystem(t, sample(t, "systems/machines.yaml"))
	machines.Shared = []v1alpha1.SharedDirectory{{Path: "/proj"}}
	for _, o := range workloadsOf(t, "experiment-machines.yaml", machines, "confined-papers", func(*v1alpha1.ExperimentSpec) {}) {
		if err := c.manager.Create(t.Context(), o, client.DryRunAll); err != nil {
			t.Errorf("%T of machines with a shared directory: %v", o, err)
		}
	}
	allowed := workloads(t, "systems/driver.yaml", "confined-papers")[0].(*appsv1.StatefulSet)
	allowed.Spec.Template.Spec.Containers[0].SecurityContext.Capabilities.Add = []corev1.Capability{"IPC_LOCK"}
	if err := c.manager.Create(t.Context(), allowed, client.DryRunAll); err != nil {
		t.Errorf("a capability that the chart's values allow: %v", err)
	}
	for _, namespace := range []string{"confined-others", "confined-refused", "kube-system", "kube-public"} {
		for _, o := range append(workloads(t, "systems/steps.yaml", namespace),
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c"}}, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "s"}}) {
			err := c.manager.Create(t.Context(), o.DeepCopyObject().(client.Object), client.DryRunAll)
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "Assay runs") {
				t.Errorf("%T in %s: %v; want a refusal that says where experiments run", o, namespace, err)
			}
			if err := c.env.Client.Create(t.Context(), o, client.DryRunAll); err != nil {
				t.Errorf("%T in %s by somebody else: %v", o, namespace, err)
			}
		}
	}
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "confined-others", Name: "theirs"}}
	if err := c.env.Client.Create(t.Context(), theirs); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	theirs.Data = map[string]string{"a": "b"}
	if err := c.manager.Update(t.Context(), theirs.DeepCopy()); !apierrors.IsForbidden(err) {
		t.Errorf("the manager changes a ConfigMap of others: %v", err)
	}
	if err := c.manager.Delete(t.Context(), theirs); !apierrors.IsForbidden(err) {
		t.Errorf("the manager deletes a ConfigMap of others: %v", err)
	}
	own := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "confined-system", Name: "assay-grants"}}
	if err := c.manager.Create(t.Context(), own, client.DryRunAll); err != nil {
		t.Errorf("the manager's own ConfigMap: %v", err)
	}
}

func TestPodsOfTheManagerAreOfOneShape(t *testing.T) {
	c := newConfined(t)
	yes, no := true, false
	for name, change := range map[string]func(*corev1.PodSpec){
		"the node's network":   func(s *corev1.PodSpec) { s.HostNetwork = true },
		"the node's processes": func(s *corev1.PodSpec) { s.HostPID = true },
		"the node's IPC":       func(s *corev1.PodSpec) { s.HostIPC = true },
		"another's account":    func(s *corev1.PodSpec) { s.ServiceAccountName = "admin" },
		"the account's token":  func(s *corev1.PodSpec) { s.AutomountServiceAccountToken = nil },
		"a path of the node": func(s *corev1.PodSpec) {
			s.Volumes[0].VolumeSource = corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}
		},
		"a Secret": func(s *corev1.PodSpec) {
			s.Volumes[0].VolumeSource = corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s"}}
		},
		"a claim of others": func(s *corev1.PodSpec) {
			s.Volumes[0].VolumeSource = corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "database"}}
		},
		"a projected Secret": func(s *corev1.PodSpec) {
			s.Volumes[0].VolumeSource = corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}}}}}}
		},
		"a token for the API server": func(s *corev1.PodSpec) {
			s.Volumes[0].VolumeSource = corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}}}}}
		},
		"a privileged container":     func(s *corev1.PodSpec) { s.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: &yes} },
		"a container of no security": func(s *corev1.PodSpec) { s.Containers[0].SecurityContext = nil },
		"escalation":                 func(s *corev1.PodSpec) { s.Containers[0].SecurityContext.AllowPrivilegeEscalation = &yes },
		"capabilities that it keeps": func(s *corev1.PodSpec) { s.Containers[0].SecurityContext.Capabilities.Drop = nil },
		"NET_ADMIN for a system": func(s *corev1.PodSpec) {
			s.Containers[0].SecurityContext.Capabilities.Add = []corev1.Capability{"NET_ADMIN"}
		},
		"IPC_LOCK for an agent": func(s *corev1.PodSpec) {
			s.InitContainers[0].SecurityContext.Capabilities.Add = []corev1.Capability{"IPC_LOCK"}
		},
		"SYS_ADMIN for an agent": func(s *corev1.PodSpec) {
			s.InitContainers[0].SecurityContext.Capabilities.Add = []corev1.Capability{"SYS_ADMIN"}
		},
		"a port of the node": func(s *corev1.PodSpec) {
			s.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 1, HostPort: 1}}
		},
		"an environment of a Secret": func(s *corev1.PodSpec) {
			s.Containers[0].EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}}}}
		},
		"a variable out of a Secret": func(s *corev1.PodSpec) {
			s.Containers[0].Env = []corev1.EnvVar{{Name: "A", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "k", LocalObjectReference: corev1.LocalObjectReference{Name: "s"}}}}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			set := workloads(t, "systems/driver.yaml", "confined-papers")[0].(*appsv1.StatefulSet)
			set.Spec.Template.Spec.AutomountServiceAccountToken = &no
			change(&set.Spec.Template.Spec)
			if err := c.manager.Create(t.Context(), set.DeepCopy(), client.DryRunAll); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "of trials") {
				t.Errorf("the manager makes it: %v", err)
			}
			if err := c.env.Client.Create(t.Context(), set, client.DryRunAll); err != nil {
				t.Errorf("the API server has another reason to refuse it: %v", err)
			}
		})
	}
}

// A StatefulSet makes its pods from ControllerRevisions. An attacker could replace one and get a
// privileged pod, which the policy on the manager did not check.
func TestRevisionsOfTheManagerAreSnapshots(t *testing.T) {
	c := newConfined(t)
	yes, no := true, false
	experiment := metav1.OwnerReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Experiment", Name: "e", UID: "u", Controller: &yes}
	set := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "s", UID: "u", Controller: &yes}
	snapshot := func(name string, change func(*appsv1.ControllerRevision)) *appsv1.ControllerRevision {
		r := &appsv1.ControllerRevision{
			ObjectMeta: metav1.ObjectMeta{Namespace: "confined-papers", Name: name, Labels: map[string]string{v1alpha1.LabelSystem: "s"}, OwnerReferences: []metav1.OwnerReference{experiment}},
			Data:       runtime.RawExtension{Raw: []byte(`{}`)}, Revision: 1,
		}
		change(r)
		return r
	}
	ours := snapshot("ours", func(*appsv1.ControllerRevision) {})
	if err := c.manager.Create(t.Context(), ours); err != nil {
		t.Fatalf("the snapshot of a System: %v", err)
	}
	claims := snapshot("claims", func(r *appsv1.ControllerRevision) { r.Labels = map[string]string{v1alpha1.LabelSeal: "claims"} })
	if err := c.manager.Create(t.Context(), claims); err != nil {
		t.Fatalf("the sealed claims of an experiment: %v", err)
	}
	ours.Revision = 2
	if err := c.manager.Update(t.Context(), ours); !apierrors.IsForbidden(err) {
		t.Errorf("the manager changes a snapshot: %v", err)
	}
	if err := c.manager.Delete(t.Context(), ours); err != nil {
		t.Errorf("the manager deletes a snapshot: %v", err)
	}
	for name, change := range map[string]func(*appsv1.ControllerRevision){
		"of-a-statefulset":   func(r *appsv1.ControllerRevision) { r.OwnerReferences = []metav1.OwnerReference{set} },
		"of-both":            func(r *appsv1.ControllerRevision) { r.OwnerReferences = []metav1.OwnerReference{experiment, set} },
		"of-nothing":         func(r *appsv1.ControllerRevision) { r.OwnerReferences = nil },
		"without-a-label":    func(r *appsv1.ControllerRevision) { r.Labels = nil },
		"not-its-controller": func(r *appsv1.ControllerRevision) { r.OwnerReferences[0].Controller = &no },
		"of-another-group": func(r *appsv1.ControllerRevision) {
			r.OwnerReferences[0].APIVersion = "assay.dev.example.org/v1"
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := snapshot(name, change)
			if name == "of-both" {
				r.OwnerReferences[1].Controller = nil // the API server accepts only one controller
			}
			if err := c.manager.Create(t.Context(), r.DeepCopy()); !apierrors.IsForbidden(err) {
				t.Errorf("the manager makes it: %v", err)
			}
			if err := c.env.Client.Create(t.Context(), r); err != nil {
				t.Fatalf("the API server has another reason to refuse it: %v", err)
			}
			if err := c.manager.Delete(t.Context(), r); !apierrors.IsForbidden(err) {
				t.Errorf("the manager deletes it: %v", err)
			}
		})
	}
}

func TestJobsOfDatasetsAreOfThatShape(t *testing.T) {
	c := newConfined(t)
	set := &v1alpha1.Dataset{ObjectMeta: metav1.ObjectMeta{Namespace: "confined-papers", Name: "rows-1"}, Spec: v1alpha1.DatasetSpec{
		Recipe: v1alpha1.DatasetRecipe{Image: "load:1", Command: []string{"/load"}, RunAsUser: 65532, OutputPath: "/made"}, Size: resource.MustParse("1Gi"), Timeout: "1h",
	}}
	for _, job := range []*batchv1.Job{render.DatasetJob(set, "node", render.Environment{AgentImage: "agent"}), render.DatasetRemovalJob(set, "node", render.Environment{AgentImage: "agent"})} {
		if err := c.manager.Create(t.Context(), job.DeepCopy(), client.DryRunAll); err != nil {
			t.Errorf("%s: %v", job.Name, err)
		}
		job.Namespace = "kube-system"
		if err := c.manager.Create(t.Context(), job, client.DryRunAll); !apierrors.IsForbidden(err) {
			t.Errorf("%s in kube-system: %v", job.Name, err)
		}
	}
}

func TestMachinesAreResetByOnePodOnly(t *testing.T) {
	c := newConfined(t)
	pod := func(namespace string) *corev1.Pod {
		p := render.MachinePod(types.NamespacedName{Namespace: "confined-papers", Name: "t"}, "uid", "node", render.Environment{AgentImage: "agent", Namespace: namespace, CoordinatorAddress: "m:1"})
		p.Spec.NodeName = "" // for a node that does not exist
		return p
	}
	for _, namespace := range []string{"confined-system", "confined-papers"} { // objects that the cluster makes in every namespace
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "default"}}
		if err := c.env.Client.Create(t.Context(), account); client.IgnoreAlreadyExists(err) != nil {
			t.Fatal(err)
		}
	}
	if err := c.manager.Create(t.Context(), pod("confined-system"), client.DryRunAll); err != nil {
		t.Errorf("in the manager's namespace: %v", err)
	}
	if err := c.manager.Create(t.Context(), pod("confined-papers"), client.DryRunAll); !apierrors.IsForbidden(err) {
		t.Errorf("in a namespace of experiments: %v", err)
	}
	more := pod("confined-system")
	more.Spec.Containers[0].SecurityContext.Capabilities.Add = []corev1.Capability{"SYS_ADMIN"}
	if err := c.manager.Create(t.Context(), more, client.DryRunAll); !apierrors.IsForbidden(err) {
		t.Errorf("with another capability: %v", err)
	}
}
