// Package driver has the parts that a driver written in Go needs. It implements the driver
// protocol, version 1, by which Assay's load generator runs many clients through one child process.
// docs/reference/driver-protocol.md describes the protocol.
//
//	-> hello  firstClient, clients, seed, requestTimeoutMicros
//	<- ready | error
//	-> begin  id, client, sequence, attempt
//	<- end    id, outcome: commit, abort, error or timeout
//	-> bye
//	<- stats  counters
//
// A driver is a System, or a Transactor, which is simpler: Clients gives each client a goroutine.
// Serve handles the messages:
//
//	func main() {
//		if err := driver.Serve(context.Background(), os.Stdin, os.Stdout, driver.Clients(&system{})); err != nil {
//			fmt.Fprintln(os.Stderr, err)
//			os.Exit(1)
//		}
//	}
//
// The module needs only Go's standard library.
package driver
