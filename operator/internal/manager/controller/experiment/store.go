package experiment

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	accorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/report/csvfile"
	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/analysis/validity"
	"assay.dev/assay/operator/internal/engine/conditions"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/results"
)

const (
	// maxStored is the most bytes of a ConfigMap's data and binaryData; the API server refuses 1
	// MiB.
	maxStored = 1000000

	csvKey  = "results.csv"
	specKey = "spec.json"

	// annotationDigest is the digest of the stored results, without the time of writing.
	annotationDigest = v1alpha1.AnnotationResultsDigest
	// annotationContent equals resultsDigest of the status when both have been written.
	annotationContent = "assay.dev/content-digest"
	// annotationUID is the UID of the results' experiment.
	annotationUID = "assay.dev/experiment-uid"

	csvLeftOut = "results.csv: write it from results.json with kubectl assay report"
)

var configMapKind = corev1.SchemeGroupVersion.WithKind("ConfigMap")

// store makes the results of the finished trials, and writes them if they differ from the stored
// results. The ConfigMap has no owner: results outlive their experiment.
func (r *Reconciler) store(ctx context.Context, s *scope) error {
	measuring, others := plan.Split(s.trials)
	lines := trialLines(measuring)
	built := model.Build(s.exp, s.systems, s.plan.Axes, lines, time.Time{})
	built.NotMeasuring = trialLines(others)
	built.Planned = int(s.step.Counts.Planned) * s.plan.ResultsOfATrial() // the number of repetitions may not be fixed
	for i := range built.Capacities {
		if c := &built.Capacities[i]; s.step.Done && c.Outcome == string(v1alpha1.CapacitySearching) {
			c.Outcome = string(v1alpha1.CapacityGivenUp) // the lines do not show budgets
		}
	}
	if s.step.Done && s.step.Reason == v1alpha1.ReasonBudgetExhausted {
		built.Stopped = s.step.Budget.Message
	}
	sealed, err := s.sealOf()
	if err != nil {
		return err
	}
	built.Seal = sealed
	s.built = &built
	if len(lines) == 0 {
		return nil
	}
	if s.step.Done { // earlier, more may come, and each look costs a list
		deleted, err := r.deletedTrials(ctx, s)
		if err != nil {
			return err
		}
		if deleted != "" {
			built.LeftOut = append(built.LeftOut, deleted)
		}
	}
	s.exp.Status.ResultsConfigMap = resultsName(s.exp)
	s.stored.done = true
	s.stored.err = r.writeResults(ctx, s)
	return s.stored.err
}

func (r *Reconciler) writeResults(ctx context.Context, s *scope) error {
	// The digest is of results without the time of writing, so that the same results are not
	// written again.
	digest, err := json.Marshal(s.built)
	if err != nil {
		return fmt.Errorf("encode the results: %w", err)
	}
	s.stored.digest = hash(string(digest))
	data, packed, leftOut, err := encode(s)
	if err != nil {
		return err
	}
	s.stored.leftOut = leftOut
	stored := &metav1.PartialObjectMetadata{}
	stored.SetGroupVersionKind(configMapKind)
	err = r.Reader.Get(ctx, client.ObjectKey{Namespace: s.exp.Namespace, Name: resultsName(s.exp)}, stored)
	switch uid := stored.Annotations[annotationUID]; {
	case apierrors.IsNotFound(err):
	case err != nil:
		return fmt.Errorf("read the stored results: %w", err)
	case uid != string(s.exp.UID):
		return fmt.Errorf("the ConfigMap %s is not of this experiment and is not overwritten; rename it or apply the experiment under another name", resultsName(s.exp))
	case stored.Annotations[annotationDigest] == hash(string(digest)) && s.exp.Status.ResultsDigest != "" && stored.Annotations[annotationContent] == s.exp.Status.ResultsDigest:
		return nil
	}
	content := results.Digest(data, packed)
	annotations := map[string]string{annotationDigest: hash(string(digest)), annotationContent: content, annotationUID: string(s.exp.UID)}
	if kept := s.exp.Status.Seal; kept != nil {
		annotations[annotationSeal] = kept.SHA256
	}
	labels := map[string]string{v1alpha1.LabelExperiment: s.exp.Name, v1alpha1.LabelResults: "experiment"}
	if of := s.exp.Labels[v1alpha1.LabelRecurs]; of != "" {
		labels[v1alpha1.LabelRecurs] = of
	}
	config := accorev1.ConfigMap(resultsName(s.exp), s.exp.Namespace).
		WithLabels(labels).
		WithAnnotations(annotations).
		WithData(data).
		WithBinaryData(packed)
	if err := r.Client.Apply(ctx, config, fieldOwner, client.ForceOwnership); err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	s.exp.Status.ResultsDigest = content
	return nil
}

