package pequin

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"assay.dev/assay/operator/api/v1alpha1"
)

// build puts the Experiment and its System together.
func (i *importer) build(protocol string) error {
	schedule, err := i.schedule()
	if err != nil {
		return err
	}
	repetitions := 1
	if v := i.value("num_experiment_runs"); v != nil {
		if repetitions, err = whole("num_experiment_runs", v, 1, 100); err != nil {
			return err
		}
	}
	benchmark, err := i.text("benchmark_name")
	if err != nil {
		return err
	}
	workload := strings.Trim(unusable.ReplaceAllString(strings.ToLower(benchmark), "-"), "-")
	if workload = strings.TrimRight(workload[:min(len(workload), maxWorkloadName)], "-"); workload == "" {
		return wrong("benchmark_name", "benchmark_name is %s; it must have a letter or digit", short(text(benchmark)))
	}
	name := i.name()
	p := i.out.placement
	e := &i.out.Experiment
	e.APIVersion, e.Kind, e.Name = v1alpha1.GroupVersion.String(), "Experiment", name
	e.Spec = v1alpha1.ExperimentSpec{
		Source:      &v1alpha1.Source{Title: "Pequin artifact, configuration " + path.Base(i.config.file), URL: "https://github.com/fsuri/Pequin-Artifact"},
		Systems:     []v1alpha1.SystemReference{{Name: name}},
		Topology:    v1alpha1.Topology{F: p.f, Shards: int32(p.shards), Regions: p.regions},
		Workload:    v1alpha1.WorkloadReference{Name: workload},
		Clients:     v1alpha1.Clients{Loop: v1alpha1.LoopClosed, Nodes: i.nodes(), Count: int32(i.points[0].clients)},
		Sweep:       []v1alpha1.Axis{i.axis()},
		Schedule:    schedule,
		Repetitions: v1alpha1.Repetitions{Min: int32(repetitions)},
	}
	e.Spec.Network.Profile = v1alpha1.NetworkLAN
	if p.wan {
		e.Spec.Network.Links = p.links
	}
	if p.wan && int(e.Spec.Clients.Nodes) < len(p.regions) {
		i.out.Decisions = append(i.out.Decisions, fmt.Sprintf("client pods are in %d of the %d regions only, since there are no more; split the sweep to spread the larger points",
			e.Spec.Clients.Nodes, len(p.regions)))
	}
	if machines := i.machines(); int(e.Spec.Clients.Nodes) < machines {
		i.out.Decisions = append(i.out.Decisions, fmt.Sprintf("the clients run in %d pods, the artifact's on up to %d machines: client pods may not be more than "+
			"the client processes of any point, which go evenly into them", e.Spec.Clients.Nodes, machines))
	}
	if err := i.assign(&e.Spec); err != nil {
		return err
	}
	i.out.System = i.system(name, protocol, workload)
	return nil
}

// schedule: the artifact's client runs for client_experiment_length, and leaves client_ramp_up at
// its start and client_ramp_down at its end out.
func (i *importer) schedule() (v1alpha1.Schedule, error) {
	n := map[string]int{}
	for _, name := range []string{"client_experiment_length", "client_ramp_up", "client_ramp_down"} {
		v := i.value(name)
		if v == nil && name != "client_experiment_length" {
			continue
		}
		var err error
		if n[name], err = whole(name, v, 0, 86_400); err != nil {
			return v1alpha1.Schedule{}, err
		}
	}
	measure := n["client_experiment_length"] - n["client_ramp_up"] - n["client_ramp_down"]
	if measure < 1 {
		return v1alpha1.Schedule{}, fmt.Errorf("client_experiment_length %d s less client_ramp_up %d s and client_ramp_down %d s leaves nothing to measure",
			n["client_experiment_length"], n["client_ramp_up"], n["client_ramp_down"])
	}
	return v1alpha1.Schedule{WarmUp: seconds(n["client_ramp_up"]), Measure: seconds(measure), CoolDown: seconds(n["client_ramp_down"]), Drain: seconds(10)}, nil
}

// axis makes the points of the sweep. A point is named after its clients; of several series, after
// the series too.
func (i *importer) axis() v1alpha1.Axis {
	a := v1alpha1.Axis{Axis: i.axisName()}
	used := map[string]bool{}
	for k, p := range i.points {
		name := strconv.Itoa(p.clients)
		if len(i.series) > 1 {
			name = fmt.Sprintf("s%d-%d", p.series+1, p.clients)
		}
		for n, first := 2, name; used[name]; n++ {
			name = fmt.Sprintf("%s-%d", first, n)
		}
		used[name] = true
		clients := int32(p.clients)
		point := v1alpha1.AxisPoint{Name: name, Clients: &clients}
		for _, parameter := range i.out.parameters {
			if parameter.varies != nil {
				if point.Parameters == nil {
					point.Parameters = map[string]v1alpha1.Value{}
				}
				point.Parameters[parameter.Name] = parameter.varies[k]
			}
		}
		a.Points = append(a.Points, point)
	}
	return a
}

// clientsAxis is the axis whose values are numbers of clients: here, in a folder of the artifact's
// results, and in experiments that sweep clients. One name is what lets a run of before be compared
// with one of now.
const clientsAxis = "clients"

