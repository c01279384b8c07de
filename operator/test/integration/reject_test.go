package integration

import (
	"strconv"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"assay.dev/assay/operator/internal/testkit/testenv"
)

// edit puts a value at a path.
type edit struct{ path, value string }

// wrong is a specification that cannot work: a valid one with edits. The refusal must name the
// field, the value that is wrong and what would be right.
type wrong struct {
	edits               []edit
	field, value, right string
}

var wrongExperiments = map[string]wrong{
	"unknown parameter":            {[]edit{{"spec.parameters", "{fastPth: true}"}}, "spec.parameters[fastPth]", `"true"`, `did you mean "fastPath"?`},
	"parameter of wrong type":      {[]edit{{"spec.parameters", "{batchSize: lots}"}}, "spec.parameters[batchSize]", `"lots"`, "takes an Integer, at least 1, at most 1024"},
	"parameter not allowed":        {[]edit{{"spec.parameters", "{distribution: zipfian}"}}, "spec.parameters[distribution]", `"zipfian"`, "one of: uniform, zipf"},
	"parameter out of bounds":      {[]edit{{"spec.workload.parameters", "{keys: 0}"}}, "spec.workload.parameters[keys]", `"0"`, "at least 1"},
	"workload's parameter":         {[]edit{{"spec.workload.parameters", "{key: 5}"}}, "spec.workload.parameters[key]", `"5"`, `did you mean "keys"?`},
	"unknown workload":             {[]edit{{"spec.workload.name", "read-wriet"}}, "spec.workload.name", `"read-wriet"`, `did you mean "read-write"?`},
	"negative measure":             {[]edit{{"spec.schedule.measure", "-20s"}}, "spec.schedule.measure", `"-20s"`, "must be from 1s to 24h"},
	"measure without a unit":       {[]edit{{"spec.schedule.measure", `"20"`}}, "spec.schedule.measure", `"20"`, "ns|us|ms|s|m|h"},
	"fault on a missing replica":   {[]edit{{"spec.faults.0.nodeKill.target.replicas", "[5]"}}, "spec.faults[0].nodeKill.target.replicas[0]", ": 5:", "2*f+1 = 5 replicas in a shard for f = 2: 0 to 4"},
	"fault on a missing shard":     {[]edit{{"spec.faults.1.nodeKill.target.shards", "[2]"}}, "spec.faults[1].nodeKill.target.shards[0]", ": 2:", "there are 2 shards: 0 to 1"},
	"fault in a missing region":    {[]edit{{"spec.faults.0.nodeKill.target", "{regions: [locl]}"}}, "spec.faults[0].nodeKill.target.regions[0]", `"locl"`, `did you mean "local"?`},
	"fault after the schedule":     {[]edit{{"spec.faults.0.at", "22s"}}, "spec.faults[0].at", `"22s"`, "to before 22s"},
	"fault before the schedule":    {[]edit{{"spec.faults.0.at", "-5.1s"}}, "spec.faults[0].at", `"-5.1s"`, "from -5s"},
	"fault without a target":       {[]edit{{"spec.faults.0.nodeKill.target", "{shards: [0]}"}}, "spec.faults[0].nodeKill.target", "replicas", "none of replicas, regions, role, pick, component is set"},
	"fault that does nothing":      {[]edit{{"spec.faults.0.nodeKill", ""}}, "spec.faults[0]", "", "set exactly one of nodeKill"},
	"link both ways and one way":   {[]edit{{"spec.network", "{links: [{between: [a, b], from: a, to: b}]}"}}, "spec.network.links[0]", "", "set either between (both directions), or from and to"},
	"round trip in one direction":  {[]edit{{"spec.network", "{links: [{from: a, to: b, rtt: 1ms}]}"}}, "spec.network.links[0].rtt", "", "use it with between, or set delay"},
	"round trip and delay":         {[]edit{{"spec.network", "{links: [{between: [a, b], rtt: 1ms, delay: 1ms}]}"}}, "spec.network.links[0].delay", "", "set either rtt"},
	"loss without a percent sign":  {[]edit{{"spec.network", "{links: [{from: a, to: b, loss: \"0.1\"}]}"}}, "spec.network.links[0].loss", `"0.1"`, "%$"},
	"unknown network":              {[]edit{{"spec.network", "{profile: wan}"}}, "spec.network.profile", `"wan"`, `"regional", "continental", "aws-6"`},
	"link to an unknown region":    {[]edit{{"spec.network", "{links: [{from: local, to: mars, delay: 1ms}]}"}}, "spec.network.links[0]", "mars", "there are: local"},
	"fault of two kinds":           {[]edit{{"spec.faults.-", "{name: x, at: 1s, pause: {target: {replicas: [0]}}, degrade: {to: {replicas: [0]}, loss: 1%}}"}}, "spec.faults[2]", "pause degrade is set", "set exactly one of nodeKill, pause"},
	"clients that turn bad at 1s":  {[]edit{{"spec.faults.-", "{name: x, at: 1s, clientBehavior: {share: 10%, parameters: {batchSize: 2}}}"}}, "spec.faults[2].at", "", "must not be set"},
	"repeat without an end":        {[]edit{{"spec.faults.-", "{name: x, at: 1s, repeat: {every: 1s, times: 2}, pause: {target: {replicas: [0]}}}"}}, "spec.faults[2].for", "", "is needed with repeat"},
	"pick of nothing":              {[]edit{{"spec.faults.-", "{name: x, at: 1s, everyPoint: true, pause: {target: {pick: 0}}}"}}, "spec.faults[2].pause.target.pick", `"0"`, "nothing would happen"},
	"pick of whoever":              {[]edit{{"spec.faults.-", "{name: x, at: 1s, pause: {target: {pick: whoever}}}"}}, "spec.faults[2].pause.target.pick", `"whoever"`, "majority|minority"},
	"partition of nobody":          {[]edit{{"spec.faults.-", "{name: x, at: 1s, partition: {}}"}}, "spec.faults[2].partition", "", "set exactly one of: groups; isolate; from and to"},
	"degrade that changes nothing": {[]edit{{"spec.faults.-", "{name: x, at: 1s, degrade: {to: {replicas: [0]}}}"}}, "spec.faults[2].degrade", "", "changes nothing"},
	"jitter without a delay":       {[]edit{{"spec.faults.-", "{name: x, at: 1s, everyPoint: true, degrade: {to: {replicas: [0]}, jitter: 5ms}}"}}, "spec.faults[2].degrade.jitter", `"5ms"`, "a delay of 0s only"},
	"degrade to a higher rate":     {[]edit{{"spec.faults.-", "{name: x, at: 1s, everyPoint: true, degrade: {to: {replicas: [0]}, rate: 2Gbit}}"}}, "spec.faults[2].degrade.rate", `"2Gbit"`, "changes nothing"},
	"flap within the tolerance":    {[]edit{{"spec.faults.-", "{name: x, at: 1s, for: 5s, partition: {isolate: {replicas: [0]}, flap: {period: 1s, cut: 30ms}}}"}}, "spec.faults[2].partition.flap.cut", `"30ms"`, "less than 100ms"},
	"unknown fault in a point":     {[]edit{{"spec.sweep.0.points.1.faults", "[crsh]"}}, "spec.sweep[0].points[1].faults[0]", `"crsh"`, `did you mean "crash"?`},
	"figure that shows nothing":    {[]edit{{"spec.figures", "[{name: x}]"}}, "spec.figures[0]", "", "must have one of stack, speedUp and percentiles"},
	"figure of two kinds":          {[]edit{{"spec.figures", "[{name: x, percentiles: {}, speedUp: {over: {variant: ideal}}}]"}}, "spec.figures[0]", "", "must have one of stack, speedUp and percentiles"},
	"stack of one part":            {[]edit{{"spec.figures", "[{name: x, stack: {parts: [a]}}]"}}, "spec.figures[0].stack.parts", "", "at least 2 items"},
	"stack of the unmeasured":      {[]edit{{"spec.measurements", "[{name: fast, counter: f}]"}, {"spec.figures", "[{name: x, stack: {parts: [fast, slow]}}]"}}, "spec.figures[0].stack.parts[1]", `"slow"`, "there are: fast"},
	"speed-up over nothing":        {[]edit{{"spec.figures", "[{name: x, speedUp: {over: {variant: idle}}}]"}}, "spec.figures[0].speedUp.over[variant]", `"idle"`, `there are: blink, ideal, one-down`},
	"unknown percentile":           {[]edit{{"spec.figures", "[{name: x, percentiles: {of: [P42]}}]"}}, "spec.figures[0].percentiles.of[0]", `"P42"`, `"P95", "P99", "P999"`},
	"measurement of nothing":       {[]edit{{"spec.measurements", "[{name: a}]"}}, "spec.measurements[0]", "", "must have either query or counter"},
	"measurement of two things":    {[]edit{{"spec.measurements", "[{name: a, query: up, over: Last, counter: c}]"}}, "spec.measurements[0]", "", "must have either query or counter"},
	"query over no window":         {[]edit{{"spec.measurements", "[{name: a, query: up}]"}}, "spec.measurements[0]", "", "over and query go together"},
	"counter over the window":      {[]edit{{"spec.measurements", "[{name: a, counter: c, over: Mean}]"}}, "spec.measurements[0]", "", "over and query go together"},
	"query per counter":            {[]edit{{"spec.measurements", "[{name: a, query: up, over: Last, per: c}]"}}, "spec.measurements[0]", "", "per goes with counter"},
	"series of no measurement":     {[]edit{{"spec.reported", "[{name: r, metric: Measurement, unit: s, axis: variant, values: [{x: ideal, value: 1}]}]"}}, "spec.reported[0]", "", "measurement goes with metric: Measurement"},
	"unbounded sweep": {[]edit{{"spec.sweep.-", "{axis: clients, values: [" + numbers(64) + "]}"}, {"spec.sweep.-", "{axis: batchSize, values: [" + numbers(64) + "]}"}},
		"spec.sweep", "variant (3) x clients (64) x batchSize (64)", "more than 1024 points"},
	"too many trials": {[]edit{{"spec.sweep.-", "{axis: clients, values: [" + numbers(64) + "]}"}, {"spec.repetitions", "{min: 100}"}},
		"spec.repetitions.min", ": 100:", "at most 52 repetitions"},
	"two axes with one name":           {[]edit{{"spec.sweep.-", "{axis: variant, points: [{name: a}]}"}}, "spec.sweep[1].axis", `"variant"`, "Duplicate value"},
	"axis with values and points":      {[]edit{{"spec.sweep.0.values", "[1]"}}, "spec.sweep[0]", `"variant"`, "either values, points or a search, and one of them only"},
	"unknown axis":                     {[]edit{{"spec.sweep.-", "{axis: client, values: [1]}"}}, "spec.sweep[1].axis", `"client"`, `did you mean "clients"?`},
	"axis called system":               {[]edit{{"spec.sweep.-", "{axis: system, points: [{name: kv}]}"}}, "spec.sweep[1].axis", `"system"`, "spec.systems make that axis"},
	"axis value of wrong type":         {[]edit{{"spec.sweep.-", "{axis: clients, values: [ten]}"}}, "spec.sweep[1].values[0]", `"ten"`, "must be an integer from 1 to 100000"},
	"unknown profile":                  {[]edit{{"spec.profile", "smok"}, {"spec.profiles", "[{name: smoke}]"}}, "spec.profile", `"smok"`, "must be the name of one of profiles"},
	"profile of another axis":          {[]edit{{"spec.profile", "smoke"}, {"spec.profiles", "[{name: smoke, sweep: [{axis: variants, points: [{name: a}]}]}]"}}, "spec.profiles[0].sweep[0].axis", `"variants"`, `did you mean "variant"?`},
	"search of an Open loop's clients": {[]edit{{"spec.clients", "{loop: Open, rate: 10}"}, {"spec.sweep.-", "{axis: clients, search: {from: 20, to: 90, objective: {p99Latency: 5ms}}}"}}, "spec.sweep[1].search", `"clients"`, "search rate, or set"},
	"search of a Closed loop's rate":   {[]edit{{"spec.sweep.-", "{axis: rate, search: {from: 20, to: 90, objective: {p99Latency: 5ms}}}"}}, "spec.sweep[1].search", `"rate"`, "search clients"},
	"search of a parameter":            {[]edit{{"spec.sweep.-", "{axis: batchSize, search: {from: 20, to: 90, objective: {p99Latency: 5ms}}}"}}, "spec.sweep[1].search", `"batchSize"`, `supported values: "clients", "rate"`},
	"search for anything":              {[]edit{{"spec.sweep.-", "{axis: clients, search: {from: 20, to: 90, objective: {}}}"}}, "spec.sweep[1].search.objective", ": 0:", "at least 1 properties"},
	"search without an end":            {[]edit{{"spec.sweep.-", "{axis: clients, search: {from: 20, to: 20, objective: {p99Latency: 5ms}}}"}}, "spec.sweep[1].search.to", ": 20:", "must be more than from, 20"},
	"search of few clients":            {[]edit{{"spec.sweep.-", "{axis: clients, search: {from: 10, to: 20, objective: {p99Latency: 5ms}}}"}}, "spec.sweep[1].search", `"from 10, to 20, precision 5%"`, "it takes a low of 20 or more, or a greater precision"},
	"search of great precision":        {[]edit{{"spec.sweep.-", "{axis: clients, search: {from: 1000, to: 2000, precision: 0.1%, objective: {p99Latency: 5ms}}}"}}, "spec.sweep[1].search.precision", `"0.1%"`, "from 0.5% to 50%"},
	"search for a long latency":        {[]edit{{"spec.sweep.-", "{axis: clients, search: {from: 20, to: 90, objective: {p99Latency: 2h}}}"}}, "spec.sweep[1].search.objective.p99Latency", `"2h"`, "from 1µs to 1h"},
	"search for goodput, Closed":       {[]edit{{"spec.sweep.-", "{axis: clients, search: {from: 20, to: 90, objective: {goodput: 95%}}}"}}, "spec.sweep[1].search.objective.goodput", `"95%"`, "only an Open loop offers requests"},
	"search and repetitions until":     {[]edit{{"spec.sweep.-", "{axis: clients, search: {from: 20, to: 90, objective: {p99Latency: 5ms}}}"}, {"spec.repetitions", "{min: 3, max: 5, until: {relativeCI: 5%}}"}}, "spec.repetitions.until", `"5%"`, "repetitions do not apply to a search"},
	"search and more repetitions":      {[]edit{{"spec.sweep.-", "{axis: clients, search: {from: 20, to: 90, objective: {p99Latency: 5ms}}}"}, {"spec.additionalRepetitions", "1"}}, "spec.additionalRepetitions", ": 1:", "a search has no repetitions"},
	"search of very many trials":       {[]edit{{"spec.sweep.-", "{axis: clients, search: {from: 20, to: 90, trials: 201, objective: {p99Latency: 5ms}}}"}}, "spec.sweep[1].search.trials", ": 201:", "less than or equal to 200"},
	"claim about no search":            {[]edit{{"spec.claims", "[{name: c, statement: s, expr: \"capacity(variant='ideal') > 5\"}]"}}, "spec.claims[0].expr", "capacity", "no axis has one"},
	"claim's syntax":                   {[]edit{{"spec.claims", "[{name: c, statement: s, expr: 'throughput(variant=ideal) >'}]"}}, "spec.claims[0].expr", "throughput(variant=ideal) >", "1:28, at the end"},
	"claim with a slip":                {[]edit{{"spec.claims", "[{name: c, statement: s, expr: \"max_troughput() > 1\"}]"}}, "spec.claims[0].expr", "max_troughput", "1:1, at max_troughput: there is no function max_troughput; did you mean max_throughput?"},
	"claim about an unknown fault":     {[]edit{{"spec.claims", "[{name: c, statement: s, expr: \"dip(fault='crsh', variant='ideal') < 1\"}]"}}, "spec.claims[0].expr", "crsh", "there is no fault crsh; did you mean crash?"},
	"max below min":                    {[]edit{{"spec.repetitions", "{min: 5, max: 3, until: {relativeCI: 5%}}"}}, "spec.repetitions.max", ": 3:", "must be min, 5, or more"},
	"max and no end":                   {[]edit{{"spec.repetitions", "{min: 3, max: 5}"}}, "spec.repetitions.max", ": 5:", "add until, or remove max"},
	"until without max":                {[]edit{{"spec.repetitions", "{min: 3, until: {relativeCI: 5%}}"}}, "spec.repetitions.max", "Required value", "until needs it: the most trials"},
	"until after two trials":           {[]edit{{"spec.repetitions", "{min: 2, max: 5, until: {relativeCI: 5%}}"}}, "spec.repetitions.min", ": 2:", "until needs 3 or more"},
	"until a share":                    {[]edit{{"spec.repetitions", "{min: 3, max: 5, until: {relativeCI: \"0.05\"}}"}}, "spec.repetitions.until.relativeCI", `"0.05"`, "%$"},
	"until nothing varies":             {[]edit{{"spec.repetitions", "{min: 3, max: 5, until: {relativeCI: 0%}}"}}, "spec.repetitions.until.relativeCI", `"0%"`, "above 0%"},
	"until an unknown metric":          {[]edit{{"spec.repetitions", "{min: 3, max: 5, until: {relativeCI: 5%, of: [Latency]}}"}}, "spec.repetitions.until.of[0]", `"Latency"`, "MeanLatency"},
	"claim on an unknown value":        {[]edit{{"spec.claims", "[{name: c, statement: s, expr: \"throughput(variant='idael') > 1\"}]"}}, "spec.claims[0].expr", "idael", "ideal"},
	"claim without a tolerance":        {[]edit{{"spec.claims", "[{name: c, statement: s, expr: 'x', reported: 4ms}]"}}, "spec.claims[0].within", "4ms", "such as 25%"},
	"profile's endless tolerance":      {[]edit{{"spec.profiles", "[{name: smoke, claims: [{name: c, within: Inf%}]}]"}}, "spec.profiles[0].claims[0].within", `"Inf%"`, "(%|ns|"},
	"profile's tolerance of NaN":       {[]edit{{"spec.profiles", "[{name: smoke, claims: [{name: c, within: NaN%}]}]"}}, "spec.profiles[0].claims[0].within", `"NaN%"`, "(%|ns|"},
	"regions that do not add up":       {[]edit{{"spec.topology.regions", "[{name: east, replicas: 2}, {name: west, replicas: 2}]"}}, "spec.topology.regions", `"4 replicas"`, "must add up to 5"},
	"region without nodes":             {[]edit{{"spec.placement", "{byRegion: {values: [{region: mars, value: m}]}}"}}, "spec.placement.byRegion.values[local]", "Required value", "add {region: local, value: the nodes' value of topology.kubernetes.io/region}"},
	"regions by the label of pools":    {[]edit{{"spec.placement", "{byRegion: {label: assay.dev/pool}}"}}, "spec.placement.byRegion.label", `"assay.dev/pool"`, "name the label that says its region"},
	"unknown spread":                   {[]edit{{"spec.placement", "{spread: Always}"}}, "spec.placement.spread", `"Always"`, `"Preferred", "Required"`},
	"capability that nobody allows":    {[]edit{{"spec.systems", "[{name: kv-admin}]"}}, "spec.systems[0].name", "spec.replicas.containers[0].capabilities[0]: SYS_ADMIN", "it allows IPC_LOCK. The owner of the cluster can add to them"},
	"open loop without a rate":         {[]edit{{"spec.clients", "{loop: Open}"}}, "spec.clients.rate", "Required value", `add an axis "rate"`},
	"closed loop with arrivals":        {[]edit{{"spec.clients.arrivals", "Poisson"}}, "spec.clients.arrivals", `"Poisson"`, "remove it or set loop: Open"},
	"fewer clients than pods":          {[]edit{{"spec.clients.nodes", "11"}}, "spec.clients.nodes", ": 10:", "at least as many clients as pods"},
	"name too long":                    {[]edit{{"metadata.name", "a-name-of-more-than-twenty-four-letters"}}, "metadata.name", `"a-name-of-more-than-twenty-four-letters"`, "at most 24 characters"},
	"name with a dot":                  {[]edit{{"metadata.name", "fig.5"}}, "metadata.name", `"fig.5"`, "letters, digits and dashes"},
	"misspelt field":                   {[]edit{{"spec.schedule.warmup", "5s"}}, "spec.schedule.warmup", `"spec.schedule.warmup"`, "unknown field"},
	"template fails here":              {[]edit{{"spec.systems", "[{name: kv-index}]"}}, "spec.systems[0].name", `"kv-index"`, "spec.replicas.containers[0].command[0]"},
}

