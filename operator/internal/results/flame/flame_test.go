package flame_test

import (
	"bytes"
	"compress/gzip"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/pprof/profile"

	"assay.dev/assay/operator/internal/results/flame"
)

func TestReadPerf(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want flame.Folded
		err  string
	}{
		"two samples of one stack, and one of another": {
			text: "basil  4242 12.5: 10101010 cpu-clock:u:\n\t4a1b2c main.verify+0x1c (/basil)\n\t4a0000 main.main+0x0 (/basil)\n\n" +
				"basil  4242 12.6: 10101010 cpu-clock:u:\n\t4a1b30 main.verify+0x20 (/basil)\n\t4a0000 main.main+0x0 (/basil)\n\n" +
				"basil  4242/4243 12.7: 10101010 cpu-clock:u:\n\t4a2000 main.sign (/basil)\n",
			want: flame.Folded{"basil;main.main;main.verify": 2, "basil;main.sign": 1},
		},
		"a command with a space, a comment, an unknown function": {
			text: "# captured on a machine\nC2 CompilerThre  77 1.0: 1 cpu-clock:u:\n\t7f01 [unknown] (/usr/lib/libc.so.6)\n\t7f02 a;b+0x2 (/x (deleted))\n\n",
			want: flame.Folded{"C2 CompilerThre;a_b;[libc.so.6]": 1},
		},
		"neither function nor file": {text: "sh 7 1.0: 1 cpu-clock:u: \n\t15673 [unknown] (/usr/bin/dash)\n\t0 [unknown] ([unknown])\n\n", want: flame.Folded{"sh;[unknown];[dash]": 1}},
		"a sample without a stack":  {text: "basil 1 1.0: 1 cpu-clock:u: \n\n", want: flame.Folded{"basil": 1}},
		"nothing":                   {text: "\n", err: "the profiler took no sample"},
		"a function of no sample":   {text: "\t4a1b2c main.main (/basil)\n", err: "line 1 of perf script is of no sample"},
		"one behind a sample":       {text: "basil 1 1.0: 1 cpu-clock:u:\n\t4a1b2c main.main (/basil)\n\n\t4a1b2c main.main (/basil)\n", err: "line 4 of perf script is of no sample"},
		"a line that has no end":    {text: strings.Repeat("x", 2<<20), err: "token too long"},
		"a C++ function with types": {text: "db 1 1.0: 1 cpu-clock:u:\n\t1 std::map<int, (anonymous namespace)::T>::at(int const&)+0x1f (/db)\n", want: flame.Folded{"db;std::map<int, (anonymous namespace)::T>::at(int const&)": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := flame.ReadPerf(strings.NewReader(tc.text))
			check(t, got, tc.want, err, tc.err)
		})
	}
}

func check(t *testing.T, got, want flame.Folded, err error, says string) {
	t.Helper()
	if says != "" && (err == nil || !strings.Contains(err.Error(), says)) || says == "" && err != nil {
		t.Fatalf("the error is %v, want it to say %q", err, says)
	}
	if diff := cmp.Diff(want, got); says == "" && diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestReadFolded(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want flame.Folded
		err  string
	}{
		"stacks":               {text: "java/lang/Thread.run;a.b 3\nall of it 2\n\na.b 0\njava/lang/Thread.run;a.b 1\n", want: flame.Folded{"java/lang/Thread.run;a.b": 4, "all of it": 2}},
		"no count":             {text: "a;b\n", err: "line 1 of the stacks has no count"},
		"a count below 0":      {text: "a 1\na -1\n", err: `line 2 of the stacks: "-1" is no count`},
		"only counts of none":  {text: "a 0\n", err: "the profiler took no sample"},
		"a page of the server": {text: "<html>error</html> now\n", err: "is no count"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := flame.Parse("AsyncProfiler", []byte(tc.text))
			check(t, got, tc.want, err, tc.err)
		})
	}
}

