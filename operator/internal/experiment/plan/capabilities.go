package plan

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
)

// CheckCapabilities refuses a System whose containers ask for a capability that the installation
// does not allow.
func CheckCapabilities(system *v1alpha1.SystemSpec, allowed []string) error {
	root := field.NewPath("spec")
	at := map[*field.Path][]v1alpha1.Container{
		root.Child("replicas", "containers"): system.Replicas.Containers, root.Child("clients", "containers"): system.Clients.Containers,
	}
	for i, c := range system.Components {
		at[root.Child("components").Index(i).Child("containers")] = c.Containers
	}
	var wrong []string
	refuse := func(path *field.Path, c v1alpha1.Container) {
		for i, name := range c.Capabilities {
			if !slices.Contains(allowed, name) {
				wrong = append(wrong, fmt.Sprintf("%s: %s", path.Child("capabilities").Index(i), name))
			}
		}
	}
	for path, containers := range at {
		for i, c := range containers {
			refuse(path.Index(i), c)
		}
	}
	if system.Prepare != nil {
		refuse(root.Child("prepare", "container"), system.Prepare.Container)
	}
	if len(wrong) == 0 {
		return nil
	}
	slices.Sort(wrong)
	may := "none"
	if len(allowed) > 0 {
		may = strings.Join(allowed, ", ")
	}
	return fmt.Errorf("its containers want capabilities that this installation does not allow (%s); it allows %s. The owner of the cluster can add to them: trialPods.capabilities of the chart",
		strings.Join(wrong, "; "), may)
}

// checkCapabilities checks each system once.
func checkCapabilities(p *Plan, systems map[string]v1alpha1.SystemSpec, checks Checks) (errs field.ErrorList) {
	if checks.Capabilities == nil {
		return nil
	}
	for _, ref := range p.Spec.Systems {
		system := systems[ref.Name]
		if err := checks.Capabilities(&system); err != nil {
			errs = append(errs, field.Forbidden(systemPath(p, ref.Name), fmt.Sprintf("System %s: %v", ref.Name, err)))
		}
	}
	return errs
}
