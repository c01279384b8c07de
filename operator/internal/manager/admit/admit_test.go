package admit_test

import (
	"strings"
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/manager/admit"
)

// base has a valid System and a valid Experiment.
const base = `apiVersion: assay.dev/v1alpha1
kind: System
metadata:
  name: store
spec:
  description: A store.
  parameters:
  - {name: sync, type: String, default: always, doc: When it syncs.}
  workloads:
  - {name: mixed, doc: Reads and writes.}
  replicas:
    count: 2*f+1
    ports:
    - {name: client, port: 9042}
    containers:
    - name: replica
      image: registry.example/store:1
      command: [/bin/store, "--sync={{.Parameters.sync}}"]
    volumes:
    - {name: data, mountPath: /data, medium: Memory, size: 64Mi}
    ready:
    - port: client
  clients:
    containers:
    - name: client
      image: registry.example/bench:1
      command: [/bin/bench, "--threads={{.Self.Count}}"]
    results:
      format: Summary
      source: Stdout
      summary:
        numbers:
        - {name: Committed, pattern: '^Committed: (?P<value>[0-9]+)$'}
        - {name: RunTime, unit: s, pattern: '^Ran for (?P<value>[0-9.]+) s$'}
        - {name: P99Latency, unit: us, pattern: '^p99: (?P<value>[0-9]+) us$'}
---
# A comment before it.
apiVersion: assay.dev/v1alpha1
kind: Experiment
metadata: {name: tails}
spec:
  systems: [{name: store}]
  topology: {f: 1}
  workload: {name: mixed}
  clients: {loop: Closed, count: 2, nodes: 1}
  parameters: {sync: "no"}
  schedule: {warmUp: 1s, measure: 5s}
  repetitions: {min: 3}
  claims:
  - {name: tail, statement: The tail is short., expr: p99_latency() < 10ms}
`

// experimentSpec is the part of base from the Experiment's spec on.
func experimentSpec() string {
	_, spec, _ := strings.Cut(base, "metadata: {name: tails}\n")
	return spec
}

// check checks all documents of a text.
func check(t *testing.T, text string) admit.Problems {
	t.Helper()
	documents, problems := admit.Documents([]byte(text), "f.yaml")
	systems := map[string]v1alpha1.SystemSpec{}
	for _, d := range documents {
		if d.Object.GetKind() != "System" {
			continue
		}
		system, wrong := admit.System(t.Context(), d)
		problems = append(problems, wrong...)
		if system != nil {
			systems[system.Name] = system.Spec
		}
	}
	for _, d := range documents {
		if d.Object.GetKind() == "Experiment" {
			_, wrong := admit.Experiment(t.Context(), d, systems)
			problems = append(problems, wrong...)
		}
	}
	return problems
}

func TestWhatIsRightIsAccepted(t *testing.T) {
	if problems := check(t, base); len(problems) > 0 {
		t.Error(problems.Error())
	}
}

