package artifact

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/internal/analysis/report/bundle"
	"assay.dev/assay/operator/internal/experiment/imageref"
	"assay.dev/assay/operator/internal/results"
)

// AgentImage is the image of Assay's agent that a run on one machine uses.
const AgentImage = "assay/agent:dev"

// Image is an image that the Systems name, or Assay's own.
type Image struct {
	// Name as the bundle's System has it; of Assay's own: AgentImage.
	Name    string   `json:"name"`
	Systems []string `json:"systems,omitempty"`
	// Ran are the images that the trials' pods report: NAME@sha256:... of one that came from a
	// registry, sha256:... of one that was loaded. Empty: no pod reports it.
	Ran []string `json:"ran,omitempty"`
	// Pinned is the name with a digest that the Systems of the artifact have. Empty: no digest is
	// known.
	Pinned string `json:"pinned,omitempty"`
	// Archive in the artifact's folder images, with its digests; empty: it is not there.
	Archive string   `json:"archive,omitempty"`
	Digests []string `json:"archiveDigests,omitempty"`
}

// Archive is a file with images, as docker save writes it.
type Archive struct {
	// Name of the file in ImagesFolder.
	Name   string
	SHA256 string
	// Images in it: names with tags, and the digests of their configuration and manifest.
	Images map[string][]string
}

// container of a System: where it is, its name, and its image.
type container struct{ system, part, name, image string }

// partNames are the names that results have for parts of a System.
var partNames = map[string]string{"replicas": "replica", "clients": "client"}

// containersOf finds the containers of a System, wherever in it the kind has them. set may change
// their images.
func containersOf(system, part string, value any, each func(c container, set func(image string))) {
	switch v := value.(type) {
	case map[string]any:
		if name, ok := v["name"].(string); ok && part == "components" {
			part = name
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			inner := part
			if inner == "" {
				inner = cmp.Or(partNames[key], key)
			}
			visitContainers(system, part, key, v[key], each)
			containersOf(system, inner, v[key], each)
		}
	case []any:
		for _, item := range v {
			containersOf(system, part, item, each)
		}
	}
}

func visitContainers(system, part, key string, value any, each func(c container, set func(image string))) {
	var containers []any
	switch key {
	case "container":
		containers = []any{value}
	case "containers":
		containers, _ = value.([]any)
	}
	for _, item := range containers {
		object, _ := item.(map[string]any)
		image, ok := object["image"].(string)
		if !ok {
			continue
		}
		name, _ := object["name"].(string)
		each(container{system, part, name, image}, func(image string) { object["image"] = image })
	}
}

// pin finds the images of the Systems, what ran for each, and writes Systems that name them by
// digest where one is known.
func (a *facts) pin() error {
	objects := map[string]map[string]any{}
	var all []container
	for _, name := range slices.Sorted(maps.Keys(a.systems)) {
		var object map[string]any
		if err := yaml.Unmarshal(a.kept.Files[bundle.SystemsFolder+name+".yaml"], &object); err != nil {
			return fmt.Errorf("bundle: System %s: %w", name, err)
		}
		objects[name] = object
		containersOf(name, "", object["spec"], func(c container, _ func(string)) { all = append(all, c) })
	}
	ran := ranImages(all, a.kept.Trials)
	pinned := map[string]string{}
	for _, c := range all {
		i := slices.IndexFunc(a.images, func(i Image) bool { return i.Name == c.image })
		if i >= 0 {
			if !slices.Contains(a.images[i].Systems, c.system) {
				a.images[i].Systems = append(a.images[i].Systems, c.system)
			}
			continue
		}
		image := Image{Name: c.image, Systems: []string{c.system}, Ran: ran[c.image]}
		image.Pinned = pinnedName(c.image, image.Ran, a.in.About.Images[c.image])
		pinned[c.image] = image.Pinned
		a.images = append(a.images, a.archived(image))
	}
	if own := agentImages(a.kept.Trials); len(own) > 0 {
		a.images = append(a.images, a.archived(Image{Name: AgentImage, Ran: own}))
	}
	for name, object := range objects {
		containersOf(name, "", object["spec"], func(c container, set func(string)) {
			if to := pinned[c.image]; to != "" {
				set(to)
			}
		})
		text, err := yaml.Marshal(object)
		if err != nil {
			return fmt.Errorf("write System %s as YAML: %w", name, err)
		}
		a.pinned[name+".yaml"] = text
	}
	return nil
}

