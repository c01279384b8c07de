package manifest_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/cli/manifest"
)

const imaged = `apiVersion: assay.dev/v1alpha1
kind: System
metadata: {name: one}
spec:
  prepare: {outputPath: /keys, container: {name: keys, image: "assay/basil:dev", command: [/keys]}}
  replicas:
    count: "1"
    ready: [{log: {pattern: up, container: kv}}]
    containers:
    - {name: kv, image: "assay/basil:dev", command: [/kv]}
    - {name: db, image: "quay.io/db/db:9", command: [/db]}
  clients:
    containers:
    - {name: c, image: "driver:{{.Parameters.version}}", command: [/c]}
`

func images(set *manifest.Set) []string {
	s := set.Systems["one"]
	return []string{s.Prepare.Container.Image, s.Replicas.Containers[0].Image, s.Replicas.Containers[1].Image, s.Clients.Containers[0].Image}
}

func TestUseImages(t *testing.T) {
	const basil, db, driver = "assay/basil:dev", "quay.io/db/db:9", "driver:{{.Parameters.version}}"
	for name, tc := range map[string]struct {
		images manifest.Images
		want   []string
		err    string
	}{
		"none":     {want: []string{basil, basil, db, driver}},
		"registry": {images: manifest.Images{Registry: "r.example.org/m"}, want: []string{"r.example.org/m/" + basil, "r.example.org/m/" + basil, db, "r.example.org/m/" + driver}},
		"another name, the same tag": {images: manifest.Images{Replace: []string{"assay/basil=r.example.org/b"}},
			want: []string{"r.example.org/b:dev", "r.example.org/b:dev", db, driver}},
		"a digest": {images: manifest.Images{Replace: []string{"quay.io/db/db=db@sha256:12"}}, want: []string{basil, basil, "db@sha256:12", driver}},
		"a name with its tag": {images: manifest.Images{Replace: []string{"assay/basil:dev=basil:7"}},
			want: []string{"basil:7", "basil:7", db, driver}},
		"what is named is not prefixed": {images: manifest.Images{Replace: []string{"assay/basil=basil:7"}, Registry: "localhost:5000"},
			want: []string{"basil:7", "basil:7", db, "localhost:5000/" + driver}},
		"a typo":            {images: manifest.Images{Replace: []string{"assay/basel=b:1"}}, err: "--image assay/basel: no System uses it; their images are assay/basil, driver, quay.io/db/db; did you mean assay/basil?"},
		"another tag":       {images: manifest.Images{Replace: []string{"assay/basil:v1=b:1"}}, err: "--image assay/basil:v1: no System uses it"},
		"no name":           {images: manifest.Images{Replace: []string{"b:1"}}, err: "is not NAME=REF"},
		"twice":             {images: manifest.Images{Replace: []string{"driver=b:1", "driver=b:2"}}, err: "driver is replaced twice"},
		"a bad registry":    {images: manifest.Images{Registry: "https://r.example.org"}, err: "--image-registry \"https://r.example.org\" has a scheme"},
		"a folder, no host": {images: manifest.Images{Registry: "mirror"}, err: "a folder of Docker Hub"},
	} {
		t.Run(name, func(t *testing.T) {
			one := strings.Replace(experiment, "[{name: one}, {name: two}]", "[{name: one}]", 1)
			set, err := manifest.Read(t.Context(), []string{"-"}, strings.NewReader(one+"---\n"+imaged))
			if err != nil {
				t.Fatal(err)
			}
			err = set.UseImages(tc.images)
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Fatalf("got %v, want: %s", err, tc.err)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(tc.want, images(set)); diff != "" {
				t.Errorf("planned (-want +got):\n%s", diff)
			}
			applied, _ := set.ToApply()[0].MarshalJSON()
			for _, image := range tc.want {
				if !strings.Contains(string(applied), `"image":"`+image+`"`) {
					t.Errorf("what is applied does not have %s: %s", image, applied)
				}
			}
		})
	}
}

