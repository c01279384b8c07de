package loadgen

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func validConfig() Config {
	return Config{
		Clients: 2, Loop: LoopOpen, Rate: 100, Arrivals: ArrivalsPoisson, Timeout: Duration(time.Second),
		Retry:   Retry{Backoff: Duration(2 * ms), MaxBackoff: Duration(300 * ms)},
		Windows: Windows{WarmUp: Duration(time.Second), Measure: Duration(1500 * ms)},
		Driver:  DriverConfig{Protocol: ProtocolEcho, Address: "localhost:7"},
	}
}

func TestConfigValidate(t *testing.T) {
	tests := map[string]struct {
		change func(*Config)
		want   string // of the error; empty: valid
	}{
		"valid":              {func(*Config) {}, ""},
		"no clients":         {func(c *Config) { c.Clients = 0 }, "clients is 0; it must be from 1 to 100000"},
		"too many clients":   {func(c *Config) { c.Clients = MaxClients + 1 }, "clients is 100001"},
		"negative index":     {func(c *Config) { c.Index = -1 }, "index is -1"},
		"negative first":     {func(c *Config) { c.FirstClient = -1 }, "firstClient is -1"},
		"no timeout":         {func(c *Config) { c.Timeout = 0 }, "timeout is 0s; it must be from 1ms to 10m0s"},
		"negative attempts":  {func(c *Config) { c.Retry.Attempts = -1 }, "retry.attempts is -1"},
		"negative backoff":   {func(c *Config) { c.Retry.Backoff = -1 }, "retry.backoff is -1ns"},
		"longest is shorter": {func(c *Config) { c.Retry.MaxBackoff = Duration(ms) }, "retry.maxBackoff is 1ms; it must be at least retry.backoff, 2ms"},
		"unknown loop":       {func(c *Config) { c.Loop = "open" }, `loop is "open"; it must be Closed or Open`},
		"rate when closed":   {func(c *Config) { c.Loop = LoopClosed }, "belong to an open loop"},
		"no rate":            {func(c *Config) { c.Rate = 0 }, "rate is 0"},
		"rate is no number":  {func(c *Config) { c.Rate = nan() }, "rate is NaN"},
		"unknown arrivals":   {func(c *Config) { c.Arrivals = "Uniform" }, "it must be Constant or Poisson"},
		"phase of a gap":     {func(c *Config) { c.Phase = 1 }, "phase is 1"},
		"no window":          {func(c *Config) { c.Windows.Measure = 0 }, "windows.measure is 0s; it must be from 1ms to 24h0m0s"},
		"long drain":         {func(c *Config) { c.Windows.Drain = Duration(2 * time.Hour) }, "windows.drain is 2h0m0s"},
		"unknown driver":     {func(c *Config) { c.Driver.Protocol = "HTTP" }, "it must be Process or Echo"},
		"echo to nowhere":    {func(c *Config) { c.Driver.Address = "" }, "driver.address is empty"},
		"echo with command":  {func(c *Config) { c.Driver.Command = []string{"x"} }, "driver.command belongs to"},
		"process of nothing": {func(c *Config) { c.Driver = DriverConfig{Protocol: ProtocolProcess} }, "driver.command is empty"},
		"some misbehave": {func(c *Config) {
			c.FirstClient, c.Misbehaving = 4, &Misbehaving{Clients: []int32{4, 5}, Driver: c.Driver}
		}, ""},
		"no client misbehaves": {func(c *Config) { c.Misbehaving = &Misbehaving{Driver: c.Driver} }, "misbehaving.clients is empty"},
		"others misbehave": {func(c *Config) {
			c.FirstClient, c.Misbehaving = 4, &Misbehaving{Clients: []int32{6}, Driver: c.Driver}
		}, "misbehaving.clients[0] is 6; this generator's clients are 4 to 5"},
		"one misbehaves twice": {func(c *Config) { c.Misbehaving = &Misbehaving{Clients: []int32{1, 1}, Driver: c.Driver} }, "misbehaving.clients[1] is 1 after 1"},
		"misbehaves how": {func(c *Config) {
			c.Misbehaving = &Misbehaving{Clients: []int32{1}, Driver: DriverConfig{Protocol: ProtocolProcess}}
		}, "misbehaving.driver.command is empty"},
		"phases":             {func(c *Config) { c.Phases = []Phase{{Duration(time.Second), 0, 2}} }, ""},
		"phases of a moment": {func(c *Config) { c.Phases = []Phase{{0, 1, 1}} }, "phases[0].for is 0s; it must be above 0s"},
		"phases of NaN":      {func(c *Config) { c.Phases = []Phase{{Duration(ms), nan(), 1}} }, "phases[0].from is NaN"},
		"phases of silence":  {func(c *Config) { c.Phases = []Phase{{Duration(ms), 0, 0}} }, "at least one share must be above 0"},
		"more than all clients": {func(c *Config) {
			c.Loop, c.Rate, c.Arrivals, c.Phases = LoopClosed, 0, "", []Phase{{Duration(ms), 1, 1.5}}
		}, "phases[0].to is 1.5; in this loop it must be from 0 to 1"},
		"a trace and a rate":         {func(c *Config) { c.Trace = &Trace{File: "f", Speed: 1} }, "a trace says when requests arrive"},
		"a trace of nothing":         {func(c *Config) { c.Rate, c.Arrivals, c.Trace = 0, "", &Trace{Speed: 1} }, "trace.file is empty"},
		"a trace at a halt":          {func(c *Config) { c.Rate, c.Arrivals, c.Trace = 0, "", &Trace{File: "f"} }, "trace.speed is 0"},
		"a trace when closed":        {func(c *Config) { c.Loop, c.Rate, c.Arrivals, c.Trace = LoopClosed, 0, "", &Trace{File: "f", Speed: 1} }, "belong to an open loop"},
		"sessions that think":        {func(c *Config) { c.Session, c.ThinkTime = &UserSession{3, LengthFixed}, Duration(ms) }, ""},
		"sessions of nothing":        {func(c *Config) { c.Session = &UserSession{0, LengthFixed} }, "session.requests is 0"},
		"sessions of any length":     {func(c *Config) { c.Session = &UserSession{3, "Any"} }, "it must be Fixed or Geometric"},
		"fewer clients than its own": {func(c *Config) { c.AllClients = 1 }, "allClients is 1; this generator's clients end at 2"},
		"two at once":                {func(c *Config) { c.Clients, c.Rate = 0, 0 }, "rate is 0"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := validConfig()
			tc.change(&c)
			err := c.Validate()
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Validate() = %v, want %q", err, tc.want)
			}
		})
	}
}

func nan() float64 { zero := 0.0; return zero / zero }

func TestReadConfig(t *testing.T) {
	want := validConfig()
	whole, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct{ content, wantErr string }{
		"whole":              {string(whole), ""},
		"unknown member":     {`{"client": 3}`, `unknown field "client"`},
		"no duration":        {`{"timeout": "soon"}`, `"soon" is not a duration such as 500ms or 20s`},
		"duration as number": {`{"timeout": 5}`, "cannot unmarshal number"},
		"invalid":            {`{}`, "clients is 0"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "c.json")
			if err := os.WriteFile(path, []byte(tc.content), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := ReadConfig(path)
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Errorf("error = %v, want one with %q", err, tc.wantErr)
				}
				return
			}
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("error %v (-want +got):\n%s", err, diff)
			}
		})
	}
	if !strings.Contains(string(whole), `"measure":"1.5s"`) {
		t.Errorf("durations are not text: %s", whole)
	}
}
