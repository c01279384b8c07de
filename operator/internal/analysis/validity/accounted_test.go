package validity

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"testing"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/fault"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/model/shaping"
	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results"
)

// eventful is a run that counts and has many facts. It has three replicas and two client pods,
// whose links are shaped, and a measurement that is required. Its faults kill and revive a replica,
// cut another one off, hit the leader, and let Chaos Mesh make a partition.
func eventful(t *testing.T) *Observation {
	t.Helper()
	spec := &v1alpha1.TrialSpec{
		Schedule:     v1alpha1.Schedule{WarmUp: "5s", Measure: "20s", CoolDown: "2s", Drain: "5s"},
		Clients:      v1alpha1.Clients{Loop: v1alpha1.LoopClosed, Count: 4, Nodes: 2, Regions: []string{"east"}},
		Measurements: []v1alpha1.Measurement{{Name: "queue", Required: true}},
		Topology:     v1alpha1.Topology{F: 1, Shards: 1, Regions: []v1alpha1.Region{{Name: "east", Replicas: 3}}},
		Tolerances:   tolerances,
	}
	spec.Tolerances.StartSpread, spec.Tolerances.FaultLateness = "100ms", "20ms"
	spec.Tolerances.LinkDelay, spec.Tolerances.LinkLateness, spec.Tolerances.Contention = "1ms", "10ms", "5%"
	spec.Tolerances.ChaosMeshLateness = "10s"
	lasts := v1alpha1.Duration("3s")
	spec.Faults = []v1alpha1.Fault{
		{Name: "crash", At: "2s", For: &lasts, NodeKill: &v1alpha1.NodeKill{Target: v1alpha1.Target{Replicas: []int32{0}}}},
		{Name: "leader", At: "8s", For: &lasts, Pause: &v1alpha1.Pause{Target: v1alpha1.Target{Role: "leader"}}},
		{Name: "cut", At: "14s", For: &lasts, Partition: &v1alpha1.Partition{Groups: []v1alpha1.Target{{Replicas: []int32{2}}, {Replicas: []int32{0, 1}}}}},
	}
	system := &v1alpha1.SystemSpec{}
	o := &Observation{
		Trial: &v1alpha1.Trial{Spec: *spec}, Layout: placement.NewLayout("lab", "e-0", spec, system), Rendered: true, PodsDigest: "abc",
		ProbesOver: time.Unix(100, 0), Records: map[string]protocol.ActionRecord{},
	}
	o.Trial.Status.PodsDigest, o.Trial.Status.ZeroUnixNanos = "abc", 1
	o.Trial.Status.Network = &v1alpha1.TrialNetwork{Backend: v1alpha1.ShapingBackend(shaping.Netem)}
	planned, err := fault.Build(spec.Faults, o.Windows(), o.Layout)
	if err != nil {
		t.Fatal(err)
	}
	o.Actions = timeline.InForce(planned, shaping.Netem.Side())
	for _, a := range o.Actions {
		r := protocol.ActionRecord{ID: a.ID, Planned: a.At, Started: a.At, Confirmed: a.At + time.Millisecond}
		r.Skipped = a.Role != "" && a.Pod != o.Layout.Servers[1].Name
		if a.Kind == timeline.Heal {
			r.Packets = 12
		}
		o.Records[a.ID] = r
	}
	for _, s := range o.Layout.Servers {
		o.Pods = append(o.Pods, Pod{Name: s.Name, Region: s.Region, Shard: s.Shard})
	}
	for i := range o.Layout.Clients {
		o.Pods = append(o.Pods, Pod{Name: o.Layout.Clients[i].Name, Client: &o.Layout.Clients[i]})
	}
	for i := range o.Pods {
		o.report(i)
	}
	o.Pairs = PairsOf(o.Pods, func(pod string) *protocol.Network {
		var peers []protocol.NetworkPeer
		for i := range o.Pods {
			if name := o.Pods[i].Name; name != pod {
				peers = append(peers, protocol.NetworkPeer{Name: name, Out: shaping.Link{Delay: 10 * time.Millisecond}, In: shaping.Link{Delay: 10 * time.Millisecond}})
			}
		}
		return &protocol.Network{Peers: peers}
	})
	value := 1.0
	o.Measured = []results.Measurement{{Name: "queue", Value: &value}}
	if err := o.merge(t); err != nil {
		t.Fatal(err)
	}
	return o
}

