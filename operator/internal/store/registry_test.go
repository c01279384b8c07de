package store_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/store"
	"assay.dev/assay/operator/internal/store/s3"
)

func load(t *testing.T, text string, files map[string]string) (*store.Registry, error) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	list := filepath.Join(dir, "stores.yaml")
	if err := os.WriteFile(list, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return store.Load(list, dir, map[string]store.Open{"S3": s3.Open})
}

func TestListOfStores(t *testing.T) {
	const good = "stores:\n- {name: a, bucket: results}\n- {name: b, bucket: results, endpoint: 'https://s3.example.org:9000', pathStyle: true, prefix: x/y, region: eu-west-1}\n"
	for name, tc := range map[string]struct {
		text, ca, wantErr string
	}{
		"two":                   {text: good},
		"a default":             {text: "default: b\n" + good},
		"a default of nothing":  {text: "default: c\n" + good, wantErr: "default c, which is not among its stores: a, b"},
		"an unknown field":      {text: "stores:\n- {name: a, bucket: results, secretKey: x}", wantErr: "secretKey"},
		"a name twice":          {text: good + "- {name: a, bucket: other}", wantErr: "names a twice"},
		"no name":               {text: "stores:\n- {bucket: results}", wantErr: "name is \"\""},
		"the name of none":      {text: "stores:\n- {name: none, bucket: results}", wantErr: "and not none"},
		"no bucket":             {text: "stores:\n- {name: a}", wantErr: "bucket is \"\""},
		"no scheme":             {text: "stores:\n- {name: a, bucket: results, endpoint: 's3.example.org'}", wantErr: "endpoint is \"s3.example.org\""},
		"keys in the URL":       {text: "stores:\n- {name: a, bucket: results, endpoint: 'https://me:hush@s3.example.org'}", wantErr: "endpoint must not have a user"},
		"a slash at its end":    {text: "stores:\n- {name: a, bucket: results, prefix: x/}", wantErr: "prefix is \"x/\""},
		"checksums of no kind":  {text: "stores:\n- {name: a, bucket: results, checksums: Never}", wantErr: "WhenSupported or WhenRequired"},
		"a CA that is no PEM":   {text: good, ca: "x", wantErr: "holds no certificate"},
		"by its kind":           {text: "stores:\n- {name: a, kind: S3, bucket: results}"},
		"an unknown kind":       {text: "stores:\n- {name: a, kind: s3, bucket: results}", wantErr: "stores.yaml: stores[0]: there is no kind of store"},
		"no list at all":        {text: ""},
		"not a list of objects": {text: "stores: a", wantErr: "stores.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{}
			if tc.ca != "" {
				files["a/"+s3.CAFile] = tc.ca
			}
			_, err := load(t, tc.text, files)
			if tc.wantErr == "" && err != nil || tc.wantErr != "" && (err == nil || !strings.Contains(err.Error(), tc.wantErr)) {
				t.Errorf("error %v, want %q", err, tc.wantErr)
			}
			if err != nil && strings.Contains(err.Error(), "hush") {
				t.Errorf("the error says the secret: %v", err)
			}
		})
	}
}

func TestWhichStore(t *testing.T) {
	two, err := load(t, "default: a\nstores:\n- {name: a, bucket: results}\n- {name: b, bucket: results}\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	var none *store.Registry
	for name, tc := range map[string]struct {
		r         *store.Registry
		asked     *v1alpha1.Results
		want, err string
	}{
		"the default":        {two, nil, "a", ""},
		"the default, empty": {two, &v1alpha1.Results{}, "a", ""},
		"by name":            {two, &v1alpha1.Results{Store: "b"}, "b", ""},
		"none":               {two, &v1alpha1.Results{Store: "none"}, "", ""},
		"unknown":            {two, &v1alpha1.Results{Store: "c"}, "c", "it has: a, b"},
		"no stores":          {none, nil, "", ""},
		"none of no stores":  {none, &v1alpha1.Results{Store: "a"}, "a", "this installation has none"},
	} {
		t.Run(name, func(t *testing.T) {
			got := tc.r.Resolve(tc.asked)
			if got != tc.want {
				t.Errorf("resolved to %q, want %q", got, tc.want)
			}
			asked := ""
			if tc.asked != nil {
				asked = tc.asked.Store
			}
			err := tc.r.Check(asked)
			if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("check: %v, want %q", err, tc.err)
			}
			if got == "" {
				return
			}
			if _, err := tc.r.Get(got); (err != nil) != (tc.err != "") {
				t.Errorf("get: %v", err)
			} else if err != nil {
				if reason, _ := store.Explain(err); reason != v1alpha1.ReasonStoreNotConfigured {
					t.Errorf("reason %s", reason)
				}
			}
		})
	}
}
