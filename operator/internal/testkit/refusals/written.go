package refusals

import (
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// Edit puts a value, written as YAML, at a path such as spec.sweep.0.values; "-" as the last
// element appends to a list, and an empty value removes a field.
type Edit struct{ Path, Value string }

// Wrong is a specification that cannot work: a valid one with edits. The cluster's rejection must
// name the field, the wrong value and a right one.
type Wrong struct {
	Edits               []Edit
	Field, Value, Right string
}

// Apply returns a copy of a valid object with the edits.
func (w Wrong) Apply(valid map[string]any) map[string]any {
	out := any(valid)
	for _, e := range w.Edits {
		out = edit(out, strings.Split(e.Path, "."), e.Value)
	}
	return out.(map[string]any)
}

func edit(in any, path []string, value string) any {
	if len(path) == 0 {
		return decode([]byte(value))
	}
	switch node := in.(type) {
	case []any:
		list := append([]any(nil), node...)
		if path[0] == "-" {
			return append(list, decode([]byte(value)))
		}
		i, err := strconv.Atoi(path[0])
		if err != nil || i >= len(list) {
			panic("no item " + path[0])
		}
		list[i] = edit(list[i], path[1:], value)
		return list
	case map[string]any:
		object := map[string]any{}
		for k, v := range node {
			object[k] = v
		}
		if value == "" && len(path) == 1 {
			delete(object, path[0])
			return object
		}
		object[path[0]] = edit(object[path[0]], path[1:], value)
		return object
	case nil:
		if path[0] == "-" {
			return []any{decode([]byte(value))}
		}
		return map[string]any{path[0]: edit(nil, path[1:], value)}
	}
	panic("no path " + strings.Join(path, "."))
}

// Read decodes a sample.
func Read(text []byte) (map[string]any, error) {
	var object map[string]any
	err := yaml.Unmarshal(text, &object)
	return object, err
}

// NeedCluster are Experiments of WrongExperiments that only a cluster rejects, since only the
// cluster knows its allowed capabilities.
var NeedCluster = map[string]bool{"capability that nobody allows": true}

// AllSystems returns the Systems that the tables name, made from the samples with a driver, with
// components and with machines.
func AllSystems(driver, components, machines map[string]any) []map[string]any {
	index := Wrong{Edits: []Edit{{"metadata.name", "kv-index"}, {"spec.replicas.containers.0.command", "['{{(index .Replicas 99).IP}}']"}}}
	admin := Wrong{Edits: []Edit{{"metadata.name", "kv-admin"}, {"spec.replicas.containers.0.runAsUser", "0"}, {"spec.replicas.containers.0.capabilities", "[SYS_ADMIN]"}}}
	slip := Wrong{Edits: []Edit{{"metadata.name", "kv-slip"}, {"spec.clients.containers.0.command", "['{{.Components.proxi.Count}}']"}}}
	grown := Wrong{Edits: []Edit{{"metadata.name", "kv-grown"}, {"spec.components.1.count", "f*2000"}}}
	complete := Wrong{Edits: []Edit{
		{"metadata.name", "kv-complete"}, {"spec.clients.driver", ""}, {"spec.clients.results", "{format: Assay, source: Stdout}"}, {"spec.clients.misbehaving", "client < parameters.batchSize"},
	}}
	sized := Wrong{Edits: []Edit{{"metadata.name", "kv-sized"}, {"spec.replicas.count", "2*f+parameters.batchSize"}}}
	needs := Wrong{Edits: []Edit{{"metadata.name", "kv-needs"}, {"spec.parameters.0.default", ""}}}
	oneRow := Wrong{Edits: []Edit{{"metadata.name", "store-other"}, {"spec.script.results.axes", ""}}}
	more := Wrong{Edits: []Edit{{"metadata.name", "store-more"}, {"spec.workloads.-", "{name: scan, doc: Scans.}"}}}
	clients := Wrong{Edits: []Edit{{"metadata.name", "store-clients"}, {"spec.workloads.0.name", "table2"}}}
	return []map[string]any{
		driver, index.Apply(driver), admin.Apply(driver), complete.Apply(driver), sized.Apply(driver), needs.Apply(driver), clients.Apply(driver),
		components, slip.Apply(components), grown.Apply(components), machines, oneRow.Apply(machines), more.Apply(machines),
	}
}

// WrongExperiments are edits of config/samples/experiment-faults.yaml.
var WrongExperiments = map[string]Wrong{
	"unknown parameter":            {[]Edit{{"spec.parameters", "{fastPth: true}"}}, "spec.parameters[fastPth]", `"true"`, `did you mean "fastPath"?`},
	"parameter of wrong type":      {[]Edit{{"spec.parameters", "{batchSize: lots}"}}, "spec.parameters[batchSize]", `"lots"`, "takes an Integer, at least 1, at most 1024"},
	"parameter not allowed":        {[]Edit{{"spec.parameters", "{distribution: zipfian}"}}, "spec.parameters[distribution]", `"zipfian"`, "one of: uniform, zipf"},
	"parameter out of bounds":      {[]Edit{{"spec.workload.parameters", "{keys: 0}"}}, "spec.workload.parameters[keys]", `"0"`, "at least 1"},
	"workload's parameter":         {[]Edit{{"spec.workload.parameters", "{key: 5}"}}, "spec.workload.parameters[key]", `"5"`, `did you mean "keys"?`},
	"unknown workload":             {[]Edit{{"spec.workload.name", "read-wriet"}}, "spec.workload.name", `"read-wriet"`, `did you mean "read-write"?`},
	"negative measure":             {[]Edit{{"spec.schedule.measure", "-20s"}}, "spec.schedule.measure", `"-20s"`, "must be from 1s to 24h"},
	"measure without a unit":       {[]Edit{{"spec.schedule.measure", `"20"`}}, "spec.schedule.measure", `"20"`, "ns|us|ms|s|m|h"},
	"fault on a missing replica":   {[]Edit{{"spec.faults.0.nodeKill.target.replicas", "[5]"}}, "spec.faults[0].nodeKill.target.replicas[0]", ": 5:", "2*f+1 = 5 replicas in a shard for f = 2: 0 to 4"},
	"fault on a missing shard":     {[]Edit{{"spec.faults.1.nodeKill.target.shards", "[2]"}}, "spec.faults[1].nodeKill.target.shards[0]", ": 2:", "there are 2 shards: 0 to 1"},
	"fault in a missing region":    {[]Edit{{"spec.faults.0.nodeKill.target", "{regions: [locl]}"}}, "spec.faults[0].nodeKill.target.regions[0]", `"locl"`, `did you mean "local"?`},
	"fault after the schedule":     {[]Edit{{"spec.faults.0.at", "22s"}}, "spec.faults[0].at", `"22s"`, "to before 22s"},
	"fault before the schedule":    {[]Edit{{"spec.faults.0.at", "-5.1s"}}, "spec.faults[0].at", `"-5.1s"`, "from -5s"},
	"fault without a target":       {[]Edit{{"spec.faults.0.nodeKill.target", "{shards: [0]}"}}, "spec.faults[0].nodeKill.target", "replicas", "none of machine, replicas, regions, role, pick, component is set"},
	"fault that does nothing":      {[]Edit{{"spec.faults.0.nodeKill", ""}}, "spec.faults[0]", "", "set exactly one of nodeKill"},
	"link both ways and one way":   {[]Edit{{"spec.network", "{links: [{between: [a, b], from: a, to: b}]}"}}, "spec.network.links[0]", "", "set either between (both directions), or from and to"},
	"round trip in one direction":  {[]Edit{{"spec.network", "{links: [{from: a, to: b, rtt: 1ms}]}"}}, "spec.network.links[0].rtt", "", "use it with between, or set delay"},
	"round trip and delay":         {[]Edit{{"spec.network", "{links: [{between: [a, b], rtt: 1ms, delay: 1ms}]}"}}, "spec.network.links[0].delay", "", "set either rtt"},
	"loss without a percent sign":  {[]Edit{{"spec.network", "{links: [{from: a, to: b, loss: \"0.1\"}]}"}}, "spec.network.links[0].loss", `"0.1"`, "%$"},
	"run in each minute":           {[]Edit{{"spec.recurrence", "{cron: '* * * * *'}"}}, "spec.recurrence.cron", `"* * * * *"`, "name one, since at most one run may be due in an hour"},
	"run by words":                 {[]Edit{{"spec.recurrence", "{cron: every night}"}}, "spec.recurrence.cron", `"every night"`, "minute, hour, day of the month, month, day of the week"},
	"run in no zone":               {[]Edit{{"spec.recurrence", "{cron: '@daily', timeZone: Europe/Atlantis}"}}, "spec.recurrence.timeZone", `"Europe/Atlantis"`, "a name of the IANA database"},
	"run within seconds":           {[]Edit{{"spec.recurrence", "{cron: '@daily', startWithin: 10s}"}}, "spec.recurrence.startWithin", `"10s"`, "from 1m to 24h"},
	"unknown network":              {[]Edit{{"spec.network", "{profile: wan}"}}, "spec.network.profile", `"wan"`, `"regional", "continental", "aws-6"`},
	"link to an unknown region":    {[]Edit{{"spec.network", "{links: [{from: local, to: mars, delay: 1ms}]}"}}, "spec.network.links[0]", "mars", "there are: local"},
	"fault of two kinds":           {[]Edit{{"spec.faults.-", "{name: x, at: 1s, pause: {target: {replicas: [0]}}, degrade: {to: {replicas: [0]}, loss: 1%}}"}}, "spec.faults[2]", "pause degrade is set", "set exactly one of nodeKill, pause"},
	"clients that turn bad at 1s":  {[]Edit{{"spec.faults.-", "{name: x, at: 1s, clientBehavior: {share: 10%, parameters: {batchSize: 2}}}"}}, "spec.faults[2].at", "", "must not be set"},
	"repeat without an end":        {[]Edit{{"spec.faults.-", "{name: x, at: 1s, repeat: {every: 1s, times: 2}, pause: {target: {replicas: [0]}}}"}}, "spec.faults[2].for", "", "is needed with repeat"},
	"pick of nothing":              {[]Edit{{"spec.faults.-", "{name: x, at: 1s, everyPoint: true, pause: {target: {pick: 0}}}"}}, "spec.faults[2].pause.target.pick", `"0"`, "nothing would happen"},
	"pick of whoever":              {[]Edit{{"spec.faults.-", "{name: x, at: 1s, pause: {target: {pick: whoever}}}"}}, "spec.faults[2].pause.target.pick", `"whoever"`, "majority|minority"},
	"partition of nobody":          {[]Edit{{"spec.faults.-", "{name: x, at: 1s, partition: {}}"}}, "spec.faults[2].partition", "", "set exactly one of: groups; isolate; from and to"},
	"degrade that changes nothing": {[]Edit{{"spec.faults.-", "{name: x, at: 1s, degrade: {to: {replicas: [0]}}}"}}, "spec.faults[2].degrade", "", "changes nothing"},
	"jitter without a delay":       {[]Edit{{"spec.faults.-", "{name: x, at: 1s, everyPoint: true, degrade: {to: {replicas: [0]}, jitter: 5ms}}"}}, "spec.faults[2].degrade.jitter", `"5ms"`, "a delay of 0s only"},
	"degrade to a higher rate":     {[]Edit{{"spec.faults.-", "{name: x, at: 1s, everyPoint: true, degrade: {to: {replicas: [0]}, rate: 2Gbit}}"}}, "spec.faults[2].degrade.rate", `"2Gbit"`, "changes nothing"},
	"flap within the tolerance":    {[]Edit{{"spec.faults.-", "{name: x, at: 1s, for: 5s, partition: {isolate: {replicas: [0]}, flap: {period: 1s, cut: 30ms}}}"}}, "spec.faults[2].partition.flap.cut", `"30ms"`, "less than 100ms"},
	"unknown fault in a point":     {[]Edit{{"spec.sweep.0.points.1.faults", "[crsh]"}}, "spec.sweep[0].points[1].faults[0]", `"crsh"`, `did you mean "crash"?`},
	"figure that shows nothing":    {[]Edit{{"spec.figures", "[{name: x}]"}}, "spec.figures[0]", "", "must have one of stack, speedUp and percentiles"},
	"figure of two kinds":          {[]Edit{{"spec.figures", "[{name: x, percentiles: {}, speedUp: {over: {variant: ideal}}}]"}}, "spec.figures[0]", "", "must have one of stack, speedUp and percentiles"},
	"stack of one part":            {[]Edit{{"spec.figures", "[{name: x, stack: {parts: [a]}}]"}}, "spec.figures[0].stack.parts", "", "at least 2 items"},
	"stack of the unmeasured":      {[]Edit{{"spec.measurements", "[{name: fast, counter: f}]"}, {"spec.figures", "[{name: x, stack: {parts: [fast, slow]}}]"}}, "spec.figures[0].stack.parts[1]", `"slow"`, "there are: fast"},
	"speed-up over nothing":        {[]Edit{{"spec.figures", "[{name: x, speedUp: {over: {variant: idle}}}]"}}, "spec.figures[0].speedUp.over[variant]", `"idle"`, `there are: blink, ideal, one-down`},
	"unknown percentile":           {[]Edit{{"spec.figures", "[{name: x, percentiles: {of: [P42]}}]"}}, "spec.figures[0].percentiles.of[0]", `"P42"`, `"P95", "P99", "P999"`},
	"measurement of nothing":       {[]Edit{{"spec.measurements", "[{name: a}]"}}, "spec.measurements[0]", "", "must have exactly one of query, counter and use"},
	"measurement of two things":    {[]Edit{{"spec.measurements", "[{name: a, query: up, over: Last, counter: c}]"}}, "spec.measurements[0]", "", "must have exactly one of query, counter and use"},
	"query over no window":         {[]Edit{{"spec.measurements", "[{name: a, query: up}]"}}, "spec.measurements[0]", "", "over and query go together"},
	"counter over the window":      {[]Edit{{"spec.measurements", "[{name: a, counter: c, over: Mean}]"}}, "spec.measurements[0]", "", "over and query go together"},
	"query per counter":            {[]Edit{{"spec.measurements", "[{name: a, query: up, over: Last, per: c}]"}}, "spec.measurements[0]", "", "per goes with counter"},
	"series of no measurement":     {[]Edit{{"spec.reported", "[{name: r, metric: Measurement, unit: s, axis: variant, values: [{x: ideal, value: 1}]}]"}}, "spec.reported[0]", "", "measurement goes with metric: Measurement"},
	"unbounded sweep": {[]Edit{{"spec.sweep.-", "{axis: clients, values: [" + numbers(64) + "]}"}, {"spec.sweep.-", "{axis: batchSize, values: [" + numbers(64) + "]}"}},
		"spec.sweep", "variant (3) x clients (64) x batchSize (64)", "more than 1024 points"},
	"too many trials": {[]Edit{{"spec.sweep.-", "{axis: clients, values: [" + numbers(64) + "]}"}, {"spec.repetitions", "{min: 100}"}},
		"spec.repetitions.min", ": 100:", "at most 52 repetitions"},
	"two axes with one name":           {[]Edit{{"spec.sweep.-", "{axis: variant, points: [{name: a}]}"}}, "spec.sweep[1].axis", `"variant"`, "Duplicate value"},
	"axis with values and points":      {[]Edit{{"spec.sweep.0.values", "[1]"}}, "spec.sweep[0]", `"variant"`, "either values, points or a search, and one of them only"},
	"unknown axis":                     {[]Edit{{"spec.sweep.-", "{axis: client, values: [1]}"}}, "spec.sweep[1].axis", `"client"`, `did you mean "clients"?`},
	"axis called system":               {[]Edit{{"spec.sweep.-", "{axis: system, points: [{name: kv}]}"}}, "spec.sweep[1].axis", `"system"`, "spec.systems make that axis"},
	"axis value of wrong type":         {[]Edit{{"spec.sweep.-", "{axis: clients, values: [ten]}"}}, "spec.sweep[1].values[0]", `"ten"`, "must be an integer from 1 to 100000"},
	"unknown profile":                  {[]Edit{{"spec.profile", "smok"}, {"spec.profiles", "[{name: smoke}]"}}, "spec.profile", `"smok"`, "must be the name of one of profiles"},
	"profile of another axis":          {[]Edit{{"spec.profile", "smoke"}, {"spec.profiles", "[{name: smoke, sweep: [{axis: variants, points: [{name: a}]}]}]"}}, "spec.profiles[0].sweep[0].axis", `"variants"`, `did you mean "variant"?`},
	"search of an Open loop's clients": {[]Edit{{"spec.clients", "{loop: Open, rate: 10}"}, {"spec.sweep.-", "{axis: clients, search: {from: 20, to: 90, objective: {p99Latency: 5ms}}}"}}, "spec.sweep[1].search", `"clients"`, "search rate, or set"},
	"search of a Closed loop's rate":   {[]Edit{{"spec.sweep.-", "{axis: rate, search: {from: 20, to: 90, objective: {p99Latency: 5ms}}}"}}, "spec.sweep[1].search", `"rate"`, "search clients"},
	"search of a parameter":            {[]Edit{{"spec.sweep.-", "{axis: batchSize, search: {from: 20, to: 90, objective: {p99Latency: 5ms}}}"}}, "spec.sweep[1].search", `"batchSize"`, `supported values: "clients", "rate"`},
	"search for anything":              {[]Edit{{"spec.sweep.-", "{axis: clients, search: {from: 20, to: 90, objective: {}}}"}}, "spec.sweep[1].search.objective", ": 0:", "at least 1 properties"},
	"search without an end":            {[]Edit{{"spec.sweep.-", "{axis: clients, search: {from: 20, to: 20, objective: {p99Latency: 5ms}}}"}}, "spec.sweep[1].search.to", ": 20:", "must be more than from, 20"},
	"search of few clients":            {[]Edit{{"spec.sweep.-", "{axis: clients, search: {from: 10, to: 20, objective: {p99Latency: 5ms}}}"}}, "spec.sweep[1].search", `"from 10, to 20, precision 5%"`, "it takes a low of 20 or more, or a greater precision"},
	"search of great precision":        {[]Edit{{"spec.sweep.-", "{axis: clients, search: {from: 1000, to: 2000, precision: 0.1%, objective: {p99Latency: 5ms}}}"}}, "spec.sweep[1].search.precision", `"0.1%"`, "from 0.5% to 50%"},
	"search for a long latency":        {[]Edit{{"spec.sweep.-", "{axis: clients, search: {from: 20, to: 90, objective: {p99Latency: 2h}}}"}}, "spec.sweep[1].search.objective.p99Latency", `"2h"`, "from 1µs to 1h"},
	"search for goodput, Closed":       {[]Edit{{"spec.sweep.-", "{axis: clients, search: {from: 20, to: 90, objective: {goodput: 95%}}}"}}, "spec.sweep[1].search.objective.goodput", `"95%"`, "only an Open loop offers requests"},
	"search and repetitions until":     {[]Edit{{"spec.sweep.-", "{axis: clients, search: {from: 20, to: 90, objective: {p99Latency: 5ms}}}"}, {"spec.repetitions", "{min: 3, max: 5, until: {relativeCI: 5%}}"}}, "spec.repetitions.until", `"5%"`, "repetitions do not apply to a search"},
	"search and more repetitions":      {[]Edit{{"spec.sweep.-", "{axis: clients, search: {from: 20, to: 90, objective: {p99Latency: 5ms}}}"}, {"spec.additionalRepetitions", "1"}}, "spec.additionalRepetitions", ": 1:", "a search has no repetitions"},
	"search of very many trials":       {[]Edit{{"spec.sweep.-", "{axis: clients, search: {from: 20, to: 90, trials: 201, objective: {p99Latency: 5ms}}}"}}, "spec.sweep[1].search.trials", ": 201:", "less than or equal to 200"},
	"claim about no search":            {[]Edit{{"spec.claims", "[{name: c, statement: s, expr: \"capacity(variant='ideal') > 5\"}]"}}, "spec.claims[0].expr", "capacity", "no axis has one"},
	"claim's syntax":                   {[]Edit{{"spec.claims", "[{name: c, statement: s, expr: 'throughput(variant=ideal) >'}]"}}, "spec.claims[0].expr", "throughput(variant=ideal) >", "1:28, at the end"},
	"claim with a slip":                {[]Edit{{"spec.claims", "[{name: c, statement: s, expr: \"max_troughput() > 1\"}]"}}, "spec.claims[0].expr", "max_troughput", "1:1, at max_troughput: there is no function max_troughput; did you mean max_throughput?"},
	"claim about an unknown fault":     {[]Edit{{"spec.claims", "[{name: c, statement: s, expr: \"dip(fault='crsh', variant='ideal') < 1\"}]"}}, "spec.claims[0].expr", "crsh", "there is no fault crsh; did you mean crash?"},
	"claim that always holds":          {[]Edit{{"spec.claims", "[{name: c, statement: s, expr: 'max_throughput() >= 0'}]"}}, "spec.claims[0].expr", ">=", "holds whatever was measured"},
	"claim that cannot hold":           {[]Edit{{"spec.claims", "[{name: c, statement: s, expr: 'max_throughput() < 0'}]"}}, "spec.claims[0].expr", "<", "cannot hold, whatever was measured"},
	"claim of a thing and itself":      {[]Edit{{"spec.claims", "[{name: c, statement: s, expr: 'max_throughput() > max_throughput()'}]"}}, "spec.claims[0].expr", ">", "both sides are the same"},
	"claim of one or the other":        {[]Edit{{"spec.claims", "[{name: c, statement: s, expr: 'max_throughput() > 5 || max_throughput() < 9'}]"}}, "spec.claims[0].expr", "max_throughput() > 5 || max_throughput() < 9", "no result can refute it"},
	"tolerance of everything":          {[]Edit{{"spec.claims", "[{name: c, statement: s, expr: 'max_throughput()', expected: 1000, within: 100%}]"}}, "spec.claims[0].within", `"100%"`, "no measurement is too small"},
	"profile's tolerance of all":       {[]Edit{{"spec.claims", "[{name: c, statement: s, expr: 'max_throughput()', expected: 1000, within: 10%}]"}, {"spec.profiles", "[{name: smoke, claims: [{name: c, statement: t, within: 100%, widerBecause: a reason}]}]"}, {"spec.profile", "smoke"}}, "spec.claims[0].within", `"100%"`, "no measurement is too small"},
	"max below min":                    {[]Edit{{"spec.repetitions", "{min: 5, max: 3, until: {relativeCI: 5%}}"}}, "spec.repetitions.max", ": 3:", "must be min, 5, or more"},
	"max and no end":                   {[]Edit{{"spec.repetitions", "{min: 3, max: 5}"}}, "spec.repetitions.max", ": 5:", "add until, or remove max"},
	"until without max":                {[]Edit{{"spec.repetitions", "{min: 3, until: {relativeCI: 5%}}"}}, "spec.repetitions.max", "Required value", "until needs it: the most trials"},
	"until after two trials":           {[]Edit{{"spec.repetitions", "{min: 2, max: 5, until: {relativeCI: 5%}}"}}, "spec.repetitions.min", ": 2:", "until needs 3 or more"},
	"until a share":                    {[]Edit{{"spec.repetitions", "{min: 3, max: 5, until: {relativeCI: \"0.05\"}}"}}, "spec.repetitions.until.relativeCI", `"0.05"`, "%$"},
	"until nothing varies":             {[]Edit{{"spec.repetitions", "{min: 3, max: 5, until: {relativeCI: 0%}}"}}, "spec.repetitions.until.relativeCI", `"0%"`, "above 0%"},
	"until an unknown metric":          {[]Edit{{"spec.repetitions", "{min: 3, max: 5, until: {relativeCI: 5%, of: [Latency]}}"}}, "spec.repetitions.until.of[0]", `"Latency"`, "MeanLatency"},
	"claim on an unknown value":        {[]Edit{{"spec.claims", "[{name: c, statement: s, expr: \"throughput(variant='idael') > 1\"}]"}}, "spec.claims[0].expr", "idael", "ideal"},
	"claim without a tolerance":        {[]Edit{{"spec.claims", "[{name: c, statement: s, expr: 'x', reported: 4ms}]"}}, "spec.claims[0].within", "4ms", "such as 25%"},
	"profile's endless tolerance":      {[]Edit{{"spec.profiles", "[{name: smoke, claims: [{name: c, within: Inf%}]}]"}}, "spec.profiles[0].claims[0].within", `"Inf%"`, "|ns|us|"},
	"profile's tolerance of NaN":       {[]Edit{{"spec.profiles", "[{name: smoke, claims: [{name: c, within: NaN%}]}]"}}, "spec.profiles[0].claims[0].within", `"NaN%"`, "|ns|us|"},
	"regions that do not add up":       {[]Edit{{"spec.topology.regions", "[{name: east, replicas: 2}, {name: west, replicas: 2}]"}}, "spec.topology.regions", `"4 replicas"`, "must add up to 5"},
	"region without nodes":             {[]Edit{{"spec.placement", "{byRegion: {values: [{region: mars, value: m}]}}"}}, "spec.placement.byRegion.values[local]", "Required value", "add {region: local, value: the nodes' value of topology.kubernetes.io/region}"},
	"regions by the label of pools":    {[]Edit{{"spec.placement", "{byRegion: {label: assay.dev/pool}}"}}, "spec.placement.byRegion.label", `"assay.dev/pool"`, "name the label that says its region"},
	"unknown spread":                   {[]Edit{{"spec.placement", "{spread: Always}"}}, "spec.placement.spread", `"Always"`, `"Preferred", "Required"`},
	"capability that nobody allows":    {[]Edit{{"spec.systems", "[{name: kv-admin}]"}}, "spec.systems[0].name", "spec.replicas.containers[0].capabilities[0]: SYS_ADMIN", "it allows IPC_LOCK. The owner of the cluster can add to them"},
	"open loop without a rate":         {[]Edit{{"spec.clients", "{loop: Open}"}}, "spec.clients.rate", "Required value", `add an axis "rate"`},
	"closed loop with arrivals":        {[]Edit{{"spec.clients.arrivals", "Poisson"}}, "spec.clients.arrivals", `"Poisson"`, "remove it or set loop: Open"},
	"fewer clients than pods":          {[]Edit{{"spec.clients.nodes", "11"}}, "spec.clients.nodes", ": 10:", "at least as many clients as pods"},
	"name too long":                    {[]Edit{{"metadata.name", "a-name-of-more-than-twenty-four-letters"}}, "metadata.name", `"a-name-of-more-than-twenty-four-letters"`, "at most 24 characters"},
	"name with a dot":                  {[]Edit{{"metadata.name", "fig.5"}}, "metadata.name", `"fig.5"`, "letters, digits and dashes"},
	"misspelt field":                   {[]Edit{{"spec.schedule.warmup", "5s"}}, "spec.schedule.warmup", `"spec.schedule.warmup"`, "unknown field"},
	"template fails here":              {[]Edit{{"spec.systems", "[{name: kv-index}]"}}, "spec.systems[0].name", `"kv-index"`, "spec.replicas.containers[0].command[0]"},
}

// WrongSystems are edits of the System of config/samples/systems/driver.yaml.
var WrongSystems = map[string]Wrong{
	"template's syntax":             {[]Edit{{"spec.replicas.containers.0.command", "['{{.Self.Index']"}}, "spec.replicas.containers[0].command[0]", `"{{.Self.Index"`, "must be a Go template"},
	"template's function":           {[]Edit{{"spec.clients.containers.0.command", "['{{plus 1 2}}']"}}, "spec.clients.containers[0].command[0]", `"{{plus 1 2}}"`, "docs/reference/templates.md"},
	"image missing":                 {[]Edit{{"spec.replicas.containers.0.image", ""}}, "spec.replicas.containers[0].image", "Required value", "image"},
	"image empty":                   {[]Edit{{"spec.replicas.containers.0.image", `""`}}, "spec.replicas.containers[0].image", `""`, "at least 1 chars long"},
	"empty command":                 {[]Edit{{"spec.replicas.containers.0.command", "[]"}}, "spec.replicas.containers[0].command", ": 0:", "should have at least 1 items"},
	"duplicate parameter":           {[]Edit{{"spec.parameters.-", "{name: fastPath, type: Boolean, doc: Again.}"}}, "spec.parameters[5]", `{"name":"fastPath"}`, "Duplicate value"},
	"parameter of the workload too": {[]Edit{{"spec.parameters.-", "{name: keys, type: Integer, doc: Again.}"}}, "spec.workloads[0].parameters[0].name", `"keys"`, "call the parameter otherwise"},
	"default of the wrong type":     {[]Edit{{"spec.parameters.0.default", "eight"}}, "spec.parameters[0].default", `"eight"`, "takes an Integer, at least 1, at most 1024"},
	"bad log pattern":               {[]Edit{{"spec.replicas.ready.0", "{log: {pattern: '(ready'}}"}}, "spec.replicas.ready[0].log.pattern", `"(ready"`, "must be a regular expression as RE2 has them"},
	"gate on an undeclared port":    {[]Edit{{"spec.replicas.ready.0", "{port: pear}"}}, "spec.replicas.ready[0].port", `"pear"`, `did you mean "peer"?`},
	"gate of two kinds":             {[]Edit{{"spec.replicas.ready.0.log", "{pattern: x}"}}, "spec.replicas.ready[0]", "log port is set", "set exactly one of log, port, http, command"},
	"count that is no number":       {[]Edit{{"spec.replicas.count", "f > 1"}}, "spec.replicas.count", `"f > 1"`, "such as 3*f+1"},
	"count over a wrong name":       {[]Edit{{"spec.replicas.count", "2*n+1"}}, "spec.replicas.count", `"2*n+1"`, "a CEL expression over f"},
	"long readyTimeout":             {[]Edit{{"spec.replicas.readyTimeout", "3h"}}, "spec.replicas.readyTimeout", `"3h"`, "must be from 1s to 2h"},
	"container named agent":         {[]Edit{{"spec.replicas.containers.0.name", "agent"}}, "spec.replicas.containers[0].name", `"agent"`, "taken by Assay's own container"},
	"two containers with a driver":  {[]Edit{{"spec.clients.containers.-", "{name: two, image: i, command: [c]}"}}, "spec.clients.containers", "more than one", "with a driver there is exactly one container"},
	"client without results":        {[]Edit{{"spec.clients.driver", ""}}, "spec.clients.results", "Required value", "or set driver"},
	"file without a path":           {[]Edit{{"spec.clients.results", "{format: Assay, source: File}"}}, "spec.clients.results", "source is File", "path is needed when source is File"},
	"summary as a format":           {[]Edit{{"spec.clients.results", "{format: YCSB, source: Stdout}"}}, "spec.clients.results.format", "YCSB is not a format of a trial", "can neither be cut to the window nor merged over clients"},
	"histograms that are not said":  {[]Edit{{"spec.clients.results", "{format: HdrHistogram, source: Stdout}"}}, "spec.clients.results", "format is HdrHistogram", "histograms are needed for the format HdrHistogram"},
	"summary that is not said":      {[]Edit{{"spec.clients.results", "{format: Summary, source: Stdout}"}}, "spec.clients.results", "format is Summary", "summary is needed for the format Summary"},
	"summary of no use":             {[]Edit{{"spec.clients.results", "{format: Assay, source: Stdout, summary: {numbers: [{name: Committed, pattern: x}]}}"}}, "spec.clients.results", "format is Assay", "and only for that"},
	"summary without a throughput":  {[]Edit{{"spec.clients.results", "{format: Summary, source: Stdout, summary: {numbers: [{name: Committed, pattern: '(?P<value>x)'}]}}"}}, "spec.clients.results.summary.numbers", "", "Throughput is missing, and so is RunTime"},
	"count and rate of one number":  {[]Edit{{"spec.clients.results", "{format: Summary, source: Stdout, summary: {numbers: [{name: Committed, pattern: '(?P<value>[0-9]+) NOPM'}, {name: Throughput, unit: /min, pattern: '(?P<value>[0-9]+) NOPM'}]}}"}}, "spec.clients.results.summary.numbers", "", "one number is not both a count and a rate"},
	"rate by the minute":            {[]Edit{{"spec.clients.results", "{format: Summary, source: Stdout, summary: {numbers: [{name: Throughput, pattern: '(?P<value>[0-9]+) NOPM'}]}}"}}, "spec.clients.results.summary.numbers[0].pattern", "NOPM", "looks like a rate per minute: set unit to /min"},
	"time without its unit":         {[]Edit{{"spec.clients.results", "{format: Summary, source: Stdout, summary: {numbers: [{name: Throughput, pattern: 'rate (?P<value>[0-9]+)'}, {name: P99Latency, pattern: 'p99 (?P<value>[0-9]+) us'}]}}"}}, "spec.clients.results.summary.numbers[1].pattern", "p99", "reads a time without its unit"},
	"group of a number for nobody":  {[]Edit{{"spec.clients.results", "{format: Summary, source: Stdout, summary: {numbers: [{name: Throughput, pattern: '(?P<op>[a-z]+) (?P<value>[0-9]+)'}]}}"}}, "spec.clients.results.summary.numbers[0].pattern", "op", "has the group op, which nothing reads"},
	"group of a line for nobody":    {[]Edit{{"spec.clients.results", "{format: RegularExpression, source: Stdout, records: {pattern: '(?P<how>[A-Z]+),(?P<e>[0-9]+),(?P<l>[0-9]+)', latency: {from: l, unit: us}, instant: {from: e, unit: ms}}}"}}, "spec.clients.results.records.pattern", "how", "has the group how, which nothing reads"},
	"summary without its group":     {[]Edit{{"spec.clients.results", "{format: Summary, source: Stdout, summary: {numbers: [{name: Committed, pattern: x}, {name: RunTime, pattern: '(?P<value>x)', unit: s}]}}"}}, "spec.clients.results.summary.numbers[0].pattern", `"x"`, "has no group (?P<value>...)"},
	"unit of a count":               {[]Edit{{"spec.clients.results", "{format: Summary, source: Stdout, summary: {numbers: [{name: Committed, pattern: '(?P<value>x)', unit: s}, {name: RunTime, pattern: '(?P<value>x)', unit: s}]}}"}}, "spec.clients.results.summary.numbers", "", "the unit of Committed is \"s\"; it must be k, M, G or none"},
	"summary's unknown number":      {[]Edit{{"spec.clients.results", "{format: Summary, source: Stdout, summary: {numbers: [{name: P100Latency, pattern: x}]}}"}}, "spec.clients.results.summary.numbers[0].name", "P100Latency is no number of a summary", "a percentile such as P95Latency"},
	"number with pattern and path":  {[]Edit{{"spec.clients.results", "{format: Summary, source: Stdout, summary: {numbers: [{name: Throughput, pattern: x, path: $.x}]}}"}}, "spec.clients.results.summary.numbers[0]", "", "must have either pattern or path"},
	"number by no path":             {[]Edit{{"spec.clients.results", "{format: Summary, source: Stdout, summary: {numbers: [{name: Throughput, path: x}]}}"}}, "spec.clients.results.summary.numbers[0].path", `"x"`, "must be a JSONPath"},
	"latency of an unknown unit":    {[]Edit{{"spec.clients.results", "{format: Summary, source: Stdout, summary: {numbers: [{name: Throughput, pattern: '(?P<value>x)'}, {name: P99Latency, pattern: '(?P<value>x)', unit: minutes}]}}"}}, "spec.clients.results.summary.numbers", "", "the unit of P99Latency is \"minutes\""},
	"latency from and since":        {[]Edit{{"spec.clients.results", "{format: CSV, source: Stdout, records: {latency: {from: l, unit: us, since: b}, instant: {from: e, unit: ms}}}"}}, "spec.clients.results.records.latency", "", "must have either from and unit, or since"},
	"arrival with a unit":           {[]Edit{{"spec.clients.results", "{format: CSV, source: Stdout, records: {latency: {from: l, unit: us}, instant: {from: Arrival, unit: ms}}}"}}, "spec.clients.results.records.instant", "from is Arrival", "unit is needed, unless from is Arrival"},
	"instant without a unit":        {[]Edit{{"spec.clients.results", "{format: CSV, source: Stdout, records: {latency: {from: l, unit: us}, instant: {from: e}}}"}}, "spec.clients.results.records.instant", "from is e", "unit is needed, unless from is Arrival"},
	"arrival in a file":             {[]Edit{{"spec.clients.results", "{format: CSV, source: File, path: /assay/out/x, records: {latency: {from: l, unit: us}, instant: {from: Arrival}}}"}}, "spec.clients.results", "source is File", "the arrival of lines is known on Stdout and Stderr only"},
	"beginning by arrival":          {[]Edit{{"spec.clients.results", "{format: CSV, source: Stdout, records: {latency: {from: l, unit: us}, instant: {from: Arrival, of: Begin}}}"}}, "spec.clients.results.records", "", "instant must be of End"},
	"records that are not said":     {[]Edit{{"spec.clients.results", "{format: CSV, source: Stdout}"}}, "spec.clients.results", "format is CSV", "records are needed for RegularExpression, CSV and JSONLines"},
	"records of no use":             {[]Edit{{"spec.clients.results", "{format: Assay, source: Stdout, records: {latency: {from: l, unit: us}, instant: {from: e, unit: ms}}}"}}, "spec.clients.results", "format is Assay", "and only for those"},
	"unit of a latency":             {[]Edit{{"spec.clients.results", "{format: CSV, source: Stdout, records: {latency: {from: l, unit: minutes}, instant: {from: e, unit: ms}}}"}}, "spec.clients.results.records.latency.unit", `"minutes"`, `"ns", "us", "ms", "s"`},
	"clock of the client's own":     {[]Edit{{"spec.clients.results", "{format: CSV, source: Stdout, records: {latency: {from: l, unit: us}, instant: {from: e, unit: ms, clock: Start}}}"}}, "spec.clients.results.records.instant.clock", `"Start"`, `"Wall", "Monotonic"`},
	"separator of two characters":   {[]Edit{{"spec.clients.results", "{format: CSV, source: Stdout, records: {separator: '::', latency: {from: l, unit: us}, instant: {from: e, unit: ms}}}"}}, "spec.clients.results.records.separator", "", "than 1"},
	"where of a pattern":            {[]Edit{{"spec.clients.results", "{format: RegularExpression, source: Stdout, records: {where: {$.a: b}, pattern: '(?P<e>[0-9]+),(?P<l>[0-9]+)', latency: {from: l, unit: us}, instant: {from: e, unit: ms}}}"}}, "spec.clients.results.records.where", "", "must not be set but for the format JSONLines"},
	"pattern of JSON":               {[]Edit{{"spec.clients.results", "{format: JSONLines, source: Stdout, records: {pattern: x, latency: {from: $.l, unit: us}, instant: {from: $.e, unit: ms}}}"}}, "spec.clients.results.records.pattern", `"x"`, "whose members have paths"},
	"columns of JSON":               {[]Edit{{"spec.clients.results", "{format: JSONLines, source: Stdout, records: {separator: ';', latency: {from: $.l, unit: us}, instant: {from: $.e, unit: ms}}}"}}, "spec.clients.results.records.separator", `";"`, "but for the format CSV"},
	"member without a path":         {[]Edit{{"spec.clients.results", "{format: JSONLines, source: Stdout, records: {latency: {from: latency, unit: us}, instant: {from: $.e, unit: ms}}}"}}, "spec.clients.results.records", `"latency"`, "must be a path of names, such as $.latency"},
	"where by an index":             {[]Edit{{"spec.clients.results", "{format: JSONLines, source: Stdout, records: {where: {'$.a[0]': b}, latency: {from: $.l, unit: us}, instant: {from: $.e, unit: ms}}}"}}, "spec.clients.results.records.where[$.a[0]]", "", "must be a path of names"},
	"pattern without its groups":    {[]Edit{{"spec.clients.results", "{format: RegularExpression, source: Stdout, records: {pattern: x, latency: {from: l, unit: us}, instant: {from: e, unit: ms}}}"}}, "spec.clients.results.records.pattern", `"x"`, "has no group (?P<l>...)"},
	"role found in two ways":        {[]Edit{{"spec.roles", "[{name: leader, log: {gained: x, lost: z}, command: [x]}]"}}, "spec.roles[0]", "log command is set", "set exactly one of log, http, command"},
	"volume in Assay's directory":   {[]Edit{{"spec.replicas.volumes", "[{name: v, mountPath: /assay/x, medium: Memory, size: 1Mi}]"}}, "spec.replicas.volumes[0].mountPath", `"/assay/x"`, "such as /data"},
	"storage class of memory":       {[]Edit{{"spec.replicas.volumes", "[{name: v, mountPath: /v, medium: Memory, size: 1Mi, storageClass: local}]"}}, "spec.replicas.volumes[0]", "medium PersistentVolumeClaim only", "remove it, or change the medium"},
	"capability without root":       {[]Edit{{"spec.replicas.containers.0.capabilities", "[IPC_LOCK]"}}, "spec.replicas.containers[0]", "capabilities reach processes of root only", "set runAsUser: 0"},
	"capability with its prefix":    {[]Edit{{"spec.replicas.containers.0.runAsUser", "0"}, {"spec.replicas.containers.0.capabilities", "[cap_ipc_lock]"}}, "spec.replicas.containers[0].capabilities[0]", `"cap_ipc_lock"`, "^[A-Z]"},
	"step of a component's shards":  {[]Edit{{"spec.steps", "[{name: s, runsOn: FirstReplicaOfEachShard, component: proxy, command: [c]}]"}}, "spec.steps[0]", "with component", "runsOn is EveryReplica"},
	"check of a component, unknown": {[]Edit{{"spec.checks", "[{name: s, runsOn: EveryReplica, component: proxy, command: [c]}]"}}, "spec.checks[0].component", `"proxy"`, "there are none"},
	"huge pages of no size":         {[]Edit{{"spec.replicas.volumes", "[{name: v, mountPath: /v, medium: HugePages, size: 1Mi}]"}}, "spec.replicas.volumes[0].medium", `"HugePages"`, "such as resources.limits.hugepages-2Mi"},
	"name too long":                 {[]Edit{{"metadata.name", strings.Repeat("a", 41)}}, "metadata.name", strings.Repeat("a", 41), "at most 40 characters"},
}

func numbers(n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(strconv.Itoa(i + 10))
	}
	return b.String()
}

// counters makes n measurements.
func counters(n int) string {
	var all []string
	for i := range n {
		all = append(all, "{name: m"+strconv.Itoa(i)+", counter: c}")
	}
	return strings.Join(all, ", ")
}
