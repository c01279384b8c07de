package v1alpha1

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// MachineGroup is machines that are alike. Each is a pod that answers SSH on port 22 with the keys
// of its trial, under a host name of its own. The image needs no SSH server and no keys. It must
// have bash or sh, and ssh and scp where the script calls them.
type MachineGroup struct {
	// name of the group in faults and experiments. Faults call the machines of the first group
	// replicas. At most 14 lower-case letters and digits, beginning with a letter.
	// +kubebuilder:validation:MaxLength=14
	// +kubebuilder:validation:Pattern=`^[a-z][a-z0-9]*$`
	// +kubebuilder:validation:XValidation:rule="!(self in ['replica', 'replicas', 'client', 'clients', 'prepare', 'c']) && !self.matches('^s[0-9]+$')",message="the name is taken: replicas, clients, the prepare step and shards (s0) are called so; call the group otherwise"
	Name string `json:"name"`

	// count is a CEL expression that gives the number of machines: "3", or "parameters.servers" of
	// an Integer parameter. It may use f of the experiment's topology. From 1 to 200. All groups
	// together must have two machines at least.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Count string `json:"count"`

	// hostnames is a template of the host names of a machine, with spaces between them; the first
	// one is its own. It sees .Index, the machine's number in its group from 0. Machines also have
	// the fully qualified names of their pods. No two machines may have the same name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Hostnames string `json:"hostnames"`

	// image of the machines. Template.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image"`

	// imagePullPolicy as in a Pod. Default: IfNotPresent.
	// +optional
	// +kubebuilder:default=IfNotPresent
	// +kubebuilder:validation:Enum=Always;IfNotPresent;Never
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`

	// user is the name of the user of all processes, the only one that can log in. Default: author.
	// +optional
	// +kubebuilder:default=author
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[a-z_][-a-z0-9_]*$`
	User string `json:"user,omitempty"`

	// runAsUser is the numeric user of all processes. Default: 65532. 0 (root) needs a namespace
	// that allows it, and user: root.
	// +optional
	// +kubebuilder:default=65532
	// +kubebuilder:validation:Minimum=0
	RunAsUser *int64 `json:"runAsUser,omitempty"`

	// home is the user's home directory, absolute. A machine begins with a copy of that directory
	// of the image. Default: /home/ and the user's name, or /root for root.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^/.+`
	Home string `json:"home,omitempty"`

	// homeSize is the most that the home directory may hold on the node's disk. Default: 10Gi.
	// +optional
	HomeSize *resource.Quantity `json:"homeSize,omitempty"`

	// env sets environment variables of sessions and of the script. Values are templates.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Env []EnvVar `json:"env,omitempty"`

	// boot is a command, with all arguments, that runs whenever the machine comes up: before the
	// script begins, and again when a nodeKill has ended. The machine's user runs it in the home
	// directory. The machine answers SSH when the command has ended, or after a minute. Processes
	// that it leaves behind, such as a server that it started with nohup, live on. A command that
	// exits with another code than 0 is in the trial's record, and is no failure. Each element is a
	// template. Default: no command.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Boot []string `json:"boot,omitempty"`

	// resources asked for and limited, as in a Pod.
	// +optional
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`
}

// SharedDirectory is a directory that all machines of a trial see. It is empty when a trial begins.
//
// On a cluster it lies in the PersistentVolumeClaim assay-shared of the namespace, below the
// trial's name. The owner of the cluster makes the claim. All nodes must be able to write to its
// volume (ReadWriteMany), and all users to the volume's root. The volume decides how soon one
// machine sees what another writes. On NFS, a machine sees it if it opens the file after the writer
// has closed it. Without a cluster the directory is on the local machine, and every write is seen
// at once.
type SharedDirectory struct {
	// path of the directory on every machine, absolute. It may lie in the home directory, but must
	// not be that directory or a parent of it.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^/.+`
	Path string `json:"path"`
}

