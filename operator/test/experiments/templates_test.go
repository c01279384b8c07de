package experiments

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/experiment/render"
)

const templatesPage = "../../../docs/reference/templates.md"

// pageContext is the trial of the examples in docs/reference/templates.md.
func pageContext(t *testing.T) render.Context {
	t.Helper()
	spec := &v1alpha1.TrialSpec{
		Topology: v1alpha1.Topology{F: 1, Shards: 2, Regions: []v1alpha1.Region{{Name: "local", Replicas: 3}}, Components: []v1alpha1.ComponentRegions{
			{Name: "proxy", Regions: []v1alpha1.Region{{Name: "local", Replicas: 2}}},
		}},
		Clients: v1alpha1.Clients{Nodes: 2, Count: 5},
	}
	system := &v1alpha1.SystemSpec{
		Replicas:   v1alpha1.ReplicasSpec{Ports: []v1alpha1.Port{{Name: "peer", Port: 7087}}},
		Components: []v1alpha1.Component{{Name: "proxy", ReplicasSpec: v1alpha1.ReplicasSpec{Ports: []v1alpha1.Port{{Name: "front", Port: 7200}}}}},
	}
	l := placement.NewLayout("papers", "demo-0", spec, system)
	addresses := map[string]string{}
	for i, r := range l.Servers {
		addresses[r.Name] = "10.0.0." + string(rune('1'+i))
	}
	for i, c := range l.Clients {
		addresses[c.Name] = "10.0.1." + string(rune('1'+i))
	}
	l, missing := l.Resolve(addresses)
	if len(missing) > 0 {
		t.Fatalf("no address of %v", missing)
	}
	return render.Context{
		Trial: "demo-0", Experiment: "demo", Namespace: "papers", F: 1, Shards: 2, ClientCount: 5,
		Parameters: map[string]any{"fastPath": true, "timeout": "2.5ms"},
		Components: map[string]render.Component{"proxy": proxies(l)},
		Replicas:   l.Replicas(), ShardList: [][]placement.Replica{l.Servers[:3], l.Servers[3:6]}, Clients: l.Clients, Self: l.Servers[4],
		Schedule: render.Schedule{WarmUpSeconds: 5, MeasureSeconds: 20, CoolDownSeconds: 2.5, DrainSeconds: 10, LoadSeconds: 27.5},
	}
}

// proxies is the component of the page's examples.
func proxies(l *placement.Layout) render.Component {
	c := render.Component{Name: "proxy", Pods: l.Group("proxy"), Ports: map[string]int{"front": 7200}}
	c.Count = len(c.Pods)
	for _, p := range c.Pods {
		c.Hosts, c.IPs = append(c.Hosts, p.Host), append(c.IPs, p.IP)
	}
	return c
}

func TestExamplesOfTheTemplatesPage(t *testing.T) {
	page, err := os.ReadFile(templatesPage)
	if err != nil {
		t.Fatal(err)
	}
	context := pageContext(t)
	examples := regexp.MustCompile("(?m)^\\| `(.*\\{\\{.*)` \\| `(.*)` \\|$").FindAllStringSubmatch(string(page), -1)
	if len(examples) < 20 {
		t.Fatalf("%d examples, want 20 and more: the page's tables have changed", len(examples))
	}
	for _, example := range examples {
		text, want := example[1], example[2]
		parsed, err := render.ParseTemplate("example", text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		var got strings.Builder
		if err := parsed.Execute(&got, context); err != nil || got.String() != want {
			t.Errorf("%s gives %q (%v), want %q", text, got.String(), err, want)
		}
	}
}

// The guide explains a System piece by piece. Each piece must be in the file that really runs.
func TestGuideQuotesTheSystemThatRuns(t *testing.T) {
	guide, err := os.ReadFile("../../../docs/guide/write-a-system.md")
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, file := range []string{"../e2e/testdata/awkward.yaml", "../e2e/testdata/awkward-stress.yaml"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, string(text))
	}
	pieces := regexp.MustCompile("(?s)```yaml\n(?:# [^\n]*\n)?(.*?)```").FindAllStringSubmatch(string(guide), -1)
	if len(pieces) < 7 {
		t.Fatalf("%d pieces, want 7 and more", len(pieces))
	}
	for _, piece := range pieces {
		if !strings.Contains(files[0], piece[1]) && !strings.Contains(files[1], piece[1]) {
			t.Errorf("no file of the end-to-end tests has this piece of the guide:\n%s", piece[1])
		}
	}
}
