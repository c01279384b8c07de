// Package parsers reads what systems and their clients report: in a trial (Parse) and in files of
// others (ReadTable, ReadPequinStats, ReadPequinClient). It touches only the reader that it is
// given.
//
// Some formats hold every transaction. They stream into histograms, so that percentiles over all
// clients are true ones:
//
//	Assay              the result file of the load generator, which holds histograms
//	TransactionLines   a line for each transaction; the window is cut by the trial's own t = 0
//	PequinClient       the same lines in an artifact's folder, where t = 0 is not known: all lines count
//	RegularExpression  in a trial: a line that matches is an operation (results.Records)
//	CSV                in a trial: a line under the header is an operation (results.Records)
//	JSONLines          a line with certain members is an operation (results.Records)
//	HdrHistogram       a log with a histogram for each interval
//	Reckon             the JSON messages of reckon's clients, each after its length
//
// One holds numbers that a client of a trial computed itself, over its whole run:
//
//	Summary            a line that matches has one of the numbers (results.SummaryNumber)
//
// One holds the output of the script of a System with machines, whose rows belong to several
// points:
//
//	Rows               the file with the numbers as it is, and what ran on the machines by SSH
//
// The others are summaries: another program has averaged or ranked the transactions. Their numbers
// can be shown and compared, but neither merged over clients nor cut to another window:
//
//	YCSB               the text that YCSB prints at the end of a run
//	PequinStats        stats.json of the Pequin and Basil artifacts (ReadPequinStats gives it typed)
//	EigerGraph         combined.graph of Eiger-PORT
//	HATSTable          exp#_summary.txt of HATS
//	DMTreeTable        the CSV of DMTree, nodes side by side
//	ELECTSummary       the "[Exp info]" logs of ELECT and DMTree
//	RegularExpression  in a file: a line that matches makes a row (Spec)
//	CSV                in a file: a record makes a row (Spec)
//	JSONPath           a node makes a row (Spec)
//
// Parsers stream: memory does not grow with the length of the report, but with the rows of a
// summary, which are bounded. JSONPath alone needs its document as a whole, 16 MiB at most. Parsers
// are strict where a number could get lost. A report that is damaged (cut off, columns missing,
// NaN, a negative count) is an error with its file and line, not a smaller result.
package parsers

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/results"
)

// The formats, named as v1alpha1.ResultsFormat names them.
const (
	FormatAssay            = "Assay"
	FormatTransactionLines = "TransactionLines"
)

// maxReport is the most that a client's JSON report may take: a run of 26 h has a timeline of some
// 20 MB.
const maxReport = 64 << 20

// The formats of files that others made.
const (
	FormatPequinClient      = "PequinClient"
	FormatYCSB              = "YCSB"
	FormatPequinStats       = "PequinStats"
	FormatEigerGraph        = "EigerGraph"
	FormatHATSTable         = "HATSTable"
	FormatDMTreeTable       = "DMTreeTable"
	FormatELECTSummary      = "ELECTSummary"
	FormatRegularExpression = "RegularExpression"
	FormatCSV               = "CSV"
	FormatJSONPath          = "JSONPath"
	FormatJSONLines         = "JSONLines"
	FormatSummary           = "Summary"
	FormatReckon            = "Reckon"
)

// Format is one format that can be read.
type Format struct {
	Name string
	// Histograms: the format holds every transaction, or histograms of them. Else it is a summary,
	// or any content that a spec describes.
	Histograms bool

	client func(io.Reader, Options) (results.Client, error)          // of a trial
	table  func(file string, r io.Reader, spec Spec) (*Table, error) // of a file
}

