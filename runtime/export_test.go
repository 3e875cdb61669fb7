package runtime

import "sync/atomic"

// CountMessages counts the messages that rt's actors handle from now on. It is
// to be called while nothing runs.
func (rt *Runtime) CountMessages() *atomic.Int64 {
	rt.workers.Handled = new(atomic.Int64)
	return rt.workers.Handled
}
