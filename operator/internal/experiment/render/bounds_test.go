package render

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/experiment/placement"
)

// bearable is how many bytes a rendering may allocate in all. Most of them are garbage at once.
const bearable = 256 << 20

// allocated returns how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// A template could double a variable forty times, or print a hundred thousand megabytes at once.
// Bounds once counted only output and loops.
func TestTemplatesTakeNoMemory(t *testing.T) {
	const eight, half = `{{$x := "aaaaaaaa"}}`, `{{$x := printf "%0500d%0500d" 1 1}}{{$x = print $x $x $x $x $x $x $x $x}}{{$x = print $x $x $x $x $x $x $x $x}}{{$x = print $x $x $x $x $x $x $x $x}}`
	times := func(n int, text string) string { return strings.Repeat(text, n) }
	const tooLong, together, width = "more than 1048576 bytes", "more than 8388608 bytes of text together", "a width or a precision"
	for name, tc := range map[string]struct{ text, want string }{
		"print":                           {eight + times(40, `{{$x = print $x $x}}`), tooLong},
		"println":                         {eight + times(40, `{{$x = println $x $x}}`), tooLong},
		"printf":                          {eight + times(40, `{{$x = printf "%s%s" $x $x}}`), tooLong},
		"printf by index":                 {half + `{{$x = printf "` + times(20000, "%[1]s") + `" $x}}`, tooLong},
		"printf of too much":              {half + `{{$x = printf "" ` + times(20000, "$x ") + `}}`, tooLong},
		"printf of what it does not know": {half + `{{$x = printf "` + times(20000, "%[1]z") + `" $x}}`, tooLong},
		"a format":                        {half + `{{$x = print $x $x}}{{$x = printf $x}}{{$x = print $x $x}}{{$x = print $x "%"}}`, tooLong},
		"html":                            {eight + times(40, `{{$x = html $x $x}}`), tooLong},
		"html longer":                     {`{{$x := "&&&&&&&&"}}` + times(16, `{{$x = print $x $x}}`) + `{{html $x}}`, tooLong},
		"js":                              {eight + times(40, `{{$x = js $x $x}}`), tooLong},
		"js longer":                       {`{{$x := "<<<<<<<<"}}` + times(40, `{{$x = js $x $x}}`), tooLong},
		"urlquery":                        {eight + times(40, `{{$x = urlquery $x $x}}`), tooLong},
		"quote":                           {`{{$x := "\\"}}` + times(40, `{{$x = quote $x}}`), tooLong},
		"json":                            {`{{$x := "\\"}}` + times(40, `{{$x = json $x}}`), tooLong},
		"join":                            {half + `{{join $x .List}}`, tooLong},
		"join of much":                    {half + times(10, `{{$x = join $x (slice .List 0 3)}}`), tooLong},
		"lower":                           {`{{$x := "ȺȺȺȺ"}}` + times(17, `{{$x = print $x $x}}`) + `{{$x = lower $x}}`, tooLong},
		"in a loop":                       {half + `{{range 100000}}{{$y := print $x "b"}}{{end}}`, together},
		"upper in a loop":                 {half + `{{range 100000}}{{$y := upper $x}}{{end}}`, together},
		"one that others stand for":       {`{{define "d"}}{{$x := print . .}}{{template "d" $x}}{{end}}{{template "d" "aaaaaaaa"}}`, tooLong},
		"in a comparison":                 {eight + times(40, `{{$x = print $x $x}}`) + `{{if eq $x $x}}{{end}}`, tooLong},
		"behind a pipe":                   {eight + times(40, `{{$x = $x | printf "%[1]s%[1]s"}}`), tooLong},
		"the data over and over":          {`{{$x := print ` + times(20000, ". ") + `}}`, tooLong},
		"the data, formatted":             {`{{$x := printf "` + times(20000, "%[1]v") + `" .}}`, tooLong},
		"a width":                         {`{{printf "%1000000000d" 1}}`, width},
		"many widths":                     {`{{printf "` + times(2000, `%1000000[1]d`) + `" 1}}`, tooLong},
		"a precision":                     {`{{printf "%.1000000000f" 1.0}}`, width},
		"a width that is an operand":      {`{{printf "%*d" 1000000000 1}}`, width},
		"a precision that is an operand":  {`{{printf "%.*f" 1000000000 1.0}}`, width},
		"widths of many":                  {`{{printf "%1000v" .List}}`, width},
		"pointers":                        {`{{printf "%p" .}}`, "not for templates"},
		"wrapped errors":                  {`{{printf "%w" .}}`, "not for templates"},
	} {
		t.Run(name, func(t *testing.T) {
			data := map[string]any{"List": make([]string, 1000)}
			var err error
			took := allocated(func() { _, err = Text("f", tc.text, data) })
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the error is %v, want %q", err, tc.want)
			}
			if took > bearable {
				t.Errorf("it allocates %d MiB", took>>20)
			}
		})
	}
}

