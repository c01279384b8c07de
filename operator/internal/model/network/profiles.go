package network

import (
	"maps"
	"slices"
	"strings"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/model/shaping"
)

// Profiles are all profiles.
var Profiles = []v1alpha1.NetworkProfile{v1alpha1.NetworkLAN, v1alpha1.NetworkRegional, v1alpha1.NetworkContinental, v1alpha1.NetworkAWS6}

// regionalRTT is the round trip between any two regions of the regional profile.
const regionalRTT = 10 * time.Millisecond

// Round trips in milliseconds, from region_rtt_latencies in the configurations of the Pequin
// artifact (SOSP'25).
var roundTrips = map[v1alpha1.NetworkProfile]map[[2]string]int{
	v1alpha1.NetworkContinental: {
		{"us-east-1", "us-west-1"}: 63, {"us-east-1", "eu-west-1"}: 68, {"us-west-1", "eu-west-1"}: 22,
	},
	v1alpha1.NetworkAWS6: {
		{"us-east-1", "eu-west-1"}: 73, {"us-east-1", "ap-northeast-1"}: 160, {"us-east-1", "us-west-1"}: 63,
		{"us-east-1", "eu-central-1"}: 87, {"us-east-1", "ap-southeast-2"}: 199,
		{"eu-west-1", "ap-northeast-1"}: 220, {"eu-west-1", "us-west-1"}: 145, {"eu-west-1", "eu-central-1"}: 26, {"eu-west-1", "ap-southeast-2"}: 255,
		{"ap-northeast-1", "us-west-1"}: 115, {"ap-northeast-1", "eu-central-1"}: 243, {"ap-northeast-1", "ap-southeast-2"}: 106,
		{"us-west-1", "eu-central-1"}: 148, {"us-west-1", "ap-southeast-2"}: 139,
		{"eu-central-1", "ap-southeast-2"}: 177,
	},
}

// profile returns a profile's links between the given regions.
func profile(name v1alpha1.NetworkProfile, regions []string) (Matrix, error) {
	m := Matrix{}
	both := func(a, b string, rtt time.Duration) {
		link := shaping.Link{Delay: rtt / 2}
		m[Direction{a, b}], m[Direction{b, a}] = link, link
	}
	switch name {
	case "", v1alpha1.NetworkLAN:
		return m, nil
	case v1alpha1.NetworkRegional:
		for i, a := range regions {
			for _, b := range regions[:i] {
				both(a, b, regionalRTT)
			}
		}
		return m, nil
	}
	table, known := roundTrips[name]
	if !known {
		return nil, wrong("profile", string(name), "must be lan, regional, continental or aws-6")
	}
	for i, a := range regions {
		if !named(table, a) {
			return nil, wrong("", "", "profile %s knows no region %q; it has: %s", name, a, strings.Join(names(table), ", "))
		}
		for _, b := range regions[:i] {
			rtt, ok := table[[2]string{a, b}]
			if !ok {
				rtt = table[[2]string{b, a}]
			}
			both(a, b, time.Duration(rtt)*time.Millisecond)
		}
	}
	return m, nil
}

func named(table map[[2]string]int, region string) bool { return slices.Contains(names(table), region) }

func names(table map[[2]string]int) []string {
	set := map[string]bool{}
	for pair := range table {
		set[pair[0]], set[pair[1]] = true, true
	}
	return slices.Sorted(maps.Keys(set))
}
