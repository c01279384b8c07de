package experiment_test

import (
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/testkit/builders"
)

// A tool that does not know Assay's kinds can follow an experiment by its conditions and progress.
func TestProgressAndConditions(t *testing.T) {
	s := newStage(t)
	s.create(two().Obj())
	exp := s.settle()
	s.expect(exp, v1alpha1.ExperimentStalled, "True SystemNotFound")
	s.expect(exp, v1alpha1.ExperimentReconciling, "False SystemNotFound")
	s.expect(exp, v1alpha1.ExperimentReady, "False SystemNotFound")
	s.expect(exp, v1alpha1.ExperimentSupported, "Unknown TrialsRunning")

	s.create(builders.System("basil").Obj())
	exp = s.settle()
	s.expect(exp, v1alpha1.ExperimentStalled, "False TrialsRunning")
	s.expect(exp, v1alpha1.ExperimentReconciling, "True TrialsRunning")
	s.expect(exp, v1alpha1.ExperimentReady, "False TrialsRunning")
	if p := exp.Status.Progress; p.Trials != "0/2" || p.Percent != 0 || p.Claims != "" || p.EstimatedCompletion != nil {
		t.Errorf("progress at the start: %+v", p)
	}
	s.finish(v1alpha1.ReasonSucceeded)
	exp = s.settle()
	if p := exp.Status.Progress; p.Trials != "1/2" || p.Percent != 50 {
		t.Errorf("progress after one of two trials: %+v", p)
	}
	s.finish(v1alpha1.ReasonSucceeded)
	exp = s.settle()
	s.expect(exp, v1alpha1.ExperimentReady, "True AllTrialsValid")
	s.expect(exp, v1alpha1.ExperimentReconciling, "False AllTrialsValid")
	s.expect(exp, v1alpha1.ExperimentStalled, "False AllTrialsValid")
	s.expect(exp, v1alpha1.ExperimentSupported, "Unknown NoClaims")
	if p := exp.Status.Progress; p.Trials != "2/2" || p.Percent != 100 || p.EstimatedCompletion != nil {
		t.Errorf("progress at the end: %+v", p)
	}
}

// An experiment that used up its retries is over, and counts as stalled.
func TestRetriesExhaustedIsStalled(t *testing.T) {
	s := newStage(t)
	s.create(builders.System("basil").Obj(), two().Retries(0).Obj())
	s.settle()
	for range 2 {
		s.finish(v1alpha1.ReasonFailed)
		s.settle()
	}
	exp := s.settle()
	s.expect(exp, v1alpha1.ExperimentStalled, "True RetriesExhausted")
	s.expect(exp, v1alpha1.ExperimentReady, "False RetriesExhausted")
}
