// Command measured runs in the pods of bench-measurements. Its programs use known amounts of
// everything, and keep accounts of their own as the second source.
//
//	measured serve INDEX      on port 7000, with a volume at /data: uses processor, memory, disk, network
//	measured ask SECONDS HOST...                           a client of these servers
//	measured store INDEX HOST on port 7000, with a volume at /data: copies the data of the store at HOST
//	measured drive MISBEHAVES HOST                         a driver of clients of the store at HOST
package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"
)

// port that servers and stores listen on.
const port = ":7000"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "measured:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 2 && args[0] == "serve":
		index, err := strconv.Atoi(args[1])
		if err != nil {
			return err
		}
		return serve(index)
	case len(args) > 2 && args[0] == "ask":
		seconds, err := strconv.ParseFloat(args[1], 64)
		if err != nil {
			return err
		}
		return ask(time.Duration(seconds*float64(time.Second)), args[2:])
	case len(args) == 3 && args[0] == "store":
		index, err := strconv.Atoi(args[1])
		if err != nil {
			return err
		}
		return store(index, args[2])
	case len(args) == 3 && args[0] == "drive":
		misbehaves, err := strconv.ParseBool(args[1])
		if err != nil {
			return err
		}
		return drive(misbehaves, args[2])
	}
	return errors.New("usage: measured serve INDEX | ask SECONDS HOST... | store INDEX HOST | drive MISBEHAVES HOST")
}
