package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/imageref"
	"assay.dev/assay/operator/internal/text/suggest"
)

// Images says which images of the Systems to replace, and from which registry to take images
// without one.
type Images struct {
	// Replace lists NAME=REF: images called NAME, with any tag or digest, become REF. A REF without
	// tag and digest keeps the tag or digest of the image.
	Replace []string
	// Registry is prefixed to images whose names have none; empty: they stay. It does not change
	// what Replace names.
	Registry string
}

// UseImages rewrites the images of the Systems that the Experiment names. It fails for a System
// that is only in the cluster, and in no file.
func (s *Set) UseImages(o Images) error {
	if len(o.Replace) == 0 && o.Registry == "" {
		return nil
	}
	if missing := s.Missing(); len(missing) > 0 {
		return fmt.Errorf("--image and --image-registry change the Systems in the files, and none of the files has System %s; name its file with -f", strings.Join(missing, ", "))
	}
	w := imageWriter{registry: o.Registry, replace: map[string]imageref.Ref{}, used: map[string]bool{}, names: map[string]bool{}}
	if o.Registry != "" {
		if err := imageref.CheckRegistry(o.Registry); err != nil {
			return fmt.Errorf("--image-registry %w", err)
		}
	}
	for _, text := range o.Replace {
		name, ref, found := strings.Cut(text, "=")
		if !found || name == "" || ref == "" || strings.ContainsAny(text, " \t") {
			return fmt.Errorf("--image %s is not NAME=REF, such as assay/basil=registry.example.org/assay/basil:v1", text)
		}
		if _, twice := w.replace[name]; twice {
			return fmt.Errorf("--image %s: %s is replaced twice", text, name)
		}
		w.replace[name] = imageref.Parse(ref)
	}
	for _, ref := range s.Experiment.Spec.Systems {
		w.system = ref.Name
		if err := w.walk(s.systems[ref.Name].Object.Object["spec"]); err != nil {
			return err
		}
		if err := s.decodeSystem(ref.Name); err != nil {
			return err
		}
	}
	return w.unused()
}

func (s *Set) decodeSystem(name string) error {
	text, err := yaml.Marshal(s.systems[name].Object.Object)
	if err != nil {
		return fmt.Errorf("write System %s: %w", name, err)
	}
	var system v1alpha1.System
	if err := yaml.UnmarshalStrict(text, &system); err != nil {
		return fmt.Errorf("read System %s with its new images: %w", name, err)
	}
	s.Systems[name] = system.Spec
	return nil
}

// imageWriter rewrites the images of all containers of a System.
type imageWriter struct {
	system   string
	registry string
	replace  map[string]imageref.Ref
	used     map[string]bool
	names    map[string]bool // of all images that were found
}

// walk looks for containers in all fields of an object.
func (w *imageWriter) walk(value any) error {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if err := w.member(key, v[key]); err != nil {
				return err
			}
		}
	case []any:
		for _, item := range v {
			if err := w.walk(item); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *imageWriter) member(key string, value any) error {
	var containers []any
	switch key {
	case "container":
		containers = []any{value}
	case "containers":
		containers, _ = value.([]any)
	}
	for _, c := range containers {
		container, _ := c.(map[string]any)
		image, ok := container["image"].(string)
		if !ok {
			continue
		}
		changed, err := w.rewrite(image)
		if err != nil {
			return err
		}
		container["image"] = changed
	}
	return w.walk(value)
}

func (w *imageWriter) rewrite(image string) (string, error) {
	old := imageref.Parse(image)
	w.names[old.Name] = true
	for _, name := range []string{image, old.Name} { // a name with a tag is more specific
		to, ok := w.replace[name]
		if !ok {
			continue
		}
		w.used[name] = true
		if to.Version == "" {
			to.Version = old.Version
		}
		return to.String(), nil
	}
	if w.registry != "" && old.IsOpen() {
		return "", fmt.Errorf("--image-registry: System %s names its image by a template, %s, so it is unknown whether it has a registry; set the parameter in it, or name the image with --image", w.system, image)
	}
	return old.In(w.registry).String(), nil
}

// unused refuses names that no System uses. Otherwise, after a typo, trials would run images that
// the user did not ask for.
func (w *imageWriter) unused() error {
	for _, name := range slices.Sorted(maps.Keys(w.replace)) {
		if w.used[name] {
			continue
		}
		known := slices.Sorted(maps.Keys(w.names))
		hint := ""
		if near := suggest.Nearest(name, known); near != "" {
			hint = fmt.Sprintf("; did you mean %s?", near)
		}
		return fmt.Errorf("--image %s: no System uses it; their images are %s%s", name, strings.Join(known, ", "), hint)
	}
	return nil
}
