package cloudlab

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

func machines(t *testing.T, files ...string) []Machine {
	t.Helper()
	var all []Machine
	for _, name := range files {
		f, err := os.Open(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		m, err := Read(f)
		_ = f.Close()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m.Machines...)
	}
	return all
}

func patterns(t *testing.T, texts ...string) []Pattern {
	t.Helper()
	var all []Pattern
	for _, text := range texts {
		p, err := ParsePattern(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}

// Six servers and three clients at two sites, with the names that the artifact of Pesto gives them.
func TestHosts(t *testing.T) {
	for name, tc := range map[string]struct {
		manifests []string
		regions   []string
		note      string
	}{
		"two-sites":     {manifests: []string{"utah.xml", "wisc.xml"}, note: "No network of the experiment joins all machines"},
		"named-regions": {manifests: []string{"utah.xml", "wisc.xml"}, regions: []string{"us-east-1=us-east-1-*", "eu-west-1=eu-west-1-*", "us-east-1=client-[01]-*", "eu-west-1=client-2-*", "us-east-1=california"}, note: "No network of the experiment"},
		"one-site":      {manifests: []string{"utah.xml"}, note: "over the experiment's network lan-utah"},
	} {
		t.Run(name, func(t *testing.T) {
			got, notes, err := Hosts(machines(t, tc.manifests...), Options{
				User: "alice", ControlPlane: "california", Pools: patterns(t, "clients=client-*", "servers=*-*-[0-9]-[0-9]"), Regions: patterns(t, tc.regions...),
			})
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(strings.Join(notes, "\n"), tc.note) {
				t.Errorf("notes %q, want one with %q", notes, tc.note)
			}
			text, err := json.MarshalIndent(got, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", name+".golden.json")
			if *update {
				if err := os.WriteFile(golden, append(text, '\n'), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(text)+"\n"); diff != "" {
				t.Errorf("%s (-want +got):\n%s", golden, diff)
			}
		})
	}
}

func TestHostsRefused(t *testing.T) {
	valid := Options{User: "alice", ControlPlane: "california", Pools: []Pattern{{"clients", "client-*"}, {"servers", "*-1-[0-9]"}}}
	for name, tc := range map[string]struct {
		change func(*Options)
		also   []Machine
		want   string
	}{
		"no control plane":   {change: func(o *Options) { o.ControlPlane = "oregon" }, want: `no machine is named "oregon", which is to be the control plane; there are california, us-east-1-0,`},
		"in no pool":         {change: func(o *Options) { o.Pools = o.Pools[1:] }, want: "machine client-0-0: it is in no pool; add --pool NAME=client-0-0"},
		"no user":            {change: func(o *Options) { o.User = "" }, want: "machine california: several may log in: alice, bob; say who with --user"},
		"a stranger":         {change: func(o *Options) { o.User = "mallory" }, want: "mallory may not log in, only alice, bob"},
		"a pattern in vain":  {change: func(o *Options) { o.Regions = []Pattern{{"ap", "ap-*"}} }, want: "no machine matches ap=ap-*; there are california,"},
		"the same node name": {also: []Machine{{Name: "Client_0_0", Users: []string{"alice"}}}, want: "client-0-0 and Client_0_0 would both be node client-0-0"},
	} {
		t.Run(name, func(t *testing.T) {
			o := valid
			o.Pools = slices.Clone(valid.Pools)
			if tc.change != nil {
				tc.change(&o)
			}
			_, _, err := Hosts(append(machines(t, "utah.xml"), tc.also...), o)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
	if _, _, err := Hosts(machines(t, "utah.xml"), valid); err != nil {
		t.Errorf("the options that all cases change: %v", err)
	}
}

func TestRead(t *testing.T) {
	f, err := os.Open("testdata/utah.xml")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	m, err := Read(f)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"data: it is no machine but emulab-blockstore"}, m.LeftOut); diff != "" {
		t.Errorf("left out (-want +got):\n%s", diff)
	}
	if len(m.Machines) != 6 {
		t.Errorf("%d machines, want 6", len(m.Machines))
	}
}

func TestReadRefused(t *testing.T) {
	const node = `<rspec xmlns="http://www.geni.net/resources/rspec/3"><node client_id="a" sliver_id="s" component_manager_id="urn:publicid:IDN+utah.cloudlab.us+authority+cm"><sliver_type name="raw-pc"/>` +
		`<interface client_id="a:0"><ip address="10.0.0.1" netmask="255.255.255.0" type="ipv4"/></interface><host name="a" ipv4="192.0.2.1"/>` +
		`<services><login hostname="pc1" port="22" username="alice"/></services></node><link client_id="l"><interface_ref client_id="a:0"/></link></rspec>`
	if _, err := Read(strings.NewReader(node)); err != nil {
		t.Fatalf("the manifest that all cases change: %v", err)
	}
	for name, tc := range map[string]struct{ text, want string }{
		"not XML":         {"hello", "not a manifest"},
		"not an RSpec":    {"<html></html>", "not a manifest (an XML file whose first element is rspec)"},
		"no node":         {`<rspec/>`, "the manifest has no node"},
		"cut off":         {node[:len(node)-20], "not a manifest"},
		"a request":       {strings.Replace(node, ` sliver_id="s"`, "", 1), "node a: it has no sliver_id: this is a request"},
		"no user":         {strings.Replace(node, `<login hostname="pc1" port="22" username="alice"/>`, "", 1), "node a: it has no login under services"},
		"no host name":    {strings.Replace(node, `hostname="pc1" `, "", 1), "node a: its login has no hostname"},
		"a wrong port":    {strings.Replace(node, `port="22"`, `port="0"`, 1), `node a: its login has port "0"`},
		"no site":         {strings.Replace(node, "IDN+utah", "utah", 1), `node a: its component_manager_id is "urn:publicid:utah.cloudlab.us+authority+cm"; it must be like`},
		"a wrong address": {strings.Replace(node, "10.0.0.1", "10.0.0.256", 1), `node a: interface a:0: address "10.0.0.256"`},
		"a wrong netmask": {strings.Replace(node, "255.255.255.0", "255.0.255.0", 1), `node a: interface a:0: netmask "255.0.255.0" is no prefix`},
		"a jump host":     {strings.Replace(node, "</services>", `<proxy xmlns="http://www.geni.net/resources/rspec/ext/proxy/1" proxy="gate.example.org:22" for="pc1:22"/></services>`, 1), "node a: it is reached through the jump host gate.example.org:22 only"},
		"no IPv4":         {strings.NewReplacer(`ipv4="192.0.2.1"`, `ipv6="2001:db8::1"`, `<ip address="10.0.0.1" netmask="255.255.255.0" type="ipv4"/>`, "").Replace(node), "node a: it has no IPv4 address, only 2001:db8::1"},
		"a wrong host":    {strings.Replace(node, "192.0.2.1", "192.0.2", 1), `node a: its host has ipv4 "192.0.2"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read(strings.NewReader(tc.text))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}

// The list names two machines that are one and the same.
func TestOneMachineTwiceIsNamed(t *testing.T) {
	all := machines(t, "utah.xml")
	all[2].Address, all[2].Port = all[1].Address, all[1].Port
	_, notes, err := Hosts(all, Options{User: "alice", ControlPlane: "california", Pools: patterns(t, "clients=client-*", "servers=*-*-[0-9]", "servers=*-*-[0-9]-[0-9]")})
	if want := "Machines " + all[1].Name + " and " + all[2].Name + " have one SSH server"; err != nil || !strings.Contains(strings.Join(notes, "\n"), want) {
		t.Errorf("notes %q, %v", notes, err)
	}
}

// The list names a machine that other experiments use, too.
func TestSharedMachinesAreNamed(t *testing.T) {
	all := machines(t, "utah.xml")
	all[1].Shared = true
	_, notes, err := Hosts(all, Options{User: "alice", ControlPlane: "california", Pools: patterns(t, "clients=client-*", "servers=*-*-[0-9]", "servers=*-*-[0-9]-[0-9]")})
	if err != nil || !strings.Contains(strings.Join(notes, "\n"), "Machine "+all[1].Name+" is shared with others") {
		t.Errorf("notes %q, %v", notes, err)
	}
}
