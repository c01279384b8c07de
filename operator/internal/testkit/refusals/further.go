package refusals

// fault adds a fault for every point to those of the sample. It is the third fault.
func fault(text string) Edit {
	return Edit{"spec.faults.-", "{name: x, everyPoint: true, " + text + "}"}
}

// chaos is a fault of Chaos Mesh with its kind and its spec.
func chaos(kind, spec string) Edit {
	return fault("at: 1s, for: 1s, chaosMesh: {kind: " + kind + ", target: {replicas: [0]}, spec: {" + spec + "}}")
}

// flame is a flame graph of replica 0, at points with these axis values.
func flame(when, points string) Edit {
	return Edit{"spec.faults.-", "{name: x, " + when + ", flameGraph: {tool: Perf, target: {replicas: [0]}, points: {" + points + "}}}"}
}

// set puts a value at a path below spec.
func set(path, value string) Edit { return Edit{"spec." + path, value} }

var (
	shaped = set("network", "{links: [{between: [local, local], rtt: 4ms}]}")
	busy   = "stressors: {cpu: {workers: 1}}"
	search = "{axis: clients, search: {from: 20, to: 90, objective: {p99Latency: 5ms}}}"
	paper  = set("source", "{title: A paper}")
	curve  = set("reported", "[{name: curve, metric: Throughput, unit: tx/s, axis: variant, values: [{x: ideal, value: 1}]}]")
	sets   = "sets: [{name: a, replicas: a, clients: a}, {name: b, replicas: b, clients: b}]"
	claimC = set("claims", "[{name: c, statement: It is fast., expr: \"throughput(variant='ideal')\", expected: 100/s, within: 10%}]")
)