// formats in the order of the package's comment.
var formats = []Format{
	{Name: FormatAssay, Histograms: true, client: parseAssay},
	{Name: FormatTransactionLines, Histograms: true, client: parseTransactionLines},
	{Name: FormatPequinClient, Histograms: true, table: pequinClientTable},
	{Name: FormatYCSB, table: parseYCSB},
	{Name: FormatPequinStats, table: pequinStatsTable},
	{Name: FormatEigerGraph, table: parseEigerGraph},
	{Name: FormatHATSTable, table: parseHATSTable},
	{Name: FormatDMTreeTable, table: parseDMTreeTable},
	{Name: FormatELECTSummary, table: parseELECTSummary},
	{Name: FormatRegularExpression, table: parseRegularExpression, client: parsePatternRecords},
	{Name: FormatCSV, table: parseCSV, client: parseCSVRecords},
	{Name: FormatJSONPath, table: parseJSONPath},
	{Name: FormatJSONLines, client: parseJSONLines},
	{Name: FormatSummary, client: parseSummary},
	{Name: FormatRows, client: parseRows},
	{Name: FormatReckon, Histograms: true, client: parseReckon},
	{Name: FormatHdrHistogram, Histograms: true, client: parseHdrHistogram},
}

// Formats lists all formats that can be read.
func Formats() []Format { return slices.Clone(formats) }

// Options have the facts that a report does not state.
type Options struct {
	// ZeroMonotonicNanos is t = 0 on the CLOCK_MONOTONIC of the client's node, ZeroUnixNanos on the
	// pod's wall clock.
	ZeroMonotonicNanos, ZeroUnixNanos int64
	// StartNanos is when the client's process was started, relative to t = 0.
	StartNanos int64
	// Windows of the run.
	Windows timeline.Windows
	// Index of the client pod and the clients that it runs.
	Index, FirstClient, Clients int32
	// Misbehaving is how many of these clients their program makes misbehave. The report leaves
	// them out.
	Misbehaving int32
	// Records of the formats RegularExpression, CSV and JSONLines.
	Records *results.Records
	// Histograms of the format HdrHistogram.
	Histograms *results.Histograms
	// Summary says where the format Summary has its numbers.
	Summary []results.SummaryNumber
	// Whole: the client ended by itself with exit code 0, so that a last line without its newline
	// is whole.
	Whole bool
	// Arrivals has the instant at which each part of the report came, as launchers keep it. It is
	// for records whose instants are those of arrival.
	Arrivals io.Reader
	// Seen, if it is not nil, takes in all operations of the report, in the window or not.
	Seen *Seen
	// Other, if it is not nil, is called with each line that no pattern matches.
	Other func(line []byte)
}

// Seen are the operations of a report: how many, and when the first began and the last ended.
type Seen struct {
	Operations  int64
	First, Last time.Duration
}

// Parse reads the whole report of a client of a trial in the named format.
func Parse(format string, r io.Reader, o Options) (results.Client, error) {
	names := []string{}
	why := ""
	for _, f := range formats {
		switch {
		case f.Name == format && f.client != nil:
			c, err := f.client(r, o)
			if c.MisbehavingClients == 0 {
				c.MisbehavingClients = o.Misbehaving
			}
			return c, err
		case f.client != nil && f.Name != FormatRows: // no System names it
			names = append(names, f.Name)
		case f.Name == format:
			why = ", since what it holds can neither be cut to the trial's window nor merged over clients"
		}
	}
	return results.Client{}, fmt.Errorf("the results format is %q; a client of a trial reports in one of %s%s", format, strings.Join(names, ", "), why)
}

func parseAssay(r io.Reader, o Options) (results.Client, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxReport+1))
	if err != nil {
		return results.Client{}, fmt.Errorf("read the client's report: %w", err)
	}
	if len(b) > maxReport {
		return results.Client{}, fmt.Errorf("the client's report is larger than %d bytes", maxReport)
	}
	c, err := results.DecodeClient(b)
	if err != nil {
		return results.Client{}, err
	}
	if c.Index != o.Index || c.FirstClient != o.FirstClient || c.Clients != o.Clients {
		return results.Client{}, fmt.Errorf("the report is of client pod %d with clients %d to %d; it should be of pod %d with clients %d to %d",
			c.Index, c.FirstClient, c.FirstClient+c.Clients-1, o.Index, o.FirstClient, o.FirstClient+o.Clients-1)
	}
	if c.MeasureNanos != int64(o.Windows.Measure) {
		return results.Client{}, fmt.Errorf("the report's window is %v long; it should be %v", time.Duration(c.MeasureNanos), o.Windows.Measure)
	}
	return c, nil
}