// archived says where the folder has the image.
func (a *facts) archived(i Image) Image {
	for _, file := range a.in.Archives {
		for name, digests := range file.Images {
			if SameImage(name, i.Name) {
				i.Archive, i.Digests = ImagesFolder+file.Name, digests
			}
		}
	}
	return i
}

// ranImages are the images that pods report for each image of the Systems. A pod reports its images
// without the names of their containers. Their order is that of the containers' names, as the
// kubelet has it. A repository in the report tells more than the order.
func ranImages(all []container, trials []results.Trial) map[string][]string {
	found := map[string]map[string]bool{}
	add := func(image, id string) {
		if found[image] == nil {
			found[image] = map[string]bool{}
		}
		found[image][id] = true
	}
	for _, t := range trials {
		for _, p := range t.Pods {
			var ofPart []container
			for _, c := range all {
				if c.part == p.Part {
					ofPart = append(ofPart, c)
				}
			}
			ids := strings.Split(p.Images, ",")
			inOrder := slices.SortedFunc(slices.Values(ofPart), func(x, y container) int { return cmp.Compare(x.name, y.name) })
			for i, id := range ids {
				id = strings.TrimSpace(id)
				if repository, _, ok := strings.Cut(id, "@"); ok {
					for _, c := range ofPart {
						if SameImage(repository, imageref.Parse(c.image).Name) {
							add(c.image, id)
						}
					}
					continue
				}
				if id != "" && (len(ids) == len(inOrder) || oneImage(ofPart)) {
					add(inOrder[min(i, len(inOrder)-1)].image, id)
				}
			}
		}
	}
	out := map[string][]string{}
	for image, ids := range found {
		out[image] = slices.Sorted(maps.Keys(ids))
	}
	return out
}

func oneImage(all []container) bool {
	return len(all) > 0 && !slices.ContainsFunc(all, func(c container) bool { return c.image != all[0].image })
}

// agentImages are the reports of pods about Assay's own image.
func agentImages(trials []results.Trial) []string {
	found := map[string]bool{}
	for _, t := range trials {
		for _, p := range t.Pods {
			if p.AgentImage != "" {
				found[p.AgentImage] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// pinnedName is the image with the digest by which a registry has it. A digest that the authors
// give comes first: they push images under other names. Empty: several ran, or none came from a
// registry.
func pinnedName(image string, ran []string, said string) string {
	switch {
	case said != "":
		return said
	case digestPattern.MatchString(image):
		return image
	case len(ran) != 1 || !digestPattern.MatchString(ran[0]) || strings.Contains(image, "{{"):
		return ""
	}
	_, digest, _ := strings.Cut(ran[0], "@")
	return image + "@" + digest
}

// SameImage compares names as registries do: docker.io and library/ may be left out.
func SameImage(a, b string) bool { return full(a) == full(b) }

func full(image string) string {
	image = strings.TrimPrefix(strings.TrimPrefix(image, "docker-pullable://"), "index.docker.io/")
	image = strings.TrimPrefix(image, "docker.io/")
	return strings.TrimPrefix(image, "library/")
}

// ImagesOf calls each for the image of every container of a System, given as YAML.
func ImagesOf(system []byte, each func(image string)) error {
	var object map[string]any
	if err := yaml.Unmarshal(system, &object); err != nil {
		return err
	}
	containersOf("", "", object["spec"], func(c container, _ func(string)) { each(c.image) })
	return nil
}
