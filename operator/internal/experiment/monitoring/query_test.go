package monitoring

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/api/v1alpha1"
)

func testTrial() *v1alpha1.TrialSpec {
	return &v1alpha1.TrialSpec{
		Experiment: "demo", Workload: "ycsb", Point: v1alpha1.Point{Index: 3, Coordinates: map[string]string{"variant": "fp", "rate": "$1"}},
		Parameters: map[string]v1alpha1.Value{"batch": v1alpha1.NewValue("4")}, Schedule: v1alpha1.Schedule{Measure: "1m30s"},
		Clients: v1alpha1.Clients{Count: 10}, System: v1alpha1.SystemSnapshot{Name: "basil", Revision: "demo-basil-12"},
	}
}

func TestQuery(t *testing.T) {
	for name, tc := range map[string]struct {
		query, want string
		selectors   []string
	}{
		"a name": {`up`, `up{namespace="papers"}`, []string{`up{namespace="papers"}`}},
		"placeholders": {`sum(increase(process_cpu_seconds_total{assay_trial="{{.Trial}}",variant="{{.Coordinates.variant}}"}[{{.Window}}])) / {{.WindowSeconds}}`,
			`sum(increase(process_cpu_seconds_total{assay_trial="demo-1",namespace="papers",variant="fp"}[1m30s])) / 90`,
			[]string{`process_cpu_seconds_total{assay_trial="demo-1",namespace="papers",variant="fp"}`}},
		"every selector": {`a / on(pod) group_left b offset 5s + scalar(c @ 3) > bool 1 unless {__name__=~"d.*"}`,
			`a{namespace="papers"} / on (pod) group_left () b{namespace="papers"} offset 5s + scalar(c{namespace="papers"} @ 3.000) > bool 1 unless {__name__=~"d.*",namespace="papers"}`,
			[]string{`a{namespace="papers"}`, `b{namespace="papers"}`, `c{namespace="papers"}`, `{__name__=~"d.*",namespace="papers"}`}},
		"a subquery":        {`max_over_time(rate(a[5s])[{{.Window}}:1s])`, `max_over_time(rate(a{namespace="papers"}[5s])[1m30s:1s])`, []string{`a{namespace="papers"}`}},
		"absence":           {`absent(a)`, `absent(a{namespace="papers"})`, []string{`a{namespace="papers"}`}},
		"its own namespace": {`a{namespace="{{.Namespace}}"}`, `a{namespace="papers",namespace="papers"}`, []string{`a{namespace="papers",namespace="papers"}`}},
		"braces in a text":  {`a{b="}) or up{"}`, `a{b="}) or up{",namespace="papers"}`, []string{`a{b="}) or up{",namespace="papers"}`}},
		"a comment":         {"a # } or up", `a{namespace="papers"}`, []string{`a{namespace="papers"}`}},
		"one side of or":    {`a{namespace="papers" or namespace="other"}`, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			q, err := NewQuery(v1alpha1.Measurement{Query: tc.query}, ValuesOf("papers", "demo-1", testTrial()), DefaultNamespaceLabel)
			if tc.want == "" {
				if err == nil {
					t.Fatalf("taken as %s", q.expr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, q.expr); diff != "" {
				t.Errorf("query (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.selectors, q.selectors); diff != "" {
				t.Errorf("selectors (-want +got):\n%s", diff)
			}
		})
	}
}

func TestQueryRefused(t *testing.T) {
	for name, tc := range map[string]struct{ query, want string }{
		"another namespace":             {`a{namespace="other"}`, `asks for namespace="other"; an experiment reads metrics of its own namespace only, namespace="papers"`},
		"every namespace":               {`sum(a{namespace=~".+"})`, `asks for namespace=~".+"`},
		"another namespace, deep":       {`1 + sum(rate(a{namespace!="papers"}[5s:1s]))`, `asks for namespace!="papers"`},
		"another namespace, from point": {`a{namespace="{{.Coordinates.variant}}"}`, `asks for namespace="fp"`},
		"not PromQL":                    {`sum(a`, "not PromQL, at character 6: unclosed left parenthesis"},
		"no function":                   {`summ(a)`, `not PromQL, at character 1: unknown function with name "summ"`},
		"experimental: info":            {`info(a, {b="c"})`, "not PromQL"},
		"experimental: limitk":          {`limitk(1, a)`, "not PromQL"},
		"a range":                       {`a[5s]`, "gives a range vector; a number is needed"},
		"a text":                        {`"a"`, "gives a string; a number is needed"},
		"no metric":                     {`time() - 3`, "reads no metric"},
		"no such placeholder":           {`a{trial="{{.trial}}"}`, "can't evaluate field trial"},
		"no such axis":                  {`a{x="{{.Coordinates.nodes}}"}`, `no entry for key "nodes"`},
		"too long":                      {"a" + strings.Repeat(" or a", 1000), "the query has 5001 bytes after its template was rendered; at most 4096 are possible"},
		"too deep":                      {`{{$a := "("}}{{range 65}}{{$a}}{{end}}a{{range 65}}){{end}}`, "the query's brackets nest deeper than 64, at character 65"},
		"deep by doubling":              {`{{$a := "("}}` + strings.Repeat(`{{$a = print $a $a}}`, 14) + `{{$a}}`, "at most 4096 are possible"},
		"a template that runs away":     {`a{x="{{range 10000000}}y{{end}}"}`, "loops run more than"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Check(v1alpha1.Measurement{Query: tc.query}, "papers", testTrial())
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

// Brackets in texts do not nest.
func TestBracketsInTexts(t *testing.T) {
	brackets := strings.Repeat("(", 100)
	query := `a{x="\"` + brackets + `",y='` + brackets + "'} + b{z=`" + brackets + "`}"
	if err := Check(v1alpha1.Measurement{Query: query}, "papers", testTrial()); err != nil {
		t.Errorf("%s: %v", query, err)
	}
}

// A query that is accepted reads no other namespace: the sent text has a matcher in every selector.
func FuzzQuery(f *testing.F) {
	for _, seed := range []string{`a`, `sum(a{b="c"}) by (d)`, `a or b{namespace="x"}`, `{"a.b"}`, `a[5m:1s] offset 3s`, "{{.Trial}}", `rate({__name__=~".+"}[5m] @ end())`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, query string) {
		q, err := NewQuery(v1alpha1.Measurement{Query: query}, ValuesOf("papers", "demo-1", testTrial()), DefaultNamespaceLabel)
		if err != nil {
			return
		}
		if err := q.confined(DefaultNamespaceLabel, "papers"); err != nil {
			t.Error(err)
		}
		for _, s := range q.selectors {
			if !strings.Contains(s, `namespace="papers"`) {
				t.Errorf("%q reads %s", query, s)
			}
		}
	})
}
