package verify_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/report/archive"
	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/cli/verify"
	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/results"
)

var update = flag.Bool("update", false, "write the bundles of testdata")

func TestVerify(t *testing.T) {
	if *update {
		writeBundles(t)
	}
	for name, tc := range map[string]struct {
		code int
		want []string // in the output, or in the error if there is no output
	}{
		"whole.tar.gz": {0, []string{"6 trials, 2 points and 2 verdicts were computed again: all are as they are said to be."}},
		"changed-file.tar.gz": {session.ExitDifferent, []string{
			"trials/e-3/trial.json was changed: its checksum is not that of SHA256SUMS", "trial e-3: its throughput is said to be 900"}},
		"changed-trial.tar.gz": {session.ExitDifferent, []string{
			"trial e-3: its throughput is said to be 900, its histogram and counters give", "trial e-3: its throughput in results.json:"}},
		"changed-histogram.tar.gz": {session.ExitDifferent, []string{"trial e-3: its mean latency is said to be", "trial e-3: its p99 is said to be"}},
		"changed-line.tar.gz": {session.ExitDifferent, []string{
			"trial e-3: its mean latency in results.json: 1, in its own results:", "point 1 (clients=20): meanLatency is said to be"}},
		"changed-point.tar.gz":   {session.ExitDifferent, []string{"point 0 (clients=10): throughput is said to be 5000"}},
		"changed-verdict.tar.gz": {session.ExitDifferent, []string{"claim scales: Reproduced is said, the trials and what ran give NotReproduced: "}},
		"changed-word.tar.gz":    {session.ExitDifferent, []string{"claim fast: Replicated is said, the trials and what ran give Reproduced: "}},
		"changed-system.tar.gz":  {session.ExitDifferent, []string{"it is said that this ran: Ring 2, the source's own program; at full size; spec and Systems give: Chain 2 in place of Ring; at full size"}},
		"without-systems.tar.gz": {0, []string{"note: the Systems are not there: what is said to have run is believed"}},
		"before-what-ran.tar.gz": {0, []string{"note: the verdicts are of a version that did not say what ran: its Reproduced says"}},
		"changed-claim.tar.gz":   {session.ExitDifferent, []string{"claim fast: its expression, reported value or tolerance is not that of the spec"}},
		"changed-report.tar.gz": {session.ExitDifferent, []string{
			"trial e-3: the clients' reports are not those that its results describe: 1 files", "trial e-3: its clients reported",
			"trial e-3: its histogram is not that of its clients' reports together", "trial e-3: its timeline is not that of its clients' reports together"}},
		"changed-rendered.tar.gz": {session.ExitDifferent, []string{"trial e-3: the rendered files are not those that its results describe: 1 files, sha256 "}},
		"without-rendered.tar.gz": {session.ExitDifferent, []string{"trial e-3: its results describe 1 rendered files, and there are none"}},
		"changed-versions.tar.gz": {session.ExitDifferent, []string{"versions.json: the versions, images and machines are not those of the trials"}},
		"changed-seed.tar.gz":     {session.ExitDifferent, []string{"experiment.yaml: its seed is 8, the trials were drawn from 7"}},
		"changed-crate.tar.gz":    {session.ExitDifferent, []string{"ro-crate-metadata.json describes another results.json: its checksum is not the same"}},
		"changed-latency.tar.gz": {session.ExitDifferent, []string{
			"trial e-3: latency.hdr.base64 is not the histogram of its results", "trial e-3: timeline.csv is not the timeline of its results"}},
		"before-them.tar.gz":   {0, []string{"note: the bundle has no versions.json", "note: the bundle has no ro-crate-metadata.json", "note: experiment.yaml has no seed: the trials were drawn from 7"}},
		"missing-trial.tar.gz": {0, []string{"note: of 1 trial there are no results of its own", "5 trials, 2 points"}},
		"truncated.tar.gz":     {session.ExitError, []string{"bundle: damaged"}},
		"without-sums.tar.gz":  {session.ExitError, []string{"it has no SHA256SUMS, so it is cut off or none"}},
		"verify_test.go":       {session.ExitError, []string{"not a bundle"}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join("testdata", name)
			if name == "verify_test.go" {
				path = name
			}
			var out bytes.Buffer
			s := &session.Session{Out: &out, Connect: func() (session.Cluster, error) { return session.Cluster{}, errors.New("no cluster") }}
			err := verify.Run(s, verify.Options{Bundle: path})
			if session.ExitCode(err) != tc.code {
				t.Errorf("exit code %d (%v), want %d; it says:\n%s", session.ExitCode(err), err, tc.code, &out)
			}
			said := out.String()
			if err != nil {
				said += err.Error()
			}
			for _, want := range tc.want {
				if !strings.Contains(said, want) {
					t.Errorf("it does not say %q:\n%s", want, said)
				}
			}
		})
	}
}

