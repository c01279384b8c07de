package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/cli/session"
)

// first is an experiment with a bit of everything that users get wrong.
const first = `apiVersion: assay.dev/v1alpha1
kind: Experiment
metadata:
  name: first
spec:
  systems: [{name: kv}]
  topology: {f: 1}
  workload: {name: read-write}
  clients: {loop: Closed, count: 2}
  sweep:
  - axis: variant
    points:
    - {name: healthy}
    - {name: crashed, faults: [crash]}
  faults:
  - {name: crash, at: -2s, nodeKill: {target: {replicas: [2]}}}
  repetitions: {min: 3}
  schedule: {warmUp: 5s, measure: 10s, coolDown: 2s}
  claims:
  - name: slower
    statement: A crash makes transactions slower.
    expr: mean_latency(variant='crashed') > mean_latency(variant='healthy')
`

// wrongInput is a command line with its files. In args, t.yaml is the name of the file: first with
// a change, or text.
type wrongInput struct {
	args string
	// The file is first with old replaced by new. If text is set, the file is text.
	old, new, text string
	stdin          string
}

const planned = "plan -f t.yaml --offline"

// wrongInputs are inputs of the kinds that new users tried. Some of them are valid, and must stay
// valid.
var wrongInputs = map[string]wrongInput{
	"misspelt field":                 {args: planned, old: "repetitions:", new: "repetition:"},
	"misspelt field inside":          {args: planned, old: "warmUp:", new: "warmup:"},
	"wrong unit":                     {args: planned, old: "measure: 10s", new: "measure: 10sec"},
	"no unit":                        {args: planned, old: "measure: 10s", new: "measure: 10"},
	"negative duration":              {args: planned, old: "measure: 10s", new: "measure: -10s"},
	"no repetitions":                 {args: planned, old: "min: 3", new: "min: 0"},
	"number beyond integers":         {args: planned, old: "count: 2", new: "count: 100000000000000000000"},
	"too many clients":               {args: planned, old: "count: 2", new: "count: 2000000"},
	"text for a number":              {args: planned, old: "count: 2", new: "count: two"},
	"number in quotes":               {args: planned, old: "count: 2", new: `count: "2"`},
	"file that is not there":         {args: "plan -f nope.yaml --offline"},
	"empty file":                     {args: planned, text: "\n"},
	"only a comment":                 {args: planned, text: "# nothing yet\n"},
	"tab":                            {args: planned, old: "  topology:", new: "\ttopology:"},
	"wrong indentation":              {args: planned, old: "  topology:", new: "   topology:"},
	"brace that stays open":          {args: planned, old: "{f: 1}", new: "{f: 1"},
	"quote that stays open":          {args: planned, old: "name: first", new: "name: \"first"},
	"key twice":                      {args: planned, old: "  topology: {f: 1}\n", new: "  topology: {f: 1}\n  topology: {f: 2}\n"},
	"point twice":                    {args: planned, old: "{name: crashed,", new: "{name: healthy,"},
	"two experiments":                {args: planned, text: first + "---\n" + strings.Replace(first, "name: first", "name: second", 1)},
	"unknown function":               {args: planned, old: "mean_latency(variant='crashed')", new: "meen_latency(variant='crashed')"},
	"claim on a missing point":       {args: planned, old: "(variant='crashed')", new: "(variant='crash')"},
	"claim that is cut off":          {args: planned, old: "(variant='healthy')\n", new: "(variant='healthy'\n"},
	"claim with two names":           {args: planned, old: "mean_latency(variant='crashed') >", new: "mean latency(variant='crashed') >"},
	"claim that mixes units":         {args: planned, old: "> mean_latency(", new: "> throughput("},
	"unknown system":                 {args: planned, old: "{name: kv}", new: "{name: kw}"},
	"fault of a missing replica":     {args: planned, old: "replicas: [2]", new: "replicas: [40]"},
	"unknown fault":                  {args: planned, old: "faults: [crash]", new: "faults: [krash]"},
	"fault after the end":            {args: planned, old: "at: -2s", new: "at: 100s"},
	"JSON":                           {args: planned, text: `{"apiVersion": "assay.dev/v1alpha1", "kind": "Experiment", "metadata": {"name": "j"}, "spec": {"systems": [{"name": "kv"}], "topology": {"f": 1}, "workload": {"name": "read-write"}, "clients": {"loop": "Closed"}, "schedule": {"measure": "10s"}}}`},
	"JSON that is cut off":           {args: planned, text: `{"apiVersion": "assay.dev/v1alpha1", "kind": "Experiment", "metadata": {`},
	"key that YAML takes for false":  {args: planned, old: "workload: {name: read-write}", new: "workload: {name: read-write}\n  parameters: {n: 4}"},
	"value that YAML takes for true": {args: planned, old: "    - {name: healthy}", new: "    - {name: y}"},
	"values that YAML takes for false": {args: planned, old: "  - axis: variant\n    points:\n    - {name: healthy}\n    - {name: crashed, faults: [crash]}\n",
		new: "  - {axis: fsync, values: [no, everysec]}\n"},
	"number in another notation":      {args: planned, old: "count: 2", new: "count: 1e1000"},
	"value with a colon":              {args: planned, old: "statement: A crash", new: "statement: Result: a crash"},
	"value that begins with a %":      {args: planned, old: "statement: A crash", new: "statement: %5 of all: a crash"},
	"anchor that is not there":        {args: planned, old: "count: 2", new: "count: *many"},
	"list for an object":              {args: planned, old: "topology: {f: 1}", new: "topology: [f]"},
	"text for an object":              {args: planned, old: "topology: {f: 1}", new: "topology: f"},
	"list at the top":                 {args: planned, text: "- a\n- b\n"},
	"folder without experiments":      {args: "plan -f others --offline"},
	"folder without YAML":             {args: "plan -f empty --offline"},
	"URL that does not answer":        {args: "plan -f https://127.0.0.1:1/x.yaml --offline"},
	"URL of another scheme":           {args: "plan -f ftp://x/x.yaml --offline"},
	"CRLF":                            {args: planned, text: strings.ReplaceAll(first, "\n", "\r\n")},
	"byte order mark":                 {args: planned, text: "\ufeff" + first},
	"UTF-16":                          {args: planned, text: "\xff\xfea\x00p\x00i\x00"},
	"latin-1":                         {args: planned, old: "A crash", new: "A cr\xe4sh"},
	"path of Windows":                 {args: `plan -f C:\exp\first.yaml --offline`},
	"binary file":                     {args: planned, text: "\x7fELF\x02\x01\x00\x00"},
	"bundle as -f":                    {args: "plan -f whole.tar.gz --offline"},
	"another kind":                    {args: planned, text: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"},
	"another version":                 {args: planned, old: "assay.dev/v1alpha1", new: "assay.dev/v1"},
	"misspelt kind":                   {args: planned, old: "kind: Experiment", new: "kind: Experimant"},
	"no spec":                         {args: planned, text: "apiVersion: assay.dev/v1alpha1\nkind: Experiment\nmetadata: {name: x}\n"},
	"no name":                         {args: planned, old: "  name: first\n", new: "  labels: {a: b}\n"},
	"long name":                       {args: planned, old: "name: first", new: "name: a-very-long-experiment-name-indeed"},
	"upper-case name":                 {args: planned, old: "name: first", new: "name: First_One"},
	"unknown profile":                 {args: "plan -f t.yaml --profile smok --offline"},
	"--set of an unknown field":       {args: "plan -f t.yaml --set schedule.measur=3s --offline"},
	"--set without a value":           {args: "plan -f t.yaml --set schedule.measure --offline"},
	"unknown verb":                    {args: "plann"},
	"unknown flag":                    {args: "plan --ofline"},
	"flag without its value":          {args: "plan -f"},
	"no arguments":                    {args: "plan"},
	"unknown form":                    {args: "plan -f t.yaml --offline -o table"},
	"empty stdin":                     {args: "plan -f - --offline"},
	"10 MB of comments":               {args: planned, text: strings.Repeat("# "+strings.Repeat("x", 98)+"\n", 100_000) + first},
	"aliases of aliases":              {args: planned, text: bomb()},
	"deep nesting":                    {args: planned, text: "a: " + strings.Repeat("[", 20_000)},
	"kubeconfig that is not there":    {args: "list --kubeconfig nope"},
	"kubeconfig that is no YAML":      {args: "list --kubeconfig whole.tar.gz"},
	"unknown context":                 {args: "list --kubeconfig refused --context prod"},
	"server that refuses":             {args: "list --kubeconfig refused"},
	"server with an unknown name":     {args: "list --kubeconfig unknown"},
	"run on a server that refuses":    {args: "run -f t.yaml --kubeconfig refused"},
	"queue of a server that refuses":  {args: "queue --kubeconfig refused"},
	"report of something else":        {args: "report --file t.yaml"},
	"report of other JSON":            {args: "report --file other.json"},
	"unknown form of a report":        {args: "report --file whole.tar.gz -o pfd"},
	"plots without a folder":          {args: "report --file whole.tar.gz -o pdf"},
	"report into a missing folder":    {args: "report --file whole.tar.gz -o nodir/x.html"},
	"bundle that is cut off":          {args: "report --file cut.tar.gz"},
	"verify something else":           {args: "verify t.yaml"},
	"verify a bundle that is cut off": {args: "verify cut.tar.gz"},
	"verify a bundle":                 {args: "verify whole.tar.gz"},
	"compare with a missing file":     {args: "compare whole.tar.gz nope.tar.gz"},
	"compare a run with itself":       {args: "compare whole.tar.gz whole.tar.gz"},
	"deviation that is no percentage": {args: "compare whole.tar.gz whole.tar.gz --between-runs 1"},
}

// bomb is a document of aliases of aliases, a billion of them.
func bomb() string {
	text := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := 1; i < 10; i++ {
		text += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
	}
	return text
}

// unclear matches words of libraries, of Go and of grammars, which users do not understand.
var unclear = regexp.MustCompile(`error converting|unmarshal|looking for beginning of value|strconv\.|mismatched input|<EOF>|%!|\bgoroutine\b|KUBERNETES_MASTER|failed to get server groups|(?:^|[^.\w])(?:yaml|json|gzip): |unexpected EOF|\[\]byte|map\[string\]|<nil>|0x[0-9a-f]{6,}`)

// slowest bounds the time of an answer on a machine that others use. Each answer takes less than
// 0.3 s of a processor, except for plans.
const slowest = 20 * time.Second

// Every wrong input gets its answer at once, with the exit code that the reference documents. The
// answer names the file and the line, or the flag, and quotes no library. The golden file has all
// answers for reviewers.
func TestWrongInputs(t *testing.T) {
	whole, err := os.ReadFile("../../internal/cli/verify/testdata/whole.tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	system, err := os.ReadFile("../../../config/samples/systems/driver.yaml")
	if err != nil {
		t.Fatal(err)
	}
	golden, err := filepath.Abs("testdata/wrong-inputs.golden")
	if err != nil {
		t.Fatal(err)
	}
	answers := map[string]string{}
	for name, in := range wrongInputs {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			text := first
			if in.old != "" && !strings.Contains(first, in.old) {
				t.Fatalf("the experiment has no %q", in.old)
			}
			if in.text != "" {
				text = in.text
			} else if in.old != "" {
				text = strings.Replace(first, in.old, in.new, 1)
			}
			write(t, "t.yaml", text)
			write(t, "systems/kv.yaml", string(system))
			write(t, "others/list.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n---\nsome: thing\n")
			write(t, "empty/README.md", "nothing\n")
			write(t, "whole.tar.gz", string(whole))
			write(t, "cut.tar.gz", string(whole[:len(whole)/2]))
			write(t, "other.json", `{"items": []}`)
			for name, server := range map[string]string{"refused": "https://127.0.0.1:1", "unknown": "https://no-such-host.invalid:6443"} {
				write(t, name, "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: '"+server+"'}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {}}]\n")
			}
			var out, errs bytes.Buffer
			s := &session.Session{Out: &out, Err: &errs, Now: time.Now, Sleep: session.Sleep}
			begin := time.Now()
			code := execute(t.Context(), s, strings.NewReader(in.stdin), strings.Fields(in.args))
			if took := time.Since(begin); took > slowest {
				t.Errorf("it took %v", took)
			}
			said := errs.String()
			if bad := unclear.FindString(said); bad != "" {
				t.Errorf("a user is told %q in\n%s", bad, said)
			}
			if (code == 0) != (said == "") && !strings.HasPrefix(said, "Note:") {
				t.Errorf("exit code %d with\n%s", code, said)
			}
			if code != 0 && !strings.Contains(said, "kubectl assay: ") {
				t.Errorf("the message does not say whose it is:\n%s", said)
			}
			answers[name] = fmt.Sprintf("### %s\n$ kubectl assay %s\n%s[%d]\n", name, in.args, masked(said), code)
			t.Logf("[%d] after %v: %s", code, time.Since(begin).Round(time.Millisecond), said)
		})
	}
	if len(answers) < len(wrongInputs) {
		return // -run left it out
	}
	var all strings.Builder
	for _, name := range slices.Sorted(maps.Keys(answers)) {
		all.WriteString(answers[name] + "\n")
	}
	if *update {
		write(t, golden, all.String())
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatalf("%v; run the test with -update", err)
	}
	if diff := cmp.Diff(string(want), all.String()); diff != "" {
		t.Errorf("(-want +got); run the test with -update if it is meant:\n%s", diff)
	}
}

// masked replaces the parts of an answer that differ from machine to machine. It hides the
// resolver. It also hides the middle of long lists, which grow with every field and form.
func masked(said string) string {
	return long.ReplaceAllString(resolver.ReplaceAllString(said, "on RESOLVER:53"), "${1}...${2}")
}

var (
	resolver = regexp.MustCompile(`on [0-9a-f.:\[\]]+:53`)
	long     = regexp.MustCompile(`([-.\w]+, )(?:[-.\w]+, ){6,}([-.\w]+)`)
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The command draws where the terminal's locale has the characters.
func TestDraws(t *testing.T) {
	for name, tc := range map[string]struct {
		env  map[string]string
		want bool
	}{
		"UTF-8":                  {map[string]string{"LANG": "en_US.UTF-8"}, true},
		"C":                      {map[string]string{"LANG": "C"}, false},
		"nothing":                {nil, false},
		"the first that is set":  {map[string]string{"LC_ALL": "C", "LANG": "de_DE.utf8"}, false},
		"a terminal without any": {map[string]string{"TERM": "dumb", "LANG": "C.UTF-8"}, false},
	} {
		if got := draws(func(name string) string { return tc.env[name] }); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}
