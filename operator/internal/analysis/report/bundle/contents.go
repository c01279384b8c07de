package bundle

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/report/archive"
	"assay.dev/assay/operator/internal/analysis/report/format"
	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/analysis/report/plot"
	inCluster "assay.dev/assay/operator/internal/analysis/report/stored"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/text/buildinfo"
)

// trialPage is how many trials' results are read at a time: each may take a megabyte.
const trialPage = 20

// run is a run of an experiment whose bundle is made.
type run struct {
	cluster client.Reader
	results results.Experiment
	// encoded results, and the spec as JSON; nil: it is not there.
	encoded, spec []byte
	// stored is the ConfigMap in the cluster that holds the results.
	stored  corev1.ConfigMap
	details model.Details
	trials  int
	leftOut []string
	// folders of the trials that are in the bundle, in their order.
	folders []results.TrialLine
	// slim: files that are made from others are left out.
	slim bool
	// license under which the bundle may be used; empty: none is given.
	license License
}

// writeSpec writes the Experiment as it could be applied again.
func (r *run) writeSpec(bundle *archive.Writer) error {
	if r.spec == nil {
		r.leftOut = append(r.leftOut, "the spec, which is not with the results")
		return nil
	}
	seeded, err := model.WithSeed(r.spec, r.results.Seed)
	if err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	text, err := json.Marshal(seeded)
	if err != nil {
		return fmt.Errorf("bundle: write the spec: %w", err)
	}
	return addYAML(bundle, ExperimentFile, "Experiment", r.results.Name, text)
}

// writeSystems writes the Systems as they were when the experiment was accepted.
func (r *run) writeSystems(ctx context.Context, bundle *archive.Writer) error {
	var list appsv1.ControllerRevisionList
	labels := client.MatchingLabels{v1alpha1.LabelExperiment: r.results.Name}
	if err := r.cluster.List(ctx, &list, client.InNamespace(r.stored.Namespace), labels); err != nil {
		r.leftOut = append(r.leftOut, fmt.Sprintf("the Systems, which cannot be read: %v", err))
		return nil
	}
	ofThis := slices.DeleteFunc(list.Items, func(c appsv1.ControllerRevision) bool {
		return c.Labels[v1alpha1.LabelSystem] == "" || !slices.ContainsFunc(c.OwnerReferences, func(o metav1.OwnerReference) bool { return string(o.UID) == r.results.UID })
	})
	if len(ofThis) == 0 {
		r.leftOut = append(r.leftOut, "the Systems, which were kept with the Experiment: it is gone")
	}
	slices.SortFunc(ofThis, func(a, b appsv1.ControllerRevision) int {
		return cmp.Or(strings.Compare(a.Labels[v1alpha1.LabelSystem], b.Labels[v1alpha1.LabelSystem]), strings.Compare(a.Name, b.Name))
	})
	for _, c := range ofThis {
		system := c.Labels[v1alpha1.LabelSystem]
		if err := addYAML(bundle, SystemsFolder+system+".yaml", "System", system, c.Data.Raw); err != nil {
			return err
		}
	}
	return nil
}

// addYAML writes an object of ours from its spec as JSON.
func addYAML(bundle *archive.Writer, file, kind, name string, spec []byte) error {
	object := map[string]any{"apiVersion": v1alpha1.GroupVersion.String(), "kind": kind, "metadata": map[string]string{"name": name}, "spec": json.RawMessage(spec)}
	text, err := yaml.Marshal(object)
	if err != nil {
		return fmt.Errorf("bundle: write %s %s as YAML: %w", kind, name, err)
	}
	return bundle.Add(file, text)
}

// writeTrials writes the files of each trial, valid or not, into its own folder. They are the whole
// results, and parts of them in forms that other programs read more easily.
func (r *run) writeTrials(ctx context.Context, bundle *archive.Writer) error {
	lines, done, err := r.trialLines(ctx)
	if err != nil {
		return err
	}
	for page := range slices.Chunk(lines, trialPage) {
		stored, err := r.readTrials(ctx, page)
		if err != nil {
			return err
		}
		for _, line := range page {
			c, ok := stored[line.ConfigMap]
			if !ok {
				continue
			}
			if err := r.writeTrial(ctx, bundle, line, c); err != nil {
				return err
			}
		}
	}
	if missing := done - r.trials; missing > 0 {
		r.leftOut = append(r.leftOut, fmt.Sprintf("the results of %d of %d trials, whose ConfigMaps are gone", missing, done))
	}
	return nil
}