// report has the agent of a pod report everything that an agent reports of a successful run.
func (o *Observation) report(i int) {
	p := &o.Pods[i]
	name := "server"
	network := &protocol.NetworkReport{Baseline: true, Tried: true, Proven: true, Watched: true}
	for k := range o.Pods {
		if k != i {
			rtt := 20*time.Millisecond + undelayed
			network.Links = append(network.Links, protocol.LinkReport{
				Peer: o.Pods[k].Name, BaselineRTT: undelayed, RTT: rtt, OutDelay: 10*time.Millisecond + undelayed/2, InDelay: 10*time.Millisecond + undelayed/2,
				CanarySent: 20, CanaryMin: rtt, CanaryMedian: rtt, CanaryMax: rtt,
			})
		}
	}
	p.Exists, p.HasAddress, p.ReportedAt, p.Node, p.Part = true, true, time.Unix(101, 0), fmt.Sprintf("node-%d", i), v1alpha1.PodTypeReplica
	p.Report = &protocol.Report{
		Incarnation: "1", Sequence: 7, ClockError: time.Millisecond, ClockManager: "manager-1", Ready: true, NamesResolved: true, ResetsCounted: true, Network: network,
	}
	if p.Client != nil {
		name, p.Part = "client", v1alpha1.PodTypeClient
		p.Report.Over, p.Report.Sent = true, true
		p.Report.Client = &protocol.ClientRun{Released: -6 * time.Second, Ended: 27 * time.Second}
		o.Clients = append(o.Clients, results.Client{
			Index: int32(p.Client.Index), FirstClient: int32(p.Client.First), Clients: int32(p.Client.Count), StartedNanos: int64(20 * time.Millisecond),
			Counters: results.Counters{Offered: 1, Committed: 1},
		})
	}
	late := 0.0
	p.Containers = []string{name}
	p.Report.Containers = []protocol.ContainerState{{Name: name, State: protocol.StateRunning, Starts: 1}}
	p.Report.Resources = &results.Resources{
		Seconds: 20, Containers: []results.ContainerUse{{Name: name, Seconds: 20, LateShare: &late, Wakes: 800}}, Node: results.NodeUse{Seconds: 20, CPUs: 4},
	}
}

// merge puts together the results of the run, as the engine does. If that fails, the run does not
// count.
func (o *Observation) merge(t *testing.T) error {
	t.Helper()
	clients := append([]results.Client(nil), o.Clients...)
	for i := range clients {
		clients[i].MeasureNanos, clients[i].Latency = o.Windows().Measure.Nanoseconds(), oneLatency(t)
	}
	var err error
	if o.Merged, err = results.Merge(clients); err != nil {
		return err
	}
	o.Result = o.Describe()
	o.Result.Summary, o.Result.Measurements = o.Merged.Summary, o.Measured
	return nil
}

// oneLatency is a histogram of one latency.
func oneLatency(t *testing.T) string {
	t.Helper()
	h := results.NewHistogram()
	h.Record(5 * time.Millisecond)
	latency, err := h.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return latency
}

// derived are the request, and facts that follow from all other facts.
var derived = map[string]bool{"Trial": true, "Layout": true, "Merged": true, "Result": true}

// negligible are facts without which a trial still counts, each with the reason.
var negligible = map[string]string{
	`^PodsDigest`: "looked at while the trial runs: the pods are gone when it is judged",
	`^ProbesOver|\.ReportedAt|\.(Exists|HasAddress|Region|Part|Shard|Node)$`: "where a pod is; live checks look at it",
	`^Pods\[\d\]\.Client`:                                     "which clients the pod is to run, which is asked",
	`^Pods\[\d\]\.Containers`:                                 "which processes the pod is to run, which is asked",
	`Report\.(Incarnation|Sequence|Ready|NamesResolved|Sent)`: "of the way to the run, which live checks look at",
	`Report\.ClockError`:                                      "the barrier asks for it",
	`Report\.Containers\[\d\]\.(State|Starts)`:                "a state of none is reported by no agent",
	`Report\.Network\.(Tried|Links)`:                          "judged by the pairs that are made of it",
	`Report\.Resources\.(Seconds|Node\.CPUs)`:                 "a sum of others, and a description",
	`Resources\.Containers\[\d\]\.Wakes`:                      "what the share that is judged is of",
	`^Actions\[\d+\]\.(Fault|Time|Out|In|Pod|Kind|At|Ends|Role|Peers|Links|Object|WithoutSilence)`: "the plan itself",
	`^Records\[.*\]\.(ID|Planned|Packets|Skipped)`:                                                 "what is looked up by, or judged apart",
	`^Pairs\[\d+\]\.(A|B|RegionA|RegionB|Out|In)`:                                                  "what was asked of it",
	`^Pairs\[\d+\]\.By[AB]\.(Peer|RTT|OutDelay|InDelay|CanaryMedian|CanaryMax)`:                    "judged before the start, or faster than asked",
	`^Clients\[\d\]\.(Index|FirstClient|StartedNanos|Counters)`:                                    "0 is as good a number as another",
	`^Measured\[0\]\.(Name|Value\.\*)`:                                                             "a description, and a number that may be 0",
	`^Records\[.*/(kill|cut|pause)/.*\.Started`:                                                    "when it was confirmed is judged",
	`^Records\[leader.*east-[02]\]\.`:                                                              "a replica that did not have the role did nothing",
}

