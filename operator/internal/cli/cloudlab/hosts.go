package cloudlab

import (
	"errors"
	"fmt"
	"net"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Labels that say on which machine of the testbed a node runs.
const (
	labelHardware  = "machine.assay.dev/hardware-type"
	labelComponent = "machine.assay.dev/testbed-name"
)

// Host is an entry of the variable hosts, which infra/README.md describes.
type Host struct {
	Address         string            `json:"address"`
	User            string            `json:"user"`
	Port            int               `json:"port"`
	InternalAddress string            `json:"internal_address,omitempty"`
	Role            string            `json:"role"`
	Pool            string            `json:"pool,omitempty"`
	Region          string            `json:"region"`
	Zone            string            `json:"zone"`
	Labels          map[string]string `json:"labels,omitempty"`
}

// Variables are the Terraform variables of infra that a manifest determines, as JSON.
type Variables struct {
	Hosts   map[string]Host     `json:"hosts"`
	Pools   map[string]struct{} `json:"pools"`
	Regions []string            `json:"regions"`
}

// Pattern names a group of machines: those whose names match Glob. In it * matches any text, ? any
// character, and [0-9] one of the characters.
type Pattern struct {
	Name string
	Glob string
}

// ParsePattern reads NAME=PATTERN.
func ParsePattern(text string) (Pattern, error) {
	name, glob, ok := strings.Cut(text, "=")
	if !ok || name == "" || glob == "" {
		return Pattern{}, fmt.Errorf("%q must be NAME=PATTERN, as servers='us-*'", text)
	}
	if _, err := path.Match(glob, ""); err != nil {
		return Pattern{}, fmt.Errorf("%q: %q is no pattern: * is any text, ? any character, [0-9] one of these", text, glob)
	}
	return Pattern{Name: name, Glob: glob}, nil
}

// Options of Hosts.
type Options struct {
	// User who logs in. Empty: the user of all machines, if they have only one in common.
	User string
	// ControlPlane is the name of the machine that runs no experiment.
	ControlPlane string
	// Pools of the other machines. The first pattern that matches a machine decides; every machine
	// must match a pattern.
	Pools []Pattern
	// Regions by name. A machine that matches no pattern is in the region of its site.
	Regions []Pattern
}

// Hosts makes the list. Notes name facts that a reader of the list could miss.
func Hosts(machines []Machine, o Options) (vars Variables, notes []string, err error) {
	names := make([]string, len(machines))
	for i, m := range machines {
		names[i] = m.Name
	}
	if !slices.Contains(names, o.ControlPlane) {
		return Variables{}, nil, fmt.Errorf("no machine is named %q, which is to be the control plane; there are %s", o.ControlPlane, strings.Join(names, ", "))
	}
	link, note := common(machines)
	vars = Variables{Hosts: map[string]Host{}, Pools: map[string]struct{}{}}
	var errs []error
	from := map[string]string{} // node name -> machine's name
	at := map[string]string{}   // SSH server -> machine's name
	for _, m := range machines {
		name := label(m.Name)
		if other, taken := from[name]; taken {
			errs = append(errs, fmt.Errorf("%s and %s would both be node %s; give the machines names that differ in letters and digits", other, m.Name, name))
			continue
		}
		from[name] = m.Name
		server := net.JoinHostPort(m.Address, strconv.Itoa(m.Port))
		if other, taken := at[server]; taken {
			notes = append(notes, fmt.Sprintf("Machines %s and %s have one SSH server, %s: they are one machine, of which a cluster can have one node", other, m.Name, server))
		}
		at[server] = m.Name
		host, err := m.host(o, link)
		if err != nil {
			errs = append(errs, fmt.Errorf("machine %s: %w", m.Name, err))
			continue
		}
		if m.Shared {
			notes = append(notes, fmt.Sprintf("Machine %s is shared with others, who disturb what is measured on it: ask for an exclusive one (exclusive=\"true\")", m.Name))
		}
		vars.Hosts[name] = host
		if host.Role == "worker" {
			vars.Pools[host.Pool] = struct{}{}
			vars.Regions = append(vars.Regions, host.Region)
		}
	}
	slices.Sort(vars.Regions)
	vars.Regions = slices.Compact(vars.Regions)
	for _, p := range slices.Concat(o.Pools, o.Regions) {
		if !slices.ContainsFunc(names, p.matches) {
			errs = append(errs, fmt.Errorf("no machine matches %s=%s; there are %s", p.Name, p.Glob, strings.Join(names, ", ")))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return Variables{}, nil, err
	}
	return vars, append([]string{note}, notes...), nil
}

func (m Machine) host(o Options, link string) (Host, error) {
	user, err := m.user(o.User)
	if err != nil {
		return Host{}, err
	}
	h := Host{Address: m.Address, User: user, Port: m.Port, Role: "worker", Region: m.Site, Zone: m.Site, Labels: map[string]string{}}
	if region, ok := match(o.Regions, m.Name); ok {
		h.Region = region
	}
	if m.Name == o.ControlPlane {
		h.Role = "control-plane"
	} else if h.Pool, _ = match(o.Pools, m.Name); h.Pool == "" {
		return Host{}, fmt.Errorf("it is in no pool; add --pool NAME=%s", m.Name)
	}
	for key, value := range map[string]string{labelHardware: m.Hardware, labelComponent: m.Component} {
		if value != "" {
			h.Labels[key] = label(value)
		}
	}
	if m.Control.IsValid() {
		h.InternalAddress = m.Control.String()
	}
	for _, n := range m.Networks {
		if n.Link == link {
			h.InternalAddress = n.Address.Addr().String()
		}
	}
	return h, nil
}

func (m Machine) user(asked string) (string, error) {
	switch {
	case asked == "" && len(m.Users) == 1:
		return m.Users[0], nil
	case asked == "":
		return "", fmt.Errorf("several may log in: %s; say who with --user", strings.Join(m.Users, ", "))
	case !slices.Contains(m.Users, asked):
		return "", fmt.Errorf("%s may not log in, only %s", asked, strings.Join(m.Users, ", "))
	}
	return asked, nil
}

func (p Pattern) matches(name string) bool {
	ok, err := path.Match(p.Glob, name)
	return ok && err == nil
}

func match(patterns []Pattern, name string) (string, bool) {
	i := slices.IndexFunc(patterns, func(p Pattern) bool { return p.matches(name) })
	if i < 0 {
		return "", false
	}
	return patterns[i].Name, true
}

// common finds the network of the experiment that has every machine. If there are several, it
// returns the first by name. If there is none, it returns the empty string.
func common(machines []Machine) (link, note string) {
	in := map[string]int{}
	for _, m := range machines {
		own := map[string]bool{}
		for _, n := range m.Networks {
			own[n.Link] = true
		}
		for name := range own {
			in[name]++
		}
	}
	for name, n := range in {
		if n == len(machines) && (link == "" || name < link) {
			link = name
		}
	}
	if link == "" {
		return "", "No network of the experiment joins all machines: the nodes will talk over the control network, which testbeds ask you to spare."
	}
	return link, fmt.Sprintf("The nodes talk over the experiment's network %s.", link)
}