// trialLines are the lines of the trials in their order, and how many trials are done. Lines that
// did not fit into the results are found by the labels of their ConfigMaps. They have name, number
// and ConfigMap only.
func (r *run) trialLines(ctx context.Context) (lines []results.TrialLine, done int, err error) {
	lines = slices.Concat(r.results.Trials, r.results.NotMeasuring)
	if model.LacksLines(r.results) {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
		labels := client.MatchingLabels{v1alpha1.LabelResults: "trial", v1alpha1.LabelExperiment: r.results.Name}
		if err := r.cluster.List(ctx, list, client.InNamespace(r.stored.Namespace), labels); err != nil {
			return nil, 0, fmt.Errorf("bundle: look for the results of the trials: %w", err)
		}
		for _, c := range list.Items {
			number, ofRun := inCluster.TrialNumber(r.stored.Name, c.Name)
			if ofRun && !slices.ContainsFunc(lines, func(l results.TrialLine) bool { return l.Number == number }) {
				lines = append(lines, results.TrialLine{Name: c.Labels[v1alpha1.LabelTrial], Number: number, ConfigMap: c.Name})
			}
		}
		for _, p := range r.results.Points {
			done += p.Valid + p.Invalid + p.Failed
		}
	}
	slices.SortFunc(lines, func(a, b results.TrialLine) int { return cmp.Compare(a.Number, b.Number) })
	return lines, max(done+len(r.results.NotMeasuring), len(lines)), nil
}

func (r *run) readTrials(ctx context.Context, lines []results.TrialLine) (map[string]corev1.ConfigMap, error) {
	stored := map[string]corev1.ConfigMap{}
	for _, l := range lines {
		if l.ConfigMap == "" {
			continue
		}
		var c corev1.ConfigMap
		err := r.cluster.Get(ctx, client.ObjectKey{Namespace: r.stored.Namespace, Name: l.ConfigMap}, &c)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("bundle: get the results of trial %s, ConfigMap %s: %w", l.Name, l.ConfigMap, err)
		}
		if err == nil {
			stored[l.ConfigMap] = c
		}
	}
	return stored, nil
}

func (r *run) writeTrial(ctx context.Context, bundle *archive.Writer, line results.TrialLine, stored corev1.ConfigMap) error {
	encoded, err := results.StoredTrial(stored.Data, stored.BinaryData)
	if err != nil {
		return fmt.Errorf("bundle: results of trial %s in ConfigMap %s: %w", line.Name, stored.Name, err)
	}
	t, err := results.DecodeTrial(encoded)
	if err != nil {
		return fmt.Errorf("bundle: results of trial %s in ConfigMap %s: %w", line.Name, stored.Name, err)
	}
	r.details.Add(t)
	r.trials++
	r.folders = append(r.folders, results.TrialLine{Name: line.Name, Outcome: t.Outcome, Coordinates: t.Coordinates, Repetition: t.Repetition})
	files, err := r.beside(line.Name, stored)
	if err != nil {
		return err
	}
	ofPods, err := r.ofPods(ctx, line.Name, stored.Name)
	if err != nil {
		return err
	}
	files = append(files, ofPods...)
	files = append(files, file{"trials/" + line.Name + "/" + TrialFile, encoded})
	parts, err := r.partsOf(line.Name, t)
	if err != nil {
		return err
	}
	return addAll(bundle, append(files, parts...))
}

// partsOf are parts of a trial's results as files of their own, for other programs. A slim bundle
// has none.
func (r *run) partsOf(name string, t results.Trial) ([]file, error) {
	var files []file
	if r.slim {
		return nil, nil
	}
	if t.Timeline != nil {
		var csv bytes.Buffer
		if err := results.WriteTimelineCSV(&csv, *t.Timeline); err != nil {
			return nil, fmt.Errorf("bundle: timeline of trial %s: %w", name, err)
		}
		files = append(files, file{"trials/" + name + "/" + TimelineFile, csv.Bytes()})
	}
	if t.Latency != "" {
		files = append(files, file{"trials/" + name + "/" + LatencyFile, []byte(t.Latency + "\n")})
	}
	return files, nil
}

// packs has, by the pack in a trial's ConfigMap, the folder for its files within the trial's
// folder.
var packs = map[string]string{results.RenderedPack: RenderedFolder, results.ReportsPack: ReportsFolder}

// beside unpacks the files that are kept beside a trial's results. Other binary data, of a later
// version, stays as it is.
func (r *run) beside(trial string, stored corev1.ConfigMap) ([]file, error) {
	var files []file
	for key, data := range stored.BinaryData {
		if key == results.StoredKey {
			continue // unpacked, as trial.json
		}
		folder, known := packs[key]
		if !known {
			files = append(files, file{"trials/" + trial + "/" + key, data})
			continue
		}
		unpacked, err := results.UnpackFiles(data, maxUnpacked)
		if err != nil {
			return nil, fmt.Errorf("bundle: %s of trial %s in ConfigMap %s: %w", key, trial, stored.Name, err)
		}
		for name, content := range unpacked {
			files = append(files, file{"trials/" + trial + "/" + folder + "/" + name, content})
		}
	}
	return files, nil
}

