// Package network turns the network of a trial's spec into numbers: profiles and links.
//
// It is pure. Package netem applies the numbers in a pod's kernel.
package network

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/model/shaping"
)

// Direction is from one region to another, or inside one.
type Direction struct{ From, To string }

// Matrix has the delay, loss and rate of each direction. A direction that is not in it is not
// shaped.
type Matrix map[Direction]shaping.Link

// Resolve returns the directed links between the given regions. The links of the network may name
// only these regions.
func Resolve(n v1alpha1.Network, regions []string) (Matrix, error) {
	m, err := profile(n.Profile, regions)
	if err != nil {
		return nil, err
	}
	for i, l := range n.Links {
		link, err := linkOf(l)
		if err != nil {
			return nil, inLink(i, err)
		}
		directions := []Direction{{l.From, l.To}}
		if len(l.Between) == 2 {
			directions = []Direction{{l.Between[0], l.Between[1]}, {l.Between[1], l.Between[0]}}
		}
		for _, d := range directions {
			for _, name := range []string{d.From, d.To} {
				if !slices.Contains(regions, name) {
					return nil, &Error{Link: i, Value: name, Detail: "no pod is in a region of that name; there are: " + strings.Join(regions, ", ")}
				}
			}
			m[d] = link
		}
	}
	return m, nil
}

// linkOf reads a link. The rate is 0 if the link names none.
func linkOf(l v1alpha1.RegionLink) (shaping.Link, error) {
	effect := l.LinkEffect
	if l.RTT != nil {
		rtt, err := l.RTT.Parse()
		if err != nil || rtt < 0 || rtt > 2*shaping.MaxDelay {
			return shaping.Link{}, wrong("rtt", string(*l.RTT), "must be from 0s to %v", 2*shaping.MaxDelay)
		}
		half := v1alpha1.Duration((rtt / 2).String())
		effect.Delay = &half
	}
	return Effect(effect)
}

// Effect reads an effect on the packets of one direction.
func Effect(e v1alpha1.LinkEffect) (shaping.Link, error) {
	var link shaping.Link
	var err error
	if link.Delay, err = duration("delay", e.Delay, shaping.MaxDelay); err != nil {
		return link, err
	}
	if link.Jitter, err = duration("jitter", e.Jitter, shaping.MaxDelay); err != nil {
		return link, err
	}
	share, bad := Share(e.Loss)
	if bad != nil {
		return link, wrong("loss", e.Loss, "%s", shareRange)
	}
	link.Loss = share
	if link.Rate, err = rate(e.Rate); err != nil {
		return link, err
	}
	return link, nil
}

func duration(name string, d *v1alpha1.Duration, most time.Duration) (time.Duration, error) {
	if d == nil {
		return 0, nil
	}
	v, err := d.Parse()
	if err != nil || v < 0 || v > most {
		return 0, wrong(name, string(*d), "must be a duration from 0s to %v", most)
	}
	return v, nil
}

// shareRange is the valid range of a share.
const shareRange = "must be from 0% to 100%"

// Share reads a percentage as a number from 0 to 1. Empty: 0.
func Share(text string) (float64, error) {
	if text == "" {
		return 0, nil
	}
	number, percent := strings.CutSuffix(text, "%")
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || !percent || !(v >= 0 && v <= 100) {
		return 0, fmt.Errorf("%q: %s", text, shareRange)
	}
	return v / 100, nil
}

// Bounds of a rate, in bits per second.
const (
	minRate = 1e3
	maxRate = 100e9
)

func rate(text string) (uint64, error) {
	if text == "" {
		return 0, nil
	}
	for unit, bits := range map[string]float64{"kbit": 1e3, "Mbit": 1e6, "Gbit": 1e9} {
		number, found := strings.CutSuffix(text, unit)
		if !found {
			continue
		}
		if v, err := strconv.ParseFloat(number, 64); err == nil && v*bits >= minRate && v*bits <= maxRate {
			return uint64(v * bits), nil
		}
	}
	return 0, wrong("rate", text, "must be from 1kbit to 100Gbit, such as 100Mbit")
}

// Add returns a link that an effect made worse: delay and jitter add up, losses combine, the lower
// rate holds. A link without a rate has shaping.DefaultRate. Add caps delay and jitter at the
// bounds of a link. Package plan refuses a fault that this would weaken.
func Add(base, worse shaping.Link) shaping.Link {
	out := shaping.Link{
		Delay:  min(base.Delay+worse.Delay, shaping.MaxDelay),
		Jitter: base.Jitter + worse.Jitter,
		Loss:   1 - (1-base.Loss)*(1-worse.Loss),
		Rate:   base.Rate,
	}
	out.Jitter = min(out.Jitter, out.Delay, shaping.MaxDelay-out.Delay)
	if worse.Rate != 0 && worse.Rate < base.RateOrDefault() {
		out.Rate = worse.Rate
	}
	return out
}

// Links writes the matrix as links of a spec: one for each direction, in order of name.
func (m Matrix) Links() []v1alpha1.RegionLink {
	var directions []Direction
	for d := range m {
		directions = append(directions, d)
	}
	slices.SortFunc(directions, func(a, b Direction) int { return strings.Compare(a.From+"\x00"+a.To, b.From+"\x00"+b.To) })
	var out []v1alpha1.RegionLink
	for _, d := range directions {
		l := v1alpha1.RegionLink{From: d.From, To: d.To}
		link := m[d]
		set := func(into **v1alpha1.Duration, v time.Duration) {
			if v != 0 {
				text := v1alpha1.Duration(v.String())
				*into = &text
			}
		}
		set(&l.Delay, link.Delay)
		set(&l.Jitter, link.Jitter)
		if link.Loss != 0 {
			l.Loss = strconv.FormatFloat(link.Loss*100, 'f', -1, 64) + "%"
		}
		if link.Rate != 0 {
			l.Rate = strconv.FormatFloat(float64(link.Rate)/1e3, 'f', -1, 64) + "kbit"
		}
		out = append(out, l)
	}
	return out
}