// If any one fact about a valid run is dropped, the run no longer counts, unless the fact is
// negligible. An unknown fact speaks against a trial.
func TestNoFactCanBeMissed(t *testing.T) {
	whole := eventful(t)
	if f := Judge(whole); !f.OK() {
		t.Fatalf("the run does not count with all facts: %q: %s", f.Reason, f.Message)
	}
	used, patterns := map[string]bool{}, map[string]*regexp.Regexp{}
	for re := range negligible {
		patterns[re] = regexp.MustCompile(re)
	}
	dropped, held := 0, 0
	facts := 0
	each(reflect.ValueOf(whole).Elem(), "", func(string, func()) { facts++ })
	for n := range facts {
		o := eventful(t)
		i, path, drop := 0, "", func() {}
		each(reflect.ValueOf(o).Elem(), "", func(p string, d func()) {
			if i == n {
				path, drop = p, d
			}
			i++
		})
		drop()
		dropped++
		pattern := ""
		for re, compiled := range patterns {
			if compiled.MatchString(path) {
				pattern = re
			}
		}
		switch err := o.merge(t); {
		case err != nil || !Judge(o).OK():
			held++
		case pattern == "":
			t.Errorf("the run counts without %s", path)
		default:
			used[pattern] = true
		}
	}
	for re, why := range negligible {
		if !used[re] {
			t.Errorf("no fact is negligible by %s (%s)", re, why)
		}
	}
	t.Logf("of %d facts, the run does not count without %d", dropped, held)
	if held < 200 {
		t.Errorf("of %d facts only %d matter: has the observation lost some?", dropped, held)
	}
}

// each calls do for every fact, with its path and what drops it. A fact is an element of a list or
// map, the target of a pointer, or any value other than its type's zero value.
func each(v reflect.Value, path string, do func(path string, drop func())) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return
		}
		do(path, func() { v.SetZero() })
		if v.Elem().Kind() != reflect.Struct {
			path += ".*"
		}
		each(v.Elem(), path, do)
	case reflect.Struct:
		if _, is := v.Addr().Interface().(*time.Time); is {
			do(path, func() { v.SetZero() })
			return
		}
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if !f.IsExported() || path == "" && derived[f.Name] {
				continue
			}
			name := f.Name
			if path != "" {
				name = path + "." + name
			}
			each(v.Field(i), name, do)
		}
	case reflect.Slice:
		for i := range v.Len() {
			at := fmt.Sprintf("%s[%d]", path, i)
			do(at, func() { v.Set(reflect.AppendSlice(v.Slice3(0, i, i), v.Slice(i+1, v.Len()))) })
			each(v.Index(i), at, do)
		}
	case reflect.Map:
		eachOfMap(v, path, do)
	default:
		if v.CanSet() && !v.IsZero() {
			do(path, func() { v.SetZero() })
		}
	}
}

func eachOfMap(v reflect.Value, path string, do func(path string, drop func())) {
	keys := v.MapKeys()
	sortByText(keys)
	for _, k := range keys {
		at := fmt.Sprintf("%s[%v]", path, k)
		do(at, func() { v.SetMapIndex(k, reflect.Value{}) })
		one := reflect.New(v.Type().Elem()).Elem()
		one.Set(v.MapIndex(k))
		each(one, at, func(p string, drop func()) {
			do(p, func() { drop(); v.SetMapIndex(k, one) })
		})
	}
}

func sortByText(keys []reflect.Value) {
	text := func(v reflect.Value) string { b, _ := json.Marshal(v.Interface()); return string(b) }
	for i := range keys {
		for j := range i {
			if text(keys[i]) < text(keys[j]) {
				keys[i], keys[j] = keys[j], keys[i]
			}
		}
	}
}
