package cacheopts

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// The API server refuses to list the whole cluster for a manager that may read only some
// namespaces.
func TestReaderAsksForEachNamespace(t *testing.T) {
	server := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			o := client.ListOptions{}
			o.ApplyOptions(opts)
			if !slices.Contains([]string{"a", "b"}, o.Namespace) {
				return errors.New("forbidden")
			}
			return c.List(ctx, list, opts...)
		},
	}).WithObjects(pod("a", "1"), pod("b", "2"), pod("b", "3"), pod("c", "4")).Build()
	for name, tc := range map[string]struct {
		namespaces, want []string
		opts             []client.ListOption
		wantErr          string
	}{
		"all of them":      {[]string{"a", "b"}, []string{"1", "2", "3"}, nil, ""},
		"by label":         {[]string{"a", "b"}, []string{"3"}, []client.ListOption{client.MatchingLabels{"name": "3"}}, ""},
		"one of them":      {[]string{"a", "b"}, []string{"1"}, []client.ListOption{client.InNamespace("a")}, ""},
		"another":          {[]string{"a", "b"}, nil, []client.ListOption{client.InNamespace("c")}, "forbidden"},
		"one is forbidden": {[]string{"a", "c"}, nil, nil, "in namespace c"},
		"first page":       {[]string{"a", "b"}, []string{"1"}, []client.ListOption{client.Limit(9)}, ""},
		"second page":      {[]string{"a", "b"}, []string{"2", "3"}, []client.ListOption{client.Limit(9), client.Continue("b/")}, ""},
		"no page":          {[]string{"a", "b"}, nil, []client.ListOption{client.Limit(9), client.Continue("c/")}, "no token of a page"},
		"whole cluster":    {nil, nil, nil, "forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			list := &corev1.PodList{}
			err := Reader(server, tc.namespaces...).List(t.Context(), list, tc.opts...)
			if got := err != nil; got != (tc.wantErr != "") || got && !strings.Contains(err.Error(), tc.wantErr) {
				t.Fatalf("error %v, want %q", err, tc.wantErr)
			}
			if err != nil {
				return
			}
			var got []string
			for _, p := range list.Items {
				got = append(got, p.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("pods (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOptionsOfSomeNamespaces(t *testing.T) {
	if got := Options().DefaultNamespaces; got != nil {
		t.Errorf("for the whole cluster: %v", got)
	}
	if got := Options("a", "b").DefaultNamespaces; len(got) != 2 {
		t.Errorf("for two namespaces: %v", got)
	}
}

func pod(namespace, name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"name": name}}}
}
