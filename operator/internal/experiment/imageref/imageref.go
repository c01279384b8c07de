// Package imageref splits names of container images, and gives them another registry, name or
// version. Names may be templates, as in a System. It is pure.
//
// The parts are those of the OCI distribution specification: [REGISTRY/]NAME[:TAG][@DIGEST]. The
// part before the first slash is a registry if it has a dot or a colon or is localhost.
package imageref

import (
	"fmt"
	"regexp"
	"strings"
)

// Ref is the name of an image, split into parts.
type Ref struct {
	// Name with the registry, if there is one: registry.example.org/assay/basil.
	Name string
	// Version is the tag with its colon, the digest with its @, both, or nothing.
	Version string
}

// Parse splits a name.
func Parse(image string) Ref {
	end := len(image)
	if at := indexOutside(image, '@'); at >= 0 {
		end = at
	}
	name := image[:end]
	slash := lastOutside(name, '/')
	if colon := indexOutside(name[slash+1:], ':'); colon >= 0 {
		end = slash + 1 + colon
	}
	return Ref{Name: image[:end], Version: image[end:]}
}

// String returns the whole name.
func (r Ref) String() string { return r.Name + r.Version }

// HasRegistry reports whether the name has a registry.
func (r Ref) HasRegistry() bool {
	slash := indexOutside(r.Name, '/')
	if slash < 0 {
		return false
	}
	host := r.Name[:slash]
	return host == "localhost" || strings.ContainsAny(outside(host), ".:")
}

// IsOpen reports whether a template decides the registry, so that it is unknown before rendering.
func (r Ref) IsOpen() bool { return strings.HasPrefix(r.Name, "{{") }

// In returns the name of the image in a registry: R/assay/basil:v1. A name with a registry stays
// the same.
func (r Ref) In(registry string) Ref {
	if registry == "" || r.HasRegistry() {
		return r
	}
	return Ref{Name: registry + "/" + r.Name, Version: r.Version}
}

// registryPattern matches a host with an optional port and path: registry.example.org:5000/mirror.
var registryPattern = regexp.MustCompile(`^[a-zA-Z0-9]([-a-zA-Z0-9.]*[a-zA-Z0-9])?(:[0-9]{1,5})?(/[a-z0-9]+([-._]+[a-z0-9]+)*)*$`)

// CheckRegistry returns the mistake in the name of a registry, or nil.
func CheckRegistry(registry string) error {
	host, _, _ := strings.Cut(registry, "/")
	switch {
	case strings.Contains(registry, "://"):
		return fmt.Errorf("%q has a scheme; give the host alone, such as registry.example.org/mirror", registry)
	case !registryPattern.MatchString(registry):
		return fmt.Errorf("%q is not HOST[:PORT][/PATH], such as registry.example.org/mirror", registry)
	case host != "localhost" && !strings.ContainsAny(host, ".:"):
		return fmt.Errorf("%q: nodes take %q for a folder of Docker Hub, since it has neither a dot nor a port; write %s:443 or the host's full name", registry, host, host)
	}
	return nil
}

// outside returns a text without its templates.
func outside(text string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "{{")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		_, text, _ = strings.Cut(rest, "}}")
	}
}

// indexOutside returns the first index of a letter outside of {{ }}, or -1.
func indexOutside(text string, letter byte) int {
	for _, i := range placesOutside(text, letter) {
		return i
	}
	return -1
}

func lastOutside(text string, letter byte) int {
	last := -1
	for _, i := range placesOutside(text, letter) {
		last = i
	}
	return last
}

func placesOutside(text string, letter byte) (places []int) {
	for i := 0; i < len(text); i++ {
		if strings.HasPrefix(text[i:], "{{") {
			end := strings.Index(text[i:], "}}")
			if end < 0 {
				return places
			}
			i += end + 1
			continue
		}
		if text[i] == letter {
			places = append(places, i)
		}
	}
	return places
}