// encode returns the ConfigMap's data and binaryData, and the names of the parts that were left
// out. It packs results that are too large as plain text. The spec always stays. Then come the
// aggregates, the lines of the trials, and the CSV, which can be made again.
func encode(s *scope) (data map[string]string, packed map[string][]byte, leftOut []string, err error) {
	spec, err := json.Marshal(s.exp.Spec)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("encode the spec: %w", err)
	}
	built := *s.built
	built.Written = s.now.UTC()
	var table bytes.Buffer
	if err := csvfile.Points(&table, built); err != nil {
		return nil, nil, nil, err
	}
	room := maxStored - len(spec)
	plain, err := results.EncodeExperiment(built)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("encode the results: %w", err)
	}
	data = map[string]string{specKey: string(spec)}
	if len(plain) <= room {
		data[results.ExperimentKey] = string(plain)
		room -= len(plain)
	} else if packed, leftOut, err = pack(built, room); err != nil {
		return nil, nil, nil, err
	}
	if room -= len(packed[results.PackedExperimentKey]); table.Len() <= room {
		data[csvKey] = table.String()
	} else {
		leftOut = append([]string{csvLeftOut}, leftOut...)
	}
	return data, packed, leftOut, nil
}

// pack returns the binaryData of results that are too large as plain text.
func pack(built results.Experiment, room int) (packed map[string][]byte, leftOut []string, err error) {
	var smallest []byte
	fitted, err := model.Fit(built, func(encoded []byte) bool {
		smallest, err = results.Pack(encoded)
		return err == nil && len(smallest) <= room
	})
	if err != nil {
		return nil, nil, fmt.Errorf("fit the results into a ConfigMap: %w", err)
	}
	kept, err := results.DecodeExperiment(fitted)
	if err != nil {
		return nil, nil, fmt.Errorf("read the results back: %w", err)
	}
	return map[string][]byte{results.PackedExperimentKey: smallest}, kept.LeftOut[len(built.LeftOut):], nil
}

// trialLines returns the lines of the finished trials. Their status has everything. So the trials'
// own ConfigMaps, with histograms and timelines, need not be read.
func trialLines(trials []v1alpha1.Trial) []results.TrialLine {
	var lines []results.TrialLine
	for i := range trials {
		t := &trials[i]
		outcome := plan.Outcome(t)
		if outcome == v1alpha1.ReasonInProgress {
			continue
		}
		line := results.TrialLine{
			Name: t.Name, Number: t.Spec.Number, PointIndex: t.Spec.Point.Index, Coordinates: t.Spec.Point.Coordinates,
			Repetition: t.Spec.Repetition, Attempt: t.Spec.Attempt, Outcome: outcome, ConfigMap: t.Status.ResultsConfigMap,
			GapSeconds: float64(t.Status.GapMilliseconds) / 1000, NodeSet: t.Spec.NodeSet,
		}
		if line.Coordinates == nil {
			line.Coordinates = map[string]string{}
		}
		if valid := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.TrialValid); valid != nil && outcome != v1alpha1.ReasonSucceeded {
			line.Reason, line.Message = valid.Reason, conditions.Truncate(valid.Message, 256)
		}
		line.Checks, line.Datasets = validity.SafetyChecks(t.Status.Checks), validity.Datasets(t)
		if t.Status.Headline != nil {
			takeHeadline(&line, t.Status.Headline)
		}
		lines = append(lines, byRow(t, line)...)
	}
	return lines
}

// byRow returns the line of a trial or, for a script, a line for each point of its rows.
func byRow(t *v1alpha1.Trial, line results.TrialLine) []results.TrialLine {
	if t.Spec.Script == nil {
		return []results.TrialLine{line}
	}
	var lines []results.TrialLine
	for _, p := range t.Spec.Script.Rows {
		of := line
		of.Name, of.Script, of.PointIndex, of.Coordinates = results.RowName(t.Name, p.Index), t.Name, p.Index, p.Coordinates
		if of.Coordinates == nil {
			of.Coordinates = map[string]string{}
		}
		i := slices.IndexFunc(t.Status.Rows, func(r v1alpha1.RowStatus) bool { return r.Point.Index == p.Index })
		switch {
		case i >= 0 && t.Status.Rows[i].Headline != nil:
			takeHeadline(&of, t.Status.Rows[i].Headline)
		case line.Outcome == v1alpha1.ReasonSucceeded:
			of.Outcome, of.Reason, of.Message = v1alpha1.ReasonInvalid, results.ReasonRowMissing, "the script left no such row"
			if i >= 0 {
				of.Message = t.Status.Rows[i].Missing
			}
		}
		lines = append(lines, of)
	}
	return lines
}

