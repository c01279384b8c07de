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

// build makes the Experiment and its System.
func (i *importer) build(protocol, benchmark string) error {
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

// schedule makes the schedule. The artifact's client runs for client_experiment_length. It does not
// count client_ramp_up at the start and client_ramp_down at the end.
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

// axis makes the points of the sweep. The name of a point is its number of clients. If there are
// several series, the name also has the series.
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

// clientsAxis is the axis whose values are numbers of clients. Imported configurations, folders of
// the artifact's results and other experiments use the same name, so that their runs can be
// compared.
const clientsAxis = "clients"

// axisName is clients if the number of clients tells all points apart. It is another name for
// several series, and if two points have equally many clients and differ in another setting.
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

// assign gives each parameter its place: that of the protocol in the system, that of the workload
// in the workload, and all others in spec. If a place is full, parameters go to spec. If spec is
// full, they become defaults of the System's parameters, so that a trial gets the same values.
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
		return fmt.Errorf("%d settings differ between points, but a point of an axis sets at most %d: import each series with --series", varying, maxPointParameters)
	}
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

// system makes the System, which declares the parameters and passes each to the programs.
func (i *importer) system(name, protocol, workload string) v1alpha1.System {
	s := v1alpha1.System{}
	s.APIVersion, s.Kind, s.Name = v1alpha1.GroupVersion.String(), "System", name
	image := cmp.Or(i.options.Image, DefaultImage)
	s.Spec.Description = fmt.Sprintf("%s of the Pequin artifact, as its configuration %s sets it. Written by kubectl assay import.", clipped(protocol, 100), path.Base(i.config.file))
	w := v1alpha1.Workload{Name: workload, Doc: "The artifact's benchmark " + nameInDoc(fmt.Sprint(i.value("benchmark_name"))) + "."}
	for _, p := range i.out.parameters {
		if p.workload {
			w.Parameters = append(w.Parameters, p.Parameter)
		} else {
			s.Spec.Parameters = append(s.Spec.Parameters, p.Parameter)
		}
	}
	s.Spec.Workloads = []v1alpha1.Workload{w}
	threads, keyType := "1", "4"
	if name, ok := i.parameter("client_threads_per_process", false); ok {
		threads = ".Parameters." + name
	}
	if name, ok := i.parameter(signatureType, true); ok {
		keyType = "{{.Parameters." + name + "}}"
	}
	s.Spec.Prepare = &v1alpha1.PrepareStep{OutputPath: "/keys", Container: v1alpha1.Container{Name: "keys", Image: image, Command: []string{"/bin/sh", "-c",
		fmt.Sprintf("i=0; while [ $i -lt {{add (len .Replicas) .ClientCount}} ]; do create_key %s /keys/$i || exit 1; i=$((i+1)); done", keyType)}}}
	common := []string{"--config_path=/config/shard.config", "--num_groups={{.Shards}}", fmt.Sprintf("--num_client_hosts={{div .ClientCount %s}}", threads),
		fmt.Sprintf("--num_client_threads={{%s}}", threads), "--indicus_key_path=/keys", "--indicus_key_type=" + keyType}
	if !i.programs.takes("num_shards", false) || i.value("num_shards") == nil {
		common = append(common, "--num_shards={{.Shards}}")
	}
	common = append(common, i.storage()...)
	server := slices.Concat([]string{"server", "--replica_idx={{.Self.Index}}", "--group_idx={{.Self.Shard}}", "--stats_file=/assay/out/stats.json"}, common)
	if name := i.value("benchmark_name"); name == "rw" || name == "retwis" {
		server = append(server, fmt.Sprintf("--rw_or_retwis=%t", name == "rw"))
	}
	server = append(server, i.arguments(i.programs.protocol.server, i.programs.top.server)...)
	files := []v1alpha1.FileSet{{MountPath: "/config", Files: []v1alpha1.File{{Name: "shard.config",
		Template: "{{range .ShardList}}f {{$.F}}\ngroup\n{{range .}}replica {{.Host}}:{{.Ports.peer}}\n{{end}}{{end}}"}}}}
	port := int32(7087)
	if n, err := whole("", i.value("server_port"), 1, 65_535); err == nil {
		port = int32(n)
	}
	s.Spec.Replicas = v1alpha1.ReplicasSpec{
		Count: i.out.placement.count, Ports: []v1alpha1.Port{{Name: "peer", Port: port}}, Files: files,
		Containers: []v1alpha1.Container{{Name: "server", Image: image, Command: server, Env: environment}},
		Ready:      i.ready(), ReadyTimeout: "10m",
	}
	if name, ok := i.parameter("server_load_time", false); ok {
		s.Spec.Steps = []v1alpha1.Step{{Name: "load", RunsOn: v1alpha1.StepFirstReplica, Command: []string{"/bin/sleep", "{{.Parameters." + name + "}}"}, Timeout: "1h"}}
	}
	s.Spec.Clients = v1alpha1.ClientsTemplate{
		Containers: []v1alpha1.Container{{Name: "client", Image: image, Env: environment, Command: append([]string{"/bin/sh", "-c", i.clientScript(threads), "client"},
			slices.Concat(common, i.arguments(i.programs.protocol.client, i.programs.top.client))...)}},
		Files:       files,
		Misbehaving: i.misbehaving(),
		End:         &v1alpha1.ClientEnd{AfterDrain: true, Stop: &v1alpha1.StopSpec{Signal: "SIGKILL"}},
		Results:     &v1alpha1.ClientResults{Format: v1alpha1.FormatTransactionLines, Source: "Stdout"},
	}
	return s
}