// axisName is clients where points differ in their number of clients and in what makes it. Several
// series, and points that have as many clients and differ in something else, are not told apart by
// that number.
func (i *importer) axisName() string {
	if len(i.series) > 1 {
		return "series"
	}
	of := map[int]string{}
	for k, p := range i.points {
		var others []string
		for _, parameter := range i.out.parameters {
			if parameter.varies != nil && !slices.Contains(clientSettings, parameter.setting) {
				others = append(others, parameter.varies[k].String())
			}
		}
		key := fmt.Sprintf("%q", others)
		if before, seen := of[p.clients]; seen && before != key {
			return "clientSeries"
		}
		of[p.clients] = key
	}
	return clientsAxis
}

// assign gives each parameter its place: the protocol's under the system, the workload's under the
// workload, all others, and what does not fit there, under spec. What an Experiment has no room for
// is the default of the System's parameter, which comes to the same for a trial; what a System has
// no room for is left out.
func (i *importer) assign(spec *v1alpha1.ExperimentSpec) error {
	varying, ofWorkloads := 0, 0
	for k := range i.out.parameters {
		p := &i.out.parameters[k]
		if p.workload = !p.protocol && ofWorkload(p.setting) && ofWorkloads < maxWorkloadParameters; p.workload {
			ofWorkloads++
		}
		if p.varies != nil {
			varying++
		}
	}
	if varying > maxPointParameters {
		return fmt.Errorf("%d settings are not the same at all points; a point of an axis sets at most %d: import each series with --series", varying, maxPointParameters)
	}
	i.leaveOut(len(i.out.parameters) - ofWorkloads - maxSystemParameters)
	protocol, workload, all := map[string]v1alpha1.Value{}, map[string]v1alpha1.Value{}, map[string]v1alpha1.Value{}
	var defaults []string
	for k := range i.out.parameters {
		p := &i.out.parameters[k]
		switch {
		case p.varies != nil:
		case p.workload:
			workload[p.Name] = p.value
		case p.protocol && len(protocol) < maxReferenceParameters:
			protocol[p.Name] = p.value
		case len(all) < maxExperimentParameters:
			all[p.Name] = p.value
		default:
			p.Default = &p.value
			defaults = append(defaults, p.setting)
		}
	}
	if len(defaults) > 0 {
		i.out.Decisions = append(i.out.Decisions, fmt.Sprintf("%d settings are defaults of the System's parameters, since the Experiment has no room for them; an axis can set them all the same: %s",
			len(defaults), strings.Join(defaults, ", ")))
	}
	spec.Systems[0].Parameters, spec.Workload.Parameters, spec.Parameters = protocol, workload, all
	return nil
}

// leaveOut takes out so many of the System's parameters, the last first: none that points set or
// that a flag of its commands is for.
func (i *importer) leaveOut(excess int) {
	var left []string
	for k := len(i.out.parameters) - 1; k >= 0 && excess > 0; k-- {
		if p := i.out.parameters[k]; p.varies == nil && !p.workload && !hasFlag(p.setting) {
			left = append(left, p.setting)
			i.out.parameters = slices.Delete(i.out.parameters, k, k+1)
			excess--
		}
	}
	if len(left) > 0 {
		slices.Reverse(left)
		i.out.Dropped = append(i.out.Dropped, fmt.Sprintf("%d settings, since a System declares at most %d parameters besides %d of the workload: %s",
			len(left), maxSystemParameters, maxWorkloadParameters, strings.Join(left, ", ")))
	}
}

// has reports whether the setting became a parameter, and its name.
func (i *importer) has(setting string) (string, bool) {
	k := slices.IndexFunc(i.out.parameters, func(p parameter) bool { return p.setting == setting })
	if k < 0 {
		return "", false
	}
	return i.out.parameters[k].Name, true
}

// flag writes a flag whose value is a parameter; nothing if the configuration does not have the
// setting.
func (i *importer) flag(flag, setting string) string {
	name, ok := i.has(setting)
	if !ok {
		return ""
	}
	return fmt.Sprintf("--%s={{.Parameters.%s}}", flag, name)
}

// flags of the artifact's programs that are known here, by setting.
var (
	serverFlags = [][2]string{
		{"protocol", "replication_protocol"}, {"num_keys", "client_num_keys"}, {"partitioner", "partitioner"},
		{"server_load_time", "server_load_time"}, {"data_file_path", "benchmark_schema_file_path"},
	}
	clientFlags = [][2]string{
		{"protocol_mode", "client_protocol_mode"}, {"benchmark", "benchmark_name"}, {"exp_duration", "client_experiment_length"}, {"warmup_secs", "client_ramp_up"},
		{"cooldown_secs", "client_ramp_down"}, {"num_ops_txn", "rw_num_ops_txn"}, {"key_selector", "client_key_selector"}, {"zipf_coefficient", "client_zipf_coefficient"},
		{"abort_backoff", "client_abort_backoff"}, {"max_backoff", "client_max_backoff"}, {"retry_aborted", "client_retry_aborted"}, {"delay", "client_rand_sleep"},
	}
)

