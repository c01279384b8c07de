package results

import (
	"math"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/model/timeline"
)

// sawtooth is the use of a pod. Its disk writes i KiB in second i, and 100 in the last one, and
// reads twice as much. It has one core in every odd second, and a page cache of i MiB.
func sawtooth(from, to time.Duration, shift int) *Resources {
	m := NewMeter(timeline.Windows{WarmUp: 2 * time.Second, Measure: 20 * time.Second, CoolDown: 2 * time.Second}, []string{"c"})
	r := ContainerReading{At: from, DiskFrom: "io.stat"}
	for ; r.At <= to; r.At += time.Second {
		i := int(r.At / time.Second)
		r.PageCache, r.Memory = int64(i)<<20, 7<<20
		m.Container("c", r)
		m.Pod(PodReading{At: r.At})
		kib := max(0, i)
		if i == 19 {
			kib = 100
		}
		r.DiskWritten += int64(kib) << 10
		r.DiskRead += 2 * int64(kib) << 10
		if (i+shift)%2 != 0 {
			r.CPU += time.Second
		}
	}
	return m.Resources()
}

// The seconds of the window have 0, 1, ... 18 and 100 KiB, so that the 10th, the 19th and the 20th
// of 20 in order are 9, 18 and 100.
func TestUseOverTimeIsOfTheSecondsOfTheWindow(t *testing.T) {
	r := sawtooth(-2*time.Second, 22*time.Second, 0)
	if r.DiskWrittenBytes == nil || *r.DiskWrittenBytes != 271<<10 || *r.DiskReadBytes != 542<<10 || r.PageCacheMaxBytes != 20<<20 {
		t.Fatalf("%v bytes written, %v read, %d of page cache at most", r.DiskWrittenBytes, r.DiskReadBytes, r.PageCacheMaxBytes)
	}
	const kib = 1 << 10
	for _, want := range []ResourceOverTime{
		{UseDiskWritten, math.Round(271 * kib / 20.0), 9 * kib, 18 * kib, 100 * kib, 100 * kib},
		{UseDiskRead, math.Round(542 * kib / 20.0), 18 * kib, 36 * kib, 200 * kib, 200 * kib},
		{UseDisk, math.Round(813 * kib / 20.0), 27 * kib, 54 * kib, 300 * kib, 300 * kib},
		{UseCPU, 0.5, 0, 1, 1, 1},
		{UseMemory, 7 << 20, 7 << 20, 7 << 20, 7 << 20, 7 << 20},
		{UsePageCache, 9.5 * (1 << 20), 9 << 20, 18 << 20, 19 << 20, 19 << 20},
		{Resource: UseNetwork},
	} {
		found := false
		for _, got := range r.OverTime {
			found = found || got == want
		}
		if !found {
			t.Errorf("there is no %+v in %+v", want, r.OverTime)
		}
	}
}

// Two pods that use a processor in turn use one together in every second, and each of them at most
// one. If they do so at the same time, they use two in half of the seconds.
func TestUseOfPodsIsAddedUpInEachSecond(t *testing.T) {
	inTurn := func(shift int) *Trial {
		trial := &Trial{MeasureNanos: 20e9, Pods: []Pod{
			{Name: "a", Part: "replica", Resources: sawtooth(-2*time.Second, 22*time.Second, 0)},
			{Name: "b", Part: "replica", Resources: sawtooth(-2*time.Second, 22*time.Second, shift)},
		}}
		trial.Use = UseOf(trial.Pods, trial.MeasureNanos)
		return trial
	}
	for name, tc := range map[string]struct {
		shift int
		use   Use
		unit  string
		want  float64
	}{
		"in turn, the median":         {1, Use{UseCPU, "replica", "", "P50", ""}, "", 1},
		"in turn, at most":            {1, Use{UseCPU, "", PodsSum, "Maximum", ""}, "cores", 1},
		"together, at most":           {0, Use{UseCPU, "replica", "", "Maximum", ""}, "", 2},
		"the mean of pods":            {1, Use{UseCPU, "replica", PodsMean, "Mean", ""}, "", 0.5},
		"processor-seconds":           {0, Use{UseCPU, "", "", "Total", ""}, "s", 20},
		"the largest pod":             {0, Use{UsePageCache, "", PodsLargest, "P95", ""}, "MiB", 18},
		"how much the pods differ":    {1, Use{UseDisk, "replica", PodsVariation, "Mean", ""}, "", 0},
		"bytes written in the window": {0, Use{UseDiskWritten, "replica", "", "Total", ""}, "KiB", 542},
		"and by the second":           {0, Use{UseDiskRead, "replica", "", "P99", ""}, "KiB/s", 400},
	} {
		t.Run(name, func(t *testing.T) {
			m := Used("m", tc.unit, tc.use, inTurn(tc.shift))
			if m.Value == nil || !near(*m.Value, tc.want, 1e-3*math.Max(1, tc.want)) {
				t.Errorf("%+v, want %v", m, tc.want)
			}
		})
	}
}

