package v1alpha1

// ReportedSeries is one curve or row of a table of the paper.
// +kubebuilder:validation:XValidation:rule="(self.metric == 'Measurement') == has(self.measurement)",message="measurement goes with metric: Measurement"
type ReportedSeries struct {
	// name of the series, unique in the experiment.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name"`

	// metric that the series reports. Throughput is in transactions per second, and
	// ThroughputPerCorrectClient is Throughput divided by the number of clients that no fault makes
	// misbehave. MeanLatency and percentiles of latency (P999Latency: the 99.9th) are in ms, unless
	// unit says otherwise. Measurement is the one that measurement names.
	// +kubebuilder:validation:Enum=Throughput;ThroughputPerCorrectClient;MeanLatency;P50Latency;P90Latency;P95Latency;P99Latency;P999Latency;Measurement
	Metric string `json:"metric"`

	// measurement of the experiment that the series reports, in its unit.
	// +optional
	// +kubebuilder:validation:MaxLength=40
	Measurement string `json:"measurement,omitempty"`

	// unit of the values, as the paper gives them: tx/s, ms.
	// +kubebuilder:validation:MaxLength=32
	Unit string `json:"unit"`

	// at fixes the other axes: {variant: ideal}.
	// +optional
	// +kubebuilder:validation:MaxProperties=8
	At map[string]Value `json:"at,omitempty"`

	// axis that x runs along.
	// +kubebuilder:validation:MaxLength=40
	Axis string `json:"axis"`

	// values, in the order of the paper.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Values []ReportedValue `json:"values"`

	// correction is a factor for every value, applied before values are compared: 0.967 for an
	// artifact whose window is 3.4% longer than its divisor says. The note says why. Above 0.
	// Default: 1.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([1-9][0-9]*(\.[0-9]+)?|0\.[0-9]*[1-9][0-9]*)$`
	Correction string `json:"correction,omitempty"`

	// note says what was unclear in the source and how it was read.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Note string `json:"note,omitempty"`
}

// ReportedValue is one point of a curve.
type ReportedValue struct {
	// x is the value of the axis.
	X Value `json:"x"`
	// value is what the paper reports there, in the series' unit. It is not called y, since YAML
	// 1.1 reads an unquoted y as true.
	Y Value `json:"value"`
}

// Claim is a statement of the paper, as an expression over results.
//
// With reported or expected, the expression gives a quantity. The quantity must lie within the
// tolerance of that value, so within is set, too. Without both, the expression is a comparison,
// which holds or fails.
type Claim struct {
	// name of the claim.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// statement in the paper's words or in plain ones.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Statement string `json:"statement"`

	// expr is the expression; docs/reference/claims.md lists its functions.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Expr string `json:"expr"`

	// basis says who makes the statement. Source: the source makes it. Own: the experiment's
	// authors make it, and the source does not. Default: Source where the experiment has a source
	// and the claim has no expected; Own otherwise.
	// +optional
	Basis ClaimBasis `json:"basis,omitempty"`

	// reported is the value that the source prints, or the quotient or difference of such values: a
	// number, or a duration for latencies (4.1ms). Give a value that the source does not print as
	// expected.
	// +optional
	Reported *Value `json:"reported,omitempty"`

	// reportedIn says where the source prints it: figure, table and row. Required with reported.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	ReportedIn string `json:"reportedIn,omitempty"`

	// expected is a value that the experiment's authors expect, and the source does not print. A
	// claim has reported, or expected, or is a comparison.
	// +optional
	Expected *Value `json:"expected,omitempty"`

	// within is how far from reported or expected the quantity may be: a percentage of it (25%), or
	// an amount in its unit (0.5ms, 100). With 50% of the effect, a quotient may have from 0.5 to
	// 1.5 times the reported logarithm. A difference may be from 0.5 to 1.5 times the reported one.
	// So a result without any effect is never within the tolerance. The tolerance of a quantity
	// that is never below 0 must not reach down to 0.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[0-9]+(\.[0-9]+)?(%( of the effect)?|ns|us|ms|s|m|h)?$`
	Within string `json:"within,omitempty"`

	// reportedBy gives the number of runs that the reported value averages, and how much runs
	// deviate. The message then says where the mean of a replication should lie. It does not change
	// the verdict, which depends on within alone. Default: the value is taken as exact.
	// +optional
	ReportedBy *ReportedBy `json:"reportedBy,omitempty"`
}

