package install

import (
	"path/filepath"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/testuntil"
)

// What clusters of others already have is used, and not replaced: an S3 server, Prometheus with its operator, Chaos Mesh. All of them really run. Without Chaos Mesh, or without the
// owner's leave, an experiment that needs it is refused when it is applied.
//
// They are installed once for everything that is shown of them, and so is the release that uses them all: installing and removing takes as long as the rest otherwise. One part is
// run by -run 'TestOthers/Prometheus'.
func TestOthers(t *testing.T) {
	testuntil.Needs(t, 6*time.Minute) // what is installed for all of it, and one part
	o := newOwner(t)
	chaosMesh := filepath.Join(root, "hack", "chaos-mesh", "install.sh")
	t.Cleanup(func() { o.insist(t, chaosMesh, "down") })
	o.insist(t, chaosMesh, "down")
	prom, s3 := o.withPrometheus(t), o.withS3(t)
	t.Run("ServerTakesEverything", o.testServerTakesEverything)
	o.makeNamespace(t, chaosExperiments)
	o.create(t, system(t, "basil", chaosExperiments))

	o.refusedByAll(t, "kill", "chaosMesh.enabled")
	t.Cleanup(func() { o.restore(t) })
	o.upgrade(t, chart, "--set=chaosMesh.enabled=true", "--values="+prom.values, "--values="+s3.values)
	o.takenOver(t)
	o.refusedByAll(t, "kill", "install Chaos Mesh")
	idle := time.Now() // managers have no part in what follows at first
	o.insist(t, chaosMesh, "up")

	t.Run("Prometheus", func(t *testing.T) {
		t.Run("Idle", func(t *testing.T) { o.testIdleMinute(t, prom, idle) })
		t.Run("RulesAndDashboard", func(t *testing.T) { o.testRulesAndDashboard(t, prom) })
		t.Run("Measurement", func(t *testing.T) { o.testMeasurement(t, prom, s3) })
	})
	t.Run("StoreIsDownForTwoMinutes", func(t *testing.T) { o.testStoreIsDown(t, s3) })
	t.Run("ChaosMesh", func(t *testing.T) {
		t.Run("WrongSpec", func(t *testing.T) {
			testuntil.Needs(t, 30*time.Second)
			o.refusedByAll(t, "wrong", "parse rate field error")
		})
		t.Run("Faults", o.testChaosFaults)
		t.Run("ManagerKilled", o.testManagerKilledInPartition)
		t.Run("Delay", o.testDelay)
		t.Run("ReplacedReplicas", o.testReplacedReplicas)
	})
	t.Run("Everything", func(t *testing.T) { o.testEverything(t, prom, s3) })
}