// FurtherExperiments are edits of config/samples/experiment-faults.yaml for the refusals of the
// webhooks that WrongExperiments do not reach.
var FurtherExperiments = map[string]Wrong{
	// Chaos Mesh.
	"chaos with a mode of its own":    {[]Edit{chaos("StressChaos", "mode: all, "+busy)}, "spec.faults[2].chaosMesh.spec.mode", "", "leave it out of spec"},
	"chaos with an end, at one end":   {[]Edit{fault("at: 1s, for: 1s, chaosMesh: {kind: StressChaos, target: {replicas: [0]}, peers: {replicas: [1]}, spec: {" + busy + "}}")}, "spec.faults[2].chaosMesh.peers", "", "only a NetworkChaos has another end"},
	"chaos that ends itself":          {[]Edit{chaos("PodChaos", "action: pod-kill")}, "spec.faults[2].for", "", "happens at an instant"},
	"chaos without an end":            {[]Edit{fault("at: 1s, chaosMesh: {kind: StressChaos, target: {replicas: [0]}, spec: {" + busy + "}}")}, "spec.faults[2].for", "", "say how long"},
	"chaos of pods in one container":  {[]Edit{chaos("NetworkChaos", "action: loss, loss: {loss: '5'}, containerNames: [replica]")}, "spec.faults[2].chaosMesh.spec.containerNames", "", "acts on whole pods"},
	"chaos in a text of containers":   {[]Edit{chaos("StressChaos", "containerNames: replica, "+busy)}, "spec.faults[2].chaosMesh.spec.containerNames", `"replica"`, "must be a list of containers' names"},
	"chaos in the agent":              {[]Edit{chaos("StressChaos", "containerNames: [agent], "+busy)}, "spec.faults[2].chaosMesh.spec.containerNames[0]", `"agent"`, "is no container of the System's replicas"},
	"chaos by a program as root":      {[]Edit{chaos("StressChaos", "stressngStressors: --cpu 1")}, "spec.faults[2].chaosMesh.spec.stressngStressors", "", "use stressors"},
	"chaos of half a millisecond":     {[]Edit{chaos("NetworkChaos", "action: delay, delay: {latency: 0.5ms}")}, "spec.faults[2].chaosMesh.spec.delay.latency", `"0.5ms"`, "write microseconds"},
	"chaos that is its own other end": {[]Edit{fault("at: 1s, for: 1s, chaosMesh: {kind: NetworkChaos, target: {replicas: [0]}, peers: {replicas: [0]}, spec: {action: partition, direction: both}}")}, "spec.faults[2].chaosMesh.peers", "", "no pod is its own other end"},
	"chaos on a shaped network":       {[]Edit{shaped, chaos("NetworkChaos", "action: loss, loss: {loss: '5'}")}, "spec.faults[2].chaosMesh.kind", "", "partition and degrade do the same"},
	"chaos that replaces a pod":       {[]Edit{shaped, fault("at: 1s, chaosMesh: {kind: PodChaos, target: {replicas: [0]}, spec: {action: pod-kill}}")}, "spec.faults[2].chaosMesh.spec", "", "cannot be together with a shaped network"},
	"chaos that forgets a fault":      {[]Edit{fault("at: 1s, chaosMesh: {kind: PodChaos, target: {replicas: [0]}, spec: {action: pod-kill}}")}, "spec.faults[2].chaosMesh.spec", "", "cannot be together with fault crash"},
	// Systems of other kinds.
	"complete clients that wait":           {[]Edit{set("systems", "[{name: kv-complete}]"), set("clients.thinkTime", "5ms")}, "spec.clients.thinkTime", `"5ms"`, "has complete clients, which pace themselves"},
	"complete clients that all misbehave":  {[]Edit{set("systems", "[{name: kv-complete}]"), set("parameters", "{batchSize: 100}")}, "spec.clients.nodes", ": 10:", "makes all 10 clients misbehave"},
	"complete clients that a fault spoils": {[]Edit{set("systems", "[{name: kv-complete}]"), fault("clientBehavior: {share: 50%, parameters: {batchSize: 2}}")}, "spec.faults[2].clientBehavior", "", "has clients without a driver process"},
	"as many replicas as a parameter says": {[]Edit{set("systems", "[{name: kv-sized}]"), set("parameters", "{batchSize: 1000}")}, "spec.topology.f", ": 2:", "gives 1004 replicas for f = 2"},
	"parameter without a value":            {[]Edit{set("systems", "[{name: kv-needs}]")}, "spec.parameters[batchSize]", "Required value", `System "kv-needs" has no default for it`},
	// A System with clients may not leave these out; the last case is about repetitions until
	// claims are decided.
	"no loop":                            {[]Edit{set("clients.loop", "")}, "spec.clients.loop", "Required value", "say how clients offer load"},
	"no length of a trial":               {[]Edit{set("schedule.measure", "")}, "spec.schedule.measure", "Required value", "say how long a trial is measured"},
	"until of nothing":                   {[]Edit{set("repetitions", "{min: 5, max: 9, until: {of: [Throughput]}}")}, "spec.repetitions.until", "Required value", "says nothing"},
	"until by claims and by precision":   {[]Edit{claimC, set("repetitions", "{min: 5, max: 9, until: {claims: Decided, relativeCI: 5%}}")}, "spec.repetitions.until.relativeCI", "Forbidden", "remove one of them"},
	"until decided, one point at a time": {[]Edit{claimC, set("order", "Sequential"), set("repetitions", "{min: 5, max: 9, until: {claims: Decided}}")}, "spec.repetitions.until.claims", `"Decided"`, "needs rounds of all points"},
	"until no claim is decided":          {[]Edit{set("repetitions", "{min: 5, max: 9, until: {claims: Decided}}")}, "spec.repetitions.until.claims", `"Decided"`, "there is no claim to decide"},
	"until a crossover is decided":       {[]Edit{set("sweep.-", "{axis: clients, values: [10, 20, 40]}"), set("claims", "[{name: c, statement: s, expr: \"crossover(axis='clients', throughput(variant='ideal'), throughput(variant='blink')) < 30\"}]"), set("repetitions", "{min: 5, max: 9, until: {claims: Decided}}")}, "spec.repetitions.until.claims", `"Decided"`, "is about a crossover"},
	// Commands at an instant.
	"command that lasts":            {[]Edit{fault("at: 1s, for: 1s, command: {target: {replicas: [0]}, run: [/bin/a]}")}, "spec.faults[2].for", "", "a command ends by itself"},
	"command that takes two hours":  {[]Edit{fault("at: 1s, command: {target: {replicas: [0]}, run: [/bin/a], timeout: 2h}")}, "spec.faults[2].command.timeout", `"2h"`, "from 1ms to 1h"},
	"command in no replica":         {[]Edit{fault("at: 1s, command: {target: {replicas: [9]}, run: [/bin/a]}")}, "spec.faults[2].command.target.replicas[0]", ": 9:", "replicas in a shard"},
	"command with a wrong template": {[]Edit{fault("at: 1s, command: {target: {replicas: [0]}, run: ['{{.Nothing}}']}")}, "spec.systems[0].name", `"kv"`, "fault x: command.run[0]"},
	// Flame graphs.
	"flame graph without an end":       {[]Edit{flame("at: 1s", "")}, "spec.faults[2].for", "", "how long the profiler samples"},
	"flame graph of half a second":     {[]Edit{flame("at: 1s, for: 500ms", "")}, "spec.faults[2].for", `"500ms"`, "whole seconds"},
	"flame graph in every trial":       {[]Edit{flame("at: 1s, for: 2s, everyPoint: true", "")}, "spec.faults[2].everyPoint", "", "in trials of their own"},
	"flame graph of no replica":        {[]Edit{{"spec.faults.-", "{name: x, at: 1s, for: 2s, flameGraph: {tool: Perf, target: {replicas: [9]}}}"}}, "spec.faults[2].flameGraph.target.replicas[0]", ": 9:", "replicas in a shard"},
	"flame graph at no axis":           {[]Edit{flame("at: 1s, for: 2s", "variants: ideal")}, "spec.faults[2].flameGraph.points[variants]", `"variants"`, "there is no axis"},
	"flame graph at no value":          {[]Edit{flame("at: 1s, for: 2s", "variant: idea")}, "spec.faults[2].flameGraph.points[variant]", `"idea"`, "the axis has no value"},
	"flame graph of a search":          {[]Edit{set("sweep.-", search), flame("at: 1s, for: 2s", "")}, "spec.faults[2].flameGraph", "", "a search chooses its points itself"},
	"flame graph that a point asks of": {[]Edit{flame("at: 1s, for: 2s", ""), set("sweep.0.points.0.faults", "[x]")}, "spec.sweep[0].points[0].faults[0]", `"x"`, "spec.faults has no"},
	// Trials at the same time.
	"sets beside a pool of replicas":  {[]Edit{set("placement", "{replicas: big, "+sets+"}")}, "spec.placement.replicas", `"big"`, "sets have pools of their own; remove it"},
	"sets beside a pool of clients":   {[]Edit{set("placement", "{clients: big, "+sets+"}")}, "spec.placement.clients", `"big"`, "sets have pools of their own; remove it"},
	"sets beside pools of components": {[]Edit{set("placement", "{components: [{name: proxy, pool: big}], "+sets+"}")}, "spec.placement.components", "", "move these to each of them"},
	"sets that others share":          {[]Edit{set("placement", "{exclusive: false, "+sets+"}")}, "spec.placement.exclusive", "false", "each alone on its nodes; remove it"},
	"sets of a search":                {[]Edit{set("placement", "{"+sets+"}"), set("sweep.-", search)}, "spec.placement.sets", "", "name one set, as replicas and clients"},
	"sets with one pool":              {[]Edit{set("placement", "{sets: [{name: a, replicas: a, clients: a}, {name: b, replicas: b, clients: a}]}")}, "spec.placement.sets[1].clients", `"a"`, "set a has this pool"},
	// Marks.
	"misbehaviour from a mark":          {[]Edit{fault("mark: {name: up}, clientBehavior: {share: 50%, parameters: {batchSize: 2}}")}, "spec.faults[2].mark", "Forbidden", "behave that way during the whole trial"},
	"reset from a mark":                 {[]Edit{fault("at: 5s, mark: {name: up}, nodeKill: {mode: Machine, target: {replicas: [0]}}")}, "spec.faults[2].mark", "Forbidden", "on pods alone can count from a mark"},
	"mark of a System without a script": {[]Edit{fault("at: 5s, mark: {name: up}, pause: {target: {replicas: [0]}}, for: 1s")}, "spec.faults[2].mark.name", `"up"`, "has no script with marks"},
	// A load that changes.
	"phases longer than the run":         {[]Edit{set("clients.phases", "[{for: 20m, load: 10%}]")}, "spec.clients.phases", `"20m0s"`, "they last longer than window and cool-down"},
	"phases of a moment":                 {[]Edit{set("clients.phases", "[{for: 1us, load: 10%}]")}, "spec.clients.phases[0].for", `"1us"`, "must be"},
	"phases of more than all clients":    {[]Edit{set("clients.phases", "[{for: 1s, load: 10%, to: 200%}]")}, "spec.clients.phases[0].to", `"200%"`, "a Closed loop has no more than all clients"},
	"phases without load":                {[]Edit{set("clients.phases", "[{for: 1s, load: 0%}]")}, "spec.clients.phases", ": 1:", "no phase has any load"},
	"phases without clients in some pod": {[]Edit{set("clients.phases", "[{for: 1s, load: 5%}]")}, "spec.clients.phases", ": 1:", "at the highest phase 0 of 10 clients take part"},
	"phases beyond every rate":           {[]Edit{set("clients", "{loop: Open, rate: 100000000, phases: [{for: 1s, load: 200%}]}")}, "spec.clients.phases", ": 1:", "at most 100000000 are possible"},
	"a trace in a Closed loop":           {[]Edit{set("clients.trace", "{file: /t}")}, "spec.clients.trace", `"/t"`, "only an Open loop has arrivals"},
	"a trace beside a rate":              {[]Edit{set("clients", "{loop: Open, rate: 10, trace: {file: /t}}")}, "spec.clients.rate", ": 10:", "the trace says when requests arrive"},
	"a trace beside an axis of rates":    {[]Edit{set("clients", "{loop: Open, trace: {file: /t}}"), set("sweep.-", "{axis: rate, values: [100]}")}, "spec.clients.trace", `"/t"`, "remove it or the axis"},
	"a trace beside arrivals":            {[]Edit{set("clients", "{loop: Open, arrivals: Poisson, trace: {file: /t}}")}, "spec.clients.arrivals", `"Poisson"`, "the trace says when requests arrive"},
	"a trace beside phases":              {[]Edit{set("clients", "{loop: Open, trace: {file: /t}, phases: [{for: 1s, load: 10%}]}")}, "spec.clients.trace", `"/t"`, "remove it or phases"},
	"a trace that does not move":         {[]Edit{set("clients", "{loop: Open, trace: {file: /t, speed: 0%}}")}, "spec.clients.trace.speed", `"0%"`, "from 1% to 10000%"},
	"a trace from before its begin":      {[]Edit{set("clients", "{loop: Open, trace: {file: /t, begin: -1s}}")}, "spec.clients.trace.begin", `"-1s"`, "must be"},
	"sessions of a Closed loop":          {[]Edit{set("clients.session", "{requests: 3}")}, "spec.clients.session", ": 3:", "users arrive in an Open loop only"},
	"a knee below the lowest load":       {[]Edit{set("sweep.-", "{axis: clients, search: {from: 20, to: 90, objective: {kneeLatency: 90%}}}")}, "spec.sweep[1].search.objective.kneeLatency", `"90%"`, "from 110% to 1000%"},
	// The schema accepts these.
	"value of nothing":                {[]Edit{set("sweep.-", "{axis: distribution, values: ['']}")}, "spec.sweep[1].values[0]", `""`, "must be 1 to 128 characters"},
	"search from beyond the most":     {[]Edit{set("sweep.-", "{axis: clients, search: {from: 200000, to: 300000, objective: {p99Latency: 5ms}}}")}, "spec.sweep[1].search.from", ": 200000:", "must be from 1 to 100000"},
	"more than all clients misbehave": {[]Edit{fault("clientBehavior: {share: 150%, parameters: {batchSize: 2}}")}, "spec.faults[2].clientBehavior.share", `"150%"`, "must be more than 0% and less than 100%"},
	"degrade by a loss of nothing":    {[]Edit{fault("at: 1s, degrade: {to: {replicas: [0]}, loss: 0%}")}, "spec.faults[2].degrade", "", "changes nothing"},
	"profile's claim, to nothing":     {[]Edit{claimC, set("profiles", "[{name: smoke, claims: [{name: c, statement: ''}]}]"), set("profile", "smoke")}, "spec.profiles[0].claims[0]", "", "is not changed"},
	// Sizes and sums.
	"very many measurements":              {[]Edit{set("faults", "[]"), set("sweep", "[{axis: clients, values: ["+numbers(64)+"]}, {axis: batchSize, values: ["+numbers(16)+"]}]"), set("measurements", "["+counters(16)+"]")}, "spec.measurements", "Too many: 16", "must have at most"},
	"jitter of a link beyond the longest": {[]Edit{set("network", "{links: [{between: [local, local], delay: 6s, jitter: 5s}]}")}, "spec.network.links", "local to local", "both together at most 10s"},
	"delay and jitter beyond the longest": {[]Edit{set("network", "{links: [{between: [local, local], delay: 6s, jitter: 1s}]}"), fault("at: 1s, degrade: {target: {replicas: [0]}, delay: 2s, jitter: 2s}")}, "spec.faults[2].degrade.jitter", `"2s"`, "at most 10s are possible together"},
	"number of more than 32 bits":         {[]Edit{set("clients.count", "3000000000")}, "spec.clients.count", "3000000000", ""},
	// Clients that misbehave.
	"all clients misbehave":  {[]Edit{fault("clientBehavior: {share: 100%, parameters: {batchSize: 2}}")}, "spec.faults[2].clientBehavior.share", `"100%"`, "at least one must not"},
	"no client misbehaves":   {[]Edit{fault("clientBehavior: {share: 1%, parameters: {batchSize: 2}}")}, "spec.faults[2].clientBehavior.share", `"1%"`, "is 0 of 10 clients"},
	"misbehave in a number":  {[]Edit{fault("clientBehavior: {share: 50%, parameters: {batchSize: lots}}")}, "spec.faults[2].clientBehavior.parameters[batchSize]", `"lots"`, "takes an Integer"},
	"misbehave in two ways":  {[]Edit{fault("clientBehavior: {share: 50%, parameters: {batchSize: 2}}"), {"spec.faults.-", "{name: second, everyPoint: true, clientBehavior: {share: 20%, parameters: {batchSize: 3}}}"}}, "spec.faults[3]", "", "another fault of the same point"},
	"jitter without as much": {[]Edit{shaped, fault("at: 1s, degrade: {target: {replicas: [0]}, jitter: 5ms}")}, "spec.faults[2].degrade.jitter", `"5ms"`, "add at least as much delay as jitter"},
	"delay of hours":         {[]Edit{shaped, fault("at: 1s, degrade: {target: {replicas: [0]}, delay: 10s}")}, "spec.faults[2].degrade.delay", `"10s"`, "at most"},
	"degrade with two ends":  {[]Edit{fault("at: 1s, degrade: {target: {replicas: [0]}, to: {replicas: [1]}, loss: 1%}")}, "spec.faults[2].degrade", "", "set either target"},
	// Machines.
	"reset of a leader's machine":      {[]Edit{fault("at: 1s, nodeKill: {mode: Machine, target: {role: leader}}")}, "spec.faults[2].nodeKill.target.role", "", "must be known before the run"},
	"reset that loses the disks":       {[]Edit{fault("at: 1s, nodeKill: {mode: Machine, disk: Lose, target: {replicas: [0]}}")}, "spec.faults[2].nodeKill.disk", "", "set disk: Keep"},
	"reset on a shaped network":        {[]Edit{shaped, fault("at: 1s, nodeKill: {mode: Machine, target: {replicas: [0]}}")}, "spec.faults[2].nodeKill.mode", "", "Machine cannot be together with a shaped network"},
	"reset beside another fault":       {[]Edit{fault("at: 1s, nodeKill: {mode: Machine, target: {replicas: [0]}}")}, "spec.faults[2].nodeKill.mode", "", "Machine cannot be together with fault crash"},
	"reset for a time":                 {[]Edit{fault("at: 1s, for: 2s, nodeKill: {mode: Machine, target: {replicas: [0]}}")}, "spec.faults[2].for", "", "comes back by itself"},
	"fault beyond the end":             {[]Edit{fault("at: 1s, for: 100s, pause: {target: {replicas: [0]}}")}, "spec.faults[2].for", `"100s"`, "so that the fault is over before the trial is"},
	"repeat before it is over":         {[]Edit{fault("at: 1s, for: 2s, repeat: {every: 1s, times: 2}, pause: {target: {replicas: [0]}}")}, "spec.faults[2].repeat.every", `"1s"`, "must be more than the fault lasts"},
	"repeat beyond the end":            {[]Edit{fault("at: 1s, for: 1s, repeat: {every: 2s, times: 50}, pause: {target: {replicas: [0]}}")}, "spec.faults[2].repeat.times", ": 50:", "the last time would begin at"},
	"flap of a millisecond":            {[]Edit{fault("at: 1s, for: 5s, partition: {isolate: {replicas: [0]}, flap: {period: 1ms}}")}, "spec.faults[2].partition.flap.period", `"1ms"`, "must be from 20ms to 1h"},
	"flap that never heals":            {[]Edit{fault("at: 1s, for: 5s, partition: {isolate: {replicas: [0]}, flap: {period: 1s, cut: 2s}}")}, "spec.faults[2].partition.flap.cut", `"2s"`, "to less than the period"},
	"flap two thousand times":          {[]Edit{set("schedule.measure", "100s"), fault("at: 1s, for: 90s, partition: {isolate: {replicas: [0]}, flap: {period: 20ms}}")}, "spec.faults[2].partition.flap.period", `"20ms"`, "are possible"},
	"on both sides of a partition":     {[]Edit{fault("at: 1s, for: 1s, partition: {groups: [{replicas: [0]}, {replicas: [0, 1]}]}")}, "spec.faults[2].partition.groups[1]", "", "it can be on one side only"},
	"partition that picks first":       {[]Edit{fault("at: 1s, for: 1s, partition: {groups: [{pick: 1}, {replicas: [1]}]}")}, "spec.faults[2].partition.groups[1]", "", "groups that pick come last"},
	"replica in another region":        {[]Edit{set("topology.regions", "[{name: east, replicas: 2}, {name: west, replicas: 3}]"), fault("at: 1s, pause: {target: {replicas: [0], regions: [west]}}")}, "spec.faults[2].pause.target", "", "no replica of these indexes is in these regions"},
	"links of a role":                  {[]Edit{fault("at: 1s, degrade: {to: {role: leader}, loss: 1%}")}, "spec.faults[2].degrade.to.role", `"leader"`, "a role can be the target of"},
	"undeclared role":                  {[]Edit{fault("at: 1s, pause: {target: {role: leader}}")}, "spec.faults[2].pause.target.role", `"leader"`, "declares no role"},
	"more picked than there are":       {[]Edit{fault("at: 1s, pause: {target: {pick: 6}}")}, "spec.faults[2].pause.target.pick", `"6"`, "picks 6 replicas of each shard"},
	"rates of a Closed loop":           {[]Edit{set("sweep.-", "{axis: rate, values: [100]}")}, "spec.sweep[1].axis", `"rate"`, "only an Open loop has a rate"},
	"value that is there twice":        {[]Edit{set("sweep.-", `{axis: clients, values: [10, "10"]}`)}, "spec.sweep[1].values[1]", "", "Duplicate value"},
	"axis of an unknown network":       {[]Edit{set("sweep.-", "{axis: network, values: [lan, wan]}")}, "spec.sweep[1].values[1]", `"wan"`, "supported values"},
	"two axes of one parameter":        {[]Edit{set("sweep.-", "{axis: batchSize, values: [1, 2]}"), set("sweep.-", "{axis: size, points: [{name: a, parameters: {batchSize: 3}}]}")}, "spec.sweep[2].points[0]", "", "only one axis may"},
	"profile of an unknown fault":      {[]Edit{set("profiles", "[{name: smoke, faults: [{name: crsh, at: 1s, pause: {target: {replicas: [0]}}}]}]"), set("profile", "smoke")}, "spec.profiles[0].faults[0].name", `"crsh"`, `did you mean "crash"?`},
	"profile of an unknown claim":      {[]Edit{set("profiles", "[{name: smoke, claims: [{name: c, skip: too small}]}]"), set("profile", "smoke")}, "spec.profiles[0].claims[0].name", `"c"`, "there is no claim"},
	"Open loop that thinks":            {[]Edit{set("clients", "{loop: Open, rate: 10, thinkTime: 1ms}")}, "spec.clients.thinkTime", `"1ms"`, "set loop: Closed"},
	"backoff that shrinks":             {[]Edit{set("clients", "{loop: Closed, count: 10, retry: {backoff: 2s, maxBackoff: 1s}}")}, "spec.clients.retry.maxBackoff", `"1s"`, "backoff"},
	"Closed loop with a rate":          {[]Edit{set("clients", "{loop: Closed, count: 10, rate: 5}")}, "spec.clients.rate", ": 5:", "only an Open loop has a rate"},
	"tolerance of 200%":                {[]Edit{set("tolerances", "{steal: 200%}")}, "spec.tolerances.steal", `"200%"`, "must be a percentage from 0% to 100%"},
	"series along an unknown axis":     {[]Edit{paper, set("reported", "[{name: r, metric: Throughput, unit: tx/s, axis: varian, values: [{x: ideal, value: 1}]}]")}, "spec.reported[0].axis", `"varian"`, `did you mean "variant"?`},
	"series at an unknown axis":        {[]Edit{paper, set("reported", "[{name: r, metric: Throughput, unit: tx/s, axis: variant, at: {size: 1}, values: [{x: ideal, value: 1}]}]")}, "spec.reported[0].at[size]", "", "the sweep has no axis"},
	"series of words":                  {[]Edit{paper, set("reported", "[{name: r, metric: Throughput, unit: tx/s, axis: variant, values: [{x: ideal, value: fast}]}]")}, "spec.reported[0].values[0].value", `"fast"`, "must be a number"},
	"series of an unknown number":      {[]Edit{paper, set("measurements", "[{name: hits, counter: h}]"), set("reported", "[{name: r, metric: Measurement, measurement: hit, unit: '1', axis: variant, values: [{x: ideal, value: 1}]}]")}, "spec.reported[0].measurement", `"hit"`, `did you mean "hits"?`},
	"total of an amount":               {[]Edit{set("measurements", "[{name: m, use: {resource: Memory, over: Total}}]")}, "spec.measurements[0].use", `"m"`, "has no total"},
	"bytes in seconds":                 {[]Edit{set("measurements", "[{name: m, unit: s, use: {resource: DiskRead, over: Total}}]")}, "spec.measurements[0].use", `"m"`, "the unit must be B, kB"},
	"series in another unit":           {[]Edit{paper, set("measurements", "[{name: hits, counter: h, unit: s}]"), set("reported", "[{name: r, metric: Measurement, measurement: hits, unit: ms, axis: variant, values: [{x: ideal, value: 1}]}]")}, "spec.reported[0].unit", `"ms"`, "must be that of the measurement hits"},
	"shape of no series":               {[]Edit{set("claims", "[{name: c, statement: s, expr: \"shape(series='fig') < 1\"}]")}, "spec.claims[0].expr", "fig", "the experiment has none"},
	"shape without a series":           {[]Edit{set("claims", "[{name: c, statement: s, expr: \"shape(variant='ideal') < 1\"}]")}, "spec.claims[0].expr", "shape", "shape needs series"},
	"shape of an unknown series":       {[]Edit{paper, curve, set("claims", "[{name: c, statement: s, expr: \"shape(series='curv') < 1\"}]")}, "spec.claims[0].expr", "curv", `did you mean "curve"?`},
	"shape of two points":              {[]Edit{paper, curve, set("claims", "[{name: c, statement: s, expr: \"shape(series='curve') < 1\"}]")}, "spec.claims[0].expr", "curve", "a shape needs 3"},
	"shape of two curves":              {[]Edit{paper, set("sweep.-", "{axis: clients, values: [10, 20, 40]}"), set("reported", "[{name: curve, metric: Throughput, unit: tx/s, axis: clients, values: [{x: 10, value: 1}, {x: 20, value: 2}, {x: 40, value: 3}]}]"), set("claims", "[{name: c, statement: s, expr: \"shape(series='curve') < 1\"}]")}, "spec.claims[0].expr", "curve", "says nothing of axis variant"},
	"stack of two units":               {[]Edit{set("measurements", "[{name: a, counter: f, unit: s}, {name: b, counter: g, unit: ms}]"), set("figures", "[{name: x, stack: {parts: [a, b]}}]")}, "spec.figures[0].stack.parts[1]", `"b"`, "parts of a stack have one unit"},
	"speed-up over an unknown axis":    {[]Edit{set("figures", "[{name: x, speedUp: {over: {varian: ideal}}}]")}, "spec.figures[0].speedUp.over[varian]", "", `did you mean "variant"?`},
	"measurement called throughput":    {[]Edit{set("measurements", "[{name: throughput, counter: c}]")}, "spec.measurements[0].name", `"throughput"`, "is a column of Assay's own"},
	"claim reported and expected":      {[]Edit{paper, set("claims", "[{name: c, statement: s, expr: \"throughput(variant='ideal')\", reported: 1/s, reportedIn: Table 1, expected: 2/s, within: 5%}]")}, "spec.claims[0].expected", "", "which the source prints, and expected"},
	"claim expects without a bound":    {[]Edit{set("claims", "[{name: c, statement: s, expr: \"throughput(variant='ideal')\", expected: 2/s}]")}, "spec.claims[0].within", "Required value", "say within what of it still agrees"},
	"claim's bound of nothing":         {[]Edit{set("claims", "[{name: c, statement: s, expr: \"throughput(variant='ideal')\", within: 5%}]")}, "spec.claims[0].reported", "Required value", "say of which value"},
	"reported by no source":            {[]Edit{set("claims", "[{name: c, statement: s, expr: \"throughput(variant='ideal')\", reported: 2/s, reportedIn: Table 1, within: 5%}]")}, "spec.claims[0].reported", "", "has no source that prints it"},
	"reported nowhere":                 {[]Edit{paper, set("claims", "[{name: c, statement: s, expr: \"throughput(variant='ideal')\", reported: 2/s, within: 5%}]")}, "spec.claims[0].reportedIn", "Required value", "say where the source prints"},
	"profile's claim, same sentence":   {[]Edit{claimC, set("profiles", "[{name: smoke, claims: [{name: c, statement: It is fast., expected: 50/s}]}]")}, "spec.profiles[0].claims[0].statement", "", "say what is judged here"},
	"profile's claim, no sentence":     {[]Edit{claimC, set("profiles", "[{name: smoke, claims: [{name: c, expected: 50/s}]}]")}, "spec.profiles[0].claims[0].statement", "Required value", "say in a sentence of its own"},
	"profile's claim, wider":           {[]Edit{claimC, set("profiles", "[{name: smoke, claims: [{name: c, statement: Slower., within: 60%}]}]")}, "spec.profiles[0].claims[0].widerBecause", "Required value", "say why, or keep the tolerance"},
	"clients in a region, misspelled":  {[]Edit{set("clients.regions", "[Mars]")}, "spec.clients.regions[0]", `"Mars"`, "lower-case"},
	"too many replicas":                {[]Edit{set("topology", "{f: 33, shards: 16}"), set("faults", "[]"), set("sweep", "[]")}, "spec.topology.shards", ": 16:", "at most"},
	"search over more pods":            {[]Edit{set("clients.nodes", "30"), set("sweep.-", search)}, "spec.sweep[1].search.from", ": 20:", "at least as many clients as pods"},
	"two searches":                     {[]Edit{set("clients", "{loop: Open, rate: 10}"), set("sweep.-", "{axis: rate, search: {from: 20, to: 90, objective: {p99Latency: 5ms}}}"), set("sweep.-", "{axis: rate, search: {from: 20, to: 90, objective: {p99Latency: 5ms}}}")}, "spec.sweep[2]", "", "Duplicate value"},
	"search for no goodput":            {[]Edit{set("clients", "{loop: Open, rate: 10}"), set("sweep.-", "{axis: rate, search: {from: 20, to: 90, objective: {goodput: 0%}}}")}, "spec.sweep[1].search.objective.goodput", `"0%"`, "above 0%"},
	"very many searches":               {[]Edit{set("sweep.-", "{axis: clients, search: {from: 20, to: 90, precision: 50%, objective: {p99Latency: 5ms}}}"), set("sweep.-", "{axis: batchSize, values: ["+numbers(16)+"]}")}, "spec.sweep[1].search", ": 48:", "searches; at most"},
	"quiet at 200%":                    {[]Edit{set("disturbances", "{idleThreshold: 200%}")}, "spec.disturbances.idleThreshold", `"200%"`, "must be a percentage from 0% to 100%"},
	"very many repetitions more":       {[]Edit{set("sweep.-", "{axis: clients, values: ["+numbers(64)+"]}"), set("additionalRepetitions", "90")}, "spec.additionalRepetitions", ": 90:", "at most"},
	"profile that judges other points": {[]Edit{claimC, set("sweep.-", "{axis: clients, values: [10, 20]}"), set("claims.0.expr", "\"throughput(variant='ideal', clients=20) - throughput(variant='ideal', clients=10)\""), set("profiles", "[{name: smoke, sweep: [{axis: clients, values: [10]}]}]"), set("profile", "smoke")}, "spec.profiles[0]", "", "changes the axis"},
	"budget of no hours":               {[]Edit{set("budget", "{nodeHours: 0}")}, "spec.budget.nodeHours", `"0"`, "must be above 0"},
	"budget of nothing":                {[]Edit{set("budget", "{}")}, "spec.budget", "", "at least 1 properties"},
	"logs of no length":                {[]Edit{set("debug", "{keepLogs: 1}")}, "spec.debug.keepLogs", "", "must be from 1Ki to 16Mi"},
	"half of a tolerance's unit":       {[]Edit{set("claims", "[{name: c, statement: s, expr: \"throughput(variant='ideal')\", expected: 200, within: 5ms}]")}, "spec.claims[0].within", `"5ms"`, ""},
}

