package dsh_test

import (
	"math/bits"
	"reflect"
	"testing"

	"github.com/dsh-actor/dsh-actor/dsh"
)

// Logs in memory are arrays of events: what one takes, every agent pays for
// dozens of times.
func TestEventSize(t *testing.T) {
	if bits.UintSize != 64 {
		t.Skip("measured in words of 64 bits")
	}
	if got := reflect.TypeFor[dsh.Event]().Size(); got > 56 {
		t.Errorf("an event takes %d bytes, want at most 56", got)
	}
}

func TestSurfaceOps(t *testing.T) {
	for _, c := range []struct {
		op         dsh.SurfaceOp
		kind       dsh.SurfaceKind
		start, end dsh.Seq
	}{
		{dsh.SurfaceOp{}, dsh.SurfaceNone, 0, 0},
		{dsh.Append, dsh.SurfaceAppend, 0, 0},
		{dsh.Replace(3, 5), dsh.SurfaceReplace, 3, 5},
		{dsh.Replace(0, 0), dsh.SurfaceReplace, 0, 0},
	} {
		start, end := c.op.Range()
		if c.op.Kind() != c.kind || start != c.start || end != c.end {
			t.Errorf("got %v of %d to %d, want %+v", c.op.Kind(), start, end, c)
		}
	}
}
