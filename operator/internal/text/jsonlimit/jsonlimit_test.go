package jsonlimit

import (
	"encoding/json"
	"strings"
	"testing"
)

type record struct {
	A, B, C int
	Nested  []struct{ D, E int } `json:"nested"`
}

type document struct {
	Records []record          `json:"records"`
	ByName  map[string]record `json:"byName"`
	Texts   []string          `json:"texts"`
	Numbers []int64           `json:"numbers"`
	Bytes   []byte            `json:"bytes"`
}

func TestCheck(t *testing.T) {
	l := For(document{}, 3, 5)
	const tooManyRecords, tooManyObjects = "its lists hold more than 3 records", "it holds more than 5 objects"
	for name, tc := range map[string]struct{ json, want string }{
		"small":                       {`{"records":[{},{}],"byName":{"c":{}}}`, ""},
		"brackets in strings":         {`{"a":"[{},{},{},{},{},{},{}]","\"{[{[":1}`, ""},
		"numbers":                     {`{"numbers":[1,2,3,4,5,6,7,8,9]}`, ""},
		"a record too many":           {`{"records":[{},{},{},{}]}`, tooManyRecords},
		"other values for records":    {`{"records":[0,0,0,0,0]}`, tooManyRecords},
		"texts for records":           {`{"records":["","","","",""]}`, tooManyRecords},
		"a name in another case":      {`{"RECORDS":[0,0,0,0,0]}`, tooManyRecords},
		"an escaped name":             {`{"r\u0065cords":[0,0,0,0,0]}`, tooManyRecords},
		"a letter that folds to k":    {`{"recordſ":[0,0,0,0,0]}`, tooManyRecords},
		"a map of records":            {`{"byName":{"a":0,"b":0,"c":0,"d":0,"e":0}}`, tooManyRecords},
		"texts":                       {`{"texts":["","","","",""]}`, tooManyRecords},
		"records of records":          {`{"records":[{"nested":[0,0,0,0]}]}`, tooManyRecords},
		"lists in a list":             {`{"x":[[],[],[],[]]}`, tooManyRecords},
		"records of several lists":    {`{"a":[{},{}],"b":[{},{}]}`, tooManyRecords},
		"an object too many":          {`{"a":{},"b":{},"c":{},"d":{},"e":{}}`, tooManyObjects},
		"deep":                        {strings.Repeat(`{"a":`, 65), tooManyObjects},
		"deep lists":                  {strings.Repeat(`[`, 65), tooManyRecords},
		"not JSON":                    {`]]]}}"\`, ""},
		"a string that does not end":  {`["abc\`, ""},
		"a quote as the last one":     {`{"`, ""},
		"nothing":                     {"", ""},
		"a list that no member names": {`[1,2,3,4,5,6]`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := message(Check([]byte(tc.json), l)); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	if got := message(Check([]byte(strings.Repeat(`{"a":`, 65)), For(document{}, 100, 100))); got != "its objects and lists nest deeper than 64" {
		t.Errorf("got %q, want the depth named", got)
	}
}

// A document that passes decodes to no more records than the limit allows, also if values have
// wrong types.
func FuzzCheck(f *testing.F) {
	for _, seed := range []string{`{"records":[{},0,"",null]}`, `{"Records":[[1],{"nested":[{},{}]}]}`, `{"byName":{"a":{},"b":1}}`, `{"ByName":{"a":{"NESTED":[1,2]}},"texts":["x"]}`} {
		f.Add(seed)
	}
	l := For(document{}, 3, 100)
	f.Fuzz(func(t *testing.T, text string) {
		if Check([]byte(text), l) != nil {
			return
		}
		var d document
		_ = json.Unmarshal([]byte(text), &d) // after an error, the decoded part is still there
		n := len(d.Texts)
		for _, r := range d.Records {
			n += 1 + len(r.Nested)
		}
		for _, r := range d.ByName {
			n += 1 + len(r.Nested)
		}
		// The first element of a list does not count.
		if lists := 3 + len(d.Records) + len(d.ByName); n > 3+lists {
			t.Errorf("%q has %d records", text, n)
		}
	})
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
