package v1alpha1

// ClientEnd says when a client is over. Several fields may be set; the first event ends the client.
// The exit of its process always ends it.
type ClientEnd struct {
	// log ends the client when it has printed the matching line, or log.lines such lines.
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
// JSONLines: one JSON object for each operation, on a line of its own; other lines are skipped.
// Reckon: the JSON messages that clients of reckon write, each after its length. HdrHistogram: a
// log with a histogram for each interval (.hlog), as HdrHistogram's own writers write it. These
// seven hold every transaction, so that the trial's window can be cut out and percentiles are those
// of all clients together. Summary: numbers of the whole run that a client prints at its end, read
// by the patterns of summary. It is not cut to the window, and percentiles are not merged.
// +kubebuilder:validation:MaxLength=40
// +kubebuilder:validation:XValidation:rule="self in ['Assay', 'TransactionLines', 'RegularExpression', 'CSV', 'JSONLines', 'Reckon', 'HdrHistogram', 'Summary']",message="must be Assay, TransactionLines, RegularExpression, CSV, JSONLines, Reckon, HdrHistogram or Summary",messageExpression="self + ' is not a format of a trial. Assay, TransactionLines, RegularExpression, CSV, JSONLines, Reckon and HdrHistogram hold every transaction: have the client write a line for each operation (YCSB: -p measurementtype=raw). Summary takes what it prints at its end, which can neither be cut to the window nor merged over clients'"
type ResultsFormat string

// The formats of results.
const (
	FormatAssay             ResultsFormat = "Assay"
	FormatTransactionLines  ResultsFormat = "TransactionLines"
	FormatRegularExpression ResultsFormat = "RegularExpression"
	FormatCSV               ResultsFormat = "CSV"
	FormatJSONLines         ResultsFormat = "JSONLines"
	FormatSummary           ResultsFormat = "Summary"
	FormatReckon            ResultsFormat = "Reckon"
	FormatHdrHistogram      ResultsFormat = "HdrHistogram"
)

// ClientResults say what a client reports and where.
// +kubebuilder:validation:XValidation:rule="(self.source == 'File') == has(self.path)",message="path is needed when source is File, and only then",messageExpression="'source is ' + self.source + '; path is needed when source is File, and only then'"
// +kubebuilder:validation:XValidation:rule="(self.format in ['RegularExpression', 'CSV', 'JSONLines']) == has(self.records)",message="records are needed for RegularExpression, CSV and JSONLines, and only for those",messageExpression="'format is ' + self.format + '; records are needed for RegularExpression, CSV and JSONLines, and only for those'"
// +kubebuilder:validation:XValidation:rule="self.source != 'File' || !has(self.records) || self.records.instant.from != 'Arrival'",message="records.instant: the arrival of lines is known on Stdout and Stderr only, and source is File"
// +kubebuilder:validation:XValidation:rule="(self.format == 'Summary') == has(self.summary)",message="summary is needed for the format Summary, and only for that",messageExpression="'format is ' + self.format + '; summary is needed for the format Summary, and only for that'"
// +kubebuilder:validation:XValidation:rule="(self.format == 'HdrHistogram') == has(self.histograms)",message="histograms are needed for the format HdrHistogram, and only for that",messageExpression="'format is ' + self.format + '; histograms are needed for the format HdrHistogram, and only for that'"
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

	// records say what is in a line of a report in the format RegularExpression, CSV or JSONLines.
	// +optional
	Records *ClientRecords `json:"records,omitempty"`

	// histograms say what a log in the format HdrHistogram has.
	// +optional
	Histograms *ClientHistograms `json:"histograms,omitempty"`

	// summary says where a report in the format Summary has its numbers.
	// +optional
	Summary *ClientSummary `json:"summary,omitempty"`
}

