package render

import (
	"fmt"
	"maps"
	"math/big"
	"strings"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/fault"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/node/loadgen"
)

// MisbehavingClients returns how many clients of a client pod misbehave on purpose, because of a
// fault or of their program.
func MisbehavingClients(spec *v1alpha1.TrialSpec, c placement.Client) (int, error) {
	if n := spec.MisbehavingClients; len(n) > 0 {
		if c.Index >= len(n) {
			return 0, fmt.Errorf("spec.misbehavingClients has %d pods; there is a pod %d", len(n), c.Index)
		}
		return int(n[c.Index]), nil
	}
	behaveSo, err := Misbehaving(spec, c.First, c.Count)
	return len(behaveSo), err
}

// Misbehaving lists the clients that a fault makes behave otherwise, among those with an index from
// first to before first + count. They are spread evenly over all clients of the trial. With the
// share s, client k is one of them if floor((k+1)s) > floor(ks), so that the first n clients have
// floor(ns) of them.
func Misbehaving(spec *v1alpha1.TrialSpec, first, count int) ([]int32, error) {
	b := fault.Behavior(spec.Faults)
	if b == nil {
		return nil, nil
	}
	number, percent := strings.CutSuffix(b.Share, "%")
	share, ok := new(big.Rat).SetString(number) // exact: 29% of 100 are 29
	if !ok || !percent {
		return nil, fmt.Errorf("spec.faults: the share of clients %q is not a percentage", b.Share)
	}
	share.Quo(share, big.NewRat(100, 1))
	upTo := func(k int) int64 {
		n := new(big.Int).Mul(big.NewInt(int64(k)), share.Num())
		return n.Quo(n, share.Denom()).Int64()
	}
	var out []int32
	for k := first; k < first+count; k++ {
		if upTo(k+1) > upTo(k) {
			out = append(out, int32(k))
		}
	}
	return out, nil
}

// misbehaving renders the driver of a pod's clients that behave otherwise: the same command with
// their parameters. They share the environment and files of the other clients. Nil: the pod has no
// such clients.
func (t *Trial) misbehaving(c placement.Client) (*loadgen.Misbehaving, error) {
	clients, err := Misbehaving(t.spec, c.First, c.Count)
	if err != nil || len(clients) == 0 {
		return nil, err
	}
	other := t.spec.DeepCopy()
	if other.Parameters == nil {
		other.Parameters = map[string]v1alpha1.Value{}
	}
	maps.Copy(other.Parameters, fault.Behavior(t.spec.Faults).Parameters)
	ctx, err := newContext(other, t.system, t.Layout)
	if err != nil {
		return nil, err
	}
	command, err := ctx.with(c).argv("spec.clients.containers[0].command", t.system.Clients.Containers[0].Command)
	if err != nil {
		return nil, err
	}
	return &loadgen.Misbehaving{Clients: clients, Driver: t.driver(command)}, nil
}

// driver returns how clients reach the system. command is the rendered command of their container.
func (t *Trial) driver(command []string) loadgen.DriverConfig {
	if t.system.Clients.Driver.Protocol == loadgen.ProtocolEcho {
		return loadgen.DriverConfig{Protocol: loadgen.ProtocolEcho, Address: command[0]}
	}
	return loadgen.DriverConfig{Protocol: loadgen.ProtocolProcess, Command: command}
}