// Script is the command that the authors of an artifact run on one of their machines. It is the run
// of a trial: the trial is over when the script ends. The script may take as long as the window of
// the experiment's schedule, and is killed at the window's end. A trial whose script exits with
// another code than 0 is invalid.
type Script struct {
	// group of the machine that runs the script: its first one. Default: the first group.
	// +optional
	// +kubebuilder:validation:MaxLength=14
	Group string `json:"group,omitempty"`

	// command to run, with all arguments. Each element is a template; an element that renders to
	// nothing is left out.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Command []string `json:"command"`

	// workingDir that the command starts in; one that is not absolute is below the home directory.
	// Default: the home directory.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	WorkingDir string `json:"workingDir,omitempty"`

	// hostsFile is written on the script's machine before the script starts, for scripts that read
	// the machines' names or addresses from a file. Default: none is written.
	// +optional
	HostsFile *HostsFile `json:"hostsFile,omitempty"`

	// marks are instants at which certain lines of output were written. Faults may count from them,
	// and windows of rows lie between them. Default: none.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Marks []Mark `json:"marks,omitempty"`

	// results say where the script leaves its numbers.
	Results ScriptResults `json:"results"`
}

// Mark is the instant at which a certain line of output is written. A trial keeps at most 1000
// marks of a machine.
type Mark struct {
	// name of the mark.
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// pattern is a regular expression (RE2) that the line must match. Its named groups, as in
	// "running (?P<scheme>[a-z]+)", tell marks of one name apart.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Pattern string `json:"pattern"`

	// machine that file is on: one of its host names. Default: the machine of the script.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Machine string `json:"machine,omitempty"`

	// file that the line is written to, such as the log of a server; absolute or below the home
	// directory of the machine's user. Lines that are in it when the machine comes up do not count.
	// Default: what the script prints on either stream.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	File string `json:"file,omitempty"`
}

// HostsFile is a file with a line for each machine, the script's own first, in the order of groups
// and numbers.
type HostsFile struct {
	// path of the file, absolute or below the home directory. Its directory must be there.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Path string `json:"path"`

	// line of a machine: a template that sees .IP, .Name (its own host name), .Group and .Index
	// (its number in its group, from 0). Default: {{.IP}}.
	// +optional
	// +kubebuilder:default="{{.IP}}"
	// +kubebuilder:validation:MaxLength=256
	Line string `json:"line,omitempty"`
}

// ScriptResults say where a script leaves its numbers. One run may give results of several points:
// each row belongs to a point of its own.
type ScriptResults struct {
	// path of the file, absolute or below the home directory of the script's machine; ~/ stands for
	// the home directory. The file is read when the script has ended, at most 256 KiB.
	//
	// A script that leaves a file for each point has the names of axes in braces:
	// ~/results/{scheme}-{threads}/stats.json. Such a part of the path is the value of the axis. A
	// part * matches any text, which is ignored. Neither kind of part matches a slash. At most 128
	// files are read, of 4 MiB each and 1 MiB in all. In a file of JSON, lists of more than 64
	// numbers or points do not count: they are left out first.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Path string `json:"path"`

	// format of the file. Table: a line that names the columns, and a line for each row, with tabs,
	// commas or blanks between the cells. HATSTable: exp#_summary.txt of HATS. DMTreeTable:
	// simple_results.csv of DMTree. ELECTSummary: Exp#-*.log of ELECT. EigerGraph: combined.graph
	// of Eiger-PORT. PequinStats: stats.json of Pequin, whose only column is clients, the number of
	// correct ones. YCSB: the report of YCSB, with no column. Default: Table.
	// +optional
	// +kubebuilder:default=Table
	// +kubebuilder:validation:Enum=Table;HATSTable;DMTreeTable;ELECTSummary;EigerGraph;PequinStats;YCSB
	Format string `json:"format,omitempty"`

	// axes are the columns that tell rows apart. An experiment sweeps them like parameters, but no
	// trial runs for each of their values. A row belongs to the point whose values equal the row's
	// cells. Default: none, and the file has one row.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=4
	Axes []RowAxis `json:"axes,omitempty"`

	// numbers are the columns that hold the numbers of a row. A column with a known name, such as
	// throughput or p99_ms, needs no entry. Other columns are not read. A row must have a
	// throughput or a latency.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Numbers []RowNumber `json:"numbers,omitempty"`

	// window of each row: the part of the run that the row's numbers are about. The same part
	// decides whether the row is valid. Default: the whole run.
	// +optional
	Window *RowWindow `json:"window,omitempty"`
}

// ManyFiles reports whether path stands for several files.
func (r *ScriptResults) ManyFiles() bool { return strings.ContainsAny(r.Path, "{}*") }

