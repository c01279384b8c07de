package main

import (
	"github.com/spf13/cobra"

	"assay.dev/assay/systems/basil/internal/driver"
	"assay.dev/assay/systems/basil/internal/transport"
	protocol "assay.dev/assay/systems/driver"
)

func driverCommand() *cobra.Command {
	var cf clusterFlags
	var cl clientFlags
	var wf workloadFlags
	var mf misbehaviorFlags
	c := &cobra.Command{
		Use:   "driver --config FILE --keys DIR",
		Short: "Run clients for a load generator that speaks the driver protocol on stdin and stdout",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			y, err := wf.config()
			if err != nil {
				return err
			}
			cluster, checker, err := cf.checker()
			if err != nil {
				return err
			}
			cfg, err := cl.config(checker)
			if err != nil {
				return err
			}
			misbehavior, err := mf.config()
			if err != nil {
				return err
			}
			cfg.Genesis = y.Genesis
			d := &driver.Driver{
				Host: transport.RunClient(cluster.Addresses(), cfg), Workload: y, Log: cmd.ErrOrStderr(),
				Misbehavior: misbehavior, Frequency: mf.frequency,
			}
			return protocol.Serve(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), d)
		},
	}
	cf.register(c)
	cl.register(c)
	wf.register(c)
	mf.register(c)
	return c
}
