package pequin

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/testkit/testpequin"
)

// minimal is a configuration with two series that differ in a setting of the protocol, and whose
// lists of clients differ in length. The artifact has such configurations.
const minimal = `{
  "experiment_independent_vars": [["replication_protocol", "server_names", "server_regions", "replication_protocol_settings", "client_total", "client_threads_per_process"],
    ["client_total", "client_threads_per_process"]],
  "replication_protocol": ["tapir", "tapir"],
  "benchmark_name": "rw",
  "fault_tolerance": 1,
  "server_names": [["us-east-1-0", "eu-west-1-0", "us-east-1-1"], ["us-east-1-0", "eu-west-1-0", "us-east-1-1"]],
  "server_regions": [{"us-east-1": ["us-east-1-0", "us-east-1-1"]}, {"us-east-1": ["us-east-1-0", "us-east-1-1"]}],
  "replication_protocol_settings": [{"sync_commit": 1, "strictly_serializable": "x"}, {"sync_commit": 1.5, "strictly_serializable": "x"}],
  "client_total": [[1, 2], [3]],
  "client_threads_per_process": [[1, 4], [2]],
  "client_processes_per_client_node": 8,
  "client_experiment_length": 30,
  "client_ramp_up": 5,
  "_client_ramp_up": 7,
  "_client_ramp_up": 8,
  "partitioner": [1, {"b": null}],
  "client_max_attempts": null,
  "client_ramp_up": 10
}`

