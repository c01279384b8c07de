module assay.dev/assay/systems/cassandra

go 1.26.0

require (
	github.com/apache/cassandra-gocql-driver/v2 v2.1.2
	github.com/pingcap/go-ycsb v1.0.1
)

require (
	assay.dev/assay/systems/driver v0.0.0
	github.com/magiconair/properties v1.8.0 // indirect
	github.com/mattn/go-runewidth v0.0.9 // indirect
	github.com/olekukonko/tablewriter v0.0.5 // indirect
	github.com/pingcap/errors v0.11.5-0.20211224045212-9687c2b0f87c // indirect
	go.uber.org/atomic v1.9.0 // indirect
	gopkg.in/inf.v0 v0.9.1 // indirect
)

replace assay.dev/assay/systems/driver => ../driver
