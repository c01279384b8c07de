package plan

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/text/suggest"
)

// ValidateSystem makes the checks that the types of a System cannot express: of parameters, the
// count expression, gates, durations and directories. parse parses one template. If it is nil,
// templates are not checked.
func ValidateSystem(spec *v1alpha1.SystemSpec, parse func(name, text string) error) field.ErrorList {
	s := &systemCheck{spec: spec, parse: parse}
	root := field.NewPath("spec")
	s.parameters(root)
	if len(spec.Machines) > 0 || spec.Script != nil {
		s.machines(root)
		return s.errs
	}
	s.group(root.Child("replicas"), s.spec.Replicas)
	s.components(root.Child("components"))
	s.prepare(root.Child("prepare"))
	s.datasets(root.Child("datasets"))
	s.steps(root.Child("steps"))
	s.checks(root.Child("checks"))
	s.clients(root.Child("clients"))
	s.roles(root.Child("roles"))
	return s.errs
}

type systemCheck struct {
	spec  *v1alpha1.SystemSpec
	parse func(name, text string) error
	errs  field.ErrorList
}

func (s *systemCheck) add(errs ...*field.Error) { s.errs = append(s.errs, errs...) }

func (s *systemCheck) parameters(root *field.Path) {
	taken := map[string]string{systemAxis: "the axis that several systems make"}
	for _, name := range builtinAxes {
		taken[name] = "an axis of every sweep"
	}
	for i, p := range s.spec.Parameters {
		s.parameter(root.Child("parameters").Index(i), p, taken)
	}
	for i, w := range s.spec.Workloads {
		own := map[string]string{}
		for k, v := range taken {
			own[k] = v
		}
		for _, p := range s.spec.Parameters {
			own[p.Name] = "a parameter of the system"
		}
		for j, p := range w.Parameters {
			s.parameter(root.Child("workloads").Index(i).Child("parameters").Index(j), p, own)
		}
	}
}

func (s *systemCheck) parameter(at *field.Path, p v1alpha1.Parameter, taken map[string]string) {
	if what, ok := taken[p.Name]; ok {
		s.add(field.Invalid(at.Child("name"), p.Name, "is the name of "+what+"; call the parameter otherwise"))
	}
	ordered := p.Type == v1alpha1.ParameterInteger || p.Type == v1alpha1.ParameterDecimal || p.Type == v1alpha1.ParameterDuration
	limits := map[string]float64{}
	for _, bound := range []struct {
		name  string
		value *v1alpha1.Value
	}{{"minimum", p.Minimum}, {"maximum", p.Maximum}} {
		if bound.value == nil {
			continue
		}
		if !ordered {
			s.add(field.Invalid(at.Child(bound.name), bound.value.String(), fmt.Sprintf("a %s has no %s; only Integer, Decimal and Duration have", p.Type, bound.name)))
			continue
		}
		_, limit, err := parseValue(p.Type, bound.value.String())
		if err != nil {
			s.add(field.Invalid(at.Child(bound.name), bound.value.String(), err.Error()))
			continue
		}
		limits[bound.name] = limit
	}
	if len(limits) == 2 && limits["minimum"] > limits["maximum"] {
		s.add(field.Invalid(at.Child("minimum"), p.Minimum.String(), fmt.Sprintf("must be at most maximum, %s", p.Maximum)))
	}
	for i, v := range p.Allowed {
		if _, _, err := parseValue(p.Type, v.String()); err != nil {
			s.add(field.Invalid(at.Child("allowed").Index(i), v.String(), err.Error()))
		}
	}
	if p.Default != nil {
		if _, err := checkValue(p, *p.Default); err != nil {
			s.add(field.Invalid(at.Child("default"), p.Default.String(), err.Error()))
		}
	}
}

