// Package cloudlab reads the manifest of a CloudLab, Emulab or other GENI experiment (RSpec version
// 3) and makes the list of hosts from it that infra/ takes. It computes from its arguments alone:
// no file, no network, no clock.
//
// The format is that of http://www.geni.net/resources/rspec/3/manifest.xsd with Emulab's extension,
// as the portal shows it under "Manifest":
//
//	<rspec>                                                    type="manifest", though the portal often leaves "request" there
//	  <node client_id="us-east-1-0"                            the experimenter's name
//	        component_manager_id="urn:publicid:IDN+SITE+authority+cm"
//	        component_id="urn:publicid:IDN+SITE+node+ms1041"   the machine
//	        sliver_id="...">                                   only once it is allocated
//	    <sliver_type name="raw-pc"/>                           or a virtual machine, or something to which nobody logs in
//	    <hardware_type name="m510"/>
//	    <interface client_id="us-east-1-0:eth1"><ip address="10.10.1.1" netmask="255.255.255.0" type="ipv4"/></interface>
//	    <host name="us-east-1-0.EXPERIMENT.PROJECT.SITE" ipv4="128.110.217.156"/>
//	    <services><login hostname="ms1041.SITE" port="22" username="..."/>...</services>   one for each member of the project
//	  <link client_id="lan"><interface_ref client_id="us-east-1-0:eth1"/>...</link>      which interfaces see each other
//
// An experiment at several sites has one manifest for each, or one with the nodes of all.
package cloudlab

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Machine is a node of the testbed that accepts logins.
type Machine struct {
	// Name that the experimenter gave: client_id.
	Name string
	// Site is the testbed's short name: utah for utah.cloudlab.us.
	Site string
	// Component is the testbed's name of the machine, for instance ms1041; empty if the manifest
	// does not say.
	Component string
	// Hardware is its type, for instance m510; empty if the manifest does not say.
	Hardware string
	// Address and Port of its SSH server.
	Address string
	Port    int
	// Users who may log in, sorted.
	Users []string
	// Control is its address in the control network, where it is reached from outside. It is
	// invalid if the manifest has none.
	Control netip.Addr
	// Networks of the experiment in which the machine is.
	Networks []Network
	// Shared with experiments of others.
	Shared bool
}

// Network is one machine's place in a network of the experiment. Two networks, for instance at two
// sites, may have the same range.
type Network struct {
	// Link is the experimenter's name of the network.
	Link string
	// Address of the machine in it, with its range.
	Address netip.Prefix
}

// Manifest has the machines that a testbed gave to an experiment.
type Manifest struct {
	Machines []Machine
	// LeftOut gives a reason for each node that is not in Machines.
	LeftOut []string
}

type rspec struct {
	XMLName xml.Name `xml:"rspec"`
	Nodes   []node   `xml:"node"`
	Links   []link   `xml:"link"`
}

type link struct {
	ClientID   string `xml:"client_id,attr"`
	Interfaces []struct {
		ClientID string `xml:"client_id,attr"`
	} `xml:"interface_ref"`
}

type named struct {
	Name string `xml:"name,attr"`
}

type node struct {
	ClientID   string `xml:"client_id,attr"`
	Manager    string `xml:"component_manager_id,attr"`
	Component  string `xml:"component_id,attr"`
	Sliver     string `xml:"sliver_id,attr"`
	Exclusive  string `xml:"exclusive,attr"`
	SliverType named  `xml:"sliver_type"`
	Hardware   named  `xml:"hardware_type"`
	VNode      struct {
		Hardware string `xml:"hardware_type,attr"`
	} `xml:"vnode"`
	Host struct {
		IPv4 string `xml:"ipv4,attr"`
		IPv6 string `xml:"ipv6,attr"`
	} `xml:"host"`
	Interfaces []struct {
		ClientID  string    `xml:"client_id,attr"`
		Addresses []address `xml:"ip"`
	} `xml:"interface"`
	Logins []struct {
		Host string `xml:"hostname,attr"`
		Port string `xml:"port,attr"`
		User string `xml:"username,attr"`
	} `xml:"services>login"`
	// Proxies are jump hosts, as GENI's extension proxy/1 has them.
	Proxies []struct {
		Proxy string `xml:"proxy,attr"`
	} `xml:"services>proxy"`
}

type address struct {
	Address string `xml:"address,attr"`
	Netmask string `xml:"netmask,attr"`
	Type    string `xml:"type,attr"`
}

// Read reads a stream of manifests, one after the other, as cat prints those of several sites. Its
// errors name the node and quote the manifest.
func Read(r io.Reader) (Manifest, error) {
	var m Manifest
	decoder := xml.NewDecoder(r)
	for number := 1; ; number++ {
		var doc rspec
		err := decoder.Decode(&doc)
		switch {
		case errors.Is(err, io.EOF) && number > 1:
			return m, nil
		case err != nil && number > 1:
			return Manifest{}, fmt.Errorf("the text after manifest %d is no manifest: %w", number-1, err)
		case err != nil:
			return Manifest{}, fmt.Errorf("not a manifest (an XML file whose first element is rspec): %w", err)
		}
		if err := m.add(&doc); err != nil && number > 1 {
			return Manifest{}, fmt.Errorf("manifest %d: %w", number, err)
		} else if err != nil {
			return Manifest{}, err
		}
	}
}