// files of a bundle, in order.
type files struct {
	names []string
	data  map[string][]byte
}

func (f *files) add(name string, data []byte) {
	if f.data == nil {
		f.data = map[string][]byte{}
	}
	f.names, f.data[name] = append(f.names, name), data
}

// with returns the files with a text replaced in one of them.
func (f files) with(t *testing.T, name, old, now string) files {
	t.Helper()
	changed := files{names: f.names, data: map[string][]byte{}}
	for n, data := range f.data {
		changed.data[n] = data
	}
	if !bytes.Contains(f.data[name], []byte(old)) {
		t.Fatalf("%s has no %q:\n%s", name, old, f.data[name])
	}
	changed.data[name] = bytes.Replace(f.data[name], []byte(old), []byte(now), 1)
	return changed
}

// replaced returns the files with other content of one of them.
func (f files) replaced(name string, data []byte) files {
	changed := files{names: f.names, data: maps.Clone(f.data)}
	changed.data[name] = data
	return changed
}

// withoutTrial removes the files of a folder.
func withoutTrial(f files, folder string) files {
	for _, n := range f.names {
		if strings.HasPrefix(n, folder) {
			f = f.without(n)
		}
	}
	return f
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// without removes a file.
func (f files) without(name string) files {
	less := files{data: f.data}
	for _, n := range f.names {
		if n != name {
			less.names = append(less.names, n)
		}
	}
	return less
}

func (f files) bundle(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := archive.NewWriter(&b, archive.Gzip, "e", time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range f.names {
		if err := w.Add(n, f.data[n]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// writeBundles writes the bundles of testdata: a whole one, and one for each kind of tampering.
func writeBundles(t *testing.T) {
	t.Helper()
	whole := experiment(t)
	trial := whole.data["trials/e-3/trial.json"]
	var own results.Trial
	if err := json.Unmarshal(trial, &own); err != nil {
		t.Fatal(err)
	}
	var other results.Trial
	if err := json.Unmarshal(whole.data["trials/e-2/trial.json"], &other); err != nil {
		t.Fatal(err)
	}
	said := fmt.Sprintf(`"throughput":%v`, own.Summary.Throughput)
	slow := whole.with(t, "trials/e-3/trial.json", said, `"throughput":900`)
	e, err := results.DecodeExperiment(whole.data["results.json"])
	if err != nil {
		t.Fatal(err)
	}
	sums := sumsOf(t, whole.bundle(t))
	for name, data := range map[string][]byte{
		"whole.tar.gz":             whole.bundle(t),
		"changed-trial.tar.gz":     slow.bundle(t),
		"changed-file.tar.gz":      repacked(t, slow, sums),
		"changed-histogram.tar.gz": whole.with(t, "trials/e-3/trial.json", own.Latency, other.Latency).bundle(t),
		"changed-line.tar.gz":      whole.with(t, "results.json", fmt.Sprintf(`"meanMillis":%v`, e.Trials[3].MeanMillis), `"meanMillis":1`).bundle(t),
		"changed-point.tar.gz":     whole.with(t, "results.json", fmt.Sprintf(`"throughput":{"n":3,"mean":%v`, e.Points[0].Metrics["throughput"].Mean), `"throughput":{"n":3,"mean":5000`).bundle(t),
		"changed-verdict.tar.gz":   whole.with(t, "results.json", `"verdict":"NotReproduced"`, `"verdict":"Reproduced"`).bundle(t),
		"changed-word.tar.gz":      whole.with(t, "results.json", `"verdict":"Reproduced"`, `"verdict":"Replicated"`).bundle(t),
		"changed-system.tar.gz":    whole.with(t, "systems/ring.yaml", `"Ring"`, `"Chain"`).bundle(t),
		"without-systems.tar.gz":   whole.without("systems/ring.yaml").bundle(t),
		"before-what-ran.tar.gz":   beforeWhatRan(t, whole).bundle(t),
		"changed-claim.tar.gz":     whole.with(t, "experiment.yaml", `u003c 1s`, `u003c 2s`).bundle(t),
		"missing-trial.tar.gz":     withoutTrial(whole, "trials/e-3/").bundle(t),
		"changed-report.tar.gz":    whole.replaced("trials/e-3/reports/e-3-c-0.json.gz", whole.data["trials/e-2/reports/e-2-c-0.json.gz"]).bundle(t),
		"changed-rendered.tar.gz":  whole.with(t, "trials/e-3/rendered/replica.config.json", "true", "false").bundle(t),
		"without-rendered.tar.gz":  whole.without("trials/e-3/rendered/replica.config.json").bundle(t),
		"changed-versions.tar.gz":  whole.with(t, "versions.json", "v1.36.1", "v1.35.0").bundle(t),
		"changed-seed.tar.gz":      whole.with(t, "experiment.yaml", `"seed":7`, `"seed":8`).bundle(t),
		"changed-crate.tar.gz":     whole.with(t, "ro-crate-metadata.json", sumOf(whole.data["results.json"]), sumOf(nil)).bundle(t),
		"changed-latency.tar.gz": whole.replaced("trials/e-3/latency.hdr.base64", whole.data["trials/e-2/latency.hdr.base64"]).
			replaced("trials/e-3/timeline.csv", whole.data["trials/e-2/timeline.csv"]).bundle(t),
		"before-them.tar.gz":  whole.without("versions.json").without("ro-crate-metadata.json").with(t, "experiment.yaml", `,"seed":7`, "").bundle(t),
		"truncated.tar.gz":    whole.bundle(t)[:2000],
		"without-sums.tar.gz": repacked(t, whole, nil),
	} {
		if err := os.WriteFile(filepath.Join("testdata", name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// beforeWhatRan is a bundle of an older version, which called every supported claim Reproduced.
func beforeWhatRan(t *testing.T, f files) files {
	t.Helper()
	e, err := results.DecodeExperiment(f.data["results.json"])
	if err != nil {
		t.Fatal(err)
	}
	e.Fidelity = nil
	for i, c := range e.Claims {
		e.Claims[i] = results.ClaimResult{Name: c.Name, Statement: c.Statement, Expr: c.Expr, Verdict: c.Verdict, Message: c.Message}
	}
	b, err := results.EncodeExperiment(e)
	if err != nil {
		t.Fatal(err)
	}
	before := f.without("systems/ring.yaml").replaced("results.json", b)
	return before.with(t, "ro-crate-metadata.json", sumOf(f.data["results.json"]), sumOf(b)).with(t, "experiment.yaml", `,"systems":[{"name":"Ring","version":"2"}]`, "")
}

// sumsOf is the file with the checksums of a bundle.
func sumsOf(t *testing.T, bundle []byte) []byte {
	t.Helper()
	gz, err := gzip.NewReader(bytes.NewReader(bundle))
	if err != nil {
		t.Fatal(err)
	}
	r := tar.NewReader(gz)
	for {
		h, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(h.Name, archive.Sums) {
			data, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			return data
		}
	}
}

// repacked packs a bundle again with these checksums, or with none.
func repacked(t *testing.T, f files, sums []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	gz := gzip.NewWriter(&b)
	w := tar.NewWriter(gz)
	write := func(name string, data []byte) {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "e/" + name, Mode: 0o644, Size: int64(len(data))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range f.names {
		write(n, f.data[n])
	}
	if sums != nil {
		write(archive.Sums, sums)
	}
	if err := errors.Join(w.Close(), gz.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// experiment makes the files of an experiment of two points with three trials each, as the manager
// and kubectl assay bundle write them.
func experiment(t *testing.T) files {
	t.Helper()
	axes := []results.Axis{{Name: "clients", Values: []string{"10", "20"}}}
	seed := int64(7)
	systems := map[string]v1alpha1.SystemSpec{"ring": {Program: &v1alpha1.Program{Name: "Ring", Version: "2"}}}
	source := &v1alpha1.Source{Title: "A ring of replicas", Section: "Figure 1", Systems: []v1alpha1.SourceSystem{{Name: "Ring", Version: "2"}}}
	spec := v1alpha1.ExperimentSpec{Seed: &seed, Source: source, Systems: []v1alpha1.SystemReference{{Name: "ring"}}, Claims: []v1alpha1.Claim{
		{Name: "fast", Statement: "It is fast.", Expr: "mean_latency(clients=10) < 1s"},
		{Name: "scales", Statement: "It gets slower with more clients.", Expr: "throughput(clients=20) < throughput(clients=10)"},
	}}
	rng := rand.New(rand.NewPCG(2026, 14))
	var f files
	var lines []results.TrialLine
	var details model.Details
	for number := range int32(6) {
		trial := addTrial(t, &f, rng, number)
		details.Add(trial)
		lines = append(lines, model.LineOf(trial))
	}
	object := &v1alpha1.Experiment{Spec: spec}
	object.Name, object.Status.Seed = "e", *spec.Seed
	e := model.Build(object, systems, axes, lines, time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC))
	b, err := results.EncodeExperiment(e)
	if err != nil {
		t.Fatal(err)
	}
	f.add("results.json", b)
	applied, err := json.Marshal(map[string]any{"kind": "Experiment", "spec": spec})
	if err != nil {
		t.Fatal(err)
	}
	f.add("experiment.yaml", applied) // JSON is YAML
	kept, err := json.Marshal(map[string]any{"kind": "System", "spec": systems["ring"]})
	if err != nil {
		t.Fatal(err)
	}
	f.add("systems/ring.yaml", kept)
	details.Into(&e)
	versions, err := json.Marshal(map[string]any{"assay": "v0.3.0", "ranOn": e.Provenance})
	if err != nil {
		t.Fatal(err)
	}
	f.add("versions.json", versions)
	crate, err := json.Marshal(map[string]any{"@graph": []map[string]string{{"@id": "./"}, {"@id": "results.json", "sha256": sumOf(b)}}})
	if err != nil {
		t.Fatal(err)
	}
	f.add("ro-crate-metadata.json", crate)
	return f
}

// addTrial adds a trial's results, and the files beside them.
func addTrial(t *testing.T, f *files, rng *rand.Rand, number int32) results.Trial {
	t.Helper()
	trial, packed := recorded(t, rng, number)
	folder := "trials/" + trial.Name + "/"
	rendered, report := []byte(`{"signed": true}`), trial.Name+"-c-0.json.gz"
	trial.Rendered = results.DescribeFiles(map[string][]byte{"replica.config.json": rendered})
	trial.Reports = results.DescribeFiles(map[string][]byte{report: packed})
	var table bytes.Buffer
	if err := results.WriteTimelineCSV(&table, *trial.Timeline); err != nil {
		t.Fatal(err)
	}
	b, err := results.EncodeTrial(trial)
	if err != nil {
		t.Fatal(err)
	}
	f.add(folder+"latency.hdr.base64", []byte(trial.Latency+"\n"))
	f.add(folder+"rendered/replica.config.json", rendered)
	f.add(folder+"reports/"+report, packed)
	f.add(folder+"timeline.csv", table.Bytes())
	f.add(folder+"trial.json", b)
	return trial
}

// recorded returns a trial of 2 s, recorded as by the load generator, and the report of its client.
func recorded(t *testing.T, rng *rand.Rand, number int32) (results.Trial, []byte) {
	t.Helper()
	windows := timeline.Windows{Measure: 2 * time.Second}
	r := results.NewRecorder(windows)
	point := number % 2
	for at := time.Duration(0); at < windows.Measure; at += time.Duration(4+rng.IntN(3)) * time.Millisecond / time.Duration(1+point) {
		r.Commit(at, time.Duration(1000+rng.IntN(5000))*time.Microsecond)
	}
	client := results.Client{Clients: 10 * (1 + point), MeasureNanos: int64(windows.Measure)}
	if err := r.Fill(&client); err != nil {
		t.Fatal(err)
	}
	m, err := results.Merge([]results.Client{client})
	if err != nil {
		t.Fatal(err)
	}
	sent, err := results.EncodeClient(client)
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	gz := gzip.NewWriter(&packed)
	if _, err := gz.Write(sent); err != nil {
		t.Fatal(err)
	}
	if err := gz.Close(); err != nil {
		t.Fatal(err)
	}
	return results.Trial{
		Pods:     []results.Pod{{Name: "r", Part: "replica", Images: "etcd@sha256:3"}},
		Software: &results.Software{Manager: "v0.2.0", ManagerImage: "manager@sha256:2", Kubernetes: "v1.36.1"},
		Name:     fmt.Sprintf("e-%d", number), Experiment: "e", Number: number, PointIndex: point, Repetition: number / 2, Outcome: "Succeeded",
		Coordinates:  map[string]string{"clients": fmt.Sprint(10 * (1 + point))},
		MeasureNanos: m.MeasureNanos, Summary: m.Summary, Latency: client.Latency, Timeline: &m.Timeline,
	}, packed.Bytes()
}
