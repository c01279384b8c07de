package agent

import (
	"testing"
)

func TestResetsAreReadByTheNameOfTheirColumn(t *testing.T) {
	const snmp = `Ip: Forwarding DefaultTTL
Ip: 1 64
Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens PassiveOpens AttemptFails EstabResets CurrEstab
Tcp: 1 200 120000 -1 94 9 23 42 12
Udp: InDatagrams
Udp: 5
`
	if count, ok := estabResets([]byte(snmp)); !ok || count != 42 {
		t.Errorf("the count is %d (%v), want 42", count, ok)
	}
	if _, ok := estabResets([]byte("Tcp: A\nTcp: 1\n")); ok {
		t.Error("a count was found where there is none")
	}
	if model := cpuModel("processor\t: 0\nmodel name\t: Some CPU @ 2GHz\nmodel name\t: x\n"); model != "Some CPU @ 2GHz" {
		t.Errorf("the CPU model is %q", model)
	}
}
