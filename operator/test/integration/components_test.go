package integration

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"assay.dev/assay/operator/internal/testkit/testenv"
)

var wrongComponents = map[string]wrong{
	"two of one name":          {[]edit{{"spec.components.1.name", "coordinator"}}, "spec.components[1]", `"coordinator"`, "Duplicate value"},
	"name with a dash":         {[]edit{{"spec.components.1.name", "the-proxy"}}, "spec.components[1].name", `"the-proxy"`, "^[a-z][a-z0-9]*$"},
	"name of a shard":          {[]edit{{"spec.components.1.name", "s0"}}, "spec.components[1].name", `"s0"`, "the name is taken"},
	"name of the clients":      {[]edit{{"spec.components.1.name", "client"}}, "spec.components[1].name", `"client"`, "call the component otherwise"},
	"unknown order":            {[]edit{{"spec.components.1.order", "Last"}}, "spec.components[1].order", `"Last"`, `"BeforeReplicas", "AfterReplicas"`},
	"count that is no number":  {[]edit{{"spec.components.1.count", "f > 1"}}, "spec.components[1].count", `"f > 1"`, "such as 3*f+1"},
	"no container":             {[]edit{{"spec.components.1.containers", "[]"}}, "spec.components[1].containers", ": 0:", "at least 1 items"},
	"container named agent":    {[]edit{{"spec.components.1.containers.0.name", "agent"}}, "spec.components[1].containers[0].name", `"agent"`, "taken by Assay's own container"},
	"gate on a replica's port": {[]edit{{"spec.components.1.ready.0.port", "peer"}}, "spec.components[1].ready[0].port", `"peer"`, "spec.components[1].ports declares no port"},
	"template's syntax":        {[]edit{{"spec.components.1.containers.0.command", "['{{.Self']"}}, "spec.components[1].containers[0].command[0]", `"{{.Self"`, "must be a Go template"},
	"long readyTimeout":        {[]edit{{"spec.components.1.readyTimeout", "3h"}}, "spec.components[1].readyTimeout", `"3h"`, "must be from 1s to 2h"},
}

var wrongFaultsOfComponents = map[string]wrong{
	"unknown component":             {[]edit{{"spec.faults.0.nodeKill.target.component", "proxi"}}, "spec.faults[0].nodeKill.target.component", `"proxi"`, `did you mean "proxy"?`},
	"pod that does not exist":       {[]edit{{"spec.faults.0.nodeKill.target.pods", "[1]"}}, "spec.faults[0].nodeKill.target.pods[0]", ": 1:", "component coordinator has 1 pods for f = 1: 0 to 0"},
	"pods of no component":          {[]edit{{"spec.faults.0.nodeKill.target", "{pick: 1, pods: [0]}"}}, "spec.faults[0].nodeKill.target.pods", "are those of a component", "name it by component"},
	"component and replicas":        {[]edit{{"spec.faults.0.nodeKill.target.replicas", "[0]"}}, "spec.faults[0].nodeKill.target.component", "replicas and shards choose replicas", "choose those by pods, regions, role, pick"},
	"component and another's role":  {[]edit{{"spec.faults.0.nodeKill.target.role", "leader"}}, "spec.faults[0].nodeKill.target.role", `"leader"`, "declares no role of component coordinator"},
	"region without it":             {[]edit{{"spec.faults.0.nodeKill.target.regions", "[west]"}}, "spec.faults[0].nodeKill.target.regions[0]", `"west"`, "component coordinator is in no region"},
	"more picked than there are":    {[]edit{{"spec.faults.2.partition.groups.0.pick", "3"}}, "spec.faults[2].partition.groups[0].pick", `"3"`, "picks 3 pods of component proxy, but only 2 match"},
	"picks nobody":                  {[]edit{{"spec.faults.0.nodeKill.target.pick", "minority"}}, "spec.faults[0].nodeKill.target.pick", `"minority"`, "component coordinator has 1 pods"},
	"regions that do not add up":    {[]edit{{"spec.topology.components.0.regions.0.replicas", "2"}}, "spec.topology.components[0].regions", `"3 pods"`, "component proxy of System \"kv-tiers\" has f+1 = 2 pods for f = 1"},
	"place of an unknown component": {[]edit{{"spec.topology.components.0.name", "prox"}}, "spec.topology.components[0].name", `"prox"`, `did you mean "proxy"?`},
	"pool of an unknown component":  {[]edit{{"spec.placement.components.0.name", "prox"}}, "spec.placement.components[0].name", `"prox"`, `did you mean "proxy"?`},
	"template of an unknown one":    {[]edit{{"spec.systems", "[{name: kv-slip}]"}}, "spec.systems[0].name", `"kv-slip"`, `map has no entry for key "proxi"`},
}

func TestWrongComponentsAreRefused(t *testing.T) {
	env := testenv.Get(t)
	ns := env.Namespace(t)
	system, slip := sample(t, "system-components.yaml"), sample(t, "system-components.yaml")
	slip.SetName("kv-slip")
	set(t, slip, "spec.clients.containers.0.command", "['{{.Components.proxi.Count}}']")
	for _, s := range []*unstructured.Unstructured{system, slip} {
		s.SetNamespace(ns)
		if err := env.Client.Create(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	refuse(t, env, ns, "system-components.yaml", wrongComponents)
	refuse(t, env, ns, "experiment-components.yaml", wrongFaultsOfComponents)
}