// If one pod lacks a number, the number of all pods is unknown, with that pod's reason.
func TestUseThatIsNotKnown(t *testing.T) {
	without := NewMeter(timeline.Windows{Measure: 5 * time.Second}, []string{"c"})
	for at := -time.Second; at <= 6*time.Second; at += time.Second {
		without.Container("c", ContainerReading{At: at, DiskUnknown: "gVisor"})
		without.Pod(PodReading{At: at})
	}
	trial := &Trial{MeasureNanos: 5e9, Pods: []Pod{{Name: "a", Part: "replica", Resources: without.Resources()}, {Name: "b", Part: "client"}}}
	trial.Use = UseOf(trial.Pods, trial.MeasureNanos)
	for _, tc := range []struct {
		use  Use
		unit string
		want string
	}{
		{Use{UseDisk, "replica", "", "Mean", ""}, "", "Disk of some replica is not known: a, container c: disks: gVisor"},
		{Use{UseDisk, "replica", PodsLargest, "Mean", ""}, "", "Disk of a is not known: a, container c: disks: gVisor"},
		{Use{UseCPU, "client", PodsMean, "Mean", ""}, "", "CPU of b is not known"},
		{Use{UseCPU, "", "", "Mean", ""}, "", "of some pod it is not known over time what it used"},
		{Use{UseCPU, "component", PodsMean, "Mean", ""}, "", "the trial has no component"},
		{Use{UseNetwork, "replica", PodsVariation, "Mean", ""}, "", "no replica used any Network, so that it has no variation"},
		{Use{UseMemory, "replica", "", "Total", ""}, "", "has no total"},
		{Use{UseMemory, "replica", "", "P95", ""}, "MiB/s", "the unit must be B, kB"},
		{Use{UseDisk, "replica", "", "P95", ""}, "MiB", `followed by "/s"`},
		{Use{UseCPU, "replica", "", "P95", ""}, "s", "the unit must be cores"},
		{Use{UseCPU, "replica", PodsVariation, "P95", ""}, "cores", "has no unit"},
		{Use{"Disc", "replica", "", "P95", ""}, "", "no resource Disc"},
	} {
		if m := Used("m", tc.unit, tc.use, trial); m.Value != nil || !strings.Contains(m.Reason, tc.want) {
			t.Errorf("%+v in %q: %q; want %q", tc.use, tc.unit, m.Reason, tc.want)
		}
	}
	if m := Used("m", "", Use{UseCPU, "replica", "", "Mean", ""}, trial); m.Value == nil {
		t.Errorf("the processors of a part that is known: %s", m.Reason)
	}
}

func TestUseInWords(t *testing.T) {
	for use, want := range map[Use]string{
		{Resource: UseCPU}: "CPU, sum of all pods",
		{Resource: UseDisk, Part: "replica", Pods: PodsMean}:         "Disk, mean of all replicas",
		{Resource: UseVolumeSize, Part: "component", Volume: "data"}: "VolumeSize data, sum of all components",
	} {
		if got := use.String(); got != want {
			t.Errorf("%+v is %q, want %q", use, got, want)
		}
	}
}