// takeHeadline copies the integers of a status into a line.
func takeHeadline(line *results.TrialLine, h *v1alpha1.Headline) {
	line.Committed, line.Aborted, line.Errors, line.Timeouts = h.Committed, h.Aborted, h.Errors, h.Timeouts
	line.Offered, line.GivenUp, line.Unsent, line.Unreported = h.Offered, h.GivenUp, h.Unsent, h.Unreported
	line.RunSummary = h.RunSummary
	line.Throughput = float64(h.ThroughputMilli) / 1000
	line.MeanMillis = float64(h.MeanLatencyMicroseconds) / 1000
	line.P10Millis = float64(h.P10LatencyMicroseconds) / 1000
	line.P50Millis = float64(h.P50LatencyMicroseconds) / 1000
	line.P90Millis = float64(h.P90LatencyMicroseconds) / 1000
	line.P99Millis = float64(h.P99LatencyMicroseconds) / 1000
	line.P999Millis = float64(h.P999LatencyMicroseconds) / 1000
	line.P95Millis, line.Percentiles = linePercentiles(h.Percentiles)
	line.OfAll, line.Window = percentilesOfAll(h.OfAll), lineWindow(h.Unsteady)
	line.CorrectClients, line.Recovery, line.Measurements = h.CorrectClients, lineRecoveries(h.Recoveries), lineMeasurements(h.Measurements)
	line.ThrottledShare, line.StealShare, line.ContendedShare = share(h.ThrottledPerMillion), share(h.StealPerMillion), share(h.ContendedPerMillion)
	line.ClientTimeShare, line.ClientBusyShare = share(h.ClientTimePerMillion), share(h.ClientBusyPerMillion)
}

// linePercentiles reads percentiles from the integers of a status. It returns the 95th separately.
func linePercentiles(kept []v1alpha1.HeadlinePercentile) (p95 float64, others map[string]float64) {
	for _, p := range kept {
		switch {
		case p.Name == "P95":
			p95 = float64(p.Microseconds) / 1000
		case others == nil:
			others = map[string]float64{p.Name: float64(p.Microseconds) / 1000}
		default:
			others[p.Name] = float64(p.Microseconds) / 1000
		}
	}
	return p95, others
}

// percentilesOfAll reads percentiles of all requests from the integers of a status, if there are
// any.
func percentilesOfAll(p *v1alpha1.PercentilesOfAll) *results.Percentiles {
	if p == nil {
		return nil
	}
	millis := func(micros int64) float64 { return float64(micros) / 1000 }
	return &results.Percentiles{P10Millis: millis(p.P10Microseconds), P50Millis: millis(p.P50Microseconds), P90Millis: millis(p.P90Microseconds),
		P99Millis: millis(p.P99Microseconds), P999Millis: millis(p.P999Microseconds), P75Millis: millis(p.P75Microseconds), P95Millis: millis(p.P95Microseconds),
		P9999Millis: millis(p.P9999Microseconds), P99999Millis: millis(p.P99999Microseconds)}
}

// lineWindow returns the unsteady levels that a status has as integers, or nil if all were steady.
func lineWindow(kept []v1alpha1.UnsteadyWindow) *results.WindowCheck {
	if len(kept) == 0 {
		return nil
	}
	w := &results.WindowCheck{Throughput: &results.Transient{Steady: true}}
	for _, k := range kept {
		level := results.UnsteadyBy(string(k.Cause), float64(k.MovesPerMillion)/1e6)
		if k.Of == results.OfThroughput {
			w.Throughput = level
		} else {
			w.Latency = level
		}
	}
	return w
}

// share reads a share from the integers of a status, if there is one.
func share(perMillion *int32) *float64 {
	if perMillion == nil {
		return nil
	}
	s := float64(*perMillion) / 1e6
	return &s
}

// lineMeasurements reads measurements from the texts of a status.
func lineMeasurements(kept []v1alpha1.MeasuredValue) []results.Measurement {
	var out []results.Measurement
	for _, k := range kept {
		m := results.Measurement{Name: k.Name, Reason: k.Reason}
		if x, err := strconv.ParseFloat(k.Value, 64); err == nil {
			m.Value = &x
		} else if k.Value != "" {
			m.Reason = fmt.Sprintf("%q is no number", k.Value)
		}
		out = append(out, m)
	}
	return out
}

// lineRecoveries reads recoveries from the integers of a status.
func lineRecoveries(kept []v1alpha1.FaultRecovery) []results.Recovery {
	var out []results.Recovery
	for _, f := range kept {
		r := results.Recovery{Fault: f.Fault, Time: int(f.Time), DetectMillis: float64(f.DetectMicroseconds) / 1000, Depth: float64(f.DepthPerMillion) / 1e6,
			RecoverMillis: float64(f.RecoverMicroseconds) / 1000, LostTransactions: float64(f.LostMilli) / 1000,
			LeastDip: float64(f.LeastDipPerMillion) / 1e6, ResolvedMillis: float64(f.ResolvedMicroseconds) / 1000}
		switch f.Outcome {
		case v1alpha1.RecoveryRecovered:
			r.Dipped, r.Recovered = true, true
		case v1alpha1.RecoveryNotRecovered:
			r.Dipped = true
		case v1alpha1.RecoveryNoDip:
		default:
			r.Error = "there was nothing to measure; see the trial's own results"
		}
		out = append(out, r)
	}
	return out
}
