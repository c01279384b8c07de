package strip_test

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/analysis/report/plot"
)

var palette = regexp.MustCompile(`--(paper|good|bad|open|soft|c[0-7]): (#[0-9a-f]{3,6});`)

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

// Readers with any colour vision can tell the colours of the states apart, and read them: in light,
// in dark, and in print.
func TestColoursCanBeToldApart(t *testing.T) {
	const (
		leastContrast = 4.5 // WCAG 2.1, level AA
		leastDistance = 20
	)
	schemes := strings.Split(plot.Style(), ":root")[1:]
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

// ciede2000 is the distance of two colours by the CIE's formula of 2000 (Sharma, Wu and Dalal,
// Color Res. Appl. 30(1), 2005). Unlike the distance in L*a*b*, it agrees with what people see for
// saturated colours, too.
func ciede2000(a, b [3]float64) float64 {
	const power = 25.0 * 25 * 25 * 25 * 25 * 25 * 25
	degrees := func(x float64) float64 { return x * math.Pi / 180 }
	chroma := func(c float64) float64 { return math.Sqrt(math.Pow(c, 7) / (math.Pow(c, 7) + power)) }
	g := 1 + (1-chroma((math.Hypot(a[1], a[2])+math.Hypot(b[1], b[2]))/2))/2
	hue := func(x, y float64) float64 { return math.Mod(math.Atan2(y, x)*180/math.Pi+360, 360) }
	c1, c2 := math.Hypot(g*a[1], a[2]), math.Hypot(g*b[1], b[2])
	h1, h2 := hue(g*a[1], a[2]), hue(g*b[1], b[2])
	turn, middle := h2-h1, (h1+h2)/2
	switch {
	case c1*c2 == 0:
		turn, middle = 0, h1+h2
	case turn > 180:
		turn, middle = turn-360, math.Mod(middle+180, 360)
	case turn < -180:
		turn, middle = turn+360, math.Mod(middle+180, 360)
	}
	l, c := (a[0]+b[0])/2, (c1+c2)/2
	weight := 1 - 0.17*math.Cos(degrees(middle-30)) + 0.24*math.Cos(degrees(2*middle)) + 0.32*math.Cos(degrees(3*middle+6)) - 0.2*math.Cos(degrees(4*middle-63))
	dl := (b[0] - a[0]) / (1 + 0.015*(l-50)*(l-50)/math.Sqrt(20+(l-50)*(l-50)))
	dc := (c2 - c1) / (1 + 0.045*c)
	dh := 2 * math.Sqrt(c1*c2) * math.Sin(degrees(turn/2)) / (1 + 0.015*c*weight)
	rotation := -2 * chroma(c) * math.Sin(degrees(60*math.Exp(-math.Pow((middle-275)/25, 2))))
	return math.Sqrt(dl*dl + dc*dc + dh*dh + rotation*dc*dh)
}

// The first, the ninth and the seventeenth pair of the data of Sharma, Wu and Dalal.
func TestCIEDE2000(t *testing.T) {
	for _, tc := range []struct {
		a, b [3]float64
		want float64
	}{
		{[3]float64{50, 2.6772, -79.7751}, [3]float64{50, 0, -82.7485}, 2.0425},
		{[3]float64{50, 2.49, -0.001}, [3]float64{50, -2.49, 0.0009}, 7.1792},
		{[3]float64{50, 2.5, 0}, [3]float64{73, 25, -18}, 27.1492},
	} {
		if got := ciede2000(tc.a, tc.b); math.Abs(got-tc.want) > 1e-4 {
			t.Errorf("%v and %v are %.4f apart, want %.4f", tc.a, tc.b, got, tc.want)
		}
	}
}

// Once, two of the eight colours of curves were 2.5 apart for deuteranopes on a light page, and two
// were 1.2 apart on a dark one.
func TestCurvesCanBeToldApart(t *testing.T) {
	const least = 10
	for i, name := range []string{"light", "dark", "print"} {
		colours := map[string]linear{}
		for _, m := range palette.FindAllStringSubmatch(strings.Split(plot.Style(), ":root")[1:][i], -1) {
			colours[m[1]] = parse(t, m[2])
		}
		for who, matrix := range seenBy {
			for k := range 8 {
				for j := range k {
					a, b := fmt.Sprintf("c%d", j), fmt.Sprintf("c%d", k)
					if d := ciede2000(colours[a].seen(matrix).lab(), colours[b].seen(matrix).lab()); d < least {
						t.Errorf("%s: %s see %s and %s %.1f apart", name, who, a, b, d)
					}
				}
			}
		}
	}
}