// PathAxes are the axes that path has in braces.
func (r *ScriptResults) PathAxes() (names []string) {
	for _, part := range strings.Split(r.Path, "{")[1:] {
		if name, _, ok := strings.Cut(part, "}"); ok {
			names = append(names, name)
		}
	}
	return names
}

// RowWindow is the part of a run that a row is about, from one mark to another.
type RowWindow struct {
	// from is the mark that begins the window. The mark's pattern has a group for each axis of
	// rows, with the axis's name. The groups match the cells of the mark's row; each row has one
	// such mark.
	// +kubebuilder:validation:MaxLength=40
	From string `json:"from"`

	// to is the mark that ends the window: the first such mark after from. If its pattern has a
	// group with an axis's name, the group must match the row's cell. Default: the next mark of
	// from, or the end of the script.
	// +optional
	// +kubebuilder:validation:MaxLength=40
	To string `json:"to,omitempty"`
}

// RowAxis is a column that tells rows apart.
type RowAxis struct {
	// name of the axis, in lowerCamelCase.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z][a-zA-Z0-9]*$`
	Name string `json:"name"`

	// column of the axis. Default: its name. An axis that results.path has in braces has no column.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Column string `json:"column,omitempty"`
}

// ColumnOrDefault is the column of the axis.
func (a RowAxis) ColumnOrDefault() string { return cmp.Or(a.Column, a.Name) }

// RowNumber is a column with a number.
type RowNumber struct {
	// name of the number. Throughput is in operations per second, latencies have a unit.
	// +kubebuilder:validation:Enum=Throughput;MeanLatency;P10Latency;P50Latency;P90Latency;P99Latency;P999Latency;MaxLatency;Committed;Aborted;Errors;Timeouts
	Name string `json:"name"`

	// column of the number.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Column string `json:"column"`

	// unit of the column: ns, us, ms or s of a latency. For Throughput: ops/s, kops/s, Mops/s or
	// tx/min; default: ops/s.
	// +optional
	// +kubebuilder:validation:Enum=ns;us;ms;s;ops/s;kops/s;Mops/s;tx/min
	Unit string `json:"unit,omitempty"`
}

// TrialScript is the script of a trial.
type TrialScript struct {
	// rows are the points that the script's rows are results of: all combinations of the values of
	// the axes of rows with the trial's own point.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=128
	Rows []Point `json:"rows"`
}

// RowStatus is the outcome of a row of a script.
type RowStatus struct {
	// point of the row.
	Point Point `json:"point"`

	// missing says why there is no such row. Empty: the row exists.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Missing string `json:"missing,omitempty"`

	// headline numbers of the row.
	// +optional
	Headline *Headline `json:"headline,omitempty"`
}

// The names of what Assay makes of machines.
const (
	// MachineContainer is the container of a machine.
	MachineContainer = "machine"
	// MachineRecord is the file of a machine, below /assay/out, that says what ran there by SSH.
	MachineRecord = "machine.jsonl"
	// MachineKeys is the directory of the trial's keys.
	MachineKeys = "/assay/keys"
	// ScriptResultFile is where the script's results are put for Assay.
	ScriptResultFile = "/assay/out/script-results"
	// SharedClaim is the PersistentVolumeClaim of a namespace that holds the directories that
	// machines share.
	SharedClaim = "assay-shared"
	// ScriptWorkload is the workload of a System with machines that declares none.
	ScriptWorkload = "script"
	machineProgram = "/assay/bin/machine"
	sshPort        = "ssh"
)

// FormatRows is the format of a script's results, which are read when the trial is over.
const FormatRows ResultsFormat = "Rows"

// MachineConfigFile is the file from which a machine reads its configuration.
const MachineConfigFile = "/assay/run/machine.json"

// UserOrDefault is the name of the group's user.
func (g *MachineGroup) UserOrDefault() string { return cmp.Or(g.User, "author") }

// HomeOrDefault is the home directory of the group's user.
func (g *MachineGroup) HomeOrDefault() string {
	if g.Home == "" && g.UserOrDefault() == "root" {
		return "/root"
	}
	return cmp.Or(g.Home, "/home/"+g.UserOrDefault())
}

