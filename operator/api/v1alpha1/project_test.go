package v1alpha1_test

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/api/v1alpha1"
)

// The file PROJECT of kubebuilder must name every kind, with its group, version and package.
func TestProjectNamesTheKinds(t *testing.T) {
	text, err := os.ReadFile("../../../PROJECT")
	if err != nil {
		t.Fatal(err)
	}
	var project struct {
		Repo      string
		Resources []struct{ Domain, Group, Kind, Path, Version string }
	}
	if err := yaml.Unmarshal(text, &project); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range project.Resources {
		got = append(got, r.Path+" "+r.Group+"."+r.Domain+"/"+r.Version+" "+r.Kind)
	}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	var want []string
	for kind, typ := range scheme.KnownTypes(v1alpha1.GroupVersion) {
		path := typ.PkgPath()
		if !strings.HasSuffix(kind, "List") && path == reflect.TypeFor[v1alpha1.Trial]().PkgPath() {
			want = append(want, path+" "+v1alpha1.GroupVersion.String()+" "+kind)
		}
	}
	slices.Sort(want)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("PROJECT (-want +got):\n%s", d)
	}
}
