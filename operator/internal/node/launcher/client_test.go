package launcher

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"
)

// A process of the system listened at the launcher's socket and sent one endless message, and the
// agent kept all of it.
func TestAClientReadsNoMessageWithoutEnd(t *testing.T) {
	ours, theirs := net.Pipe()
	states := make(chan State, 3)
	c := &Client{conn: ours, onState: func(s State) { states <- s }, waiting: map[int64]chan Response{}, gone: make(chan struct{})}
	go c.read()
	for range 3 {
		if _, err := theirs.Write([]byte("{\"state\": {}}\n")); err != nil {
			t.Fatal(err)
		}
		<-states
	}
	sent := make(chan int64, 1)
	go func() {
		n, _ := io.Copy(theirs, io.MultiReader(bytes.NewReader([]byte("{\"error\": \"")), endless{}))
		sent <- n
	}()
	select {
	case <-c.Gone():
	case <-time.After(time.Minute):
		t.Fatal("the client goes on reading")
	}
	if err := ours.Close(); err != nil {
		t.Fatal(err)
	}
	if n := <-sent; n > messageLimit+1<<16 {
		t.Errorf("the client read %d bytes of one message, want %d at most", n, messageLimit)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}
