package plan

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/text/suggest"
)

// Bounds of a data set's size.
var (
	leastDatasetSize = resource.MustParse("1Mi")
	mostDatasetSize  = resource.MustParse("16Ti")
)

// datasets checks the recipes, the sizes, and the directories of the data in recipes and pods.
func (s *systemCheck) datasets(at *field.Path) {
	replicas := directoriesOf(s.spec.Prepare, "spec.replicas", s.spec.Replicas.Files, s.spec.Replicas.Volumes)
	clients := directoriesOf(s.spec.Prepare, "spec.clients", s.spec.Clients.Files, nil)
	components := map[string]map[string]string{}
	for i, c := range s.spec.Components {
		components[c.Name] = directoriesOf(s.spec.Prepare, fmt.Sprintf("spec.components[%d]", i), c.Files, c.Volumes)
	}
	for i, d := range s.spec.Datasets {
		set := at.Index(i)
		s.container(set.Child("container"), d.Container)
		if len(d.Container.Capabilities) > 0 {
			s.add(field.Forbidden(set.Child("container", "capabilities"), "a recipe can have no capability; remove them"))
		}
		if d.Container.Processors != "" {
			s.add(field.Forbidden(set.Child("container", "processors"), "a recipe runs on all processors of its container; remove it"))
		}
		s.directory(set.Child("outputPath"), d.OutputPath, map[string]string{})
		s.template(set.Child("subPath"), d.SubPath)
		if err := wrongSubPath(set.Child("subPath"), d.SubPath); err != nil {
			s.add(err)
		}
		s.duration(set.Child("timeout"), d.Timeout, bounds{time.Second, 72 * time.Hour})
		if d.Size.Cmp(leastDatasetSize) < 0 || d.Size.Cmp(mostDatasetSize) > 0 {
			s.add(field.Invalid(set.Child("size"), d.Size.String(), "must be from 1Mi to 16Ti: the most that the recipe may make"))
		}
		var parts []map[string]string
		if d.ForReplicas() {
			parts = append(parts, replicas)
		}
		if d.ForClients() {
			parts = append(parts, clients)
		}
		for _, name := range d.Components {
			if components[name] == nil {
				s.add(field.Invalid(set.Child("components"), name, suggest.Unknown("spec.components has none called", name, slices.Sorted(maps.Keys(components)))))
				continue
			}
			parts = append(parts, components[name])
		}
		if len(d.Components) == 0 && d.UsedBy == v1alpha1.DatasetForComponents { // for a file that never reached an API server
			s.add(field.Required(set.Child("components"), "usedBy is Components: name the components whose pods get a copy"))
		}
		before := len(s.errs)
		for _, taken := range parts {
			if len(s.errs) == before { // a directory that is wrong for both is reported once
				s.directory(set.Child("mountPath"), d.MountPath, taken)
			}
			if other := around(d.MountPath, taken); other != "" && len(s.errs) == before {
				s.add(field.Invalid(set.Child("mountPath"), d.MountPath, "lies in "+other+", or that in it; give the copy a directory of its own"))
			}
		}
	}
}

// wrongSubPath says what is wrong with the directory of a data set that pods copy. A template is
// checked when it is rendered for a trial.
func wrongSubPath(at *field.Path, text string) *field.Error {
	if text == "" || strings.Contains(text, "{{") {
		return nil
	}
	if _, err := SubPath(text); err != nil {
		return field.Invalid(at, text, err.Error())
	}
	return nil
}

// SubPath returns a directory of a data set in its shortest form. It rejects one that is not below
// the data set.
func SubPath(dir string) (string, error) {
	switch clean := path.Clean(dir); {
	case dir == "":
		return "", errors.New("is empty; for the whole data set, remove subPath")
	case path.IsAbs(dir):
		return "", errors.New("must be relative to outputPath, such as node-0")
	case slices.Contains(strings.Split(dir, "/"), ".."):
		return "", errors.New("must not contain \"..\"")
	case clean == ".":
		return "", errors.New("is the whole data set; remove subPath")
	default:
		return clean, nil
	}
}

// directoriesOf returns the directories of a group's pods, each with its field. The group is at the
// path at.
func directoriesOf(prepare *v1alpha1.PrepareStep, at string, files []v1alpha1.FileSet, volumes []v1alpha1.Volume) map[string]string {
	taken := map[string]string{}
	if prepare != nil {
		taken[path.Clean(prepare.OutputPath)] = "spec.prepare.outputPath"
	}
	for _, v := range volumes {
		taken[path.Clean(v.MountPath)] = at + ".volumes"
	}
	for _, set := range files {
		taken[path.Clean(set.MountPath)] = at + ".files"
	}
	return taken
}

// around finds a directory that contains dir or lies in it: one would hide the other.
func around(dir string, taken map[string]string) string {
	clean := path.Clean(dir)
	for _, other := range slices.Sorted(maps.Keys(taken)) {
		if other != clean && (strings.HasPrefix(clean, other+"/") || strings.HasPrefix(other, clean+"/")) {
			return taken[other]
		}
	}
	return ""
}