// ReportedBy describes the runs behind a reported value.
type ReportedBy struct {
	// runs is the number of runs that the value averages. From 1 to 10000.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	Runs int32 `json:"runs"`

	// deviation is the standard deviation of one run, as a percentage of the value: 5%. NotPrinted:
	// the source does not print it; Assay then assumes 5%, and the message states that.
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?%|NotPrinted)$`
	Deviation string `json:"deviation"`
}

// DeviationNotPrinted is the deviation of runs whose source does not print it.
const DeviationNotPrinted = "NotPrinted"

// ClaimBasis says whose statement a claim is: Source; Own.
// +kubebuilder:validation:Enum=Source;Own
type ClaimBasis string

// The bases of claims.
const (
	BasisSource ClaimBasis = "Source"
	BasisOwn    ClaimBasis = "Own"
)

// Verdict of a claim, in ACM's words for artifacts. Reproduced, NotReproduced: the source's own
// program was judged at full size. Replicated, NotReplicated: a re-implementation of it was judged
// at full size. Consistent, Contradicted: another program, or a reduced size, was judged. Holds,
// Fails: the claim is the experiment's own. Inconclusive: the interval straddles the bound.
// NotEvaluated: there is no data, or the profile skips the claim.
// +kubebuilder:validation:Enum=Reproduced;NotReproduced;Replicated;NotReplicated;Consistent;Contradicted;Holds;Fails;Inconclusive;NotEvaluated
type Verdict string

// The verdicts.
const (
	VerdictReproduced    Verdict = "Reproduced"
	VerdictNotReproduced Verdict = "NotReproduced"
	VerdictReplicated    Verdict = "Replicated"
	VerdictNotReplicated Verdict = "NotReplicated"
	VerdictConsistent    Verdict = "Consistent"
	VerdictContradicted  Verdict = "Contradicted"
	VerdictHolds         Verdict = "Holds"
	VerdictFails         Verdict = "Fails"
	VerdictInconclusive  Verdict = "Inconclusive"
	VerdictNotEvaluated  Verdict = "NotEvaluated"
)

// Verdicts are all verdicts, in the order of lists: first the supporting ones, then the refuting
// ones, then the ones that leave a claim open.
var Verdicts = []Verdict{
	VerdictReproduced, VerdictReplicated, VerdictConsistent, VerdictHolds,
	VerdictNotReproduced, VerdictNotReplicated, VerdictContradicted, VerdictFails,
	VerdictInconclusive, VerdictNotEvaluated,
}

// Supports reports whether the verdict supports the claim.
func (v Verdict) Supports() bool {
	switch v {
	case VerdictReproduced, VerdictReplicated, VerdictConsistent, VerdictHolds:
		return true
	}
	return false
}

// Refutes reports whether the verdict refutes the claim.
func (v Verdict) Refutes() bool {
	switch v {
	case VerdictNotReproduced, VerdictNotReplicated, VerdictContradicted, VerdictFails:
		return true
	}
	return false
}

// ClaimStatus is the verdict of one claim.
type ClaimStatus struct {
	// name of the claim.
	Name string `json:"name"`
	// verdict of the claim. It is preliminary until the condition Complete is True.
	Verdict Verdict `json:"verdict"`
	// distance says how far the judged trials are from the source's measurements: another program,
	// another version of it, a reduced size. Empty: there is no such difference, or the claim is
	// the experiment's own.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Distance string `json:"distance,omitempty"`
	// message gives the measured and the wanted value, in at most 1024 characters. The results have
	// the full message.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}
