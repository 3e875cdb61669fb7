package dsh

// A HeaderFold folds the request headers and contexts of a log into what was
// last sent. The zero value has seen none.
type HeaderFold struct {
	Header  *Header
	Context *RequestContext
}

// Apply folds ev; events of other types change nothing.
func (f *HeaderFold) Apply(ev *Event) {
	switch d := ev.Data.(type) {
	case RequestHeader:
		f.Header = d.Header
	case RequestContext:
		f.Context = &d
	default: // says nothing of requests
	}
}