// Volumes are added up over those pods that have them, by the volume or all together.
func TestUseOfVolumes(t *testing.T) {
	pod := func(name, part string, volumes ...VolumeUse) Pod {
		return Pod{Name: name, Part: part, Resources: &Resources{Volumes: volumes}}
	}
	trial := &Trial{Pods: []Pod{
		pod("a", "replica", VolumeUse{Name: "data", Bytes: 3 << 20}, VolumeUse{Name: "log", Bytes: 1 << 20}),
		pod("b", "replica", VolumeUse{Name: "data", Bytes: 5 << 20}, VolumeUse{Name: "log", Bytes: 1 << 20}),
		pod("c", "client"),
		pod("d", "component", VolumeUse{Name: "cold", Unmeasured: "too many files"}),
	}}
	for _, tc := range []struct {
		use    Use
		want   float64
		reason string
	}{
		{Use{UseVolumeSize, "replica", "", "End", "data"}, 8, ""},
		{Use{UseVolumeSize, "replica", "", "End", ""}, 10, ""},
		{Use{UseVolumeSize, "", PodsLargest, "End", "data"}, 5, ""},
		{Use{UseVolumeSize, "replica", PodsMean, "End", "data"}, 4, ""},
		{Use{UseVolumeSize, "replica", PodsVariation, "End", "log"}, 0, ""},
		{Use{UseVolumeSize, "client", "", "End", ""}, 0, "no client has such a volume"},
		{Use{UseVolumeSize, "replica", "", "End", "cold"}, 0, "no replica has such a volume"},
		{Use{UseVolumeSize, "", "", "End", "cold"}, 0, "volume cold of d: too many files"},
		{Use{UseVolumeSize, "", "", "Mean", ""}, 0, "at the End of the window"},
		{Use{UseMemory, "", "", "End", ""}, 0, "at the End of the window"},
		{Use{UseMemory, "", "", "Mean", "data"}, 0, "a volume goes with VolumeSize"},
	} {
		unit := "MiB"
		if tc.use.Pods == PodsVariation {
			unit = ""
		}
		m := Used("m", unit, tc.use, trial)
		if (tc.reason == "") != (m.Value != nil) || m.Value != nil && *m.Value != tc.want || !strings.Contains(m.Reason, tc.reason) {
			t.Errorf("%+v: %+v; want %v, %q", tc.use, m, tc.want, tc.reason)
		}
	}
}

// Pods of one machine share its energy. If a node does not report its energy, a reason takes the
// number's place.
func TestUseOfEnergy(t *testing.T) {
	pod := func(part, machine string, joules *float64) Pod {
		return Pod{Name: part + machine, Part: part, Resources: &Resources{Node: NodeUse{Machine: machine, EnergyJoules: joules, EnergyUnmeasured: "hidden"}}}
	}
	five, seven := 5.0, 7.0
	trial := &Trial{MeasureNanos: 2e9, Pods: []Pod{pod("replica", "a", &five), pod("client", "a", &five), pod("client", "b", &seven), pod("component", "c", nil)}}
	for _, tc := range []struct {
		use    Use
		unit   string
		want   float64
		reason string
	}{
		{Use{UseEnergy, "replica", "", "Total", ""}, "J", 5, ""},
		{Use{UseEnergy, "client", PodsSum, "Total", ""}, "", 12, ""},
		{Use{UseEnergy, "client", "", "Mean", ""}, "W", 6, ""},
		{Use{UseEnergy, "", "", "Mean", ""}, "W", 0, "the node of componentc: hidden"},
		{Use{UseEnergy, "client", "", "P95", ""}, "W", 0, "has a Total"},
		{Use{UseEnergy, "client", PodsLargest, "Mean", ""}, "W", 0, "of whole nodes"},
		{Use{UseEnergy, "client", "", "Total", ""}, "W", 0, "must be J"},
	} {
		m := Used("m", tc.unit, tc.use, trial)
		if (tc.reason == "") != (m.Value != nil) || m.Value != nil && *m.Value != tc.want || !strings.Contains(m.Reason, tc.reason) {
			t.Errorf("%+v: %+v; want %v, %q", tc.use, m, tc.want, tc.reason)
		}
	}
}
