package v1alpha1

// ClientEnd says when a client is over. Several may be set; the first to happen ends it. Exit
// always does.
type ClientEnd struct {
	// log ends the client when it has printed the matching line, or as many as log.lines says.
	// +optional
	Log *LogGate `json:"log,omitempty"`

	// afterDrain ends the client when the drain of the schedule is over.
	// +optional
	AfterDrain bool `json:"afterDrain,omitempty"`

	// stop says how a client that is over but still runs is ended. SIGTERM with a grace gives it
	// time to print; SIGKILL is for one that destroys its results on SIGTERM.
	// +optional
	Stop *StopSpec `json:"stop,omitempty"`

	// requireExitZero makes a trial invalid when the client exits with another code. Default:
	// false, since the exit codes of many artifacts mean nothing.
	// +optional
	RequireExitZero bool `json:"requireExitZero,omitempty"`
}

// ResultsFormat is how a client reports. Assay: the result file of Assay's load generator.
// TransactionLines: one line for each committed transaction, as the Pequin and Basil artifacts
// print. It holds the name, the latency in ns, CLOCK_MONOTONIC in ns and the client id, separated
// by commas. RegularExpression: one line for each operation, read by the pattern of records; other
// lines are skipped. CSV: a line that names the columns, and under it one line for each operation.
// Reckon: the JSON messages that clients of reckon write, each after its length. These five hold
// every transaction, so that the trial's window can be cut out and percentiles are those of all
// clients together. Summary: what a client prints of its whole run at its end, read by the patterns
// of summary. It is not cut to the window, and percentiles are not merged.
// +kubebuilder:validation:MaxLength=40
// +kubebuilder:validation:XValidation:rule="self in ['Assay', 'TransactionLines', 'RegularExpression', 'CSV', 'Reckon', 'Summary']",message="must be Assay, TransactionLines, RegularExpression, CSV, Reckon or Summary",messageExpression="self + ' is not a format of a trial. Assay, TransactionLines, RegularExpression, CSV and Reckon hold every transaction: have the client write a line for each operation (YCSB: -p measurementtype=raw). Summary takes what it prints at its end, which can neither be cut to the window nor merged over clients'"
type ResultsFormat string

// The formats of results.
const (
	FormatAssay             ResultsFormat = "Assay"
	FormatTransactionLines  ResultsFormat = "TransactionLines"
	FormatRegularExpression ResultsFormat = "RegularExpression"
	FormatCSV               ResultsFormat = "CSV"
	FormatSummary           ResultsFormat = "Summary"
	FormatReckon            ResultsFormat = "Reckon"
)

// ClientResults say what a client reports and where.
// +kubebuilder:validation:XValidation:rule="(self.source == 'File') == has(self.path)",message="path is needed when source is File, and only then",messageExpression="'source is ' + self.source + '; path is needed when source is File, and only then'"
// +kubebuilder:validation:XValidation:rule="(self.format in ['RegularExpression', 'CSV']) == has(self.records)",message="records are needed for RegularExpression and CSV, and only for those",messageExpression="'format is ' + self.format + '; records are needed for RegularExpression and CSV, and only for those'"
// +kubebuilder:validation:XValidation:rule="self.source != 'File' || !has(self.records) || self.records.instant.from != 'Arrival'",message="records.instant: the arrival of lines is known on Stdout and Stderr only, and source is File"
// +kubebuilder:validation:XValidation:rule="(self.format == 'Summary') == has(self.summary)",message="summary is needed for the format Summary, and only for that",messageExpression="'format is ' + self.format + '; summary is needed for the format Summary, and only for that'"
type ClientResults struct {
	// format of the report.
	Format ResultsFormat `json:"format"`

	// source of the report: Stdout, Stderr, or File.
	// +kubebuilder:validation:Enum=Stdout;Stderr;File
	Source string `json:"source"`

	// path of the report, absolute, under /assay/out, for source File.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^/assay/out/.+`
	Path string `json:"path,omitempty"`

	// records say what is in a line of a report in the format RegularExpression or CSV.
	// +optional
	Records *ClientRecords `json:"records,omitempty"`

	// summary says where a report in the format Summary has its numbers.
	// +optional
	Summary *ClientSummary `json:"summary,omitempty"`
}

// ClientSummary says where the numbers are that a client prints of its whole run. Committed is
// needed, and Throughput or RunTime.
type ClientSummary struct {
	// numbers that the client prints.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Numbers []SummaryNumber `json:"numbers"`
}

// SummaryNumberName says what a number of a summary is. Committed counts transactions, Aborted
// attempts. Errors and Timeouts count requests. Throughput is committed transactions per second.
// RunTime is how long the client ran. Without Throughput, it is Committed by RunTime. MeanLatency,
// P10Latency, P50Latency, P90Latency, P99Latency, P999Latency and MaxLatency are of committed
// transactions.
// +kubebuilder:validation:Enum=Committed;Aborted;Errors;Timeouts;Throughput;RunTime;MeanLatency;P10Latency;P50Latency;P90Latency;P99Latency;P999Latency;MaxLatency
type SummaryNumberName string

