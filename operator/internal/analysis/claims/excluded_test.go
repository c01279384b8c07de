package claims_test

import (
	"strings"
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// Once, a system that stalled in two of five runs was judged by the three good runs, and the
// verdict did not mention it.
func TestVerdictsOfSurvivorsSaySo(t *testing.T) {
	trials := func(reason string, committed int64, throughput float64) []results.TrialLine {
		ls := series(0, "a", []int{5}, times(5, 100), times(5, 10))
		for i := range 2 {
			ls[i].Outcome, ls[i].Reason, ls[i].Committed, ls[i].Throughput = stats.Invalid, reason, committed, throughput
		}
		return ls
	}
	const claimed = "throughput() > 90"
	stalled := judge(t, trials(v1alpha1.ReasonNothingMeasured, 0, 0), claimed, "", "")
	expect(t, stalled, v1alpha1.VerdictHolds, "clients=5, variant=a: 2 of 5 attempts do not count (2 Invalid NothingMeasured)",
		"with the 2 trials that the system spoiled itself counted it would be Inconclusive")
	expect(t, judge(t, trials(v1alpha1.ReasonCPUThrottled, 1000, 99), claimed, "", ""), v1alpha1.VerdictHolds,
		"2 Invalid CPUThrottled", "counted it holds, too")
	// A replica that exits leaves no numbers.
	exited := judge(t, trials(v1alpha1.ReasonReplicaExited, 0, 0), claimed, "", "")
	expect(t, exited, v1alpha1.VerdictHolds, "2 Invalid ReplicaExited")
	// Attempts that the environment disturbed get a caveat only if they are many.
	expect(t, judge(t, trials(v1alpha1.ReasonClocksApart, 1000, 1), claimed, "", ""), v1alpha1.VerdictHolds, "2 of 5 attempts do not count (2 Invalid ClocksApart)")
	many := append(trials(v1alpha1.ReasonClocksApart, 1000, 1), trials("", 0, 0)[2:]...)
	many = append(many, many[2:]...)
	for _, r := range []results.ClaimResult{exited, judge(t, many, claimed, "", "")} {
		if strings.Contains(r.Message, " counted it ") {
			t.Errorf("nothing of the system can be counted, and the message says: %s", r.Message)
		}
	}
	if few := judge(t, many, claimed, "", ""); strings.Contains(few.Message, "do not count") {
		t.Errorf("2 of 14 attempts do not count, by the environment, and the message says: %s", few.Message)
	}
	// One of them that the system spoiled itself gets a caveat.
	many[0].Reason = v1alpha1.ReasonNothingMeasured
	expect(t, judge(t, many, claimed, "", ""), v1alpha1.VerdictHolds, "2 of 14 attempts do not count", "1 Invalid NothingMeasured")
	// A system that always stalls has a throughput of 0.
	always := trials(v1alpha1.ReasonNothingMeasured, 0, 0)
	for i := range always {
		always[i].Outcome, always[i].Reason, always[i].Committed, always[i].Throughput = stats.Invalid, v1alpha1.ReasonNothingMeasured, 0, 0
	}
	expect(t, judge(t, always, claimed, "", ""), v1alpha1.VerdictNotEvaluated, "has no valid trial (5 Invalid NothingMeasured)", "counted it would fail")
}

// Two variants are equal, but disturbances leave out the slow trials of one. By the trials that
// count, that one is faster. By the first attempts, it is not.
func TestDisturbancesOfOneSide(t *testing.T) {
	var lines []results.TrialLine
	for round := range 5 {
		for point, variant := range []string{"a", "b"} {
			line := results.TrialLine{Number: int32(len(lines)), PointIndex: int32(point), Coordinates: map[string]string{"variant": variant}, Repetition: int32(round),
				Outcome: stats.Succeeded, Committed: 1000, MeanMillis: 1, Throughput: 900 + float64(round*(1+point))}
			if variant == "a" {
				slow := line
				slow.Outcome, slow.Reason = stats.Invalid, v1alpha1.ReasonProcessorContended
				lines = append(lines, slow)
				line.Number, line.Attempt, line.Throughput = int32(len(lines)), 1, 1000+float64(round)
			}
			lines = append(lines, line)
		}
	}
	got := judge(t, lines, "throughput(variant='a') > throughput(variant='b')", "", "")
	expect(t, got, v1alpha1.VerdictInconclusive, "disturbances left out more attempts of one point than of another: it is Holds, and by the first attempts Fails")
	// Where the first attempts agree, the verdict stays.
	for i := range lines {
		if lines[i].Coordinates["variant"] == "a" && lines[i].Attempt == 0 {
			lines[i].Throughput = 990 + float64(lines[i].Repetition)
		}
	}
	got = judge(t, lines, "throughput(variant='a') > throughput(variant='b')", "", "")
	expect(t, got, v1alpha1.VerdictHolds, "by the first attempts it is Holds, too")
}

// One attempt of twenty that a neighbour slowed down by 90% once left no verdict, wherever it was
// counted. Now it counts as three times as slow as the slowest trial that counts.
func TestOneWildAttemptLeavesAVerdict(t *testing.T) {
	var lines []results.TrialLine
	for round := range 10 {
		for point, variant := range []string{"a", "b"} {
			line := results.TrialLine{Number: int32(len(lines)), PointIndex: int32(point), Coordinates: map[string]string{"variant": variant}, Repetition: int32(round),
				Outcome: stats.Succeeded, Committed: 1000, MeanMillis: 1, Throughput: []float64{1100, 1000}[point] + float64(round*(1+point))}
			if variant == "a" && round == 3 {
				wild := line
				wild.Outcome, wild.Reason, wild.Throughput = stats.Invalid, v1alpha1.ReasonProcessorContended, 100
				lines = append(lines, wild)
				line.Number, line.Attempt = int32(len(lines)), 1
			}
			lines = append(lines, line)
		}
	}
	got := judge(t, lines, "throughput(variant='a') > throughput(variant='b')", "", "")
	expect(t, got, v1alpha1.VerdictHolds, "by the first attempts it is Holds, too")
}
