package chart

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

const page = "assay-live-page"

// The chart serves no page that the owner did not ask for.
func TestLivePageIsOffByDefault(t *testing.T) {
	if r := render(t); strings.Contains(r.text, "live-page") {
		t.Error("the default has a live page")
	}
}

// The page's pod is restricted, and its account is not the manager's.
func TestLivePageIsRestricted(t *testing.T) {
	r := render(t, "--set=livePage.enabled=true")
	d, ok := r.objects["Deployment/"+page].(*appsv1.Deployment)
	if !ok {
		t.Fatal("there is no Deployment")
	}
	pod := d.Spec.Template.Spec
	checkRestricted(t, pod)
	if pod.ServiceAccountName != page || len(pod.Volumes) > 0 {
		t.Errorf("the pod has the account %s and the volumes %v", pod.ServiceAccountName, pod.Volumes)
	}
	c := pod.Containers[0]
	if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() || c.Resources.Limits.Memory().IsZero() || !slices.Equal(c.Command, []string{"/live-page"}) {
		t.Errorf("the container has %v and %v", c.Args, c.Resources)
	}
	service := r.objects["Service/"+page].(*corev1.Service)
	if service.Spec.Ports[0].TargetPort.StrVal != c.Ports[0].Name || argument(c.Args, "--bind-address") != ":8443" || c.Ports[0].ContainerPort != 8443 {
		t.Errorf("the Service has %v, the container %v, %v", service.Spec.Ports, c.Ports, c.Args)
	}
	for name, value := range service.Spec.Selector {
		if d.Spec.Template.Labels[name] != value || d.Spec.Selector.MatchLabels[name] != value {
			t.Errorf("the Service selects %s=%s, the pods have %v", name, value, d.Spec.Template.Labels)
		}
	}
	if manager := r.manager.Spec.Selector.MatchLabels["app.kubernetes.io/component"]; manager == d.Spec.Template.Labels["app.kubernetes.io/component"] {
		t.Error("the manager's Services reach the page")
	}
}

// The rights of the page's account are listed, and are the same for the whole cluster and for some
// namespaces.
func TestRightsOfTheLivePageAreListed(t *testing.T) {
	some := render(t, "--set=livePage.enabled=true,namespaces={papers,lab}")
	got := slices.Concat(rights(t, some, "page, cluster", "ClusterRole/assay-assay-system-live-page"), rights(t, some, "page, experiments", "Role/assay-assay-system-live-page"))
	slices.Sort(got)
	if diff := cmp.Diff(listed(t, "page"), got); diff != "" {
		t.Errorf("%s is not what the chart grants (-listed +granted)\n%s", rightsFile, diff)
	}
	for name, o := range some.objects {
		if b, ok := o.(*rbacv1.RoleBinding); ok && strings.Contains(name, page) && b.Subjects[0].Name != page {
			t.Errorf("%s binds %v", name, b.Subjects)
		}
	}
	if args := some.objects["Deployment/"+page].(*appsv1.Deployment).Spec.Template.Spec.Containers[0].Args; argument(args, "--namespaces") != "papers,lab" {
		t.Errorf("the page shows the namespaces of %v", args)
	}
	whole := rights(t, render(t, "--set=livePage.enabled=true"), "", "ClusterRole/assay-live-page")
	if len(whole) != len(got) {
		t.Errorf("for the whole cluster the page may %v", whole)
	}
}

// A certificate of the owner's is mounted, and a policy names who gets to the page.
func TestLivePageHasTheOwnersCertificateAndVisitors(t *testing.T) {
	r := render(t, everything...)
	pod := r.objects["Deployment/"+page].(*appsv1.Deployment).Spec.Template.Spec
	c := pod.Containers[0]
	if len(pod.Volumes) != 1 || pod.Volumes[0].Secret == nil || pod.Volumes[0].Secret.SecretName != "page-tls" || argument(c.Args, "--certificates") != c.VolumeMounts[0].MountPath {
		t.Errorf("volumes %v, mounts %v, arguments %v", pod.Volumes, c.VolumeMounts, c.Args)
	}
	policy := r.objects["NetworkPolicy/"+page].(*networkingv1.NetworkPolicy)
	in := policy.Spec.Ingress
	if len(in) != 1 || len(in[0].From) != 1 || in[0].From[0].NamespaceSelector == nil || in[0].Ports[0].Port.StrVal != c.Ports[0].Name || len(policy.Spec.Egress) != 2 {
		t.Errorf("the policy is %+v", policy.Spec)
	}
}