func hasFlag(setting string) bool {
	return slices.ContainsFunc(slices.Concat(serverFlags, clientFlags), func(f [2]string) bool { return f[1] == setting })
}

// system writes the System that declares the parameters. Its commands are a start: the flags that
// the artifact documents.
func (i *importer) system(name, protocol, workload string) v1alpha1.System {
	s := v1alpha1.System{}
	s.APIVersion, s.Kind, s.Name = v1alpha1.GroupVersion.String(), "System", name
	image := cmp.Or(i.options.Image, DefaultImage)
	s.Spec.Description = fmt.Sprintf("%s of the Pequin artifact, as its configuration %s sets it. Written by kubectl assay import; not run yet.", clipped(protocol, 100),
		path.Base(i.config.file))
	w := v1alpha1.Workload{Name: workload, Doc: "The artifact's benchmark " + nameInDoc(fmt.Sprint(i.value("benchmark_name"))) + "."}
	for _, p := range i.out.parameters {
		if p.workload {
			w.Parameters = append(w.Parameters, p.Parameter)
		} else {
			s.Spec.Parameters = append(s.Spec.Parameters, p.Parameter)
		}
	}
	s.Spec.Workloads = []v1alpha1.Workload{w}
	s.Spec.Prepare = &v1alpha1.PrepareStep{OutputPath: "/keys", Container: v1alpha1.Container{Name: "keys", Image: image, Command: []string{"sh", "-c",
		"for i in $(seq 0 {{sub (add (len .Replicas) .ClientCount) 1}}); do create_key 4 /keys/$i; done"}}}
	threads := "1"
	if name, ok := i.has("client_threads_per_process"); ok {
		threads = ".Parameters." + name
	}
	hosts := fmt.Sprintf("--num_client_hosts={{div .ClientCount %s}}", threads)
	perHost := fmt.Sprintf("--num_client_threads={{%s}}", threads)
	port := int32(7087)
	if n, err := whole("", i.value("server_port"), 1, 65_535); err == nil {
		port = int32(n)
	}
	server := []string{"server", "--config_path=/config/shard.config", "--replica_idx={{.Self.Index}}", "--group_idx={{.Self.Shard}}",
		"--num_groups={{.Shards}}", "--num_shards={{.Shards}}", hosts, perHost, "--indicus_key_path=/keys", "--indicus_key_type=4", "--stats_file=/assay/out/stats.json"}
	for _, f := range serverFlags {
		server = append(server, i.settingFlag(f))
	}
	client := []string{"--config_path=/config/shard.config", "--num_groups={{.Shards}}", "--num_shards={{.Shards}}", hosts, perHost,
		"--indicus_key_path=/keys"}
	for _, f := range clientFlags {
		client = append(client, i.settingFlag(f))
	}
	files := []v1alpha1.FileSet{{MountPath: "/config", Files: []v1alpha1.File{{Name: "shard.config",
		Template: "f {{.F}}\n{{range .ShardList}}group\n{{range .}}replica {{.Host}}:{{.Ports.peer}}\n{{end}}{{end}}"}}}}
	s.Spec.Replicas = v1alpha1.ReplicasSpec{
		Count: i.out.placement.count, Ports: []v1alpha1.Port{{Name: "peer", Port: port}}, Files: files,
		Containers: []v1alpha1.Container{{Name: "server", Image: image, Command: slices.DeleteFunc(server, empty)}},
	}
	if name, ok := i.has("server_load_time"); ok {
		s.Spec.Steps = []v1alpha1.Step{{Name: "load", RunsOn: v1alpha1.StepFirstReplica, Command: []string{"sleep", "{{.Parameters." + name + "}}"}, Timeout: "1h"}}
	}
	s.Spec.Clients = v1alpha1.ClientsTemplate{
		// A line of output is shorter than a pipe's atomic write: with buffers of lines, those of
		// several processes do not mix.
		Containers: []v1alpha1.Container{{Name: "client", Image: image, Command: append([]string{"sh", "-c", fmt.Sprintf(
			`for i in $(seq {{div .Self.First %[1]s}} {{sub (div (add .Self.First .Self.Count) %[1]s) 1}}); do `+
				`stdbuf -oL benchmark --client_id=$i --stats_file=/assay/out/stats-$i.json "$@" & done; wait`, threads), "client"},
			slices.DeleteFunc(client, empty)...)}},
		Files:   files,
		End:     &v1alpha1.ClientEnd{AfterDrain: true, Stop: &v1alpha1.StopSpec{Signal: "SIGKILL"}},
		Results: &v1alpha1.ClientResults{Format: v1alpha1.FormatTransactionLines, Source: "Stdout"},
	}
	return s
}

func empty(s string) bool { return s == "" }

// settingFlag is a flag of a setting, whether it is a parameter or a constant of the Experiment.
func (i *importer) settingFlag(f [2]string) string {
	if flag := i.flag(f[0], f[1]); flag != "" {
		return flag
	}
	if s, ok := i.value(f[1]).(string); ok && mapped[f[1]] != "" {
		return "--" + f[0] + "=" + s
	}
	return ""
}
