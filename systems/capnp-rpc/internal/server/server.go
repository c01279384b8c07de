// Package server answers every message at once, by Cap'n Proto. First it reads all commands of the
// message, as a replica must.
package server

import (
	"context"
	"fmt"
	"net"

	"capnproto.org/go/capnp/v3"
	"capnproto.org/go/capnp/v3/rpc"

	"assay.dev/assay/systems/capnp-rpc/internal/message"
)

// Serve serves until the listener closes.
func Serve(l net.Listener) error {
	return rpc.Serve(l, capnp.Client(message.Receiver_ServerToClient(receiver{})))
}

type receiver struct{}

// Deliver returns how many commands arrived, with how many bytes.
func (receiver) Deliver(_ context.Context, call message.Receiver_deliver) error {
	commands, err := call.Args().Commands()
	if err != nil {
		return fmt.Errorf("read the commands: %w", err)
	}
	var bytes uint64
	for i := range commands.Len() {
		command, err := commands.At(i)
		if err != nil {
			return fmt.Errorf("read command %d: %w", i, err)
		}
		bytes += uint64(len(command))
	}
	results, err := call.AllocResults()
	if err != nil {
		return err
	}
	results.SetCommands(uint32(commands.Len()))
	results.SetBytes(bytes)
	return nil
}