// A template that calls itself within a few blocks once ended the manager: it used up the stack,
// which no program survives.
func TestTemplatesDoNotCallThemselvesForever(t *testing.T) {
	nested := func(levels int, text string) string {
		return strings.Repeat("{{if true}}", levels) + text + strings.Repeat("{{end}}", levels)
	}
	for name, tc := range map[string]struct{ text, want string }{
		"itself":         {`{{define "x"}}` + nested(50, `{{template "x"}}`) + `{{end}}{{template "x"}}`, "call each other more than 100 deep"},
		"each other":     {`{{define "x"}}{{template "y"}}{{end}}{{define "y"}}{{template "x"}}{{end}}{{template "x"}}`, "call each other more than 100 deep"},
		"deep blocks":    {nested(1000, "x"), "more than 100 deep"},
		"a hundred deep": {nested(100, "x"), ""},
		// Calls that are over do not count.
		"a thousand times": {`{{define "x"}}{{end}}{{range 1000}}{{template "x"}}{{end}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Text("f", tc.text, nil)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("the error is %v, want %q", err, tc.want)
			}
		})
	}
}

// A loop that writes nothing could run for hours.
func TestEachTurnOfALoopIsCounted(t *testing.T) {
	for text, wrong := range map[string]bool{
		`{{range 999999}}{{end}}`: false, `{{range 1000001}}{{end}}`: true, `{{if true}}{{range 1000001}}{{else}}{{end}}{{end}}`: true, `{{with 1}}{{range 1000001}}{{end}}{{end}}`: true,
	} {
		if _, err := Text("f", text, nil); (err != nil) != wrong || wrong && !strings.Contains(err.Error(), "its loops run more than 1000000 times") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// The bounded functions return the same as Go's own functions.
func TestBoundedFunctionsAreGos(t *testing.T) {
	data := map[string]any{"S": "a<b", "N": 7, "D": 2.5, "L": []string{"p", "q"}, "B": true}
	for text, want := range map[string]string{
		`{{print 1 2 "a" "b" 3 4}}`:                                            fmt.Sprint(1, 2, "a", "b", 3, 4),
		`{{print .N .S .B .L}}`:                                                fmt.Sprint(7, "a<b", true, []string{"p", "q"}),
		`{{print}}`:                                                            "",
		`{{println 1 "a" 2}}`:                                                  fmt.Sprintln(1, "a", 2),
		`{{printf "%s|%-8s|%8s|%q|%x" .S .S .S .S .S}}`:                        fmt.Sprintf("%s|%-8s|%8s|%q|%x", "a<b", "a<b", "a<b", "a<b", "a<b"),
		`{{printf "%d|%05d|%+d|%x|%#x|%c|%v" 1 2 3 44 5 65 6}}`:                fmt.Sprintf("%d|%05d|%+d|%x|%#x|%c|%v", 1, 2, 3, 44, 5, 65, 6),
		`{{printf "%.0f|%8.3f|%e|%g" .D .D .D .D}}`:                            fmt.Sprintf("%.0f|%8.3f|%e|%g", 2.5, 2.5, 2.5, 2.5),
		`{{printf "%v %q %t" .L .L .B}}`:                                       fmt.Sprintf("%v %q %t", []string{"p", "q"}, []string{"p", "q"}, true),
		`{{printf "%[2]d %[1]d 100%% *" 1 2}}`:                                 "2 1 100% *",
		`{{printf "%d" .S}}`:                                                   "%!d(string=a<b)",
		`{{printf "%s %s" .S}}`:                                                "a<b %!s(MISSING)",
		`{{html .S}} {{html .N "&"}} {{js .S}} {{urlquery .S}}`:                `a&lt;b 7&amp; a\u003Cb a%3Cb`,
		`{{join "-" .L}} {{lower "AB"}} {{upper .S}} {{quote .S}} {{json .L}}`: `p-q ab A<B "a<b" ["p","q"]`,
	} {
		if got, err := Text("f", text, data); err != nil || got != want {
			t.Errorf("%s gives %q (%v), want %q", text, got, err, want)
		}
	}
}

// A trial parses a template once and renders it for all its pods. Each rendering counts from zero,
// also after one that failed.
func TestRenderingsOfOneTemplateHaveBoundsOfTheirOwn(t *testing.T) {
	l := placement.NewLayout("ns", "exp-0a1b-3", kvTrial(), kvSystem())
	ctx, err := newContext(kvTrial(), kvSystem(), l)
	if err != nil {
		t.Fatal(err)
	}
	const steps = maxSteps * 2 / 3
	text := fmt.Sprintf(`{{define "d"}}{{template "d"}}{{end}}{{range %d}}{{end}}{{if eq .Self.Name %q}}{{template "d"}}{{end}}{{.Self.Name}}`, steps, l.Servers[1].Name)
	for i, r := range l.Servers[:3] {
		got, err := ctx.with(r).text("f", text)
		if i == 1 {
			if err == nil || !strings.Contains(err.Error(), "more than 100 deep") {
				t.Errorf("of %s the error is %v", r.Name, err)
			}
			continue
		}
		if err != nil || got != r.Name {
			t.Errorf("of %s: %q, %v", r.Name, got, err)
		}
	}
	if ctx.budget.steps < 3*steps {
		t.Errorf("the trial counts %d steps, want those of three pods: %d or more", ctx.budget.steps, 3*steps)
	}
}

// FuzzText checks that any template is rendered or refused, within the bounds of memory and time.
func FuzzText(f *testing.F) {
	for _, text := range []string{
		`{{$x := "a"}}{{$x = print $x $x}}{{$x}}`, `{{range $i, $r := .Replicas}}{{if $i}},{{end}}{{$r.Host}}:{{$r.Ports.peer}}{{else}}none{{end}}`,
		`{{define "x"}}{{with .}}{{template "x" .}}{{end}}{{end}}{{template "x" .}}`, `{{printf "%[1]*d%% %-5s|%08.3f" 3 .Trial 1.5}}`,
		`{{range 1000}}{{range 1000}}{{continue}}{{end}}{{break}}{{end}}`, `{{html . | js | urlquery | quote | json | lower | upper | println}}`,
		`{{add 1 (atoi "2")}}{{div 1 0}}{{index .Replicas 0}}{{slice .Trial 1 2}}{{len .Clients}}{{default 1 .Self}}`,
	} {
		f.Add(text)
	}
	l := placement.NewLayout("ns", "exp-0a1b-3", kvTrial(), kvSystem())
	ctx, err := newContext(kvTrial(), kvSystem(), l)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 65536 {
			t.Skip("no field of a System is longer")
		}
		var out string
		var err error
		took := allocated(func() { out, err = Text("f", text, ctx.with(l.Servers[0])) })
		if len(out) > maxRendered && err == nil && strings.Contains(text, "{{") {
			t.Errorf("it gives %d bytes", len(out))
		}
		if took > 4*bearable {
			t.Errorf("it allocates %d MiB", took>>20)
		}
	})
}
