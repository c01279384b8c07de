package plan_test

import (
	"testing"

	"text/template"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/testkit/builders"
)

func parse(name, text string) error {
	_, err := template.New(name).Parse(text)
	return err
}

func TestValidateSystemAccepts(t *testing.T) {
	full := builders.System("full").Set(func(s *v1alpha1.SystemSpec) {
		s.Prepare = &v1alpha1.PrepareStep{Container: s.Replicas.Containers[0], OutputPath: "/keys", Timeout: "1h"}
		s.Replicas.Files = []v1alpha1.FileSet{{MountPath: "/etc/echo", Files: []v1alpha1.File{{Name: "a", Template: "{{.Self}}"}}}}
		s.Replicas.Volumes = []v1alpha1.Volume{
			{Name: "data", MountPath: "/data", Medium: v1alpha1.VolumeMemory}, {Name: "pages", MountPath: "/pages", Medium: v1alpha1.VolumeHugePages},
			{Name: "disk", MountPath: "/disk", Medium: v1alpha1.VolumePersistentVolumeClaim, StorageClass: "local"},
		}
		s.Replicas.Containers[0].Resources.Limits = corev1.ResourceList{"hugepages-2Mi": resource.MustParse("4Mi")}
		s.Replicas.Ready = append(s.Replicas.Ready, v1alpha1.Gate{Port: "peer"}, v1alpha1.Gate{HTTP: &v1alpha1.HTTPGate{Port: "peer"}})
		s.Roles = []v1alpha1.Role{{Name: "leader", Log: &v1alpha1.RoleLog{Gained: "leads", Lost: "follows", Container: "replica"}}}
		s.Steps = []v1alpha1.Step{{Name: "load", Command: []string{"load"}, Timeout: "24h"}}
	})
	lines := builders.System("lines").Set(func(s *v1alpha1.SystemSpec) {
		s.Clients.Results = withRecords(v1alpha1.FormatRegularExpression, func(*v1alpha1.ClientRecords) {})
	})
	columns := builders.System("columns").Set(func(s *v1alpha1.SystemSpec) {
		s.Clients.Results = withRecords(v1alpha1.FormatCSV, func(r *v1alpha1.ClientRecords) { r.Pattern, r.Separator = "", ";" })
	})
	for _, b := range []*builders.SystemBuilder{builders.System("basil"), full, lines, columns} {
		if errs := plan.ValidateSystem(&b.Obj().Spec, parse); len(errs) > 0 {
			t.Errorf("%s: %v", b.Obj().Name, errs.ToAggregate())
		}
	}
}

// withRecords returns a report with a line for each operation.
func withRecords(format v1alpha1.ResultsFormat, change func(*v1alpha1.ClientRecords)) *v1alpha1.ClientResults {
	records := &v1alpha1.ClientRecords{
		Pattern: "^(?P<end>[0-9]+) (?P<took>[0-9]+)$", Latency: v1alpha1.RecordLatency{From: "took", Unit: "us"}, Instant: v1alpha1.RecordInstant{From: "end", Unit: "ms"},
	}
	change(records)
	return &v1alpha1.ClientResults{Format: format, Source: "Stdout", Records: records}
}

