package strip_test

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/analysis/report"
)

var palette = regexp.MustCompile(`--(paper|good|bad|open|soft): (#[0-9a-f]{3,6});`)

// linear is a colour as light: red, green and blue from 0 to 1.
type linear [3]float64

func parse(t *testing.T, hex string) (c linear) {
	t.Helper()
	if len(hex) == 4 {
		hex = "#" + strings.Repeat(hex[1:2], 2) + strings.Repeat(hex[2:3], 2) + strings.Repeat(hex[3:4], 2)
	}
	var v [3]int
	if _, err := fmt.Sscanf(hex, "#%02x%02x%02x", &v[0], &v[1], &v[2]); err != nil {
		t.Fatalf("%s: %v", hex, err)
	}
	for i := range c {
		s := float64(v[i]) / 255
		if c[i] = s / 12.92; s > 0.04045 {
			c[i] = math.Pow((s+0.055)/1.055, 2.4)
		}
	}
	return c
}

func (c linear) luminance() float64 { return 0.2126*c[0] + 0.7152*c[1] + 0.0722*c[2] }

// seenBy are the matrices of Machado, Oliveira and Fernandes (IEEE TVCG 15(6), 2009) at severity 1.
var seenBy = map[string][3][3]float64{
	"everyone":     {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
	"protanopes":   {{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}},
	"deuteranopes": {{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}},
	"tritanopes":   {{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}},
}

func (c linear) seen(m [3][3]float64) (out linear) {
	for i := range out {
		for k := range c {
			out[i] += m[i][k] * c[k]
		}
		out[i] = math.Min(1, math.Max(0, out[i]))
	}
	return out
}

// lab is CIE L*a*b* under D65, in which a distance of 2.3 is just noticeable.
func (c linear) lab() (lab [3]float64) {
	x := (0.4124*c[0] + 0.3576*c[1] + 0.1805*c[2]) / 0.9505
	z := (0.0193*c[0] + 0.1192*c[1] + 0.9505*c[2]) / 1.089
	f := func(t float64) float64 {
		if t > 216.0/24389 {
			return math.Cbrt(t)
		}
		return (24389.0/27*t + 16) / 116
	}
	y := f(c.luminance())
	return [3]float64{116*y - 16, 500 * (f(x) - y), 200 * (y - f(z))}
}

// The colours of the states can be told apart with any colour vision, and read on their paper: in
// light, in dark, and in print.
func TestColoursCanBeToldApart(t *testing.T) {
	const (
		leastContrast = 4.5 // WCAG 2.1, level AA
		leastDistance = 20
	)
	schemes := strings.Split(report.Style(), ":root")[1:]
	for i, name := range []string{"light", "dark", "print"} {
		colours := map[string]linear{}
		for _, m := range palette.FindAllStringSubmatch(schemes[i], -1) {
			colours[m[1]] = parse(t, m[2])
		}
		paper := colours["paper"].luminance()
		for _, state := range []string{"good", "bad", "open", "soft"} {
			own, ok := colours[state]
			if !ok {
				t.Fatalf("%s has no colour for %s", name, state)
			}
			if c := (math.Max(paper, own.luminance()) + 0.05) / (math.Min(paper, own.luminance()) + 0.05); c < leastContrast {
				t.Errorf("%s: the contrast of %s is %.1f", name, state, c)
			}
		}
		for who, matrix := range seenBy {
			for _, pair := range [][2]string{{"good", "bad"}, {"good", "open"}, {"bad", "open"}} {
				a, b := colours[pair[0]].seen(matrix).lab(), colours[pair[1]].seen(matrix).lab()
				if d := math.Sqrt((a[0]-b[0])*(a[0]-b[0]) + (a[1]-b[1])*(a[1]-b[1]) + (a[2]-b[2])*(a[2]-b[2])); d < leastDistance {
					t.Errorf("%s: %s sees %s and %s %.1f apart", name, who, pair[0], pair[1], d)
				}
			}
		}
	}
}