// of makes a profile as Go's runtime does.
func of(t *testing.T, kind string, samples ...int64) []byte {
	t.Helper()
	f := func(id uint64, name string) *profile.Function { return &profile.Function{ID: id, Name: name} }
	inner, inlined, outer := f(1, "crypto.verify"), f(2, "main.check"), f(3, "main.main")
	leaf := &profile.Location{ID: 1, Address: 16, Line: []profile.Line{{Function: inner}, {Function: inlined}}}
	root := &profile.Location{ID: 2, Address: 32, Line: []profile.Line{{Function: outer}}}
	bare := &profile.Location{ID: 3, Address: 48}
	p := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: kind, Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}},
		Function:   []*profile.Function{inner, inlined, outer}, Location: []*profile.Location{leaf, root, bare},
	}
	for i, n := range samples {
		stack := [][]*profile.Location{{leaf, root}, {bare, root}, {root}}[i]
		p.Sample = append(p.Sample, &profile.Sample{Location: stack, Value: []int64{n, 10_000_000 * n}})
	}
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// bomb is small and unpacks to much.
func bomb(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	for range 65 {
		if _, err := zip.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestReadPprof(t *testing.T) {
	for name, tc := range map[string]struct {
		data []byte
		want flame.Folded
		err  string
	}{
		"inlined functions, and one without a name": {data: of(t, "samples", 3, 2, 1), want: flame.Folded{"main.main;main.check;crypto.verify": 3, "main.main;0x30": 2, "main.main": 1}},
		"no sample":            {data: of(t, "samples"), err: "the profiler took no sample"},
		"a profile of memory":  {data: of(t, "alloc_objects", 1), err: "it is not of processor time"},
		"what is no profile":   {data: []byte("404 page not found"), err: "read the profile"},
		"nothing that is read": {data: nil, err: "read the profile"},
		"a bomb":               {data: bomb(t), err: "more than 67108864 bytes unpacked"},
		"a pack that is cut":   {data: of(t, "samples", 3)[:20], err: "read the profile"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := flame.Parse("Pprof", tc.data)
			check(t, got, tc.want, err, tc.err)
		})
	}
}

// Stacks are read as they were written, and each frame is drawn as wide as its share.
func TestDraw(t *testing.T) {
	f := flame.Folded{"main;a<b>": 6, "main;other": 4, "main;other;thin": 0}
	var b bytes.Buffer
	if err := f.Write(&b); err != nil {
		t.Fatal(err)
	}
	back, err := flame.Read(&b)
	delete(f, "main;other;thin")
	check(t, back, f, err, "")
	f["main;rare"] = 0
	f["main;seldom"] = 10_000_000 - 10 // 10 samples are below half a pixel then
	svg := f.Draw(flame.Title{Name: `pod "0" & co`, Says: "from <here>"})
	widths := map[string]string{}
	decoder, title := xml.NewDecoder(bytes.NewReader(svg)), ""
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("no XML: %v\n%s", err, svg)
		}
		switch e := token.(type) {
		case xml.CharData:
			title = string(e)
		case xml.StartElement:
			for _, a := range e.Attr {
				if e.Name.Local == "rect" && a.Name.Local == "width" {
					widths[title] = a.Value
				}
			}
		}
	}
	want := map[string]string{`pod "0" & co`: "100%", "all: 10000000 samples, 100.0%": "1179.5", "main: 10000000 samples, 100.0%": "1179.5", "seldom: 9999990 samples, 100.0%": "1179.5"}
	if diff := cmp.Diff(want, widths); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for _, said := range []string{`font-weight="bold">pod &#34;0&#34; &amp; co</text>`, `">from &lt;here&gt;</text>`} {
		if !strings.Contains(string(svg), said) {
			t.Errorf("the picture does not say %s", said)
		}
	}
	half := string(flame.Folded{"x": 1, "y": 1}.Draw(flame.Title{}))
	if strings.Count(half, `width="589.5"`) != 2 || !strings.Contains(half, "y: 1 samples, 50.0%") {
		t.Errorf("two halves are drawn as\n%s", half)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("basil 1 1.0: 1 cpu-clock:u:\n\t1 a (/b)\n\n"))
	f.Add([]byte("a;b 3\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, tool := range []string{"Pprof", "Perf", "AsyncProfiler"} {
			folded, err := flame.Parse(tool, data)
			if err == nil && folded.Samples() <= 0 {
				t.Errorf("%s reads %d samples and no error", tool, folded.Samples())
			}
		}
	})
}
