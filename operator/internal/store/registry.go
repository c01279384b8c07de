package store

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/text/suggest"
)

// Settings are those of any store in the list of an installation.
type Settings struct {
	// Name that experiments use in spec.results.store.
	Name string `json:"name"`
	// Kind of the store. Default: S3, a bucket.
	Kind string `json:"kind,omitempty"`
}

// DefaultKind of a store whose settings name none.
const DefaultKind = "S3"

// Open makes a store from its settings in JSON: the fields of Settings and those of its kind. An
// unknown field is an error. The directory has the store's secrets. Open sends no request yet.
type Open func(settings []byte, directory string) (Remote, error)

var storeName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$`)

// Installation lists the stores of an installation.
type Installation struct {
	// Default is the store of experiments that name none. Empty: their results stay in the cluster.
	Default string `json:"default,omitempty"`
	// Stores have the fields of Settings, and those of their kind.
	Stores []json.RawMessage `json:"stores,omitempty"`
}

// Registry has the stores of an installation. The zero value has none.
type Registry struct {
	fallback string
	names    []string
	stores   map[string]Remote
}

// Load reads the file that lists the stores; directory/NAME has each store's credentials and CA. No
// file, an empty name, means no stores. kinds has the function that opens a store, by the name of
// its kind.
func Load(file, directory string, kinds map[string]Open) (*Registry, error) {
	r := &Registry{stores: map[string]Remote{}}
	if file == "" {
		return r, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the list of result stores: %w", err)
	}
	var all Installation
	if err := yaml.UnmarshalStrict(text, &all); err != nil {
		return nil, fmt.Errorf("read the list of result stores %s: %w", file, err)
	}
	for i, settings := range all.Stores {
		if err := r.open(settings, directory, kinds); err != nil {
			return nil, fmt.Errorf("the list of result stores %s: stores[%d]: %w", file, i, err)
		}
	}
	if all.Default != "" && r.stores[all.Default] == nil {
		return nil, fmt.Errorf("the list of result stores %s has the default %s, which is not among its stores: %s", file, all.Default, r.describe())
	}
	slices.Sort(r.names)
	r.fallback = all.Default
	return r, nil
}

// open opens the store of some settings.
func (r *Registry) open(settings []byte, directory string, kinds map[string]Open) error {
	var c Settings
	if err := yaml.Unmarshal(settings, &c); err != nil {
		return fmt.Errorf("is no store: %w", err)
	}
	kind := cmp.Or(c.Kind, DefaultKind)
	switch {
	case !storeName.MatchString(c.Name) || c.Name == v1alpha1.NoStore:
		return fmt.Errorf("name is %q; it must be lower-case letters, digits and dashes, 40 at most, and not %s", c.Name, v1alpha1.NoStore)
	case r.stores[c.Name] != nil:
		return fmt.Errorf("names %s twice", c.Name)
	case kinds[kind] == nil:
		return errors.New(suggest.Unknown("there is no kind of store", kind, slices.Sorted(maps.Keys(kinds))))
	}
	s, err := kinds[kind](settings, filepath.Join(directory, c.Name))
	if err != nil {
		return fmt.Errorf("%s: %w", c.Name, err)
	}
	r.stores[c.Name], r.names = s, append(r.names, c.Name)
	return nil
}

func (r *Registry) describe() string {
	if len(r.names) == 0 {
		return "there are none"
	}
	return strings.Join(r.names, ", ")
}

// Resolve turns what an experiment asks for into the name of its store: empty for none.
func (r *Registry) Resolve(asked *v1alpha1.Results) string {
	switch {
	case asked != nil && asked.Store == v1alpha1.NoStore:
		return ""
	case asked != nil && asked.Store != "":
		return asked.Store
	case r == nil:
		return ""
	}
	return r.fallback
}

// Get returns the store of a name.
func (r *Registry) Get(name string) (Remote, error) {
	if r == nil || r.stores[name] == nil {
		return nil, &Problem{Reason: v1alpha1.ReasonStoreNotConfigured, Text: r.unknown(name)}
	}
	return r.stores[name], nil
}

// Check returns an error if an experiment names a store that the installation does not have.
func (r *Registry) Check(name string) error {
	if name == "" || name == v1alpha1.NoStore || r != nil && r.stores[name] != nil {
		return nil
	}
	return errors.New(r.unknown(name))
}

func (r *Registry) unknown(name string) string {
	if r == nil || len(r.names) == 0 {
		return fmt.Sprintf("there is no result store %q: this installation has none; its owner can add one in the chart's results.stores", name)
	}
	return fmt.Sprintf("there is no result store %q in this installation; it has: %s", name, strings.Join(r.names, ", "))
}