// ofPods unpacks the files of a trial's pods, and the ends of their logs, where some are kept.
func (r *run) ofPods(ctx context.Context, trial, stored string) ([]file, error) {
	var kept corev1.ConfigMap
	err := r.cluster.Get(ctx, client.ObjectKey{Namespace: r.stored.Namespace, Name: stored + v1alpha1.FilesSuffix}, &kept)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("bundle: get the files of the pods of trial %s: %w", trial, err)
	}
	var files []file
	for key, packed := range kept.BinaryData {
		unpacked, err := results.UnpackTree(packed, maxUnpacked)
		if err != nil {
			r.leftOut = append(r.leftOut, fmt.Sprintf("the files of pod %s of trial %s, which cannot be read: %v", strings.TrimSuffix(key, ".tar.gz"), trial, err))
			continue
		}
		pod, in := strings.TrimSuffix(key, ".tar.gz"), "trials/"+trial+"/"+PodsFolder
		for name, content := range unpacked {
			files = append(files, file{in + "/" + pod + "/" + name, content})
		}
		r.details.AddFiles(trial, pod, in, results.Sizes(unpacked))
	}
	return files, nil
}

// maxUnpacked bounds what a megabyte of a ConfigMap may unpack to.
const maxUnpacked = 256 << 20

// writeReports writes the results as they are stored, and, if the bundle is not slim, the report
// made of them.
func (r *run) writeReports(bundle *archive.Writer) error {
	if r.slim {
		return bundle.Add(ResultsFile, r.encoded)
	}
	shown := r.results
	r.details.Into(&shown)
	files := []file{{ResultsFile, r.encoded}}
	for _, name := range []string{"html", "markdown", "csv", "claims-csv", "recovery-csv", "network-csv", "resources-csv", "trials-csv", "use-csv", "latency-csv"} {
		form := format.Forms[name]
		var b bytes.Buffer
		if err := form.Write(&b, shown); err != nil {
			return err
		}
		files = append(files, file{form.File, b.Bytes()})
	}
	pictures, err := plot.Pictures(shown)
	if err != nil {
		return err
	}
	for _, p := range pictures {
		// Pictures in pixels can be drawn from this file. They once were more than half of a
		// bundle.
		files = append(files, file{"plots/" + p.Name + ".svg", p.SVG})
	}
	return addAll(bundle, files)
}

// versions of the programs that made the bundle, and of the machines of its valid trials.
type versions struct {
	// Assay and Go are those of the program that made the bundle.
	Assay      string              `json:"assay"`
	Go         string              `json:"go"`
	Formats    []string            `json:"formats"`
	Provenance *results.Provenance `json:"ranOn,omitempty"`
}

func (r *run) writeVersions(bundle *archive.Writer) error {
	shown := r.results
	r.details.Into(&shown)
	v := versions{Assay: buildinfo.Version(), Go: runtime.Version(), Formats: []string{results.ExperimentFormat, results.TrialFormat}, Provenance: shown.Provenance}
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("bundle: write the versions: %w", err)
	}
	return bundle.Add(VersionsFile, append(b, '\n'))
}

func (r *run) writeReadme(bundle *archive.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, readme, r.results.Name, r.results.Name)
	if r.results.Completed == nil && !model.Imported(r.results) {
		b.WriteString("\nThe experiment was not complete when this was made.\n")
	}
	if r.results.Judged != nil {
		b.WriteString("\nClaims were judged anew after the run: " + AsRunFolder + " holds the specification that was run and the results as they were then.\n")
	}
	for _, l := range r.leftOut {
		fmt.Fprintf(&b, "\nLeft out: %s.\n", l)
	}
	text := b.String()
	if r.slim {
		text = WithoutMade(text)
	}
	return bundle.Add("README.md", []byte(text))
}

const readme = `# Results of the experiment %s

| file | what it is |
|---|---|
| report.html, report.md | the report: verdicts, numbers, plots, where it all comes from |
| plots/*.svg | the plots of the report, each by itself; ` + "`kubectl assay report --file FILE -o png --output-dir DIR`" + ` draws them as PNG |
| experiment.yaml, systems/ | what was run, as it can be applied again: ` + "`kubectl apply -f systems/ -f experiment.yaml`" + ` |
| results.json | the experiment's results, with a line for each trial |
| claims.csv, points.csv, trials.csv, recovery.csv, network.csv, resources.csv, use.csv, latency.csv | the numbers of the report, not rounded |
| trials/*/trial.json | the results of a trial, valid or not: counters, faults, network, provenance |
| trials/*/timeline.csv | what was committed in each 100 ms |
| trials/*/latency.hdr.base64 | the latencies: HdrHistogram V2, compressed, base64, in microseconds |
| trials/*/rendered/ | the files and commands that the pods of a trial were given |
| trials/*/pods/*/out/, logs/ | files of a pod's own that the System asks for, and the ends of its logs if the trial is not valid; left-out.txt names what found no room |
| trials/*/reports/ | what each client pod reported, as it sent it, with its own histogram |
| versions.json | versions and digests: Assay's manager and agents, Kubernetes, what nodes run, images; and the program that made this bundle |
| ro-crate-metadata.json | this table for machines, as [RO-Crate](https://w3id.org/ro/crate/1.1) |
| SHA256SUMS | checksums: ` + "`sha256sum -c SHA256SUMS`" + ` |

` + "`kubectl assay report --file FILE`" + ` makes the report again from the archive that this file was in, and ` + "`kubectl assay compare FILE %s`" + ` compares it with a run of yours. ` + "`kubectl assay verify FILE`" + ` computes points and verdicts again from the trials.
`