// group checks the spec of the replicas, or of a component.
func (s *systemCheck) group(at *field.Path, r v1alpha1.ReplicasSpec) {
	if _, err := compileCount(r.Count, integers(s.spec)); err != nil {
		s.add(field.Invalid(at.Child("count"), r.Count, err.Error()))
	}
	numbers := map[int32]string{}
	for i, p := range r.Ports {
		if other, ok := numbers[p.Port]; ok {
			s.add(field.Invalid(at.Child("ports").Index(i).Child("port"), p.Port, fmt.Sprintf("port %q has this number; give each port its own", other)))
		}
		numbers[p.Port] = p.Name
	}
	s.containers(at.Child("containers"), r.Containers)
	s.directories(at, r.Files, r.Volumes)
	s.volumes(at.Child("volumes"), r)
	for i, g := range r.Ready {
		gate := at.Child("ready").Index(i)
		s.log(gate.Child("log"), g.Log, r.Containers)
		if g.Port != "" {
			s.port(gate.Child("port"), g.Port, at, r.Ports)
		}
		if g.HTTP != nil {
			s.port(gate.Child("http", "port"), g.HTTP.Port, at, r.Ports)
		}
		s.templates(gate.Child("command"), g.Command)
	}
	s.duration(at.Child("readyTimeout"), r.ReadyTimeout, bounds{time.Second, 2 * time.Hour})
	s.stop(at.Child("stop"), r.Stop)
	s.add(checkMetrics(at.Child("metrics"), r.Metrics)...)
}

// checkMetrics checks the interval of a metrics endpoint, if there is one. Prometheus knows no
// fractions of seconds, and a shorter interval is itself a load.
func checkMetrics(at *field.Path, m *v1alpha1.MetricsEndpoint) field.ErrorList {
	if m == nil || m.Interval == "" {
		return nil
	}
	_, errs := checkDuration(at.Child("interval"), m.Interval, bounds{time.Second, time.Minute})
	return errs
}

func (s *systemCheck) prepare(at *field.Path) {
	p := s.spec.Prepare
	if p == nil {
		return
	}
	s.container(at.Child("container"), p.Container)
	s.directory(at.Child("outputPath"), p.OutputPath, map[string]string{})
	s.duration(at.Child("timeout"), p.Timeout, bounds{time.Second, time.Hour})
}

func (s *systemCheck) steps(at *field.Path) {
	for i, step := range s.spec.Steps {
		s.templates(at.Index(i).Child("command"), step.Command)
		s.component(at.Index(i), step.Component, step.RunsOn)
		s.duration(at.Index(i).Child("timeout"), step.Timeout, bounds{time.Second, 24 * time.Hour})
	}
}

func (s *systemCheck) checks(at *field.Path) {
	for i, check := range s.spec.Checks {
		s.templates(at.Index(i).Child("command"), check.Command)
		s.component(at.Index(i), check.Component, check.RunsOn)
		s.duration(at.Index(i).Child("timeout"), check.Timeout, bounds{time.Second, time.Hour})
	}
}

// component checks the component whose pods run a step or a check.
func (s *systemCheck) component(at *field.Path, name string, on v1alpha1.StepTarget) {
	if name == "" {
		return
	}
	if on != v1alpha1.StepEveryReplica && on != v1alpha1.StepFirstReplica { // for a file that never reached an API server
		s.add(field.Invalid(at.Child("runsOn"), string(on), "with component, it is EveryReplica (every pod of it) or FirstReplica (its pod 0)"))
	}
	if s.spec.Group(name) == nil {
		s.unknownComponent(at, name)
	}
}

func (s *systemCheck) unknownComponent(at *field.Path, name string) {
	var names []string
	for _, c := range s.spec.Components {
		names = append(names, c.Name)
	}
	s.add(field.Invalid(at.Child("component"), name, suggest.Unknown("spec.components has none called", name, names)))
}

