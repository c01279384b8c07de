package v1alpha1

// ClientEnd says when a client is over. Several may be set; the first to happen ends it. Exit always does.
type ClientEnd struct {
	// log ends the client when it prints a matching line.
	// +optional
	Log *LogGate `json:"log,omitempty"`

	// afterDrain ends the client when the drain of the schedule is over.
	// +optional
	AfterDrain bool `json:"afterDrain,omitempty"`

	// stop says how a client that is over but still runs is ended. SIGTERM with a grace gives it time to print; SIGKILL is for
	// one that destroys its results on SIGTERM.
	// +optional
	Stop *StopSpec `json:"stop,omitempty"`

	// requireExitZero makes a trial invalid when the client exits with another code. Default: false, since the exit codes of many
	// artifacts mean nothing.
	// +optional
	RequireExitZero bool `json:"requireExitZero,omitempty"`
}

// ResultsFormat is how a client reports: Assay (the result file of Assay's load generator); TransactionLines (one line for each
// committed transaction: name, latency in ns, CLOCK_MONOTONIC in ns, client id, separated by commas, as the Pequin and Basil artifacts print); RegularExpression (one line for
// each operation, read by the pattern of records; other lines are skipped); CSV (a line that names the columns, and under it one line for each operation). All hold every
// transaction, so that the trial's window can be cut out and percentiles are those of all clients together. Summaries that a client makes itself hold neither.
// +kubebuilder:validation:MaxLength=40
// +kubebuilder:validation:XValidation:rule="self in ['Assay', 'TransactionLines', 'RegularExpression', 'CSV']",message="must be Assay, TransactionLines, RegularExpression or CSV",messageExpression="self + ' is not a format of a trial. Those are Assay, TransactionLines, RegularExpression and CSV, which hold every transaction: a summary can neither be cut to the window nor merged over clients. Have the client write a line for each operation (YCSB: -p measurementtype=raw)'"
type ResultsFormat string

// The formats of results.
const (
	FormatAssay             ResultsFormat = "Assay"
	FormatTransactionLines  ResultsFormat = "TransactionLines"
	FormatRegularExpression ResultsFormat = "RegularExpression"
	FormatCSV               ResultsFormat = "CSV"
)

// ClientResults say what a client reports and where.
// +kubebuilder:validation:XValidation:rule="(self.source == 'File') == has(self.path)",message="path is needed when source is File, and only then",messageExpression="'source is ' + self.source + '; path is needed when source is File, and only then'"
// +kubebuilder:validation:XValidation:rule="(self.format in ['RegularExpression', 'CSV']) == has(self.records)",message="records are needed for RegularExpression and CSV, and only for those",messageExpression="'format is ' + self.format + '; records are needed for RegularExpression and CSV, and only for those'"
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
}

// ClientRecords say what is in a line of a client's report, each of which is one operation. Whether it belongs to the measurement window is decided by the instant at which it ended.
type ClientRecords struct {
	// pattern that an operation's line matches, a regular expression (RE2) with named groups: ^(?P<op>[A-Z]+),(?P<end>[0-9]+),(?P<latency>[0-9.]+)$. For the format
	// RegularExpression, and only there.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Pattern string `json:"pattern,omitempty"`

	// separator of columns, for the format CSV: a comma, a semicolon, a vertical bar, a tab or a blank. Default: a comma.
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
type RecordInstant struct {
	// from is the name of a group of the pattern, or of a column.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	From string `json:"from"`

	// unit of the number.
	Unit RecordUnit `json:"unit"`

	// clock that was read: Wall (time since 1970); Monotonic (CLOCK_MONOTONIC, as System.nanoTime and std::chrono::steady_clock read it). Times since the client's own start
	// cannot be used: t = 0 is not on them. Default: Wall.
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

// RecordOutcome is where a line says how its operation ended. A text that is in none of the lists makes the report unreadable.
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