// FurtherSystems are edits of config/samples/systems/driver.yaml.
var FurtherSystems = map[string]Wrong{
	"bound of a Boolean":              {[]Edit{set("parameters.1.minimum", "1")}, "spec.parameters[1].minimum", `"1"`, "only Integer, Decimal and Duration have"},
	"bound that is no number":         {[]Edit{set("parameters.0.minimum", "lots")}, "spec.parameters[0].minimum", `"lots"`, ""},
	"bounds the wrong way round":      {[]Edit{set("parameters.0.minimum", "5000")}, "spec.parameters[0].minimum", `"5000"`, "must be at most maximum"},
	"value allowed that cannot be":    {[]Edit{set("parameters.0.allowed", "[8, lots]")}, "spec.parameters[0].allowed[1]", `"lots"`, ""},
	"two ports of one number":         {[]Edit{set("replicas.ports.-", "{name: other, port: 7000}")}, "spec.replicas.ports[1].port", ": 7000:", "give each port its own"},
	"two volumes in one place":        {[]Edit{set("replicas.volumes", "[{name: a, mountPath: /v, medium: Memory, size: 1Mi}, {name: b, mountPath: /v, medium: Memory, size: 1Mi}]")}, "spec.replicas.volumes[1].mountPath", `"/v"`, "is the same directory"},
	"gate on an unknown container":    {[]Edit{set("replicas.ready", "[{log: {container: other, pattern: x}}]")}, "spec.replicas.ready[0].log.container", `"other"`, "there is no container"},
	"role by no regular expression":   {[]Edit{set("roles", "[{name: leader, log: {gained: '(x', lost: x}}]")}, "spec.roles[0].log.gained", `"(x"`, "must be a regular expression as RE2 has them"},
	"pattern of a CSV":                {[]Edit{set("clients.driver", ""), set("clients.results", "{format: CSV, source: Stdout, records: {pattern: x, latency: {from: l, unit: us}, instant: {from: e, unit: ms}}}")}, "spec.clients.results", "", ""},
	"separator of a pattern":          {[]Edit{set("clients.driver", ""), set("clients.results", "{format: RegularExpression, source: Stdout, records: {separator: ';', pattern: '(?P<l>x)(?P<e>y)', latency: {from: l, unit: us}, instant: {from: e, unit: ms}}}")}, "spec.clients.results", "", ""},
	"driver's misbehaving clients":    {[]Edit{set("clients.misbehaving", "f")}, "spec.clients.misbehaving", "", "with a driver"},
	"data set with a capability":      {[]Edit{set("datasets", "[{name: d, mountPath: /d, outputPath: /o, size: 1Gi, timeout: 1h, container: {name: c, image: i, command: [c], runAsUser: 0, capabilities: [IPC_LOCK]}}]")}, "spec.datasets[0].container.capabilities", "", "a recipe can have no capability"},
	"data set on some processors":     {[]Edit{set("datasets", "[{name: d, mountPath: /d, outputPath: /o, size: 1Gi, timeout: 1h, container: {name: c, image: i, command: [c], processors: '4'}}]")}, "spec.datasets[0].container.processors", "", "a recipe runs on all processors"},
	"data set of a byte":              {[]Edit{set("datasets", "[{name: d, mountPath: /d, outputPath: /o, size: '1', timeout: 1h, container: {name: c, image: i, command: [c]}}]")}, "spec.datasets[0].size", "", "must be from 1Mi to 16Ti"},
	"data set of an unknown one":      {[]Edit{set("datasets", "[{name: d, mountPath: /d, outputPath: /o, size: 1Gi, timeout: 1h, usedBy: Components, components: [proxy], container: {name: c, image: i, command: [c]}}]")}, "spec.datasets[0].components", `"proxy"`, "spec.components has none called"},
	"data set out of itself":          {[]Edit{set("datasets", "[{name: d, mountPath: /d, outputPath: /o, subPath: a/../../b, size: 1Gi, timeout: 1h, container: {name: c, image: i, command: [c]}}]")}, "spec.datasets[0].subPath", `"a/../../b"`, "must not contain \"..\""},
	"data set of an absolute part":    {[]Edit{set("datasets", "[{name: d, mountPath: /d, outputPath: /o, subPath: /o/a, size: 1Gi, timeout: 1h, container: {name: c, image: i, command: [c]}}]")}, "spec.datasets[0].subPath", `"/o/a"`, "must be relative to outputPath"},
	"data set's part is all of it":    {[]Edit{set("datasets", "[{name: d, mountPath: /d, outputPath: /o, subPath: ., size: 1Gi, timeout: 1h, container: {name: c, image: i, command: [c]}}]")}, "spec.datasets[0].subPath", `"."`, "is the whole data set"},
	"data set in a volume":            {[]Edit{set("replicas.volumes", "[{name: a, mountPath: /v, medium: Memory, size: 1Mi}]"), set("datasets", "[{name: d, mountPath: /v/d, outputPath: /o, size: 1Gi, timeout: 1h, container: {name: c, image: i, command: [c]}}]")}, "spec.datasets[0].mountPath", `"/v/d"`, "give the copy a directory of its own"},
	"misbehaving by no count":         {[]Edit{set("clients.driver", ""), set("clients.results", "{format: Assay, source: Stdout}"), set("clients.misbehaving", "f > 1")}, "spec.clients.misbehaving", `"f > 1"`, ""},
	"records by two columns of one":   {[]Edit{set("clients.driver", ""), set("clients.results", "{format: HdrHistogram, source: Stdout, histograms: {unit: us, tags: [A], errors: [A]}}")}, "spec.clients.results.histograms", "", "has two meanings"},
	"instant by no date":              {[]Edit{set("clients.driver", ""), set("clients.results", "{format: CSV, source: Stdout, records: {latency: {from: l, unit: us}, instant: {from: e, layout: RFC3339, zone: Mars}}}")}, "spec.clients.results.records", "", ""},
	"latency since an arrival":        {[]Edit{set("clients.driver", ""), set("clients.results", "{format: CSV, source: Stdout, records: {latency: {since: l}, instant: {from: Arrival}}}")}, "spec.clients.results.records", "", ""},
	"pattern that is not one":         {[]Edit{set("clients.driver", ""), set("clients.results", "{format: RegularExpression, source: Stdout, records: {pattern: '(', latency: {from: l, unit: us}, instant: {from: e, unit: ms}}}")}, "spec.clients.results.records.pattern", `"("`, "must be a regular expression as RE2 has them"},
	"summary's pattern that is not":   {[]Edit{set("clients.driver", ""), set("clients.results", "{format: Summary, source: Stdout, summary: {numbers: [{name: Throughput, pattern: '(?P<value>x'}]}}")}, "spec.clients.results.summary.numbers[0].pattern", "", "must be a regular expression as RE2 has them"},
	"long timeout of the preparation": {[]Edit{set("prepare", "{outputPath: /keys, timeout: 90h, container: {name: p, image: i, command: [c]}}")}, "spec.prepare.timeout", `"90h"`, ""},
}

// Table is a sample with edits that make it wrong.
type Table struct {
	Kind, File string
	Cases      map[string]Wrong
	// Words: webhooks reject the cases, with the same words everywhere.
	Words bool
}

// Tables are all cases that are written by hand.
var Tables = []Table{
	{"Experiment", "experiment-faults.yaml", WrongExperiments, false},
	{"Experiment", "experiment-faults.yaml", FurtherExperiments, true},
	{"Experiment", "experiment-faults.yaml", AttemptsOfExperiments, false},
	{"Experiment", "experiment-components.yaml", WrongFaultsOfComponents, false},
	{"System", "systems/driver.yaml", WrongSystems, false},
	{"System", "systems/driver.yaml", FurtherSystems, true},
	{"System", "systems/driver.yaml", AttemptsOfSystems, false},
	{"System", "systems/components.yaml", WrongComponents, false},
	{"System", "systems/machines.yaml", WrongMachines, true},
	{"Experiment", "experiment-machines.yaml", WrongScripts, true},
}