// ClientHistograms say how a log of HdrHistograms is read. The log has the instant of each interval
// on the wall clock of the client's node. A whole interval belongs to the window if its middle
// does. With intervals of a second, the window's ends are therefore exact to half a second.
type ClientHistograms struct {
	// unit of the latencies.
	Unit RecordUnit `json:"unit"`

	// tags of the histograms of committed transactions. Default: all but those of errors. A tag is
	// a kind of operation, as in operation of records.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=64
	Tags []string `json:"tags,omitempty"`

	// errors are the tags of the histograms of operations that failed. Default: none, and errors
	// are unknown.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=64
	Errors []string `json:"errors,omitempty"`
}

// ClientSummary says how to read the numbers that a client prints of its whole run. It must have a
// rate (Throughput, EndedRate), or a count (Committed, Ended, Answered) and RunTime. Assay computes
// missing numbers:
//
//   - Ended = Committed + failures, which are Aborted, Errors and Timeouts as far as they are there
//   - Ended = Answered + Timeouts
//   - Errors = Ended - Committed, where nothing else says what failed
//   - Committed = Throughput * RunTime, Ended = EndedRate * RunTime
//   - Throughput = EndedRate * Committed / Ended
//
// Without a count and RunTime, Assay uses the schedule's time of load as RunTime, and the results
// state that. A number that differs by more than 2% from the computed one, beyond rounding, makes
// the report unreadable. Percentiles that fall by as much make it unreadable, too.
type ClientSummary struct {
	// numbers that the client prints. All have a pattern, or all have a path.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Numbers []SummaryNumber `json:"numbers"`
}

// SummaryNumberName is the meaning of a number of a summary. Committed counts transactions, Aborted
// attempts. Errors and Timeouts count requests. Ended counts all attempts, also those that failed.
// Answered counts attempts that had an answer: all but Timeouts. Throughput is committed
// transactions per second, EndedRate all attempts per second. RunTime is how long the client ran.
// MeanLatency, MaxLatency and percentiles are of committed transactions: P50Latency, P95Latency,
// P999Latency (99.9%), P99999Latency (99.999%). A name that begins with a small letter is a number
// of the client's own: hitRate. Measurements of an Experiment read it by counter, if there is one
// client pod.
// +kubebuilder:validation:MaxLength=40
// +kubebuilder:validation:XValidation:rule="self in ['Committed', 'Aborted', 'Errors', 'Timeouts', 'Ended', 'Answered', 'Throughput', 'EndedRate', 'RunTime', 'MeanLatency', 'MaxLatency'] || self.matches('^P([1-9][0-9]|9[0-9]{2,4})Latency$') || self.matches('^[a-z][a-zA-Z0-9]*$')",message="must be Committed, Aborted, Errors, Timeouts, Ended, Answered, Throughput, EndedRate, RunTime, MeanLatency, MaxLatency, a percentile such as P95Latency or P9999Latency, or a name of the client's own such as hitRate",messageExpression="self + ' is no number of a summary; it must be Committed, Aborted, Errors, Timeouts, Ended, Answered, Throughput, EndedRate, RunTime, MeanLatency, MaxLatency, a percentile such as P95Latency or P9999Latency, or a name of the client\\'s own such as hitRate'"
type SummaryNumberName string

