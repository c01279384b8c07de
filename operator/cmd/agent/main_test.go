package main

import (
	"testing"
	"time"
)

func TestTheSimulatedOffsetIsThatOfThePod(t *testing.T) {
	cases := map[string]struct {
		text    string
		want    time.Duration
		wantErr bool
	}{
		"nothing":            {"", 0, false},
		"one for every pod":  {"2s", 2 * time.Second, false},
		"this pod's":         {"a=1s,b=-250ms,c=3s", -250 * time.Millisecond, false},
		"only other pods'":   {"a=1s,c=3s", 0, false},
		"not a duration":     {"b=soon", 0, true},
		"another pod's typo": {"a=soon", 0, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := simulatedOffset(tc.text, "b")
			if got != tc.want || (err != nil) != tc.wantErr {
				t.Errorf("the offset is %v (%v), want %v", got, err, tc.want)
			}
		})
	}
}