// SummaryNumber is one number of a summary.
// +kubebuilder:validation:XValidation:rule="(self.name == 'RunTime' || self.name.endsWith('Latency')) == has(self.unit)",message="unit is needed for RunTime and latencies, and only for those",messageExpression="self.name + ': unit is needed for RunTime and latencies, and only for those'"
type SummaryNumber struct {
	// name says what the number is.
	Name SummaryNumberName `json:"name"`

	// pattern that the number's line matches, a regular expression (RE2) with the group value:
	// ^Committed: (?P<value>[0-9]+)$. Where no line matches, Aborted, Errors and Timeouts are 0,
	// and any other number makes the report unreadable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Pattern string `json:"pattern"`

	// unit of RunTime or a latency.
	// +optional
	Unit RecordUnit `json:"unit,omitempty"`

	// of several lines that match: Last (the last one counts); Sum (all are added up, for counts by
	// kind of operation). Default: Last.
	// +optional
	// +kubebuilder:default=Last
	// +kubebuilder:validation:Enum=Last;Sum
	Of string `json:"of,omitempty"`
}

// ClientRecords say what is in a line of a client's report, each of which is one operation. Whether
// it belongs to the measurement window is decided by the instant at which it ended.
type ClientRecords struct {
	// pattern that an operation's line matches, a regular expression (RE2) with named groups:
	// ^(?P<op>[A-Z]+),(?P<end>[0-9]+),(?P<latency>[0-9.]+)$. For the format RegularExpression, and
	// only there.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Pattern string `json:"pattern,omitempty"`

	// separator of columns, for the format CSV: a comma, a semicolon, a vertical bar, a tab or a
	// blank. Default: a comma.
	// +optional
	// +kubebuilder:validation:MaxLength=1
	// +kubebuilder:validation:Pattern=`^[,;|\t ]$`
	Separator string `json:"separator,omitempty"`

	// latency of the operation.
	Latency RecordLatency `json:"latency"`

	// instant at which the operation began or ended.
	Instant RecordInstant `json:"instant"`

	// outcome of the operation. Default: every line is a committed transaction.
	// +optional
	Outcome *RecordOutcome `json:"outcome,omitempty"`
}

// RecordUnit is the unit of a number in a report.
// +kubebuilder:validation:Enum=ns;us;ms;s
type RecordUnit string

// RecordLatency is where a line says how long its operation took.
type RecordLatency struct {
	// from is the name of a group of the pattern, or of a column.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	From string `json:"from"`

	// unit of the number.
	Unit RecordUnit `json:"unit"`
}

// RecordInstant is where a line says when its operation was.
// +kubebuilder:validation:XValidation:rule="(self.from != 'Arrival') == has(self.unit)",message="unit is needed, unless from is Arrival",messageExpression="'from is ' + self.from + '; unit is needed, unless from is Arrival'"
type RecordInstant struct {
	// from is the name of a group of the pattern, or of a column; or Arrival: the operation ended
	// when its line came, on Stdout or Stderr. Such an instant is late by what the pipe and Assay's
	// launcher take, and by what the client keeps back. Lines that come in bursts are counted. The
	// report is unreadable if more than 1% of all lines may be more than 100 ms late.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	From string `json:"from"`

	// unit of the number. Unset for Arrival.
	// +optional
	Unit RecordUnit `json:"unit,omitempty"`

	// clock that was read: Wall (time since 1970); Monotonic (CLOCK_MONOTONIC, as System.nanoTime
	// and std::chrono::steady_clock read it). Times since the client's own start cannot be used: t
	// = 0 is not on them. Default: Wall.
	// +optional
	// +kubebuilder:validation:Enum=Wall;Monotonic
	// +kubebuilder:default=Wall
	Clock string `json:"clock,omitempty"`

	// of says whether it is the Begin or the End of the operation. Default: End.
	// +optional
	// +kubebuilder:validation:Enum=Begin;End
	// +kubebuilder:default=End
	Of string `json:"of,omitempty"`
}

// RecordOutcome is where a line says how its operation ended. A text that is in none of the lists
// makes the report unreadable.
type RecordOutcome struct {
	// from is the name of a group of the pattern, or of a column.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	From string `json:"from"`

	// committed are the texts of operations that took effect: [OK].
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=64
	Committed []string `json:"committed"`

	// aborted are the texts of attempts that aborted.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=64
	Aborted []string `json:"aborted,omitempty"`

	// errors are the texts of operations that failed otherwise.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=64
	Errors []string `json:"errors,omitempty"`

	// timeouts are the texts of operations without an answer in time.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=64
	Timeouts []string `json:"timeouts,omitempty"`
}