// ScriptGroup is the number of the group whose first machine runs the script, or -1.
func (s *SystemSpec) ScriptGroup() int {
	for i := range s.Machines {
		if s.Script != nil && (s.Machines[i].Name == s.Script.Group || s.Script.Group == "" && i == 0) {
			return i
		}
	}
	return -1
}

// Deployed returns the System as it is deployed. It turns machines into replicas, components, a
// client and a prepare step; a System without machines stays as it is. The machine of the script
// becomes the client. The other machines of its group become the replicas; if there are none, the
// next group does. Further groups become components.
func (s *SystemSpec) Deployed() *SystemSpec {
	on := s.ScriptGroup()
	if on < 0 || s.Replicas.Count != "" {
		return s
	}
	d := s.DeepCopy()
	if len(d.Workloads) == 0 {
		d.Workloads = []Workload{{Name: ScriptWorkload, Doc: "The script: " + strings.Join(s.Script.Command, " ")}}
	}
	script := &s.Machines[on]
	keys := []string{machineProgram, "keys", MachineKeys}
	for _, dir := range s.Shared { // to be emptied
		keys = append(keys, dir.Path)
	}
	d.Prepare = &PrepareStep{
		Container:  Container{Name: "keys", Image: script.Image, ImagePullPolicy: script.ImagePullPolicy, Command: keys, RunAsUser: script.RunAsUser},
		OutputPath: MachineKeys, Timeout: "10m",
	}
	d.Clients = ClientsTemplate{
		Containers: []Container{script.container()}, Collect: []string{MachineRecord}, Barrier: BarrierStart,
		End:     &ClientEnd{RequireExitZero: true},
		Results: &ClientResults{Format: FormatRows, Source: "File", Path: ScriptResultFile},
	}
	first := true
	for i := range s.Machines {
		g := &s.Machines[i]
		rest := g.replicas()
		if i == on {
			if strings.TrimSpace(g.Count) == "1" {
				continue
			}
			rest.Count = "(" + g.Count + ") - 1"
		}
		if first {
			d.Replicas, first = rest, false
			continue
		}
		d.Components = append(d.Components, Component{Name: g.Name, Order: OrderBeforeReplicas, ReplicasSpec: rest})
	}
	return d
}

func (g *MachineGroup) replicas() ReplicasSpec {
	return ReplicasSpec{
		Count: g.Count, Ports: []Port{{Name: sshPort, Port: 22}}, Containers: []Container{g.container()}, Collect: []string{MachineRecord},
		Start: StartParallel, Ready: []Gate{{Port: sshPort}}, ReadyTimeout: "5m",
	}
}

func (g *MachineGroup) container() Container {
	return Container{
		Name: MachineContainer, Image: g.Image, ImagePullPolicy: g.ImagePullPolicy, Command: []string{machineProgram, "serve", "--config", MachineConfigFile},
		Env: g.Env, Resources: g.Resources, RunAsUser: g.RunAsUser,
	}
}

// PlaceOfMachine says what a machine becomes in the deployed System, by its group and its number in
// it. The machine of the script becomes the client. Any other machine becomes the pod of that index
// of the component, or of the replicas if component is empty.
func (s *SystemSpec) PlaceOfMachine(group, number int) (client bool, component string, index int) {
	on, first := s.ScriptGroup(), true
	for i := range s.Machines {
		g, offset := &s.Machines[i], 0
		if i == on {
			if i == group && number == 0 {
				return true, "", 0
			}
			if strings.TrimSpace(g.Count) == "1" {
				continue
			}
			offset = 1
		}
		if i == group && first {
			return false, "", number - offset
		}
		if i == group {
			return false, g.Name, number - offset
		}
		first = false
	}
	return false, "", 0
}

// MachineOf is the reverse of PlaceOfMachine: it returns the group of machines that a pod comes
// from, and the machine's number in the group. For a client or a replica, component is empty.
func (s *SystemSpec) MachineOf(client bool, component string, index int) (group *MachineGroup, number int) {
	on := s.ScriptGroup()
	if on < 0 {
		return nil, 0
	}
	if client {
		return &s.Machines[on], 0
	}
	first := true
	for i := range s.Machines {
		g := &s.Machines[i]
		offset := 0
		if i == on {
			if strings.TrimSpace(g.Count) == "1" {
				continue
			}
			offset = 1
		}
		if first && component == "" || component == g.Name && !first {
			return g, index + offset
		}
		first = false
	}
	return nil, 0
}
