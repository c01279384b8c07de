package v1alpha1

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// Duration is a length of time, or an instant relative to t = 0, as Go writes it: "4ms", "1.5s",
// "-2s". Fractions are allowed; units are ns, us, ms, s, m, h. It is a string because a spec must
// read like the paper, and papers write 4 ms.
//
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:Pattern=`^-?([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+$`
type Duration string

// Parse returns the duration. An empty Duration is zero.
func (d Duration) Parse() (time.Duration, error) {
	if d == "" {
		return 0, nil
	}
	v, err := time.ParseDuration(string(d))
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration such as 500ms or 20s", string(d))
	}
	return v, nil
}

// OrZero returns the duration, or zero when it cannot be parsed. Use it only after validation.
func (d Duration) OrZero() time.Duration {
	v, err := d.Parse()
	if err != nil {
		return 0
	}
	return v
}

// Value is one scalar of a spec as its author wrote it: a string, a number or a boolean. The type
// that it must have is declared elsewhere (by the System's parameter or by the axis), so "10" and
// 10 are the same Value.
//
// +kubebuilder:validation:Type=""
// +kubebuilder:validation:XPreserveUnknownFields
type Value struct {
	text string `json:"-"` // read and written by UnmarshalJSON and MarshalJSON
}

// NewValue returns the Value with that text.
func NewValue(text string) Value { return Value{text: text} }

// String returns the value as text: no quotes, numbers as they were written.
func (v Value) String() string { return v.text }

// Equal reports whether both are written the same.
func (v Value) Equal(w Value) bool { return v.text == w.text }

// UnmarshalJSON accepts a JSON string, number or boolean.
func (v *Value) UnmarshalJSON(b []byte) error {
	b = bytes.TrimSpace(b)
	if len(b) == 0 {
		return fmt.Errorf("empty value")
	}
	switch b[0] {
	case '"':
		return json.Unmarshal(b, &v.text)
	case '{', '[', 'n':
		return fmt.Errorf("%s is not a string, number or boolean", b)
	}
	v.text = string(b)
	return nil
}

// MarshalJSON writes the value as a number or boolean where its text is one, else as a string.
func (v Value) MarshalJSON() ([]byte, error) {
	if v.text == "true" || v.text == "false" || isJSONNumber(v.text) {
		return []byte(v.text), nil
	}
	return json.Marshal(v.text)
}

func isJSONNumber(s string) bool {
	if s == "" || (s[0] != '-' && (s[0] < '0' || s[0] > '9')) {
		return false
	}
	var n json.Number
	return json.Unmarshal([]byte(s), &n) == nil
}