func TestValidateSystemErrors(t *testing.T) {
	first := func(change func(*v1alpha1.Parameter)) func(*v1alpha1.SystemSpec) {
		return func(s *v1alpha1.SystemSpec) { change(&s.Parameters[2]) } // batch, an Integer from 1 to 64
	}
	tests := map[string]struct {
		change func(*v1alpha1.SystemSpec)
		want   []string
	}{
		"parameter named like an axis":     {first(func(p *v1alpha1.Parameter) { p.Name = "clients" }), []string{"spec.parameters[2].name", `"clients"`, "axis of every sweep"}},
		"parameter called system":          {first(func(p *v1alpha1.Parameter) { p.Name = "system" }), []string{"spec.parameters[2].name", `"system"`, "call the parameter otherwise"}},
		"parameter of system and workload": {func(s *v1alpha1.SystemSpec) { s.Workloads[0].Parameters[0].Name = "batch" }, []string{"spec.workloads[0].parameters[0].name", `"batch"`, "a parameter of the system"}},
		"default out of bounds":            {first(func(p *v1alpha1.Parameter) { *p.Default = builders.Value(65) }), []string{"spec.parameters[2].default", `"65"`, "at most 64"}},
		"default of a wrong type":          {first(func(p *v1alpha1.Parameter) { *p.Default = builders.Value("x") }), []string{"spec.parameters[2].default", `"x"`, "integer such as 10"}},
		"allowed of a wrong type":          {first(func(p *v1alpha1.Parameter) { p.Allowed = builders.Values(1, "x") }), []string{"spec.parameters[2].allowed[1]", `"x"`, "integer"}},
		"bound of a wrong type":            {first(func(p *v1alpha1.Parameter) { *p.Minimum = builders.Value("1s") }), []string{"spec.parameters[2].minimum", `"1s"`, "integer"}},
		"bounds the wrong way":             {first(func(p *v1alpha1.Parameter) { *p.Minimum = builders.Value(65) }), []string{"spec.parameters[2].minimum", `"65"`, "at most maximum, 64"}},
		"bound of a string":                {first(func(p *v1alpha1.Parameter) { p.Type = v1alpha1.ParameterString }), []string{"spec.parameters[2].minimum", `"1"`, "a String has no minimum"}},
		"count":                            {func(s *v1alpha1.SystemSpec) { s.Replicas.Count = "5f+1" }, []string{"spec.replicas.count", `"5f+1"`, "such as 3*f+1"}},
		"misbehaving clients that are no condition": {func(s *v1alpha1.SystemSpec) {
			s.Clients.Driver, s.Clients.Misbehaving = nil, "client + 1"
			s.Clients.Results = &v1alpha1.ClientResults{Format: v1alpha1.FormatTransactionLines, Source: "Stdout"}
		}, []string{"spec.clients.misbehaving", `"client + 1"`, "gives a int"}},
		"misbehaving clients of a driver": {func(s *v1alpha1.SystemSpec) {
			s.Clients.Driver, s.Clients.Misbehaving = &v1alpha1.DriverSpec{}, "client < 1"
		}, []string{"spec.clients.misbehaving", "a fault makes clients misbehave (clientBehavior)"}},
		"two ports of one number": {func(s *v1alpha1.SystemSpec) {
			s.Replicas.Ports = append(s.Replicas.Ports, v1alpha1.Port{Name: "x", Port: 7000})
		}, []string{"spec.replicas.ports[1].port", ": 7000:", `port "peer"`}},
		"gate on an undeclared port": {func(s *v1alpha1.SystemSpec) { s.Replicas.Ready = []v1alpha1.Gate{{Port: "per"}} }, []string{"spec.replicas.ready[0].port", `"per"`, `did you mean "peer"?`}},
		"HTTP gate on an undeclared port": {func(s *v1alpha1.SystemSpec) {
			s.Replicas.Ready = []v1alpha1.Gate{{HTTP: &v1alpha1.HTTPGate{Port: "web"}}}
		}, []string{"spec.replicas.ready[0].http.port", `"web"`, "there are: peer"}},
		"role on an undeclared port": {func(s *v1alpha1.SystemSpec) { s.Roles = []v1alpha1.Role{{HTTP: &v1alpha1.HTTPGate{Port: "web"}}} }, []string{"spec.roles[0].http.port", `"web"`, "there are: peer"}},
		"log pattern":                {func(s *v1alpha1.SystemSpec) { s.Replicas.Ready[0].Log.Pattern = "(?=x)" }, []string{"spec.replicas.ready[0].log.pattern", `"(?=x)"`, "RE2"}},
		"log of a missing container": {func(s *v1alpha1.SystemSpec) { s.Replicas.Ready[0].Log.Container = "x" }, []string{"spec.replicas.ready[0].log.container", `"x"`, "there are: replica"}},
		"end of a client by a bad pattern": {func(s *v1alpha1.SystemSpec) {
			s.Clients.End = &v1alpha1.ClientEnd{Log: &v1alpha1.LogGate{Pattern: "["}}
		}, []string{"spec.clients.end.log.pattern", `"["`, "RE2"}},
		"readyTimeout":               {func(s *v1alpha1.SystemSpec) { s.Replicas.ReadyTimeout = "3h" }, []string{"spec.replicas.readyTimeout", `"3h"`, "from 1s to 2h"}},
		"stop's grace":               {func(s *v1alpha1.SystemSpec) { s.Replicas.Stop = &v1alpha1.StopSpec{Grace: "-1s"} }, []string{"spec.replicas.stop.grace", `"-1s"`, "from 0s to 10m"}},
		"check's timeout":            {func(s *v1alpha1.SystemSpec) { s.Checks = []v1alpha1.SafetyCheck{{Timeout: "2h"}} }, []string{"spec.checks[0].timeout", `"2h"`, "to 1h"}},
		"template of a check":        {func(s *v1alpha1.SystemSpec) { s.Checks = []v1alpha1.SafetyCheck{{Command: []string{"{{"}}} }, []string{"spec.checks[0].command[0]", `"{{"`, "Go template"}},
		"step's timeout":             {func(s *v1alpha1.SystemSpec) { s.Steps = []v1alpha1.Step{{Timeout: "25h"}} }, []string{"spec.steps[0].timeout", `"25h"`, "to 24h"}},
		"prepare's timeout":          {func(s *v1alpha1.SystemSpec) { s.Prepare = &v1alpha1.PrepareStep{OutputPath: "/k", Timeout: "2h"} }, []string{"spec.prepare.timeout", `"2h"`, "to 1h"}},
		"files in Assay's directory": {func(s *v1alpha1.SystemSpec) { s.Replicas.Files = []v1alpha1.FileSet{{MountPath: "/assay/x"}} }, []string{"spec.replicas.files[0].mountPath", `"/assay/x"`, "such as /data"}},
		"files in the root":          {func(s *v1alpha1.SystemSpec) { s.Clients.Files = []v1alpha1.FileSet{{MountPath: "/x/.."}} }, []string{"spec.clients.files[0].mountPath", `"/x/.."`, "must not be /"}},
		"volume over files": {func(s *v1alpha1.SystemSpec) {
			s.Replicas.Files = []v1alpha1.FileSet{{MountPath: "/data"}}
			s.Replicas.Volumes = []v1alpha1.Volume{{MountPath: "/data/"}}
		}, []string{"spec.replicas.volumes[0].mountPath", `"/data/"`, "spec.replicas.files[0].mountPath is the same directory"}},
		"files over the prepare step's output": {func(s *v1alpha1.SystemSpec) {
			s.Prepare = &v1alpha1.PrepareStep{OutputPath: "/keys/", Timeout: "1m"}
			s.Clients.Files = []v1alpha1.FileSet{{MountPath: "/keys"}}
		}, []string{"spec.clients.files[0].mountPath", `"/keys"`, "spec.prepare.outputPath is the same directory"}},
		"huge pages of no size": {func(s *v1alpha1.SystemSpec) {
			s.Replicas.Volumes = []v1alpha1.Volume{{Name: "pages", MountPath: "/pages", Medium: v1alpha1.VolumeHugePages}}
		}, []string{"spec.replicas.volumes[0].medium", `"HugePages"`, "name 0 sizes", "such as resources.limits.hugepages-2Mi"}},
		"huge pages of two sizes": {func(s *v1alpha1.SystemSpec) {
			s.Replicas.Volumes = []v1alpha1.Volume{{Name: "pages", MountPath: "/pages", Medium: v1alpha1.VolumeHugePages}}
			s.Replicas.Containers[0].Resources.Limits = corev1.ResourceList{"hugepages-2Mi": resource.MustParse("4Mi"), "hugepages-1Gi": resource.MustParse("1Gi")}
		}, []string{"spec.replicas.volumes[0].medium", "name 2 sizes"}},
		"storage class of memory": {func(s *v1alpha1.SystemSpec) {
			s.Replicas.Volumes = []v1alpha1.Volume{{Name: "data", MountPath: "/data", Medium: v1alpha1.VolumeMemory, StorageClass: "local"}}
		}, []string{"spec.replicas.volumes[0].storageClass", `"local"`, "PersistentVolumeClaim only"}},
		"capability without root": {func(s *v1alpha1.SystemSpec) {
			s.Replicas.Containers[0].Capabilities = []string{"IPC_LOCK"}
		}, []string{"spec.replicas.containers[0].capabilities", `"IPC_LOCK"`, "set runAsUser: 0"}},
		"capability of a recipe": {dataset(func(d *v1alpha1.DatasetSource) {
			d.Container.RunAsUser, d.Container.Capabilities = new(int64), []string{"IPC_LOCK"}
		}), []string{"spec.datasets[0].container.capabilities", "Forbidden", "a recipe can have no capability"}},
		"step of an unknown component": {func(s *v1alpha1.SystemSpec) {
			withProxies(s)
			s.Steps = []v1alpha1.Step{{RunsOn: v1alpha1.StepEveryReplica, Component: "prxy"}}
		}, []string{"spec.steps[0].component", `"prxy"`, `did you mean "proxy"?`}},
		"role of an unknown component": {func(s *v1alpha1.SystemSpec) {
			withProxies(s)
			s.Roles = []v1alpha1.Role{{Name: "active", Component: "prxy", Command: []string{"/active"}}}
		}, []string{"spec.roles[0].component", `"prxy"`, `did you mean "proxy"?`}},
		"role of a component on an undeclared port": {func(s *v1alpha1.SystemSpec) {
			withProxies(s)
			s.Components[0].Ports = []v1alpha1.Port{{Name: "front", Port: 80}}
			s.Roles = []v1alpha1.Role{{Name: "active", Component: "proxy", HTTP: &v1alpha1.HTTPGate{Port: "peer"}}}
		}, []string{"spec.roles[0].http.port", `"peer"`, "spec.components[proxy].ports declares no port", "there are: front"}},
		"data set of an unknown component": {dataset(func(d *v1alpha1.DatasetSource) { d.Components = []string{"prxy"} }), []string{"spec.datasets[0].components", `"prxy"`, "has none called"}},
		"data set of no component":         {dataset(func(d *v1alpha1.DatasetSource) { d.UsedBy = v1alpha1.DatasetForComponents }), []string{"spec.datasets[0].components", "Required", "name the components"}},
		"data set in a component's volume": {func(s *v1alpha1.SystemSpec) {
			withProxies(s)
			dataset(func(d *v1alpha1.DatasetSource) {
				d.UsedBy, d.Components, d.MountPath = v1alpha1.DatasetForComponents, []string{"proxy"}, "/cold/rows"
			})(s)
			s.Components[0].Volumes = []v1alpha1.Volume{{Name: "cold", MountPath: "/cold"}}
		}, []string{"spec.datasets[0].mountPath", `"/cold/rows"`, "spec.components[0].volumes"}},
		"check of clients and a component": {func(s *v1alpha1.SystemSpec) {
			withProxies(s)
			s.Checks = []v1alpha1.SafetyCheck{{RunsOn: v1alpha1.StepEveryClient, Component: "proxy"}}
		}, []string{"spec.checks[0].runsOn", `"EveryClient"`, "it is EveryReplica (every pod of it) or FirstReplica (its pod 0)"}},
		"client without results": {func(s *v1alpha1.SystemSpec) { s.Clients.Driver = nil }, []string{"spec.clients.results", "Required", "or set driver"}},
		"records' pattern": {func(s *v1alpha1.SystemSpec) {
			s.Clients.Results = withRecords(v1alpha1.FormatRegularExpression, func(r *v1alpha1.ClientRecords) { r.Pattern = "(?=x)" })
		}, []string{"spec.clients.results.records.pattern", `"(?=x)"`, "RE2"}},
		"records' group": {func(s *v1alpha1.SystemSpec) {
			s.Clients.Results = withRecords(v1alpha1.FormatRegularExpression, func(r *v1alpha1.ClientRecords) { r.Pattern = "(?P<took>.)" })
		}, []string{"spec.clients.results.records.pattern", "has no group (?P<end>...)"}},
		"records without a pattern": {func(s *v1alpha1.SystemSpec) {
			s.Clients.Results = withRecords(v1alpha1.FormatRegularExpression, func(r *v1alpha1.ClientRecords) { r.Pattern = "" })
		}, []string{"spec.clients.results.records.pattern", "Required"}},
		"records' separator of no CSV": {func(s *v1alpha1.SystemSpec) {
			s.Clients.Results = withRecords(v1alpha1.FormatRegularExpression, func(r *v1alpha1.ClientRecords) { r.Separator = ";" })
		}, []string{"spec.clients.results.records.separator", `";"`, "CSV"}},
		"pattern of a CSV": {func(s *v1alpha1.SystemSpec) {
			s.Clients.Results = withRecords(v1alpha1.FormatCSV, func(*v1alpha1.ClientRecords) {})
		}, []string{"spec.clients.results.records.pattern", "whose columns have names"}},
		"outcome of two meanings": {func(s *v1alpha1.SystemSpec) {
			s.Clients.Results = withRecords(v1alpha1.FormatCSV, func(r *v1alpha1.ClientRecords) {
				r.Pattern, r.Outcome = "", &v1alpha1.RecordOutcome{From: "status", Committed: []string{"OK"}, Errors: []string{"OK"}}
			})
		}, []string{"spec.clients.results.records", "two meanings"}},
		"template of the command": {func(s *v1alpha1.SystemSpec) { s.Replicas.Containers[0].Command[0] = "{{.F" }, []string{"spec.replicas.containers[0].command[0]", `"{{.F"`, "must be a Go template"}},
		"template of the image":   {func(s *v1alpha1.SystemSpec) { s.Clients.Containers[0].Image = "{{end}}" }, []string{"spec.clients.containers[0].image", `"{{end}}"`, "must be a Go template"}},
		"template of a variable": {func(s *v1alpha1.SystemSpec) {
			s.Replicas.Containers[0].Env = []v1alpha1.EnvVar{{Name: "A", Value: "{{nope 1}}"}}
		}, []string{"spec.replicas.containers[0].env[0].value", `"{{nope 1}}"`, `"nope" not defined`}},
		"template of a file": {func(s *v1alpha1.SystemSpec) {
			s.Clients.Files = []v1alpha1.FileSet{{MountPath: "/c", Files: []v1alpha1.File{{Name: "a", Template: "{{"}}}}
		}, []string{"spec.clients.files[0].files[0].template", `"{{"`, "Go template"}},
		"template of a step": {func(s *v1alpha1.SystemSpec) { s.Steps = []v1alpha1.Step{{Command: []string{"{{"}}} }, []string{"spec.steps[0].command[0]", `"{{"`, "Go template"}},
		"template of a gate": {func(s *v1alpha1.SystemSpec) { s.Replicas.Ready = []v1alpha1.Gate{{Command: []string{"{{"}}} }, []string{"spec.replicas.ready[0].command[0]", `"{{"`, "Go template"}},
		"pattern of a role": {func(s *v1alpha1.SystemSpec) {
			s.Roles = []v1alpha1.Role{{Log: &v1alpha1.RoleLog{Gained: "[", Lost: "x"}}}
		}, []string{"spec.roles[0].log.gained", `"["`, "RE2"}},
		"template of a role":                  {func(s *v1alpha1.SystemSpec) { s.Roles = []v1alpha1.Role{{Command: []string{"{{"}}} }, []string{"spec.roles[0].command[0]", `"{{"`, "Go template"}},
		"data set's size":                     {dataset(func(d *v1alpha1.DatasetSource) { d.Size = resource.MustParse("1Ki") }), []string{"spec.datasets[0].size", `"1Ki"`, "from 1Mi to 16Ti"}},
		"data set's timeout":                  {dataset(func(d *v1alpha1.DatasetSource) { d.Timeout = "73h" }), []string{"spec.datasets[0].timeout", `"73h"`, "to 72h"}},
		"data set's part of a template":       {dataset(func(d *v1alpha1.DatasetSource) { d.SubPath = "node-{{" }), []string{"spec.datasets[0].subPath", `"node-{{"`, "Go template"}},
		"data set's part by an absolute path": {dataset(func(d *v1alpha1.DatasetSource) { d.SubPath = "/made/node-0" }), []string{"spec.datasets[0].subPath", `"/made/node-0"`, "must be relative to outputPath"}},
		"data set's part out of the set":      {dataset(func(d *v1alpha1.DatasetSource) { d.SubPath = "a/../../b" }), []string{"spec.datasets[0].subPath", `"a/../../b"`, `must not contain ".."`}},
		"data set's part that is all":         {dataset(func(d *v1alpha1.DatasetSource) { d.SubPath = "./" }), []string{"spec.datasets[0].subPath", `"./"`, "is the whole data set"}},
		"data set's recipe":                   {dataset(func(d *v1alpha1.DatasetSource) { d.Container.Command = []string{"{{"} }), []string{"spec.datasets[0].container.command[0]", `"{{"`, "Go template"}},
		"recipe in Assay's directory":         {dataset(func(d *v1alpha1.DatasetSource) { d.OutputPath = "/assay/made" }), []string{"spec.datasets[0].outputPath", `"/assay/made"`, "such as /data"}},
		"data set in the root":                {dataset(func(d *v1alpha1.DatasetSource) { d.MountPath = "/.." }), []string{"spec.datasets[0].mountPath", `"/.."`, "must not be /"}},
		"data set over a volume": {func(s *v1alpha1.SystemSpec) {
			dataset(func(*v1alpha1.DatasetSource) {})(s)
			s.Replicas.Volumes = []v1alpha1.Volume{{MountPath: "/rows/"}}
		}, []string{"spec.datasets[0].mountPath", `"/rows"`, "spec.replicas.volumes is the same directory"}},
		"data set in a volume": {func(s *v1alpha1.SystemSpec) {
			dataset(func(d *v1alpha1.DatasetSource) { d.MountPath = "/data/rows" })(s)
			s.Replicas.Volumes = []v1alpha1.Volume{{MountPath: "/data"}}
		}, []string{"spec.datasets[0].mountPath", `"/data/rows"`, "lies in spec.replicas.volumes"}},
		"data set over the prepare step's output": {func(s *v1alpha1.SystemSpec) {
			dataset(func(d *v1alpha1.DatasetSource) { d.MountPath = "/keys/rows" })(s)
			s.Prepare = &v1alpha1.PrepareStep{OutputPath: "/keys/"}
		}, []string{"spec.datasets[0].mountPath", `"/keys/rows"`, "lies in spec.prepare.outputPath"}},
		"client's data set over its files": {func(s *v1alpha1.SystemSpec) {
			dataset(func(d *v1alpha1.DatasetSource) { d.UsedBy = v1alpha1.DatasetForAll })(s)
			s.Clients.Files = []v1alpha1.FileSet{{MountPath: "/rows"}}
		}, []string{"spec.datasets[0].mountPath", `"/rows"`, "spec.clients.files is the same directory"}},
		"template of the prepare step": {func(s *v1alpha1.SystemSpec) {
			s.Prepare = &v1alpha1.PrepareStep{OutputPath: "/k", Container: v1alpha1.Container{Image: "{{"}}
		}, []string{"spec.prepare.container.image", `"{{"`, "Go template"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			errs := plan.ValidateSystem(&builders.System("s").Set(tc.change).Obj().Spec, parse)
			if !anyContainsAll(errs, tc.want) {
				t.Errorf("no error has all of %q:\n%v", tc.want, errs.ToAggregate())
			}
		})
	}
}

// dataset adds a changed data set to a System.
func dataset(change func(*v1alpha1.DatasetSource)) func(*v1alpha1.SystemSpec) {
	return func(s *v1alpha1.SystemSpec) {
		d := v1alpha1.DatasetSource{
			Name: "rows", OutputPath: "/made", MountPath: "/rows", Size: resource.MustParse("1Gi"),
			Container: v1alpha1.Container{Name: "load", Image: "load:1", Command: []string{"/load"}},
		}
		change(&d)
		s.Datasets = []v1alpha1.DatasetSource{d}
	}
}
