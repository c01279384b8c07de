// Command machine makes a container a machine that answers SSH: see package machine.
//
//	machine keys DIR [SHARED...]     make the keys of a trial (its prepare step), empty directories
//	machine setup [flags]            prepare the user's home and name, before the machine starts
//	machine serve --config FILE      be the machine; exit with the script's code, where it has one
//	machine login --config FILE [-- COMMAND...]   a shell on the machine, for kubectl assay ssh
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"assay.dev/assay/operator/internal/node/machine"
)

func main() {
	// The heap is small, and copies make much garbage: each packet is a buffer of its own.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(machine.GarbagePercent)
	}
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintf(os.Stderr, "machine: %v\n", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func run(args []string) (code int, err error) {
	if len(args) == 0 {
		return 2, errors.New("usage: machine keys DIR [SHARED...], machine setup [flags], machine serve --config FILE, or machine login --config FILE [-- COMMAND...]")
	}
	flags := flag.NewFlagSet("machine "+args[0], flag.ContinueOnError)
	switch args[0] {
	case "keys":
		if len(args) < 2 {
			return 2, errors.New("usage: machine keys DIR [SHARED...]")
		}
		return 0, errors.Join(machine.MakeKeys(args[1]), machine.EmptyDirectories(args[2:]...))
	case "setup":
		s := machine.SetUp{UID: os.Getuid(), GID: os.Getgid(), Root: "/"}
		flags.StringVar(&s.User, "user", "", "name of the user")
		flags.StringVar(&s.Home, "home", "", "home directory of the user in the image")
		flags.StringVar(&s.HomeVolume, "to", "", "where the volume is that will be the home directory")
		flags.StringVar(&s.Etc, "etc", "", "directory for passwd and group")
		if err := flags.Parse(args[1:]); err != nil {
			return 2, err
		}
		return 0, s.Run()
	case "serve":
		path := flags.String("config", "", "file with the machine's configuration")
		if err := flags.Parse(args[1:]); err != nil {
			return 2, err
		}
		c, err := machine.ReadConfig(*path)
		if err != nil {
			return 1, err
		}
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		return c.Run(ctx, os.Environ(), os.Stdout, os.Stderr)
	case "login":
		path := flags.String("config", "", "file with the machine's configuration")
		if err := flags.Parse(args[1:]); err != nil {
			return 2, err
		}
		c, err := machine.ReadConfig(*path)
		if err != nil {
			return 1, err
		}
		return c.Login(os.Environ(), flags.Args(), os.Stdin, os.Stdout, os.Stderr)
	}
	return 2, fmt.Errorf("there is no command %q", args[0])
}