func (s *systemCheck) clients(at *field.Path) {
	c := s.spec.Clients
	s.containers(at.Child("containers"), c.Containers)
	s.directories(at, c.Files, nil)
	if c.End != nil {
		s.log(at.Child("end", "log"), c.End.Log, c.Containers)
		s.stop(at.Child("end", "stop"), c.End.Stop)
	}
	s.add(checkMetrics(at.Child("metrics"), c.Metrics)...)
	s.checkMisbehaving(at.Child("misbehaving"), c)
	if c.Results != nil && strings.Contains(c.Results.Path, "..") {
		s.add(field.Invalid(at.Child("results", "path"), c.Results.Path, "must not contain \"..\""))
	}
	if c.Driver == nil && c.Results == nil {
		s.add(field.Required(at.Child("results"),
			"without a driver the client measures itself: say in which format it reports and where, or set driver to let Assay's load generator measure"))
	}
	if c.Results != nil {
		s.add(checkResults(at.Child("results"), c.Results)...)
	}
}

func (s *systemCheck) roles(at *field.Path) {
	for i, role := range s.spec.Roles {
		group, path := s.spec.Group(role.Component), field.NewPath("spec", "replicas")
		if group == nil {
			s.unknownComponent(at.Index(i), role.Component)
			continue
		}
		if role.Component != "" {
			path = field.NewPath("spec", "components").Key(role.Component)
		}
		s.roleLog(at.Index(i).Child("log"), role.Log, group.Containers)
		if role.HTTP != nil {
			s.port(at.Index(i).Child("http", "port"), role.HTTP.Port, path, group.Ports)
		}
		s.templates(at.Index(i).Child("command"), role.Command)
	}
}

func (s *systemCheck) containers(at *field.Path, containers []v1alpha1.Container) {
	if len(containers) == 0 { // for a file that never reached an API server
		s.add(field.Required(at, "a pod has one container at least"))
	}
	for i, c := range containers {
		s.container(at.Index(i), c)
	}
}

func (s *systemCheck) container(at *field.Path, c v1alpha1.Container) {
	s.template(at.Child("image"), c.Image)
	s.templates(at.Child("command"), c.Command)
	s.template(at.Child("processors"), c.Processors)
	if len(c.Resources.Claims) > 0 {
		s.add(field.Forbidden(at.Child("resources", "claims"), "pods of a trial have no resource claims; ask for CPU, memory or a device plugin's resource under requests and limits"))
	}
	if len(c.Capabilities) > 0 && (c.RunAsUser == nil || *c.RunAsUser != 0) { // for a file that never reached an API server
		s.add(field.Invalid(at.Child("capabilities"), strings.Join(c.Capabilities, ", "), "reach processes of root only; set runAsUser: 0, or remove them"))
	}
	for i, e := range c.Env {
		s.template(at.Child("env").Index(i).Child("value"), e.Value)
	}
}

// directories checks the templates of files, and that the directories of a pod all differ.
func (s *systemCheck) directories(at *field.Path, files []v1alpha1.FileSet, volumes []v1alpha1.Volume) {
	taken := map[string]string{}
	if s.spec.Prepare != nil {
		taken[path.Clean(s.spec.Prepare.OutputPath)] = "spec.prepare.outputPath"
	}
	for i, set := range files {
		dir := at.Child("files").Index(i)
		s.directory(dir.Child("mountPath"), set.MountPath, taken)
		for j, f := range set.Files {
			s.template(dir.Child("files").Index(j).Child("template"), f.Template)
		}
	}
	for i, v := range volumes {
		s.directory(at.Child("volumes").Index(i).Child("mountPath"), v.MountPath, taken)
	}
}

// volumes checks that volumes of huge pages have a request for pages, of one size.
func (s *systemCheck) volumes(at *field.Path, r v1alpha1.ReplicasSpec) {
	var sizes []corev1.ResourceName
	for _, c := range r.Containers {
		for name := range c.Resources.Limits {
			if strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) && !slices.Contains(sizes, name) {
				sizes = append(sizes, name)
			}
		}
	}
	for i, v := range r.Volumes {
		switch {
		case v.Medium == v1alpha1.VolumeHugePages && len(sizes) != 1:
			s.add(field.Invalid(at.Index(i).Child("medium"), string(v.Medium), fmt.Sprintf(
				"the containers' limits name %d sizes of huge pages; want one, such as resources.limits.hugepages-2Mi", len(sizes))))
		case v.StorageClass != "" && v.Medium != v1alpha1.VolumePersistentVolumeClaim: // for a file that never reached an API server
			s.add(field.Invalid(at.Index(i).Child("storageClass"), v.StorageClass, "is for medium PersistentVolumeClaim only; remove it, or change the medium"))
		}
	}
}

