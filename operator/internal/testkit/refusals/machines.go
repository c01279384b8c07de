package refusals

// WrongMachines are edits of the System of config/samples/systems/machines.yaml.
var WrongMachines = map[string]Wrong{
	"two groups of one name":       {[]Edit{set("machines.-", "{name: nodes, count: '1', hostnames: other, image: i}")}, "spec.machines[1]", `"nodes"`, "Duplicate value"},
	"count of machines by a word":  {[]Edit{set("machines.0.count", "many")}, "spec.machines[0].count", `"many"`, ""},
	"one name for all machines":    {[]Edit{set("machines.0.hostnames", "node")}, "spec.machines[0].hostnames", `"node"`, "gives all machines of the group one name"},
	"template of a boot command":   {[]Edit{set("machines.0.boot", "['{{.Index']")}, "spec.machines[0].boot[0]", "", "must be a Go template"},
	"root with another number":     {[]Edit{set("machines.0.user", "root")}, "spec.machines[0].user", `"root"`, "the user root, and no other, has the number 0"},
	"machines without a script":    {[]Edit{set("script", "")}, "spec", "", ""},
	"script on an unknown group":   {[]Edit{set("script.group", "nods")}, "spec.script.group", `"nods"`, `supported values: "nodes"`},
	"one machine in all":           {[]Edit{set("machines.0.count", "'1'")}, "spec.machines[0].count", `"1"`, "a trial needs a second one"},
	"results in another's home":    {[]Edit{set("script.results.path", "../other/table.tsv")}, "spec.script.results.path", "../other", `must not contain ".."`},
	"a column that is two things":  {[]Edit{set("script.results.axes.1.column", "scheme")}, "spec.script.results.axes[1].column", `"scheme"`, "a column is one thing"},
	"an axis called clients":       {[]Edit{set("script.results.axes.1.name", "clients")}, "spec.script.results.axes[1].name", `"clients"`, "is the name of another axis or of a parameter"},
	"an axis called a parameter":   {[]Edit{set("script.results.axes.1.name", "seconds")}, "spec.script.results.axes[1].name", `"seconds"`, "is the name of another axis or of a parameter"},
	"a latency in kops":            {[]Edit{set("script.results.numbers.1.unit", "kops/s")}, "spec.script.results.numbers[1].unit", `"kops/s"`, "a latency has one of ns, us, ms, s"},
	"a rate in us":                 {[]Edit{set("script.results.numbers.0.unit", "us")}, "spec.script.results.numbers[0].unit", `"us"`, "Throughput has no such unit"},
	"numbers of a format of HATS":  {[]Edit{set("script.results.format", "HATSTable")}, "spec.script.results.numbers", "", "says itself what its numbers are"},
	"files of an unknown axis":     {[]Edit{set("script.results.path", "~/{shema}/stats.json")}, "spec.script.results.path", "{shema}", "results.axes has no such axis"},
	"braces that are not closed":   {[]Edit{set("script.results.path", "~/{scheme/stats.json")}, "spec.script.results.path", "{scheme/", "stands in braces"},
	"an axis of name and column":   {[]Edit{set("script.results.path", "~/{scheme}.txt"), set("script.results.axes.0.column", "s")}, "spec.script.results.axes[0].column", "", "which gives the axis its value"},
	"template of a host's name":    {[]Edit{set("machines.0.hostnames", "'node-{{.Index'")}, "spec.machines[0].hostnames", "", "must be a Go template"},
	"a pattern that is none":       {[]Edit{set("script.marks.0.pattern", "'('")}, "spec.script.marks[0].pattern", `"("`, "is no regular expression"},
	"a mark of no machine":         {[]Edit{set("script.marks.2.machine", "node-x")}, "spec.script.marks[2].machine", `"node-x"`, "has no machine of this name"},
	"a mark of another's output":   {[]Edit{set("script.marks.2.file", "")}, "spec.script.marks[2].file", "Required value", "what a machine other than the script's prints is in files there"},
	"a mark out of the home":       {[]Edit{set("script.marks.2.file", "../x")}, "spec.script.marks[2].file", "../x", `must not contain ".."`},
	"a window to no mark":          {[]Edit{set("script.results.window.to", "don")}, "spec.script.results.window.to", `"don"`, "spec.script.marks has no mark"},
	"a window of no row":           {[]Edit{set("script.results.window.from", "done")}, "spec.script.results.window.from", `"done"`, "its pattern needs a group (?P<scheme>...)"},
	"home that is no absolute one": {[]Edit{set("machines.0.home", "/home/../etc")}, "spec.machines[0].home", "/home/../etc", ""},
}

// WrongScripts are edits of config/samples/experiment-machines.yaml.
var WrongScripts = map[string]Wrong{
	"rows of one System alone":       {[]Edit{set("systems", "[{name: store-artifact}, {name: store-other}]")}, "spec.sweep[0].axis", `"scheme"`, "tells rows of the script of store-artifact apart, and not those of store-other"},
	"a row's value of two lines":     {[]Edit{set("sweep.0.values", "[lock, \"a\\nb\"]")}, "spec.sweep[0].values[1]", "", "on one line"},
	"a row's value twice":            {[]Edit{set("sweep.0.values", "[lock, lock]")}, "spec.sweep[0].values[1]", `"lock"`, "Duplicate value"},
	"no axis for the rows":           {[]Edit{set("sweep", "[{axis: scheme, values: [lock, queue]}]"), set("claims", "[]")}, "spec.sweep", "Required value", `tells its rows apart by "threads"`},
	"fault on an unknown machine":    {[]Edit{set("faults", "[{name: crash, at: 1s, everyPoint: true, nodeKill: {target: {machine: mode-1}}}]")}, "spec.faults[0]", `"mode-1"`, `target.machine: System "store-artifact"`},
	"fault from an unknown mark":     {[]Edit{set("faults.0.mark.name", "rows")}, "spec.faults[0].mark.name", `"rows"`, "declares no mark"},
	"fault from an unknown group":    {[]Edit{set("faults.0.mark.groups", "{shema: lock}")}, "spec.faults[0].mark.groups", `"shema"`, "has no group"},
	"fault at once at a mark":        {[]Edit{set("faults.0.at", "1ms")}, "spec.faults[0].at", `"1ms"`, "must be at least 250ms after a mark"},
	"scripts and clients":            {[]Edit{set("systems", "[{name: store-artifact}, {name: store-clients}]")}, "spec.systems", "store-artifact", "some have a script and others have clients"},
	"until all claims are decided":   {[]Edit{set("repetitions", "{min: 3, max: 9, until: {relativeCI: 5%}}")}, "spec.repetitions.until", "", "set min to a fixed number of runs"},
	"load of a script":               {[]Edit{set("sweep.-", "{axis: clients, values: [1, 2]}")}, "spec.sweep[2].axis", `"clients"`, "a script has clients of its own"},
	"capacity of a script":           {[]Edit{set("sweep.-", "{axis: clients, search: {from: 20, to: 90, objective: {p99Latency: 5ms}}}"), set("claims", "[]")}, "spec.sweep", "", "a search for capacities needs clients whose load Assay sets"},
	"more rows than are read":        {[]Edit{set("sweep.0.values", "[lock, queue, "+numbers(10)+"]"), set("sweep.1.values", "[8, "+numbers(12)+"]")}, "spec.sweep", "Too many", "must have at most 128 items"},
	"the first of several workloads": {[]Edit{set("systems", "[{name: store-artifact}, {name: store-more}]"), set("workload", "")}, "spec.workload.name", "Required value", "the systems have several workloads; name one of scan, table2"},
}
