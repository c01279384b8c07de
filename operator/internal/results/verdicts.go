package results

// Look is one of several planned looks at the verdicts of an experiment whose trials go on.
type Look struct {
	// Number of the look, from 1, and the most looks that there are (Of). Number 0: before the
	// first.
	Number int `json:"number"`
	Of     int `json:"of"`
	// First and Last are the rounds after which the first and the last look are.
	First int `json:"first"`
	Last  int `json:"last"`
	// Rounds whose trials are judged.
	Rounds int `json:"rounds"`
	// Level is the share of experiments in which an interval of this look may be wrong, such that
	// all looks together are wrong in 5%.
	Level float64 `json:"level"`
}

// ClaimResult is a claim and its verdict. Results from before the verdict was data lack all fields
// from Basis on.
type ClaimResult struct {
	Name      string `json:"name"`
	Statement string `json:"statement"`
	Expr      string `json:"expr"`
	Verdict   string `json:"verdict"`
	// Measured value with its interval, where the claim is about a quantity; Unit is ms, tx/s or
	// empty.
	Measured *float64 `json:"measured,omitempty"`
	Low      *float64 `json:"low,omitempty"`
	High     *float64 `json:"high,omitempty"`
	Unit     string   `json:"unit,omitempty"`
	Reported string   `json:"reported,omitempty"`
	Within   string   `json:"within,omitempty"`
	Message  string   `json:"message"`

	// Basis is Source or Own: whose statement it is. ReportedIn is where the source prints the
	// value; Expected is one that no source prints.
	Basis      string `json:"basis,omitempty"`
	ReportedIn string `json:"reportedIn,omitempty"`
	Expected   string `json:"expected,omitempty"`
	// Skipped is why the profile does not judge the claim; empty: it does.
	Skipped string `json:"skipped,omitempty"`
	// Full is what the claim says in the full evaluation, where the profile judges something else.
	Full *ClaimText `json:"full,omitempty"`
	// Distance says in words how far the judged trials are from the source's measurements:
	// "Cassandra 5 in place of HATS; reduced size (profile smoke)".
	Distance string `json:"distance,omitempty"`
	// Weak says why the bound shows little. For example, it may also hold without any effect.
	Weak string `json:"weak,omitempty"`
	// BoundLow and BoundHigh are what Measured is compared with: reported or expected, and within.
	BoundLow  *float64 `json:"boundLow,omitempty"`
	BoundHigh *float64 `json:"boundHigh,omitempty"`
	// Terms are the comparisons that the verdict is made of, in the order of the expression.
	Terms []ClaimTerm `json:"terms,omitempty"`
	// N is the least number of trials of a point that was read, and NMost the greatest.
	N     int `json:"n,omitempty"`
	NMost int `json:"nMost,omitempty"`
	// P of the evidence against the claim, adjusted for the claims of the experiment; absent where
	// no test was made.
	P *float64 `json:"p,omitempty"`
	// Chance is the predicted probability that the last planned look decides the claim, where it is
	// Inconclusive and repetitions go on until claims are decided; absent: nothing can be
	// predicted.
	Chance *float64 `json:"chance,omitempty"`
	// Caveats are what a reader must know of the verdict, each with the points that it is about.
	Caveats []Caveat `json:"caveats,omitempty"`
	// Replication compares the measured value with the runs behind the reported one. Nil: the claim
	// does not give the number of these runs.
	Replication *Replication `json:"replication,omitempty"`
	// Analyses are the outcomes of other analyses of the same trials. Nil: there are no other
	// analyses, or the results are older than this field.
	Analyses *Analyses `json:"analyses,omitempty"`
}

// Replication judges a measured quantity as a replication of the source's runs.
type Replication struct {
	// Runs is the number of runs behind the reported value. DeviationPercent is the deviation of
	// one run, in percent of that value. Assumed: the source does not print the deviation.
	Runs             int32   `json:"runs"`
	DeviationPercent float64 `json:"deviationPercent"`
	Assumed          bool    `json:"assumed,omitempty"`
	// Low and High are the prediction interval: where the mean of a replication should lie in 95%
	// if the system is the source's. Inside: the measured value lies there.
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	Inside bool    `json:"inside"`
	// LeastEffect is the effect that the source's runs find in a third of cases. SmallTelescopesP
	// is the one-sided P that the replication's effect is that great. If it is below 5%, the source
	// could hardly have found the effect. ScepticalP is the P of the replication's success, by
	// Held. Absent if the quantity is about no effect, or the source reports none.
	LeastEffect      *float64 `json:"leastEffect,omitempty"`
	SmallTelescopesP *float64 `json:"smallTelescopesP,omitempty"`
	ScepticalP       *float64 `json:"scepticalP,omitempty"`
}

