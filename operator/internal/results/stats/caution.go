package stats

// Caution is a reason to distrust a number. It is a value, so that a program can act on it and a
// report can word it; Text words it.
type Caution string

// The cautions. The comment of each function names those that it gives.
const (
	// NoSamples: there is nothing to summarise.
	NoSamples Caution = "NoSamples"
	// OneSample: there is a value and no interval.
	OneSample Caution = "OneSample"
	// FewSamples: two to four. Student's interval is given, and is right only if what is sampled is
	// normally distributed.
	FewSamples Caution = "FewSamples"
	// NoVariation: all samples are equal, so that the interval has no width. That is a property of
	// the measurement more often than of the system.
	NoVariation Caution = "NoVariation"
	// MedianCoverage: fewer than six samples. No two of them enclose the median with 95%. The
	// interval has a lower coverage, and states it.
	MedianCoverage Caution = "MedianCoverage"
	// DenominatorNearZero: the interval of the denominator holds 0, so that a ratio has no bounded
	// interval.
	DenominatorNearZero Caution = "DenominatorNearZero"
	// Unsaturated: the curve ends before its knee, which lies at this load or a higher one.
	Unsaturated Caution = "Unsaturated"
	// NoCrossing: one curve lies above the other everywhere.
	NoCrossing Caution = "NoCrossing"
	// ManyCrossings: the curves cross more than once; the first crossing is given.
	ManyCrossings Caution = "ManyCrossings"
	// NoDip: throughput did not fall after the fault, or not by more than noise.
	NoDip Caution = "NoDip"
	// ShallowDip: the dip is not much deeper than noise. Noise may have made the dip, its depth and
	// its end.
	ShallowDip Caution = "ShallowDip"
	// NotRecovered: throughput was not back when the data ended; the time to recovery is a lower
	// bound.
	NotRecovered Caution = "NotRecovered"
	// NoisyBaseline: the rule that finds the dip after the fault finds one before it, too.
	NoisyBaseline Caution = "NoisyBaseline"
	// ShortBaseline: less than a second of data before the fault.
	ShortBaseline Caution = "ShortBaseline"
	// NotStationary: the window's mean changes by more than is tolerated when its transient is left
	// out.
	NotStationary Caution = "NotStationary"
	// ApartTrials: the trials of a point lie in groups that are far apart: see Groups.
	ApartTrials Caution = "ApartTrials"
)

// texts of the cautions, each a clause that can follow a number.
var texts = map[Caution]string{
	NoSamples:           "there is no valid trial",
	OneSample:           "one trial: there is no interval",
	FewSamples:          "fewer than five trials: the interval holds only if trials are normally distributed, which so few cannot show",
	NoVariation:         "all trials gave the same value: the interval has no width",
	MedianCoverage:      "fewer than six trials: the interval of the median covers less than 95%",
	DenominatorNearZero: "the denominator may be 0: the ratio has no bounded interval",
	Unsaturated:         "the curve ends before its knee: with more load, there may be more throughput at an acceptable latency",
	NoCrossing:          "the curves do not cross between the points that were measured",
	ManyCrossings:       "the curves cross more than once: this is the first crossing",
	NoDip:               "throughput did not fall after the fault, or not by more than its noise",
	ShallowDip:          "the dip is not much deeper than noise: how deep it was and when it ended are uncertain",
	NotRecovered:        "throughput was not back when the data ended: it took longer than this",
	NoisyBaseline:       "throughput dipped by as much before the fault: the dip after it may be noise",
	ShortBaseline:       "less than a second of data before the fault: what throughput was is uncertain",
	ApartTrials:         "trials lie in groups far apart for how much trials vary (a slow mode, an outlier, a heavy tail): intervals, which take trials for normal, are right less often than 95%",
	NotStationary:       "throughput was not steady in the measurement window: a longer warm-up may be needed",
}

// Text words the caution as a clause that can follow a number.
func (c Caution) Text() string {
	if text, ok := texts[c]; ok {
		return text
	}
	return string(c)
}
