package chaosmesh

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
)

// kinds are the allowed kinds of a fault: those that act on pods. The API's schema and the chart's
// rights list the same kinds.
var kinds = []string{podChaos, networkChaos, "StressChaos", "TimeChaos", "IOChaos", httpChaos, "DNSChaos", "JVMChaos"}

// ours are the fields of a spec that must be empty, since other fields of the fault say the same.
// The values name those fields.
var ours = map[string]string{
	"selector":      "target says which replicas; nobody else's pods can be chosen",
	"mode":          "target says which replicas, and pick how many of them",
	"value":         "target says which replicas, and pick how many of them",
	"duration":      "for says how long the fault lasts",
	"scheduler":     "at and repeat say when it happens",
	"target":        "peers says which replicas are the other end",
	"remoteCluster": "a fault is for the trial's own pods, in this cluster",
}

// Check finds the mistakes in a fault of Chaos Mesh that the fault alone shows. The argument
// containers has the names of the replicas' containers in the order of the System. The argument
// path leads to the fault.
func Check(path *field.Path, f *v1alpha1.Fault, containers []string) field.ErrorList {
	c, at := f.ChaosMesh, path.Child("chaosMesh")
	if !slices.Contains(kinds, c.Kind) {
		return field.ErrorList{field.NotSupported(at.Child("kind"), c.Kind, kinds)}
	}
	spec := map[string]any{}
	if err := json.Unmarshal(c.Spec.Raw, &spec); err != nil || len(c.Spec.Raw) == 0 {
		return field.ErrorList{field.Invalid(at.Child("spec"), string(c.Spec.Raw), "must be an object: the spec of a "+c.Kind+", as Chaos Mesh documents it")}
	}
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(spec)) {
		if why := ours[name]; why != "" && (name != "target" || c.Kind != httpChaos) { // the target of an HTTPChaos is requests or answers
			errs = append(errs, field.Forbidden(at.Child("spec", name), why+"; leave it out of spec"))
		}
	}
	if c.Peers != nil && c.Kind != networkChaos {
		errs = append(errs, field.Forbidden(at.Child("peers"), "only a NetworkChaos has another end; leave peers out"))
	}
	errs = append(errs, checkContainers(at.Child("spec", "containerNames"), f, spec, containers)...)
	errs = append(errs, checkPrograms(at.Child("spec"), spec)...)
	errs = append(errs, checkDelays(at.Child("spec", "delay"), spec)...)
	return append(errs, checkLength(path, f)...)
}

// checkLength requires a length for a fault that lasts, and refuses one for a fault that is over at
// once.
func checkLength(path *field.Path, f *v1alpha1.Fault) field.ErrorList {
	switch {
	case OneShot(f) && f.For != nil:
		return field.ErrorList{field.Forbidden(path.Child("for"), fmt.Sprintf(
			"%s happens at an instant and ends by itself: leave for and repeat out; of several times, each is a fault of its own", Describe(f)))}
	case !OneShot(f) && f.For == nil:
		return field.ErrorList{field.Required(path.Child("for"), fmt.Sprintf("%s lasts until it is recovered: say how long", Describe(f)))}
	}
	return nil
}

// actsOnContainers reports whether the object chooses containers of its pods by name.
func actsOnContainers(f *v1alpha1.Fault) bool {
	switch f.ChaosMesh.Kind {
	case podChaos:
		return podAction(f) == containerKill
	case networkChaos, httpChaos:
		return false
	default:
		return true
	}
}

// checkContainers checks that the fault only names the System's own containers. Experiments must
// not break the agent.
func checkContainers(at *field.Path, f *v1alpha1.Fault, spec map[string]any, containers []string) field.ErrorList {
	value, given := spec["containerNames"]
	if !given {
		return nil
	}
	if !actsOnContainers(f) {
		return field.ErrorList{field.Forbidden(at, Describe(f)+" acts on whole pods and chooses no container; leave it out")}
	}
	names, ok := value.([]any)
	if !ok || len(names) == 0 {
		return field.ErrorList{field.Invalid(at, value, "must be a list of containers' names; leave it out for all containers of the replica")}
	}
	for i, name := range names {
		if text, ok := name.(string); !ok || !slices.Contains(containers, text) {
			return field.ErrorList{field.Invalid(at.Index(i), name, fmt.Sprintf("is no container of the System's replicas, which are: %s", strings.Join(containers, ", ")))}
		}
	}
	return nil
}

// checkPrograms refuses fields by which an experiment could run programs with the rights of Chaos
// Mesh's daemon, which is root on the node.
func checkPrograms(at *field.Path, spec map[string]any) field.ErrorList {
	if _, given := spec["stressngStressors"]; given {
		return field.ErrorList{field.Forbidden(at.Child("stressngStressors"),
			"are arguments of a program that Chaos Mesh runs as root of the node, outside of the pod's file system: use stressors")}
	}
	return nil
}

// checkDelays refuses fractions of milliseconds. Releases of Chaos Mesh up to 2.8 read them as 0.
func checkDelays(at *field.Path, spec map[string]any) field.ErrorList {
	delay, _ := spec["delay"].(map[string]any)
	var errs field.ErrorList
	for _, name := range []string{"latency", "jitter"} {
		text, _ := delay[name].(string)
		if number, found := strings.CutSuffix(text, "ms"); found && strings.Contains(number, ".") {
			errs = append(errs, field.Invalid(at.Child(name), text, "some releases of Chaos Mesh read a fraction of a millisecond as 0: write microseconds, such as 500us"))
		}
	}
	return errs
}

// Describe names the kind and the action of a fault's object: "PodChaos pod-kill", "TimeChaos".
func Describe(f *v1alpha1.Fault) string {
	return strings.TrimSpace(f.ChaosMesh.Kind + " " + Action(f))
}

// BreaksShaping reports whether the object removes the trial's own shaping of links. For every
// NetworkChaos, a partition included, Chaos Mesh deletes the root queueing discipline of every
// interface of a pod, at the begin and at the end. A HTTPChaos leads the pod's packets through a
// bridge and a proxy of its own.
func BreaksShaping(f *v1alpha1.Fault) bool {
	return f.ChaosMesh != nil && (f.ChaosMesh.Kind == networkChaos || f.ChaosMesh.Kind == httpChaos)
}

// StopsProcesses reports whether the object ends replicas' processes, or shifts the clock by which
// their launchers act. No other fault may stop the same replica meanwhile.
func StopsProcesses(f *v1alpha1.Fault) bool {
	return f.ChaosMesh != nil && (f.ChaosMesh.Kind == podChaos || f.ChaosMesh.Kind == "TimeChaos")
}