// misbehaving says which clients the client program makes faulty. It goes through the processes
// first, then through their threads (src/store/benchmark/async/benchmark.cc, line 1443). It does so
// for two protocols only. Such a client prints no transaction.
func (i *importer) misbehaving() string {
	const share = "inject_failure_proportion"
	name, ok := i.parameter(share, true)
	if protocol := i.value("replication_protocol"); !ok || protocol != "indicus" && protocol != "pequin" || !i.integer(name) {
		return ""
	}
	faulty := "clients * parameters." + name + " / 100"
	threads, ok := i.parameter("client_threads_per_process", false)
	if !ok {
		return "client < " + faulty
	}
	threads = "parameters." + threads
	return fmt.Sprintf("client %% %[1]s * (clients / %[1]s) + client / %[1]s < %[2]s", threads, faulty)
}

// integer reports whether a parameter is of type Integer.
func (i *importer) integer(name string) bool {
	return slices.ContainsFunc(i.out.parameters, func(p parameter) bool { return p.Name == name && p.Type == v1alpha1.ParameterInteger })
}

// environment preloads the artifact's allocator, and the library for machines with few processors
// that systems/pequin describes. It also makes the programs write whole lines, so that lines of
// several processes do not mix.
var environment = []v1alpha1.EnvVar{{Name: "LD_PRELOAD", Value: "/usr/lib/pequin/processors.so /usr/lib/pequin/libjemalloc.so.2"}}

// clientScript starts the client processes of a pod. Each gets its number.
func (i *importer) clientScript(threads string) string {
	own := ""
	if i.out.placement.wan {
		own = " --ping_replicas=true"
	}
	if name, ok := i.parameter("tpcc_num_warehouses", false); ok && i.programs.takes("tpcc_num_warehouses", false) {
		own += fmt.Sprintf(" --tpcc_w_id=$((i %% {{.Parameters.%s}} + 1))", name)
	}
	// The client measures from 1 s after its start until it ends: Assay cuts the window out.
	return fmt.Sprintf(`i={{div .Self.First %[1]s}}; end={{div (add .Self.First .Self.Count) %[1]s}}; while [ $i -lt $end ]; do `+
		`benchmark --client_id=$i --stats_file=/assay/out/stats-$i.json --exp_duration={{printf "%%.0f" .Schedule.LoadSeconds}} --warmup_secs=1 --cooldown_secs=0%[2]s "$@" & `+
		`i=$((i+1)); done; wait`, threads, own)
}

// storage returns the flags that choose between tables and a store of keys.
func (i *importer) storage() []string {
	out := []string{fmt.Sprintf("--sql_bench=%t", i.programs.sql), fmt.Sprintf("--store_mode=%t", i.programs.sql)}
	if i.programs.sql && i.value("benchmark_name") == rwSQL {
		out = append(out, "--data_file_path=/assay/out/rw-sql.json") // the server writes this file
	}
	return out
}

// ready returns the gate that waits until a server has loaded its data, if the server prints that.
func (i *importer) ready() []v1alpha1.Gate {
	switch i.value("benchmark_name") {
	case "rw", "retwis", rwSQL:
		return []v1alpha1.Gate{{Log: &v1alpha1.LogGate{Pattern: `Created and Stored \d+ out of \d+ key-value pairs|Benchmark: SQL with Loaded Table Registry`}}}
	}
	return nil
}
