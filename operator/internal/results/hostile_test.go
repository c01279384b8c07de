package results

import (
	"bytes"
	"compress/gzip"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// hostile are results that look like a client's, or like a trial's that wait for a store. They make
// their reader use as much memory as possible: two bytes become a number of eight bytes.
var hostile = map[string]func() error{
	"a client's": func() error {
		_, err := UnpackClient(zipped(`{"format":"`+ClientFormat+`","timeline":{"committed":[0`, ",0", 256<<20), time.Minute)
		return err
	},
	"a client's, as many as may be": func() error {
		_, err := UnpackClient(zipped(`{"format":"`+ClientFormat+`","timeline":{"committed":[0`, ",0", clientBase), 0)
		return err
	},
	"a trial's": func() error {
		_, err := DecodeTrial([]byte(`{"format":"` + TrialFormat + `","timeline":{"committed":[0` + strings.Repeat(",0", WholeLimit/2-60) + "]}}"))
		return err
	},
	"a trial's faults":         storedTrial("faults"),
	"a trial's pods":           storedTrial("pods"),
	"an experiment's trials":   storedExperiment("trials", "{}", 3),
	"as many trials as may be": storedExperiment("trials", "{}", storedLimit/maxRecords),
	"as many points as may be": storedExperiment("points", "{}", storedLimit/maxRecords),
	"numbers for points":       storedExperiment("points", "0", 2),
	"as many texts as may be":  storedExperiment("points", `""`, 3),
	"a trial's pods in parts": func() error {
		_, err := DecodeTrial([]byte(`{"format":"` + TrialFormat + `","pods":[{}` + strings.Repeat(",{}", WholeLimit/3-60) + `]}`))
		return err
	},
}

// storedTrial reads a trial's ConfigMap whose list of that name has as many empty records as fit.
func storedTrial(list string) func() error {
	return func() error {
		packed, err := Pack(records(TrialFormat, list, "{}", 3))
		if err != nil {
			return err
		}
		_, err = DecodeStored(nil, map[string][]byte{StoredKey: packed})
		return err
	}
}

// storedExperiment does the same for an experiment, with records of bytesEach bytes.
func storedExperiment(list, record string, bytesEach int) func() error {
	return func() error {
		packed, err := Pack(records(ExperimentFormat, list, record, bytesEach))
		if err != nil {
			return err
		}
		files, err := StoredExperiment(nil, map[string][]byte{PackedExperimentKey: packed})
		if err != nil {
			return err
		}
		_, err = DecodeExperiment([]byte(files[ExperimentKey]))
		return err
	}
}

// records are results of the greatest length that fits into a ConfigMap.
func records(format, list, record string, bytesEach int) []byte {
	start := `{"format":"` + format + `","` + list + `":[` + record
	each := "," + record + strings.Repeat(" ", bytesEach-len(record)-1)
	return []byte(start + strings.Repeat(each, (storedLimit-len(start)-2)/len(each)) + "]}")
}

// zipped returns a gzipped text that repeats part up to size bytes.
func zipped(start, part string, size int) []byte {
	var packed bytes.Buffer
	gz := gzip.NewWriter(&packed)
	_, _ = gz.Write([]byte(start)) // a buffer takes everything
	chunk := []byte(strings.Repeat(part, 1<<15))
	for n := 0; n < size; n += len(chunk) {
		_, _ = gz.Write(chunk)
	}
	_, _ = gz.Write([]byte("]}}"))
	_ = gz.Close()
	return packed.Bytes()
}

const hostileCase = "ASSAY_HOSTILE_RESULTS"

// mostMegabytes is the most memory for a process that reads hostile results. It is half of the
// manager's memory: the manager reads clients' and trials' results at once.
const mostMegabytes = 150

// A user who could write a client's ConfigMap, or the ConfigMaps of waiting results, made the
// manager run out of memory. The same happened to each new leader.
func TestHostileResultsTakeLittleMemory(t *testing.T) {
	if name := os.Getenv(hostileCase); name != "" {
		t.Logf("result: %v", hostile[name]())
		status, err := os.ReadFile("/proc/self/status")
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s", status)
		return
	}
	peak := regexp.MustCompile(`VmHWM:\s+(\d+) kB`)
	for name := range hostile {
		t.Run(name, func(t *testing.T) {
			child := exec.Command(os.Args[0], "-test.run=^TestHostileResultsTakeLittleMemory$", "-test.v")
			child.Env = append(os.Environ(), hostileCase+"="+name)
			out, err := child.CombinedOutput()
			found := peak.FindSubmatch(out)
			if err != nil || found == nil {
				t.Fatalf("the reader ended with %v:\n%s", err, out)
			}
			kilobytes, err := strconv.Atoi(string(found[1]))
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("the reader took %d MB at most", kilobytes>>10)
			if kilobytes>>10 > mostMegabytes {
				t.Errorf("the reader took %d MB at most; %d are allowed", kilobytes>>10, mostMegabytes)
			}
		})
	}
}
