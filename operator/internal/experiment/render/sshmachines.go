package render

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/node/protocol"
)

// machineBinary is the program that turns a container into a machine that answers SSH.
const machineBinary = "/machine"

// etcDir is the directory with a machine's own passwd, group and hosts, in a volume of its pod.
const etcDir = "etc"

// defaultHomeSize is the default for the most bytes of a home directory.
var defaultHomeSize = resource.MustParse("10Gi")

// furnish turns a pod into a machine. The pod gets the group's user, a writable home directory,
// files in /etc that name user and hosts, and the right to listen on port 22. This needs no
// privilege: the restricted Pod Security profile allows the sysctl that sets the least port.
//
// The files of /etc lie in the pod's own volume, since those of a kubelet belong to root. A
// container of the machine's own image makes them, since they extend the files of the image.
func (b *builder) furnish(pod *corev1.PodSpec, g *v1alpha1.MachineGroup) {
	const home, etc = "home", protocol.RunDir + "/" + etcDir
	size := defaultHomeSize
	if g.HomeSize != nil {
		size = *g.HomeSize
	}
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: home, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: &size}}})
	pod.SecurityContext.Sysctls = append(pod.SecurityContext.Sysctls, corev1.Sysctl{Name: "net.ipv4.ip_unprivileged_port_start", Value: "0"})
	c := &pod.Containers[0]
	setup := corev1.Container{
		Name: "setup", Image: c.Image, ImagePullPolicy: c.ImagePullPolicy,
		Command: []string{protocol.BinDir + machineBinary, "setup", "--user", g.UserOrDefault(), "--home", g.HomeOrDefault(), "--to", "/assay/home", "--etc", etc},
		VolumeMounts: []corev1.VolumeMount{
			{Name: "bin", MountPath: protocol.BinDir}, {Name: "run", MountPath: protocol.RunDir}, {Name: home, MountPath: "/assay/home"},
		},
		Resources:                *c.Resources.DeepCopy(),
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		SecurityContext:          systemSecurity(g.RunAsUser),
	}
	pod.InitContainers = append(pod.InitContainers, setup)
	c.VolumeMounts = append(append([]corev1.VolumeMount{}, c.VolumeMounts...), corev1.VolumeMount{Name: home, MountPath: g.HomeOrDefault()})
	b.shared(pod)
	for _, name := range []string{"passwd", "group", "hosts"} {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "run", MountPath: "/etc/" + name, SubPath: path.Join(etcDir, name)})
	}
}

// shared mounts the directories into a pod that all machines of the trial share. Each is a
// directory of the namespace's claim, below the trial's name.
func (b *builder) shared(pod *corev1.PodSpec) {
	const name = "shared"
	for i, dir := range b.system.Shared {
		if i == 0 {
			pod.Volumes = append(pod.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: v1alpha1.SharedClaim},
			}})
		}
		c := &pod.Containers[0]
		mount := corev1.VolumeMount{Name: name, MountPath: dir.Path, SubPath: path.Join(b.l.Trial, strconv.Itoa(i))}
		c.VolumeMounts = append(append([]corev1.VolumeMount{}, c.VolumeMounts...), mount)
	}
}

// machineName has the values with which the hostnames of a group are rendered.
type machineName struct {
	Index int
	Group string
}

// hosts lists all machines of a trial. own has each machine's own names, by pod.
func (t *Trial) hosts() (hosts []protocol.MachineHost, own map[string]string, err error) {
	own = map[string]string{}
	seen := map[string]string{}
	add := func(pod, fqdn, ip string, g *v1alpha1.MachineGroup, number int) error {
		text, err := Text("spec.machines["+g.Name+"].hostnames", g.Hostnames, machineName{Index: number, Group: g.Name})
		if err != nil {
			return err
		}
		names := strings.Fields(text)
		if len(names) == 0 {
			return fmt.Errorf("spec.machines[%s].hostnames: machine %d has no name", g.Name, number)
		}
		for _, name := range names {
			if other, taken := seen[name]; taken {
				return fmt.Errorf("spec.machines[%s].hostnames: %q is the name of two machines, %s and number %d of this group", g.Name, name, other, number)
			}
			seen[name] = "number " + strconv.Itoa(number) + " of " + g.Name
		}
		own[pod] = names[0]
		hosts = append(hosts, protocol.MachineHost{IP: ip, Names: append(names, fqdn)})
		return nil
	}
	for _, c := range t.Layout.Clients {
		g, number := t.system.MachineOf(true, "", c.Index)
		if err := add(c.Name, c.Host, c.IP, g, number); err != nil {
			return nil, nil, err
		}
	}
	for _, r := range t.Layout.Servers {
		g, number := t.system.MachineOf(false, r.Component, r.Index)
		if err := add(r.Name, r.Host, r.IP, g, number); err != nil {
			return nil, nil, err
		}
	}
	return hosts, own, nil
}

