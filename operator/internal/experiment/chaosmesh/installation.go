package chaosmesh

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
)

// Installation describes Chaos Mesh in the cluster of this manager.
type Installation struct {
	// Enabled: the owner allows experiments to use Chaos Mesh, and the manager has the rights for
	// it.
	Enabled bool
	// Mapper knows the kinds of the cluster, and learns of new ones.
	Mapper meta.RESTMapper
}

// Check says why experiments cannot have faults of a kind here. Nil: they can.
func (i *Installation) Check(kind string) error {
	if !i.Enabled {
		return fmt.Errorf("this installation of Assay does not use Chaos Mesh; its owner sets chaosMesh.enabled: true of the chart")
	}
	_, err := i.Mapper.RESTMapping(GroupVersion.WithKind(kind).GroupKind(), GroupVersion.Version)
	switch {
	case meta.IsNoMatchError(err):
		return fmt.Errorf("the cluster has no kind %s (%s); install Chaos Mesh", kind, GroupVersion)
	case err != nil:
		return fmt.Errorf("look for the kind %s: %w", kind, err)
	}
	return nil
}