// directory refuses a directory that the pod already has, and directories of Assay's own files.
func (s *systemCheck) directory(at *field.Path, dir string, taken map[string]string) {
	clean := path.Clean(dir)
	switch other, ok := taken[clean]; {
	case clean == "/" || clean == "/assay" || strings.HasPrefix(clean, "/assay/"):
		s.add(field.Invalid(at, dir, "must not be / and not lie in /assay, where Assay keeps its own files; use a directory such as /data"))
	case strings.Contains(dir, ".."):
		s.add(field.Invalid(at, dir, "must not contain \"..\""))
	case ok:
		s.add(field.Invalid(at, dir, fmt.Sprintf("%s is the same directory; give each its own", other)))
	}
	taken[clean] = at.String()
}

// log checks a pattern, and the container whose log it is for.
func (s *systemCheck) log(at *field.Path, g *v1alpha1.LogGate, containers []v1alpha1.Container) {
	if g == nil {
		return
	}
	if _, err := regexp.Compile(g.Pattern); err != nil {
		s.add(field.Invalid(at.Child("pattern"), g.Pattern, fmt.Sprintf("must be a regular expression as RE2 has them (no look-around, no back-references): %v", err)))
	}
	names := make([]string, len(containers))
	for i, c := range containers {
		names[i] = c.Name
	}
	if g.Container != "" && !slices.Contains(names, g.Container) {
		s.add(field.Invalid(at.Child("container"), g.Container, suggest.Unknown("there is no container", g.Container, names)))
	}
}

func (s *systemCheck) roleLog(at *field.Path, l *v1alpha1.RoleLog, containers []v1alpha1.Container) {
	if l == nil {
		return
	}
	s.log(at, &v1alpha1.LogGate{Pattern: ".", Container: l.Container}, containers)
	for _, part := range []struct{ name, pattern string }{{"gained", l.Gained}, {"lost", l.Lost}} {
		if _, err := regexp.Compile(part.pattern); err != nil {
			s.add(field.Invalid(at.Child(part.name), part.pattern, fmt.Sprintf("must be a regular expression as RE2 has them (no look-around, no back-references): %v", err)))
		}
	}
}

// port checks that a group of pods declares a port of that name.
func (s *systemCheck) port(at *field.Path, name string, group *field.Path, ports []v1alpha1.Port) {
	names := make([]string, len(ports))
	for i, p := range ports {
		names[i] = p.Name
	}
	if !slices.Contains(names, name) {
		s.add(field.Invalid(at, name, suggest.Unknown(group.Child("ports").String()+" declares no port", name, names)))
	}
}

func (s *systemCheck) stop(at *field.Path, stop *v1alpha1.StopSpec) {
	if stop != nil {
		s.duration(at.Child("grace"), stop.Grace, bounds{0, 10 * time.Minute})
	}
}

// duration checks a duration that has a default: it may be empty.
func (s *systemCheck) duration(at *field.Path, d v1alpha1.Duration, b bounds) {
	if d == "" {
		return
	}
	_, errs := checkDuration(at, d, b)
	s.add(errs...)
}

func (s *systemCheck) templates(at *field.Path, texts []string) {
	for i, text := range texts {
		s.template(at.Index(i), text)
	}
}

func (s *systemCheck) template(at *field.Path, text string) {
	if s.parse == nil || !strings.Contains(text, "{{") {
		return
	}
	if err := s.parse(at.String(), text); err != nil {
		s.add(field.Invalid(at, shorten(text), fmt.Sprintf("must be a Go template; docs/reference/templates.md lists what it may use: %v", err)))
	}
}

// shorten cuts a long value for an error message.
func shorten(text string) string {
	const most = 120
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}