// Each case makes one mistake in base. The problem must have the line, the field, the mistake and
// the correct form.
func TestProblemsAreNamed(t *testing.T) {
	for name, tc := range map[string]struct{ old, new, want string }{
		"value of an enum":         {"loop: Closed", "loop: closed", `f.yaml:45:19: Experiment tails: spec.clients.loop: there is no value "closed"; did you mean "Closed"?; there are: Closed, Open`},
		"format":                   {"format: Summary", "format: Bogus", `f.yaml:29:15: System store: spec.clients.results.format: Invalid value: `},
		"least value":              {"min: 3", "min: 0", `f.yaml:48:22: Experiment tails: spec.repetitions.min: 0 is wrong: it must be from 1 to 100`},
		"greatest value":           {"f: 1", "f: 99", `f.yaml:43:17: Experiment tails: spec.topology.f: 99 is wrong: it must be from 0 to`},
		"negative nodes":           {"nodes: 1", "nodes: -3", `f.yaml:45:44: Experiment tails: spec.clients.nodes: -3 is wrong: it must be from 1 to`},
		"no nodes":                 {"nodes: 1", "nodes: 0", `spec.clients.nodes: 0 is wrong`},
		"port":                     {"port: 9042", "port: 99999", `f.yaml:14:28: System store: spec.replicas.ports[0].port: 99999 is wrong: it must be from 1 to 65535`},
		"relative path":            {"mountPath: /data", "mountPath: data", `f.yaml:20:31: System store: spec.replicas.volumes[0].mountPath: "data" is wrong: it must match ^/.+`},
		"path of Assay":            {"mountPath: /data", "mountPath: /assay/x", `spec.replicas.volumes[0].mountPath: Invalid value: "/assay/x": must not be /`},
		"required":                 {", medium: Memory", "", `f.yaml:20:7: System store: spec.replicas.volumes[0].medium: is missing; one of: `},
		"required text":            {"statement: The tail is short., ", "", `f.yaml:50:5: Experiment tails: spec.claims[0].statement: is missing; statement in the paper`},
		"empty image":              {"image: registry.example/store:1", `image: ""`, `spec.replicas.containers[0].image: "" is wrong: it must have at least 1 characters`},
		"rule":                     {"source: Stdout", "source: File", `f.yaml:28:5: System store: spec.clients.results: Invalid value: source is File; path is needed`},
		"rule of a number":         {"name: P99Latency, unit: us,", "name: P99Latency, path: $.p99, unit: us,", `spec.clients.results.summary.numbers[2]: Invalid value: must have either pattern or path`},
		"unit of a latency":        {"name: P99Latency, unit: us,", "name: P99Latency, unit: minutes,", `spec.clients.results.summary.numbers: Invalid value: "": the unit of P99Latency is "minutes"`},
		"group of a pattern":       {"(?P<value>[0-9]+) us", "(?P<v>[0-9]+) us", `f.yaml:35:49: System store: spec.clients.results.summary.numbers[2].pattern: Invalid value: "^p99: (?P<v>[0-9]+) us$": `},
		"regular expression":       {"'^Committed: (?P<value>[0-9]+)$'", "'^(Committed: (?P<value>[0-9]+$'", `numbers[0].pattern: Invalid value`},
		"no count":                 {"{name: Committed, pattern: '^Committed: (?P<value>[0-9]+)$'}", "{name: Timeouts, pattern: '^(?P<value>[0-9]+)$'}", `Throughput is missing, and so are Committed and RunTime`},
		"type":                     {"type: String, default: always", "type: Int, default: always", `f.yaml:8:24: System store: spec.parameters[0].type: there is no value "Int"; there are: Boolean`},
		"duration without unit":    {"measure: 5s", "measure: 10", `f.yaml:47:35: Experiment tails: spec.schedule.measure: must be text, and is the number 10; write it with its unit, such as 10s`},
		"duration of a wrong unit": {"measure: 5s", "measure: 10sec", `spec.schedule.measure: "10sec" is wrong: a duration is a number and a unit, ns, us, ms, s, m or h`},
		"text for a number":        {"count: 2,", `count: "2",`, `spec.clients.count: must be a whole number, and is the text "2"; write it without quotes`},
		"fraction":                 {"count: 2,", "count: 2.5,", `spec.clients.count: must be a whole number, and is the number 2.5; write 2 or 3`},
		"number for text":          {"description: A store.", "description: 5", `spec.description: must be text, and is the number 5; put it in quotes: "5"`},
		"number with an exponent":  {"description: A store.", "description: 1e3", `(YAML reads 1e3 as 1000; text needs quotes: "1e3")`},
		"no for text":              {"description: A store.", "description: no", `must be text, and is false (YAML reads no as false; text needs quotes: "no")`},
		"no for a parameter":       {`sync: "no"`, "sync: no", `f.yaml:46:22: Experiment tails: spec.parameters.sync: YAML reads no as false; write "no" in quotes for the text, or false`},
		"key that YAML reads":      {`{sync: "no"}`, `{on: "no"}`, `f.yaml:46:16: spec.parameters.on: YAML reads the key on as true; write it in quotes: "on"`},
		"list for an object":       {"topology: {f: 1}", "topology: [1]", `spec.topology: must be an object, and is a list`},
		"object for a value":       {`sync: "no"`, "sync: {a: 1}", `f.yaml:46:22: Experiment tails: spec.parameters.sync: must be text, a number, true or false`},
		"huge number":              {"count: 2,", "count: 99999999999999999999,", `spec.clients.count: must be a whole number`},
		"field":                    {"repetitions:", "repetition:", `f.yaml:48:15: Experiment tails: spec.repetition: there is no field "repetition"; did you mean "repetitions"?`},
		"field of metadata":        {"metadata: {name: tails}", "metadata: {name: tails, lables: {a: b}}", `metadata.lables: there is no field "lables"; did you mean "labels"?`},
		"label":                    {"metadata: {name: tails}", "metadata: {name: tails, labels: {a: 5}}", `metadata.labels`},
		"name":                     {"metadata: {name: tails}", "metadata: {name: First_One}", `metadata.name: "First_One" is wrong: a name has`},
		"no name":                  {"metadata: {name: tails}", "metadata: {}", `f.yaml:40:11: Experiment: metadata.name`},
		"long name":                {"metadata: {name: tails}", "metadata: {name: tails-of-a-store-that-is-slow}", `at most 24 characters`},
		"kind":                     {"kind: Experiment", "kind: System", `System tails: spec.systems: there is no field`},
		"twice":                    {"topology: {f: 1}", "topology: {f: 1}\n  topology: {f: 2}", `f.yaml:44:3: spec.topology: the field is there twice; the first is in line 43. Remove one`},
		"tab":                      {"  topology: {f: 1}", "\ttopology: {f: 1}", `f.yaml:43:2: a tab indents this line; YAML wants spaces`},
		"indentation":              {"  topology: {f: 1}", " topology: {f: 1}", `f.yaml:43:2: this line is indented by 1 and does not fit the lines before it`},
		"brace":                    {"topology: {f: 1}", "topology: {f: 1", `f.yaml:43:3: a { or [ that is opened here is not closed`},
		"quote":                    {"description: A store.", `description: "A store.`, `f.yaml:6:3: a quote that is opened here is not closed`},
		"template without quotes":  {`"--threads={{.Self.Count}}"`, `{{.Self.Count}}`, `f.yaml:27:30: spec.clients.containers[0].command[1]: a key must be a name, and this is an object; text that begins with { or [ needs quotes`},
		"at sign":                  {"description: A store.", "description: @store", `f.yaml:6:3: a value that begins with @ needs quotes: "@store"`},
		"no spec":                  {experimentSpec(), "", `f.yaml:38:1: Experiment tails: spec: is missing; spec of the experiment; it needs systems`},
		"unknown System":           {"[{name: store}]", "[{name: stor}]", `f.yaml:42:20: Experiment tails: spec.systems[0].name: Not found: "stor"`},
		"claim":                    {"p99_latency() < 10ms", "p98_latency() < 10ms", `f.yaml:50:55: Experiment tails: spec.claims[0].expr: Invalid value: `},
		"unknown parameter":        {`{sync: "no"}`, `{snc: "no"}`, `spec.parameters[snc]: Invalid value: "no"`},
		"template":                 {"{{.Self.Count}}", "{{.Self.Count}", `System store: spec.clients.containers[0].command[1]: Invalid value`},
		"set with one thing twice": {"f: 1}\n", "f: 1}\n  prePull: Never\n  faults: [{name: a, at: 1s, everyPoint: true, nodeKill: {target: {replicas: [0, 0]}}}]\n", `replicas[1]: Duplicate value: 0`},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(base, tc.old, tc.new, 1)
			if text == base {
				t.Fatalf("the base has no %q", tc.old)
			}
			problems := check(t, text)
			if len(problems) == 0 {
				t.Fatal("accepted")
			}
			if !strings.Contains(problems.Error(), tc.want) {
				t.Errorf("got:\n%s\nwant it to have: %s", problems.Error(), tc.want)
			}
			if strings.Contains(strings.ReplaceAll(problems.Error(), "JSONLines", ""), "JSON") || strings.Contains(problems.Error(), "unmarshal") {
				t.Errorf("the words are Go's:\n%s", problems.Error())
			}
		})
	}
}