// add takes in the nodes of one manifest. Another manifest may use the same names of interfaces and
// links for other ones.
func (m *Manifest) add(doc *rspec) error {
	if len(doc.Nodes) == 0 {
		return errors.New("the manifest has no node")
	}
	links := map[string]string{} // of an interface's name
	for _, l := range doc.Links {
		for _, i := range l.Interfaces {
			links[i.ClientID] = l.ClientID
		}
	}
	for i := range doc.Nodes {
		n := &doc.Nodes[i]
		if why := n.leaveOut(); why != "" {
			m.LeftOut = append(m.LeftOut, fmt.Sprintf("%s: %s", n.ClientID, why))
			continue
		}
		machine, err := n.machine(links)
		if err != nil {
			return fmt.Errorf("node %s: %w", n.ClientID, err)
		}
		m.Machines = append(m.Machines, machine)
	}
	return nil
}

// leaveOut returns the reason why a node is no machine, or "" if it is one. A dataset or a switch
// may have logins, too, but no experiment runs a program on it.
func (n *node) leaveOut() string {
	switch t := n.SliverType.Name; {
	case t == "raw", strings.HasPrefix(t, "raw-pc"), strings.HasSuffix(t, "-vm"), strings.Contains(t, "xen"):
		return ""
	case t == "":
		return "it has no sliver_type"
	default:
		return "it is no machine but " + t
	}
}

func (n *node) machine(links map[string]string) (Machine, error) {
	if n.Sliver == "" {
		return Machine{}, fmt.Errorf("it has no sliver_id: this is a request, or the experiment is not ready; take the manifest of a running one")
	}
	if len(n.Logins) == 0 {
		return Machine{}, fmt.Errorf("it has no login under services: the experiment is not ready, or you are not in its project")
	}
	if len(n.Proxies) > 0 {
		return Machine{}, fmt.Errorf("it is reached through the jump host %s only, and infra/ logs in directly: take machines with addresses of their own, "+
			"or run infra/ on a machine of the experiment", n.Proxies[0].Proxy)
	}
	site, err := site(n.Manager)
	if err != nil {
		return Machine{}, err
	}
	m := Machine{Name: n.ClientID, Site: site, Component: last(n.Component), Hardware: n.Hardware.Name, Address: n.Logins[0].Host, Port: 22}
	if m.Hardware == "" {
		m.Hardware = n.VNode.Hardware
	}
	if m.Address == "" {
		return Machine{}, fmt.Errorf("its login has no hostname")
	}
	if port := n.Logins[0].Port; port != "" {
		if m.Port, err = strconv.Atoi(port); err != nil || m.Port < 1 || m.Port > 65535 {
			return Machine{}, fmt.Errorf("its login has port %q, which is not between 1 and 65535", port)
		}
	}
	for _, l := range n.Logins {
		m.Users = append(m.Users, l.User)
	}
	slices.Sort(m.Users)
	m.Users = slices.Compact(m.Users)
	if n.Host.IPv4 != "" {
		if m.Control, err = netip.ParseAddr(n.Host.IPv4); err != nil {
			return Machine{}, fmt.Errorf("its host has ipv4 %q: %w", n.Host.IPv4, err)
		}
	}
	if m.Networks, err = n.networks(links); err != nil {
		return Machine{}, err
	}
	if n.Host.IPv6 != "" && n.Host.IPv4 == "" && len(m.Networks) == 0 {
		return Machine{}, fmt.Errorf("it has no IPv4 address, only %s: infra/ makes clusters whose nodes have one; ask for a machine with a routable IPv4 address", n.Host.IPv6)
	}
	m.Shared = n.Exclusive == "false"
	return m, nil
}

func (n *node) networks(links map[string]string) ([]Network, error) {
	var networks []Network
	for _, i := range n.Interfaces {
		for _, a := range i.Addresses {
			if link := links[i.ClientID]; link != "" && (a.Type == "" || a.Type == "ipv4") {
				prefix, err := a.prefix()
				if err != nil {
					return nil, fmt.Errorf("interface %s: %w", i.ClientID, err)
				}
				networks = append(networks, Network{Link: link, Address: prefix})
			}
		}
	}
	return networks, nil
}

func (a address) prefix() (netip.Prefix, error) {
	addr, err := netip.ParseAddr(a.Address)
	mask := net.ParseIP(a.Netmask).To4()
	if err != nil || !addr.Is4() || mask == nil {
		return netip.Prefix{}, fmt.Errorf("address %q with netmask %q: one of them is not IPv4", a.Address, a.Netmask)
	}
	ones, bits := net.IPMask(mask).Size()
	if bits == 0 {
		return netip.Prefix{}, fmt.Errorf("netmask %q is no prefix", a.Netmask)
	}
	return netip.PrefixFrom(addr, ones), nil
}

// site is the short name in urn:publicid:IDN+AUTHORITY+authority+cm.
func site(manager string) (string, error) {
	parts := strings.Split(manager, "+")
	if len(parts) != 4 || parts[0] != "urn:publicid:IDN" || parts[1] == "" {
		return "", fmt.Errorf("its component_manager_id is %q; it must be like urn:publicid:IDN+utah.cloudlab.us+authority+cm", manager)
	}
	return label(strings.TrimSuffix(parts[1], ".cloudlab.us")), nil
}

// last is the name at the end of a URN.
func last(urn string) string { return urn[strings.LastIndexByte(urn, '+')+1:] }

// label makes a DNS label of a name, for instance of emulab.net.
func label(name string) string {
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(name))
	return strings.Trim(clean[:min(len(clean), 63)], "-")
}