// SummaryNumber is one number of a summary.
// +kubebuilder:validation:XValidation:rule="has(self.pattern) != has(self.path)",message="must have either pattern or path"
type SummaryNumber struct {
	// name is the meaning of the number.
	Name SummaryNumberName `json:"name"`

	// pattern that the number's line matches, a regular expression (RE2) with the group value:
	// ^Committed: (?P<value>[0-9]+)$. A group unit has the unit, where it changes from line to
	// line: (?P<value>[0-9.]+)(?P<unit>us|ms|s). A carriage return ends a line, too. The value may
	// have thousands separators (28,744), and a count or a rate one of the suffixes k, M and G.
	// Where no line matches, Aborted, Errors and Timeouts are 0, and any other number makes the
	// report unreadable.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Pattern string `json:"pattern,omitempty"`

	// path of the number in each JSON document of the output, as RFC 9535 has paths:
	// $.latency.p99. The output is one document, a document in each line, or a document after other
	// lines. Each node that the path selects counts as a line that matches.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Path string `json:"path,omitempty"`

	// unit of the number. For a time: ns, us, ms, s, min or h. Without one, and without the group
	// unit, a time is a duration as Go writes them: 402us, 1m24.17s. For a rate: /s, /min or /h,
	// with k, M or G before it or without: k/s, M/min. Default: /s. For a count: k, M or G.
	// Default: none.
	// +optional
	// +kubebuilder:validation:MaxLength=8
	Unit string `json:"unit,omitempty"`

	// of says which number counts when several lines match. Only: different numbers are an error.
	// Last: the last one counts, for numbers that grow until the end. Sum: all are added up, for
	// counts by kind of operation. Mean: the mean of all, for rates of intervals. LastOfEach is for
	// numbers that grow and are printed for each kind of operation. The pattern's group each
	// matches the kind, and the last number of each kind is added up. Times are not added up, and
	// percentiles have no Mean. Default: Only.
	// +optional
	// +kubebuilder:default=Only
	// +kubebuilder:validation:Enum=Only;Last;Sum;Mean;LastOfEach
	Of string `json:"of,omitempty"`
}

// ClientRecords say what a line of a client's report holds. Each line is one operation. An
// operation belongs to the measurement window if it ended in the window.
type ClientRecords struct {
	// pattern that an operation's line matches, a regular expression (RE2) with named groups:
	// ^[A-Z]+,(?P<end>[0-9]+),(?P<latency>[0-9.]+)$. Each named group must have a field that reads
	// it. For the format RegularExpression, and only there.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Pattern string `json:"pattern,omitempty"`

	// where says which lines of the format JSONLines are operations: lines whose members at these
	// paths have these values: {$.metric: http_req_duration}. Other lines are counted and left out.
	// Default: all lines that have a member at a path that some field reads.
	// +optional
	// +kubebuilder:validation:MaxProperties=8
	Where map[string]string `json:"where,omitempty"`

	// separator of columns, for the format CSV: a comma, a semicolon, a vertical bar, a tab or a
	// blank. Default: a comma.
	// +optional
	// +kubebuilder:validation:MaxLength=1
	// +kubebuilder:validation:Pattern=`^[,;|\t ]$`
	Separator string `json:"separator,omitempty"`

	// latency of the operation: its own number, or the time since it began.
	Latency RecordLatency `json:"latency"`

	// instant at which the operation began or ended.
	Instant RecordInstant `json:"instant"`

	// outcome of the operation. Default: every line is a committed transaction.
	// +optional
	Outcome *RecordOutcome `json:"outcome,omitempty"`

	// operation is the name of a group of the pattern, or of a column, with the kind of the
	// operation. Results then have each kind's rate and percentiles, merged over pods and cut to
	// the window, of at most 32 kinds. Measurements of an Experiment read them by counter:
	// operation:KIND, the committed operations; operationMicros:KIND, the sum of their latencies;
	// operationP99Millis:KIND and other percentiles. Default: none.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Operation string `json:"operation,omitempty"`

	// node is the name of a group of the pattern, or of a column, with the node that answered. The
	// node is a replica, under a name that the client chooses. Results then have the rate and
	// percentiles of each, of at most 32 nodes. Measurements read them by counter:
	// nodeP99Millis:NODE, and nodeMeanMillisVariation for how much the nodes differ. Default: none.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Node string `json:"node,omitempty"`
}

// RecordUnit is the unit of a number in a report.
// +kubebuilder:validation:Enum=ns;us;ms;s
type RecordUnit string