func importText(t *testing.T, in string, o Options) *Imported {
	t.Helper()
	i, err := Import("folder/mine.json", []byte(in), o)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func TestSeries(t *testing.T) {
	i := importText(t, minimal, Options{})
	v := v1alpha1.NewValue
	point := func(name string, clients int32, threads, quorum string) v1alpha1.AxisPoint {
		return v1alpha1.AxisPoint{Name: name, Clients: &clients, Parameters: map[string]v1alpha1.Value{
			"clientThreadsPerProcess": v(threads), "syncCommit": v(quorum)}}
	}
	want := []v1alpha1.Axis{{Axis: "series", Points: []v1alpha1.AxisPoint{
		point("s1-1", 1, "1", "1"), point("s1-8", 8, "4", "1"), point("s2-6", 6, "2", "1.5")}}}
	if diff := cmp.Diff(want, i.Experiment.Spec.Sweep, cmp.Comparer(v1alpha1.Value.Equal)); diff != "" {
		t.Errorf("sweep (-want +got):\n%s", diff)
	}
	wantRegions := []v1alpha1.Region{{Name: "us-east-1", Replicas: 2}, {Name: "eu-west-1", Replicas: 1}}
	if diff := cmp.Diff(wantRegions, i.Experiment.Spec.Topology.Regions); diff != "" {
		t.Errorf("regions (-want +got):\n%s", diff)
	}
	wantDuplicates := []Duplicate{{Key: "client_ramp_up", Lines: []int{14, 19}}, {Key: "_client_ramp_up", Lines: []int{15, 16}, Comment: true}}
	if diff := cmp.Diff(wantDuplicates, i.Duplicates); diff != "" {
		t.Errorf("duplicates (-want +got):\n%s", diff)
	}
	if s := i.Experiment.Spec.Schedule; s.WarmUp != "10s" || s.Measure != "20s" || s.CoolDown != "0s" {
		t.Errorf("schedule %+v; the last client_ramp_up counts", s)
	}
	report := strings.Join(i.Report(), "\n")
	for _, want := range []string{"client_max_attempts: it is null", `"client_ramp_up" is there 2 times, on lines 14, 19; the last one counts`, "server_names alternates", "_client_ramp_up (lines 15, 16)"} {
		if !strings.Contains(report, want) {
			t.Errorf("the report lacks %q:\n%s", want, report)
		}
	}
	if got := i.Experiment.Spec.Workload.Parameters["partitioner"].String(); got != `[1, {"b": null}]` {
		t.Errorf("a list is kept as %s", got)
	}
	for _, p := range i.System.Spec.Parameters {
		if p.Name == "syncCommit" && p.Type != v1alpha1.ParameterDecimal {
			t.Errorf("syncCommit is %s; 1 and 1.5 are Decimals", p.Type)
		}
	}
	second := importText(t, minimal, Options{Series: 2})
	if a := second.Experiment.Spec.Sweep[0]; a.Axis != "clients" || len(a.Points) != 1 || a.Points[0].Name != "6" {
		t.Errorf("series 2 alone is %+v", a)
	}
}

// People edit configurations by hand. Some write an item instead of a list of one item, and some
// leave out the names of the loops.
func TestSettingsHaveSeveralSpellings(t *testing.T) {
	const rest = `"benchmark_name": "rw", "fault_tolerance": 1, "client_processes_per_client_node": 8, "client_experiment_length": 30.0, `
	tests := map[string]string{
		"nothing nested":    `{` + rest + `"replication_protocol": "tapir", "server_names": ["a-0", "a-1", "a-2"], "client_total": 7}`,
		"loops not named":   `{` + rest + `"replication_protocol": ["tapir"], "server_names": [["a-0", "a-1", "a-2"]], "server_regions": [{"a": ["a-0"]}], "client_total": [[7]]}`,
		"loops half nested": `{` + rest + `"replication_protocol": ["tapir"], "server_names": [["a-0", "a-1", "a-2"]], "client_total": [7]}`,
		"one loop": `{` + rest + `"experiment_independent_vars": [["replication_protocol", "server_names", "client_total"]], "replication_protocol": ["tapir"],
			"server_names": [["a-0", "a-1", "a-2"]], "client_total": [7]}`,
		"a client series of the inner loop only": `{` + rest + `"experiment_independent_vars": [["replication_protocol", "server_names"], ["client_total"]],
			"replication_protocol": ["tapir"], "server_names": [["a-0", "a-1", "a-2"]], "client_total": [7]}`,
	}
	for name, in := range tests {
		t.Run(name, func(t *testing.T) {
			i := importText(t, in, Options{})
			s := i.Experiment.Spec
			if len(s.Sweep[0].Points) != 1 || *s.Sweep[0].Points[0].Clients != 7 || s.Schedule.Measure != "30s" {
				t.Errorf("sweep %+v, schedule %+v", s.Sweep, s.Schedule)
			}
			if diff := cmp.Diff([]v1alpha1.Region{{Name: "a", Replicas: 3}}, s.Topology.Regions); diff != "" {
				t.Errorf("regions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNetwork(t *testing.T) {
	wan := strings.Replace(minimal, `"fault_tolerance"`, `"server_emulate_wan": true, "max_bandwidth": "1gibps",
  "region_rtt_latencies": {"us-east-1": {"us-east-1": 0, "eu-west-1": 73}, "eu-west-1": {"us-east-1": 75.5, "eu-west-1": 2}}, "fault_tolerance"`, 1)
	ms := func(s string) *v1alpha1.Duration { d := v1alpha1.Duration(s); return &d }
	want := []v1alpha1.RegionLink{
		{From: "us-east-1", To: "eu-west-1", LinkEffect: v1alpha1.LinkEffect{Delay: ms("36.5ms"), Rate: "8.589934592Gbit"}},
		{From: "eu-west-1", To: "us-east-1", LinkEffect: v1alpha1.LinkEffect{Delay: ms("37.75ms"), Rate: "8.589934592Gbit"}},
		{Between: []string{"eu-west-1", "eu-west-1"}, RTT: ms("2ms"), LinkEffect: v1alpha1.LinkEffect{Rate: "8.589934592Gbit"}},
	}
	i := importText(t, wan, Options{})
	if diff := cmp.Diff(want, i.Experiment.Spec.Network.Links); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
	off := importText(t, strings.Replace(wan, `_wan": true`, `_wan": false`, 1), Options{})
	yaml, err := off.YAML("mine.json")
	if err != nil {
		t.Fatal(err)
	}
	if len(off.Experiment.Spec.Network.Links) != 0 || !strings.Contains(string(yaml), `    # - {"from":"us-east-1","to":"eu-west-1","delay":"36.5ms"`) {
		t.Errorf("without emulation the links must be a comment:\n%s", yaml)
	}
}

func TestBandwidth(t *testing.T) {
	tests := map[string]string{`"1gibps"`: "8.589934592Gbit", `"100mbit"`: "0.1Gbit", `"10kbps"`: "0.00008Gbit", `"1mibit"`: "0.001048576Gbit", `"5bit"`: "", `"fast"`: "", `7`: "", `"1tbps"`: ""}
	for in, want := range tests {
		c, err := readConfig("x", []byte(`{"v": `+in+`}`))
		if err != nil {
			t.Fatal(err)
		}
		got, err := bandwidth(c.top.get("v"))
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s is %q (%v), want %q", in, got, err, want)
		}
	}
}

func TestMistakesAreReported(t *testing.T) {
	change := func(old, new string) string {
		t.Helper()
		if !strings.Contains(minimal, old) {
			t.Fatalf("%q is not in the configuration", old)
		}
		return strings.Replace(minimal, old, new, 1)
	}
	tests := map[string]struct {
		in   string
		o    Options
		want string
	}{
		"cut off":               {in: minimal[:len(minimal)/2], want: "folder/mine.json:8: the configuration is cut off"},
		"a comma too many":      {in: change(`"strictly_serializable": "x"}`, `"strictly_serializable": "x",}`), want: "folder/mine.json:9: "},
		"a comma missing":       {in: change(`"benchmark_name": "rw",`, `"benchmark_name": "rw"`), want: "folder/mine.json:6: "},
		"NaN":                   {in: change(`"client_ramp_up": 5`, `"client_ramp_up": NaN`), want: "folder/mine.json:14: "},
		"a list":                {in: "[]", want: "folder/mine.json:1: the configuration is not a JSON object"},
		"two documents":         {in: minimal + "{}", want: "folder/mine.json:20: there is more"},
		"deep":                  {in: strings.Repeat("[", 1000), want: "nested more than 32 deep"},
		"lists not parallel":    {in: change(`"client_threads_per_process": [[1, 4]`, `"client_threads_per_process": [[1, 4, 4]`), want: "they are parallel, so they must have as many"},
		"series not parallel":   {in: change(`"client_total": [[1, 2], [3]]`, `"client_total": [[1, 2]]`), want: "client_total has 1 series; another variable has at least 2"},
		"other protocols":       {in: change(`["tapir", "tapir"]`, `["tapir", "indicus"]`), want: "replication_protocol differs between the series; an Experiment has only one: import each with --series, from 1 to 2"},
		"negative clients":      {in: change(`[[1, 2], [3]]`, `[[-1, 2], [3]]`), want: "client_total is -1; it must be a whole number from 1 to 100000"},
		"half a client":         {in: change(`[[1, 2], [3]]`, `[[1.5, 2], [3]]`), want: "client_total is 1.5"},
		"no such series":        {in: minimal, o: Options{Series: 3}, want: "--series 3: the configuration has 2"},
		"no time to measure":    {in: change(`"client_ramp_up": 10`, `"client_ramp_up": 30`), want: "leaves nothing to measure"},
		"a setting in one only": {in: change(`{"sync_commit": 1.5, "strictly_serializable": "x"}`, `{"sync_commit": 1.5}`), want: "strictly_serializable is set in some series and not in series 2"},
		"no matrix":             {in: change(`"fault_tolerance"`, `"server_emulate_wan": true, "fault_tolerance"`), want: "there is no region_rtt_latencies"},
		"a long region":         {in: change(`{"us-east-1": [`, `{"us-east-1-and-more": [`), o: Options{Series: 1}, want: `"us-east-1-and-more": a region's name has at most 14`},
		"three loops":           {in: change(`"client_threads_per_process"]],`, `"client_threads_per_process"], ["x"]],`), want: "has 3 loops; two can be read"},
		"no protocol":           {in: `{"fault_tolerance": 1}`, want: "there is no replication_protocol"},
		"no workload":           {in: change(`"benchmark_name": "rw",`, ``), want: "there is no benchmark_name"},
		"no clients":            {in: `{"replication_protocol": "pg", "fault_tolerance": 1}`, want: "neither client_total nor"},
		"numbers as texts":      {in: change(`[[1, 2], [3]]`, `[["1", 2], [3]]`), want: `folder/mine.json:10: client_total is "1"; it must be a whole number`},
		"several lengths":       {in: change(`"client_experiment_length": 30`, `"client_experiment_length": [30, 60]`), want: "mine.json:13: client_experiment_length is [30, 60]; it must be a whole number"},
		"a length of each series": {in: strings.NewReplacer(`"replication_protocol", `, `"replication_protocol", "client_experiment_length", `,
			`"client_experiment_length": 30`, `"client_experiment_length": [30, 60]`).Replace(minimal), want: "mine.json:13: client_experiment_length differs between the series"},
		"two benchmarks":       {in: change(`"benchmark_name": "rw"`, `"benchmark_name": ["rw", "tpcc"]`), want: `mine.json:5: benchmark_name is ["rw", "tpcc"]; it must be a text`},
		"no letters":           {in: change(`"benchmark_name": "rw"`, `"benchmark_name": "---"`), want: `mine.json:5: benchmark_name is "---"; it must have a letter or digit`},
		"two protocols":        {in: `{"replication_protocol": ["pg", "tapir"]}`, want: `mine.json:1: replication_protocol is ["pg", "tapir"]; it must be a text`},
		"emulation as text":    {in: change(`"fault_tolerance"`, `"server_emulate_wan": "false", "fault_tolerance"`), want: `mine.json:6: server_emulate_wan is "false"; it must be true or false`},
		"nested regions":       {in: change(`{"us-east-1": ["us-east-1-0", "us-east-1-1"]}`, `{"us-east-1": {"rack": ["us-east-1-0"]}}`), o: Options{Series: 1}, want: `mine.json:8: server_regions: us-east-1: {"rack": ["us-east-1-0"]} is not a list`},
		"regions as a list":    {in: `{"replication_protocol": "pg", "fault_tolerance": 0, "server_names": ["a"], "server_regions": ["a", "b"]}`, want: `server_regions is ["a", "b"]; it must be regions with the names of their servers`},
		"servers as an object": {in: `{"replication_protocol": "pg", "fault_tolerance": 0, "server_names": {"a": 1}}`, want: `server_names: {"a": 1} is not a list`},
		"a matrix as a list":   {in: `{"replication_protocol": "pg", "fault_tolerance": 0, "server_names": ["a"], "region_rtt_latencies": [[0, 1], [1, 0]]}`, want: `region_rtt_latencies is [[0, 1], [1, 0]]; it must be an object`},
		"no nodes":             {in: `{"replication_protocol": "crdb", "fault_tolerance": 0, "server_names": ["a-0"]}`, want: "fault_tolerance is 0; with crdb it is the number of nodes"},
		"settings as a text":   {in: `{"replication_protocol": "pg", "benchmark_name": "rw", "fault_tolerance": 0, "client_total": 1, "replication_protocol_settings": "none"}`, want: `replication_protocol_settings is "none"; it must be an object`},
		"loops as a text":      {in: `{"experiment_independent_vars": "client_total"}`, want: "experiment_independent_vars is not a list of lists"},
		"a comment":            {in: change(`"fault_tolerance"`, "// f\n  \"fault_tolerance\""), want: "mine.json:6: JSON has no comments"},
		"a comment behind":     {in: change(`"fault_tolerance": 1,`, `"fault_tolerance": 1, /* f */`), want: "mine.json:6: JSON has no comments"},
		"a shell's comment":    {in: "# mine\n" + minimal, want: "mine.json:1: JSON has no comments"},
		"a comma at the end":   {in: change(`"client_ramp_up": 10`, `"client_ramp_up": 10,`), want: "mine.json:19: a comma stands before '}': take it out"},
		"a comma in a list":    {in: change(`[[1, 2], [3]]`, `[[1, 2], [3],]`), want: "mine.json:10: a comma stands before ']': take it out"},
		"Python":               {in: change(`"client_max_attempts": null`, `"nothing": None`), want: "mine.json:18: True, False and None are Python: write true, false and null"},
		"single quotes":        {in: change(`"client_max_attempts"`, `'nothing'`), want: "mine.json:18: JSON takes double quotes only"},
		"infinity":             {in: change(`"client_max_attempts": null`, `"nothing": Infinity`), want: "mine.json:18: NaN and Infinity are no JSON"},
		"too large":            {in: `{"a": "` + strings.Repeat("x", maxConfig) + `"}`, want: "larger than"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Import("folder/mine.json", []byte(tc.in), tc.o)
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "mine.json") {
				t.Errorf("error = %v, want one with %q", err, tc.want)
			}
		})
	}
}

// The import once put the replicas of a shard on machines that are neighbours in server_names. The
// artifact takes every x-th machine, with x machines for each replica. With an emulated WAN, the
// shards would have been in other regions than in the artifact.
func TestShardsAreWhereTheArtifactPutsThem(t *testing.T) {
	const rest = `"replication_protocol": "tapir", "benchmark_name": "rw", "fault_tolerance": 1, "client_total": 7, "client_experiment_length": 30, `
	tests := map[string]struct{ in, want, note string }{
		"one shard":            {`"server_names": ["us-0", "us-1", "eu-0"]`, "us 2 eu 1", ""},
		"two, names alternate": {`"num_groups": 2, "server_names": ["us-0", "us-1", "eu-0", "eu-1", "ap-0", "ap-1"]`, "us 1 eu 1 ap 1", ""},
		"two, unlike":          {`"num_groups": 2, "server_names": ["us-0", "eu-0", "us-1", "eu-1", "us-2", "eu-2"]`, "us 3", "shard 1 in eu"},
		"four on six machines": {`"num_groups": 4, "server_names": ["us-0", "us-1", "eu-0", "eu-1", "ap-0", "ap-1"]`, "us 1 eu 1 ap 1", ""},
		"too few machines":     {`"server_names": ["us-0", "eu-0"]`, "us 2 eu 1", "on the 2 machines"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			i := importText(t, "{"+rest+tc.in+"}", Options{})
			var got []string
			for _, r := range i.Experiment.Spec.Topology.Regions {
				got = append(got, fmt.Sprint(r.Name, " ", r.Replicas))
			}
			if report := strings.Join(i.Report(), "\n"); strings.Join(got, " ") != tc.want || !strings.Contains(report, tc.note) || tc.note == "" && strings.Contains(report, "in other regions than the first") {
				t.Errorf("regions %v, want %s, and a note with %q:\n%s", got, tc.want, tc.note, report)
			}
		})
	}
}

// The import names an axis clients if its values are numbers of clients. A comparison matches axes
// by their names.
func TestNameOfTheAxis(t *testing.T) {
	const rest = `"replication_protocol": "pg", "benchmark_name": "rw", "fault_tolerance": 0, "client_experiment_length": 30, "client_processes_per_client_node": 8, "server_names": ["a-0"], `
	for in, want := range map[string]string{
		`"client_total": [[1, 2]]`: "clients 1 2",
		`"client_total": [[8, 9, 4]], "client_threads_per_process": [[1, 1, 2]]`:                                                                            "clients 8 8-2 8-3",
		`"experiment_independent_vars": [["client_total", "client_zipf_coefficient"]], "client_total": [1, 2], "client_zipf_coefficient": [0.5, 0.9]`:       "clients 1 2",
		`"experiment_independent_vars": [["client_total", "client_zipf_coefficient"]], "client_total": [1, 2, 2], "client_zipf_coefficient": [0, 0.5, 0.9]`: "clientSeries 1 2 2-2",
		`"experiment_independent_vars": [["client_zipf_coefficient"]], "client_total": 3, "client_zipf_coefficient": [0.5, 0.9]`:                            "clientSeries 3 3-2",
	} {
		axis := importText(t, "{"+rest+in+"}", Options{}).Experiment.Spec.Sweep[0]
		got := axis.Axis
		for _, p := range axis.Points {
			got += " " + p.Name
		}
		if got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

// A point of an axis sets at most 64 parameters. A setting that differs between points cannot be a
// default instead.
func TestMorePointSettingsThanAPointHas(t *testing.T) {
	var one, two strings.Builder
	in := strings.NewReplacer(`["tapir", "tapir"]`, `["pequin", "pequin"]`, `"eu-west-1-0", "us-east-1-1"]`, `"eu-west-1-0", "us-east-1-1", "a", "b", "c"]`).Replace(minimal)
	of, seen := programsOf("pequin", "rw", false).protocol, map[string]bool{}
	for _, f := range slices.Concat(of.server, of.client) {
		if !seen[f.setting] {
			fmt.Fprintf(&one, `, %q: 1`, f.setting)
			fmt.Fprintf(&two, `, %q: 2`, f.setting)
		}
		seen[f.setting] = true
	}
	in = strings.Replace(in, `"strictly_serializable": "x"}, {"sync_commit": 1.5, "strictly_serializable": "x"}`, `"strictly_serializable": "x"`+one.String()+`}, {"sync_commit": 1.5, "strictly_serializable": "x"`+two.String()+`}`, 1)
	if _, err := Import("mine.json", []byte(in), Options{}); err == nil || !strings.Contains(err.Error(), "settings differ between points, but a point of an axis sets at most 64: import each series with --series") {
		t.Errorf("error = %v", err)
	}
	importText(t, in, Options{Series: 1})
}

// The import keeps each setting that a program takes, however many there are. The setting becomes a
// parameter of the system, the workload or the experiment, or a default of the System's parameter.
// The import lists a setting that no program takes.
func TestWhatAProgramTakesIsKept(t *testing.T) {
	for protocol := range replicasOf {
		for _, benchmark := range []string{"rw", "rw-sql", "retwis", "tpcc", "tpcc-sql", "smallbank", "seats-sql", "toy"} {
			p := programsOf(protocol, benchmark, strings.HasSuffix(benchmark, "-sql"))
			var top, own strings.Builder
			want := 0
			add := func(b *strings.Builder, flags flags) {
				seen := map[string]bool{}
				for _, f := range slices.Concat(flags.server, flags.client) {
					if _, isMapped := mapped[f.setting]; !seen[f.setting] && !isMapped && f.setting != "replication_protocol" && f.setting != "num_shards" {
						fmt.Fprintf(b, ", %q: 7", f.setting)
						want++
					}
					seen[f.setting] = true
				}
			}
			add(&top, p.top)
			add(&own, p.protocol)
			in := fmt.Sprintf(`{"replication_protocol": %q, "benchmark_name": %q, "fault_tolerance": 1, "client_total": 1, "client_experiment_length": 30, "nobodys": 1%s,
				"replication_protocol_settings": {"nobodys_either": 1%s}}`, protocol, benchmark, top.String(), own.String())
			if p.sql {
				in = strings.Replace(in, "{", `{"benchmark_type": "sql_bench", `, 1)
			}
			i := importText(t, in, Options{})
			got := len(i.System.Spec.Parameters) + len(i.System.Spec.Workloads[0].Parameters) - 1 // replication_protocol
			if got != want {
				t.Errorf("%s, %s: %d parameters, want %d", protocol, benchmark, got, want)
			}
			e := i.Experiment.Spec
			if len(e.Parameters) > maxExperimentParameters || len(e.Systems[0].Parameters) > maxReferenceParameters || len(e.Workload.Parameters) > maxWorkloadParameters {
				t.Errorf("%s, %s: the Experiment has %d, %d and %d parameters", protocol, benchmark, len(e.Parameters), len(e.Systems[0].Parameters), len(e.Workload.Parameters))
			}
			if report := strings.Join(i.Report(), "\n"); !strings.Contains(report, "either: nobodys, nobodys_either") {
				t.Errorf("%s, %s: the report does not list what no program takes:\n%s", protocol, benchmark, report)
			}
		}
	}
}

// The import once counted two of four faulty clients as correct. The artifact's client program
// makes thread k of process i of P faulty if P*k + i is below the share of all clients.
func TestFaultyClientsOfTheArtifact(t *testing.T) {
	config := func(protocol, share, threads string) string {
		return fmt.Sprintf(`{"replication_protocol": %q, "benchmark_name": "rw", "fault_tolerance": 1, "client_total": 3, "client_experiment_length": 30,
			"client_processes_per_client_node": 2, "replication_protocol_settings": {"inject_failure_proportion": %s} %s}`, protocol, share, threads)
	}
	const two = `, "client_threads_per_process": 2`
	for name, tc := range map[string]struct {
		text string
		want []int32
	}{
		"none":                         {config("indicus", "0", two), nil},
		"60% of 6":                     {config("indicus", "60", two), []int32{3}},
		"one thread":                   {config("pequin", "67", ""), []int32{2}},
		"a protocol that injects none": {config("hotstuff", "60", two), nil},
	} {
		t.Run(name, func(t *testing.T) {
			i := importText(t, tc.text, Options{})
			p, errs := plan.Expand(&i.Experiment, map[string]v1alpha1.SystemSpec{i.System.Name: i.System.Spec})
			if len(errs) > 0 {
				t.Fatal(errs.ToAggregate())
			}
			got, clients := p.Points[0].Template.MisbehavingClients, p.Points[0].Template.Clients
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("of %d clients in %d pods, by pod (-want +got):\n%s", clients.Count, clients.Nodes, diff)
			}
		})
	}
}

// Text of a file cannot end the comment that quotes it.
func TestCommentsStayComments(t *testing.T) {
	in := strings.Replace(minimal, `"client_max_attempts"`, `"_x\nkind: Pod\u2028y": 1, "nothing"`, 1)
	yaml, err := importText(t, in, Options{}).YAML("evil\nkind: Pod.json")
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for line := range strings.Lines(string(yaml)) {
		if strings.HasPrefix(line, "kind: ") {
			kinds[strings.TrimSpace(line)]++
		}
	}
	if kinds["kind: Experiment"] == 0 || kinds["kind: Pod"]+kinds["kind: Pod.json"] > 0 || !strings.Contains(string(yaml), "evil") {
		t.Errorf("the file has the kinds %v, want an Experiment, no Pod, and what was evil in a comment:\n%s", kinds, yaml)
	}
}

func TestParameterNames(t *testing.T) {
	p := &parameters{used: map[string]bool{}}
	for setting, want := range map[string]string{"relayP1_timeout": "relayP1Timeout", "parallel_CCC": "parallelCCC", "mainThreadDispatching": "mainThreadDispatching",
		"2PC mode": "pCMode", "__": "setting", "clients": "clients2", "Über": "ber", strings.Repeat("a", 100): strings.Repeat("a", 59)} {
		if got := p.name(setting); got != want {
			t.Errorf("%s becomes %s, want %s", setting, got, want)
		}
	}
	if got := p.name("parallel__CCC"); got != "parallelCCC2" {
		t.Errorf("a name that is taken becomes %s", got)
	}
}

func FuzzImport(f *testing.F) {
	f.Add(minimal)
	f.Add(minimal[:500])
	f.Add(testpequin.Config{Protocol: "pg", Benchmark: "tpcc-sql", SQL: true, F: 1, Shards: 1, Servers: []string{"north-0"}, Clients: []int{2, 6}, Processes: []int{2, 6},
		Threads: []int{1, 2}, Length: 60, RampUp: 10, RampDown: 10, Runs: 2, Protocols: []testpequin.Setting{{Name: "signature_type", Value: "3"}, {Name: "key_path", Value: `"/x"`}, {Name: "sig_batch", Value: "3"}},
		Top: []testpequin.Setting{{Name: "tpcc_num_warehouses", Value: "4"}}}.JSON())
	f.Fuzz(func(t *testing.T, in string) {
		i, err := Import("x.json", []byte(in), Options{})
		if err != nil {
			if !strings.HasPrefix(err.Error(), "x.json") {
				t.Errorf("error %q does not begin with the file", err)
			}
			return
		}
		text, err := i.YAML("x.json")
		if err != nil {
			t.Fatal(err)
		}
		system, experiment, found := strings.Cut(string(text), "\n---\n")
		if !found || strings.Contains(experiment, "\n---\n") {
			t.Fatalf("not two documents:\n%s", text)
		}
		if err := yaml.UnmarshalStrict([]byte(system), &v1alpha1.System{}); err != nil {
			t.Errorf("the System that was written: %v", err)
		}
		if err := yaml.UnmarshalStrict([]byte(experiment), &v1alpha1.Experiment{}); err != nil {
			t.Errorf("the Experiment that was written: %v", err)
		}
		if len(i.Experiment.Spec.Sweep[0].Points) != len(i.processes) {
			t.Error("points without processes")
		}
	})
}
