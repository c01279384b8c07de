package chart

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// The managers read the list of stores, find each one's keys and CA where they look for them, and
// nothing says a key.
func TestStores(t *testing.T) {
	r := render(t, "--values=testdata/stores.yaml")
	list, ok := r.objects["ConfigMap/assay-stores"].(*corev1.ConfigMap)
	if !ok {
		t.Fatal("there is no ConfigMap assay-stores")
	}
	var got map[string]any
	if err := yaml.Unmarshal([]byte(list.Data["stores.yaml"]), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"default": "a", "stores": []any{
		map[string]any{"name": "a", "endpoint": "https://s3.example.org", "region": "eu-west-1", "bucket": "results", "prefix": "team/x", "pathStyle": true, "checksums": "WhenRequired"},
		map[string]any{"name": "b", "bucket": "other"},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	pod := r.manager.Spec.Template
	c := pod.Spec.Containers[0]
	for _, arg := range []string{"--result-stores=/etc/assay/stores.d/stores.yaml", "--result-store-secrets=/etc/assay/stores"} {
		if !slices.Contains(c.Args, arg) {
			t.Errorf("args %v do not contain %s", c.Args, arg)
		}
	}
	if pod.Annotations["assay.dev/stores-checksum"] == "" {
		t.Error("a changed list does not restart the managers")
	}
	for path, sources := range map[string]string{
		"/etc/assay/stores.d": "assay-stores", "/etc/assay/stores/a": "keys, authority/ca.crt->ca.crt", "/etc/assay/stores/b": "more-keys, authority/root.pem->ca.crt",
	} {
		if got := mounted(t, pod.Spec, path); got != sources {
			t.Errorf("%s has %q, want %q", path, got, sources)
		}
	}
	if r := render(t); r.objects["ConfigMap/assay-stores"] != nil || strings.Contains(r.text, "result-stores") {
		t.Error("without stores there is a list of them")
	}
}

// mounted says what a read-only mount has.
func mounted(t *testing.T, pod corev1.PodSpec, path string) string {
	t.Helper()
	i := slices.IndexFunc(pod.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == path && m.ReadOnly })
	if i < 0 {
		return ""
	}
	name := pod.Containers[0].VolumeMounts[i].Name
	v := pod.Volumes[slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == name })]
	if v.ConfigMap != nil {
		return v.ConfigMap.Name
	}
	var sources []string
	for _, s := range v.Projected.Sources {
		from, items := "", []corev1.KeyToPath(nil)
		if s.Secret != nil {
			from, items = s.Secret.Name, s.Secret.Items
		} else {
			from, items = s.ConfigMap.Name, s.ConfigMap.Items
		}
		for _, i := range items {
			from += "/" + i.Key + "->" + i.Path
		}
		sources = append(sources, from)
	}
	return strings.Join(sources, ", ")
}

func TestWrongStoresAreRefused(t *testing.T) {
	for name, tc := range map[string]struct{ set, want string }{
		"no bucket":       {`{"name":"a","credentialsSecret":"k"}`, "bucket"},
		"no Secret":       {`{"name":"a","bucket":"results"}`, "credentialsSecret"},
		"keys in values":  {`{"name":"a","bucket":"results","credentialsSecret":"k","secretAccessKey":"x"}`, "secretAccessKey"},
		"no scheme":       {`{"name":"a","bucket":"results","credentialsSecret":"k","endpoint":"s3.example.org"}`, "endpoint"},
		"user in the URL": {`{"name":"a","bucket":"results","credentialsSecret":"k","endpoint":"https://me:x@s3.example.org"}`, "endpoint"},
		"the name none":   {`{"name":"none","bucket":"results","credentialsSecret":"k"}`, "name"},
		"two CAs":         {`{"name":"a","bucket":"results","credentialsSecret":"k","ca":{"secret":"x","configMap":"y"}}`, "ca"},
	} {
		t.Run(name, func(t *testing.T) {
			out, errs, err := helm(t, "template", "assay", ".", `--set-json=results.stores=[`+tc.set+`]`)
			if err == nil {
				t.Fatalf("helm template succeeded:\n%s", out)
			}
			if !strings.Contains(errs, tc.want) {
				t.Errorf("the error does not name %s:\n%s", tc.want, errs)
			}
		})
	}
}