// RecordLatency says where a line has the latency of its operation.
// +kubebuilder:validation:XValidation:rule="has(self.from) != has(self.since) && has(self.from) == has(self.unit)",message="must have either from and unit, or since"
type RecordLatency struct {
	// from is the name of a group of the pattern, or of a column, or a path such as $.data.value.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	From string `json:"from,omitempty"`

	// unit of the number.
	// +optional
	Unit RecordUnit `json:"unit,omitempty"`

	// since is the name of a group of the pattern, or of a column, with the instant at which the
	// operation began, in the form that instant has. The latency is the time from there to instant,
	// which must be of End.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Since string `json:"since,omitempty"`
}

// RecordFraction is another group or column whose number is added to an instant.
type RecordFraction struct {
	// from is the name of a group of the pattern, or of a column, or a path such as $.data.value.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	From string `json:"from"`

	// unit of the number.
	Unit RecordUnit `json:"unit"`
}

// RecordInstant says where a line has the instant of its operation.
// +kubebuilder:validation:XValidation:rule="(self.from != 'Arrival' && !has(self.layout)) == has(self.unit)",message="unit is needed, unless from is Arrival or layout is set",messageExpression="'from is ' + self.from + '; unit is needed, unless from is Arrival or layout is set'"
type RecordInstant struct {
	// from is the name of a group of the pattern, or of a column, or a path; or Arrival: the
	// operation ended when its line came, on Stdout or Stderr. Such an instant is late by the time
	// in the pipe, in Assay's launcher, and in the client's own buffer. Lines that come in bursts
	// are counted. The report is unreadable if more than 1% of all lines may be more than 100 ms
	// late.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	From string `json:"from"`

	// unit of the number. Unset for Arrival and with layout.
	// +optional
	Unit RecordUnit `json:"unit,omitempty"`

	// layout of an instant that is a date: RFC3339 for 2023-11-14T22:13:22.123Z; or the instant
	// 2006-01-02 15:04:05 as the client would print it, as Go's package time has layouts. A
	// fraction of the second may follow in the line without being in the layout. If the layout has
	// no date, Assay chooses the day that is nearest to t = 0.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Layout string `json:"layout,omitempty"`

	// zone of a date that has no zone itself: +01:00. Default: UTC.
	// +optional
	// +kubebuilder:validation:Pattern=`^[-+][0-9]{2}:[0-9]{2}$`
	Zone string `json:"zone,omitempty"`

	// fraction is another group or column that is added to the instant: microseconds beside
	// seconds. Default: none.
	// +optional
	Fraction *RecordFraction `json:"fraction,omitempty"`

	// clock that was read: Wall (time since 1970, or a date); Monotonic (CLOCK_MONOTONIC, as
	// System.nanoTime and std::chrono::steady_clock read it); SinceStart (time since Assay's
	// launcher started the client's process). If a client counts from a later instant, such as its
	// connection, its instants are wrong by the difference. Default: Wall.
	// +optional
	// +kubebuilder:validation:Enum=Wall;Monotonic;SinceStart
	// +kubebuilder:default=Wall
	Clock string `json:"clock,omitempty"`

	// of says whether the instant is the Begin or the End of the operation. Default: End.
	// +optional
	// +kubebuilder:validation:Enum=Begin;End
	// +kubebuilder:default=End
	Of string `json:"of,omitempty"`
}

// RecordOutcome says where a line has the outcome of its operation.
type RecordOutcome struct {
	// from is the name of a group of the pattern, or of a column, or a path such as $.data.value.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	From string `json:"from"`

	// committed are the texts of operations that took effect: [OK]. Needed, unless others is
	// Committed. If from is also the from of latency, every number counts as committed, too: 8333,
	// or failed.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=64
	Committed []string `json:"committed,omitempty"`

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

	// others says how a text counts that is in no list: Errors, Aborted, Timeouts, Committed, or
	// Skipped (no operation at all). The results count such texts by name. Default: Errors.
	// +optional
	// +kubebuilder:validation:Enum=Errors;Aborted;Timeouts;Committed;Skipped
	// +kubebuilder:default=Errors
	Others string `json:"others,omitempty"`
}
