package parsers

import (
	"fmt"
	"strings"

	"assay.dev/assay/operator/internal/testkit/testpequin"
)

// Files in the shapes of the formats. All numbers are made up here.

// eigerSample: 8 threads; 5 keys in a transaction, 2 columns for each key, 64 bytes in each; 30000
// transactions beside 24000 are 1.25.
const eigerSample = "8\t30000\t150000\t300000\t19200000\t8\t24000\t120000\t240000\t15360000\t1.25\n"

// hatsBanner is the title above tables, in a box of three lines.
func hatsBanner(title string) string {
	rule := strings.Repeat("#", len(title)+22)
	return fmt.Sprintf("%s\n#%*s%s%*s#\n%s\n", rule, 10, "", title, 10, "", rule)
}

// hatsTables has a table for each scheme, with a line for each label. cell says what stands in the
// columns.
func hatsTables(header string, schemes, labels []string, columns int, cell func(scheme, label, column int) float64) string {
	var b strings.Builder
	for s, scheme := range schemes {
		fmt.Fprintf(&b, "%s\n%s\n", header, strings.Repeat("-", len(header)))
		for l, label := range labels {
			fmt.Fprintf(&b, "%-15s %-15s", scheme, label)
			for c := range columns {
				fmt.Fprintf(&b, " %-20.2f", cell(s, l, c))
			}
			b.WriteString("\n")
		}
		b.WriteString("\n")
	}
	return b.String()
}

var (
	hatsSchemes   = []string{"hats", "middle", "plain"}
	hatsWorkloads = []string{"mixed", "reading"}
)

// hatsCell is another number in each place: 1000 for the scheme, 100 for the label, 10.25 for the
// column.
func hatsCell(scheme, label, column int) float64 {
	return float64(1000*(scheme+1)+100*(label+1)) + 10.25*float64(column)
}

// hatsLatencies is a table with percentiles, hatsManyTables four tables under titles of their own,
// and hatsLevels one whose second column is no workload.
var (
	hatsLatencies = hatsBanner("Made-up#1 (Latencies)") +
		hatsTables("Scheme          Workload        Throughput(ops/s)    P50(us)         P99(us)         P999(us)", hatsSchemes, hatsWorkloads, 4, hatsCell)
	hatsManyTables = hatsLatencies +
		hatsBanner("Made-up#2 (A column of two words)") +
		hatsTables("Scheme          Workload        Avg CoV              Latency Standard Deviation(us)", hatsSchemes, hatsWorkloads, 2,
			func(s, l, c int) float64 { return []float64{.125 * float64(s+1), 7.5 * float64(l+1)}[c] }) +
		hatsBanner("Made-up#3 (A difference)") +
		hatsTables("Scheme       Workload     WAL(us)            Flushing(us)       Selection(us)      Disk(us)", hatsSchemes, hatsWorkloads, 4,
			func(s, l, c int) float64 {
				if s == 2 && l == 1 && c == 2 {
					return -41
				}
				return hatsCell(s, l, c)
			}) +
		hatsBanner("Made-up#4 (Resources)") +
		hatsTables("Scheme       Workload     DiskIO(MiB)        NetworkIO(MiB)     CPU(s)             Memory(GiB)", hatsSchemes, hatsWorkloads, 4, hatsCell)
	hatsOneBlank = hatsBanner("Made-up#5 (Columns with one blank between them)") +
		hatsTables("Scheme          Workload        AverageReadLatency(us) Out-of-Range(%)", hatsSchemes, hatsWorkloads[:1], 2,
			func(s, _, c int) float64 { return []float64{100 * float64(s+1), 12.5 * float64(s+1)}[c] })
	hatsLevels = hatsBanner("Made-up#6 (Levels)") +
		hatsTables("Scheme          Consistency     Throughput(ops/s)    P99(us)", hatsSchemes, []string{"ONE", "HALF", "ALL"}, 2, hatsCell)
)

// electSample has each kind of line: a single round, statistics, a number on the line of its
// metric, a line of dots, titles of several kinds.
const electSample = `[Exp info] scheme: elect, workload: Filling, KVNumber: 4000, OPNumber: 400, KeySize: 16, ValueSize: 512, ClientNumber: 3, ConsistencyLevel: ONE, ExtraFlag: 
Throughput (unit: op/s): 
Only one round: 812.25
[READ] Average operation latency (unit: us):
Only one round: 431.5

[Exp info] scheme: elect, workload: Filling, KVNumber: 4000, OPNumber: 400, KeySize: 16, ValueSize: 512, ClientNumber: 3, ConsistencyLevel: ONE, ExtraFlag: 
Throughput (unit: op/s): 
Average: 800.5, Min:  790.25, Max:  810.75
[READ] 99th percentile latency (unit: us):
Average: 950.00, Min: 900, Max: 1000

[Exp info] Scheme: elect, KVNumber: 700000, KeySize: 16, ValueSize: 512
Total storage overhead (unit: GiB): 12.75
Cold-tier storage overhead (unit: GiB): 4.25

[Breakdown info for Filling] scheme: elect, KVNumber: 9000, KeySize: 16, ValueSize: 512
WAL (unit: ms/MiB):
Only one round: 33.5
Migration (unit: ms/MiB):
Only one round: 2.125
...

[Exp info] scheme: elect, KVNumber: 9000, KeySize: 16, ValueSize: 512
Total recovery time cost (unit: s):
Average: 77.00, Min: 77, Max: 77
Recovery time cost for decode SSTables (unit: s):
Average: 44.00, Min: 44, Max: 44

[Resource usage with lost nodes] scheme: elect, KVNumber: 9000, KeySize: 16, ValueSize: 512, OPNumber: 800
95%-percentile CPU Usage (%):
Only one round: 61.5
Total Disk I/O (GiB):
Only one round: 0.375
`

// dmtreeSample has two indexes that ran and one of zeros. The nodes' numbers add up to the totals,
// once with the error of binary fractions: 0.1 + 0.2 is 0.30000000000000004.
const dmtreeSample = `Index,Workload,Total,Node1,Node2,Node3
tree,reading,7.0,2.25,2.5,2.25
tree,scanning,0.30000000000000004,0.1,0.2,0.0
hash,reading,9.75,3.25,3.25,3.25
none,reading,0.0,0.0,0.0,0.0
none,scanning,0.0,0.0,0.0,0.0
`

// statsPoint has six operations with interleaved latencies. All together they are 1200 latencies
// from 3.25 ms on, in steps of 1/32 ms.
var statsPoint = testpequin.Point{Clients: 24, Seconds: 32, Counters: map[string]float64{"attempts": 2750, "committed": 2400, "abort_rate": 0.125},
	Operations: func() (out []testpequin.Operation) {
		for i, name := range []string{"buy", "look", "move", "pay", "return", "wait"} {
			out = append(out, testpequin.Operation{Name: name, Count: 200, First: 3.25 + float64(i)/32, Step: 6. / 32})
		}
		return out
	}()}