var wrongSystems = map[string]wrong{
	"template's syntax":             {[]edit{{"spec.replicas.containers.0.command", "['{{.Self.Index']"}}, "spec.replicas.containers[0].command[0]", `"{{.Self.Index"`, "must be a Go template"},
	"template's function":           {[]edit{{"spec.clients.containers.0.command", "['{{plus 1 2}}']"}}, "spec.clients.containers[0].command[0]", `"{{plus 1 2}}"`, "docs/reference/templates.md"},
	"image missing":                 {[]edit{{"spec.replicas.containers.0.image", ""}}, "spec.replicas.containers[0].image", "Required value", "image"},
	"image empty":                   {[]edit{{"spec.replicas.containers.0.image", `""`}}, "spec.replicas.containers[0].image", `""`, "at least 1 chars long"},
	"empty command":                 {[]edit{{"spec.replicas.containers.0.command", "[]"}}, "spec.replicas.containers[0].command", ": 0:", "should have at least 1 items"},
	"duplicate parameter":           {[]edit{{"spec.parameters.-", "{name: fastPath, type: Boolean, doc: Again.}"}}, "spec.parameters[5]", `{"name":"fastPath"}`, "Duplicate value"},
	"parameter of the workload too": {[]edit{{"spec.parameters.-", "{name: keys, type: Integer, doc: Again.}"}}, "spec.workloads[0].parameters[0].name", `"keys"`, "call the parameter otherwise"},
	"default of the wrong type":     {[]edit{{"spec.parameters.0.default", "eight"}}, "spec.parameters[0].default", `"eight"`, "takes an Integer, at least 1, at most 1024"},
	"bad log pattern":               {[]edit{{"spec.replicas.ready.0", "{log: {pattern: '(ready'}}"}}, "spec.replicas.ready[0].log.pattern", `"(ready"`, "must be a regular expression as RE2 has them"},
	"gate on an undeclared port":    {[]edit{{"spec.replicas.ready.0", "{port: pear}"}}, "spec.replicas.ready[0].port", `"pear"`, `did you mean "peer"?`},
	"gate of two kinds":             {[]edit{{"spec.replicas.ready.0.log", "{pattern: x}"}}, "spec.replicas.ready[0]", "log port is set", "set exactly one of log, port, http, command"},
	"count that is no number":       {[]edit{{"spec.replicas.count", "f > 1"}}, "spec.replicas.count", `"f > 1"`, "such as 3*f+1"},
	"count over a wrong name":       {[]edit{{"spec.replicas.count", "2*n+1"}}, "spec.replicas.count", `"2*n+1"`, "a CEL expression over f"},
	"long readyTimeout":             {[]edit{{"spec.replicas.readyTimeout", "3h"}}, "spec.replicas.readyTimeout", `"3h"`, "must be from 1s to 2h"},
	"container named agent":         {[]edit{{"spec.replicas.containers.0.name", "agent"}}, "spec.replicas.containers[0].name", `"agent"`, "taken by Assay's own container"},
	"two containers with a driver":  {[]edit{{"spec.clients.containers.-", "{name: two, image: i, command: [c]}"}}, "spec.clients.containers", "more than one", "with a driver there is exactly one container"},
	"client without results":        {[]edit{{"spec.clients.driver", ""}}, "spec.clients.results", "Required value", "or set driver"},
	"file without a path":           {[]edit{{"spec.clients.results", "{format: Assay, source: File}"}}, "spec.clients.results", "source is File", "path is needed when source is File"},
	"summary as a format":           {[]edit{{"spec.clients.results", "{format: YCSB, source: Stdout}"}}, "spec.clients.results.format", "YCSB is not a format of a trial", "can neither be cut to the window nor merged over clients"},
	"histograms that are not said":  {[]edit{{"spec.clients.results", "{format: HdrHistogram, source: Stdout}"}}, "spec.clients.results", "format is HdrHistogram", "histograms are needed for the format HdrHistogram"},
	"summary that is not said":      {[]edit{{"spec.clients.results", "{format: Summary, source: Stdout}"}}, "spec.clients.results", "format is Summary", "summary is needed for the format Summary"},
	"summary of no use":             {[]edit{{"spec.clients.results", "{format: Assay, source: Stdout, summary: {numbers: [{name: Committed, pattern: x}]}}"}}, "spec.clients.results", "format is Assay", "and only for that"},
	"summary without a throughput":  {[]edit{{"spec.clients.results", "{format: Summary, source: Stdout, summary: {numbers: [{name: Committed, pattern: '(?P<value>x)'}]}}"}}, "spec.clients.results.summary.numbers", "", "Throughput is missing, and so is RunTime"},
	"summary without its group":     {[]edit{{"spec.clients.results", "{format: Summary, source: Stdout, summary: {numbers: [{name: Committed, pattern: x}, {name: RunTime, pattern: '(?P<value>x)', unit: s}]}}"}}, "spec.clients.results.summary.numbers[0].pattern", `"x"`, "has no group (?P<value>...)"},
	"unit of a count":               {[]edit{{"spec.clients.results", "{format: Summary, source: Stdout, summary: {numbers: [{name: Committed, pattern: '(?P<value>x)', unit: s}, {name: RunTime, pattern: '(?P<value>x)', unit: s}]}}"}}, "spec.clients.results.summary.numbers", "", "the unit of Committed is \"s\"; it must be k, M, G or none"},
	"summary's unknown number":      {[]edit{{"spec.clients.results", "{format: Summary, source: Stdout, summary: {numbers: [{name: P100Latency, pattern: x}]}}"}}, "spec.clients.results.summary.numbers[0].name", "P100Latency is no number of a summary", "a percentile such as P95Latency"},
	"number with pattern and path":  {[]edit{{"spec.clients.results", "{format: Summary, source: Stdout, summary: {numbers: [{name: Throughput, pattern: x, path: $.x}]}}"}}, "spec.clients.results.summary.numbers[0]", "", "must have either pattern or path"},
	"number by no path":             {[]edit{{"spec.clients.results", "{format: Summary, source: Stdout, summary: {numbers: [{name: Throughput, path: x}]}}"}}, "spec.clients.results.summary.numbers[0].path", `"x"`, "must be a JSONPath"},
	"latency of an unknown unit":    {[]edit{{"spec.clients.results", "{format: Summary, source: Stdout, summary: {numbers: [{name: Throughput, pattern: '(?P<value>x)'}, {name: P99Latency, pattern: '(?P<value>x)', unit: minutes}]}}"}}, "spec.clients.results.summary.numbers", "", "the unit of P99Latency is \"minutes\""},
	"latency from and since":        {[]edit{{"spec.clients.results", "{format: CSV, source: Stdout, records: {latency: {from: l, unit: us, since: b}, instant: {from: e, unit: ms}}}"}}, "spec.clients.results.records.latency", "", "must have either from and unit, or since"},
	"arrival with a unit":           {[]edit{{"spec.clients.results", "{format: CSV, source: Stdout, records: {latency: {from: l, unit: us}, instant: {from: Arrival, unit: ms}}}"}}, "spec.clients.results.records.instant", "from is Arrival", "unit is needed, unless from is Arrival"},
	"instant without a unit":        {[]edit{{"spec.clients.results", "{format: CSV, source: Stdout, records: {latency: {from: l, unit: us}, instant: {from: e}}}"}}, "spec.clients.results.records.instant", "from is e", "unit is needed, unless from is Arrival"},
	"arrival in a file":             {[]edit{{"spec.clients.results", "{format: CSV, source: File, path: /assay/out/x, records: {latency: {from: l, unit: us}, instant: {from: Arrival}}}"}}, "spec.clients.results", "source is File", "the arrival of lines is known on Stdout and Stderr only"},
	"beginning by arrival":          {[]edit{{"spec.clients.results", "{format: CSV, source: Stdout, records: {latency: {from: l, unit: us}, instant: {from: Arrival, of: Begin}}}"}}, "spec.clients.results.records", "", "instant must be of End"},
	"records that are not said":     {[]edit{{"spec.clients.results", "{format: CSV, source: Stdout}"}}, "spec.clients.results", "format is CSV", "records are needed for RegularExpression and CSV"},
	"records of no use":             {[]edit{{"spec.clients.results", "{format: Assay, source: Stdout, records: {latency: {from: l, unit: us}, instant: {from: e, unit: ms}}}"}}, "spec.clients.results", "format is Assay", "and only for those"},
	"unit of a latency":             {[]edit{{"spec.clients.results", "{format: CSV, source: Stdout, records: {latency: {from: l, unit: minutes}, instant: {from: e, unit: ms}}}"}}, "spec.clients.results.records.latency.unit", `"minutes"`, `"ns", "us", "ms", "s"`},
	"clock of the client's own":     {[]edit{{"spec.clients.results", "{format: CSV, source: Stdout, records: {latency: {from: l, unit: us}, instant: {from: e, unit: ms, clock: Start}}}"}}, "spec.clients.results.records.instant.clock", `"Start"`, `"Wall", "Monotonic"`},
	"separator of two characters":   {[]edit{{"spec.clients.results", "{format: CSV, source: Stdout, records: {separator: '::', latency: {from: l, unit: us}, instant: {from: e, unit: ms}}}"}}, "spec.clients.results.records.separator", "", "than 1"},
	"pattern without its groups":    {[]edit{{"spec.clients.results", "{format: RegularExpression, source: Stdout, records: {pattern: x, latency: {from: l, unit: us}, instant: {from: e, unit: ms}}}"}}, "spec.clients.results.records.pattern", `"x"`, "has no group (?P<l>...)"},
	"role found in two ways":        {[]edit{{"spec.roles", "[{name: leader, log: {gained: x, lost: z}, command: [x]}]"}}, "spec.roles[0]", "log command is set", "set exactly one of log, http, command"},
	"volume in Assay's directory":   {[]edit{{"spec.replicas.volumes", "[{name: v, mountPath: /assay/x, medium: Memory, size: 1Mi}]"}}, "spec.replicas.volumes[0].mountPath", `"/assay/x"`, "such as /data"},
	"storage class of memory":       {[]edit{{"spec.replicas.volumes", "[{name: v, mountPath: /v, medium: Memory, size: 1Mi, storageClass: local}]"}}, "spec.replicas.volumes[0]", "medium PersistentVolumeClaim only", "remove it, or change the medium"},
	"capability without root":       {[]edit{{"spec.replicas.containers.0.capabilities", "[IPC_LOCK]"}}, "spec.replicas.containers[0]", "capabilities reach processes of root only", "set runAsUser: 0"},
	"capability with its prefix":    {[]edit{{"spec.replicas.containers.0.runAsUser", "0"}, {"spec.replicas.containers.0.capabilities", "[cap_ipc_lock]"}}, "spec.replicas.containers[0].capabilities[0]", `"cap_ipc_lock"`, "^[A-Z]"},
	"step of a component's shards":  {[]edit{{"spec.steps", "[{name: s, runsOn: FirstReplicaOfEachShard, component: proxy, command: [c]}]"}}, "spec.steps[0]", "with component", "runsOn is EveryReplica"},
	"check of a component, unknown": {[]edit{{"spec.checks", "[{name: s, runsOn: EveryReplica, component: proxy, command: [c]}]"}}, "spec.checks[0].component", `"proxy"`, "there are none"},
	"huge pages of no size":         {[]edit{{"spec.replicas.volumes", "[{name: v, mountPath: /v, medium: HugePages, size: 1Mi}]"}}, "spec.replicas.volumes[0].medium", `"HugePages"`, "such as resources.limits.hugepages-2Mi"},
	"name too long":                 {[]edit{{"metadata.name", strings.Repeat("a", 41)}}, "metadata.name", strings.Repeat("a", 41), "at most 40 characters"},
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

// Whoever applies a specification that cannot work is told so at once, and how to repair it.
func TestWrongExperimentsAreRefused(t *testing.T) {
	env := testenv.Get(t)
	ns := env.Namespace(t)
	system := sample(t, "system-driver.yaml")
	index := sample(t, "system-driver.yaml")
	index.SetName("kv-index")
	set(t, index, "spec.replicas.containers.0.command", "['{{(index .Replicas 99).IP}}']")
	admin := sample(t, "system-driver.yaml")
	admin.SetName("kv-admin")
	set(t, admin, "spec.replicas.containers.0.runAsUser", "0")
	set(t, admin, "spec.replicas.containers.0.capabilities", "[SYS_ADMIN]")
	for _, s := range []*unstructured.Unstructured{system, index, admin} {
		s.SetNamespace(ns)
		if err := env.Client.Create(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	refuse(t, env, ns, "experiment-faults.yaml", wrongExperiments)
}

func TestWrongSystemsAreRefused(t *testing.T) {
	env := testenv.Get(t)
	refuse(t, env, env.Namespace(t), "system-driver.yaml", wrongSystems)
}

func refuse(t *testing.T, env *testenv.Env, ns, file string, tests map[string]wrong) {
	t.Helper()
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			obj := sample(t, file)
			obj.SetNamespace(ns)
			for _, e := range tc.edits {
				set(t, obj, e.path, e.value)
			}
			err := apply(t, env, obj)
			if err == nil {
				t.Fatal("accepted")
			}
			for what, want := range map[string]string{"field": tc.field, "value": tc.value, "right": tc.right} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the refusal does not name the %s, %q:\n%v", what, want, err)
				}
			}
			if !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) && !apierrors.IsForbidden(err) {
				t.Errorf("refused with %s, want a refusal of the specification", apierrors.ReasonForError(err))
			}
		})
	}
}
