package checkimage

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"text/template"

	"assay.dev/assay/operator/api/v1alpha1"
)

// command is a command that a System starts in an image.
type command struct {
	field      string // of the command in the System
	argv       []string
	image      string // as the System names it
	env        map[string]string
	workingDir string
	user       int64
	mounts     []string // directories that the pod adds
}

// defaultUser runs the commands of a System that names no user, as the API says.
const defaultUser = 65532

// commandsOf lists all commands of a System, in the order in which they start.
func commandsOf(s *v1alpha1.SystemSpec) []command {
	l := &lister{prepared: "/assay/out"}
	if s.Prepare != nil {
		l.add("prepare.container", &s.Prepare.Container, s.Prepare.Container.Command, []string{s.Prepare.OutputPath})
	}
	for i := range s.Datasets {
		d := &s.Datasets[i]
		l.add(fmt.Sprintf("datasets[%d].container", i), &d.Container, d.Container.Command, []string{d.OutputPath})
	}
	var shared []string // what every pod of a trial may have
	if s.Prepare != nil {
		shared = append(shared, s.Prepare.OutputPath)
	}
	for _, d := range s.Datasets {
		shared = append(shared, d.MountPath)
	}
	of := map[string]*v1alpha1.ReplicasSpec{"": &s.Replicas}
	l.group("replicas", &s.Replicas, shared)
	for i := range s.Components {
		c := &s.Components[i]
		of[c.Name] = &c.ReplicasSpec
		l.group(fmt.Sprintf("components[%d]", i), &c.ReplicasSpec, shared)
	}
	clientMounts := slices.Concat(shared, mountsOf(s.Clients.Files, nil))
	inPod := func(field, component string, target v1alpha1.StepTarget, argv []string) {
		containers, mounts := s.Clients.Containers, clientMounts
		if group := of[component]; target != v1alpha1.StepFirstClient && target != v1alpha1.StepEveryClient && group != nil {
			containers, mounts = group.Containers, slices.Concat(shared, mountsOf(group.Files, group.Volumes))
		}
		if len(containers) > 0 && len(argv) > 0 {
			l.add(field, &containers[0], argv, mounts)
		}
	}
	for i, step := range s.Steps {
		inPod(fmt.Sprintf("steps[%d]", i), step.Component, step.RunsOn, step.Command)
	}
	for i, role := range s.Roles {
		inPod(fmt.Sprintf("roles[%d]", i), role.Component, "", role.Command)
	}
	for i := range s.Clients.Containers {
		c := &s.Clients.Containers[i]
		if s.Clients.Driver == nil || s.Clients.Driver.Protocol != "Echo" { // whose command is an address
			l.add(fmt.Sprintf("clients.containers[%d]", i), c, c.Command, clientMounts)
		}
	}
	for i, check := range s.Checks {
		inPod(fmt.Sprintf("checks[%d]", i), check.Component, check.RunsOn, check.Command)
	}
	return l.all
}

type lister struct {
	prepared string
	all      []command
}

// group adds the commands that the pods of replicas, or of a component, start.
func (l *lister) group(field string, g *v1alpha1.ReplicasSpec, shared []string) {
	mounts := slices.Concat(shared, mountsOf(g.Files, g.Volumes))
	for i := range g.Containers {
		c := &g.Containers[i]
		l.add(fmt.Sprintf("%s.containers[%d]", field, i), c, c.Command, mounts)
	}
	for i, gate := range g.Ready {
		if len(gate.Command) > 0 && len(g.Containers) > 0 {
			l.add(fmt.Sprintf("%s.ready[%d]", field, i), &g.Containers[0], gate.Command, mounts)
		}
	}
}

func (l *lister) add(field string, c *v1alpha1.Container, argv, mounts []string) {
	user := int64(defaultUser)
	if c.RunAsUser != nil {
		user = *c.RunAsUser
	}
	env := map[string]string{}
	for _, e := range c.Env {
		env[e.Name] = e.Value
	}
	l.all = append(l.all, command{field: "spec." + field + ".command", argv: argv, image: c.Image, env: env, workingDir: c.WorkingDir, user: user,
		mounts: append([]string{l.prepared}, mounts...)})
}

func mountsOf(files []v1alpha1.FileSet, volumes []v1alpha1.Volume) []string {
	var out []string
	for _, f := range files {
		out = append(out, f.MountPath)
	}
	for _, v := range volumes {
		out = append(out, v.MountPath)
	}
	return out
}

// ofImage returns the commands that run in one image of the System.
func ofImage(all []command, of string) ([]command, error) {
	var images []string
	for _, c := range all {
		if !slices.Contains(images, c.image) {
			images = append(images, c.image)
		}
	}
	if of == "" && len(images) > 1 {
		return nil, fmt.Errorf("it names %d images, %s: say by --of which one IMAGE is", len(images), strings.Join(images, ", "))
	}
	kept := slices.DeleteFunc(slices.Clone(all), func(c command) bool { return of != "" && c.image != of && repository(c.image) != of })
	if len(kept) == 0 {
		return nil, fmt.Errorf("--of %s: it names %s", of, strings.Join(images, ", "))
	}
	return kept, nil
}

// repository is an image's name without tag and digest.
func repository(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if i := strings.LastIndexByte(image, ':'); i > strings.LastIndexByte(image, '/') {
		image = image[:i]
	}
	return image
}

// defaults returns the parameters of a System and of all its workloads at their defaults.
func defaults(s *v1alpha1.SystemSpec) map[string]any {
	out := map[string]any{}
	lists := [][]v1alpha1.Parameter{s.Parameters}
	for _, w := range s.Workloads {
		lists = append(lists, w.Parameters)
	}
	for _, list := range lists {
		for _, p := range list {
			if p.Default != nil {
				out[p.Name] = p.Default.String()
			}
		}
	}
	return out
}

// rendered fills the defaults of the parameters into a text. A template that reads anything else
// needs an experiment, so rendered returns an error.
func rendered(text string, parameters map[string]any) (string, error) {
	if !strings.Contains(text, "{{") {
		return text, nil
	}
	t, err := template.New("").Option("missingkey=error").Parse(text)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, map[string]any{"Parameters": parameters}); err != nil {
		return "", err
	}
	return b.String(), nil
}