// machineOf gives a pod that is a machine the configuration of its program.
func (t *Trial) machineOf(ctx *Context, pod *Pod, name string, g *v1alpha1.MachineGroup, script *protocol.MachineScript) error {
	if g == nil {
		return nil
	}
	hosts, own, err := t.hosts()
	if err != nil {
		return err
	}
	config := protocol.MachineConfig{
		Name: own[name], User: g.UserOrDefault(), Home: g.HomeOrDefault(), Port: 22, Keys: v1alpha1.MachineKeys, Hosts: hosts, HostsFile: "/etc/hosts",
		OutDir: protocol.OutDir, RunDir: protocol.RunDir, Marks: t.marksOf(hosts, own[name], g, script != nil), Script: script,
	}
	if len(g.Boot) > 0 {
		if config.Boot, err = ctx.argv("spec.machines["+g.Name+"].boot", g.Boot); err != nil {
			return err
		}
	}
	if script != nil {
		for _, dir := range t.system.Shared {
			config.Shared = append(config.Shared, dir.Path)
		}
	}
	pod.Directive.Marks = len(config.Marks) > 0
	content, err := json.MarshalIndent(config, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the machine's configuration: %w", err)
	}
	pod.Files = append(pod.Files, protocol.File{Path: v1alpha1.MachineConfigFile, Mode: 0o644, Content: content})
	c := &pod.Directive.Containers[0]
	c.Respawn = true
	// Commands of faults run beside the machine's program, with the same environment as sessions.
	c.Dir = g.HomeOrDefault()
	c.Env = append(c.Env, "HOSTNAME="+own[name], "HOME="+g.HomeOrDefault(), "USER="+g.UserOrDefault(), "LOGNAME="+g.UserOrDefault())
	return nil
}

// marksOf returns the marks that are found on a machine.
func (t *Trial) marksOf(hosts []protocol.MachineHost, name string, g *v1alpha1.MachineGroup, ofScript bool) []protocol.MachineMark {
	var marks []protocol.MachineMark
	for _, m := range t.system.Script.Marks {
		here := m.Machine == "" && ofScript
		for _, h := range hosts {
			here = here || h.Names[0] == name && slices.Contains(h.Names, m.Machine)
		}
		if here {
			marks = append(marks, protocol.MachineMark{Name: m.Name, Pattern: m.Pattern, File: plan.MarkFile(g, m)})
		}
	}
	return marks
}

// script returns the script that runs on the client's machine.
func (t *Trial) script(c *Context, of placement.Client) (*protocol.MachineScript, error) {
	s := t.system.Script
	if s == nil {
		return nil, nil //nolint:nilnil // a System without machines has no script
	}
	command, err := c.with(of).argv("spec.script.command", s.Command)
	if err != nil {
		return nil, err
	}
	dir, results := plan.ScriptPaths(t.system)
	script := &protocol.MachineScript{Command: command, Dir: dir, Deadline: t.spec.Schedule.Measure.OrZero(), Results: results, ResultsTo: v1alpha1.ScriptResultFile}
	if s.HostsFile != nil {
		script.HostsTo = plan.InHome(t.system, s.HostsFile.Path)
		script.HostsText, err = t.hostLines(cmp.Or(s.HostsFile.Line, "{{.IP}}"))
	}
	return script, err
}

// hostLine has the values with which a line of a hosts file is rendered.
type hostLine struct {
	IP, Name, Group string
	Index           int
}

// hostLines returns the hosts file of a script.
func (t *Trial) hostLines(line string) (string, error) {
	_, own, err := t.hosts()
	if err != nil {
		return "", err
	}
	var lines strings.Builder
	add := func(pod, ip string, g *v1alpha1.MachineGroup, number int) error {
		text, err := Text("spec.script.hostsFile.line", line, hostLine{IP: ip, Name: own[pod], Group: g.Name, Index: number})
		lines.WriteString(text + "\n")
		return err
	}
	for _, c := range t.Layout.Clients {
		g, number := t.system.MachineOf(true, "", 0)
		if err := add(c.Name, c.IP, g, number); err != nil {
			return "", err
		}
	}
	for _, r := range t.Layout.Servers {
		g, number := t.system.MachineOf(false, r.Component, r.Index)
		if err := add(r.Name, r.IP, g, number); err != nil {
			return "", err
		}
	}
	return lines.String(), nil
}
