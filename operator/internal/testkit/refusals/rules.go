package refusals

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// rules in CEL, with a value in YAML that breaks each. The value is merged with the smallest value
// that the schema accepts. If the value is valid alone, its text says which other members it needs.
var rules = map[string]string{
	"self.metadata.name.size() <= 24":                                            "{metadata: {name: a-name-of-twenty-five-char}}",
	"!has(self.spec.recurrence) || self.metadata.name.size() <= 13":              "{metadata: {name: fourteen-chars}, spec: {recurrence: {cron: '0 3 * * *'}}}",
	"self.metadata.name.size() <= 40":                                            "{metadata: {name: a-name-that-is-longer-than-forty-characters}}",
	"size(self.profile) == 0 || self.profiles.exists(p, p.name == self.profile)": "{profile: nowhere, profiles: [{name: smoke}]}",
	"self.clients.loop == 'Open' || !has(self.clients.arrivals)":                 "{clients: {loop: Closed, arrivals: Poisson}}",
	"[has(self.nodeKill), has(self.pause), has(self.partition), has(self.degrade), has(self.chaosMesh), has(self.clientBehavior), has(self.command), has(self.flameGraph)].filter(x, x).size() == 1": "{at: 1s}",
	"has(self.clientBehavior) != has(self.at)":                    "{nodeKill: {target: {replicas: [0]}}}",
	"!has(self.clientBehavior) || !has(self.__for__)":             "{for: 1s, clientBehavior: {share: 1%, parameters: {a: 1}}}",
	"!has(self.command) || !has(self.__for__)":                    "{at: 1s, for: 1s, command: {target: {replicas: [0]}, run: [a]}}",
	"!has(self.flameGraph) || has(self.__for__)":                  "{at: 1s, flameGraph: {target: {replicas: [0]}, tool: Perf}}",
	"has(self.port) == (self.tool == 'Pprof')":                    "{target: {replicas: [0]}, tool: Perf, port: 1}",
	"!has(self.repeat) || has(self.__for__) || has(self.command)": "{at: 1s, repeat: {every: 1s, times: 2}, pause: {target: {replicas: [0]}}}",
	"has(self.machine) || has(self.replicas) || has(self.regions) || has(self.role) || has(self.pick) || has(self.component)":          "{shards: [0]}",
	"!has(self.component) || !(has(self.replicas) || has(self.shards))":                                                                "{component: a, replicas: [0]}",
	"has(self.component) || !has(self.pods)":                                                                                           "{replicas: [0], pods: [0]}",
	"!(has(self.role) && has(self.pick))":                                                                                              "{role: a, pick: f}",
	"has(self.target) != (has(self.from) || has(self.to))":                                                                             "{delay: 1s}",
	"has(self.delay) || has(self.jitter) || has(self.loss) || has(self.rate)":                                                          "{to: {replicas: [0]}}",
	"[has(self.groups), has(self.isolate), has(self.from) || has(self.to)].filter(x, x).size() == 1 && has(self.from) == has(self.to)": "{from: {replicas: [0]}}",
	"(has(self.stack) ? 1 : 0) + (has(self.speedUp) ? 1 : 0) + (has(self.percentiles) ? 1 : 0) == 1":                                   "{name: a}",
	"[has(self.query), has(self.counter), has(self.use)].filter(x, x).size() == 1":                                                     "{name: a}",
	"has(self.query) == has(self.over)":                                                                                                "{query: up}",
	"has(self.counter) || !has(self.per)":                                                                                              "{query: up, over: Last, per: a}",
	"has(self.between) != (has(self.from) && has(self.to)) && has(self.from) == has(self.to)":                                          "{from: a}",
	"!has(self.rtt) || has(self.between)":                                                                                              "{from: a, to: b, rtt: 1s}",
	"!(has(self.rtt) && has(self.delay))":                                                                                              "{between: [a, b], rtt: 1s, delay: 1s}",
	"self != 'assay.dev/pool'":                                                                                                         "assay.dev/pool",
	"(self.metric == 'Measurement') == has(self.measurement)":                                                                          "{metric: Throughput, measurement: a}",
	"!has(self.component) || self.runsOn in ['EveryReplica', 'FirstReplica']":                                                          "{component: a, runsOn: FirstClient}",
	"!has(self.driver) || self.containers.size() == 1":                                                                                 "{driver: {}, containers: [{name: a, image: i, command: [c]}, {name: b, image: i, command: [c]}]}",
	"!has(self.capabilities) || size(self.capabilities) == 0 || (has(self.runAsUser) && self.runAsUser == 0)":                          "{capabilities: [IPC_LOCK], runAsUser: 1}",
	"self != 'agent'": "agent",
	"(self.source == 'File') == has(self.path)":                                                                           "{format: Assay, source: File}",
	"(self.format in ['RegularExpression', 'CSV', 'JSONLines']) == has(self.records)":                                     "{format: CSV, source: Stdout}",
	"self.source != 'File' || !has(self.records) || self.records.instant.from != 'Arrival'":                               "{format: CSV, source: File, path: /assay/out/a, records: {latency: {from: l, unit: us}, instant: {from: Arrival}}}",
	"(self.format == 'Summary') == has(self.summary)":                                                                     "{format: Summary, source: Stdout}",
	"(self.format == 'HdrHistogram') == has(self.histograms)":                                                             "{format: HdrHistogram, source: Stdout}",
	"self in ['Assay', 'TransactionLines', 'RegularExpression', 'CSV', 'JSONLines', 'Reckon', 'HdrHistogram', 'Summary']": "YCSB",
	"(self.from != 'Arrival' && !has(self.layout)) == has(self.unit)":                                                     "{from: Arrival, unit: ms}",
	"has(self.from) != has(self.since) && has(self.from) == has(self.unit)":                                               "{from: l, unit: us, since: b}",
	"has(self.pattern) != has(self.path)":                                                                                 "{name: Committed, pattern: x, path: $.x}",
	"self in ['Committed', 'Aborted', 'Errors', 'Timeouts', 'Ended', 'Answered', 'Throughput', 'EndedRate', 'RunTime', 'MeanLatency', 'MaxLatency'] || self.matches('^P([1-9][0-9]|9[0-9]{2,4})Latency$') || self.matches('^[a-z][a-zA-Z0-9]*$')": "P100Latency",
	"!(self in ['replica', 'replicas', 'client', 'clients', 'prepare', 'c']) && !self.matches('^s[0-9]+$')":                                                                                                                                       "replica",
	"[has(self.log), has(self.port), has(self.http), has(self.command)].filter(x, x).size() == 1":                                                                                                                                                 "{port: a, command: [b]}",
	"!has(self.storageClass) || self.medium == 'PersistentVolumeClaim'":                                                                                                                                                                           "{medium: Memory, storageClass: a}",
	"!has(self.usedBy) || self.usedBy != 'Components' || (has(self.components) && size(self.components) > 0)":                                                                                                                                     "{usedBy: Components}",
	"[has(self.log), has(self.http), has(self.command)].filter(x, x).size() == 1":                                                                                                                                                                 "{command: [a], http: {port: a, path: /, pattern: x}}",
	"has(self.machines) || has(self.workloads)":                                                                                                                                                                                                   "{description: x}",
	"has(self.machines) || has(self.replicas)":                                                                                                                                                                                                    "{description: x}",
	"has(self.machines) || has(self.clients)":                                                                                                                                                                                                     "{description: x}",
	"has(self.machines) || !has(self.shared)":                                                                                                                                                                                                     "{shared: [{path: /a}]}",
	"has(self.machines) == has(self.script)":                                                                                                                                                                                                      "{machines: [{name: a, count: \"1\", hostnames: h, image: i}]}",
	"!has(self.machines) || !(has(self.replicas) || has(self.clients) || has(self.components) || has(self.prepare) || has(self.datasets) || has(self.steps) || has(self.checks) || has(self.roles))": "{machines: [{name: a, count: \"1\", hostnames: h, image: i}], script: {command: [a], results: {path: b}}, steps: [{name: a, runsOn: FirstReplica, command: [b]}]}",
}

