// Package group reads the configuration file of the awkward system and resolves the names in it.
//
// The file has the format of several research prototypes:
//
//	f 1
//	group
//	replica host-a:7087
//	replica host-b:7087
//
// Names are resolved once, when the process starts. A name that does not resolve is fatal, and a
// later change of address is never noticed. The original systems have this habit, and a platform
// must cope with it, so it is kept on purpose.
package group

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// Config is the content of a configuration file.
type Config struct {
	// F is how many replicas may fail.
	F int
	// Replicas are host:port, in the order of the file.
	Replicas []string
}

// Quorum is how many replies commit an operation.
func (c Config) Quorum() int { return len(c.Replicas) - c.F }

// Parse reads a configuration file. Only one group is supported.
func Parse(r io.Reader) (Config, error) {
	var c Config
	groups, hasF := 0, false
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		words := strings.Fields(lines.Text())
		if len(words) == 0 {
			continue
		}
		switch {
		case words[0] == "f" && len(words) == 2:
			f, err := strconv.Atoi(words[1])
			if err != nil || f < 0 {
				return Config{}, fmt.Errorf("line %d: %q is not a number of faults", n, words[1])
			}
			c.F, hasF = f, true
		case words[0] == "group" && len(words) == 1:
			groups++
		case words[0] == "replica" && len(words) == 2:
			if groups == 0 {
				return Config{}, fmt.Errorf("line %d: replica before group", n)
			}
			if _, _, err := net.SplitHostPort(words[1]); err != nil {
				return Config{}, fmt.Errorf("line %d: %q is not host:port", n, words[1])
			}
			c.Replicas = append(c.Replicas, words[1])
		default:
			return Config{}, fmt.Errorf("line %d: cannot understand %q", n, lines.Text())
		}
	}
	if err := lines.Err(); err != nil {
		return Config{}, fmt.Errorf("read configuration: %w", err)
	}
	return c, c.check(hasF, groups)
}

func (c Config) check(hasF bool, groups int) error {
	switch {
	case !hasF:
		return errors.New("no line sets f, the number of failures to tolerate")
	case groups != 1:
		return fmt.Errorf("there must be one group, not %d", groups)
	case len(c.Replicas) <= 2*c.F:
		return fmt.Errorf("%d replicas cannot tolerate %d faults: a majority must be left", len(c.Replicas), c.F)
	}
	return nil
}

// Resolver looks names up; net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Resolve looks every replica up, once. It uses only IPv4, as the originals do. If there are
// several addresses, it uses the first.
func (c Config) Resolve(ctx context.Context, r Resolver) ([]netip.AddrPort, error) {
	var all []netip.AddrPort
	for i, replica := range c.Replicas {
		host, portText, err := net.SplitHostPort(replica)
		if err != nil {
			return nil, fmt.Errorf("split address of replica %d: %w", i, err)
		}
		port, err := strconv.ParseUint(portText, 10, 16)
		if err != nil {
			return nil, fmt.Errorf("replica %d: %q is not a port", i, portText)
		}
		addrs, err := r.LookupNetIP(ctx, "ip4", host)
		if err != nil {
			return nil, fmt.Errorf("resolve replica %d: %w", i, err)
		}
		if len(addrs) == 0 {
			return nil, fmt.Errorf("resolve replica %d: %s has no IPv4 address", i, host)
		}
		all = append(all, netip.AddrPortFrom(addrs[0].Unmap(), uint16(port)))
	}
	return all, nil
}