// All problems of all documents are listed, without those that follow from others.
func TestAllAtOnce(t *testing.T) {
	text := base
	for _, change := range [][2]string{{", medium: Memory", ""}, {"type: String", "type: Int"}, {"loop: Closed", "loop: Opn"}, {"measure: 5s", "measure: 5"}, {"min: 3", "min: 0"}, {"p99_latency", "p98_latency"}} {
		text = strings.Replace(text, change[0], change[1], 1)
	}
	problems := check(t, text)
	var fields []string
	for _, p := range problems {
		fields = append(fields, p.Field)
	}
	for _, want := range []string{"spec.replicas.volumes[0].medium", "spec.parameters[0].type", "spec.clients.loop", "spec.schedule.measure", "spec.repetitions.min"} {
		n := 0
		for _, field := range fields {
			if field == want {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%s is named %d times in:\n%s", want, n, problems.Error())
		}
	}
}

// A text that is no YAML has a problem of its own.
func TestOtherFiles(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"bundle":  {"\x1f\x8b\x08\x00x", "f.yaml: this is a compressed file, not YAML; a bundle is shown by kubectl assay report --file"},
		"UTF-16":  {"\xff\xfea\x00", "f.yaml: this text is in UTF-16; save it as UTF-8"},
		"binary":  {"\x7fELF\x00", "f.yaml: this is a binary file"},
		"Latin-1": {"a: \xe4\n", "f.yaml:1:1: this is not text in UTF-8"},
		"list":    {"- a\n- b\n", "f.yaml:1:1: an object begins with apiVersion and kind"},
		"JSON":    {`{"apiVersion": `, "f.yaml:1:1: a { or [ that is opened here is not closed"},
		"anchor":  {"a: *x\n", "f.yaml:1:1: there is no anchor for *x; text that begins with * needs quotes"},
		"bomb":    {bomb(), "aliases of aliases make this document too large"},
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := admit.Documents([]byte(tc.text), "f.yaml")
			if len(problems) != 1 || !strings.Contains(problems.Error(), tc.want) {
				t.Errorf("got: %v\nwant: %s", problems, tc.want)
			}
		})
	}
}

func bomb() string {
	var b strings.Builder
	b.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 10; i++ {
		name, before := string(rune('a'+i)), string(rune('a'+i-1))
		if i == 1 {
			before = "a0"
		}
		b.WriteString(name + ": &" + name + " [" + strings.TrimSuffix(strings.Repeat("*"+before+", ", 10), ", ") + "]\n")
	}
	return b.String()
}
