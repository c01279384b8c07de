package network

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/model/shaping"
)

// At puts an error at its field, as deep as the error says.
func TestErrorsAtTheirFields(t *testing.T) {
	for want, err := range map[string]error{
		`spec.network: Invalid value: "x": wrong`:                   &Error{Link: -1, Value: "x", Detail: "wrong"},
		`spec.network.profile: Invalid value: "x": wrong`:           &Error{Link: -1, Field: "profile", Value: "x", Detail: "wrong"},
		`spec.network.links[0]: Invalid value: "x": wrong`:          &Error{Link: 0, Value: "x", Detail: "wrong"},
		`spec.network.links[2].rtt: Invalid value: "x": wrong`:      inLink(2, wrong("rtt", "x", "wrong")),
		`spec.network: Invalid value: "": it is of another package`: errors.New("it is of another package"),
		`spec.network: Invalid value: "": it is of no link`:         inLink(2, errors.New("it is of no link")),
	} {
		if got := At(field.NewPath("spec", "network"), err).Error(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	for want, err := range map[string]error{
		`links[0]: rtt: "x": wrong`: inLink(0, wrong("rtt", "x", "wrong")), `rate: wrong`: wrong("rate", "", "wrong"), `"x": wrong`: wrong("", "x", "wrong"),
	} {
		if err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// Effect accepts values at the bounds. It refuses values beyond them, and names the field.
func TestBoundsOfEffects(t *testing.T) {
	for name, tc := range map[string]struct {
		effect v1alpha1.LinkEffect
		want   shaping.Link
		wrong  string
	}{
		"nothing":            {},
		"the longest delay":  {effect: v1alpha1.LinkEffect{Delay: text("10s"), Jitter: text("10s")}, want: shaping.Link{Delay: shaping.MaxDelay, Jitter: shaping.MaxDelay}},
		"no delay":           {effect: v1alpha1.LinkEffect{Delay: text("0s"), Jitter: text("0s")}},
		"too long a delay":   {effect: v1alpha1.LinkEffect{Delay: text("10.000001s")}, wrong: `delay: "10.000001s": must be a duration from 0s to 10s`},
		"a negative delay":   {effect: v1alpha1.LinkEffect{Delay: text("-1ms")}, wrong: `delay: "-1ms": must be a duration from 0s to 10s`},
		"no duration":        {effect: v1alpha1.LinkEffect{Jitter: text("soon")}, wrong: `jitter: "soon": must be a duration from 0s to 10s`},
		"a negative jitter":  {effect: v1alpha1.LinkEffect{Jitter: text("-1ms")}, wrong: `jitter: "-1ms": must be a duration from 0s to 10s`},
		"all is lost":        {effect: v1alpha1.LinkEffect{Loss: "100%"}, want: shaping.Link{Loss: 1}},
		"nothing is lost":    {effect: v1alpha1.LinkEffect{Loss: "0%"}},
		"a negative loss":    {effect: v1alpha1.LinkEffect{Loss: "-1%"}, wrong: `loss: "-1%": must be from 0% to 100%`},
		"a loss without %":   {effect: v1alpha1.LinkEffect{Loss: "0.5"}, wrong: `loss: "0.5": must be from 0% to 100%`},
		"no number":          {effect: v1alpha1.LinkEffect{Loss: "NaN%"}, wrong: `loss: "NaN%": must be from 0% to 100%`},
		"the lowest rate":    {effect: v1alpha1.LinkEffect{Rate: "1kbit"}, want: shaping.Link{Rate: 1000}},
		"the highest rate":   {effect: v1alpha1.LinkEffect{Rate: "100Gbit"}, want: shaping.Link{Rate: 100e9}},
		"too high a rate":    {effect: v1alpha1.LinkEffect{Rate: "100.1Gbit"}, wrong: `rate: "100.1Gbit": must be from 1kbit to 100Gbit, such as 100Mbit`},
		"a rate of no unit":  {effect: v1alpha1.LinkEffect{Rate: "100"}, wrong: `rate: "100": must be from 1kbit to 100Gbit, such as 100Mbit`},
		"a rate of no kbits": {effect: v1alpha1.LinkEffect{Rate: "fastkbit"}, wrong: `rate: "fastkbit": must be from 1kbit to 100Gbit, such as 100Mbit`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Effect(tc.effect)
			if tc.wrong == "" && (err != nil || got != tc.want) {
				t.Errorf("got %+v, %v; want %+v", got, err, tc.want)
			}
			if tc.wrong != "" && (err == nil || err.Error() != tc.wrong) {
				t.Errorf("got %v, want %s", err, tc.wrong)
			}
		})
	}
	for rtt, wrong := range map[string]bool{"20s": false, "0s": false, "20.000001s": true, "-1ms": true, "soon": true} {
		if link, err := linkOf(v1alpha1.RegionLink{RTT: text(rtt)}); (err != nil) != wrong || rtt == "20s" && link.Delay != shaping.MaxDelay {
			t.Errorf("a round trip of %s: %+v, %v", rtt, link, err)
		}
	}
}

func TestWritten(t *testing.T) {
	e := v1alpha1.LinkEffect{Delay: text("1ms"), Jitter: text("2ms"), Loss: "3%", Rate: "4kbit"}
	for name, want := range map[string]string{"delay": "1ms", "jitter": "2ms", "loss": "3%", "rate": "4kbit"} {
		if got := Written(e, name); got != want {
			t.Errorf("of %s, %q was written, want %q", name, got, want)
		}
	}
	if got := Written(v1alpha1.LinkEffect{}, "delay"); got != "" {
		t.Errorf("where nothing was written there is %q", got)
	}
}
