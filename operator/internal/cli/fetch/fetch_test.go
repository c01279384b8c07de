package fetch_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli/fetch"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/store"
	"assay.dev/assay/operator/internal/store/s3"
	"assay.dev/assay/operator/internal/testkit/builders"
	"assay.dev/assay/operator/internal/testkit/tests3"
)

// put stores an experiment with one trial in the bucket of the server.
func put(t *testing.T, s *s3.Bucket) {
	t.Helper()
	object := func(key, text string) store.Object {
		o := store.Describe(key, []byte(text))
		if err := s.Put(t.Context(), o, strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
		return o
	}
	e := store.ExperimentFolder("ns", "e", "u")
	f := e.Trial("e-0")
	for folder, m := range map[store.Folder]store.Manifest{
		f: {Name: "e-0", Objects: []store.Object{object(f.Key("trial.json"), "{}"), object(f.PodFile("p", "a.gz"), "log")}, Missing: []string{"c"}},
	} {
		if err := store.WriteManifest(t.Context(), s, folder, m); err != nil {
			t.Fatal(err)
		}
	}
	_, o, err := store.ReadManifest(t.Context(), s, f)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.WriteManifest(t.Context(), s, e, store.Manifest{Name: "e", Objects: []store.Object{object(e.Key("results.json"), "{}"), o}}); err != nil {
		t.Fatal(err)
	}
}

func TestFetch(t *testing.T) {
	server := tests3.Start(t, tests3.Options{})
	c := server.Config()
	c.Prefix = "team/v1/x" // a prefix that looks like a part of the layout
	s, err := s3.NewWith(c, tests3.Keys(), nil)
	if err != nil {
		t.Fatal(err)
	}
	put(t, s)
	run := func(location, output string) (string, error) {
		var out, said bytes.Buffer
		err := fetch.Run(t.Context(), &session.Session{Out: &out, Err: &said}, fetch.Options{
			Location: location, Output: output, Endpoint: "http://" + server.Address, PathStyle: true, Keys: tests3.Keys()})
		return said.String(), err
	}
	const root = "s3://results/team/v1/x/v1/ns/e/u"
	dir := filepath.Join(t.TempDir(), "e")
	said, err := run(root, dir)
	if err != nil || !strings.Contains(said, "5 objects") || !strings.Contains(said, "Not stored: e-0: c") {
		t.Errorf("it says %q (%v)", said, err)
	}
	for _, name := range []string{"manifest.json", "results.json", "trials/e-0/trial.json", "trials/e-0/pods/p/a.gz", "trials/e-0/manifest.json"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	if said, err := run(root+"/trials/e-0/manifest.json", ""); err != nil || !strings.Contains(said, "3 objects") {
		t.Errorf("one trial: %q (%v)", said, err)
	}
	if err := os.WriteFile(server.File("team/v1/x/v1/ns/e/u/results.json"), []byte("[]"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ location, want string }{
		"changed":        {root, "results.json is not what was stored"},
		"another folder": {"s3://results/team/v1/x/v1/ns/e/other/", "there is no v1/ns/e/other/manifest.json"},
		"another bucket": {"s3://nothing/v1/ns/e/u", "NoSuchBucket"},
		"no location":    {"s3://results/ns/e", "is not where an experiment or a trial is stored"},
	} {
		if _, err := run(tc.location, ""); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %s", name, err, tc.want)
		}
	}
}

// A user names the Experiment of a cluster instead of a location. The verb reads the environment
// variables of the AWS tools. It accepts a manifest only if the experiment's manifest lists it. It
// rejects a manifest that lists itself.
func TestFetchComparesManifests(t *testing.T) {
	server := tests3.Start(t, tests3.Options{})
	c := server.Config()
	s, err := s3.NewWith(c, tests3.Keys(), nil)
	if err != nil {
		t.Fatal(err)
	}
	put(t, s)
	f := store.ExperimentFolder("ns", "e", "u").Trial("e-0")
	forged := store.Describe(f.Key("trial.json"), []byte(`{"forged":true}`))
	if err := s.Put(t.Context(), forged, strings.NewReader(`{"forged":true}`)); err != nil {
		t.Fatal(err)
	}
	for name, listed := range map[string]store.Object{
		"another trial's": forged,
		"itself":          {Key: f.Key(store.ManifestName), Size: 1, SHA256: strings.Repeat("0", 64)},
	} {
		t.Run(name, func(t *testing.T) {
			if err := store.WriteManifest(t.Context(), s, f, store.Manifest{Name: "e-0", Objects: []store.Object{listed}}); err != nil {
				t.Fatal(err)
			}
			err := fetch.Run(t.Context(), &session.Session{Out: io.Discard, Err: io.Discard}, fetch.Options{
				Location: "s3://results/" + strings.TrimPrefix(c.Prefix+"/", "/") + "v1/ns/e/u", Endpoint: "http://" + server.Address, PathStyle: true, Keys: tests3.Keys(),
			})
			if err == nil || !strings.Contains(err.Error(), "manifest.json: stored are ") {
				t.Errorf("got %v, want the manifest named", err)
			}
		})
	}
}

func TestFetchByName(t *testing.T) {
	server := tests3.Start(t, tests3.Options{})
	s, err := s3.NewWith(server.Config(), tests3.Keys(), nil)
	if err != nil {
		t.Fatal(err)
	}
	put(t, s)
	scheme, err := session.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	stored, unstored := builders.Experiment("e").Namespace("ns").Obj(), builders.Experiment("f").Namespace("ns").Obj()
	stored.Status.Archive = &v1alpha1.ResultsArchive{Store: "s", Location: "s3://results/v1/ns/e/u/"}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(stored, unstored).WithStatusSubresource(stored).Build()
	run := func(name string) (string, error) {
		var said bytes.Buffer
		here := &session.Session{Out: io.Discard, Err: &said, Connect: func() (session.Cluster, error) { return session.Cluster{Client: c, Namespace: "ns"}, nil }}
		cmd := fetch.Command(here, func(name string) string {
			return map[string]string{"AWS_ACCESS_KEY_ID": tests3.Keys().AccessKeyID, "AWS_SECRET_ACCESS_KEY": tests3.Keys().SecretAccessKey, "AWS_ENDPOINT_URL": "http://" + server.Address}[name]
		})
		cmd.SetArgs([]string{name})
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		err := cmd.ExecuteContext(t.Context())
		return said.String(), err
	}
	if said, err := run("e"); err != nil || !strings.Contains(said, "5 objects") {
		t.Errorf("it says %q (%v)", said, err)
	}
	for name, want := range map[string]string{"f": "no results in a store", "g": "not found"} {
		if _, err := run(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}

func TestFetchNeedsKeys(t *testing.T) {
	cmd := fetch.Command(&session.Session{}, func(string) string { return "" })
	cmd.SetArgs([]string{"s3://results/v1/ns/e/u/"})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "AWS_ACCESS_KEY_ID") {
		t.Errorf("without keys: %v", err)
	}
}
