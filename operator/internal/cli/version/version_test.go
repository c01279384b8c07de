package version_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/cli/version"
)

func manager(namespace string) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "assay-manager", Namespace: namespace, Labels: map[string]string{"app.kubernetes.io/name": "assay", "app.kubernetes.io/version": "v1"}}}
	d.Status.Replicas, d.Status.ReadyReplicas = 2, 1
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "manager", Image: "r/assay/manager:v1", Args: []string{"--leader-elect", "--agent-image=r/assay/agent:v1"}}}
	return d
}

func TestVersion(t *testing.T) {
	other := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "other", Namespace: "assay-system"}}
	for name, tc := range map[string]struct {
		options   version.Options
		forbidden string // everywhere, or other namespaces
		away      bool
		want      []string
	}{
		"installation": {options: version.Options{Build: "v2"}, want: []string{"Client: v2, go1.",
			"Installation in namespace assay-system: version v1, 1 of 2 managers ready\n  manager  r/assay/manager:v1\n  agent    r/assay/agent:v1\n", "Installation in namespace team:"}},
		"one namespace":   {forbidden: "other namespaces", want: []string{"Installation in namespace assay-system"}},
		"nothing allowed": {forbidden: "everywhere", want: []string{"Client: ", "You may not list Deployments"}},
		"no cluster":      {away: true, want: []string{"Client: ", "The cluster cannot be asked: no kubeconfig"}},
		"client only":     {options: version.Options{Build: "v2", ClientOnly: true, Output: "json"}, away: true, want: []string{"\"version\": \"v2\""}},
		"yaml":            {options: version.Options{Output: "yaml"}, want: []string{"installations:\n- agent: r/assay/agent:v1\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			scheme, err := session.NewScheme()
			if err != nil {
				t.Fatal(err)
			}
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(manager("assay-system"), manager("team"), other).
				WithInterceptorFuncs(interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					o := client.ListOptions{}
					o.ApplyOptions(opts)
					if tc.forbidden == "everywhere" || tc.forbidden != "" && o.Namespace == "" {
						return apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, "", errors.New("no"))
					}
					return c.List(ctx, list, opts...)
				}}).Build()
			s := &session.Session{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}, Connect: func() (session.Cluster, error) {
				if tc.away {
					return session.Cluster{}, errors.New("no kubeconfig")
				}
				return session.Cluster{Client: c, Namespace: "lab"}, nil
			}}
			if err := version.Run(t.Context(), s, tc.options); err != nil {
				t.Fatal(err)
			}
			got := s.Out.(*bytes.Buffer).String()
			for _, want := range tc.want {
				if !strings.Contains(got, want) {
					t.Errorf("printed\n%s\nwant\n%s", got, want)
				}
			}
		})
	}
	s := &session.Session{Out: &bytes.Buffer{}}
	if err := version.Run(t.Context(), s, version.Options{Output: "xml"}); session.ExitCode(err) != session.ExitUsage {
		t.Errorf("a form that there is not: %v", err)
	}
}