// transitions are rules that compare an object with its earlier version; TestChangesAreRefused in
// operator/test/integration has their cases.
var transitions = map[string]bool{"self == oldSelf": true}

// rules makes a case for each rule of a node.
func (g *generator) rules(props *apiextensionsv1.JSONSchemaProps, at place, object map[string]any) {
	for _, rule := range props.XValidations {
		if transitions[rule.Rule] {
			continue
		}
		text, ok := rules[rule.Rule]
		if !ok {
			g.missing = append(g.missing, fmt.Sprintf("rule %s at %s: add a value that breaks it to rules in operator/internal/testkit/refusals/rules.go", rule.Rule, at))
			continue
		}
		value := decode([]byte(text))
		if over, ok := value.(map[string]any); ok {
			under, _ := get(object, at).(map[string]any)
			value = g.laidOver(props, under, over, at)
		}
		broken := value
		if len(at) > 0 {
			broken = with(object, at, value)
		}
		g.add("rule "+strings.TrimSpace(rule.Rule), at, "", broken.(map[string]any))
		if rule.MessageExpression == "" {
			g.cases[len(g.cases)-1].Says = rule.Message
		}
	}
}

// laidOver is the smallest object with the members of over. It completes members that are objects.
func (g *generator) laidOver(props *apiextensionsv1.JSONSchemaProps, under, over map[string]any, at place) map[string]any {
	out := map[string]any{}
	for k, v := range under {
		if slices.Contains(props.Required, k) || len(at) == 0 {
			out[k] = v
		}
	}
	for k, v := range over {
		below, isObject := v.(map[string]any)
		child, known := props.Properties[k]
		if isObject && known && child.AdditionalProperties == nil && k != "metadata" {
			least, _ := g.minimal(&child, at.String()).(map[string]any)
			v = g.laidOver(&child, least, below, at.to(step{key: k}))
		}
		out[k] = v
	}
	return out
}
