package refusals

// WrongComponents are edits of the System of config/samples/systems/components.yaml.
var WrongComponents = map[string]Wrong{
	"two of one name":          {[]Edit{{"spec.components.1.name", "coordinator"}}, "spec.components[1]", `"coordinator"`, "Duplicate value"},
	"name with a dash":         {[]Edit{{"spec.components.1.name", "the-proxy"}}, "spec.components[1].name", `"the-proxy"`, "^[a-z][a-z0-9]*$"},
	"name of a shard":          {[]Edit{{"spec.components.1.name", "s0"}}, "spec.components[1].name", `"s0"`, "the name is taken"},
	"name of the clients":      {[]Edit{{"spec.components.1.name", "client"}}, "spec.components[1].name", `"client"`, "call the component otherwise"},
	"unknown order":            {[]Edit{{"spec.components.1.order", "Last"}}, "spec.components[1].order", `"Last"`, `"BeforeReplicas", "AfterReplicas"`},
	"count that is no number":  {[]Edit{{"spec.components.1.count", "f > 1"}}, "spec.components[1].count", `"f > 1"`, "such as 3*f+1"},
	"no container":             {[]Edit{{"spec.components.1.containers", "[]"}}, "spec.components[1].containers", ": 0:", "at least 1 items"},
	"container named agent":    {[]Edit{{"spec.components.1.containers.0.name", "agent"}}, "spec.components[1].containers[0].name", `"agent"`, "taken by Assay's own container"},
	"gate on a replica's port": {[]Edit{{"spec.components.1.ready.0.port", "peer"}}, "spec.components[1].ready[0].port", `"peer"`, "spec.components[1].ports declares no port"},
	"template's syntax":        {[]Edit{{"spec.components.1.containers.0.command", "['{{.Self']"}}, "spec.components[1].containers[0].command[0]", `"{{.Self"`, "must be a Go template"},
	"long readyTimeout":        {[]Edit{{"spec.components.1.readyTimeout", "3h"}}, "spec.components[1].readyTimeout", `"3h"`, "must be from 1s to 2h"},
}

// WrongFaultsOfComponents are edits of config/samples/experiment-components.yaml.
var WrongFaultsOfComponents = map[string]Wrong{
	"unknown component":               {[]Edit{{"spec.faults.0.nodeKill.target.component", "proxi"}}, "spec.faults[0].nodeKill.target.component", `"proxi"`, `did you mean "proxy"?`},
	"pod that does not exist":         {[]Edit{{"spec.faults.0.nodeKill.target.pods", "[1]"}}, "spec.faults[0].nodeKill.target.pods[0]", ": 1:", "component coordinator has 1 pods for f = 1: 0 to 0"},
	"pods of no component":            {[]Edit{{"spec.faults.0.nodeKill.target", "{pick: 1, pods: [0]}"}}, "spec.faults[0].nodeKill.target.pods", "are those of a component", "name it by component"},
	"component and replicas":          {[]Edit{{"spec.faults.0.nodeKill.target.replicas", "[0]"}}, "spec.faults[0].nodeKill.target.component", "replicas and shards choose replicas", "choose those by pods, regions, role, pick"},
	"component and another's role":    {[]Edit{{"spec.faults.0.nodeKill.target.role", "leader"}}, "spec.faults[0].nodeKill.target.role", `"leader"`, "declares no role of component coordinator"},
	"region without it":               {[]Edit{{"spec.faults.0.nodeKill.target.regions", "[west]"}}, "spec.faults[0].nodeKill.target.regions[0]", `"west"`, "component coordinator is in no region"},
	"more picked than there are":      {[]Edit{{"spec.faults.2.partition.groups.0.pick", "3"}}, "spec.faults[2].partition.groups[0].pick", `"3"`, "picks 3 pods of component proxy, but only 2 match"},
	"picks nobody":                    {[]Edit{{"spec.faults.0.nodeKill.target.pick", "minority"}}, "spec.faults[0].nodeKill.target.pick", `"minority"`, "component coordinator has 1 pods"},
	"regions that do not add up":      {[]Edit{{"spec.topology.components.0.regions.0.replicas", "2"}}, "spec.topology.components[0].regions", `"3 pods"`, "component proxy of System \"kv-tiers\" has f+1 = 2 pods for f = 1"},
	"place of an unknown component":   {[]Edit{{"spec.topology.components.0.name", "prox"}}, "spec.topology.components[0].name", `"prox"`, `did you mean "proxy"?`},
	"pool of an unknown component":    {[]Edit{{"spec.placement.components.0.name", "prox"}}, "spec.placement.components[0].name", `"prox"`, `did you mean "proxy"?`},
	"pod of another region":           {[]Edit{{"spec.faults.1.degrade.target.regions", "[west]"}}, "spec.faults[1].degrade.target", "pods [0]", "chooses no pod"},
	"more pods than a part may have":  {[]Edit{{"spec.systems", "[{name: kv-grown}]"}}, "spec.topology.f", ": 1:", "gives 2000 replicas for f = 1"},
	"more pods than a trial may have": {[]Edit{{"spec.topology", "{f: 32, shards: 15}"}, {"spec.faults", "[]"}, {"spec.sweep", "[]"}}, "spec.topology.f", ": 32:", "has 1009 replicas and pods of components for f = 32; at most 1000 are possible"},
	"template of an unknown one":      {[]Edit{{"spec.systems", "[{name: kv-slip}]"}}, "spec.systems[0].name", `"kv-slip"`, `map has no entry for key "proxi"`},
}
