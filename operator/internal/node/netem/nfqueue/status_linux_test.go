package nfqueue

import (
	"testing"
)

func TestTheKernelsLineOfAQueueIsRead(t *testing.T) {
	const content = "    7  19742      0 2    64     0     0        0  1\n42330 281471      3 2    40    11    22       99  1\n"
	got, known, err := parseStatus([]byte(content), 42330)
	if want := (queueStatus{port: 281471, waiting: 3, copyMode: 2, copiedBytes: 40, queueFull: 11, bufferFull: 22}); got != want || !known || err != nil {
		t.Errorf("%+v %v %v, want %+v", got, known, err, want)
	}
	if _, known, err := parseStatus([]byte(content), 1); known || err != nil {
		t.Errorf("a queue that is not there: %v %v", known, err)
	}
	if _, _, err := parseStatus([]byte("42330 x\n"), 42330); err == nil {
		t.Error("a line that is none was read")
	}
}