// Analyses are other ways to judge a claim by the same trials. They take another statistic of
// latency, or trials that do not count. Or they leave out trials with an unsteady window, or ignore
// rounds. They also take all combinations of these.
type Analyses struct {
	// Agree is how many other analyses agree with the verdict, and Of how many there are.
	Agree int `json:"agree"`
	Of    int `json:"of"`
	// Others are the analyses that do not agree.
	Others []Analysis `json:"others,omitempty"`
}

// Analysis is one other analysis: how it judges, and its verdict, which is Holds, Fails or
// Inconclusive. Its measured value has an interval where the claim is about a quantity.
type Analysis struct {
	How      string   `json:"how"`
	Verdict  string   `json:"verdict"`
	Measured *float64 `json:"measured,omitempty"`
	Low      *float64 `json:"low,omitempty"`
	High     *float64 `json:"high,omitempty"`
}

// ClaimText is the text of a claim.
type ClaimText struct {
	Statement string `json:"statement"`
	Expr      string `json:"expr"`
	Reported  string `json:"reported,omitempty"`
	Expected  string `json:"expected,omitempty"`
	Within    string `json:"within,omitempty"`
	// WiderBecause is the profile's reason for a wider tolerance.
	WiderBecause string `json:"widerBecause,omitempty"`
}

// ClaimTerm is one comparison of a claim: left relation right.
type ClaimTerm struct {
	// Text of the comparison, as in the expression.
	Text     string `json:"text"`
	Relation string `json:"relation"` // <, <=, >, >=, or the name of a test
	// Outcome is True, False or Undecided.
	Outcome string   `json:"outcome"`
	Left    Interval `json:"left"`
	Right   Interval `json:"right"`
	// Difference is right less left. Ratio is left divided by right, if that has an interval.
	Difference *Interval `json:"difference,omitempty"`
	Ratio      *Interval `json:"ratio,omitempty"`
	Unit       string    `json:"unit,omitempty"`
	P          *float64  `json:"p,omitempty"`
}

// Interval is an estimate with its 95% interval; at one of several looks, the intervals of all
// looks together hold at 95%. Low and High are absent if there is no interval, as for a constant.
type Interval struct {
	Value float64  `json:"value"`
	Low   *float64 `json:"low,omitempty"`
	High  *float64 `json:"high,omitempty"`
}

// Caveat is something that a reader must know of a verdict.
type Caveat struct {
	// Kind groups caveats, in UpperCamelCase: NotInterleaved, SaturatedClients, UnsteadyWindow.
	Kind string `json:"kind"`
	// Points by their coordinates, as in clients=10; none: the claim as a whole.
	Points []string `json:"points,omitempty"`
	Text   string   `json:"text"`
}

// Fidelity says what ran, relative to the measurements of the experiment's source.
type Fidelity struct {
	// Systems of the experiment, in its order.
	Systems []SystemFidelity `json:"systems"`
	// Class of the system that is furthest from the source: Original, Reimplementation, StandIn.
	// Empty: the experiment has no source.
	Class string `json:"class,omitempty"`
	// Size is Full or Reduced, depending on the changes of the profile. Imported trials have
	// Unknown.
	Size string `json:"size"`
	// Changes of the profile to points, load, network, durations and faults, in words.
	Changes []string `json:"changes,omitempty"`
}

// SystemFidelity is one System and its relation to the source.
type SystemFidelity struct {
	System  string `json:"system"`
	Program string `json:"program,omitempty"`
	Version string `json:"version,omitempty"`
	// Class as in Fidelity. InPlaceOf is the program of the source that it is in place of.
	Class     string `json:"class,omitempty"`
	InPlaceOf string `json:"inPlaceOf,omitempty"`
	// SourceVersion is the version that the source measured, if it differs.
	SourceVersion string `json:"sourceVersion,omitempty"`
}

// Capacity is the outcome of one search: the load that half of the trials carry.
type Capacity struct {
	// Axis that was searched, from From to To, and where the other axes were (At).
	Axis string            `json:"axis"`
	At   map[string]string `json:"at,omitempty"`
	From int64             `json:"from"`
	To   int64             `json:"to"`
	// Objective in words, and by how much the ends of the interval may be off its middle.
	Objective string  `json:"objective"`
	Precision float64 `json:"precision"`
	// Outcome as in the status of an experiment, and the number of trials that count.
	Outcome string `json:"outcome"`
	Trials  int    `json:"trials"`
	// Capacity and its 95% interval. Without one: it lies beyond From or To, or is not known. Where
	// the machines changed from trial to trial, Capacity is that of the first trial and has no
	// interval.
	Capacity *float64 `json:"capacity,omitempty"`
	Low      *float64 `json:"low,omitempty"`
	High     *float64 `json:"high,omitempty"`
	// Message says why the search is NotJudged, or what a reader must know of its answer.
	Message string `json:"message,omitempty"`
}
