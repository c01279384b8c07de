package local

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/fault"
	"assay.dev/assay/operator/internal/local/rootless"
)

// Refusals lists the features that an experiment, with its profile, needs and one machine does not
// have. Each entry names a field of the Experiment or of a System, and the reason.
func Refusals(spec v1alpha1.ExperimentSpec, systems map[string]v1alpha1.SystemSpec) []string {
	var refused []string
	refuse := func(field, format string, args ...any) {
		refused = append(refused, field+": "+fmt.Sprintf(format, args...))
	}
	for field, pool := range pools(&spec.Placement) {
		refuse(field, "pool %q is a set of nodes, and one machine has none; leave it out, or choose a profile without it", pool)
	}
	if n := len(spec.Placement.Sets); n > 0 {
		refuse("spec.placement.sets", "%d trials at once need %d sets of nodes, and one machine has none; leave it out, or choose a profile without it", n, n)
	}
	if spec.Placement.ByRegion != nil {
		refuse("spec.placement.byRegion", "regions on nodes of their own need several nodes; without it, the profile of the network has all delays between regions")
	}
	if spec.Placement.Spread == v1alpha1.SpreadRequired {
		refuse("spec.placement.spread", "Required puts each replica on a node of its own; one machine needs Preferred")
	}
	if spec.Results != nil && spec.Results.Store != "" && spec.Results.Store != v1alpha1.NoStore {
		refuse("spec.results.store", "result stores are those of a manager in a cluster; results are in the folder, and kubectl assay bundle packs them")
	}
	if spec.Recurrence != nil {
		refuse("spec.recurrence", "runs that come again need a manager that is there at their due times, which only a cluster has; leave it out, and let cron of this machine call kubectl assay run")
	}
	for i, f := range spec.Faults {
		if why := fault.NotOnOneMachine(&f); why != "" {
			refuse(fmt.Sprintf("spec.faults[%d] (%s)", i, f.Name), "%s", why)
		}
	}
	for i, m := range spec.Measurements {
		if m.Query != "" {
			refuse(fmt.Sprintf("spec.measurements[%d] (%s)", i, m.Name), "a query needs a Prometheus, which only a cluster has")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(systems)) {
		system := systems[name]
		for field, volumes := range volumesOf(&system) {
			for i, v := range volumes {
				if v.Medium == v1alpha1.VolumePersistentVolumeClaim {
					refuse(fmt.Sprintf("System %s: %s.volumes[%d] (%s)", name, field, i, v.Name), "PersistentVolumeClaims need a cluster; medium Disk is a folder on this machine")
				}
			}
		}
	}
	slices.Sort(refused)
	return refused
}

// WithoutRoot lists the further features that one machine does not have for an ordinary user. That
// user is root only in a user namespace, and has no control groups.
func WithoutRoot(spec v1alpha1.ExperimentSpec, systems map[string]v1alpha1.SystemSpec) []string {
	var refused []string
	refuse := func(field, format string, args ...any) {
		refused = append(refused, field+": "+fmt.Sprintf(format, args...))
	}
	if spec.Network.Backend == v1alpha1.ShapingEDT {
		refuse("spec.network.backend", "EDT loads eBPF, which needs root; without root, Netem, NFQueue and Auto shape links")
	}
	for _, name := range slices.Sorted(maps.Keys(systems)) {
		system := systems[name]
		for field, c := range containersOf(&system) {
			at := fmt.Sprintf("System %s: %s", name, field)
			if c.Resources.Limits.Cpu().Sign() > 0 {
				refuse(at+".resources.limits.cpu", "a limit of processors needs a control group, which needs root; leave it out, or set processors to bind the command")
			}
			for what := range c.Resources.Limits {
				if strings.HasPrefix(string(what), corev1.ResourceHugePagesPrefix) {
					refuse(fmt.Sprintf("%s.resources.limits.%s", at, what), "huge pages need root")
				}
			}
			if len(c.Capabilities) > 0 {
				refuse(at+".capabilities", "%s: root of a user namespace has none that reaches beyond it; run the command as root", strings.Join(c.Capabilities, ", "))
			}
			if c.RunAsUser != nil && *c.RunAsUser >= rootless.Users {
				refuse(at+".runAsUser", "without root there are the users 0 to %d only", rootless.Users-1)
			}
		}
		for field, volumes := range volumesOf(&system) {
			for i, v := range volumes {
				if v.Medium == v1alpha1.VolumeHugePages {
					refuse(fmt.Sprintf("System %s: %s.volumes[%d] (%s)", name, field, i, v.Name), "huge pages need root; the media Memory and Disk do not")
				}
			}
		}
	}
	slices.Sort(refused)
	return refused
}

// BeyondAllowed names the capabilities that containers of the Systems ask for and cannot have: the
// user has not allowed them, or this process lacks them itself.
func BeyondAllowed(systems map[string]v1alpha1.SystemSpec, allowed, own []string) []string {
	var refused []string
	for _, name := range slices.Sorted(maps.Keys(systems)) {
		system := systems[name]
		for field, c := range containersOf(&system) {
			for i, capability := range c.Capabilities {
				at := fmt.Sprintf("System %s: %s.capabilities[%d]: %s", name, field, i, capability)
				switch {
				case !slices.Contains(own, capability):
					refused = append(refused, at+": this process lacks it itself, and cannot give it to a container")
				case !slices.Contains(allowed, capability):
					refused = append(refused, at+": allow it with --local-capabilities "+capability+", if you trust the program with it on this machine")
				}
			}
		}
	}
	slices.Sort(refused)
	return refused
}

// NotesWithoutRoot says which work one machine never does for an ordinary user. Results and bundles
// repeat it.
func NotesWithoutRoot() []string {
	return []string{
		"without root, limits of memory are not enforced and requests of processors are no weights. What containers use is added up over their processes. The report and the bundle say so.",
	}
}

// containersOf returns the containers of a System, by field.
func containersOf(s *v1alpha1.SystemSpec) map[string]v1alpha1.Container {
	all := map[string]v1alpha1.Container{}
	add := func(field string, containers []v1alpha1.Container) {
		for i := range containers {
			all[fmt.Sprintf("%s.containers[%d] (%s)", field, i, containers[i].Name)] = containers[i]
		}
	}
	add("spec.replicas", s.Replicas.Containers)
	add("spec.clients", s.Clients.Containers)
	for i := range s.Components {
		add(fmt.Sprintf("spec.components[%d]", i), s.Components[i].Containers)
	}
	if s.Prepare != nil {
		all["spec.prepare.container"] = s.Prepare.Container
	}
	for i := range s.Datasets {
		all[fmt.Sprintf("spec.datasets[%d].container", i)] = s.Datasets[i].Container
	}
	for i := range s.Machines {
		g := &s.Machines[i]
		all[fmt.Sprintf("spec.machines[%d] (%s)", i, g.Name)] = v1alpha1.Container{Resources: g.Resources, RunAsUser: g.RunAsUser}
	}
	return all
}

// pools returns the pools that a placement names, by field.
func pools(p *v1alpha1.Placement) map[string]string {
	found := map[string]string{}
	for field, pool := range map[string]string{"spec.placement.replicas": p.Replicas, "spec.placement.clients": p.Clients} {
		if pool != "" {
			found[field] = pool
		}
	}
	for i, c := range p.Components {
		found[fmt.Sprintf("spec.placement.components[%d]", i)] = c.Pool
	}
	return found
}

// volumesOf returns the volumes of a System's groups, by field.
func volumesOf(s *v1alpha1.SystemSpec) map[string][]v1alpha1.Volume {
	all := map[string][]v1alpha1.Volume{"spec.replicas": s.Replicas.Volumes}
	for i := range s.Components {
		all[fmt.Sprintf("spec.components[%d]", i)] = s.Components[i].Volumes
	}
	return all
}