func TestUseImagesOfOthers(t *testing.T) {
	set, err := manifest.Read(t.Context(), []string{"-"}, strings.NewReader(experiment+"---\n"+imaged))
	if err != nil {
		t.Fatal(err)
	}
	if err := set.UseImages(manifest.Images{Registry: "r.example.org"}); err == nil || !strings.Contains(err.Error(), "none of the files has System two; name its file with -f") {
		t.Errorf("a System of which there is no file: %v", err)
	}
	one := strings.Replace(experiment, "[{name: one}, {name: two}]", "[{name: one}]", 1)
	open := strings.Replace(imaged, "quay.io/db/db:9", "{{.Parameters.image}}", 1)
	if set, err = manifest.Read(t.Context(), []string{"-"}, strings.NewReader(one+"---\n"+open)); err != nil {
		t.Fatal(err)
	}
	if err := set.UseImages(manifest.Images{Registry: "r.example.org"}); err == nil || !strings.Contains(err.Error(), "System one names its image by a template") {
		t.Errorf("an image that a template names: %v", err)
	}
}

// A folder stands for its files, as with kubectl.
func TestReadFolder(t *testing.T) {
	dir := write(t, map[string]string{"e.yaml": experiment, "one.yml": system("one"), "README.md": "no YAML: [", "systems/two.yaml": system("two"), "below/three.yaml": system("three")})
	set, err := manifest.Read(t.Context(), []string{dir}, nil)
	if err != nil || len(set.Missing()) > 0 || len(set.ToApply()) != 3 {
		t.Errorf("%v, missing %v", err, set.Missing())
	}
	if _, err := manifest.Read(t.Context(), []string{filepath.Join(dir, "nowhere")}, nil); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("a folder that is not there: %v", err)
	}
	empty := t.TempDir()
	if _, err := manifest.Read(t.Context(), []string{empty}, nil); err == nil || !strings.Contains(err.Error(), "has no file that ends in") {
		t.Errorf("an empty folder: %v", err)
	}
}

// An Experiment's URL is enough: its Systems are looked for beside it.
func TestReadURL(t *testing.T) {
	dir := write(t, map[string]string{"e.yaml": experiment, "systems/one.yaml": system("one"), "systems/two.yaml": system("two"), "broken.yaml": "a: [", "long.yaml": "#" + strings.Repeat("x", 4<<20)})
	asked := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked += " " + r.URL.RequestURI()
		if r.URL.Path == "/busy.yaml" {
			http.Error(w, "busy", http.StatusServiceUnavailable)
			return
		}
		http.ServeFileFS(w, r, os.DirFS(dir), r.URL.Path)
	}))
	defer server.Close()
	set, err := manifest.Read(t.Context(), []string{server.URL + "/e.yaml?token=1"}, nil)
	if err != nil || len(set.Missing()) > 0 {
		t.Fatalf("%v, missing %v; asked for%s", err, set.Missing(), asked)
	}
	if asked != " /e.yaml?token=1 /systems/one.yaml?token=1 /systems/two.yaml?token=1" {
		t.Errorf("asked for%s", asked)
	}
	if err := os.Remove(filepath.Join(dir, "systems/two.yaml")); err != nil {
		t.Fatal(err)
	}
	if set, err = manifest.Read(t.Context(), []string{server.URL + "/e.yaml"}, nil); err != nil || len(set.Missing()) != 1 {
		t.Errorf("a System that is not beside it is missing, and may be in the cluster: %v", err)
	}
	for path, want := range map[string]string{
		"/nothing.yaml": "404 Not Found", "/busy.yaml": "answers 503", "/broken.yaml": "broken.yaml:1:1: ", "/long.yaml": "larger than",
	} {
		if _, err := manifest.Read(t.Context(), []string{server.URL + path}, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want: %s", path, err, want)
		}
	}
}
