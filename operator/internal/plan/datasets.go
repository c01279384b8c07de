package plan

import (
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
)

// Bounds of a data set's size.
var (
	leastDatasetSize = resource.MustParse("1Mi")
	mostDatasetSize  = resource.MustParse("16Ti")
)

// datasets checks the recipes, the sizes, and where recipes and pods see the data.
func (s *systemCheck) datasets(at *field.Path) {
	replicas, clients := s.directoriesOf(v1alpha1.PartReplica), s.directoriesOf(v1alpha1.PartClient)
	for i, d := range s.spec.Datasets {
		set := at.Index(i)
		s.container(set.Child("container"), d.Container)
		if len(d.Container.Capabilities) > 0 {
			s.add(field.Forbidden(set.Child("container", "capabilities"), "a recipe can have no capability; remove them"))
		}
		s.directory(set.Child("outputPath"), d.OutputPath, map[string]string{})
		s.duration(set.Child("timeout"), d.Timeout, bounds{time.Second, 72 * time.Hour})
		if d.Size.Cmp(leastDatasetSize) < 0 || d.Size.Cmp(mostDatasetSize) > 0 {
			s.add(field.Invalid(set.Child("size"), d.Size.String(), "must be from 1Mi to 16Ti: the most that the recipe may make"))
		}
		var parts []map[string]string
		if d.UsedBy != v1alpha1.DatasetForClients {
			parts = append(parts, replicas)
		}
		if d.UsedBy == v1alpha1.DatasetForClients || d.UsedBy == v1alpha1.DatasetForAll {
			parts = append(parts, clients)
		}
		before := len(s.errs)
		for _, taken := range parts {
			if len(s.errs) == before { // one that is wrong for both is told once
				s.directory(set.Child("mountPath"), d.MountPath, taken)
			}
			if other := around(d.MountPath, taken); other != "" && len(s.errs) == before {
				s.add(field.Invalid(set.Child("mountPath"), d.MountPath, "lies in "+other+", or that in it; give the copy a directory of its own"))
			}
		}
	}
}

// directoriesOf a part's pods, by path: what the field is that has it.
func (s *systemCheck) directoriesOf(part string) map[string]string {
	taken := map[string]string{}
	if s.spec.Prepare != nil {
		taken[path.Clean(s.spec.Prepare.OutputPath)] = "spec.prepare.outputPath"
	}
	files, at := s.spec.Replicas.Files, "spec.replicas"
	if part == v1alpha1.PartClient {
		files, at = s.spec.Clients.Files, "spec.clients"
	} else {
		for _, v := range s.spec.Replicas.Volumes {
			taken[path.Clean(v.MountPath)] = at + ".volumes"
		}
	}
	for _, set := range files {
		taken[path.Clean(set.MountPath)] = at + ".files"
	}
	return taken
}

// around finds a directory that dir is in, or that is in it: one would hide the other.
func around(dir string, taken map[string]string) string {
	clean := path.Clean(dir)
	for _, other := range slices.Sorted(maps.Keys(taken)) {
		if other != clean && (strings.HasPrefix(clean, other+"/") || strings.HasPrefix(other, clean+"/")) {
			return taken[other]
		}
	}
	return ""
}
