package few

import "testing"

func TestOf(t *testing.T) {
	tests := map[string]struct {
		list []string
		want string
	}{
		"none":  {nil, ""},
		"three": {[]string{"a", "b", "c"}, "a; b; c"},
		"five":  {[]string{"a", "b", "c", "d", "e"}, "a; b; c and 2 more"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Of(tc.list, "; "); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
