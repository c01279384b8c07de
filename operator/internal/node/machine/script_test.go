package machine

import (
	"strings"
	"testing"
)

// Commands of ssh and scp are shown without their options. Other commands keep their options.
func TestCommandsAreShownWithoutOptionsOfSSH(t *testing.T) {
	for line, want := range map[string]string{
		"ssh -n -o BatchMode=yes -oUser=a -p 22 -4qi key a@m1 cd x && nohup y -p 1 &": "ssh a@m1 cd x && nohup y -p 1 &",
		"/usr/bin/ssh -- m1 uptime":       "ssh m1 uptime",
		"scp -q -r -P 22 src a@m1:x/":     "scp src a@m1:x/",
		"ssh -p":                          "ssh",
		"python3 -u master.py --port 250": "python3 -u master.py --port 250",
		"":                                "",
	} {
		if got := withoutOptions(strings.Split(line, " ")); got != want {
			t.Errorf("%q is shown as %q; want %q", line, got, want)
		}
	}
}
